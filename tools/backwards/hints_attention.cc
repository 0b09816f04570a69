// Hints of functions about masks.
#include <algorithm>

#include "fmt/format.h"
#include "tools/backwards/hints.h"

namespace ascend_fuse::backwards {

bool FunctionHint::OneMask(Builder* builder, const std::vector<int>& operands, bool* done) {
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

bool FunctionHint::AttentionPlan(Builder* builder, PendingCondition*, const Expression&, const std::vector<int>& operands,
                                 bool* done) {
  constexpr size_t kFirstMask = 2;
  constexpr size_t kLastMask = 4;
  *done = true;
  for (size_t i = kFirstMask; i <= kLastMask; ++i) {
    bool one = false;
    if (operands[i] == kUnknown) continue;
    if (!OneMask(builder, {operands[i], operands[0], operands[1]}, &one)) return false;
    *done = *done && one;
  }
  return true;
}

}  // namespace ascend_fuse::backwards
