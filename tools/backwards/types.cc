// Element types, numbers as a type keeps them, and the conditions that are left to check.
#include <algorithm>
#include <cmath>

#include "fmt/format.h"
#include "tools/backwards/builder.h"

namespace ascend_fuse::backwards {

int Builder::TypeRoot(int value) const {
  while (types_[static_cast<size_t>(value)] != value) value = types_[static_cast<size_t>(value)];
  return value;
}

bool Builder::JoinTypes(int a, int b) {
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

bool Builder::SetType(int value, DataType type) {
  DataType& known = known_types_[static_cast<size_t>(TypeRoot(value))];
  if (known != DataType::kUndefined && known != type) {
    return Fail(fmt::format("types {} and {} meet", DataTypeName(known), DataTypeName(type)));
  }
  known = type;
  return true;
}

bool Builder::Type() {
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
        if (IsLogical(node.op) ? !SetType(input, DataType::kBool) : !JoinTypes(node.inputs[0], input)) return false;
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
      if (values_[static_cast<size_t>(input)].target || (i > 0 && (node.op == "Gather" || node.op == "Slice")) ||
          (i == 1 && node.op == "ScatterND")) {
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

bool Builder::Round() {
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

bool Builder::CheckConditions() {
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

}  // namespace ascend_fuse::backwards
