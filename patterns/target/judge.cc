#include "patterns/target/judge.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <utility>

#include "fmt/format.h"
#include "fmt/ranges.h"
#include "ir/whole_number.h"
#include "patterns/how_to_bind.h"
#include "proto/contract.pb.h"

namespace ascend_fuse::contract {
namespace {

std::string NumberText(double value) {
  if (value == std::floor(value) && std::fabs(value) < 1e15) return fmt::format("{}", static_cast<int64_t>(value));
  return fmt::format("{}", static_cast<float>(value));
}

// The value of an attribute as text, in the words of the data.
std::string ValueText(const Attribute& attribute) {
  switch (attribute.type) {
    case AttributeType::kInt:
      return fmt::format("{}", attribute.i);
    case AttributeType::kFloat:
      return fmt::format("{}", attribute.f);
    case AttributeType::kString:
      return std::string(attribute.s);
    default:
      return "a value of another type";
  }
}

std::string_view TypeWord(AttributeType type) {
  switch (type) {
    case AttributeType::kInt:
      return "INT";
    case AttributeType::kFloat:
      return "FLOAT";
    case AttributeType::kString:
      return "STRING";
    default:
      return "another type";
  }
}

std::optional<double> ParseNumber(const std::string& text) {
  char* end = nullptr;
  const double value = std::strtod(text.c_str(), &end);
  if (text.empty() || *end != '\0') return std::nullopt;
  return value;
}

template <typename List>
std::vector<std::string> Strings(const List& list) {
  return std::vector<std::string>(list.begin(), list.end());
}

}  // namespace

std::string JoinOr(const std::vector<std::string>& words) {
  std::string text;
  for (size_t i = 0; i < words.size(); ++i) {
    if (i > 0) text += i + 1 == words.size() ? " or " : ", ";
    text += words[i];
  }
  return text;
}

std::string WithReason(std::string sentence, const std::string& because) {
  return because.empty() ? sentence : fmt::format("{} ({})", sentence, because);
}

bool SameValue(const std::string& text, const Attribute& attribute) {
  const std::optional<double> number = ParseNumber(text);
  if (attribute.type == AttributeType::kInt) return number && *number == static_cast<double>(attribute.i);
  if (attribute.type == AttributeType::kFloat) return number && static_cast<float>(*number) == attribute.f;
  return attribute.type == AttributeType::kString && attribute.s == text;
}

DataType Viewed(DataType type, const proto::PrecisionMode::View& view) {
  for (const auto& change : view.change()) {
    if (DataTypeName(type) == change.type()) return DataTypeFromName(change.as());
  }
  return type;
}

bool Judge::CheckAttributesAndPresence(Refusal* refusal) {
  input_count_ = call_.inputs.size();
  while (input_count_ > 0 && !call_.inputs[input_count_ - 1].present) --input_count_;
  for (const CompiledRow& row : node_.rows) {
    for (size_t i = 0; i < row.signature.inputs.size(); ++i) positions_[row.signature.inputs[i].name] = i;
  }
  for (const Attribute& attribute : call_.attributes) {
    if (Rule(std::string(attribute.name)) == nullptr) {
      return Refuse(refusal, kInput, "attribute-refused",
                    fmt::format("{} does not read an attribute {}", call_.op, attribute.name), FirstSource());
    }
  }
  for (const CompiledAttribute& rule : node_.attributes) {
    if (Holds(rule.when) && !CheckAttribute(*rule.data, refusal)) return false;
  }
  for (const CompiledInput& rule : node_.inputs) {
    if (!Holds(rule.when)) continue;
    const bool present = InputOf(rule.data->name()) != nullptr;
    if (rule.data->absent() && present) {
      return Refuse(refusal, kInput, "operand-refused",
                    WithReason(fmt::format("{} must not be given", rule.data->name()), rule.data->because()),
                    rule.data->source());
    }
    if (rule.data->required() && !present) {
      return Refuse(refusal, kInput, "operand-refused",
                    WithReason(fmt::format("{} must be given", rule.data->name()), rule.data->because()), rule.data->source());
    }
  }
  if (!node_.data->has_input_count()) return true;
  const proto::InputCount& count = node_.data->input_count();
  if (std::find(count.only().begin(), count.only().end(), static_cast<int>(input_count_)) == count.only().end()) {
    std::vector<std::string> words;
    for (const int n : count.only()) words.push_back(fmt::format("{}", n));
    return Refuse(refusal, kInput, "operand-refused",
                  WithReason(fmt::format("{} inputs, {} takes {}", input_count_, call_.op, JoinOr(words)), count.because()),
                  count.source());
  }
  for (size_t i = 0; i < input_count_; ++i) {
    if (!call_.inputs[i].present) {
      return Refuse(refusal, kInput, "operand-refused", WithReason(fmt::format("input {} is not connected", i), count.because()),
                    count.source());
    }
  }
  return true;
}

bool Judge::CheckRow(const CompiledRow& row, const proto::PrecisionMode::View& view, Refusal* refusal,
                     std::vector<std::string>* assumptions) {
  matched_axes_ = 0;
  letters_.Clear();
  ellipses_.Clear();
  assumptions_ = assumptions;
  types_.clear();
  for (const CallInput& input : call_.inputs) types_.push_back(Viewed(input.type, view));
  const auto& operands = row.signature.inputs;
  if (input_count_ > operands.size()) {
    return Refuse(refusal, kType, "operand-refused",
                  fmt::format("{} inputs, {} takes at most {}", input_count_, call_.op, operands.size()), FirstSource());
  }
  if (!Holds(row.when)) return Refuse(refusal, kType, "types-refused", "", "");
  for (size_t i = 0; i < operands.size(); ++i) {
    const bool present = i < input_count_ && call_.inputs[i].present;
    if (!present) {
      if (operands[i].optional) continue;
      return Refuse(refusal, kType, "operand-refused", fmt::format("{} must be given", operands[i].name), FirstSource());
    }
    const auto& types = operands[i].types;
    if (!types.empty() && std::find(types.begin(), types.end(), types_[i]) == types.end()) {
      return Refuse(refusal, kType, "types-refused", "", "");  // said for all rows together
    }
  }
  types_fit_ = true;
  for (size_t i = 0; i < operands.size(); ++i) {
    if (i >= input_count_ || !call_.inputs[i].present || !operands[i].has_shape) continue;
    if (!MatchShape(operands[i].name, operands[i].shape, call_.inputs[i], "", FirstSource(), refusal)) {
      return false;
    }
  }
  for (const CompiledInput& rule : node_.inputs) {
    if (rule.shapes.empty() || !Holds(rule.when)) continue;
    const CallInput* input = InputOf(rule.data->name());
    if (input != nullptr && !MatchOneOf(rule, *input, refusal)) return false;
  }
  for (const auto* limits : {&row.limits, &node_.limits}) {
    for (const CompiledLimit& limit : *limits) {
      if (Holds(limit.when) && !CheckLimit(limit, refusal)) return false;
    }
  }
  return true;
}

bool Judge::Refuse(Refusal* refusal, int stage, std::string_view code, std::string because, const std::string& source,
                   bool undecided) const {
  if (stage == kAxis) stage += matched_axes_;
  const bool any_undecided = refusal->any_undecided || undecided || code == "shape-not-known";
  const bool tells_more = refusal->because.empty() || (undecided && !refusal->undecided);
  if (stage > refusal->stage || (stage == refusal->stage && tells_more)) {
    *refusal = {stage, std::string(code), undecided, any_undecided, std::move(because), source};
  }
  refusal->any_undecided = any_undecided;
  return false;
}

const std::string& Judge::FirstSource() const {
  static const std::string* const kNone = new std::string();
  return node_.data->source().empty() ? *kNone : node_.data->source(0);
}

const proto::AttributeRule* Judge::Rule(const std::string& name) const {
  for (const CompiledAttribute& rule : node_.attributes) {
    if (rule.data->name() == name) return rule.data;
  }
  return nullptr;
}

const Attribute* Judge::Find(const std::string& name) const {
  for (const Attribute& attribute : call_.attributes) {
    if (attribute.name == name) return &attribute;
  }
  return nullptr;
}

const CallInput* Judge::InputOf(const std::string& name) const {
  const size_t* const position = positions_.Find(name);
  if (position == nullptr || *position >= call_.inputs.size()) return nullptr;
  return call_.inputs[*position].present ? &call_.inputs[*position] : nullptr;
}

bool Judge::CheckAttribute(const proto::AttributeRule& rule, Refusal* refusal) {
  const Attribute* attribute = Find(rule.name());
  if (attribute == nullptr) {
    if (!rule.required()) return true;
    return Refuse(refusal, kInput, "attribute-refused",
                  WithReason(fmt::format("{} must be written", rule.name()), rule.because()), rule.source());
  }
  if (!rule.type().empty() && rule.type() != TypeWord(attribute->type)) {
    return Refuse(refusal, kInput, "attribute-refused",
                  fmt::format("{} is {}, the plugin reads {} only", rule.name(), TypeWord(attribute->type), rule.type()),
                  rule.source());
  }
  const auto refuse = [&](const std::string& rest) {
    return Refuse(refusal, kInput, "attribute-refused",
                  WithReason(fmt::format("{} is {}, {}", rule.name(), ValueText(*attribute), rest), rule.because()),
                  rule.source());
  };
  if (!rule.only().empty()) {
    bool found = false;
    for (const std::string& value : rule.only()) found = found || SameValue(value, *attribute);
    if (!found) return refuse(fmt::format("only {}", JoinOr(Strings(rule.only()))));
  }
  const double value = attribute->type == AttributeType::kInt ? static_cast<double>(attribute->i) : attribute->f;
  if (rule.has_at_least() && !(value >= rule.at_least())) {
    return refuse(fmt::format("at least {}", NumberText(rule.at_least())));
  }
  if (rule.has_at_most() && !(value <= rule.at_most())) {
    return refuse(fmt::format("at most {}", NumberText(rule.at_most())));
  }
  if (rule.has_more_than() && !(value > rule.more_than())) {
    return refuse(fmt::format("more than {}", NumberText(rule.more_than())));
  }
  return true;
}

std::optional<int64_t> Judge::IntOf(const std::string& name) const {
  const proto::AttributeRule* rule = Rule(name);
  if (rule == nullptr) return std::nullopt;
  if (const Attribute* attribute = Find(name)) {
    return attribute->type == AttributeType::kInt ? std::optional<int64_t>(attribute->i) : std::nullopt;
  }
  const std::optional<double> value = ParseNumber(rule->default_());
  return value ? std::optional<int64_t>(WholeNumber(*value)) : std::nullopt;
}

bool Judge::Holds(const std::vector<CompiledWhen>& conditions) const {
  return std::all_of(conditions.begin(), conditions.end(), [this](const CompiledWhen& when) { return Holds(when); });
}

bool Judge::Holds(const CompiledWhen& when) const {
  const proto::When& data = *when.data;
  const auto one_of = [&data](const auto& same) {
    if (std::any_of(data.is_not().begin(), data.is_not().end(), same)) return false;
    return data.is().empty() || std::any_of(data.is().begin(), data.is().end(), same);
  };
  if (!data.present().empty() && InputOf(data.present()) == nullptr) return false;
  if (!data.absent().empty() && InputOf(data.absent()) != nullptr) return false;
  if (!data.attribute().empty()) {
    if (const Attribute* attribute = Find(data.attribute())) {
      if (!one_of([&](const std::string& text) { return SameValue(text, *attribute); })) return false;
    } else {
      const std::string value = Rule(data.attribute())->default_();
      if (value.empty() || !one_of([&](const std::string& text) { return text == value; })) return false;
    }
  }
  if (!data.type_of().empty()) {
    const size_t* const position = positions_.Find(data.type_of());
    if (position == nullptr || *position >= types_.size()) return false;
    const std::string_view type = DataTypeName(types_[*position]);
    if (!one_of([&](const std::string& text) { return text == type; })) return false;
  }
  if (!data.multiple().empty()) {
    const Quantity quantity = Value(when.multiple);
    if (!quantity.defined || IsMultiple(quantity, data.by()) == Truth::kNo) return false;
  }
  if (!data.not_multiple().empty()) {
    const Quantity quantity = Value(when.not_multiple);
    if (!quantity.defined || IsMultiple(quantity, data.by()) == Truth::kYes) return false;
  }
  return data.cann().empty() || std::find(data.cann().begin(), data.cann().end(), cann_) != data.cann().end();
}
bool Judge::MatchOneOf(const CompiledInput& rule, const CallInput& input, Refusal* refusal) {
  Refusal best;
  std::vector<std::string>* const outer = assumptions_;
  const auto letters = letters_;
  const auto ellipses = ellipses_;
  for (const ShapePattern& shape : rule.shapes) {
    std::vector<std::string> assumptions;
    assumptions_ = &assumptions;
    const bool matched = MatchShape(rule.data->name(), shape, input, rule.data->because(), rule.data->source(), &best);
    assumptions_ = outer;
    if (matched) {
      outer->insert(outer->end(), assumptions.begin(), assumptions.end());
      return true;
    }
    letters_ = letters;
    ellipses_ = ellipses;
  }
  std::string code = best.code;
  std::string because = best.because;
  if (rule.shapes.size() > 1 && !best.undecided) {
    std::vector<std::string> forms;
    for (const ShapePattern& shape : rule.shapes) forms.push_back(shape.text);
    if (code != "shape-not-known") code = "shape-refused";
    because = WithReason(fmt::format("{} has shape {}, one of {} is needed", rule.data->name(), ShapeText(input), JoinOr(forms)),
                         rule.data->because());
  }
  refusal->any_undecided |= best.any_undecided;
  return Refuse(refusal, kInput, code, std::move(because), rule.data->source(), best.undecided);
}

std::string Judge::ShapeText(const CallInput& input) const {
  if (!input.has_rank) return "[unknown rank]";
  std::vector<std::string> words;
  for (const Dim dim : input.shape) words.push_back(dims_.ToString(dim));
  return fmt::format("[{}]", fmt::join(words, ", "));
}

bool Judge::MatchShape(const std::string& name, const ShapePattern& pattern, const CallInput& input, const std::string& because,
                       const std::string& source, Refusal* refusal) {
  const auto& axes = pattern.axes;
  const auto is_ellipsis = [](const AxisPattern& axis) { return axis.kind == AxisPattern::Kind::kEllipsis; };
  const size_t ellipsis = std::find_if(axes.begin(), axes.end(), is_ellipsis) - axes.begin();
  const bool has_ellipsis = ellipsis < axes.size();
  if (!input.has_rank) {
    return Refuse(refusal, kUndecided, "shape-not-known",
                  fmt::format("the rank of {} is not known, {} is needed", name, pattern.text), source);
  }
  const size_t fixed = axes.size() - (has_ellipsis ? 1 : 0);
  if (has_ellipsis ? input.shape.size() < fixed : input.shape.size() != fixed) {
    return Refuse(refusal, kRank, "shape-refused",
                  WithReason(fmt::format("{} has shape {}, {} is needed", name, ShapeText(input), pattern.text), because),
                  source);
  }
  const size_t covered = input.shape.size() - fixed;
  for (size_t i = 0; i < axes.size(); ++i) {
    if (has_ellipsis && i == ellipsis) {
      const std::vector<Dim> dims(input.shape.begin() + i, input.shape.begin() + i + covered);
      if (!MatchEllipsis(name, axes[i], dims, source, refusal)) return false;
      continue;
    }
    const size_t axis = has_ellipsis && i > ellipsis ? i - 1 + covered : i;
    if (!MatchAxis(name, axes[i], axis, input, because, source, refusal)) return false;
    ++matched_axes_;
  }
  return true;
}

bool Judge::MatchEllipsis(const std::string& name, const AxisPattern& axis, const std::vector<Dim>& dims,
                          const std::string& source, Refusal* refusal) {
  if (axis.ellipsis.empty()) return true;
  const std::vector<Dim>* const first = ellipses_.Find(axis.ellipsis);
  if (first == nullptr) {
    ellipses_[axis.ellipsis] = dims;
    return true;
  }
  if (first->size() != dims.size()) {
    return Refuse(
        refusal, kRank, "shape-refused",
        fmt::format("{} has {} leading dims where the first operand has {}: no broadcast", name, dims.size(), first->size()),
        source);
  }
  for (size_t i = 0; i < dims.size(); ++i) {
    if (dims_.Equal(dims[i], (*first)[i])) continue;
    const std::string a = dims_.ToString(dims[i]);
    const std::string b = dims_.ToString((*first)[i]);
    if (dims_.NotEqual(dims[i], (*first)[i])) {
      return Refuse(refusal, kAxis, "shape-refused",
                    fmt::format("dim {} of {} is {} where the first operand has {}: no broadcast", i, name, a, b), source);
    }
    return Refuse(refusal, kUndecided, "undecided-dim",
                  fmt::format("that dim {} of {} (`{}`) equals `{}` cannot be decided; {}", i, name, a, b,
                              HowToEqual(dims_, {dims[i], (*first)[i]})),
                  source, true);
  }
  return true;
}

std::optional<Dim> Judge::Named(const std::string& name) const {
  if (const Dim* letter = letters_.Find(name)) return *letter;
  if (const auto value = IntOf(name)) return Dim::Of(*value);
  return std::nullopt;
}

std::optional<Dim> Judge::DimOf(const AxisPattern::Atom& atom) const {
  return atom.number < 0 ? Named(atom.name) : Dim::Of(atom.number);
}

bool Judge::MatchAxis(const std::string& name, const AxisPattern& pattern, size_t axis, const CallInput& input,
                      const std::string& because, const std::string& source, Refusal* refusal) {
  if (pattern.kind == AxisPattern::Kind::kAny) return true;
  const Dim dim = input.shape[axis];
  for (const AxisPattern::Atom& atom : pattern.atoms) {
    const std::optional<Dim> other = DimOf(atom);
    if (!other.has_value()) {
      letters_[atom.name] = dim;
      return true;
    }
    if (dims_.Equal(dim, *other)) return true;
    if (!pattern.or_more) continue;
    if (dims_.AtLeast(dim, *other)) return true;
    if (!dims_.AtLeast(*other, dim) || !dims_.NotEqual(dim, *other)) {
      Assume(fmt::format("`{}` is at least {} (axis {} of {}, {})", dims_.ToString(dim), dims_.ToString(*other), axis, name,
                         call_.op));
      return true;
    }
  }
  return RefuseAxis(name, pattern, axis, dim, because, source, refusal);
}

namespace {

// "`M` is 1 or `B`": the first of `dims` is one of the others; and "`B` is 2" where the first is 2: of a number nothing is
// assumed.
std::string IsOneOfOthers(const DimTable& table, const std::vector<Dim>& dims) {
  std::vector<std::string> words;
  for (const Dim dim : dims) {
    const std::string text = table.ToString(dim);
    words.push_back(table.Resolve(dim).is_number() ? text : fmt::format("`{}`", text));
  }
  if (words.size() == 2 && table.Resolve(dims[0]).is_number()) std::swap(words[0], words[1]);
  return fmt::format("{} is {}", words[0], JoinOr({words.begin() + 1, words.end()}));
}

}  // namespace

bool Judge::RefuseAxis(const std::string& name, const AxisPattern& pattern, size_t axis, Dim dim, const std::string& because,
                       const std::string& source, Refusal* refusal) {
  std::vector<Dim> compared = {dim};
  std::vector<std::string> wanted;
  for (const AxisPattern::Atom& atom : pattern.atoms) {
    const Dim other = *DimOf(atom);  // MatchAxis took an atom without a dim
    std::string word =
        atom.number < 0 ? fmt::format("{} ({})", dims_.ToString(other), atom.name) : fmt::format("{}", atom.number);
    if (pattern.or_more) {
      word = fmt::format("at least {}", word);
    } else if (!dims_.NotEqual(dim, other)) {
      compared.push_back(other);
    }
    wanted.push_back(std::move(word));
  }
  if (compared.size() > 1 && pattern.checked && dim.known()) {
    Assume(fmt::format("{} (axis {} of {}, {})", IsOneOfOthers(dims_, compared), axis, name, call_.op));
    return true;
  }
  if (compared.size() > 1) {
    return Refuse(refusal, kUndecided, "undecided-dim",
                  fmt::format("that axis {} of {} (`{}`) is {} cannot be decided; {}", axis, name, dims_.ToString(dim),
                              JoinOr(wanted), HowToEqual(dims_, compared)),
                  source, true);
  }
  return Refuse(
      refusal, kAxis, "shape-refused",
      WithReason(fmt::format("axis {} of {} is {}, {} is needed", axis, name, dims_.ToString(dim), JoinOr(wanted)), because),
      source);
}

}  // namespace ascend_fuse::contract
