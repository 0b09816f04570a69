// What expressions of a rule give, as far as the graph is decided.
#include <cmath>
#include <limits>

#include "fmt/format.h"
#include "tools/backwards/builder.h"

namespace ascend_fuse::backwards {

const Slot& Builder::Named(const Frame* frame, size_t slot) {
  const Closure& closure = frame->closures[slot];
  const bool outer = frame->slots[slot].kind == Slot::Kind::kUnbound && closure.pattern != nullptr && !closure.absent &&
                     closure.pattern->kind == Pattern::Kind::kVariable;
  return outer ? Named(closure.frame, static_cast<size_t>(closure.pattern->slot)) : frame->slots[slot];
}

Slot Builder::OfExpression(const Expression& expression, Frame* frame) {
  if (expression.kind == Expression::Kind::kName && expression.slot >= 0) {
    const Slot& known = frame->slots[static_cast<size_t>(expression.slot)];
    if (known.kind != Slot::Kind::kUnbound) return known;
  }
  Slot slot = Slot::Of(Slot::Kind::kExpression);
  slot.frame = frame;
  slot.expression = &expression;
  return slot;
}

std::optional<Result> Builder::Wanted(const PendingCondition& pending, const Expression& call) {
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

int Builder::ValueOf(const Expression& expression, Frame* frame) {
  if (expression.kind != Expression::Kind::kName || expression.slot < 0) return kUnknown;
  const Slot& slot = frame->slots[static_cast<size_t>(expression.slot)];
  if (slot.kind == Slot::Kind::kExpression && slot.expression->kind == Expression::Kind::kCall) {
    const auto known = called_.find({slot.expression, slot.frame});
    if (known != called_.end() && known->second.kind == Result::Kind::kValue) return known->second.value;
  }
  return slot.kind == Slot::Kind::kValue ? slot.value : kUnknown;
}

bool Builder::Calls(const Expression& expression, std::string_view name) {
  return expression.kind == Expression::Kind::kCall && expression.text == name;
}

void Builder::NoteScalars(const Expression& expression, Frame* frame) {
  if (Calls(expression, "value")) {
    const int value = ValueOf(expression.arguments[0], frame);
    if (value != kUnknown && values_[static_cast<size_t>(value)].node == kUnknown) {
      values_[static_cast<size_t>(value)].scalar = true;
    }
  }
  for (const Expression& argument : expression.arguments) NoteScalars(argument, frame);
}

std::optional<Result> Builder::Evaluate(const Slot& slot) {
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

std::optional<Result> Builder::Evaluate(const Expression& expression, Frame* frame) {
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

std::optional<Result> Builder::EvaluateCall(const Expression& call, Frame* frame) {
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
  if (name == "last_axes") {
    const std::optional<double> count = OneNumber(Evaluate(call.arguments[0], frame));
    if (!count.has_value()) return std::nullopt;
    Result result;
    result.kind = Result::Kind::kList;
    for (int axis = -static_cast<int>(*count); axis < 0; ++axis) result.list.push_back(Result::Number(axis));
    return result;
  }
  if (const auto known = called_.find({&call, frame}); known != called_.end()) return known->second;
  return EvaluateArithmetic(call, frame, value);
}

std::optional<Result> Builder::EvaluateArithmetic(const Expression& call, Frame* frame, int value) {
  const std::string& name = call.text;
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
    return axes->kind == Result::Kind::kList || axes->number == -1 ? std::optional<Result>(Result::Number(-count)) : std::nullopt;
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

std::optional<std::vector<int64_t>> Builder::AxesOf(const Expression& expression, Frame* frame, size_t rank) {
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

double Builder::NumberOf(int value) {
  GraphValue& constant = values_[static_cast<size_t>(value)];
  if (constant.number_fixed) return constant.number;
  bool added = false;
  bool floor = false;
  for (const GraphNode& node : nodes_) {
    for (int input : node.inputs) {
      added = added || (input == value && (node.op == "Add" || node.op == "Sub"));
      floor = floor || (input == value && (node.op == "Max" || node.op == "Clip"));
    }
  }
  static const std::vector<double> kSmall = {1e-6, 1e-6, 1e-6, 1e-5, 1e-3};
  static const std::vector<double> kFactors = {0.125, 0.5, 0.35355339059327373, 1.5, 2, 0.7, 0.1};
  static const std::vector<double> kFloors = {1e-12, 1e-8};
  constant.number = random_.Pick(floor ? kFloors : added ? kSmall : kFactors);
  constant.number_fixed = true;
  return constant.number;
}

std::optional<double> Builder::OneNumber(const std::optional<Result>& result) {
  if (!result.has_value()) return std::nullopt;
  if (result->kind == Result::Kind::kNumber) return result->number;
  if (result->kind == Result::Kind::kList && result->list.size() == 1) return OneNumber(result->list[0]);
  return std::nullopt;
}

}  // namespace ascend_fuse::backwards
