// Index functions of operators that compute element by element: what that is on the leaves of decisions, leaf_arithmetic.h says.
#include "patterns/analysis/index_function.h"

namespace ascend_fuse {
Decision IndexFunctions::Where(const Node& node, size_t output, const Indices& indices) {
  const Fact& out = FactOf(node.output(output));
  const auto operand = [&](size_t i) {
    const Value* value = node.input(i);
    return value == nullptr ? kNoDecision : At(value, OperandIndices(FactOf(value), out, indices));
  };
  const Decision condition = operand(0);
  if (condition == kNoDecision) return kNoDecision;
  const Decision a = operand(1);
  return decisions_.If(condition, a, operand(2));
}

Decision IndexFunctions::Cast(const Node& node, size_t output, const Indices& indices) {
  const DataType to = FactOf(node.output(output)).type;
  return decisions_.Map(At(node.input(0), indices), [&](const Leaf& leaf) { return leaves_.Cast(leaf, to); });
}

Decision IndexFunctions::Unary(const Node& node, size_t output, const Indices& indices) {
  const DataType type = FactOf(node.output(output)).type;
  const Decision x = At(node.input(0), indices);
  if (IsOp(node, "Not")) return x == kNoDecision ? x : decisions_.Not(x);
  return decisions_.Map(x, [&](const Leaf& leaf) { return leaves_.Unary(node, type, leaf); });
}

Decision IndexFunctions::Binary(const Node& node, size_t output, const Indices& indices) {
  const Fact& out = FactOf(node.output(output));
  const Value* left = node.input(0);
  const Value* right = node.input(1);
  if (left == nullptr || right == nullptr) return kNoDecision;
  const std::string_view op = OpType(node);
  const Decision a = At(left, OperandIndices(FactOf(left), out, indices));
  const Decision b = At(right, OperandIndices(FactOf(right), out, indices));
  if (a == kNoDecision || b == kNoDecision) return kNoDecision;
  if (op == "And") return decisions_.And(a, b);
  if (op == "Or") return decisions_.Or(a, b);
  if (op == "Xor") return decisions_.Xor(a, b);
  return decisions_.Map2(a, b, [&](const Leaf& x, const Leaf& y) { return leaves_.Compare(op, x, y); });
}

Decision IndexFunctions::Variadic(const Node& node, size_t output, const Indices& indices) {
  const Fact& out = FactOf(node.output(output));
  std::string_view op = OpType(node);
  if (op == "Mod" && IntAttribute(node, "fmod").value_or(0) != 0) return kNoDecision;
  if (op == "Sum") op = "Add";
  Decision decision = kNoDecision;
  for (const Use& use : node.inputs()) {
    if (use.value == nullptr) return kNoDecision;
    const Decision next = At(use.value, OperandIndices(FactOf(use.value), out, indices));
    decision = use.index == 0 ? next : decisions_.Map2(decision, next, [&](const Leaf& x, const Leaf& y) {
      return leaves_.Combine(op, out.type, x, y);
    });
    if (decision == kNoDecision) return kNoDecision;
  }
  return decision;
}

}  // namespace ascend_fuse
