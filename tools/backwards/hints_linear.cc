// Hints of functions about linear layers and the halves of gates.
#include <algorithm>
#include <cmath>
#include <limits>

#include "fmt/format.h"
#include "tools/backwards/hints.h"

namespace ascend_fuse::backwards {

bool FunctionHint::LinearOf(Builder* builder, const PendingCondition& pending, int y, int x, int percent_with_bias) {
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

bool FunctionHint::WrittenLinear(Builder* builder, int y, bool* done) {
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

bool FunctionHint::Linear(Builder* builder, PendingCondition* pending, const Expression&, const std::vector<int>& operands,
                          bool* done) {
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

bool FunctionHint::BothLinear(Builder* builder, PendingCondition* pending, const Expression&, const std::vector<int>& operands,
                              bool* done) {
  *done = true;
  for (int operand : operands) {
    if (operand == kUnknown || !builder->IsLeaf(operand)) return true;
  }
  const int x = builder->NewValue("features");
  const int with_bias =
      std::vector<int>{0, 65, 100}[static_cast<size_t>(builder->random_.Below(3))];  // most models: none or both
  return LinearOf(builder, *pending, operands[0], x, with_bias) && LinearOf(builder, *pending, operands[1], x, with_bias);
}

bool FunctionHint::GatePair(Builder* builder, PendingCondition* pending, const Expression& call, const std::vector<int>& operands,
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

bool FunctionHint::Half(Builder* builder, PendingCondition* pending, const Expression&, const std::vector<int>& operands,
                        bool* done) {
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

}  // namespace ascend_fuse::backwards
