// Loads target files and answers whether a planned node is legal. The notation of the data is explained in
// proto/contract.proto; this file knows how to decide a row, and nothing about any chip.
#include "patterns/target/target.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <deque>
#include <fstream>
#include <limits>
#include <map>
#include <set>
#include <sstream>
#include <utility>

#include "absl/status/status.h"
#include "embedded/pattern_data.h"
#include "fmt/format.h"
#include "fmt/ranges.h"
#include "google/protobuf/io/tokenizer.h"
#include "google/protobuf/text_format.h"
#include "ir/data_type.h"
#include "patterns/target/signature.h"
#include "proto/contract.pb.h"

namespace ascend_fuse {
namespace {

constexpr std::string_view kFolder = "patterns/targets/";
constexpr std::string_view kSuffix = ".txtpb";
constexpr std::string_view kCannPrefix = "cann-";
// The base of every chip, and what stands before it when our op plugin is installed.
constexpr std::string_view kStock = "_stock";
constexpr std::string_view kPlugin = "_plugin";

// --- loading
// -------------------------------------------------------------------------------------------------

const embedded::File* FindEmbedded(std::string_view name) {
  const std::string path = fmt::format("{}{}{}", kFolder, name, kSuffix);
  for (size_t i = 0; i < embedded::pattern_data_count; ++i) {
    if (embedded::pattern_data[i].path == path) return &embedded::pattern_data[i];
  }
  return nullptr;
}

// Names of the embedded target files: of chips, or of CANN versions. Files that start with _ are bases only.
std::vector<std::string> EmbeddedNames(bool cann) {
  std::vector<std::string> names;
  for (size_t i = 0; i < embedded::pattern_data_count; ++i) {
    std::string_view path = embedded::pattern_data[i].path;
    if (path.substr(0, kFolder.size()) != kFolder) continue;
    path.remove_prefix(kFolder.size());
    if (path.size() <= kSuffix.size() || path.substr(path.size() - kSuffix.size()) != kSuffix) continue;
    path.remove_suffix(kSuffix.size());
    if (path[0] == '_') continue;
    const bool is_cann = path.substr(0, kCannPrefix.size()) == kCannPrefix;
    if (is_cann != cann) continue;
    if (is_cann) path.remove_prefix(kCannPrefix.size());
    names.emplace_back(path);
  }
  std::sort(names.begin(), names.end());
  return names;
}

bool IsPath(std::string_view name) {
  return name.find('/') != std::string_view::npos ||
         (name.size() > kSuffix.size() && name.substr(name.size() - kSuffix.size()) == kSuffix);
}

absl::StatusOr<std::string> ReadTextFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return absl::NotFoundError(fmt::format("target file {} cannot be opened", path));
  std::stringstream text;
  text << file.rdbuf();
  if (file.bad()) return absl::DataLossError(fmt::format("target file {} cannot be read", path));
  return text.str();
}

class FirstError : public google::protobuf::io::ErrorCollector {
 public:
  void AddError(int line, google::protobuf::io::ColumnNumber column, const std::string& message) override {
    if (text_.empty()) text_ = fmt::format("line {}, column {}: {}", line + 1, column + 1, message);
  }
  void AddWarning(int, google::protobuf::io::ColumnNumber, const std::string&) override {}
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

template <typename Message>
absl::Status ParseText(std::string_view path, std::string_view text, Message* message) {
  FirstError error;
  google::protobuf::TextFormat::Parser parser;
  parser.RecordErrorsTo(&error);
  if (!parser.ParseFromString(std::string(text), message)) {
    return absl::InvalidArgumentError(fmt::format("{}: {}", path, error.text()));
  }
  return absl::OkStatus();
}

// --- the compiled form of a contract
// -------------------------------------------------------------------------

struct CompiledWhen {
  const proto::When* data;
  LimitExpression multiple;
  LimitExpression not_multiple;
};

struct CompiledLimit {
  const proto::Limit* data;
  LimitExpression of, at_most, at_least, multiple_of, equals;
  std::vector<CompiledWhen> when;
};

struct CompiledRow {
  SignaturePattern signature;
  std::string text;
  std::vector<CompiledWhen> when;
  std::vector<CompiledLimit> limits;
};

struct CompiledAttribute {
  const proto::AttributeRule* data;
  std::vector<CompiledWhen> when;
};

struct CompiledInput {
  const proto::InputRule* data;
  std::vector<ShapePattern> shapes;
  std::vector<CompiledWhen> when;
};

struct CompiledNode {
  const proto::NodeContract* data;
  std::vector<CompiledRow> rows;
  std::vector<CompiledAttribute> attributes;
  std::vector<CompiledInput> inputs;
  std::vector<CompiledLimit> limits;
};

// Checks that what a rule names exists, so that a slip of the pen in a target file is found when it is
// loaded.
class Compiler {
 public:
  Compiler(const std::string& path, const proto::NodeContract& node) : path_(path), node_(node) {}

  absl::StatusOr<CompiledNode> Run() {
    compiled_.data = &node_;
    if (node_.op().empty()) return Error("a node without op");
    for (const auto& rule : node_.attribute()) attributes_.insert(rule.name());
    for (const std::string& text : node_.accepts()) {
      if (auto status = AddRows(text, nullptr); !status.ok()) return status;
    }
    for (const proto::Row& row : node_.row()) {
      if (auto status = AddRows(row.accepts(), &row); !status.ok()) return status;
    }
    if (compiled_.rows.empty() && !node_.has_refused())
      return Error("no `accepts`, no `row` and no `refused`");
    for (const auto& rule : node_.attribute()) {
      CompiledAttribute attribute{&rule, {}};
      if (auto status = Conditions(rule.when(), &attribute.when); !status.ok()) return status;
      compiled_.attributes.push_back(std::move(attribute));
    }
    for (const auto& rule : node_.input()) {
      if (operands_.count(rule.name()) == 0)
        return Error(fmt::format("no row has an input `{}`", rule.name()));
      CompiledInput input{&rule, {}, {}};
      for (const std::string& text : rule.shape()) {
        auto shape = ParseShapePattern(text);
        if (!shape.ok()) return Error(std::string(shape.status().message()));
        input.shapes.push_back(*std::move(shape));
      }
      if (auto status = Conditions(rule.when(), &input.when); !status.ok()) return status;
      compiled_.inputs.push_back(std::move(input));
    }
    for (const auto& limit : node_.limit()) {
      if (auto status = AddLimit(limit, &compiled_.limits); !status.ok()) return status;
    }
    return std::move(compiled_);
  }

 private:
  absl::Status Error(std::string_view what) const {
    return absl::InvalidArgumentError(fmt::format("{}: node {}: {}", path_, node_.op(), what));
  }

  absl::Status AddRows(const std::string& text, const proto::Row* row) {
    auto signature = ParseSignature(text);
    if (!signature.ok()) return Error(std::string(signature.status().message()));
    for (const auto& operand : signature->inputs) {
      operands_.insert(operand.name);
      for (const auto& axis : operand.shape.axes) {
        for (const auto& atom : axis.atoms) {
          if (atom.number < 0) letters_.insert(atom.name);
        }
      }
    }
    CompiledRow compiled;
    compiled.text = text;
    if (row != nullptr) {
      if (auto status = Conditions(row->when(), &compiled.when); !status.ok()) return status;
      for (const auto& limit : row->limit()) {
        if (auto status = AddLimit(limit, &compiled.limits); !status.ok()) return status;
      }
    }
    // One row for each type that the type variable stands for.
    std::string variable;
    for (const auto& operand : signature->inputs) {
      if (operand.type_variable.empty() || operand.type_variable == variable) continue;
      if (!variable.empty()) return Error(fmt::format("`{}`: only one type variable is allowed", text));
      variable = operand.type_variable;
    }
    if (variable.empty()) {
      compiled.signature = *std::move(signature);
      compiled_.rows.push_back(std::move(compiled));
      return absl::OkStatus();
    }
    for (const auto& types : node_.types()) {
      if (types.name() != variable) continue;
      for (const std::string& name : types.is()) {
        const DataType type = DataTypeFromName(name);
        if (type == DataType::kUndefined) return Error(fmt::format("`{}` is not a type", name));
        CompiledRow copy = compiled;
        copy.signature = *signature;
        for (auto* operands : {&copy.signature.inputs, &copy.signature.outputs}) {
          for (auto& operand : *operands) {
            if (operand.type_variable == variable) operand.types = {type};
          }
        }
        compiled_.rows.push_back(std::move(copy));
      }
      return absl::OkStatus();
    }
    return Error(fmt::format("`{}`: no `types` says what {} is", text, variable));
  }

  absl::Status Expression(const std::string& text, LimitExpression* expression) {
    auto parsed = ParseLimitExpression(text);
    if (!parsed.ok()) return Error(std::string(parsed.status().message()));
    for (const auto& factor : parsed->factors) {
      if (factor.number >= 0) continue;
      const bool known = factor.bytes ? operands_.count(factor.name) > 0
                                      : letters_.count(factor.name) > 0 || attributes_.count(factor.name) > 0;
      if (!known) return Error(fmt::format("`{}`: nothing is called {}", text, factor.name));
    }
    *expression = *std::move(parsed);
    return absl::OkStatus();
  }

  template <typename List>
  absl::Status Conditions(const List& list, std::vector<CompiledWhen>* result) {
    for (const proto::When& when : list) {
      CompiledWhen compiled{&when, {}, {}};
      for (const std::string& name : {when.present(), when.absent(), when.type_of()}) {
        if (!name.empty() && operands_.count(name) == 0) {
          return Error(fmt::format("`when`: no row has an input `{}`", name));
        }
      }
      if (!when.attribute().empty() && attributes_.count(when.attribute()) == 0) {
        return Error(fmt::format("`when`: there is no rule for an attribute `{}`", when.attribute()));
      }
      if ((!when.multiple().empty() || !when.not_multiple().empty()) && when.by() <= 0) {
        return Error("`when`: `multiple` needs `by`, a positive number");
      }
      if (!when.multiple().empty()) {
        if (auto status = Expression(when.multiple(), &compiled.multiple); !status.ok()) return status;
      }
      if (!when.not_multiple().empty()) {
        if (auto status = Expression(when.not_multiple(), &compiled.not_multiple); !status.ok())
          return status;
      }
      result->push_back(std::move(compiled));
    }
    return absl::OkStatus();
  }

  absl::Status AddLimit(const proto::Limit& limit, std::vector<CompiledLimit>* limits) {
    CompiledLimit compiled;
    compiled.data = &limit;
    const std::pair<const std::string*, LimitExpression*> parts[] = {
        {&limit.of(), &compiled.of},
        {&limit.at_most(), &compiled.at_most},
        {&limit.at_least(), &compiled.at_least},
        {&limit.multiple_of(), &compiled.multiple_of},
        {&limit.equals(), &compiled.equals}};
    for (const auto& [text, expression] : parts) {
      if (text->empty()) continue;
      if (auto status = Expression(*text, expression); !status.ok()) return status;
    }
    if (compiled.of.factors.empty()) return Error("a limit without `of`");
    if (auto status = Conditions(limit.when(), &compiled.when); !status.ok()) return status;
    limits->push_back(std::move(compiled));
    return absl::OkStatus();
  }

  const std::string& path_;
  const proto::NodeContract& node_;
  CompiledNode compiled_;
  std::set<std::string> operands_, letters_, attributes_;
};

// --- deciding
// ------------------------------------------------------------------------------------------------

enum class Truth { kNo, kUnknown, kYes };

// A value of an expression: a fraction of numbers times dims that are not numbers.
struct Quantity {
  bool defined = false;  // every name has a value (which may be an unknown dim)
  int64_t numerator = 1;
  int64_t denominator = 1;
  std::vector<Dim> dims;
  std::vector<Dim> divisors;

  bool is_number() const { return defined && dims.empty() && divisors.empty(); }
};

using Bound = std::optional<int64_t>;

int64_t SaturatingMul(int64_t a, int64_t b) {
  int64_t result = 0;
  if (!__builtin_mul_overflow(a, b, &result)) return result;
  return (a < 0) != (b < 0) ? std::numeric_limits<int64_t>::min() : std::numeric_limits<int64_t>::max();
}

std::string NumberText(double value) {
  if (value == std::floor(value) && std::fabs(value) < 1e15)
    return fmt::format("{}", static_cast<int64_t>(value));
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

// "0" equals INT 0 and FLOAT 0, "1e-6" the float32 nearest to it, "BSH" the STRING.
bool SameValue(const std::string& text, const Attribute& attribute) {
  const std::optional<double> number = ParseNumber(text);
  if (attribute.type == AttributeType::kInt) return number && *number == static_cast<double>(attribute.i);
  if (attribute.type == AttributeType::kFloat) return number && static_cast<float>(*number) == attribute.f;
  return attribute.type == AttributeType::kString && attribute.s == text;
}

std::string JoinOr(const std::vector<std::string>& words) {
  std::string text;
  for (size_t i = 0; i < words.size(); ++i) {
    if (i > 0) text += i + 1 == words.size() ? " or " : ", ";
    text += words[i];
  }
  return text;
}

template <typename List>
std::vector<std::string> Strings(const List& list) {
  return std::vector<std::string>(list.begin(), list.end());
}

std::string WithReason(std::string sentence, const std::string& because) {
  return because.empty() ? sentence : fmt::format("{} ({})", sentence, because);
}

bool IsIdentifier(std::string_view text) {
  if (text.empty()) return false;
  for (const char c : text) {
    if (!std::isalnum(static_cast<unsigned char>(c)) && c != '_' && c != '.' && c != '\'') return false;
  }
  return !std::isdigit(static_cast<unsigned char>(text[0]));
}

// Where a row failed; the later, the nearer the call was to it, and the better its sentence. Between kAxis
// and kInput the number of axes that did fit decides.
enum Stage { kType, kRank, kAxis = 100, kUndecided = 100, kInput = 10000, kLimit };

struct Refusal {
  int stage = -1;
  bool undecided = false;
  std::string because;
  std::string source;
};

// One call judged by one row under one view of the types.
class Judge {
 public:
  // `growing` is `dims` when it may be added to, or nullptr.
  Judge(const Call& call, const CompiledNode& node, const DimTable& dims, DimTable* growing,
        const std::string& cann)
      : call_(call), node_(node), dims_(dims), growing_(growing), cann_(cann) {}

  // The rules that do not depend on a row. False: refused.
  bool CheckAttributesAndPresence(Refusal* refusal) {
    input_count_ = call_.inputs.size();
    while (input_count_ > 0 && !call_.inputs[input_count_ - 1].present) --input_count_;
    for (const CompiledRow& row : node_.rows) {
      for (size_t i = 0; i < row.signature.inputs.size(); ++i) positions_[row.signature.inputs[i].name] = i;
    }
    for (const Attribute& attribute : call_.attributes) {
      if (Rule(std::string(attribute.name)) == nullptr) {
        return Refuse(refusal, kInput,
                      fmt::format("{} does not read an attribute {}", call_.op, attribute.name),
                      FirstSource());
      }
    }
    for (const CompiledAttribute& rule : node_.attributes) {
      if (Holds(rule.when) && !CheckAttribute(*rule.data, refusal)) return false;
    }
    for (const CompiledInput& rule : node_.inputs) {
      if (!Holds(rule.when)) continue;
      const bool present = InputOf(rule.data->name()) != nullptr;
      if (rule.data->absent() && present) {
        return Refuse(
            refusal, kInput,
            WithReason(fmt::format("{} must not be given", rule.data->name()), rule.data->because()),
            rule.data->source());
      }
      if (rule.data->required() && !present) {
        return Refuse(refusal, kInput,
                      WithReason(fmt::format("{} must be given", rule.data->name()), rule.data->because()),
                      rule.data->source());
      }
    }
    if (!node_.data->has_input_count()) return true;
    const proto::InputCount& count = node_.data->input_count();
    if (std::find(count.only().begin(), count.only().end(), static_cast<int>(input_count_)) ==
        count.only().end()) {
      std::vector<std::string> words;
      for (const int n : count.only()) words.push_back(fmt::format("{}", n));
      return Refuse(refusal, kInput,
                    WithReason(fmt::format("{} inputs, {} takes {}", input_count_, call_.op, JoinOr(words)),
                               count.because()),
                    count.source());
    }
    for (size_t i = 0; i < input_count_; ++i) {
      if (!call_.inputs[i].present) {
        return Refuse(refusal, kInput,
                      WithReason(fmt::format("input {} is not connected", i), count.because()),
                      count.source());
      }
    }
    return true;
  }

  bool CheckRow(const CompiledRow& row, const proto::PrecisionMode::View& view, Refusal* refusal,
                std::vector<std::string>* assumptions) {
    matched_axes_ = 0;
    letters_.clear();
    ellipses_.clear();
    assumptions_ = assumptions;
    types_.clear();
    for (const CallInput& input : call_.inputs) types_.push_back(Viewed(input.type, view));
    const auto& operands = row.signature.inputs;
    if (input_count_ > operands.size()) {
      return Refuse(refusal, kType,
                    fmt::format("{} inputs, {} takes at most {}", input_count_, call_.op, operands.size()),
                    FirstSource());
    }
    if (!Holds(row.when)) return Refuse(refusal, kType, "", "");
    for (size_t i = 0; i < operands.size(); ++i) {
      const bool present = i < input_count_ && call_.inputs[i].present;
      if (!present) {
        if (operands[i].optional) continue;
        return Refuse(refusal, kType, fmt::format("{} must be given", operands[i].name), FirstSource());
      }
      const auto& types = operands[i].types;
      if (!types.empty() && std::find(types.begin(), types.end(), types_[i]) == types.end()) {
        return Refuse(refusal, kType, "", "");  // said for all rows together
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

  // Whether some row took the types so far.
  bool types_fit() const { return types_fit_; }

  static DataType Viewed(DataType type, const proto::PrecisionMode::View& view) {
    for (const auto& change : view.change()) {
      if (DataTypeName(type) == change.type()) return DataTypeFromName(change.as());
    }
    return type;
  }

 private:
  bool Refuse(Refusal* refusal, int stage, std::string because, std::string source,
              bool undecided = false) const {
    if (stage == kAxis) stage += matched_axes_;
    if (stage > refusal->stage || (stage == refusal->stage && refusal->because.empty())) {
      *refusal = {stage, undecided, std::move(because), std::move(source)};
    }
    return false;
  }

  std::string FirstSource() const { return node_.data->source().empty() ? "" : node_.data->source(0); }

  const proto::AttributeRule* Rule(const std::string& name) const {
    for (const CompiledAttribute& rule : node_.attributes) {
      if (rule.data->name() == name) return rule.data;
    }
    return nullptr;
  }

  const Attribute* Find(const std::string& name) const {
    for (const Attribute& attribute : call_.attributes) {
      if (attribute.name == name) return &attribute;
    }
    return nullptr;
  }

  const CallInput* InputOf(const std::string& name) const {
    const auto it = positions_.find(name);
    if (it == positions_.end() || it->second >= call_.inputs.size()) return nullptr;
    return call_.inputs[it->second].present ? &call_.inputs[it->second] : nullptr;
  }

  bool CheckAttribute(const proto::AttributeRule& rule, Refusal* refusal) {
    const Attribute* attribute = Find(rule.name());
    if (attribute == nullptr) {
      if (!rule.required()) return true;
      return Refuse(refusal, kInput,
                    WithReason(fmt::format("{} must be written", rule.name()), rule.because()),
                    rule.source());
    }
    if (!rule.type().empty() && rule.type() != TypeWord(attribute->type)) {
      return Refuse(refusal, kInput,
                    fmt::format("{} is {}, the plugin reads {} only", rule.name(), TypeWord(attribute->type),
                                rule.type()),
                    rule.source());
    }
    const auto refuse = [&](const std::string& rest) {
      return Refuse(
          refusal, kInput,
          WithReason(fmt::format("{} is {}, {}", rule.name(), ValueText(*attribute), rest), rule.because()),
          rule.source());
    };
    if (!rule.only().empty()) {
      bool found = false;
      for (const std::string& value : rule.only()) found = found || SameValue(value, *attribute);
      if (!found) return refuse(fmt::format("only {}", JoinOr(Strings(rule.only()))));
    }
    const double value =
        attribute->type == AttributeType::kInt ? static_cast<double>(attribute->i) : attribute->f;
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

  // The value of an integer attribute, or its default.
  std::optional<int64_t> IntOf(const std::string& name) const {
    const proto::AttributeRule* rule = Rule(name);
    if (rule == nullptr) return std::nullopt;
    if (const Attribute* attribute = Find(name)) {
      return attribute->type == AttributeType::kInt ? std::optional<int64_t>(attribute->i) : std::nullopt;
    }
    const std::optional<double> value = ParseNumber(rule->default_());
    return value ? std::optional<int64_t>(static_cast<int64_t>(*value)) : std::nullopt;
  }

  bool Holds(const std::vector<CompiledWhen>& conditions) const {
    return std::all_of(conditions.begin(), conditions.end(),
                       [this](const CompiledWhen& when) { return Holds(when); });
  }

  bool Holds(const CompiledWhen& when) const {
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
      const auto it = positions_.find(data.type_of());
      if (it == positions_.end() || it->second >= types_.size()) return false;
      const std::string type(DataTypeName(types_[it->second]));
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
    return data.cann().empty() ||
           std::find(data.cann().begin(), data.cann().end(), cann_) != data.cann().end();
  }

  // --- shapes

  bool MatchOneOf(const CompiledInput& rule, const CallInput& input, Refusal* refusal) {
    Refusal best;
    std::vector<std::string>* const outer = assumptions_;
    const auto letters = letters_;
    const auto ellipses = ellipses_;
    for (const ShapePattern& shape : rule.shapes) {
      std::vector<std::string> assumptions;
      assumptions_ = &assumptions;
      const bool matched =
          MatchShape(rule.data->name(), shape, input, rule.data->because(), rule.data->source(), &best);
      assumptions_ = outer;
      if (matched) {
        outer->insert(outer->end(), assumptions.begin(), assumptions.end());
        return true;
      }
      letters_ = letters;
      ellipses_ = ellipses;
    }
    std::string because = best.because;
    if (rule.shapes.size() > 1 && !best.undecided) {
      std::vector<std::string> forms;
      for (const ShapePattern& shape : rule.shapes) forms.push_back(shape.text);
      because = WithReason(fmt::format("{} has shape {}, one of {} is needed", rule.data->name(),
                                       ShapeText(input), JoinOr(forms)),
                           rule.data->because());
    }
    return Refuse(refusal, kInput, std::move(because), rule.data->source());
  }

  std::string ShapeText(const CallInput& input) const {
    if (!input.has_rank) return "[unknown rank]";
    std::vector<std::string> words;
    for (const Dim dim : input.shape) words.push_back(dims_.ToString(dim));
    return fmt::format("[{}]", fmt::join(words, ", "));
  }

  bool MatchShape(const std::string& name, const ShapePattern& pattern, const CallInput& input,
                  const std::string& because, const std::string& source, Refusal* refusal) {
    const auto& axes = pattern.axes;
    const auto is_ellipsis = [](const AxisPattern& axis) {
      return axis.kind == AxisPattern::Kind::kEllipsis;
    };
    const size_t ellipsis = std::find_if(axes.begin(), axes.end(), is_ellipsis) - axes.begin();
    const bool has_ellipsis = ellipsis < axes.size();
    if (!input.has_rank) {
      return Refuse(refusal, kUndecided,
                    fmt::format("the rank of {} is not known, {} is needed", name, pattern.text), source);
    }
    const size_t fixed = axes.size() - (has_ellipsis ? 1 : 0);
    if (has_ellipsis ? input.shape.size() < fixed : input.shape.size() != fixed) {
      return Refuse(
          refusal, kRank,
          WithReason(fmt::format("{} has shape {}, {} is needed", name, ShapeText(input), pattern.text),
                     because),
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

  bool MatchEllipsis(const std::string& name, const AxisPattern& axis, const std::vector<Dim>& dims,
                     const std::string& source, Refusal* refusal) {
    if (axis.ellipsis.empty()) return true;
    const auto [it, inserted] = ellipses_.emplace(axis.ellipsis, dims);
    if (inserted) return true;
    if (it->second.size() != dims.size()) {
      return Refuse(refusal, kRank,
                    fmt::format("{} has {} leading dims where the first operand has {}: no broadcast", name,
                                dims.size(), it->second.size()),
                    source);
    }
    for (size_t i = 0; i < dims.size(); ++i) {
      if (dims_.Equal(dims[i], it->second[i])) continue;
      const std::string a = dims_.ToString(dims[i]);
      const std::string b = dims_.ToString(it->second[i]);
      if (dims_.NotEqual(dims[i], it->second[i])) {
        return Refuse(
            refusal, kAxis,
            fmt::format("dim {} of {} is {} where the first operand has {}: no broadcast", i, name, a, b),
            source);
      }
      return Refuse(refusal, kUndecided,
                    fmt::format("that dim {} of {} (`{}`) equals `{}` cannot be decided; {}", i, name, a, b,
                                HowToBind({dims[i], it->second[i]})),
                    source, true);
    }
    return true;
  }

  bool MatchAxis(const std::string& name, const AxisPattern& pattern, size_t axis, const CallInput& input,
                 const std::string& because, const std::string& source, Refusal* refusal) {
    if (pattern.kind == AxisPattern::Kind::kAny) return true;
    const Dim dim = input.shape[axis];
    bool undecided = false;
    std::vector<Dim> compared = {dim};
    std::vector<std::string> wanted;
    for (const auto& atom : pattern.atoms) {
      Dim other = Dim::Of(atom.number);
      std::string word = fmt::format("{}", atom.number);
      if (atom.number < 0) {
        const auto it = letters_.find(atom.name);
        if (it != letters_.end()) {
          other = it->second;
        } else if (const auto value = IntOf(atom.name)) {
          other = Dim::Of(*value);
        } else {
          letters_.emplace(atom.name, dim);
          return true;
        }
        word = fmt::format("{} ({})", dims_.ToString(other), atom.name);
      }
      if (dims_.Equal(dim, other)) return true;
      if (pattern.or_more) {
        if (dims_.AtLeast(dim, other)) return true;
        if (!dims_.AtLeast(other, dim) || !dims_.NotEqual(dim, other)) {
          Assume(fmt::format("`{}` is at least {} (axis {} of {}, {})", dims_.ToString(dim),
                             dims_.ToString(other), axis, name, call_.op));
          return true;
        }
        word = fmt::format("at least {}", word);
      } else if (!dims_.NotEqual(dim, other)) {
        undecided = true;
        compared.push_back(other);
      }
      wanted.push_back(std::move(word));
    }
    if (undecided) {
      return Refuse(refusal, kUndecided,
                    fmt::format("that axis {} of {} (`{}`) is {} cannot be decided; {}", axis, name,
                                dims_.ToString(dim), JoinOr(wanted), HowToBind(compared)),
                    source, true);
    }
    return Refuse(refusal, kAxis,
                  WithReason(fmt::format("axis {} of {} is {}, {} is needed", axis, name, dims_.ToString(dim),
                                         JoinOr(wanted)),
                             because),
                  source);
  }

  // --- limits

  Quantity Value(const LimitExpression& expression) const {
    Quantity quantity;
    quantity.defined = !expression.factors.empty();
    for (const auto& factor : expression.factors) {
      Dim dim = Dim::Of(factor.number);
      if (factor.bytes) {
        const auto it = positions_.find(factor.name);
        if (it == positions_.end() || it->second >= types_.size()) return {};
        dim = Dim::Of(BitWidth(types_[it->second]) / 8);
      } else if (factor.number < 0) {
        const auto it = letters_.find(factor.name);
        if (it != letters_.end()) {
          dim = it->second;
        } else if (const auto value = IntOf(factor.name)) {
          dim = Dim::Of(*value);
        } else {
          return {};
        }
      }
      if (!dim.is_number()) {
        (factor.divide ? quantity.divisors : quantity.dims).push_back(dim);
      } else if (factor.divide) {
        if (dim.number() == 0) return {};
        quantity.denominator = SaturatingMul(quantity.denominator, dim.number());
      } else {
        quantity.numerator = SaturatingMul(quantity.numerator, dim.number());
      }
    }
    return quantity;
  }

  Bound Lower(const Quantity& quantity) const {
    if (!quantity.divisors.empty()) return quantity.numerator >= 0 ? Bound(0) : Bound();
    int64_t value = quantity.numerator;
    for (const Dim dim : quantity.dims)
      value = SaturatingMul(value, std::max<int64_t>(0, dims_.LowerBound(dim).value_or(0)));
    return value / quantity.denominator + (value % quantity.denominator != 0 ? 1 : 0);
  }

  Bound Upper(const Quantity& quantity) const {
    if (!quantity.divisors.empty()) return std::nullopt;
    int64_t value = quantity.numerator;
    for (const Dim dim : quantity.dims) {
      const Bound upper = dims_.UpperBound(dim);
      if (!upper) return std::nullopt;
      value = SaturatingMul(value, *upper);
    }
    return value / quantity.denominator;
  }

  // True when the quantity is whole and `by` divides it.
  Truth IsMultiple(const Quantity& quantity, int64_t by) const {
    const int64_t unit = SaturatingMul(by, quantity.denominator);
    if (quantity.divisors.empty() && quantity.numerator % unit == 0) return Truth::kYes;
    if (quantity.is_number()) return Truth::kNo;
    if (growing_ == nullptr || !quantity.divisors.empty() || quantity.denominator != 1)
      return Truth::kUnknown;
    Dim product = Dim::Of(quantity.numerator);
    for (const Dim dim : quantity.dims) product = growing_->Mul(product, dim);
    const Dim rest = growing_->Mod(product, Dim::Of(by));
    if (rest.is(0)) return Truth::kYes;
    return growing_->NotEqual(rest, Dim::Of(0)) ? Truth::kNo : Truth::kUnknown;
  }

  Truth AreEqual(const Quantity& a, const Quantity& b) const {
    if (!a.divisors.empty() || !b.divisors.empty()) return Truth::kUnknown;
    const bool same_factor =
        SaturatingMul(a.numerator, b.denominator) == SaturatingMul(b.numerator, a.denominator);
    if (a.dims.empty() && b.dims.empty()) return same_factor ? Truth::kYes : Truth::kNo;
    if (a.dims.size() == 1 && b.dims.size() <= 1 && a.numerator == 1 && a.denominator == 1 &&
        b.denominator == 1 && (b.dims.empty() || b.numerator == 1)) {
      const Dim other = b.dims.empty() ? Dim::Of(b.numerator) : b.dims[0];
      if (dims_.Equal(a.dims[0], other)) return Truth::kYes;
      if (dims_.NotEqual(a.dims[0], other)) return Truth::kNo;
      return Truth::kUnknown;
    }
    if (!same_factor || a.dims.size() != b.dims.size()) return Truth::kUnknown;
    std::vector<Dim> rest = b.dims;
    for (const Dim dim : a.dims) {
      const auto it =
          std::find_if(rest.begin(), rest.end(), [&](Dim other) { return dims_.Equal(dim, other); });
      if (it == rest.end()) return Truth::kUnknown;
      rest.erase(it);
    }
    return Truth::kYes;
  }

  std::string Text(const Quantity& quantity) const {
    std::vector<std::string> words;
    for (const Dim dim : quantity.dims) words.push_back(dims_.ToString(dim));
    if (quantity.numerator % quantity.denominator == 0) {
      const int64_t number = quantity.numerator / quantity.denominator;
      if (number != 1 || words.empty()) words.push_back(fmt::format("{}", number));
      return fmt::format("{}", fmt::join(words, "*"));
    }
    words.push_back(fmt::format("{}/{}", quantity.numerator, quantity.denominator));
    return fmt::format("{}", fmt::join(words, "*"));
  }

  std::string HowToBind(const std::vector<Dim>& dims) const {
    std::vector<std::string> flags;
    bool unknown = false;
    for (const Dim dim : dims) {
      if (dim.is_number()) continue;
      const std::string text = dim.known() ? dims_.ToString(dim) : "";
      if (!IsIdentifier(text)) {
        unknown = true;
        continue;
      }
      const std::string flag = fmt::format("--dim {}=N", text);
      if (std::find(flags.begin(), flags.end(), flag) == flags.end()) flags.push_back(flag);
    }
    if (!flags.empty()) return fmt::format("bind it with {}", fmt::join(flags, " "));
    return unknown ? "bind the model's symbolic dims with --dim NAME=N" : "declare the shape in the model";
  }

  void Assume(std::string sentence) {
    if (std::find(assumptions_->begin(), assumptions_->end(), sentence) == assumptions_->end()) {
      assumptions_->push_back(std::move(sentence));
    }
  }

  bool CheckLimit(const CompiledLimit& limit, Refusal* refusal) {
    const Quantity of = Value(limit.of);
    if (!of.defined) return true;  // about letters of other rows
    const proto::Limit& data = *limit.data;
    const std::string& label = data.name().empty() ? data.of() : data.name();
    const auto refuse = [&](const std::string& rest) {
      return Refuse(refusal, kLimit,
                    WithReason(fmt::format("{} is {}, {}", label, Text(of), rest), data.because()),
                    data.source());
    };
    for (const bool most : {true, false}) {
      const LimitExpression& expression = most ? limit.at_most : limit.at_least;
      const Quantity bound = Value(expression);
      if (!bound.defined) continue;
      const char* word = most ? "at most" : "at least";
      // of <= bound, or bound <= of.
      const Quantity& small = most ? of : bound;
      const Quantity& large = most ? bound : of;
      const Bound small_upper = Upper(small), small_lower = Lower(small);
      const Bound large_upper = Upper(large), large_lower = Lower(large);
      if (small_upper && large_lower && *small_upper <= *large_lower) continue;
      if (small_lower && large_upper && *small_lower > *large_upper) {
        return refuse(fmt::format("{} {}", word, Text(bound)));
      }
      if (data.proven()) {
        std::vector<Dim> dims = bound.dims;
        dims.insert(dims.end(), bound.divisors.begin(), bound.divisors.end());
        return RefuseUndecided(fmt::format("is {} {}", word, Text(bound)), label, of, std::move(dims), data, refusal);
      }
      Assume(BoundText(of, bound, word, label));
    }
    if (const Quantity divisor = Value(limit.multiple_of); divisor.defined) {
      const Truth truth = !divisor.is_number() || divisor.denominator != 1 ? Truth::kUnknown
                          : divisor.numerator == 0                         ? Truth::kYes
                                                   : IsMultiple(of, divisor.numerator);
      if (truth == Truth::kNo) return refuse(fmt::format("a multiple of {} is needed", Text(divisor)));
      if (truth == Truth::kUnknown) {
        return RefuseUndecided(fmt::format("is a multiple of {}", Text(divisor)), label, of, {}, data,
                               refusal);
      }
    }
    if (const Quantity other = Value(limit.equals); other.defined) {
      const Truth truth = AreEqual(of, other);
      if (truth == Truth::kNo) return refuse(fmt::format("{} is needed", Text(other)));
      if (truth == Truth::kUnknown) {
        return RefuseUndecided(fmt::format("equals {}", Text(other)), label, of, other.dims, data, refusal);
      }
    }
    return true;
  }

  // With one symbol the bound is said of the symbol itself: "`batch` is at most 31".
  std::string BoundText(const Quantity& of, const Quantity& bound, const char* word,
                        const std::string& label) const {
    const bool most = std::string_view(word) == "at most";
    if (bound.is_number() && of.dims.size() == 1 && of.divisors.empty() && of.numerator > 0) {
      const int64_t scaled = SaturatingMul(bound.numerator / bound.denominator, of.denominator);
      const int64_t value = most ? scaled / of.numerator : (scaled + of.numerator - 1) / of.numerator;
      return fmt::format("`{}` is {} {} ({}, {})", dims_.ToString(of.dims[0]), word, value, label, call_.op);
    }
    return fmt::format("`{}` is {} {} ({}, {})", Text(of), word, Text(bound), label, call_.op);
  }

  bool RefuseUndecided(const std::string& claim, const std::string& label, const Quantity& of,
                       std::vector<Dim> dims, const proto::Limit& data, Refusal* refusal) {
    dims.insert(dims.end(), of.dims.begin(), of.dims.end());
    dims.insert(dims.end(), of.divisors.begin(), of.divisors.end());
    std::string what = "an unknown dim";
    if (std::all_of(dims.begin(), dims.end(), [](Dim dim) { return dim.known(); })) {
      what = fmt::format("the symbolic dim `{}`", of.is_number() && !dims.empty() ? dims_.ToString(dims[0]) : Text(of));
    }
    return Refuse(refusal, kLimit,
                  WithReason(fmt::format("that {} {} cannot be decided for {}; {}", label, claim, what,
                                         HowToBind(dims)),
                             data.because()),
                  data.source());
  }

  const Call& call_;
  const CompiledNode& node_;
  const DimTable& dims_;
  DimTable* growing_;
  const std::string& cann_;
  size_t input_count_ = 0;
  std::map<std::string, size_t> positions_;
  int matched_axes_ = 0;
  std::vector<DataType> types_;
  bool types_fit_ = false;
  std::map<std::string, Dim> letters_;
  std::map<std::string, std::vector<Dim>> ellipses_;
  std::vector<std::string>* assumptions_ = nullptr;
};

}  // namespace

struct Target::Impl {
  TargetOptions options;
  std::vector<proto::TargetFile> files;  // the chip's own file first, then its bases
  proto::CannFile cann;
  std::string chip;
  std::vector<std::string> warnings;
  std::deque<proto::NodeContract> copies;  // of rows that are written as `like` another
  std::map<std::string, CompiledNode, std::less<>> nodes;
  std::vector<std::string> node_order;
  std::map<std::string, const proto::ByGeRow*, std::less<>> by_ge;
  std::map<std::string, const proto::LeftRow*, std::less<>> left;
  std::map<std::string, const proto::StandardOp*, std::less<>> standard;
  const proto::PrecisionMode* mode = nullptr;

  absl::Status LoadChip(const std::string& name);
  absl::Status LoadCann(const std::string& name);
  absl::StatusOr<const proto::NodeContract*> Like(const std::string& path, const proto::NodeContract& node);
  absl::Status Compile();
  std::string TypeRefusal(const Call& call, const CompiledNode& node) const;
  Answer Check(const Call& call, const DimTable& dims, DimTable* growing) const;
};

namespace {

// Accepts ATC's --soc_version too: Ascend910B4 is ascend910b, Ascend310P3 is ascend310p.
std::string ResolveChip(const std::string& name, const std::vector<std::string>& chips) {
  std::string lower = name;
  for (char& c : lower) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  std::string best;
  for (const std::string& chip : chips) {
    if (lower.compare(0, chip.size(), chip) != 0 || chip.size() <= best.size()) continue;
    const bool rest_is_a_bin = std::all_of(lower.begin() + chip.size(), lower.end(), [](char c) {
      return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '-';
    });
    if (rest_is_a_bin) best = chip;
  }
  return best;
}

}  // namespace

absl::Status Target::Impl::LoadChip(const std::string& name) {
  std::string path, text;
  if (IsPath(name)) {
    path = name;
    auto read = ReadTextFile(name);
    if (!read.ok()) return read.status();
    text = *std::move(read);
  } else {
    const std::vector<std::string> chips = EmbeddedNames(false);
    const std::string resolved = ResolveChip(name, chips);
    if (resolved.empty()) {
      return absl::NotFoundError(
          fmt::format("no target is called {}; there are {}, or give the path of a .txtpb", name,
                      fmt::join(chips, ", ")));
    }
    const embedded::File* file = FindEmbedded(resolved);
    path = std::string(file->path);
    text = std::string(file->text);
  }
  std::set<std::string> seen;
  while (true) {
    proto::TargetFile file;
    if (auto status = ParseText(path, text, &file); !status.ok()) return status;
    if (files.empty()) {
      if (file.chip().empty()) return absl::InvalidArgumentError(fmt::format("{}: `chip` is missing", path));
      chip = file.chip();
    }
    files.push_back(std::move(file));
    std::string base = files.back().base();
    if (base.empty()) break;
    if (options.plugin && base == kStock && seen.insert(std::string(kPlugin)).second) base = kPlugin;
    const embedded::File* next = FindEmbedded(base);
    if (next == nullptr || (base != kPlugin && !seen.insert(base).second)) {
      return absl::InvalidArgumentError(
          fmt::format("{}: base `{}` is not one of the built-in target files ({}, _stock)", path, base,
                      fmt::join(EmbeddedNames(false), ", ")));
    }
    path = std::string(next->path);
    text = std::string(next->text);
  }
  return absl::OkStatus();
}

absl::Status Target::Impl::LoadCann(const std::string& name) {
  std::string path, text;
  if (IsPath(name)) {
    path = name;
    auto read = ReadTextFile(name);
    if (!read.ok()) return read.status();
    text = *std::move(read);
  } else {
    const embedded::File* file = FindEmbedded(fmt::format("{}{}", kCannPrefix, name));
    if (file == nullptr) {
      return absl::NotFoundError(
          fmt::format("no CANN version is called {}; there are {}, or give the path of a .txtpb", name,
                      fmt::join(EmbeddedNames(true), ", ")));
    }
    path = std::string(file->path);
    text = std::string(file->text);
  }
  if (auto status = ParseText(path, text, &cann); !status.ok()) return status;
  std::vector<std::string> modes;
  for (const proto::PrecisionMode& candidate : cann.precision_mode()) {
    for (const std::string& word : candidate.name()) {
      modes.push_back(word);
      if (word == options.precision_mode) mode = &candidate;
    }
  }
  if (mode == nullptr) {
    return absl::InvalidArgumentError(fmt::format("no precision mode is called {}; ATC's words are {}",
                                                  options.precision_mode, fmt::join(modes, ", ")));
  }
  return absl::OkStatus();
}

// The row `like` another one, in full; nullptr where the chip has no such node or refuses it.
absl::StatusOr<const proto::NodeContract*> Target::Impl::Like(const std::string& path,
                                                              const proto::NodeContract& node) {
  if (!node.accepts().empty() || !node.row().empty() || node.has_refused()) {
    return absl::InvalidArgumentError(
        fmt::format("{}: node {}: `like` beside `accepts`, `row` or `refused`", path, node.op()));
  }
  // The row that holds for the other node: the first one, as in Compile.
  const proto::NodeContract* model = nullptr;
  for (const proto::TargetFile& file : files) {
    for (const bool plugin : {true, false}) {
      for (const proto::NodeContract& other : file.node()) {
        if (other.op() != node.like() || other.plugin() != plugin || (plugin && !options.plugin)) continue;
        if (model == nullptr) model = &other;
      }
    }
    const auto& without = file.without();
    if (model == nullptr && std::find(without.begin(), without.end(), node.like()) != without.end()) return nullptr;
    if (model != nullptr) break;
  }
  if (model == nullptr || !model->like().empty()) {
    return absl::InvalidArgumentError(fmt::format("{}: node {}: `like`: there is no node {} with rows of its own",
                                                  path, node.op(), node.like()));
  }
  if (model->has_refused()) return nullptr;
  proto::NodeContract row = *model;
  for (const proto::AttributeRule& attribute : node.attribute()) {
    for (int i = row.attribute_size(); i-- > 0;) {
      if (row.attribute(i).name() == attribute.name()) row.mutable_attribute()->DeleteSubrange(i, 1);
    }
  }
  proto::NodeContract own = node;
  own.mutable_source()->MergeFrom(row.source());
  row.clear_source();
  row.MergeFrom(own);
  copies.push_back(std::move(row));
  return &copies.back();
}

absl::Status Target::Impl::Compile() {
  std::set<std::string> without;
  for (size_t i = 0; i < files.size(); ++i) {
    const proto::TargetFile& file = files[i];
    const std::string path = fmt::format("target {}", file.chip().empty() ? kStock : file.chip());
    for (const bool plugin : {true, false}) {
      if (plugin && !options.plugin) continue;
      for (const proto::NodeContract& node : file.node()) {
        if (node.plugin() != plugin || nodes.count(node.op()) > 0 || without.count(node.op()) > 0) continue;
        const proto::NodeContract* row = &node;
        if (!node.like().empty()) {
          auto copy = Like(path, node);
          if (!copy.ok()) return copy.status();
          if (*copy == nullptr) continue;
          row = *copy;
        }
        auto compiled = Compiler(path, *row).Run();
        if (!compiled.ok()) return compiled.status();
        nodes.emplace(row->op(), *std::move(compiled));
        node_order.push_back(row->op());
      }
    }
    for (const proto::LeftRow& row : file.left()) {
      for (const std::string& construct : row.construct()) {
        if (without.count(construct) == 0) left.emplace(construct, &row);
      }
    }
    for (const proto::StandardOp& row : file.standard()) standard.emplace(row.op(), &row);
    for (const proto::ByGeRow& row : file.by_ge()) {
      if (without.count(row.construct()) == 0) by_ge.emplace(row.construct(), &row);
    }
    without.insert(file.without().begin(), file.without().end());
    for (const std::string& version : file.not_in_cann()) {
      if (i == 0 && version == cann.version()) {
        warnings.push_back(fmt::format("{}; name a newer one with --cann ({})", file.not_in_cann_because(),
                                       fmt::join(EmbeddedNames(true), ", ")));
      }
    }
  }
  return absl::OkStatus();
}

namespace {

// Whether float32 stands beside a half-precision type in one call: in a graph of ONNX an explicit Cast set them apart,
// and what a Cast made float32 no precision mode lowers.
bool MixesFloats(const Call& call) {
  bool wide = false;
  bool half = false;
  for (const CallInput& input : call.inputs) {
    if (!input.present) continue;
    wide = wide || input.type == DataType::kFloat;
    half = half || input.type == DataType::kFloat16 || input.type == DataType::kBfloat16;
  }
  return wide && half;
}

bool LowersFloat(const proto::PrecisionMode::View& view) {
  return std::any_of(view.change().begin(), view.change().end(),
                     [](const auto& change) { return change.type() == DataTypeName(DataType::kFloat); });
}

}  // namespace

// Why no row takes the types, in one sentence: about the first operand that fits none, or the combination.
std::string Target::Impl::TypeRefusal(const Call& call, const CompiledNode& node) const {
  const proto::PrecisionMode::View& view = mode->view(0);
  size_t operands = 0;
  for (const CompiledRow& row : node.rows) operands = std::max(operands, row.signature.inputs.size());
  for (size_t i = 0; i < operands && i < call.inputs.size(); ++i) {
    if (!call.inputs[i].present) continue;
    std::vector<std::string> wanted;
    std::string name;
    bool fits = false;
    for (const CompiledRow& row : node.rows) {
      if (i >= row.signature.inputs.size()) continue;
      const OperandPattern& operand = row.signature.inputs[i];
      name = operand.name;
      fits = fits || operand.types.empty();
      for (const DataType type : operand.types) {
        const std::string word(DataTypeName(type));
        if (std::find(wanted.begin(), wanted.end(), word) == wanted.end()) wanted.push_back(word);
        for (const auto& other : mode->view())
          fits = fits || Judge::Viewed(call.inputs[i].type, other) == type;
      }
    }
    if (fits) continue;
    std::string keeps;
    if (Judge::Viewed(call.inputs[i].type, view) == call.inputs[i].type && IsFloat(call.inputs[i].type)) {
      keeps = fmt::format(", and precision mode {} does not change it", options.precision_mode);
    }
    return fmt::format("{} is {}, {} takes {} on {}{}", name, DataTypeName(call.inputs[i].type), call.op,
                       JoinOr(wanted), chip, keeps);
  }
  std::vector<std::string> types;
  for (const CallInput& input : call.inputs) {
    if (input.present) types.emplace_back(DataTypeName(input.type));
  }
  return fmt::format("({}) is no combination of types that {} takes on {}{}", fmt::join(types, ", "), call.op, chip,
                     MixesFloats(call) ? ", and no precision mode lowers what a Cast made float" : "");
}

Target::Target(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Target::~Target() = default;
Target::Target(Target&&) noexcept = default;
Target& Target::operator=(Target&&) noexcept = default;

absl::StatusOr<Target> Target::Load(const TargetOptions& options) {
  auto impl = std::make_unique<Impl>();
  impl->options = options;
  if (!options.style.empty() && options.style != "D" && options.style != "N" && options.style != "X") {
    return absl::InvalidArgumentError(fmt::format(
        "no emission style is called {}; there are D (default-domain alias), N (npu domain) and X "
        "(explicit ai.onnx domain)",
        options.style));
  }
  if (auto status = impl->LoadCann(options.cann); !status.ok()) return status;
  if (auto status = impl->LoadChip(options.chip); !status.ok()) return status;
  if (auto status = impl->Compile(); !status.ok()) return status;
  return Target(std::move(impl));
}

const std::string& Target::chip() const { return impl_->chip; }
const std::string& Target::cann() const { return impl_->cann.version(); }
const TargetOptions& Target::options() const { return impl_->options; }
const std::vector<std::string>& Target::warnings() const { return impl_->warnings; }
bool Target::KeepsRange() const { return impl_->mode->keeps_range(); }

int64_t Target::MaxOpset() const { return impl_->cann.max_opset(); }

std::vector<std::string> Target::Nodes() const {
  std::vector<std::string> names;
  for (const std::string& op : impl_->node_order) {
    if (!impl_->nodes.at(op).data->has_refused()) names.push_back(op);
  }
  return names;
}

bool Target::HasNode(std::string_view op) const {
  const auto it = impl_->nodes.find(op);
  return it != impl_->nodes.end() && !it->second.data->has_refused();
}

Answer Target::Impl::Check(const Call& call, const DimTable& dims, DimTable* growing) const {
  Answer answer;
  const auto it = nodes.find(call.op);
  if (it == nodes.end()) {
    answer.because = fmt::format("{} is not in the contract of {}", call.op, chip);
    answer.source = fmt::format("patterns/targets/{}.txtpb", chip);
    return answer;
  }
  const CompiledNode& node = it->second;
  if (node.data->has_refused()) {
    answer.because = node.data->refused().because();
    answer.source = node.data->refused().source();
    return answer;
  }
  Judge judge(call, node, dims, growing, cann.version());
  Refusal refusal;
  if (judge.CheckAttributesAndPresence(&refusal)) {
    // Views in ATC's order of preference; of the rows that fit, the one that assumes least.
    const bool mixed = MixesFloats(call);
    for (const auto& view : mode->view()) {
      if (mixed && LowersFloat(view)) continue;
      for (const CompiledRow& row : node.rows) {
        std::vector<std::string> assumptions;
        if (!judge.CheckRow(row, view, &refusal, &assumptions)) continue;
        if (!answer.legal || assumptions.size() < answer.assumptions.size()) answer.assumptions = assumptions;
        answer.legal = true;
      }
      if (answer.legal) return answer;
      if (mode->first_view_decides() && judge.types_fit()) break;
    }
  }
  answer.because = refusal.because.empty() ? TypeRefusal(call, node) : refusal.because;
  answer.source = refusal.source;
  if (answer.source.empty() && !node.data->source().empty()) answer.source = node.data->source(0);
  return answer;
}

Answer Target::Check(const Call& call, const DimTable& dims) const {
  return impl_->Check(call, dims, nullptr);
}
Answer Target::Check(const Call& call, DimTable* dims) const { return impl_->Check(call, *dims, dims); }

std::optional<ByGe> Target::FusedByGe(std::string_view construct) const {
  const auto it = impl_->by_ge.find(construct);
  if (it == impl_->by_ge.end()) return std::nullopt;
  const proto::ByGeRow& row = *it->second;
  return ByGe{row.because(), row.source(), row.static_shapes(), row.plain_linear(), row.computed_by(),
              row.last_opset()};
}

std::optional<LeftReason> Target::WhyLeft(std::string_view construct) const {
  const auto it = impl_->left.find(construct);
  if (it == impl_->left.end()) return std::nullopt;
  return LeftReason{it->second->because(), it->second->source()};
}

std::optional<StandardOp> Target::Standard(std::string_view op) const {
  const auto it = impl_->standard.find(op);
  if (it == impl_->standard.end()) return std::nullopt;
  const proto::StandardOp& row = *it->second;
  return StandardOp{row.first(), row.last(), row.because(), row.source()};
}

bool Target::ParsesNpuDomain() const { return impl_->cann.parses_npu_domain(); }

bool Target::HasAlias(std::string_view op, int64_t opset) const {
  auto has = [&](const auto& aliases) {
    for (const proto::Alias& alias : aliases) {
      if (std::find(alias.op().begin(), alias.op().end(), op) == alias.op().end()) continue;
      if (alias.last() > 0 && opset >= alias.first() && opset <= alias.last()) return true;
      if (std::find(alias.opset().begin(), alias.opset().end(), opset) != alias.opset().end()) return true;
    }
    return false;
  };
  return has(impl_->cann.alias()) || std::any_of(impl_->files.begin(), impl_->files.end(),
                                                 [&](const auto& file) { return has(file.alias()); });
}

bool Target::NeedsPlugin(std::string_view op) const {
  const auto it = impl_->nodes.find(op);
  return it != impl_->nodes.end() && it->second.data->plugin() && !it->second.data->has_refused();
}

int64_t Target::AliasOpset(const std::vector<std::string>& ops, int64_t opset) const {
  for (int64_t candidate = std::min(opset, MaxOpset()); candidate > 0; --candidate) {
    if (std::all_of(ops.begin(), ops.end(), [&](const std::string& op) { return HasAlias(op, candidate); })) {
      return candidate;
    }
  }
  return 0;
}

std::vector<std::string> Target::Chips() { return EmbeddedNames(false); }
std::vector<std::string> Target::CannVersions() { return EmbeddedNames(true); }

}  // namespace ascend_fuse
