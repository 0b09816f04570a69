#include "tests/backwards/generator.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <functional>
#include <limits>
#include <regex>
#include <set>
#include <tuple>

#include "fmt/format.h"
#include "ir/onnx/encode.h"
#include "ir/schema.h"
#include "patterns/functions/functions.h"

namespace ascend_fuse::backwards {

double Random::Normal() {
  const double u = std::max(Uniform(), 1e-12);
  return std::sqrt(-2 * std::log(u)) * std::cos(6.283185307179586 * Uniform());
}

std::string WithoutPlace(const std::string& choice) {
  static const std::regex kPlace("@[\\w.]+:\\d+:\\d+| \\(line \\d+\\)");
  return std::regex_replace(choice, kPlace, "");
}

onnx::TensorProto FloatTensor(const std::string& name, DataType type, const std::vector<int64_t>& dims,
                              const std::vector<double>& elements) {
  onnx::TensorProto tensor;
  tensor.set_name(name);
  tensor.set_data_type(static_cast<int>(type));
  for (int64_t dim : dims) tensor.add_dims(dim);
  std::string bytes;
  for (double element : elements) bytes += EncodeNumber(type, element);
  tensor.set_raw_data(bytes);
  return tensor;
}

onnx::TensorProto IntTensor(const std::string& name, const std::vector<int64_t>& dims,
                            const std::vector<int64_t>& elements) {
  onnx::TensorProto tensor;
  tensor.set_name(name);
  tensor.set_data_type(onnx::TensorProto::INT64);
  for (int64_t dim : dims) tensor.add_dims(dim);
  tensor.set_raw_data(std::string(reinterpret_cast<const char*>(elements.data()), elements.size() * 8));
  return tensor;
}

namespace {

constexpr int kUnknown = -1;

// The opsets that graphs are written in.
constexpr int kOpsets[] = {14, 17, 17, 18, 20, 23, 23, 24};

struct Frame;

// What a name of a rule stands for in the graph under construction.
struct Slot {
  enum class Kind { kUnbound, kValue, kAbsent, kDim, kNumber, kText, kType, kList, kExpression, kOpaque };
  Kind kind = Kind::kUnbound;
  int value = kUnknown;  // kValue
  int dim = kUnknown;    // kDim
  double number = 0;
  std::string text;
  DataType type = DataType::kUndefined;
  std::vector<int64_t> list;
  Frame* frame = nullptr;  // kExpression: evaluated when the dims are known
  const Expression* expression = nullptr;

  static Slot Value(int value) {
    Slot slot;
    slot.kind = Kind::kValue;
    slot.value = value;
    return slot;
  }
  static Slot Of(Kind kind) {
    Slot slot;
    slot.kind = kind;
    return slot;
  }
};

struct Closure {
  const Pattern* pattern = nullptr;  // nullptr: none
  Frame* frame = nullptr;
  bool absent = false;
};

struct Frame {
  const RuleSet* rules = nullptr;
  const Rule* rule = nullptr;  // nullptr: a definition's frame
  const Scope* scope = nullptr;
  std::vector<Slot> slots;
  std::vector<Closure> closures;
  std::string path;  // of choices
};

struct Parameter {
  enum class Kind { kFree, kInts, kNumber, kText, kType };
  std::string name;
  Kind kind = Kind::kFree;
  std::vector<int64_t> ints;
  double number = 0;
  std::string text;
  DataType type = DataType::kUndefined;

  static Parameter Ints(std::string name, std::vector<int64_t> ints) {
    Parameter parameter;
    parameter.name = std::move(name);
    parameter.kind = Kind::kInts;
    parameter.ints = std::move(ints);
    return parameter;
  }
  static Parameter Number(std::string name, double number) {
    Parameter parameter;
    parameter.name = std::move(name);
    parameter.kind = Kind::kNumber;
    parameter.number = number;
    return parameter;
  }
};

struct GraphNode {
  std::string domain;
  std::string op;
  std::vector<int> inputs;  // kUnknown: absent
  std::vector<int> outputs;
  std::vector<Parameter> parameters;
  const Schema* schema = nullptr;
  bool ghost = false;  // a node that only exists in the rule's mind: let k = Transpose (r)
  int half = kUnknown;          // Slice, Split, Gather: which part of the last axis
  int parts = 2;                // of how many
  bool strided = false;         // every so many channels instead of a block of them
  bool axes_from_end = false;   // as the rule wants them written

  Parameter* Find(std::string_view name) {
    for (Parameter& parameter : parameters) {
      if (parameter.name == name) return &parameter;
    }
    return nullptr;
  }
  const Parameter* Find(std::string_view name) const {
    for (const Parameter& parameter : parameters) {
      if (parameter.name == name) return &parameter;
    }
    return nullptr;
  }
};

struct GraphValue {
  std::string name;
  int node = kUnknown;
  int output = 0;
  bool shaped = false;
  std::vector<int> dims;
  bool scalar = false;  // a constant number
  bool target = false;  // the shape operand of Reshape and Expand
  bool mask = false;    // holds only 0 and what takes a key out of the softmax
  bool constant = false;  // no input of the graph
  int fan_in = kUnknown;  // of a linear's weight, a dim: numbers as small as training keeps them, so that no sigmoid saturates
  std::function<double(int64_t index, int64_t count)> element;  // of a constant; random numbers where it is not set
  double number = 0;
  bool number_fixed = false;
};

struct PendingCondition {
  Frame* frame = nullptr;
  const Condition* condition = nullptr;
  bool done = false;
};

// Numbers, texts, types and lists: what expressions of conditions give.
struct Result {
  enum class Kind { kNumber, kText, kType, kList, kValue, kAbsent };
  Kind kind = Kind::kNumber;
  double number = 0;
  std::string text;
  DataType type = DataType::kUndefined;
  int value = kUnknown;
  std::vector<Result> list;

  static Result Number(double number) {
    Result result;
    result.number = number;
    return result;
  }
  static Result Text(std::string text) {
    Result result;
    result.kind = Kind::kText;
    result.text = std::move(text);
    return result;
  }
  static Result Value(int value) {
    Result result;
    result.kind = Kind::kValue;
    result.value = value;
    return result;
  }
};

bool Same(const Result& a, const Result& b) {
  if (a.kind == Result::Kind::kList && b.kind != Result::Kind::kList) {
    return a.list.size() == 1 && Same(a.list[0], b);
  }
  if (b.kind == Result::Kind::kList && a.kind != Result::Kind::kList) return Same(b, a);
  if (a.kind != b.kind) return false;
  switch (a.kind) {
    case Result::Kind::kNumber:
      return std::fabs(a.number - b.number) <= 1e-6 * std::fabs(a.number);
    case Result::Kind::kText:
      return a.text == b.text;
    case Result::Kind::kType:
      return a.type == b.type;
    case Result::Kind::kValue:
      return a.value == b.value;
    case Result::Kind::kAbsent:
      return true;
    case Result::Kind::kList:
      break;
  }
  if (a.list.size() != b.list.size()) return false;
  for (size_t i = 0; i < a.list.size(); ++i) {
    if (!Same(a.list[i], b.list[i])) return false;
  }
  return true;
}

bool IsComparison(std::string_view op) {
  static constexpr std::string_view kOps[] = {"Equal",       "Greater", "GreaterOrEqual", "Less",
                                              "LessOrEqual", "IsNaN",   "IsInf"};
  return std::find(std::begin(kOps), std::end(kOps), op) != std::end(kOps);
}

// The shapes of operators that no pattern spells out: a letter is a dim, * any dims, 1 a dim of 1, a small letter half
// of its large one, # a dim large enough for every position.
struct OperandShapes {
  std::string_view domain;
  std::string_view op;
  std::vector<std::string_view> inputs;  // the last ones may be absent
  std::string_view output;
  std::string_view attribute = "";  // where the row holds for one value of an attribute only
  double number = 0;
  int opset = 0;  // the first one in which the operator is not written in standard operators before anything is looked for
};

const std::vector<OperandShapes>& OperandTable() {
  static const auto* const kTable = new std::vector<OperandShapes>{
      {"", "LayerNormalization", {"*D", "D", "D"}, "*D"},
      {"", "RMSNormalization", {"*D", "D"}, "*D"},
      {"", "SimplifiedLayerNormalization", {"*D", "D"}, "*D"},
      {"", "InstanceNormalization", {"NCL*", "C", "C"}, "NCL*"},
      {"", "GroupNormalization", {"NCL*", "C", "C"}, "NCL*"},
      {"", "BatchNormalization", {"NC*", "C", "C", "C", "C"}, "NC*"},
      {"", "Conv", {"NCHW", "MC11", "M"}, "NMHW"},
      {"", "RotaryEmbedding", {"BNSD", "BSd", "BSd"}, "BNSD", "without positions"},
      {"", "RotaryEmbedding", {"BNSD", "#d", "#d", "BS"}, "BNSD"},
      {"com.microsoft", "RotaryEmbedding", {"BNSD", "BS", "#d", "#d"}, "BNSD"},
      {"com.microsoft", "BiasGelu", {"*D", "D"}, "*D"},
      {"com.microsoft", "FastGelu", {"*D", "D"}, "*D"},
      {"com.microsoft", "BiasSplitGelu", {"BSD", "D"}, "BSd"},
      {"com.microsoft", "GemmFastGelu", {"*K", "KN", "N"}, "*N"},
      {"com.microsoft", "FusedGemm", {"MK", "KN", "N"}, "MN"},
      {"com.microsoft", "MultiHeadAttention", {"BSC", "BTC", "BTC", "C", "BT", "11ST"}, "BSC"},
      {"com.microsoft", "SkipLayerNormalization", {"BSD", "BSD", "D", "D", "D"}, "BSD", "", 0, 17},
      {"com.microsoft", "SkipSimplifiedLayerNormalization", {"BSD", "BSD", "D", "D"}, "BSD"},
      {"com.microsoft", "GroupNorm", {"NHWC", "C", "C"}, "NHWC", "channels_last", 1},
      {"com.microsoft", "GroupNorm", {"NCHW", "C", "C"}, "NCHW", "channels_last", 0},
      {"com.microsoft", "SkipGroupNorm", {"NHWC", "C", "C", "NHWC", "C"}, "NHWC", "channels_last", 1},
      {"com.microsoft", "SkipGroupNorm", {"NCHW", "C", "C", "NCHW", "C"}, "NCHW", "channels_last", 0},
  };
  return *kTable;
}

bool IsLogical(std::string_view op) { return op == "Not" || op == "And" || op == "Or" || op == "Xor"; }

struct FunctionHint;
class Writer;

class Builder {
 public:
  Builder(const RuleSet& library, Random* random, Coverage* coverage, int opset, DataType type)
      : library_(library), random_(*random), coverage_(*coverage), opset_(opset), type_(type) {}

  std::optional<Specimen> Run(const RuleSet& rules, const Rule& rule, std::string* why) {
    Frame* frame = NewFrame(&rules, &rule, &rule.scope, rule.name);
    std::optional<Specimen> specimen;
    if (BuildRule(frame) && Shape() && Number() && Type() && Round() && CheckConditions()) specimen = Write(frame);
    // Choices made on the way to a failure count as tried.
    for (const auto& [key, option] : choices_) coverage_.choices[key][static_cast<size_t>(option)].tried++;
    if (!specimen.has_value()) {
      *why = failure_.empty() ? "no reason" : failure_;
      return std::nullopt;
    }
    for (const auto& [key, option] : choices_) coverage_.choices[key][static_cast<size_t>(option)].built++;
    specimen->choices = choices_;
    return specimen;
  }

 private:
  bool Fail(const std::string& why) {
    if (failure_.empty()) failure_ = why;
    return false;
  }

  Frame* NewFrame(const RuleSet* rules, const Rule* rule, const Scope* scope, const std::string& path) {
    Frame& frame = frames_.emplace_back();
    frame.rules = rules;
    frame.rule = rule;
    frame.scope = scope;
    frame.slots.resize(scope->names.size());
    frame.closures.resize(scope->names.size());
    frame.path = path;
    return &frame;
  }

  // --- choices -----------------------------------------------------------------------------------------

  // possible: options that can lead anywhere here; -1 if there are none.
  int Choose(const std::string& key, const std::vector<std::string>& names, const std::vector<bool>& possible = {}) {
    std::vector<int> open;
    for (size_t i = 0; i < names.size(); ++i) {
      if (possible.empty() || possible[i]) open.push_back(static_cast<int>(i));
    }
    if (open.empty()) return -1;
    if (names.size() == 1) return 0;
    auto [entry, fresh] = coverage_.choices.try_emplace(key);
    std::vector<Coverage::Option>& options = entry->second;
    if (fresh) options.resize(names.size());
    for (size_t i = 0; i < names.size() && fresh; ++i) {
      options[i].name = names[i];
      options[i].unreached = coverage_.unreached.count(WithoutPlace(fmt::format("{}: {}", key, names[i]))) > 0;
    }
    int option = random_.Pick(open);
    if (random_.Chance(60)) {
      // What was matched least, then what was tried least.
      for (int i : open) {
        const auto& a = options[static_cast<size_t>(i)];
        const auto& b = options[static_cast<size_t>(option)];
        if (std::make_tuple(a.unreached, a.matched, a.tried) < std::make_tuple(b.unreached, b.matched, b.tried)) option = i;
      }
    }
    choices_.emplace_back(key, option);
    return option;
  }

  static std::string Place(const std::string& path, const SourcePosition& position, const std::string& what) {
    const size_t slash = position.file.rfind('/');
    return fmt::format("{} > {}@{}:{}", path, what,
                       slash == std::string::npos ? position.file : position.file.substr(slash + 1),
                       fmt::format("{}:{}", position.line, position.column));
  }

  // --- patterns ----------------------------------------------------------------------------------------

  int NewValue(const std::string& name) {
    GraphValue value;
    value.name = name;
    values_.push_back(value);
    types_.push_back(static_cast<int>(types_.size()));
    known_types_.push_back(DataType::kUndefined);
    return static_cast<int>(values_.size()) - 1;
  }

  bool BuildRule(Frame* frame) {
    Slot slot;
    Pattern output;
    output.kind = Pattern::Kind::kVariable;
    output.name = frame->rule->outputs[0];
    output.slot = frame->scope->Find(output.name);
    output.position = frame->rule->position;
    if (!Build(output, frame, &slot)) return false;
    for (const MatchStatement& statement : frame->rule->match) {
      for (const std::string& name : statement.names) {
        if (name == "_") continue;
        Pattern line;
        line.kind = Pattern::Kind::kVariable;
        line.name = name;
        line.slot = frame->scope->Find(name);
        line.position = statement.position;
        if (!Build(line, frame, &slot)) return false;
      }
    }
    for (const Condition& condition : frame->rule->where) conditions_.push_back({frame, &condition, false});
    // What a lowering writes as an argument must have been used, or the recognised operator does not have it.
    for (size_t i = 0; i < frame->rule->inputs.size(); ++i) {
      const Closure& closure = frame->closures[i];
      if (frame->slots[i].kind != Slot::Kind::kUnbound) continue;
      if (closure.pattern != nullptr && !closure.absent)
        return Fail(fmt::format("the operand {} is not used", frame->rule->inputs[i].name));
      if (!frame->rule->inputs[i].optional)
        return Fail(fmt::format("the input {} is not used", frame->rule->inputs[i].name));
      frame->slots[i] = Slot::Of(Slot::Kind::kAbsent);
    }
    for (const Condition& condition : frame->rule->where) {
      if (condition.relation == Condition::Relation::kLet && condition.left.slot >= 0) {
        if (!Let(condition, frame)) return false;
      }
    }
    return true;
  }

  bool Build(const Pattern& pattern, Frame* frame, Slot* result) {
    if (++depth_ > 200) return Fail("a graph of bounded depth");
    struct Guard {
      int* depth;
      ~Guard() { --*depth; }
    } guard{&depth_};
    switch (pattern.kind) {
      case Pattern::Kind::kVariable:
        return BuildVariable(pattern, frame, result);
      case Pattern::Kind::kWildcard:
        *result = Slot::Value(NewValue("any"));
        return true;
      case Pattern::Kind::kAbsent:
        *result = Slot::Of(Slot::Kind::kAbsent);
        return true;
      case Pattern::Kind::kLiteral: {
        const int value = NewValue("constant");
        GraphValue& made = values_[static_cast<size_t>(value)];
        made.scalar = true;
        made.number = pattern.number;
        made.number_fixed = true;
        *result = Slot::Value(value);
        return true;
      }
      case Pattern::Kind::kAlternatives: {
        std::vector<std::string> names;
        for (size_t i = 0; i < pattern.arguments.size(); ++i) {
          const Pattern& argument = *pattern.arguments[i];
          names.push_back(fmt::format("{} {}", i + 1, argument.name));
        }
        const int option = Choose(Place(frame->path, pattern.position, "|"), names);
        return Build(*pattern.arguments[static_cast<size_t>(option)], frame, result);
      }
      case Pattern::Kind::kDefinition:
        return BuildDefinition(pattern, frame, result);
      case Pattern::Kind::kOperator:
        return BuildOperator(pattern, frame, nullptr, result);
    }
    return false;
  }

  bool BuildVariable(const Pattern& pattern, Frame* frame, Slot* result) {
    const size_t slot = static_cast<size_t>(pattern.slot);
    if (frame->slots[slot].kind != Slot::Kind::kUnbound) {
      *result = frame->slots[slot];
      return true;
    }
    const Closure closure = frame->closures[slot];
    if (closure.absent) return Fail("an operand that must be absent");
    if (closure.pattern != nullptr) {
      if (!Build(*closure.pattern, closure.frame, result)) return false;
      frame->slots[slot] = *result;
      return true;
    }
    const int statement = frame->scope->statement[slot];
    if (statement >= 0 && frame->rule != nullptr) {
      const MatchStatement& line = frame->rule->match[static_cast<size_t>(statement)];
      if (line.names.size() > 1) {
        if (line.pattern->kind != Pattern::Kind::kOperator) return Fail("several outputs of no operator");
        Slot first;
        if (!BuildOperator(*line.pattern, frame, &line, &first)) return false;
        *result = frame->slots[slot];
        return true;
      }
      if (!Build(*line.pattern, frame, result)) return false;
      frame->slots[slot] = *result;
      return true;
    }
    *result = Slot::Value(NewValue(pattern.name));
    frame->slots[slot] = *result;
    return true;
  }

  bool BuildDefinition(const Pattern& pattern, Frame* frame, Slot* result) {
    const Definition& definition = frame->rules->definitions()[static_cast<size_t>(pattern.definition)];
    std::vector<std::string> names;
    for (size_t i = 0; i < definition.alternatives.size(); ++i) {
      const SourcePosition& position = definition.alternatives[i].pattern->position;
      names.push_back(fmt::format("{} (line {})", i + 1, position.line));
    }
    if (pattern.optional) names.emplace_back("left out");
    const std::string key =
        Place(frame->path, pattern.position, pattern.name + (pattern.optional ? "?" : ""));
    std::vector<bool> possible(names.size(), true);
    for (size_t i = 1; pattern.optional && i < pattern.arguments.size(); ++i) {
      // An operand that a lowering wants must be taken, one that it forbids cannot be.
      const Pattern& argument = *pattern.arguments[i];
      if (argument.kind != Pattern::Kind::kVariable) continue;
      const Closure& closure = frame->closures[static_cast<size_t>(argument.slot)];
      const bool unbound = frame->slots[static_cast<size_t>(argument.slot)].kind == Slot::Kind::kUnbound;
      if (closure.absent) {
        possible.assign(names.size(), false);
        possible.back() = true;
      } else if (closure.pattern != nullptr && unbound && !definition.parameters[i].has_default) {
        possible.back() = false;
      }
    }
    const int choice = Choose(key, names, possible);
    if (choice < 0) return Fail("no option fits");
    const size_t option = static_cast<size_t>(choice);
    const bool bare = option == definition.alternatives.size();
    Frame* inner = NewFrame(frame->rules, nullptr, &definition.scope, frame->path);
    for (size_t i = 0; i < pattern.arguments.size(); ++i) {
      inner->closures[i].pattern = pattern.arguments[i].get();
      inner->closures[i].frame = frame;
    }
    if (bare) {
      if (!Build(*pattern.arguments[0], frame, result)) return false;
      inner->slots[0] = *result;
    } else {
      const Definition::Alternative& alternative = definition.alternatives[option];
      if (!Build(*alternative.pattern, inner, result)) return false;
      if (definition.result_slot >= 0) inner->slots[static_cast<size_t>(definition.result_slot)] = *result;
      for (const Condition& condition : alternative.conditions) {
        conditions_.push_back({inner, &condition, false});
        if (condition.relation == Condition::Relation::kLet && !Let(condition, inner)) return false;
      }
    }
    for (size_t i = 0; i < definition.parameters.size(); ++i) {
      if (inner->slots[i].kind != Slot::Kind::kUnbound || !definition.parameters[i].has_default) continue;
      if (!Deliver(inner, i, OfExpression(definition.parameters[i].default_value, inner))) return false;
    }
    return true;
  }

  // let name = expression: a number of the graph, a dim, or a node that the rule only thinks of.
  bool Let(const Condition& condition, Frame* frame) {
    const size_t slot = static_cast<size_t>(condition.left.slot);
    if (frame->slots[slot].kind != Slot::Kind::kUnbound) return true;
    Slot value;
    if (condition.right.kind == Expression::Kind::kOperator) {
      if (!BuildGhost(condition.right, frame, &value)) return false;
    } else {
      NoteScalars(condition.right, frame);
      value = OfExpression(condition.right, frame);
    }
    return Deliver(frame, slot, value);
  }

  // What a name stands for: a definition's parameter may have its term from where the definition is used.
  static const Slot& Named(const Frame* frame, size_t slot) {
    const Closure& closure = frame->closures[slot];
    const bool outer = frame->slots[slot].kind == Slot::Kind::kUnbound && closure.pattern != nullptr && !closure.absent &&
                       closure.pattern->kind == Pattern::Kind::kVariable;
    return outer ? Named(closure.frame, static_cast<size_t>(closure.pattern->slot)) : frame->slots[slot];
  }

  Slot OfExpression(const Expression& expression, Frame* frame) {
    if (expression.kind == Expression::Kind::kName && expression.slot >= 0) {
      const Slot& known = frame->slots[static_cast<size_t>(expression.slot)];
      if (known.kind != Slot::Kind::kUnbound) return known;
    }
    Slot slot = Slot::Of(Slot::Kind::kExpression);
    slot.frame = frame;
    slot.expression = &expression;
    return slot;
  }

  bool BuildGhost(const Expression& expression, Frame* frame, Slot* result) {
    if (expression.kind == Expression::Kind::kName && expression.slot >= 0) {
      *result = frame->slots[static_cast<size_t>(expression.slot)];
      return result->kind != Slot::Kind::kUnbound || Fail("a name without a value");
    }
    if (expression.kind != Expression::Kind::kOperator) {
      *result = Slot::Of(Slot::Kind::kOpaque);
      return true;
    }
    GraphNode node;
    node.domain = expression.domain;
    node.op = expression.text;
    node.schema = FindSchema(node.domain, node.op, opset_);
    node.ghost = true;
    for (const auto& attribute : expression.attributes) {
      const std::optional<Result> value = Evaluate(attribute.value, frame);
      Parameter parameter;
      parameter.name = attribute.name;
      if (value.has_value()) FillParameter(*value, &parameter);
      node.parameters.push_back(parameter);
    }
    for (const Expression& argument : expression.arguments) {
      Slot input;
      if (!BuildGhost(argument, frame, &input)) return false;
      node.inputs.push_back(input.kind == Slot::Kind::kValue ? input.value : kUnknown);
    }
    *result = Slot::Value(AddNode(std::move(node), 1));
    return true;
  }

  // Gives a definition's parameter its term, which must then fit what the caller wrote there.
  bool Deliver(Frame* frame, size_t slot, const Slot& value) {
    if (frame->slots[slot].kind != Slot::Kind::kUnbound) {
      equal_.emplace_back(frame->slots[slot], value);
      return true;
    }
    frame->slots[slot] = value;
    const Closure closure = frame->closures[slot];
    return closure.pattern == nullptr || DeliverTo(*closure.pattern, closure.frame, value);
  }

  bool DeliverTo(const Pattern& pattern, Frame* frame, const Slot& value) {
    switch (pattern.kind) {
      case Pattern::Kind::kVariable: {
        const size_t slot = static_cast<size_t>(pattern.slot);
        if (frame->slots[slot].kind == Slot::Kind::kUnbound && frame->closures[slot].absent)
          return Fail("an operand that must be absent");
        if (frame->slots[slot].kind == Slot::Kind::kUnbound && frame->scope->statement[slot] >= 0)
          return Fail("a value that a line of the rule computes");
        return Deliver(frame, slot, value);
      }
      case Pattern::Kind::kWildcard:
        return true;
      case Pattern::Kind::kLiteral: {
        Slot number = Slot::Of(Slot::Kind::kNumber);
        number.number = pattern.number;
        equal_.emplace_back(number, value);
        return true;
      }
      case Pattern::Kind::kDefinition: {
        if (!pattern.optional) return Fail("a definition where a thought-of value stands");
        const Definition& definition = frame->rules->definitions()[static_cast<size_t>(pattern.definition)];
        Frame* inner = NewFrame(frame->rules, nullptr, &definition.scope, frame->path);
        for (size_t i = 0; i < pattern.arguments.size(); ++i) {
          inner->closures[i].pattern = pattern.arguments[i].get();
          inner->closures[i].frame = frame;
        }
        inner->slots[0] = value;
        if (!DeliverTo(*pattern.arguments[0], frame, value)) return false;
        for (size_t i = 1; i < definition.parameters.size(); ++i) {
          if (!definition.parameters[i].has_default) continue;
          if (!Deliver(inner, i, OfExpression(definition.parameters[i].default_value, inner))) return false;
        }
        return true;
      }
      default:
        return Fail("a thought-of value where the pattern wants a node");
    }
  }

  static void FillParameter(const Result& value, Parameter* parameter) {
    switch (value.kind) {
      case Result::Kind::kNumber:
        parameter->kind = Parameter::Kind::kNumber;
        parameter->number = value.number;
        break;
      case Result::Kind::kText:
        parameter->kind = Parameter::Kind::kText;
        parameter->text = value.text;
        break;
      case Result::Kind::kType:
        parameter->kind = Parameter::Kind::kType;
        parameter->type = value.type;
        break;
      case Result::Kind::kList:
        parameter->kind = Parameter::Kind::kInts;
        for (const Result& item : value.list) parameter->ints.push_back(static_cast<int64_t>(item.number));
        break;
      default:
        break;
    }
  }

  int AddNode(GraphNode node, size_t outputs) {
    const int index = static_cast<int>(nodes_.size());
    int first = kUnknown;
    for (size_t i = 0; i < outputs; ++i) {
      const int value = NewValue(fmt::format("v{}", values_.size()));
      values_[static_cast<size_t>(value)].node = index;
      values_[static_cast<size_t>(value)].output = static_cast<int>(i);
      node.outputs.push_back(value);
      if (first == kUnknown) first = value;
    }
    nodes_.push_back(std::move(node));
    return first;
  }

  // What hints build with: a node with a new value, and one that computes a value which nothing computed yet.
  int Make(const std::string& op, const std::vector<int>& inputs, std::vector<Parameter> parameters = {}) {
    const int value = NewValue(fmt::format("v{}", values_.size()));
    Define({value}, op, inputs, std::move(parameters));
    return value;
  }
  GraphNode* Define(const std::vector<int>& outputs, const std::string& op, const std::vector<int>& inputs,
                    std::vector<Parameter> parameters = {}) {
    GraphNode node;
    node.op = op;
    node.schema = FindSchema("", op, opset_);
    node.inputs = inputs;
    node.parameters = std::move(parameters);
    for (size_t i = 0; i < outputs.size(); ++i) {
      GraphValue& value = values_[static_cast<size_t>(outputs[i])];
      value.node = static_cast<int>(nodes_.size());
      value.output = static_cast<int>(i);
    }
    node.outputs = outputs;
    nodes_.push_back(std::move(node));
    changed_ = true;
    return &nodes_.back();
  }
  int NewConstant(const std::string& name) {
    const int value = NewValue(name);
    values_[static_cast<size_t>(value)].constant = true;
    return value;
  }
  // The node that computes a value; nullptr for one that is absent or a leaf.
  GraphNode* Producer(int value) {
    const int node = value == kUnknown ? kUnknown : values_[static_cast<size_t>(value)].node;
    return node == kUnknown ? nullptr : &nodes_[static_cast<size_t>(node)];
  }

  bool IsLeaf(int value) const { return values_[static_cast<size_t>(value)].node == kUnknown; }

  // `parts` as blocks of the last axis of `whole` in their order, or as every so many channels of it.
  void CutInto(int whole, const std::vector<int>& parts, bool strided) {
    channels_.push_back(parts[0]);
    rows_.push_back(parts[0]);
    const int count = static_cast<int>(parts.size());
    if (!strided && random_.Chance(30)) {
      GraphNode* node = Define(parts, "Split", {whole});
      node->half = 0;
      node->parts = count;
      return;
    }
    for (int i = 0; i < count; ++i) {
      GraphNode* node = Define({parts[static_cast<size_t>(i)]}, "Slice", {whole});
      node->half = i;
      node->parts = count;
      node->strided = strided;
    }
  }
  std::vector<int> Cut(int whole, int count, bool strided) {
    std::vector<int> parts;
    for (int i = 0; i < count; ++i) parts.push_back(NewValue(fmt::format("part{}", values_.size())));
    CutInto(whole, parts, strided);
    return parts;
  }
  int Negative(int value) {
    if (random_.Chance(70)) return Make("Neg", {value});
    const int minus = NewValue("minus");
    GraphValue& number = values_[static_cast<size_t>(minus)];
    number.scalar = number.number_fixed = true;
    number.number = -1;
    return Make("Mul", {value, minus});
  }
  int NewTarget() {
    const int value = NewValue("dims");
    values_[static_cast<size_t>(value)].target = true;
    return value;
  }

  // What an equality wants this call to give.
  std::optional<Result> Wanted(const PendingCondition& pending, const Expression& call) {
    const Condition& condition = *pending.condition;
    if (condition.relation == Condition::Relation::kEqual) {
      if (&condition.left == &call) return Evaluate(condition.right, pending.frame);
      if (&condition.right == &call) return Evaluate(condition.left, pending.frame);
    }
    for (const auto& [a, b] : equal_) {
      for (const auto& [own, other] : {std::make_pair(&a, &b), std::make_pair(&b, &a)}) {
        if (own->kind == Slot::Kind::kExpression && own->expression == &call && own->frame == pending.frame) {
          return Evaluate(*other);
        }
      }
    }
    return std::nullopt;
  }

  // A library rule that makes this operator, so that its own pattern can stand here.
  bool Makes(const Rule& rule, const Pattern& pattern, const Expression** emission) {
    if (rule.emit.empty()) return false;
    // What moves data behind another operator: the pattern means the movement.
    if (pattern.domain.empty() && (pattern.name == "Reshape" || pattern.name == "Concat")) return false;
    for (const Condition& condition : rule.where) {
      if (Calls(condition.left, "never")) return false;
    }
    const EmitStatement& last = rule.emit.back();
    const Expression& value = last.value;
    if (value.kind != Expression::Kind::kOperator || value.text != pattern.name ||
        value.domain != pattern.domain || last.names[0] != rule.outputs[0]) {
      return false;
    }
    for (const AttributePattern& mention : pattern.attributes) {
      for (const auto& attribute : value.attributes) {
        if (attribute.name != mention.name) continue;
        const Expression& a = mention.value;
        const Expression& b = attribute.value;
        if (a.kind == Expression::Kind::kString && b.kind == Expression::Kind::kString && a.text != b.text)
          return false;
        if (a.kind == Expression::Kind::kNumber && b.kind == Expression::Kind::kNumber &&
            a.number != b.number)
          return false;
      }
    }
    for (size_t i = 0; i < std::max(pattern.arguments.size(), value.arguments.size()); ++i) {
      const Pattern* wanted = i < pattern.arguments.size() ? pattern.arguments[i].get() : nullptr;
      const Expression* given = i < value.arguments.size() ? &value.arguments[i] : nullptr;
      const bool is_name = given != nullptr && given->kind == Expression::Kind::kName && given->slot >= 0;
      const Expression* call = is_name ? LetCall(rule, given->slot) : nullptr;
      const bool is_input = is_name && (static_cast<size_t>(given->slot) < rule.inputs.size() || GivesOperand(call) || GivesWhole(call));
      if (wanted == nullptr || wanted->kind == Pattern::Kind::kAbsent) {
        if (given != nullptr && (call != nullptr || !is_input || !rule.inputs[static_cast<size_t>(given->slot)].optional))
          return false;
      } else if (given == nullptr) {
        return false;
      } else if (!is_input && wanted->kind != Pattern::Kind::kVariable &&
                 wanted->kind != Pattern::Kind::kWildcard) {
        return false;
      }
    }
    *emission = &value;
    return true;
  }

  bool BuildOperator(const Pattern& pattern, Frame* frame, const MatchStatement* line, Slot* result) {
    const Schema* schema = FindSchema(pattern.domain, pattern.name, opset_);
    if (schema != nullptr && schema->deprecated) schema = nullptr;
    if (pattern.name == "Celu" && type_ != DataType::kFloat) return Fail("the type of Celu");  // ONNX has no other for it
    for (const OperandShapes& row : OperandTable()) {
      if (row.domain == pattern.domain && row.op == pattern.name && opset_ < row.opset) schema = nullptr;
    }
    std::vector<std::string> names;
    std::vector<const Rule*> makers;
    std::vector<const Expression*> emissions;
    if (line == nullptr) {
      for (const Rule& rule : library_.rules()) {
        const Expression* emission = nullptr;
        if (!Makes(rule, pattern, &emission)) continue;
        if (std::find(stack_.begin(), stack_.end(), &rule) != stack_.end()) continue;
        makers.push_back(&rule);
        emissions.push_back(emission);
        names.push_back("as " + rule.name);
      }
    }
    // At every opset the same list, or the choices could not be counted: what is not there fails.
    const bool exists = std::any_of(std::begin(kOpsets), std::end(kOpsets), [&](int opset) {
      const Schema* at = FindSchema(pattern.domain, pattern.name, opset);
      return at != nullptr && !at->deprecated;
    });
    if (exists) names.emplace_back("as the operator itself");
    if (names.empty()) return Fail(fmt::format("nothing makes {}", pattern.name));
    const std::string key = Place(frame->path, pattern.position, pattern.name);
    std::vector<bool> possible(names.size(), true);
    if (exists) possible.back() = schema != nullptr;
    const int choice = Choose(key, names, possible);
    if (choice < 0) return Fail(fmt::format("{} does not exist at opset {}", pattern.name, opset_));
    const size_t option = static_cast<size_t>(choice);
    if (option < makers.size()) {
      return BuildMade(pattern, frame, *makers[option], *emissions[option], key, result);
    }
    if (schema == nullptr) {
      return Fail(fmt::format("{} does not exist at opset {}", pattern.name, opset_));
    }
    GraphNode node;
    node.domain = pattern.domain;
    node.op = pattern.name;
    node.schema = schema;
    for (const AttributePattern& mention : pattern.attributes) {
      Parameter parameter;
      parameter.name = mention.name;
      const Expression& value = mention.value;
      if (value.kind == Expression::Kind::kName && value.slot >= 0 &&
          Named(frame, static_cast<size_t>(value.slot)).kind == Slot::Kind::kUnbound) {
        Slot bound;
        Sample(*schema, &parameter, &bound);
        if (!Deliver(frame, static_cast<size_t>(value.slot), bound)) return false;
      } else if (value.kind != Expression::Kind::kWildcard) {
        const std::optional<Result> known = Evaluate(value, frame);
        if (!known.has_value()) return Fail(fmt::format("the attribute {} is not known yet", mention.name));
        FillParameter(*known, &parameter);
      } else if (const SchemaAttribute* row = schema->FindAttribute(mention.name); row != nullptr && ((row->required && row->name != "to" && row->name != "axis") || row->name == "activation")) {
        Slot any;
        Sample(*schema, &parameter, &any);
      }
      node.parameters.push_back(parameter);
    }
    if (node.op == "Split") node.half = 0;
    for (size_t i = 0; i < pattern.arguments.size(); ++i) {
      const Pattern& argument = *pattern.arguments[i];
      // An optional operand that a lowering forbids.
      if (argument.kind == Pattern::Kind::kVariable && i < schema->inputs.size() && schema->inputs[i].optional &&
          frame->closures[static_cast<size_t>(argument.slot)].absent) {
        frame->slots[static_cast<size_t>(argument.slot)] = Slot::Of(Slot::Kind::kAbsent);
        node.inputs.push_back(kUnknown);
        continue;
      }
      Slot input;
      if (!Build(argument, frame, &input)) return false;
      if (input.kind == Slot::Kind::kValue) {
        node.inputs.push_back(input.value);
      } else if (input.kind == Slot::Kind::kAbsent) {
        node.inputs.push_back(kUnknown);
      } else {
        return Fail("an operand that is no value");
      }
    }
    const size_t outputs = line != nullptr ? line->names.size() : node.op == "Split" ? 2 : 1;
    const int first = AddNode(std::move(node), outputs);
    *result = Slot::Value(first);
    if (line != nullptr) {
      for (size_t i = 0; i < line->names.size(); ++i) {
        if (line->names[i] == "_") continue;
        frame->slots[static_cast<size_t>(frame->scope->Find(line->names[i]))] =
            Slot::Value(first + static_cast<int>(i));
      }
    }
    return true;
  }

  // An attribute that the rule reads and does not prescribe.
  void Sample(const Schema& schema, Parameter* parameter, Slot* bound) {
    const SchemaAttribute* row = schema.FindAttribute(parameter->name);
    if (parameter->name == "axes") {
      // Of a norm: the last ones mostly, or one alone.
      static const std::vector<std::vector<int64_t>> kAxes = {{-1}, {-1}, {-1}, {-1}, {-2, -1}, {-3, -2, -1}, {-2}, {-3}};
      parameter->kind = Parameter::Kind::kInts;
      parameter->ints = random_.Pick(kAxes);
    } else if (parameter->name == "perm") {
      // Of one that is undone by itself: the first axis and the last exchanged.
      static const std::vector<std::vector<int64_t>> kPerms = {{3, 1, 2, 0}, {3, 1, 2, 0}, {2, 1, 0}};
      parameter->kind = Parameter::Kind::kInts;
      parameter->ints = random_.Pick(kPerms);
    } else if (parameter->name == "epsilon") {
      parameter->kind = Parameter::Kind::kNumber;
      parameter->number = random_.Chance(60) ? 1e-6 : 1e-5;
    } else if (parameter->name == "approximate") {
      parameter->kind = Parameter::Kind::kText;
      parameter->text = random_.Chance(50) ? "none" : "tanh";
    } else if (parameter->name == "scale") {
      if (random_.Chance(50)) {
        parameter->kind = Parameter::Kind::kNumber;
        parameter->number = 0.25;
      }
    } else if (parameter->name == "alpha" || parameter->name == "beta") {
      parameter->kind = Parameter::Kind::kNumber;
      static const std::vector<double> kSlopes = {1, 0.5, 2, 1.5};
      parameter->number = row != nullptr && row->has_default && random_.Chance(40)
                              ? static_cast<double>(row->default_value.f)
                              : random_.Pick(kSlopes);
    } else if (parameter->name == "interleaved" || (row != nullptr && row->required && row->type == AttributeType::kInt)) {
      static const std::vector<double> kCounts = {1, 2, 2, 4};
      parameter->kind = Parameter::Kind::kNumber;
      parameter->number = parameter->name == "interleaved" ? random_.Below(2) : random_.Pick(kCounts);
    } else if (parameter->name == "activation") {
      parameter->kind = Parameter::Kind::kText;
      parameter->text = "Relu";
    } else if (row != nullptr && row->has_default) {
      if (row->type == AttributeType::kInt) {
        parameter->kind = Parameter::Kind::kNumber;
        parameter->number = static_cast<double>(row->default_value.i);
      } else if (row->type == AttributeType::kFloat) {
        parameter->kind = Parameter::Kind::kNumber;
        parameter->number = row->default_value.f;
      } else if (row->type == AttributeType::kString) {
        parameter->kind = Parameter::Kind::kText;
        parameter->text = std::string(row->default_value.s);
      }
    }
    if (parameter->kind == Parameter::Kind::kText) {
      *bound = Slot::Of(Slot::Kind::kText);
      bound->text = parameter->text;
    } else if (parameter->kind == Parameter::Kind::kNumber) {
      *bound = Slot::Of(Slot::Kind::kNumber);
      bound->number = parameter->number;
    } else if (parameter->kind == Parameter::Kind::kInts) {
      *bound = Slot::Of(Slot::Kind::kList);
      bound->list = parameter->ints;
    } else {
      *bound = Slot::Of(Slot::Kind::kOpaque);
    }
  }

  // The node that an emission writes for a name, where it is not the last one.
  static const Expression* Emitted(const Rule& rule, const Expression& name) {
    for (size_t i = 0; i + 1 < rule.emit.size(); ++i) {
      const EmitStatement& line = rule.emit[i];
      if (line.names.size() == 1 && line.names[0] == name.text && line.value.kind == Expression::Kind::kOperator) return &line.value;
    }
    return nullptr;
  }

  // A node that an emission writes, where a line of the rule wants that very operator: s = Add (a, b).
  bool DeliverNode(const Pattern& pattern, Frame* frame, const Slot& value, const Expression& node, Frame* inner) {
    if (pattern.kind == Pattern::Kind::kVariable) {
      const size_t slot = static_cast<size_t>(pattern.slot);
      const int statement = frame->scope->statement[slot];
      if (frame->slots[slot].kind != Slot::Kind::kUnbound || statement < 0) return DeliverTo(pattern, frame, value);
      frame->slots[slot] = value;
      return DeliverNode(*frame->rule->match[static_cast<size_t>(statement)].pattern, frame, value, node, inner);
    }
    if (pattern.kind != Pattern::Kind::kOperator || pattern.name != node.text || pattern.arguments.size() != node.arguments.size()) {
      return Fail("another operator than the emission writes");
    }
    for (size_t i = 0; i < node.arguments.size(); ++i) {
      Slot operand;
      if (!BuildGhost(node.arguments[i], inner, &operand) || !DeliverTo(*pattern.arguments[i], frame, operand)) return false;
    }
    return true;
  }

  // What gives its first operand in the graphs made here, and what gives the value that its operands are cut from.
  static bool GivesOperand(const Expression* call) {
    return call != nullptr && (call->text == "rotation_source" || call->text == "turned_part" ||
                               (call->text == "norm_weight" && call->arguments[0].kind == Expression::Kind::kName));
  }
  static bool GivesWhole(const Expression* call) {
    return call != nullptr && (call->text == "joined_source" || call->text == "part_whole");
  }

  // The call that a rule binds a name to.
  static const Expression* LetCall(const Rule& rule, int slot) {
    for (const Condition& condition : rule.where) {
      if (condition.relation == Condition::Relation::kLet && condition.left.slot == slot &&
          condition.right.kind == Expression::Kind::kCall) {
        return &condition.right;
      }
    }
    return nullptr;
  }

  bool BuildMade(const Pattern& pattern, Frame* frame, const Rule& rule, const Expression& emission,
                 const std::string& path, Slot* result) {
    if (stack_.size() > 3) return Fail("recognisers of bounded depth");
    stack_.push_back(&rule);
    Frame* inner = NewFrame(&library_, &rule, &rule.scope, path + kMade + rule.name);
    std::vector<std::pair<const Pattern*, const Expression*>> later;
    for (size_t i = 0; i < emission.arguments.size(); ++i) {
      const Pattern* wanted = i < pattern.arguments.size() ? pattern.arguments[i].get() : nullptr;
      const Expression& given = emission.arguments[i];
      int slot = given.kind == Expression::Kind::kName ? given.slot : kUnknown;
      if (const Expression* call = slot >= 0 ? LetCall(rule, slot) : nullptr; call != nullptr && wanted != nullptr) {
        if (GivesOperand(call)) {
          // The weight that the norm has, or the one of ones where it has none.
          if (call->text != "norm_weight" || random_.Chance(70)) slot = call->arguments[0].slot;
        } else if (GivesWhole(call)) {
          Slot whole;
          if (!Build(*wanted, frame, &whole)) return false;
          if (whole.kind != Slot::Kind::kValue) return Fail("a whole that is no value");
          called_[{call, inner}] = Result::Value(whole.value);
          continue;
        }
      }
      const bool is_input = slot >= 0 && static_cast<size_t>(slot) < rule.inputs.size();
      if (!is_input) {
        if (wanted != nullptr && wanted->kind != Pattern::Kind::kAbsent) later.emplace_back(wanted, &given);
        continue;
      }
      Closure& closure = inner->closures[static_cast<size_t>(slot)];
      if (wanted == nullptr || wanted->kind == Pattern::Kind::kAbsent) {
        closure.absent = true;
      } else {
        closure.pattern = wanted;
        closure.frame = frame;
      }
    }
    const bool built = BuildRule(inner);
    stack_.pop_back();
    if (!built) return false;
    *result = inner->slots[static_cast<size_t>(rule.scope.Find(rule.outputs[0]))];
    for (const auto& [wanted, given] : later) {
      Slot value;
      if (given->kind == Expression::Kind::kName && given->slot >= 0) {
        value = inner->slots[static_cast<size_t>(given->slot)];
        if (const Expression* sum = Emitted(rule, *given); sum != nullptr && value.kind == Slot::Kind::kValue) {
          if (!DeliverNode(*wanted, frame, value, *sum, inner)) return false;
          continue;
        }
      } else if (!BuildGhost(*given, inner, &value)) {
        return false;
      }
      if (!DeliverTo(*wanted, frame, value)) return false;
    }
    for (const AttributePattern& mention : pattern.attributes) {
      for (const auto& attribute : emission.attributes) {
        if (attribute.name != mention.name || mention.value.kind == Expression::Kind::kWildcard) continue;
        const Slot given = OfExpression(attribute.value, inner);
        if (mention.value.kind == Expression::Kind::kName && mention.value.slot >= 0 &&
            frame->slots[static_cast<size_t>(mention.value.slot)].kind == Slot::Kind::kUnbound) {
          frame->slots[static_cast<size_t>(mention.value.slot)] = given;
        } else {
          equal_.emplace_back(OfExpression(mention.value, frame), given);
        }
      }
    }
    return true;
  }

  // --- expressions -------------------------------------------------------------------------------------

  int ValueOf(const Expression& expression, Frame* frame) {
    if (expression.kind != Expression::Kind::kName || expression.slot < 0) return kUnknown;
    const Slot& slot = frame->slots[static_cast<size_t>(expression.slot)];
    if (slot.kind == Slot::Kind::kExpression && slot.expression->kind == Expression::Kind::kCall) {
      const auto known = called_.find({slot.expression, slot.frame});
      if (known != called_.end() && known->second.kind == Result::Kind::kValue) return known->second.value;
    }
    return slot.kind == Slot::Kind::kValue ? slot.value : kUnknown;
  }

  static bool Calls(const Expression& expression, std::string_view name) {
    return expression.kind == Expression::Kind::kCall && expression.text == name;
  }

  // value (u): u is a constant number.
  void NoteScalars(const Expression& expression, Frame* frame) {
    if (Calls(expression, "value")) {
      const int value = ValueOf(expression.arguments[0], frame);
      if (value != kUnknown && values_[static_cast<size_t>(value)].node == kUnknown) {
        values_[static_cast<size_t>(value)].scalar = true;
      }
    }
    for (const Expression& argument : expression.arguments) NoteScalars(argument, frame);
  }

  std::optional<Result> Evaluate(const Slot& slot) {
    Result result;
    switch (slot.kind) {
      case Slot::Kind::kNumber:
        return Result::Number(slot.number);
      case Slot::Kind::kDim: {
        const int64_t number = dims_[static_cast<size_t>(Root(slot.dim))].number;
        if (number < 0) return std::nullopt;
        return Result::Number(static_cast<double>(number));
      }
      case Slot::Kind::kText:
        result.kind = Result::Kind::kText;
        result.text = slot.text;
        return result;
      case Slot::Kind::kType:
        result.kind = Result::Kind::kType;
        result.type = slot.type;
        return result;
      case Slot::Kind::kList:
        result.kind = Result::Kind::kList;
        for (int64_t number : slot.list) result.list.push_back(Result::Number(static_cast<double>(number)));
        return result;
      case Slot::Kind::kValue:
        result.kind = Result::Kind::kValue;
        result.value = slot.value;
        return result;
      case Slot::Kind::kAbsent:
        result.kind = Result::Kind::kAbsent;
        return result;
      case Slot::Kind::kExpression:
        return Evaluate(*slot.expression, slot.frame);
      default:
        return std::nullopt;
    }
  }

  std::optional<Result> Evaluate(const Expression& expression, Frame* frame) {
    switch (expression.kind) {
      case Expression::Kind::kNumber:
        return Result::Number(expression.number);
      case Expression::Kind::kString: {
        Result result;
        result.kind = Result::Kind::kText;
        result.text = expression.text;
        return result;
      }
      case Expression::Kind::kName: {
        if (expression.slot >= 0) return Evaluate(Named(frame, static_cast<size_t>(expression.slot)));
        if (expression.text == "true") return Result::Number(1);
        if (expression.text == "false") return Result::Number(0);
        if (expression.text == "infinity") return Result::Number(std::numeric_limits<double>::infinity());
        Result result;
        result.kind = Result::Kind::kType;
        result.type = DataTypeFromName(expression.text);
        return result;
      }
      case Expression::Kind::kList: {
        Result result;
        result.kind = Result::Kind::kList;
        for (const Expression& argument : expression.arguments) {
          const std::optional<Result> item = Evaluate(argument, frame);
          if (!item.has_value()) return std::nullopt;
          result.list.push_back(*item);
        }
        return result;
      }
      case Expression::Kind::kUnary: {
        std::optional<Result> operand = Evaluate(expression.arguments[0], frame);
        if (operand.has_value()) operand->number = -operand->number;
        return operand;
      }
      case Expression::Kind::kBinary: {
        const std::optional<Result> left = Evaluate(expression.arguments[0], frame);
        const std::optional<Result> right = Evaluate(expression.arguments[1], frame);
        if (!left.has_value() || !right.has_value()) return std::nullopt;
        const double a = left->number;
        const double b = right->number;
        switch (expression.text[0]) {
          case '+':
            return Result::Number(a + b);
          case '-':
            return Result::Number(a - b);
          case '*':
            return Result::Number(a * b);
          default:
            return Result::Number(a / b);
        }
      }
      case Expression::Kind::kCall:
        return EvaluateCall(expression, frame);
      default:
        return std::nullopt;
    }
  }

  std::optional<Result> EvaluateCall(const Expression& call, Frame* frame) {
    const std::string& name = call.text;
    const int value = call.arguments.empty() ? kUnknown : ValueOf(call.arguments[0], frame);
    if (name == "shape" || name == "rank" || name == "dim") {
      if (value == kUnknown || !values_[static_cast<size_t>(value)].shaped) return std::nullopt;
      const GraphValue& of = values_[static_cast<size_t>(value)];
      if (name == "rank") return Result::Number(static_cast<double>(of.dims.size()));
      Result result;
      result.kind = Result::Kind::kList;
      for (int dim : of.dims) {
        const int64_t number = dims_[static_cast<size_t>(Root(dim))].number;
        if (number < 0) return std::nullopt;
        result.list.push_back(Result::Number(static_cast<double>(number)));
      }
      if (name == "shape") return result;
      const std::optional<Result> axis = Evaluate(call.arguments[1], frame);
      if (!axis.has_value()) return std::nullopt;
      int64_t index = static_cast<int64_t>(axis->number);
      if (index < 0) index += static_cast<int64_t>(result.list.size());
      if (index < 0 || index >= static_cast<int64_t>(result.list.size())) return std::nullopt;
      return result.list[static_cast<size_t>(index)];
    }
    if (name == "dtype") {
      if (value == kUnknown) return std::nullopt;
      const DataType type = known_types_[static_cast<size_t>(TypeRoot(value))];
      if (type == DataType::kUndefined) return std::nullopt;
      Result result;
      result.kind = Result::Kind::kType;
      result.type = type;
      return result;
    }
    if (name == "value") {
      // Where nothing prescribes the number it is chosen once the dims are known.
      if (value == kUnknown || !values_[static_cast<size_t>(value)].number_fixed) return std::nullopt;
      return Result::Number(values_[static_cast<size_t>(value)].number);
    }
    if (name == "sqrt") {
      std::optional<Result> operand = Evaluate(call.arguments[0], frame);
      if (operand.has_value()) operand->number = std::sqrt(operand->number);
      return operand;
    }
    if (name == "number") return Evaluate(call.arguments[0], frame);
    if (const auto known = called_.find({&call, frame}); known != called_.end()) return known->second;
    if (name == "size") {
      if (value == kUnknown || !Shaped(value)) return std::nullopt;
      const std::optional<std::vector<int64_t>> axes = AxesOf(call.arguments[1], frame, DimsOf(value).size());
      if (!axes.has_value()) return std::nullopt;
      double size = 1;
      for (int64_t axis : *axes) {
        const int64_t number = NumberOfDim(DimsOf(value)[static_cast<size_t>(axis)]);
        if (number < 0) return std::nullopt;
        size *= static_cast<double>(number);
      }
      return Result::Number(size);
    }
    if (name == "trailing_axes") {
      const std::optional<Result> axes = Evaluate(call.arguments[0], frame);
      if (!axes.has_value()) return std::nullopt;
      const double count = axes->kind == Result::Kind::kList ? static_cast<double>(axes->list.size()) : 1;
      for (double i = 0; axes->kind == Result::Kind::kList && i < count; ++i) {
        if (axes->list[static_cast<size_t>(i)].number != i - count) return std::nullopt;
      }
      return axes->kind == Result::Kind::kList || axes->number == -1 ? std::optional<Result>(Result::Number(-count))
                                                                     : std::nullopt;
    }
    if (name == "multiple_of") {
      const std::optional<Result> a = Evaluate(call.arguments[0], frame);
      const std::optional<Result> b = Evaluate(call.arguments[1], frame);
      if (!a.has_value() || !b.has_value()) return std::nullopt;
      return Result::Number(std::fmod(a->number, b->number) == 0 ? 1 : 0);
    }
    if (name == "product") {
      const std::optional<Result> list = Evaluate(call.arguments[0], frame);
      if (!list.has_value()) return std::nullopt;
      double product = 1;
      for (const Result& item : list->list) product *= item.number;
      return Result::Number(product);
    }
    return std::nullopt;  // a function this generator does not compute: the matcher does
  }

  // Axes of a value of a rank, counted from the front, in order; none where one is beyond the rank.
  std::optional<std::vector<int64_t>> AxesOf(const Expression& expression, Frame* frame, size_t rank) {
    const std::optional<Result> given = Evaluate(expression, frame);
    if (!given.has_value()) return std::nullopt;
    std::vector<int64_t> axes;
    if (given->kind == Result::Kind::kNumber) axes = {static_cast<int64_t>(given->number)};
    for (const Result& item : given->list) axes.push_back(static_cast<int64_t>(item.number));
    for (int64_t& axis : axes) {
      if (axis < 0) axis += static_cast<int64_t>(rank);
      if (axis < 0 || axis >= static_cast<int64_t>(rank)) return std::nullopt;
    }
    return axes;
  }

  // The number of a constant that the rule reads: small where something is added, a factor elsewhere.
  double NumberOf(int value) {
    GraphValue& constant = values_[static_cast<size_t>(value)];
    if (constant.number_fixed) return constant.number;
    bool added = false;
    for (const GraphNode& node : nodes_) {
      for (int input : node.inputs) added = added || (input == value && (node.op == "Add" || node.op == "Sub"));
    }
    static const std::vector<double> kSmall = {1e-6, 1e-6, 1e-6, 1e-5, 1e-3};
    static const std::vector<double> kFactors = {0.125, 0.5, 0.35355339059327373, 1.5, 2, 0.7, 0.1};
    constant.number = random_.Pick(added ? kSmall : kFactors);
    constant.number_fixed = true;
    return constant.number;
  }

  // --- dims --------------------------------------------------------------------------------------------

  int NewDim(int64_t number = -1) {
    dims_.push_back({static_cast<int>(dims_.size()), number, false});
    return static_cast<int>(dims_.size()) - 1;
  }
  int Root(int dim) const {
    while (dims_[static_cast<size_t>(dim)].parent != dim) dim = dims_[static_cast<size_t>(dim)].parent;
    return dim;
  }
  int64_t NumberOfDim(int dim) const { return dims_[static_cast<size_t>(Root(dim))].number; }
  bool Join(int a, int b) {
    a = Root(a);
    b = Root(b);
    if (a == b) return true;
    changed_ = true;
    Dimension& x = dims_[static_cast<size_t>(a)];
    Dimension& y = dims_[static_cast<size_t>(b)];
    if (x.number >= 0 && y.number >= 0 && x.number != y.number) {
      return Fail(fmt::format("dims {} and {} meet", x.number, y.number));
    }
    if (x.number < 0) x.number = y.number;
    x.locked = x.locked || y.locked;
    y.parent = a;
    return true;
  }
  bool Assign(int dim, int64_t number) {
    Dimension& root = dims_[static_cast<size_t>(Root(dim))];
    if (root.number == number) return true;
    if (root.number >= 0) return Fail(fmt::format("a dim is {} and {}", root.number, number));
    if (number < 1) return Fail("a dim below 1");
    root.number = number;
    changed_ = true;
    return true;
  }
  bool SetShape(int value, const std::vector<int>& dims) {
    GraphValue& of = values_[static_cast<size_t>(value)];
    if (!of.shaped) {
      of.shaped = true;
      of.dims = dims;
      changed_ = true;
      return true;
    }
    if (of.dims.size() != dims.size()) return Fail(fmt::format("ranks {} and {} meet", of.dims.size(), dims.size()));
    for (size_t i = 0; i < dims.size(); ++i) {
      if (!Join(of.dims[i], dims[i])) return false;
    }
    return true;
  }
  bool Shaped(int value) const { return value != kUnknown && values_[static_cast<size_t>(value)].shaped; }
  std::vector<int> DimsOf(int value) const { return values_[static_cast<size_t>(value)].dims; }

  // An element of a shape list as a dim.
  int DimOf(const Expression& element, Frame* frame) {
    if (element.kind == Expression::Kind::kName && element.slot >= 0) {
      Slot& slot = frame->slots[static_cast<size_t>(element.slot)];
      if (slot.kind == Slot::Kind::kDim) return slot.dim;
      if (slot.kind == Slot::Kind::kUnbound) {
        slot = Slot::Of(Slot::Kind::kDim);
        slot.dim = NewDim();
        return slot.dim;
      }
    } else if (element.kind == Expression::Kind::kNumber) {
      return NewDim(static_cast<int64_t>(element.number));
    } else if (element.kind == Expression::Kind::kWildcard) {
      return NewDim();
    }
    const int dim = NewDim();
    dims_[static_cast<size_t>(dim)].locked = true;
    Slot slot = Slot::Of(Slot::Kind::kDim);
    slot.dim = dim;
    equal_.emplace_back(slot, OfExpression(element, frame));
    return dim;
  }

  // shape (x) = [..., D]; waits for x's rank where there is an ellipsis, unless `force`.
  bool ShapeCondition(PendingCondition* pending, bool force) {
    const Condition& condition = *pending->condition;
    const Expression* call = &condition.left;
    const Expression* list = &condition.right;
    if (!Calls(*call, "shape")) std::swap(call, list);
    const int value = ValueOf(call->arguments[0], pending->frame);
    if (value == kUnknown) {
      pending->done = true;
      return true;
    }
    if (list->kind != Expression::Kind::kList) {
      if (Calls(*list, "shape")) {
        const int other = ValueOf(list->arguments[0], pending->frame);
        if (other == kUnknown) {
          pending->done = true;
        } else if (Shaped(value) || Shaped(other)) {
          pending->done = true;
          return Shaped(value) ? SetShape(other, DimsOf(value)) : SetShape(value, DimsOf(other));
        }
      }
      return true;
    }
    size_t lead = 0;
    bool ellipsis = false;
    for (size_t i = 0; i < list->arguments.size(); ++i) {
      if (list->arguments[i].kind == Expression::Kind::kEllipsis) {
        ellipsis = true;
        lead = i;
      }
    }
    const size_t named = list->arguments.size() - (ellipsis ? 1 : 0);
    size_t rank = named;
    if (ellipsis) {
      if (Shaped(value)) {
        rank = DimsOf(value).size();
        if (rank < named) return Fail("a rank too small");
      } else {
        if (!force) return true;
        if (const int like = Alike(*pending, *list); like != kUnknown && random_.Chance(60)) {
          pending->done = true;
          return SetShape(value, DimsOf(like));
        }
        const size_t most = named >= 4 ? 2 : 5 - named;
        rank = named + static_cast<size_t>(random_.Below(static_cast<int>(most)));
        if (const size_t known = RankOf(value); known >= named) {
          rank = known;
        } else if (random_.Chance(40)) rank = std::max(rank, std::min<size_t>(named + 2, 4));
      }
    }
    std::vector<int> dims;
    for (size_t i = 0; i < list->arguments.size(); ++i) {
      if (ellipsis && i == lead) {
        for (size_t k = 0; k < rank - named; ++k) {
          dims.push_back(Shaped(value) ? DimsOf(value)[lead + k] : NewDim());
        }
        continue;
      }
      dims.push_back(DimOf(list->arguments[i], pending->frame));
    }
    pending->done = true;
    return SetShape(value, dims);
  }

  // The largest rank among what an elementwise operator combines to a value, 0 where none is known.
  size_t RankOf(int value) const {
    if (Shaped(value)) return DimsOf(value).size();
    const int index = values_[static_cast<size_t>(value)].node;
    if (index == kUnknown) return 0;
    const GraphNode& node = nodes_[static_cast<size_t>(index)];
    if (node.schema == nullptr || !node.schema->elementwise) return 0;
    size_t rank = 0;
    for (int input : node.inputs) rank = std::max(rank, input == kUnknown ? 0 : RankOf(input));
    return rank;
  }

  // A value of the rule that must have a shape of the same description.
  int Alike(const PendingCondition& pending, const Expression& list) {
    for (const PendingCondition& other : conditions_) {
      if (&other == &pending || other.frame != pending.frame || !IsShapeCondition(*other.condition)) continue;
      const Expression& call = other.condition->left;
      const Expression& shape = other.condition->right;
      if (!Calls(call, "shape") || shape.kind != Expression::Kind::kList || shape.arguments.size() != list.arguments.size())
        continue;
      bool same = true;
      for (size_t i = 0; i < list.arguments.size(); ++i) {
        const Expression& a = list.arguments[i];
        const Expression& b = shape.arguments[i];
        same = same && a.kind == b.kind && a.text == b.text && a.number == b.number;
      }
      const int value = ValueOf(call.arguments[0], other.frame);
      if (same && Shaped(value)) return value;
    }
    return kUnknown;
  }

  static bool IsShapeCondition(const Condition& condition) {
    return condition.relation == Condition::Relation::kEqual &&
           (Calls(condition.left, "shape") || Calls(condition.right, "shape"));
  }

  bool Shape() {
    for (PendingCondition& pending : conditions_) {
      NoteScalars(pending.condition->left, pending.frame);
      NoteScalars(pending.condition->right, pending.frame);
    }
    // Until nothing moves: conditions, functions, operators; then one guess, and again.
    for (int round = 0; round < 200; ++round) {
      do {
        changed_ = false;
        for (PendingCondition& pending : conditions_) {
          if (!pending.done && IsShapeCondition(*pending.condition) && !ShapeCondition(&pending, false))
            return false;
          if (!pending.done && !ByFunction(&pending)) return false;
        }
        for (size_t i = 0; i < nodes_.size(); ++i) {
          if (!Relate(&nodes_[i])) return false;
        }
        for (const auto& [a, b] : same_shapes_) {
          if (Shaped(a) != Shaped(b) && !(Shaped(a) ? SetShape(b, DimsOf(a)) : SetShape(a, DimsOf(b)))) return false;
          if (Shaped(a) && !SetShape(b, DimsOf(a))) return false;
        }
      } while (changed_);
      if (!Guess()) return false;
      if (!changed_) return true;
    }
    return Fail("shapes that do not settle");
  }

  bool Guess() {
    for (PendingCondition& pending : conditions_) {
      if (pending.done || !IsShapeCondition(*pending.condition)) continue;
      if (!ShapeCondition(&pending, true)) return false;
      if (changed_) return true;
    }
    bool moved = false;  // a rank that follows from an equality
    if (!SolveEqualities(&moved)) return false;
    if (moved) return changed_ = true;
    // The partner of a value whose shape is known, then anything.
    for (GraphNode& node : nodes_) {
      if (node.schema == nullptr || !node.schema->elementwise || node.inputs.size() < 2) continue;
      for (int input : node.inputs) {
        if (input == kUnknown || Shaped(input) || values_[static_cast<size_t>(input)].node != kUnknown) continue;
        for (int other : node.inputs) {
          if (!Shaped(other)) continue;
          std::vector<int> dims = DimsOf(other);
          const int kind = random_.Below(10);
          if (kind >= 6 && !dims.empty()) {  // a suffix
            dims.erase(dims.begin(), dims.begin() + random_.Below(static_cast<int>(dims.size())));
          } else if (kind >= 4) {  // ones in it
            for (int& dim : dims) {
              if (random_.Chance(40)) dim = NewDim(1);
            }
          }
          return SetShape(input, dims);
        }
      }
    }
    for (GraphNode& node : nodes_) {
      if (node.op != "Reshape" || !Shaped(node.inputs[0]) || Shaped(node.outputs[0])) continue;
      std::vector<int> dims(random_.Chance(60) ? 3 : static_cast<size_t>(2 + random_.Below(3)));
      for (int& dim : dims) dim = NewDim();
      return SetShape(node.outputs[0], dims);
    }
    for (size_t v = 0; v < values_.size(); ++v) {
      GraphValue& value = values_[v];
      if (value.shaped || value.target || value.node != kUnknown || value.scalar) continue;
      std::vector<int> dims(static_cast<size_t>(1 + random_.Below(4)));
      if (random_.Chance(40)) dims.resize(3);
      for (int& dim : dims) dim = NewDim();
      return SetShape(static_cast<int>(v), dims);
    }
    return true;
  }

  // Broadcast of operands; an unknown operand waits.
  bool RelateElementwise(const GraphNode& node) {
    const int output = node.outputs[0];
    std::vector<int> known;
    bool all = true;
    for (int input : node.inputs) {
      if (input == kUnknown || values_[static_cast<size_t>(input)].scalar) continue;
      if (Shaped(input)) {
        known.push_back(input);
      } else {
        all = false;
      }
    }
    if (all && !known.empty()) {
      std::vector<int> result;
      for (int input : known) {
        std::vector<int> dims = DimsOf(input);
        std::vector<int> longer = result;
        if (dims.size() > longer.size()) std::swap(dims, longer);
        const size_t offset = longer.size() - dims.size();
        for (size_t i = 0; i < dims.size(); ++i) {
          int& a = longer[offset + i];
          if (NumberOfDim(dims[i]) == 1) continue;
          if (NumberOfDim(a) == 1) {
            a = dims[i];
          } else if (!Join(a, dims[i])) {
            return false;
          }
        }
        result = longer;
      }
      return SetShape(output, result);
    }
    // Backwards: one operand takes the result's shape.
    if (Shaped(output) && known.empty()) {
      for (int input : node.inputs) {
        if (input == kUnknown || values_[static_cast<size_t>(input)].scalar) continue;
        return SetShape(input, DimsOf(output));
      }
    }
    return true;
  }

  std::vector<int64_t> Axes(const GraphNode& node, std::string_view name, size_t rank) const {
    std::vector<int64_t> axes;
    const Parameter* parameter = node.Find(name);
    if (parameter == nullptr) return axes;
    if (parameter->kind == Parameter::Kind::kInts) axes = parameter->ints;
    if (parameter->kind == Parameter::Kind::kNumber) axes = {static_cast<int64_t>(parameter->number)};
    for (int64_t& axis : axes) {
      if (axis < 0) axis += static_cast<int64_t>(rank);
    }
    return axes;
  }

  double NumberParameter(const GraphNode& node, std::string_view name, double otherwise) const {
    const Parameter* parameter = node.Find(name);
    return parameter != nullptr && parameter->kind == Parameter::Kind::kNumber ? parameter->number : otherwise;
  }

  // in = out but for one axis.
  bool RelateAxis(int a, int b, int64_t axis, std::function<bool(int, int)> at_axis) {
    if (!Shaped(a) && !Shaped(b)) return true;
    const bool from_a = Shaped(a);
    std::vector<int> dims = DimsOf(from_a ? a : b);
    if (axis < 0) axis += static_cast<int64_t>(dims.size());
    if (axis < 0 || axis >= static_cast<int64_t>(dims.size())) return Fail("an axis beyond the rank");
    const int to = from_a ? b : a;
    if (!Shaped(to)) {
      dims[static_cast<size_t>(axis)] = NewDim();
      if (!SetShape(to, dims)) return false;
      return at_axis(DimsOf(a)[static_cast<size_t>(axis)], DimsOf(b)[static_cast<size_t>(axis)]);
    }
    const std::vector<int> other = DimsOf(to);
    if (other.size() != dims.size()) return Fail("ranks differ");
    for (size_t i = 0; i < dims.size(); ++i) {
      if (static_cast<int64_t>(i) != axis && !Join(dims[i], other[i])) return false;
    }
    return at_axis(DimsOf(a)[static_cast<size_t>(axis)], DimsOf(b)[static_cast<size_t>(axis)]);
  }

  // An equation between products, written down once.
  void Equation(const GraphNode* key, std::vector<int> left, std::vector<int> right, double factor = 1) {
    if (!equations_of_.insert(key).second) return;
    equations_.push_back({std::move(left), std::move(right), factor});
  }

  bool Relate(GraphNode* node) {
    const std::string& op = node->op;
    if (node->inputs.empty()) return true;
    const int x = node->inputs[0];
    const int y = node->outputs[0];
    if (op == "Transpose") {
      const Parameter* perm = node->Find("perm");
      if (perm == nullptr || perm->kind != Parameter::Kind::kInts) {  // the axes from the last to the first
        for (const auto& [from, to] : {std::make_pair(x, y), std::make_pair(y, x)}) {
          if (!Shaped(from)) continue;
          const std::vector<int> dims = DimsOf(from);
          return SetShape(to, {dims.rbegin(), dims.rend()});
        }
        return true;
      }
      if (Shaped(x)) {
        const std::vector<int> in = DimsOf(x);
        if (in.size() != perm->ints.size()) return Fail("perm does not fit");
        std::vector<int> out;
        for (int64_t axis : perm->ints) out.push_back(in[static_cast<size_t>(axis)]);
        return SetShape(y, out);
      }
      if (Shaped(y)) {
        const std::vector<int> out = DimsOf(y);
        if (out.size() != perm->ints.size()) return Fail("perm does not fit");
        std::vector<int> in(out.size());
        for (size_t i = 0; i < out.size(); ++i) in[static_cast<size_t>(perm->ints[i])] = out[i];
        return SetShape(x, in);
      }
      return true;
    }
    if (op == "MatMul") return RelateMatMul(*node);
    if (op == "Reshape") {
      MarkTarget(*node);
      if (Shaped(x) && Shaped(y)) Equation(node, DimsOf(x), DimsOf(y));
      return true;
    }
    if (op == "Expand") {
      MarkTarget(*node);
      if (!Shaped(x) || !Shaped(y)) return true;
      const std::vector<int> in = DimsOf(x);
      const std::vector<int> out = DimsOf(y);
      if (in.size() > out.size()) return Fail("Expand to a smaller rank");
      for (size_t i = 0; i < in.size(); ++i) {
        const int to = out[out.size() - in.size() + i];
        if (NumberOfDim(in[i]) != 1 && !Join(in[i], to)) return false;
      }
      return true;
    }
    if (op == "Unsqueeze" || op == "Squeeze") {
      const bool adds = op == "Unsqueeze";
      const int wide = adds ? y : x;
      const int narrow = adds ? x : y;
      const Parameter* axes = node->Find("axes");
      if (axes == nullptr || axes->kind != Parameter::Kind::kInts) return true;
      if (Shaped(narrow) && !Shaped(wide)) {
        std::vector<int> dims = DimsOf(narrow);
        std::vector<int64_t> at = Axes(*node, "axes", dims.size() + axes->ints.size());
        std::sort(at.begin(), at.end());
        for (int64_t axis : at) {
          if (axis < 0 || axis > static_cast<int64_t>(dims.size())) return Fail("an axis beyond the rank");
          dims.insert(dims.begin() + axis, NewDim(1));
        }
        return SetShape(wide, dims);
      }
      if (Shaped(wide)) {
        std::vector<int> dims = DimsOf(wide);
        std::vector<int64_t> at = Axes(*node, "axes", dims.size());
        std::sort(at.rbegin(), at.rend());
        for (int64_t axis : at) {
          if (axis < 0 || axis >= static_cast<int64_t>(dims.size())) return Fail("an axis beyond the rank");
          if (!Assign(dims[static_cast<size_t>(axis)], 1)) return false;
          dims.erase(dims.begin() + axis);
        }
        return SetShape(narrow, dims);
      }
      return true;
    }
    if (op.rfind("Reduce", 0) == 0) {
      if (!Shaped(x)) return true;
      std::vector<int> dims = DimsOf(x);
      std::vector<int64_t> axes = Axes(*node, "axes", dims.size());
      const bool keep = NumberParameter(*node, "keepdims", 1) != 0;
      if (axes.empty()) {
        for (size_t i = 0; i < dims.size(); ++i) axes.push_back(static_cast<int64_t>(i));
      }
      std::sort(axes.rbegin(), axes.rend());
      for (int64_t axis : axes) {
        if (axis < 0 || axis >= static_cast<int64_t>(dims.size())) return Fail("an axis beyond the rank");
        if (keep) {
          dims[static_cast<size_t>(axis)] = NewDim(1);
        } else {
          dims.erase(dims.begin() + axis);
        }
      }
      return Settled(*node) || Settle(*node, SetShape(y, dims));
    }
    if (op == "Slice" || op == "Split" || (op == "Gather" && node->half != kUnknown)) {
      if (node->half == kUnknown) return true;
      const int part = node->outputs[0];
      for (size_t i = 1; op == "Split" && Shaped(part) && i < node->outputs.size(); ++i) {
        if (!SetShape(node->outputs[i], DimsOf(part))) return false;
      }
      const GraphNode* key = node;
      if (!RelateAxis(x, part, -1, [&](int whole, int channels) {
            Equation(key, {whole}, {channels}, node->parts);
            return true;
          })) {
        return false;
      }
      if (op != "Gather" || !Shaped(part)) return true;
      GraphValue& index = values_[static_cast<size_t>(node->inputs[1])];
      index.constant = true;
      index.element = [half = node->half, parts = node->parts, strided = node->strided](int64_t i, int64_t count) {
        return static_cast<double>(strided ? half + parts * i : half * count + i);
      };
      return SetShape(node->inputs[1], {DimsOf(part).back()});
    }
    if (op == "ScatterND") {  // rows of the first axis, half of them
      if (Shaped(x) && !SetShape(y, DimsOf(x))) return false;
      if (Shaped(y) && !SetShape(x, DimsOf(y))) return false;
      const GraphNode* key = node;
      if (!RelateAxis(y, node->inputs[2], 0, [&](int whole, int rows) {
            Equation(key, {whole}, {rows}, 2);
            return true;
          })) {
        return false;
      }
      if (!Shaped(node->inputs[2]) || Shaped(node->inputs[1])) return true;
      GraphValue& rows = values_[static_cast<size_t>(node->inputs[1])];
      rows.constant = true;
      if (!rows.element) rows.element = [](int64_t i, int64_t) { return static_cast<double>(i); };
      return SetShape(node->inputs[1], {DimsOf(node->inputs[2]).front(), NewDim(1)});
    }
    if (op == "Concat") {
      int64_t axis = static_cast<int64_t>(NumberParameter(*node, "axis", 0));
      int shaped = kUnknown;
      for (int input : node->inputs) {
        if (Shaped(input)) shaped = input;
      }
      if (shaped == kUnknown) return true;
      std::vector<int> dims = DimsOf(shaped);
      if (axis < 0) axis += static_cast<int64_t>(dims.size());
      if (axis < 0 || axis >= static_cast<int64_t>(dims.size())) return Fail("an axis beyond the rank");
      const size_t at = static_cast<size_t>(axis);
      bool all = true;
      for (int input : node->inputs) {
        if (!Shaped(input)) {
          all = false;
          continue;
        }
        const std::vector<int> other = DimsOf(input);
        if (other.size() != dims.size()) return Fail("ranks differ");
        for (size_t i = 0; i < dims.size(); ++i) {
          if (i != at && !Join(dims[i], other[i])) return false;
        }
      }
      if (!all) return true;
      std::vector<int> out = dims;
      if (!Shaped(y)) {
        out[at] = NewDim();
        if (!SetShape(y, out)) return false;
      } else {
        out[at] = DimsOf(y)[at];
        if (!SetShape(y, out)) return false;
      }
      std::vector<int> parts;
      for (int input : node->inputs) parts.push_back(DimsOf(input)[at]);
      if (equations_of_.insert(node).second) sums_.push_back({parts, out[at]});
      return true;
    }
    for (const OperandShapes& row : OperandTable()) {
      if (row.op != op || row.domain != node->domain) continue;
      if (row.attribute == "without positions") {
        if (node->inputs.size() > 3 && node->inputs[3] != kUnknown) continue;
      } else if (!row.attribute.empty() && NumberParameter(*node, row.attribute, 1) != row.number) {
        continue;
      }
      return RelateByTable(*node, row);
    }
    if (op == "Attention") {
      if (!Shaped(x)) return Shaped(y) ? SetShape(x, DimsOf(y)) : true;
      std::vector<int> out = DimsOf(x);
      {
        const int k = node->inputs[1];
        const int v = node->inputs[2];
        if (!Shaped(k) || !Shaped(v)) return true;
        out.back() = DimsOf(v).back();
        const std::vector<int> keys = DimsOf(k);
        if (out.size() == 4 && keys.size() == 4 && equations_of_.insert(node).second) {
          equations_.push_back({{out[1]}, {keys[1], NewDim()}, 1});
        }
        const int mask = node->inputs.size() > 3 ? node->inputs[3] : kUnknown;
        if (mask != kUnknown && !Shaped(mask) && keys.size() == 4 &&
            !SetShape(mask, {random_.Chance(50) ? out[0] : NewDim(1), NewDim(1), out[2], keys[2]})) {
          return false;
        }
      }
      return SetShape(y, out);
    }
    if (op == "Gemm") {
      const int w = node->inputs[1];
      const bool a = NumberParameter(*node, "transA", 0) != 0;
      const bool b = NumberParameter(*node, "transB", 0) != 0;
      if (!Shaped(x) && !SetShape(x, {NewDim(), NewDim()})) return false;
      if (DimsOf(x).size() != 2) return Fail("Gemm takes matrices");
      if (!Shaped(w)) {
        const int k = DimsOf(x)[a ? 0 : 1];
        if (!SetShape(w, b ? std::vector<int>{NewDim(), k} : std::vector<int>{k, NewDim()})) return false;
      }
      if (DimsOf(w).size() != 2) return Fail("Gemm takes matrices");
      if (!Join(DimsOf(x)[a ? 0 : 1], DimsOf(w)[b ? 1 : 0])) return false;
      const int n = DimsOf(w)[b ? 0 : 1];
      if (node->inputs.size() > 2 && node->inputs[2] != kUnknown && !Shaped(node->inputs[2]) &&
          !SetShape(node->inputs[2], {n}))
        return false;
      return SetShape(y, {DimsOf(x)[a ? 1 : 0], n});
    }
    if (node->schema != nullptr && node->schema->elementwise) return RelateElementwise(*node);
    if (op == "Softmax" || op == "LogSoftmax" || op == "Gelu" || op == "Swish" || node->inputs.size() == 1) {
      if (node->inputs.size() == 1 || op == "Softmax") {
        if (Shaped(x)) return SetShape(y, DimsOf(x));
        if (Shaped(y)) return SetShape(x, DimsOf(y));
      }
    }
    return true;
  }

  // A relation that makes new dims runs once.
  bool Settled(const GraphNode& node) const { return equations_of_.count(&node) > 0; }
  bool Settle(const GraphNode& node, bool result) {
    if (result) equations_of_.insert(&node);
    return result;
  }

  void MarkTarget(const GraphNode& node) {
    if (node.inputs.size() > 1 && node.inputs[1] != kUnknown &&
        values_[static_cast<size_t>(node.inputs[1])].node == kUnknown) {
      values_[static_cast<size_t>(node.inputs[1])].target = true;
    }
  }

  bool RelateByTable(const GraphNode& node, const OperandShapes& row) {
    std::map<char, int> letters;
    std::optional<std::vector<int>> any;
    std::vector<std::pair<int, std::string_view>> operands;
    for (size_t i = 0; i < row.inputs.size() && i < node.inputs.size(); ++i) {
      if (node.inputs[i] != kUnknown) operands.emplace_back(node.inputs[i], row.inputs[i]);
    }
    for (int output : node.outputs) operands.emplace_back(output, row.output);
    for (const auto& [value, letter] : operands) {
      if (!Shaped(value)) continue;
      const std::vector<int> dims = DimsOf(value);
      const size_t star = letter.find('*');
      const size_t named = letter.size() - (star == std::string_view::npos ? 0 : 1);
      if (star == std::string_view::npos ? dims.size() != named : dims.size() < named) return Fail("a rank that does not fit");
      size_t at = 0;
      std::vector<int> middle;
      for (char c : letter) {
        if (c == '*') {
          for (size_t k = dims.size() - named; k > 0; --k) middle.push_back(dims[at++]);
        } else if (c == '1' || c == '#') {
          if (!Assign(dims[at++], c == '1' ? 1 : 64)) return false;
        } else {
          const auto [entry, fresh] = letters.try_emplace(c, dims[at]);
          if (!fresh && !Join(entry->second, dims[at])) return false;
          ++at;
        }
      }
      if (star == std::string_view::npos) continue;
      for (size_t k = 0; any.has_value() && k < middle.size(); ++k) {
        if (any->size() != middle.size()) return Fail("a rank that does not fit");
        if (!Join((*any)[k], middle[k])) return false;
      }
      any = middle;
    }
    for (const auto& [value, letter] : operands) {
      if (Shaped(value) || (letter.find('*') != std::string_view::npos && !any.has_value())) continue;
      std::vector<int> dims;
      for (char c : letter) {
        if (c == '*') {
          dims.insert(dims.end(), any->begin(), any->end());
        } else if (c == '1' || c == '#') {
          dims.push_back(NewDim(c == '1' ? 1 : 64));
        } else {
          if (letters.count(c) == 0) letters[c] = NewDim();
          dims.push_back(letters[c]);
        }
      }
      if (!SetShape(value, dims)) return false;
    }
    for (const auto& [letter, dim] : letters) {
      const auto large = letters.find(static_cast<char>(letter - 'a' + 'A'));
      if (letter >= 'a' && letter <= 'z' && large != letters.end()) Equation(&node, {large->second}, {dim}, 2);
    }
    for (const char* name : {"groups", "num_groups", "num_heads"}) {
      const double groups = NumberParameter(node, name, 0);
      if (groups > 0 && letters.count('C') > 0 && equations_of_.count(&node) == 0) {
        Equation(&node, {letters['C']}, {NewDim()}, groups);
      }
    }
    return true;
  }

  bool RelateMatMul(const GraphNode& node) {
    const int a = node.inputs[0];
    const int b = node.inputs[1];
    const int y = node.outputs[0];
    if (Shaped(a) && !Shaped(b) && values_[static_cast<size_t>(b)].node == kUnknown && Waits(b)) {
      if (!SetShape(b, {DimsOf(a).back(), NewDim()})) return false;
    }
    if (!Shaped(a) || !Shaped(b)) return true;
    const std::vector<int> p = DimsOf(a);
    const std::vector<int> q = DimsOf(b);
    if (p.size() < 2 || q.size() < 2) return Fail("MatMul of vectors");
    if (!Join(p.back(), q[q.size() - 2])) return false;
    std::vector<int> out = p.size() >= q.size() ? p : q;
    out[out.size() - 2] = p[p.size() - 2];
    out[out.size() - 1] = q.back();
    for (size_t i = 3; i <= std::min(p.size(), q.size()); ++i) {
      const int u = p[p.size() - i];
      const int v = q[q.size() - i];
      if (NumberOfDim(u) == 1) {
        out[out.size() - i] = v;
      } else if (NumberOfDim(v) == 1) {
        out[out.size() - i] = u;
      } else if (!Join(u, v)) {
        return false;
      }
    }
    return SetShape(y, out);
  }

  // No condition speaks of the value's shape any more.
  bool Waits(int value) {
    for (const PendingCondition& pending : conditions_) {
      if (pending.done || !IsShapeCondition(*pending.condition)) continue;
      if (ValueOf(pending.condition->left.kind == Expression::Kind::kCall
                      ? pending.condition->left.arguments[0]
                      : pending.condition->right.arguments[0],
                  pending.frame) == value)
        return false;
    }
    return true;
  }

  // --- numbers for dims --------------------------------------------------------------------------------

  // Makes `expression` equal `target` where one name in it has no number yet. Sets *moved.
  bool Solve(const Expression& expression, Frame* frame, double target, bool* moved) {
    switch (expression.kind) {
      case Expression::Kind::kName: {
        if (expression.slot < 0) return true;
        return Solve(&frame->slots[static_cast<size_t>(expression.slot)], target, moved);
      }
      case Expression::Kind::kBinary: {
        const std::optional<Result> left = Evaluate(expression.arguments[0], frame);
        const std::optional<Result> right = Evaluate(expression.arguments[1], frame);
        if (left.has_value() == right.has_value()) {
          // n * n
          const Expression& a = expression.arguments[0];
          const Expression& b = expression.arguments[1];
          const bool square = !left.has_value() && expression.text == "*" && a.kind == Expression::Kind::kName &&
                              b.kind == Expression::Kind::kName && a.slot >= 0 && a.slot == b.slot;
          return !square || Solve(a, frame, std::sqrt(target), moved);
        }
        const char op = expression.text[0];
        if (right.has_value()) {
          const double b = right->number;
          const double a = op == '+' ? target - b : op == '-' ? target + b : op == '*' ? target / b : target * b;
          return Solve(expression.arguments[0], frame, a, moved);
        }
        const double a = left->number;
        const double b = op == '+' ? target - a : op == '-' ? a - target : op == '*' ? target / a : a / target;
        return Solve(expression.arguments[1], frame, b, moved);
      }
      case Expression::Kind::kCall: {
        const int value = expression.arguments.empty() ? kUnknown : ValueOf(expression.arguments[0], frame);
        if (expression.text == "value" && value != kUnknown) {
          GraphValue& constant = values_[static_cast<size_t>(value)];
          if (!constant.number_fixed) {
            constant.number = target;
            constant.number_fixed = true;
            *moved = true;
          }
        } else if (expression.text == "rank" && value != kUnknown && !Shaped(value)) {
          if (target < 0 || target > 6) return Fail("a rank that no graph has");
          std::vector<int> dims(static_cast<size_t>(target));
          for (int& dim : dims) dim = NewDim();
          *moved = true;
          return SetShape(value, dims);
        } else if (expression.text == "dim" && Shaped(value)) {
          const std::optional<Result> axis = Evaluate(expression.arguments[1], frame);
          const std::vector<int> dims = DimsOf(value);
          int64_t at = axis.has_value() ? static_cast<int64_t>(axis->number) : 99;
          if (at < 0) at += static_cast<int64_t>(dims.size());
          if (at >= 0 && at < static_cast<int64_t>(dims.size()) && NumberOfDim(dims[static_cast<size_t>(at)]) < 0) {
            Slot slot = Slot::Of(Slot::Kind::kDim);
            slot.dim = dims[static_cast<size_t>(at)];
            return Solve(&slot, target, moved);
          }
        }
        return true;
      }
      default:
        return true;
    }
  }

  bool Solve(Slot* slot, double target, bool* moved) {
    if (slot->kind == Slot::Kind::kDim && NumberOfDim(slot->dim) < 0) {
      if (target < 1 || target != std::floor(target)) return Fail(fmt::format("a dim of {}", target));
      *moved = true;
      return Assign(slot->dim, static_cast<int64_t>(target));
    }
    if (slot->kind == Slot::Kind::kUnbound) {
      slot->kind = Slot::Kind::kNumber;
      slot->number = target;
      *moved = true;
    }
    if (slot->kind == Slot::Kind::kExpression) {
      if (Evaluate(*slot).has_value()) return true;
      return Solve(*slot->expression, slot->frame, target, moved);
    }
    return true;
  }

  // left = right * factor, products of dims.
  bool SolveProduct(const std::vector<int>& left, const std::vector<int>& right, double factor, bool* moved) {
    std::vector<int> a;
    std::vector<int> b;
    for (int dim : left) a.push_back(Root(dim));
    for (int dim : right) b.push_back(Root(dim));
    for (size_t i = 0; i < a.size();) {
      auto same = std::find(b.begin(), b.end(), a[i]);
      if (same == b.end()) {
        ++i;
        continue;
      }
      b.erase(same);
      a.erase(a.begin() + static_cast<std::ptrdiff_t>(i));
    }
    for (int dim : a) dims_[static_cast<size_t>(dim)].locked = true;
    for (int dim : b) dims_[static_cast<size_t>(dim)].locked = true;
    double product_a = 1;
    double product_b = factor;
    int unknown = kUnknown;
    int unknowns = 0;
    bool in_a = false;
    for (const auto* side : {&a, &b}) {
      for (int dim : *side) {
        const int64_t number = NumberOfDim(dim);
        if (number < 0) {
          unknown = dim;
          in_a = side == &a;
          ++unknowns;
        } else {
          (side == &a ? product_a : product_b) *= static_cast<double>(number);
        }
      }
    }
    if (unknowns == 0) return product_a == product_b || Fail("numbers of elements differ");
    if (unknowns > 1) return true;
    const double number = in_a ? product_b / product_a : product_a / product_b;
    if (number != std::floor(number)) return Fail("a dim that is no whole number");
    *moved = true;
    return Assign(unknown, static_cast<int64_t>(number));
  }

  bool Number() {
    // Equalities of conditions join the ones noted on the way.
    for (PendingCondition& pending : conditions_) {
      if (pending.condition->relation != Condition::Relation::kEqual || IsShapeCondition(*pending.condition))
        continue;
      LockNames(pending.condition->left, pending.frame);
      LockNames(pending.condition->right, pending.frame);
    }
    for (auto& [a, b] : equal_) {
      for (Slot* slot : {&a, &b}) {
        if (slot->kind == Slot::Kind::kDim) dims_[static_cast<size_t>(Root(slot->dim))].locked = true;
        if (slot->kind == Slot::Kind::kExpression) LockNames(*slot->expression, slot->frame);
      }
    }
    for (PendingCondition& pending : conditions_) {
      LockCalls(pending.condition->left, pending.frame, false);
      LockCalls(pending.condition->right, pending.frame, false);
    }
    for (const GraphValue& value : values_) {
      if (!value.constant) continue;
      for (int dim : value.dims) dims_[static_cast<size_t>(Root(dim))].locked = true;
    }
    const std::vector<Dimension> before = dims_;
    const std::vector<GraphValue> values_before = values_;
    std::vector<std::vector<Slot>> slots_before;
    for (const Frame& frame : frames_) slots_before.push_back(frame.slots);
    for (int attempt = 0; attempt < 30; ++attempt) {
      failure_.clear();
      dims_ = before;
      values_ = values_before;
      for (size_t i = 0; i < slots_before.size(); ++i) frames_[i].slots = slots_before[i];
      if (TryNumbers()) return true;
    }
    return false;
  }

  void LockNames(const Expression& expression, Frame* frame) {
    if (expression.kind == Expression::Kind::kName && expression.slot >= 0) {
      const Slot& slot = frame->slots[static_cast<size_t>(expression.slot)];
      if (slot.kind == Slot::Kind::kDim) dims_[static_cast<size_t>(Root(slot.dim))].locked = true;
      if (slot.kind == Slot::Kind::kExpression) LockNames(*slot.expression, slot.frame);
    }
    for (const Expression& argument : expression.arguments) LockNames(argument, frame);
  }

  // Dims that a function reads as numbers: number (product (shape (x))), size (x, axes), dim (x, i).
  void LockCalls(const Expression& expression, Frame* frame, bool all) {
    if (expression.kind == Expression::Kind::kCall) {
      all = all || expression.text == "number";
      const int value = expression.arguments.empty() ? kUnknown : ValueOf(expression.arguments[0], frame);
      if (Shaped(value)) {
        const std::vector<int> dims = DimsOf(value);
        const bool some = expression.text == "size" || expression.text == "dim";
        const auto axes = some ? AxesOf(expression.arguments[1], frame, dims.size()) : std::nullopt;
        for (size_t i = 0; i < dims.size(); ++i) {
          const bool named = axes.has_value() && std::find(axes->begin(), axes->end(), i) != axes->end();
          if (all || named) dims_[static_cast<size_t>(Root(dims[i]))].locked = true;
        }
      }
    }
    for (const Expression& argument : expression.arguments) LockCalls(argument, frame, all);
  }

  // One number, where a result is one.
  static std::optional<double> OneNumber(const std::optional<Result>& result) {
    if (!result.has_value()) return std::nullopt;
    if (result->kind == Result::Kind::kNumber) return result->number;
    if (result->kind == Result::Kind::kList && result->list.size() == 1) return OneNumber(result->list[0]);
    return std::nullopt;
  }

  // What an equality says about the side that is not known yet.
  bool SolveEqualities(bool* moved) {
    for (auto& [a, b] : equal_) {
      const std::optional<Result> x = Evaluate(a);
      const std::optional<Result> y = Evaluate(b);
      if (x.has_value() && y.has_value() && !Same(*x, *y)) return Fail("two sides are not equal");
      const std::optional<double> left = OneNumber(x);
      const std::optional<double> right = OneNumber(y);
      if (left.has_value() && !y.has_value() && !Solve(&b, *left, moved)) return false;
      if (right.has_value() && !x.has_value() && !Solve(&a, *right, moved)) return false;
    }
    for (PendingCondition& pending : conditions_) {
      if (pending.condition->relation != Condition::Relation::kEqual || IsShapeCondition(*pending.condition)) continue;
      const Condition& condition = *pending.condition;
      const std::optional<Result> x = Evaluate(condition.left, pending.frame);
      const std::optional<Result> y = Evaluate(condition.right, pending.frame);
      const std::optional<double> left = OneNumber(x);
      const std::optional<double> right = OneNumber(y);
      if (left.has_value() && !y.has_value() && !Solve(condition.right, pending.frame, *left, moved)) return false;
      if (right.has_value() && !x.has_value() && !Solve(condition.left, pending.frame, *right, moved)) return false;
    }
    return true;
  }

  bool TryNumbers() {
    // Kernels take heads of 64 and 128 channels; graphs for lowerings have them often.
    if (frames_.front().rules != &library_ && random_.Chance(50)) {
      const int64_t width = random_.Chance(50) ? 64 : 128;
      for (const Slot& slot : frames_.front().slots) {
        if (slot.kind != Slot::Kind::kValue || !Shaped(slot.value) || DimsOf(slot.value).empty()) continue;
        const int last = DimsOf(slot.value).back();
        if (NumberOfDim(last) < 0 && random_.Chance(80) && !Assign(last, width)) return false;
      }
    }
    for (int round = 0; round < 200; ++round) {
      bool moved = true;
      while (moved) {
        moved = false;
        for (const auto& equation : equations_) {
          if (!SolveProduct(equation.left, equation.right, equation.factor, &moved)) return false;
        }
        for (const auto& [parts, whole] : sums_) {
          int64_t sum = 0;
          bool known = true;
          for (int part : parts) {
            known = known && NumberOfDim(part) >= 0;
            sum += NumberOfDim(part);
            dims_[static_cast<size_t>(Root(part))].locked = true;
          }
          dims_[static_cast<size_t>(Root(whole))].locked = true;
          if (!known) continue;
          if (NumberOfDim(whole) < 0) moved = true;
          if (!Assign(whole, sum)) return false;
        }
        if (!SolveEqualities(&moved)) return false;
      }
      std::vector<int> open;
      for (size_t i = 0; i < dims_.size(); ++i) {
        if (Root(static_cast<int>(i)) == static_cast<int>(i) && dims_[i].number < 0) open.push_back(static_cast<int>(i));
      }
      if (open.empty()) {
        for (size_t i = 0; i < values_.size() && !moved; ++i) {
          if (!values_[i].scalar || values_[i].number_fixed) continue;
          NumberOf(static_cast<int>(i));
          moved = true;
        }
        if (!moved) return true;
        continue;
      }
      static const std::vector<int64_t> kSizes = {1, 2, 2, 3, 4, 4, 5, 6, 8, 16, 16, 64};
      int64_t size = random_.Pick(kSizes);
      if (random_.Chance(50)) {
        // As large as another one: kernels want heads, widths and batches to agree where rules need not.
        const int64_t other = NumberOfDim(random_.Below(static_cast<int>(dims_.size())));
        if (other > 0) size = other;
      }
      if (!Assign(random_.Pick(open), size)) return false;
    }
    return Fail("dims that do not settle");
  }

  // --- types -------------------------------------------------------------------------------------------

  int TypeRoot(int value) const {
    while (types_[static_cast<size_t>(value)] != value) value = types_[static_cast<size_t>(value)];
    return value;
  }
  bool JoinTypes(int a, int b) {
    a = TypeRoot(a);
    b = TypeRoot(b);
    if (a == b) return true;
    const DataType x = known_types_[static_cast<size_t>(a)];
    const DataType y = known_types_[static_cast<size_t>(b)];
    if (x != DataType::kUndefined && y != DataType::kUndefined && x != y) {
      return Fail(fmt::format("types {} and {} meet", DataTypeName(x), DataTypeName(y)));
    }
    if (x == DataType::kUndefined) known_types_[static_cast<size_t>(a)] = y;
    types_[static_cast<size_t>(b)] = a;
    return true;
  }
  bool SetType(int value, DataType type) {
    DataType& known = known_types_[static_cast<size_t>(TypeRoot(value))];
    if (known != DataType::kUndefined && known != type) {
      return Fail(fmt::format("types {} and {} meet", DataTypeName(known), DataTypeName(type)));
    }
    known = type;
    return true;
  }

  bool Type() {
    for (const GraphNode& node : nodes_) {
      const int y = node.outputs[0];
      for (int output : node.outputs) {
        if (node.op == "Split" && !JoinTypes(y, output)) return false;
      }
      if (node.op == "Cast") {
        const Parameter* to = node.Find("to");
        if (to != nullptr && to->kind == Parameter::Kind::kType && !SetType(y, to->type)) return false;
        continue;
      }
      if (IsComparison(node.op) || IsLogical(node.op)) {
        if (!SetType(y, DataType::kBool)) return false;
        for (int input : node.inputs) {
          if (input == kUnknown) continue;
          if (IsLogical(node.op) ? !SetType(input, DataType::kBool) : !JoinTypes(node.inputs[0], input))
            return false;
        }
        continue;
      }
      for (size_t i = 0; i < node.inputs.size(); ++i) {
        const int input = node.inputs[i];
        if (input == kUnknown) continue;
        if (node.op == "Where" && i == 0) {
          if (!SetType(input, DataType::kBool)) return false;
          continue;
        }
        if (node.op == "Attention" && i == 3) continue;
        if (node.op == "RMSNormalization" && i == 0) continue;  // the result has the type of the scale
        if (node.op == "RotaryEmbedding" && i == (node.domain.empty() ? 3u : 1u)) {
          if (!SetType(input, DataType::kInt64)) return false;
          continue;
        }
        if (values_[static_cast<size_t>(input)].target || (i > 0 && (node.op == "Gather" || node.op == "Slice")) || (i == 1 && node.op == "ScatterND")) {
          if (!SetType(input, DataType::kInt64)) return false;
          continue;
        }
        if (node.op == "Shape") continue;
        if (!JoinTypes(y, input)) return false;
      }
      if (node.op == "Shape" && !SetType(y, DataType::kInt64)) return false;
    }
    for (PendingCondition& pending : conditions_) {
      const Condition& condition = *pending.condition;
      if (condition.relation != Condition::Relation::kEqual) continue;
      if (Calls(condition.left, "dtype") && condition.right.kind == Expression::Kind::kName && condition.right.slot < 0) {
        const int value = ValueOf(condition.left.arguments[0], pending.frame);
        const std::optional<Result> type = Evaluate(condition.right, pending.frame);
        if (value != kUnknown && type.has_value() && !SetType(value, type->type)) return false;
        continue;
      }
      if (!Calls(condition.left, "dtype") || !Calls(condition.right, "dtype")) continue;
      const int a = ValueOf(condition.left.arguments[0], pending.frame);
      const int b = ValueOf(condition.right.arguments[0], pending.frame);
      if (a != kUnknown && b != kUnknown && !JoinTypes(a, b)) return false;
    }
    // The network's type, first where the rule's own inputs are.
    for (size_t i = 0; i < values_.size(); ++i) {
      DataType& known = known_types_[static_cast<size_t>(TypeRoot(static_cast<int>(i)))];
      if (known == DataType::kUndefined) known = type_;
    }
    return true;
  }

  // Numbers as the type of the constant keeps them.
  bool Round() {
    for (size_t i = 0; i < values_.size(); ++i) {
      GraphValue& value = values_[i];
      if (!value.scalar || !std::isfinite(value.number)) continue;
      const DataType type = known_types_[static_cast<size_t>(TypeRoot(static_cast<int>(i)))];
      if (type == DataType::kFloat) value.number = static_cast<double>(static_cast<float>(value.number));
      if (type != DataType::kFloat16) continue;
      const double unit = std::ldexp(1.0, std::max(value.number == 0 ? -14 : std::ilogb(value.number), -14) - 10);
      value.number = std::nearbyint(value.number / unit) * unit;
    }
    return true;
  }

  // --- conditions --------------------------------------------------------------------------------------

  // What only a comparison of numbers says is checked, what only the matcher knows is left to it.
  bool CheckConditions() {
    for (auto& [a, b] : equal_) {
      const std::optional<Result> x = Evaluate(a);
      const std::optional<Result> y = Evaluate(b);
      if (x.has_value() && y.has_value() && !Same(*x, *y)) return Fail("two sides are not equal");
    }
    for (int value : rows_) {
      if (Shaped(value) && DimsOf(value).size() < 2) return Fail("channels of nothing");
    }
    for (int value : channels_) {
      if (Shaped(value) && NumberOfDim(DimsOf(value).back()) < 2) return Fail("one channel");
    }
    for (PendingCondition& pending : conditions_) {
      const Condition& condition = *pending.condition;
      if (condition.relation == Condition::Relation::kLet || IsShapeCondition(condition)) continue;
      if (condition.relation == Condition::Relation::kHolds) {
        const std::optional<Result> holds = Evaluate(condition.left, pending.frame);
        if (holds.has_value() && holds->kind == Result::Kind::kNumber && holds->number == 0) return Fail(condition.source);
        continue;
      }
      const std::optional<Result> x = Evaluate(condition.left, pending.frame);
      const std::optional<Result> y = Evaluate(condition.right, pending.frame);
      if (!x.has_value() || !y.has_value()) continue;
      bool holds = true;
      switch (condition.relation) {
        case Condition::Relation::kEqual:
          holds = Same(*x, *y);
          break;
        case Condition::Relation::kNotEqual:
          holds = !Same(*x, *y);
          break;
        case Condition::Relation::kLess:
          holds = x->number < y->number;
          break;
        case Condition::Relation::kLessEqual:
          holds = x->number <= y->number;
          break;
        case Condition::Relation::kGreater:
          holds = x->number > y->number;
          break;
        case Condition::Relation::kGreaterEqual:
          holds = x->number >= y->number;
          break;
        default:
          break;
      }
      if (!holds) return Fail(condition.source);
    }
    return true;
  }

  bool ByFunction(PendingCondition* pending) {
    return ByFunction(pending, pending->condition->left) && ByFunction(pending, pending->condition->right);
  }
  bool ByFunction(PendingCondition* pending, const Expression& expression);

  std::optional<Specimen> Write(Frame* frame);

  struct Dimension {
    int parent = 0;
    int64_t number = -1;
    bool locked = false;  // in an equation: its number may not change from run to run
  };
  struct ProductEquation {
    std::vector<int> left;
    std::vector<int> right;
    double factor = 1;
  };

  friend class Writer;
  friend struct FunctionHint;

  const RuleSet& library_;
  Random& random_;
  Coverage& coverage_;
  int opset_;
  DataType type_;
  std::string failure_;
  std::deque<Frame> frames_;
  std::deque<GraphNode> nodes_;
  std::vector<GraphValue> values_;
  std::vector<int> types_;
  std::vector<DataType> known_types_;
  std::vector<Dimension> dims_;
  std::vector<PendingCondition> conditions_;
  std::vector<std::pair<Slot, Slot>> equal_;
  std::vector<ProductEquation> equations_;
  std::vector<std::pair<int, int>> same_shapes_;
  std::vector<int> rows_;      // of a rank above 1
  std::vector<int> channels_;  // whose last axis is more than one channel: of one, halves and pairs are the same and norms nothing
  std::vector<std::pair<std::vector<int>, int>> sums_;
  std::set<const GraphNode*> equations_of_;
  std::set<std::pair<const PendingCondition*, const Expression*>> hinted_;
  std::map<std::pair<const Expression*, Frame*>, Result> called_;  // what calls give, where a hint decided it
  std::vector<std::pair<std::string, int>> choices_;
  std::vector<const Rule*> stack_;
  int depth_ = 0;
  bool changed_ = false;
};

// --- what a pattern cannot say --------------------------------------------------------------------------
//
// One row for each function of patterns/functions whose truth must be built, not found: it gets the
// operands of the call, and does its part once they are known. True in *done when there is nothing left to do.
struct FunctionHint {
  std::string_view name;
  bool (*apply)(Builder* builder, PendingCondition* pending, const Expression& call, const std::vector<int>& operands, bool* done);

  // half (x) = 0 or 1
  static bool Half(Builder* builder, PendingCondition* pending, const Expression&, const std::vector<int>& operands, bool* done) {
    *done = true;
    const Expression& other =
        Builder::Calls(pending->condition->left, "half") ? pending->condition->right : pending->condition->left;
    const std::optional<Result> which = builder->Evaluate(other, pending->frame);
    if (operands[0] == kUnknown || !which.has_value()) return true;
    GraphValue& value = builder->values_[static_cast<size_t>(operands[0])];
    if (value.node == kUnknown) return builder->Fail("a half that nothing computes");
    GraphNode& node = builder->nodes_[static_cast<size_t>(value.node)];
    node.half = static_cast<int>(which->number);
    if (node.op == "Split" && value.output != node.half) {
      std::swap(node.outputs[0], node.outputs[1]);
      for (size_t i = 0; i < 2; ++i) {
        builder->values_[static_cast<size_t>(node.outputs[i])].output = static_cast<int>(i);
      }
    }
    return true;
  }

  static bool MaskFill(Builder* builder, PendingCondition*, const Expression&, const std::vector<int>& operands, bool* done) {
    *done = true;
    if (operands[0] == kUnknown) return true;
    GraphValue& value = builder->values_[static_cast<size_t>(operands[0])];
    static const std::vector<double> kFills = {-std::numeric_limits<double>::infinity(), -1e4, -65504, -1e9};
    value.scalar = true;
    value.number = builder->random_.Pick(kFills);
    value.number_fixed = true;
    return true;
  }

  static bool SameShape(Builder* builder, PendingCondition*, const Expression&, const std::vector<int>& operands, bool* done) {
    if (operands[0] == kUnknown || operands[1] == kUnknown) return *done = true;
    const bool a = builder->Shaped(operands[0]);
    if (!a && !builder->Shaped(operands[1])) return true;
    *done = true;
    return a ? builder->SetShape(operands[1], builder->DimsOf(operands[0]))
             : builder->SetShape(operands[0], builder->DimsOf(operands[1]));
  }

  static bool BroadcastsTo(Builder* builder, PendingCondition* pending, const Expression&, const std::vector<int>& operands, bool* done) {
    if (operands[0] == kUnknown || operands[1] == kUnknown ||
        builder->values_[static_cast<size_t>(operands[0])].scalar) {
      return *done = true;
    }
    if (!builder->Shaped(operands[1])) return true;
    std::vector<int> dims = builder->DimsOf(operands[1]);
    if (builder->Shaped(operands[0])) {
      *done = true;
      const std::vector<int> narrow = builder->DimsOf(operands[0]);
      if (narrow.size() > dims.size()) return builder->Fail("a rank too large to broadcast");
      for (size_t i = 1; i <= narrow.size(); ++i) {
        const int dim = narrow[narrow.size() - i];
        if (builder->NumberOfDim(dim) != 1 && !builder->Join(dim, dims[dims.size() - i])) return false;
      }
      return true;
    }
    *done = true;
    for (const PendingCondition& other : builder->conditions_) {  // as wide as another one, mostly
      if (other.frame != pending->frame || !Builder::Calls(other.condition->left, "broadcasts_to")) continue;
      const int narrow = builder->ValueOf(other.condition->left.arguments[0], other.frame);
      if (builder->ValueOf(other.condition->left.arguments[1], other.frame) != operands[1]) continue;
      if (builder->Shaped(narrow) && builder->random_.Chance(60)) return builder->SetShape(operands[0], builder->DimsOf(narrow));
    }
    if (dims.size() > 2 && builder->random_.Chance(30)) {
      dims.erase(dims.begin(), dims.begin() + builder->random_.Below(static_cast<int>(dims.size()) - 1));
    }
    for (size_t i = 0; i + 1 < dims.size(); ++i) {
      if (builder->random_.Chance(40)) dims[i] = builder->NewDim(1);
    }
    return builder->SetShape(operands[0], dims);
  }

  // explicit_mask (m, q, k): m is proved to hold 0 and what takes a key out of the softmax
  static bool ExplicitMask(Builder* builder, PendingCondition*, const Expression&, const std::vector<int>& operands, bool* done) {
    for (int operand : operands) {
      if (operand == kUnknown) return *done = true;
    }
    if (!builder->Shaped(operands[1]) || !builder->Shaped(operands[2])) return true;
    *done = true;
    builder->values_[static_cast<size_t>(operands[0])].mask = true;
    if (builder->Shaped(operands[0])) return true;
    const std::vector<int> q = builder->DimsOf(operands[1]);
    const std::vector<int> k = builder->DimsOf(operands[2]);
    if (q.size() != 4 || k.size() != 4) return builder->Fail("a mask for no four dims");
    Random& random = builder->random_;
    // The operator Attention of ONNX Runtime wants a row for every query.
    const bool rows = std::any_of(builder->nodes_.begin(), builder->nodes_.end(), [&](const GraphNode& node) {
      return node.op == "Attention" && std::find(node.inputs.begin(), node.inputs.end(), operands[0]) != node.inputs.end();
    });
    std::vector<int> dims = {random.Chance(50) ? q[0] : builder->NewDim(1), builder->NewDim(1),
                             rows || random.Chance(60) ? q[2] : builder->NewDim(1), k[2]};
    if (random.Chance(30)) dims.erase(dims.begin(), dims.begin() + 1 + random.Below(2));
    return builder->SetShape(operands[0], dims);
  }

  // reduced (r, x, axes): x with 1 in place of the axes
  static bool Reduced(Builder* builder, PendingCondition* pending, const Expression& call, const std::vector<int>& operands,
                      bool* done) {
    if (operands[0] == kUnknown || operands[1] == kUnknown) return *done = true;
    if (!builder->Shaped(operands[1])) return true;
    std::vector<int> dims = builder->DimsOf(operands[1]);
    const auto axes = builder->AxesOf(call.arguments[2], pending->frame, dims.size());
    if (!axes.has_value()) return builder->Fail("an axis beyond the rank");
    *done = true;
    for (int64_t axis : *axes) dims[static_cast<size_t>(axis)] = builder->NewDim(1);
    GraphNode* node = builder->Producer(operands[0]);
    while (node != nullptr && node->schema->elementwise) node = builder->Producer(node->inputs[0]);  // scaled
    if (node != nullptr && node->op == "Unsqueeze") {
      Parameter* written = node->Find("axes");
      if (written != nullptr && written->kind == Parameter::Kind::kFree) {
        written->kind = Parameter::Kind::kInts;
        written->ints = *axes;
      }
    }
    return builder->SetShape(operands[0], dims);
  }

  // trailing_axes (axes)
  static bool Last(Builder* builder, PendingCondition* pending, const Expression& call, const std::vector<int>&, bool* done) {
    *done = true;
    return builder->Evaluate(call, pending->frame).has_value() || builder->Fail("axes that are not the last ones");
  }

  // A value of a shape, with dims of 1 in front of it in some graphs, but of no larger rank than x.
  static bool Weight(Builder* builder, int weight, std::vector<int> dims, size_t rank) {
    for (int dim : dims) builder->dims_[static_cast<size_t>(builder->Root(dim))].locked = true;
    if (weight == kUnknown || builder->Shaped(weight)) return true;
    while (dims.size() < rank && builder->random_.Chance(25)) dims.insert(dims.begin(), builder->NewDim(1));
    return builder->SetShape(weight, dims);
  }

  // norm_weight (w, x, axis, fill): the last dims of x
  static bool NormWeight(Builder* builder, PendingCondition* pending, const Expression& call,
                         const std::vector<int>& operands, bool* done) {
    if (operands[1] == kUnknown) return *done = true;
    if (!builder->Shaped(operands[1])) return true;
    const std::vector<int> dims = builder->DimsOf(operands[1]);
    const std::optional<double> axis = Builder::OneNumber(builder->Evaluate(call.arguments[2], pending->frame));
    *done = true;
    if (!axis.has_value()) return true;
    if (*axis >= 0 || -*axis > static_cast<double>(dims.size())) return builder->Fail("an axis beyond the rank");
    builder->channels_.push_back(operands[1]);  // of one number the norm is what rounding left
    return Weight(builder, operands[0], std::vector<int>(dims.end() + static_cast<int>(*axis), dims.end()), dims.size());
  }

  // channel_weight (w, x, fill): [C, 1, ...] beside x [N, C, ...]
  static bool Channels(Builder* builder, PendingCondition*, const Expression&, const std::vector<int>& operands, bool* done) {
    if (operands[1] == kUnknown) return *done = true;
    if (!builder->Shaped(operands[1])) return true;
    *done = true;
    const std::vector<int> of = builder->DimsOf(operands[1]);
    if (of.size() < 2) return builder->Fail("a value without channels");
    std::vector<int> dims = {of[1]};
    while (dims.size() + 1 < of.size()) dims.push_back(builder->NewDim(1));
    return Weight(builder, operands[0], dims, of.size());
  }

  // per_channel (w, x): [C]
  static bool PerChannel(Builder* builder, PendingCondition*, const Expression&, const std::vector<int>& operands, bool* done) {
    if (operands[0] == kUnknown || operands[1] == kUnknown) return *done = true;
    if (!builder->Shaped(operands[1])) return true;
    *done = true;
    const std::vector<int> of = builder->DimsOf(operands[1]);
    if (of.size() < 2) return builder->Fail("a value without channels");
    return builder->SetShape(operands[0], {of[1]});
  }

  static bool Constant(Builder* builder, PendingCondition*, const Expression&, const std::vector<int>& operands, bool* done) {
    *done = true;
    if (operands[0] != kUnknown) builder->values_[static_cast<size_t>(operands[0])].constant = true;
    return true;
  }

  // all_are (x, n): a constant of equal elements
  static bool AllAre(Builder* builder, PendingCondition* pending, const Expression& call, const std::vector<int>& operands,
                     bool* done) {
    *done = true;
    const std::optional<Result> number = builder->Evaluate(call.arguments[1], pending->frame);
    if (operands[0] == kUnknown || !number.has_value()) return true;
    GraphValue& value = builder->values_[static_cast<size_t>(operands[0])];
    value.constant = true;
    value.element = [n = number->number](int64_t, int64_t) { return n; };
    return true;
  }

  // linear (y), linear_input (y) ...: y is a linear layer of x, which is made where it is kUnknown
  static bool LinearOf(Builder* builder, const PendingCondition& pending, int y, int x, int percent_with_bias = 65) {
    Random& random = builder->random_;
    for (const PendingCondition& other : builder->conditions_) {
      if (other.frame == pending.frame && Builder::Calls(other.condition->left, "without_bias")) percent_with_bias = 0;
    }
    if (x == kUnknown) x = builder->NewValue("features");
    if (!builder->Shaped(x)) {
      std::vector<int> dims(builder->Shaped(y) ? builder->DimsOf(y).size() : static_cast<size_t>(2 + random.Below(2)));
      if (dims.size() < 2) return builder->Fail("a linear of a vector");
      for (int& dim : dims) dim = builder->NewDim();
      if (!builder->SetShape(x, dims)) return false;
    }
    const std::vector<int> dims = builder->DimsOf(x);
    const int n = builder->NewDim();
    const int weight = builder->NewConstant("weight");
    const int shift = builder->NewConstant("bias");
    builder->values_[static_cast<size_t>(weight)].fan_in = dims.back();
    const bool matrix = dims.size() == 2 && random.Chance(50);
    const bool turned = matrix && random.Chance(50);
    if (!builder->SetShape(weight, turned ? std::vector<int>{n, dims.back()} : std::vector<int>{dims.back(), n}) ||
        !builder->SetShape(shift, {n})) {
      return false;
    }
    if (matrix) {
      std::vector<int> inputs = {x, weight};
      if (random.Chance(percent_with_bias)) inputs.push_back(shift);
      std::vector<Parameter> parameters;
      if (turned) parameters.push_back(Parameter::Number("transB", 1));
      builder->Define({y}, "Gemm", inputs, parameters);
    } else if (random.Chance(percent_with_bias)) {
      builder->Define({y}, "Add", {builder->Make("MatMul", {x, weight}), shift});
    } else {
      builder->Define({y}, "MatMul", {x, weight});
    }
    return true;
  }

  // The sum or the product that is there already: what the rule leaves open of it is a weight and a bias [N].
  static bool WrittenLinear(Builder* builder, int y, bool* done) {
    auto learned = [builder](int value) {
      if (value == kUnknown || !builder->IsLeaf(value)) return false;
      builder->values_[static_cast<size_t>(value)].constant = true;
      return true;
    };
    const GraphNode* node = builder->Producer(y);
    std::vector<int> bias;
    if (node->op == "Add" && node->inputs.size() == 2) {
      bias.push_back(node->inputs[1]);
      node = builder->Producer(node->inputs[0]);
    }
    if (node == nullptr || (node->op != "MatMul" && node->op != "Gemm")) return *done = true;
    const int weight = node->inputs[1];
    if (node->inputs.size() > 2) bias.push_back(node->inputs[2]);
    if (learned(weight) && !builder->Shaped(weight)) return builder->SetShape(weight, {builder->NewDim(), builder->NewDim()});
    if (!builder->Shaped(y) || !builder->Shaped(node->inputs[0])) return true;
    *done = true;
    if (learned(weight)) builder->values_[static_cast<size_t>(weight)].fan_in = builder->DimsOf(node->inputs[0]).back();
    for (int value : bias) {
      if (learned(value) && !builder->Shaped(value) && !builder->SetShape(value, {builder->DimsOf(y).back()})) return false;
    }
    return true;
  }

  static bool Linear(Builder* builder, PendingCondition* pending, const Expression&, const std::vector<int>& operands, bool* done) {
    const int y = operands[0];
    const GraphNode* node = builder->Producer(y);
    if (node != nullptr && !node->ghost) return WrittenLinear(builder, y, done);
    *done = true;
    if (y == kUnknown) return true;
    if (node == nullptr) return LinearOf(builder, *pending, y, kUnknown);
    // what an emission writes: its other operand is a weight
    if (node->inputs.size() != 2 || node->inputs[1] == kUnknown) return true;
    builder->values_[static_cast<size_t>(node->inputs[1])].constant = true;
    const int product = node->inputs[0];
    if (node->op != "Add" || product == kUnknown) return true;
    const GraphNode* inner = builder->Producer(product);
    if (inner == nullptr) return LinearOf(builder, *pending, product, kUnknown, 0);
    if (inner->ghost && inner->op == "MatMul") builder->values_[static_cast<size_t>(inner->inputs[1])].constant = true;
    return true;
  }

  // both_linear (a, b), merged_linear (a, b): linears of one input
  static bool BothLinear(Builder* builder, PendingCondition* pending, const Expression&, const std::vector<int>& operands,
                         bool* done) {
    *done = true;
    for (int operand : operands) {
      if (operand == kUnknown || !builder->IsLeaf(operand)) return true;
    }
    const int x = builder->NewValue("features");
    const int with_bias = std::vector<int>{0, 65, 100}[static_cast<size_t>(builder->random_.Below(3))];  // most models: none or both
    return LinearOf(builder, *pending, operands[0], x, with_bias) && LinearOf(builder, *pending, operands[1], x, with_bias);
  }

  // gate_pair (a, b): the halves of one value, or linears of one
  static bool GatePair(Builder* builder, PendingCondition* pending, const Expression& call, const std::vector<int>& operands,
                       bool* done) {
    *done = true;
    for (int operand : operands) {
      if (operand == kUnknown || !builder->IsLeaf(operand)) return true;
    }
    const bool merged = std::any_of(builder->conditions_.begin(), builder->conditions_.end(), [](const PendingCondition& other) {
      return Builder::Calls(other.condition->right, "merged_input");
    });
    if (merged || builder->random_.Chance(40)) return BothLinear(builder, pending, call, operands, done);
    const bool first = builder->random_.Chance(50);
    builder->CutInto(builder->NewValue("packed"), {operands[first ? 0 : 1], operands[first ? 1 : 0]}, builder->random_.Chance(20));
    return true;
  }

  // in_place_safe (x): something computes x
  static bool ReadOnce(Builder* builder, PendingCondition*, const Expression&, const std::vector<int>& operands, bool* done) {
    *done = true;
    if (operands[0] != kUnknown && builder->IsLeaf(operands[0])) builder->Define({operands[0]}, "Tanh", {builder->NewValue("before")});
    return true;
  }

  // rotation (r, x, sign, signs): r is x with its channels turned
  static bool Rotation(Builder* builder, PendingCondition* pending, const Expression& call, const std::vector<int>& operands,
                       bool* done) {
    *done = true;
    const int r = operands[0];
    const int x = operands[1];
    if (r == kUnknown || x == kUnknown) return true;
    const int signs = operands.size() > 3 ? operands[3] : kUnknown;
    if (builder->IsLeaf(r)) {
      const bool leaf = builder->IsLeaf(x);
      const std::vector<std::string> names = {"half", "interleaved", "quarter", "interleave_half"};
      const auto chosen = builder->called_.find({&call, pending->frame});
      std::string mode;
      if (chosen != builder->called_.end()) {
        mode = chosen->second.text;
      } else if (const std::optional<Result> wanted = builder->Wanted(*pending, call); wanted.has_value()) {
        mode = wanted->text;
        if (mode == "interleave_half" && !leaf) return builder->Fail("channels that are computed already");
      } else {
        const int option = builder->Choose(pending->frame->path + " > rotation", names, {true, true, true, leaf && operands.size() > 3});
        mode = names[static_cast<size_t>(option)];
      }
      builder->called_[{&call, pending->frame}] = Result::Text(mode);
      const std::optional<double> given = Builder::OneNumber(builder->Evaluate(call.arguments[2], pending->frame));
      const double sign = given.value_or(1);
      int pairs = kUnknown;
      for (const PendingCondition& other : builder->conditions_) {
        if (other.frame != pending->frame || !Builder::Calls(other.condition->right, "rotation_source")) continue;
        const auto [entry, fresh] = builder->called_.try_emplace({&other.condition->right, pending->frame}, Result::Value(x));
        if (fresh && mode == "interleave_half") {
          entry->second.value = builder->NewValue("pairs");
          builder->same_shapes_.emplace_back(entry->second.value, x);
          builder->changed_ = true;
        }
        pairs = entry->second.value;
      }
      if (mode == "interleave_half") {
        if (!builder->Shaped(x)) {
          *done = false;
          return true;
        }
        // [..., D] as [..., D/2, 2], and the last two axes exchanged
        std::vector<int> dims = builder->DimsOf(x);
        dims.back() = builder->NewDim();
        dims.push_back(builder->NewDim(2));
        std::vector<int64_t> perm(dims.size());
        for (size_t i = 0; i < perm.size(); ++i) perm[i] = static_cast<int64_t>(i);
        std::swap(perm[perm.size() - 1], perm[perm.size() - 2]);
        const int apart = builder->Make("Reshape", {pairs, builder->NewTarget()});
        if (!builder->SetShape(apart, dims)) return false;
        const int turned = builder->Make("Transpose", {apart}, {Parameter::Ints("perm", perm)});
        builder->Define({x}, "Reshape", {turned, builder->NewTarget()});
      }
      const int blocks = mode == "quarter" ? 4 : 2;
      const bool strided = mode == "interleaved";
      std::vector<int> parts = builder->Cut(x, blocks, strided);
      for (size_t i = 0; i < parts.size(); i += 2) std::swap(parts[i], parts[i + 1]);
      for (size_t i = 0; i < parts.size(); ++i) {
        if (signs == kUnknown && (i % 2 == 0) == (sign > 0)) parts[i] = builder->Negative(parts[i]);
      }
      if (strided) {
        for (int& part : parts) part = builder->Make("Unsqueeze", {part}, {Parameter::Ints("axes", {-1})});
        builder->Define({r}, "Reshape",
                        {builder->Make("Concat", parts, {Parameter::Number("axis", -1)}), builder->NewTarget()});
        builder->same_shapes_.emplace_back(r, x);
      } else {
        builder->Define({r}, "Concat", parts, {Parameter::Number("axis", -1)});
      }
      if (signs != kUnknown) {
        GraphValue& vector = builder->values_[static_cast<size_t>(signs)];
        vector.constant = true;
        vector.element = [sign, blocks, strided](int64_t i, int64_t count) {
          return (strided ? i % 2 == 0 : i * blocks / count % 2 == 0) ? -sign : sign;
        };
      }
    }
    if (signs == kUnknown || builder->Shaped(signs)) return true;
    if (!builder->Shaped(x)) {
      *done = false;
      return true;
    }
    return builder->SetShape(signs, {builder->DimsOf(x).back()});
  }

  // The value that two parts are cut from: one that the lowering names, or a new one.
  static int WholeOf(Builder* builder, PendingCondition* pending, const std::vector<std::string_view>& calls) {
    for (const PendingCondition& other : builder->conditions_) {
      if (other.frame != pending->frame) continue;
      for (std::string_view name : calls) {
        if (!Builder::Calls(other.condition->right, name)) continue;
        const auto [entry, fresh] = builder->called_.try_emplace({&other.condition->right, pending->frame});
        if (fresh) entry->second = Result::Value(builder->NewValue("x"));
        return entry->second.value;
      }
    }
    return builder->NewValue("x");
  }

  // pair_rotation (y, a, b, x1, x2): y is a and b together again as x was before it was cut into x1 and x2
  static bool PairRotation(Builder* builder, PendingCondition* pending, const Expression& call,
                           const std::vector<int>& operands, bool* done) {
    for (int operand : operands) {
      if (operand == kUnknown) return *done = true;
    }
    const int y = operands[0];
    GraphNode* join = builder->Producer(y);
    const bool reshaped = join != nullptr && join->op == "Reshape";
    if (reshaped) join = builder->Producer(join->inputs[0]);
    if (join == nullptr || join->op != "Concat") return builder->Fail("parts that are not joined");
    std::vector<GraphNode*> apart;
    for (size_t i = 0; i < 2; ++i) {
      GraphNode* node = builder->Producer(join->inputs[i]);
      if (join->inputs[i] != operands[1 + i]) apart.push_back(node);
    }
    if (apart.size() == 1) return builder->Fail("one part with an axis more");
    if (builder->IsLeaf(operands[3])) {
      std::string mode = "half";
      const std::optional<Result> wanted = builder->Wanted(*pending, call);
      if (!apart.empty()) {
        const std::vector<std::string> names = {"half", "interleaved"};
        mode = wanted.has_value() ? wanted->text
                                  : names[static_cast<size_t>(builder->Choose(pending->frame->path + " > pair_rotation", names))];
      }
      if (wanted.has_value() && wanted->text != mode) return builder->Fail("another mode");
      if (mode != "half" && mode != "interleaved") return builder->Fail("a mode that parts do not have");
      builder->called_[{&call, pending->frame}] = Result::Text(mode);
      const int axis = apart.empty() || mode == "interleaved" ? -1 : -2;
      *join->Find("axis") = Parameter::Number("axis", axis);
      for (GraphNode* node : apart) {
        if (node->op == "Unsqueeze") *node->Find("axes") = Parameter::Ints("axes", {axis});
      }
      const int x = WholeOf(builder, pending, {"joined_source"});
      builder->CutInto(x, {operands[3], operands[4]}, mode == "interleaved");
      if (reshaped) builder->same_shapes_.emplace_back(x, y);
    }
    if (!builder->Shaped(operands[1])) return true;
    *done = true;
    const std::string mode = builder->called_[{&call, pending->frame}].text;
    for (GraphNode* node : apart) {
      if (node->op != "Reshape") continue;
      std::vector<int> dims = builder->DimsOf(operands[1]);
      dims.insert(dims.end() - (mode == "interleaved" ? 0 : 1), builder->NewDim(1));
      if (!builder->SetShape(node->outputs[0], dims)) return false;
    }
    return true;
  }

  // joined_source (a, b, y, mode): a and b are cut from a value like y
  static bool Whole(Builder* builder, PendingCondition* pending, const Expression& call, const std::vector<int>& operands,
                    bool* done) {
    *done = true;
    if (operands[0] == kUnknown || operands[1] == kUnknown || !builder->IsLeaf(operands[0])) return true;
    if (call.arguments.size() < 4) return true;  // pair_rotation cuts
    const int x = WholeOf(builder, pending, {"joined_source"});
    const bool interleaved = call.arguments[3].text == "interleaved";
    const GraphNode* y = builder->Producer(operands[2]);
    if (y != nullptr && y->op == "Reshape") {  // each channel beside an axis of 1
      const std::vector<int> parts = builder->Cut(x, 2, interleaved);
      for (size_t i = 0; i < 2; ++i) builder->Define({operands[i]}, "Unsqueeze", {parts[i]}, {Parameter::Ints("axes", {-1})});
      builder->same_shapes_.emplace_back(x, operands[2]);
    } else {
      builder->CutInto(x, {operands[0], operands[1]}, interleaved);
    }
    return true;
  }

  // written_rotation (y, p, i, j, x1, x2): the parts are written to the rows i and j of what is y transposed
  static bool WrittenRotation(Builder* builder, PendingCondition* pending, const Expression& call, const std::vector<int>& operands,
                              bool* done) {
    *done = true;
    for (size_t i : {0, 2, 3, 4, 5}) {
      if (operands[i] == kUnknown) return true;
    }
    if (!builder->IsLeaf(operands[4])) return true;
    const std::vector<std::string> names = {"half", "interleaved", "interleave_half"};
    const std::optional<Result> wanted = builder->Wanted(*pending, call);
    const std::string mode = wanted.has_value()
                                 ? wanted->text
                                 : names[static_cast<size_t>(builder->Choose(pending->frame->path + " > written_rotation", names))];
    if (std::find(names.begin(), names.end(), mode) == names.end()) return builder->Fail("a mode that parts do not have");
    builder->called_[{&call, pending->frame}] = Result::Text(mode);
    for (int64_t part : {0, 1}) {
      builder->values_[static_cast<size_t>(operands[2 + static_cast<size_t>(part)])].element =
          [pairs = mode == "interleaved", part](int64_t i, int64_t count) {
            return static_cast<double>(pairs ? 2 * i + part : part * count + i);
          };
    }
    const int x = WholeOf(builder, pending, {"joined_source"});
    builder->CutInto(x, {operands[4], operands[5]}, mode != "half");
    builder->same_shapes_.emplace_back(x, operands[0]);
    return true;
  }

  // part_rotation (a, x1, x2): the halves, or the even and the odd channels, of one value
  static bool PartRotation(Builder* builder, PendingCondition* pending, const Expression& call, const std::vector<int>& operands,
                           bool* done) {
    *done = true;
    if (operands[1] == kUnknown || operands[2] == kUnknown || !builder->IsLeaf(operands[1])) return true;
    const std::vector<std::string> names = {"half", "interleave_half"};
    const std::optional<Result> wanted = builder->Wanted(*pending, call);
    const std::string mode = wanted.has_value()
                                 ? wanted->text
                                 : names[static_cast<size_t>(builder->Choose(pending->frame->path + " > part_rotation", names))];
    if (mode != names[0] && mode != names[1]) return builder->Fail("a mode that parts do not have");
    builder->called_[{&call, pending->frame}] = Result::Text(mode);
    builder->CutInto(WholeOf(builder, pending, {"part_whole"}), {operands[1], operands[2]}, mode == names[1]);
    return true;
  }

  // rotary_table (a, b, x1, mode), matrix_table (f, g, name): of one shape
  static bool OneShape(Builder* builder, PendingCondition*, const Expression&, const std::vector<int>& operands, bool* done) {
    *done = true;
    if (operands[0] != kUnknown && operands[1] != kUnknown) builder->same_shapes_.emplace_back(operands[0], operands[1]);
    return builder->changed_ = true;
  }

  static bool RotaryMode(Builder* builder, PendingCondition* pending, const Expression& call, const std::vector<int>&, bool* done) {
    *done = true;
    const std::optional<Result> interleaved = builder->Evaluate(call.arguments[0], pending->frame);
    const std::optional<Result> wanted = builder->Wanted(*pending, call);
    const std::string mode = interleaved.has_value() && interleaved->number != 0 ? "interleaved" : "half";
    if (wanted.has_value() && wanted->text != mode) return builder->Fail("another mode");
    return true;
  }

  static bool NegativeAxes(Builder* builder, PendingCondition*, const Expression&, const std::vector<int>& operands, bool* done) {
    *done = true;
    if (operands[0] == kUnknown) return true;
    GraphNode* node = builder->Producer(operands[0]);
    if (node == nullptr) return builder->Fail("axes that nothing has");
    if (node->schema == nullptr || node->schema->FindAttribute("axes") == nullptr) return builder->Fail("axes in an input");
    return node->axes_from_end = true;
  }
};

constexpr FunctionHint kHints[] = {
    {"reduced", FunctionHint::Reduced},
    {"trailing_axes", FunctionHint::Last},
    {"norm_weight", FunctionHint::NormWeight},
    {"channel_weight", FunctionHint::Channels},
    {"per_channel", FunctionHint::PerChannel},
    {"constant", FunctionHint::Constant},
    {"all_are", FunctionHint::AllAre},
    {"negative_axes", FunctionHint::NegativeAxes},
    {"linear", FunctionHint::Linear},
    {"linear_input", FunctionHint::Linear},
    {"linear_weight", FunctionHint::Linear},
    {"both_linear", FunctionHint::BothLinear},
    {"merged_input", FunctionHint::BothLinear},
    {"gate_pair", FunctionHint::GatePair},
    {"in_place_safe", FunctionHint::ReadOnce},
    {"rotation", FunctionHint::Rotation},
    {"pair_rotation", FunctionHint::PairRotation},
    {"written_rotation", FunctionHint::WrittenRotation},
    {"joined_source", FunctionHint::Whole},
    {"part_rotation", FunctionHint::PartRotation},
    {"rotary_table", FunctionHint::OneShape},
    {"matrix_table", FunctionHint::OneShape},
    {"rotary_mode", FunctionHint::RotaryMode},
    {"half", FunctionHint::Half},
    {"mask_fill", FunctionHint::MaskFill},
    {"same_shape", FunctionHint::SameShape},
    {"broadcasts_to", FunctionHint::BroadcastsTo},
    {"explicit_mask", FunctionHint::ExplicitMask},
};

bool Builder::ByFunction(PendingCondition* pending, const Expression& expression) {
  if (expression.kind == Expression::Kind::kCall && hinted_.count({pending, &expression}) == 0) {
    for (const FunctionHint& hint : kHints) {
      if (hint.name != expression.text) continue;
      std::vector<int> operands;
      for (const Expression& argument : expression.arguments) operands.push_back(ValueOf(argument, pending->frame));
      bool done = false;
      if (!hint.apply(this, pending, expression, operands, &done)) return false;
      if (done) hinted_.insert({pending, &expression});
    }
  }
  for (const Expression& argument : expression.arguments) {
    if (!ByFunction(pending, argument)) return false;
  }
  return true;
}

// --- the model ------------------------------------------------------------------------------------------

// Writes what a Builder has decided as an ONNX model.
class Writer {
 public:
  explicit Writer(Builder* builder) : b_(*builder), random_(builder->random_) {}

  std::optional<Specimen> Run(Frame* frame) {
    specimen_.type = b_.type_;
    specimen_.opset = b_.opset_;
    specimen_.model.set_ir_version(b_.opset_ > 20 ? 10 : 8);
    auto* import = specimen_.model.add_opset_import();
    import->set_domain("");
    import->set_version(b_.opset_);
    graph_ = specimen_.model.mutable_graph();
    graph_->set_name("specimen");
    std::set<std::string> taken;
    b_.values_.reserve(b_.values_.size() + 64);
    // Names of the rule stand for its values.
    for (Frame& of : b_.frames_) {
      for (size_t i = 0; i < of.slots.size(); ++i) {
        if (of.slots[i].kind != Slot::Kind::kValue || names_.count(of.slots[i].value) > 0) continue;
        const std::string& name = of.scope->names[i];
        if (name != "result" && taken.insert(name).second) names_[of.slots[i].value] = name;
      }
    }
    for (size_t i = 0; i < b_.values_.size(); ++i) {
      std::string& name = names_[static_cast<int>(i)];
      if (!name.empty()) continue;
      name = b_.values_[i].name;
      while (!taken.insert(name).second) name += "_" + std::to_string(i);
    }
    int64_t elements = 0;
    for (const GraphValue& value : b_.values_) {
      int64_t count = 1;
      for (int dim : value.dims) count *= b_.NumberOfDim(dim);
      elements = std::max(elements, count);
    }
    if (elements > 300000) return Fail("too many elements");
    ChooseSymbols(frame);
    for (const std::string& name : frame->rule->outputs) {
      const Slot& slot = frame->slots[static_cast<size_t>(frame->scope->Find(name))];
      if (slot.kind != Slot::Kind::kValue) continue;
      if (!Emit(slot.value)) return std::nullopt;
      specimen_.outputs.push_back(names_[slot.value]);
      Declare(slot.value, graph_->add_output());
    }
    for (const auto& [name, made] : specimen_.values) {
      if (made.type == DataType::kUndefined) return Fail("a value without type");
    }
    if (graph_->input_size() == 0) return Fail("no input");
    if (!symbols_.empty()) {
      specimen_.bindings.resize(2);
      for (const auto& [root, name] : symbols_) {
        const int64_t number = b_.NumberOfDim(root);
        specimen_.bindings[0][name] = number;
        specimen_.bindings[1][name] = number == 1 ? 3 : number - 1;
      }
    } else {
      specimen_.bindings.resize(1);
    }
    return specimen_;
  }

 private:
  std::optional<Specimen> Fail(const std::string& why) {
    b_.Fail(why);
    return std::nullopt;
  }
  bool No(const std::string& why) {
    b_.Fail(why);
    return false;
  }

  DataType TypeOf(int value) const { return b_.known_types_[static_cast<size_t>(b_.TypeRoot(value))]; }
  std::vector<int64_t> Numbers(int value) const {
    std::vector<int64_t> numbers;
    for (int dim : b_.values_[static_cast<size_t>(value)].dims) numbers.push_back(b_.NumberOfDim(dim));
    return numbers;
  }
  bool Symbolic(int dim) const { return symbols_.count(b_.Root(dim)) > 0; }
  bool AnySymbolic(int value) const {
    const auto& dims = b_.values_[static_cast<size_t>(value)].dims;
    return std::any_of(dims.begin(), dims.end(), [&](int dim) { return Symbolic(dim); });
  }

  // Dims that no equation holds may differ from run to run: batch, sequence.
  void ChooseSymbols(Frame* frame) {
    if (!random_.Chance(45)) return;
    std::set<int> candidates;
    for (size_t i = 0; i < frame->slots.size(); ++i) {
      const Slot& slot = frame->slots[i];
      if (slot.kind != Slot::Kind::kValue) continue;
      const GraphValue& value = b_.values_[static_cast<size_t>(slot.value)];
      for (size_t k = 0; k + 1 < value.dims.size(); ++k) candidates.insert(b_.Root(value.dims[k]));
    }
    int count = 0;
    for (int root : candidates) {
      const auto& dim = b_.dims_[static_cast<size_t>(root)];
      if (dim.locked || dim.number == 1 || !random_.Chance(60)) continue;
      symbols_[root] = fmt::format("s{}", count++);
    }
  }

  void Declare(int value, onnx::ValueInfoProto* info) {
    info->set_name(names_[value]);
    auto* tensor = info->mutable_type()->mutable_tensor_type();
    tensor->set_elem_type(static_cast<int>(TypeOf(value)));
    auto* shape = tensor->mutable_shape();
    for (int dim : b_.values_[static_cast<size_t>(value)].dims) {
      auto* entry = shape->add_dim();
      if (Symbolic(dim)) {
        entry->set_dim_param(symbols_[b_.Root(dim)]);
      } else {
        entry->set_dim_value(b_.NumberOfDim(dim));
      }
    }
  }

  bool Read(int value) const {
    for (const GraphNode& node : b_.nodes_) {
      if (std::find(node.inputs.begin(), node.inputs.end(), value) != node.inputs.end()) return true;
    }
    for (const Frame& frame : b_.frames_) {
      for (const Slot& slot : frame.slots) {
        if (slot.kind == Slot::Kind::kValue && slot.value == value) return true;
      }
    }
    return false;
  }

  bool Emit(int value) {
    if (!emitted_.insert(value).second) return true;
    const GraphValue& of = b_.values_[static_cast<size_t>(value)];
    if (of.node == kUnknown) return EmitLeaf(value);
    const GraphNode& node = b_.nodes_[static_cast<size_t>(of.node)];
    if (node.ghost) return No("a value that is only thought of");
    for (int output : node.outputs) emitted_.insert(output);
    std::vector<std::string> inputs;
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      const int input = node.inputs[i];
      if (input == kUnknown) {
        inputs.emplace_back();
      } else if (b_.values_[static_cast<size_t>(input)].target) {
        std::string target;
        if (!Target(node, &target)) return false;
        inputs.push_back(target);
      } else {
        if (!Emit(input)) return false;
        inputs.push_back(names_[input]);
      }
    }
    if (inputs.size() == 2 && node.schema != nullptr && node.schema->commutative && random_.Chance(50)) {
      std::swap(inputs[0], inputs[1]);
    }
    onnx::NodeProto made;
    made.set_op_type(node.op);
    made.set_domain(node.domain);
    made.set_name("n_" + names_[node.outputs[0]]);
    for (int output : node.outputs) {
      // An optional output that nothing reads.
      if (node.outputs.size() > 2 && node.op != "Split" && !Read(output)) {
        made.add_output("");
        continue;
      }
      made.add_output(names_[output]);
      specimen_.values[names_[output]] = {TypeOf(output), Numbers(output)};
    }
    if (!Parameters(node, &made, &inputs)) return false;
    while (!inputs.empty() && inputs.back().empty()) inputs.pop_back();
    for (const std::string& input : inputs) made.add_input(input);
    *graph_->add_node() = made;
    return true;
  }

  bool Parameters(const GraphNode& node, onnx::NodeProto* made, std::vector<std::string>* inputs) {
    auto put = [&](const std::string& name, const std::vector<int64_t>& numbers) {
      const int index = node.schema->FindInput(name);
      if (index < 0) return No(fmt::format("{} has no parameter {}", node.op, name));
      if (inputs->size() <= static_cast<size_t>(index)) inputs->resize(static_cast<size_t>(index) + 1);
      (*inputs)[static_cast<size_t>(index)] = Integers(name, numbers);
      return true;
    };
    for (const Parameter& parameter : node.parameters) {
      const SchemaAttribute* row = node.schema->FindAttribute(parameter.name);
      if (parameter.kind == Parameter::Kind::kFree) continue;
      std::vector<int64_t> ints = parameter.ints;
      if (parameter.kind == Parameter::Kind::kNumber) ints = {static_cast<int64_t>(parameter.number)};
      // Axes count from either end.
      if ((parameter.name == "axes" || parameter.name == "axis") && !node.inputs.empty() &&
          node.inputs[0] != kUnknown && !node.axes_from_end && random_.Chance(40)) {
        const int of = node.op == "Unsqueeze" ? node.outputs[0] : node.inputs[0];
        const int64_t rank = static_cast<int64_t>(b_.values_[static_cast<size_t>(of)].dims.size());
        for (int64_t& axis : ints) {
          if (rank > 0) axis = axis < 0 ? axis + rank : axis - rank;
        }
      }
      if (row == nullptr && (parameter.name == "min" || parameter.name == "max")) {
        const size_t index = static_cast<size_t>(std::max(0, node.schema->FindInput(parameter.name)));
        if (inputs->size() <= index) inputs->resize(index + 1);
        (*inputs)[index] = Scalar(fmt::format("{}_{}", parameter.name, ++count_), TypeOf(node.outputs[0]), parameter.number);
        continue;
      }
      if (row == nullptr) {
        if (!put(parameter.name, ints)) return false;
        continue;
      }
      // What is the default may be left out.
      if (row->has_default && random_.Chance(50)) {
        if (row->type == AttributeType::kInt && ints.size() == 1 && ints[0] == row->default_value.i) continue;
        if (row->type == AttributeType::kString && parameter.text == row->default_value.s) continue;
      }
      auto* attribute = made->add_attribute();
      attribute->set_name(parameter.name);
      switch (row->type) {
        case AttributeType::kInt:
          attribute->set_type(onnx::AttributeProto::INT);
          attribute->set_i(parameter.kind == Parameter::Kind::kType ? static_cast<int64_t>(parameter.type)
                                                                    : ints.empty() ? 0 : ints[0]);
          break;
        case AttributeType::kFloat:
          attribute->set_type(onnx::AttributeProto::FLOAT);
          attribute->set_f(static_cast<float>(parameter.number));
          break;
        case AttributeType::kString:
          attribute->set_type(onnx::AttributeProto::STRING);
          attribute->set_s(parameter.text);
          break;
        default:
          attribute->set_type(onnx::AttributeProto::INTS);
          for (int64_t number : ints) attribute->add_ints(number);
      }
    }
    const bool has_to = std::any_of(made->attribute().begin(), made->attribute().end(),
                                    [](const onnx::AttributeProto& a) { return a.name() == "to"; });
    if (node.op == "Cast" && !has_to) {
      auto* attribute = made->add_attribute();
      attribute->set_name("to");
      attribute->set_type(onnx::AttributeProto::INT);
      attribute->set_i(static_cast<int64_t>(TypeOf(node.outputs[0])));
    }
    if (node.half == kUnknown) return true;
    const std::vector<int64_t> whole = Numbers(node.inputs[0]);
    const int64_t size = whole.back() / node.parts;
    const int64_t last = random_.Chance(60) ? -1 : static_cast<int64_t>(whole.size()) - 1;
    auto add = [&](const std::string& name, int64_t number) {
      auto* attribute = made->add_attribute();
      attribute->set_name(name);
      attribute->set_type(onnx::AttributeProto::INT);
      attribute->set_i(number);
    };
    if (node.op == "Gather") {
      add("axis", last);
    } else if (node.op == "Slice") {
      static const std::vector<int64_t> kEnds = {std::numeric_limits<int64_t>::max(),
                                                 std::numeric_limits<int32_t>::max()};
      const bool at_end = node.strided || node.half == node.parts - 1;
      int64_t start = node.strided ? node.half : node.half * size;
      int64_t end = !at_end ? start + size : random_.Chance(50) ? whole.back() : random_.Pick(kEnds);
      if (start > 0 && random_.Chance(30)) start -= whole.back();
      if (!at_end && random_.Chance(20)) end -= whole.back();
      if (!put("starts", {start}) || !put("ends", {end}) || !put("axes", {last})) return false;
      if (node.strided) return put("steps", {node.parts});
      return !random_.Chance(60) || put("steps", {1});
    } else if (node.op == "Split") {
      if (last != 0 || whole.size() > 1) add("axis", last);
      if (random_.Chance(50)) return put("split", std::vector<int64_t>(static_cast<size_t>(node.parts), size));
      if (node.schema->FindAttribute("num_outputs") != nullptr) add("num_outputs", node.parts);
    }
    return true;
  }

  std::string Integers(const std::string& base, const std::vector<int64_t>& numbers) {
    const std::string name = fmt::format("{}_{}", base, ++count_);
    *graph_->add_initializer() = IntTensor(name, {static_cast<int64_t>(numbers.size())}, numbers);
    specimen_.values[name] = {DataType::kInt64, {static_cast<int64_t>(numbers.size())}};
    return name;
  }

  // The shape operand of Reshape and Expand: numbers, -1 and 0 for what may differ from run to run.
  bool Target(const GraphNode& node, std::string* name) {
    const std::vector<int> out = b_.values_[static_cast<size_t>(node.outputs[0])].dims;
    const std::vector<int> in = b_.values_[static_cast<size_t>(node.inputs[0])].dims;
    std::vector<int64_t> numbers;
    bool inferred = false;
    for (size_t i = 0; i < out.size(); ++i) {
      if (!Symbolic(out[i])) {
        numbers.push_back(b_.NumberOfDim(out[i]));
      } else if (node.op == "Expand") {
        numbers.push_back(1);
      } else if (i < in.size() && b_.Root(in[i]) == b_.Root(out[i]) && (inferred || random_.Chance(60))) {
        numbers.push_back(0);
      } else if (!inferred) {
        inferred = true;
        numbers.push_back(-1);
      } else {
        return No("two dims of a Reshape differ from run to run");
      }
    }
    if (node.op == "Reshape" && !inferred && !numbers.empty() && random_.Chance(30)) {
      numbers[static_cast<size_t>(random_.Below(static_cast<int>(numbers.size())))] = -1;
    }
    *name = Integers("dims", numbers);
    return true;
  }

  void Constant(const std::string& name, const onnx::TensorProto& tensor) {
    if (random_.Chance(75)) {
      *graph_->add_initializer() = tensor;
      return;
    }
    auto* node = graph_->add_node();
    node->set_op_type("Constant");
    node->set_name("n_" + name);
    node->add_output(name);
    auto* attribute = node->add_attribute();
    attribute->set_name("value");
    attribute->set_type(onnx::AttributeProto::TENSOR);
    *attribute->mutable_t() = tensor;
  }

  bool EmitLeaf(int value) {
    const GraphValue& of = b_.values_[static_cast<size_t>(value)];
    const std::string name = names_[value];
    const DataType type = TypeOf(value);
    if (of.scalar) {
      if (!IsFloat(type)) return No("a constant that is no float");
      std::vector<int64_t> dims;
      if (random_.Chance(30)) dims = {1};
      Constant(name, FloatTensor(name, type, dims, {b_.NumberOf(value)}));
      specimen_.values[name] = {type, dims};
      return true;
    }
    if (!of.shaped) return No(fmt::format("the shape of {} is not known", name));
    specimen_.values[name] = {type, Numbers(value)};
    if (of.constant) return EmitConstant(value);
    if (of.mask && IsFloat(type)) return EmitMask(value);
    // A weight, where the graph has an input already.
    if (IsFloat(type) && !AnySymbolic(value) && graph_->input_size() > 0 && random_.Chance(of.dims.size() == 1 ? 70 : 15)) {
      int64_t count = 1;
      for (int64_t dim : Numbers(value)) count *= dim;
      std::vector<double> elements(static_cast<size_t>(count));
      for (double& element : elements) element = random_.Normal();
      *graph_->add_initializer() = FloatTensor(name, type, Numbers(value), elements);
      return true;
    }
    Declare(value, graph_->add_input());
    return true;
  }

  // A weight, or numbers that a hint gave.
  bool EmitConstant(int value) {
    const GraphValue& of = b_.values_[static_cast<size_t>(value)];
    const std::vector<int64_t> dims = Numbers(value);
    int64_t count = 1;
    for (int64_t dim : dims) count *= dim;
    const double deviation = of.fan_in == kUnknown ? 1 : 1 / std::sqrt(static_cast<double>(b_.NumberOfDim(of.fan_in)));
    std::vector<double> elements(static_cast<size_t>(count));
    for (int64_t i = 0; i < count; ++i) {
      elements[static_cast<size_t>(i)] = of.element ? of.element(i, count) : deviation * random_.Normal();
    }
    if (IsFloat(TypeOf(value))) {
      *graph_->add_initializer() = FloatTensor(names_[value], TypeOf(value), dims, elements);
      return true;
    }
    if (TypeOf(value) != DataType::kInt64) return No("a constant of another type");
    *graph_->add_initializer() = IntTensor(names_[value], dims, std::vector<int64_t>(elements.begin(), elements.end()));
    return true;
  }

  void Node(const std::string& op, const std::vector<std::string>& inputs, const std::string& output,
            const ValueInfo& info, std::optional<int64_t> to = std::nullopt) {
    auto* node = graph_->add_node();
    node->set_op_type(op);
    node->set_name("n_" + output);
    for (const std::string& input : inputs) node->add_input(input);
    node->add_output(output);
    if (to.has_value()) {
      auto* attribute = node->add_attribute();
      attribute->set_name("to");
      attribute->set_type(onnx::AttributeProto::INT);
      attribute->set_i(*to);
    }
    specimen_.values[output] = info;
  }

  std::string Scalar(const std::string& name, DataType type, double number) {
    *graph_->add_initializer() = FloatTensor(name, type, {}, {number});
    specimen_.values[name] = {type, {}};
    return name;
  }

  // An additive mask from booleans or from the 0 and 1 of a tokenizer.
  bool EmitMask(int value) {
    const std::string name = names_[value];
    const DataType type = TypeOf(value);
    const std::vector<int64_t> dims = Numbers(value);
    // Below every score that the random factors of a graph can make: -1e4 is not.
    static const std::vector<double> kFills = {-std::numeric_limits<double>::infinity(), -65504};
    static const std::vector<double> kWideFills = {-std::numeric_limits<double>::infinity(), -1e9,
                                                   std::numeric_limits<float>::lowest()};
    const double fill = random_.Pick(type == DataType::kFloat ? kWideFills : kFills);
    const int form = random_.Below(4);
    auto* input = graph_->add_input();
    Declare(value, input);
    input->set_name(name + "_keep");
    const bool integers = form == 3;
    input->mutable_type()->mutable_tensor_type()->set_elem_type(integers ? onnx::TensorProto::INT64
                                                                         : onnx::TensorProto::BOOL);
    specimen_.values[input->name()] = {integers ? DataType::kInt64 : DataType::kBool, dims};
    switch (form) {
      case 0:
        Node("Where", {name + "_keep", Scalar(name + "_zero", type, 0), Scalar(name + "_fill", type, fill)}, name,
             {type, dims});
        break;
      case 1:
        Node("Not", {name + "_keep"}, name + "_masked", {DataType::kBool, dims});
        Node("Where", {name + "_masked", Scalar(name + "_fill", type, fill), Scalar(name + "_zero", type, 0)}, name,
             {type, dims});
        break;
      default: {
        // (1 - keep) * a large negative number
        Node("Cast", {name + "_keep"}, name + "_number", {type, dims}, static_cast<int64_t>(type));
        Node("Sub", {Scalar(name + "_one", type, 1), name + "_number"}, name + "_inverted", {type, dims});
        Node("Mul", {name + "_inverted", Scalar(name + "_fill", type, fill < -65504 ? -65504 : fill)}, name,
             {type, dims});
      }
    }
    return true;
  }

  Builder& b_;
  Random& random_;
  Specimen specimen_;
  onnx::GraphProto* graph_ = nullptr;
  std::map<int, std::string> names_;
  std::map<int, std::string> symbols_;  // by root
  std::set<int> emitted_;
  int count_ = 0;
};

std::optional<Specimen> Builder::Write(Frame* frame) { return Writer(this).Run(frame); }

}  // namespace

std::optional<Specimen> Generator::Generate(const RuleSet& rules, const Rule& rule, Random* random,
                                            Coverage* coverage, std::string* why) {
  const int opset = kOpsets[random->Below(static_cast<int>(std::size(kOpsets)))];
  const DataType type = random->Chance(65) ? DataType::kFloat : DataType::kFloat16;
  Builder builder(library_, random, coverage, opset, type);
  return builder.Run(rules, rule, why);
}

}  // namespace ascend_fuse::backwards
