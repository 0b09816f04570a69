#include "passes/core/joined_sums.h"

#include "patterns/operators/declarations.h"

namespace ascend_fuse {
namespace {

bool IsJoined(const Workspace& workspace, const Node& norm) {
  const DeclaredOperator* const declared = FindDeclaredOperator(Domain(norm), OpType(norm));
  if (declared == nullptr || declared->joined_with_sum.empty() || norm.input_count == 0 || norm.input(0) == nullptr) return false;
  if (workspace.target() == nullptr || !workspace.target()->FusedByGe(declared->joined_with_sum).has_value()) return false;
  const Node* const sum = norm.input(0)->producer;
  if (sum == nullptr || sum->graph != norm.graph || !IsOp(*sum, "Add")) return false;
  const Facts& facts = workspace.facts();
  const Fact& a = facts.Of(sum->input(0));
  const Fact& b = facts.Of(sum->input(1));
  return a.has_rank && b.has_rank && facts.dims().Equal(a.shape, b.shape);
}

}  // namespace

std::vector<const Node*> NormsJoinedBefore(const Workspace& workspace) {
  std::vector<const Node*> norms;
  for (const auto& graph : workspace.model().graphs()) {
    for (const Node* node : graph->nodes()) {
      if (!node->dead && !workspace.IsMade(*node) && IsJoined(workspace, *node)) norms.push_back(node);
    }
  }
  return norms;
}

}  // namespace ascend_fuse
