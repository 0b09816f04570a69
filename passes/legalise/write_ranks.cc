// Write ranks: ONNX Runtime wants to know of how many dims the results of a Scan's body are. Where the body does not declare them
// it finds out by inference, which does not know what a Reshape to computed dims gives: a body that was rewritten declares them.
#include <algorithm>
#include <string>

#include "ir/onnx/declared_type.h"
#include "passes/core/workspace.h"
#include "passes/legalise/passes.h"

namespace ascend_fuse {
namespace {

bool IsRewritten(const Graph& graph) {
  return std::any_of(graph.nodes().begin(), graph.nodes().end(),
                     [](const Node* node) { return !node->dead && (node->is_new || node->rewired); });
}

}  // namespace

absl::Status WriteRanks(Workspace& workspace) {
  for (const auto& graph : workspace.model().graphs()) {
    const Node* const owner = graph->owner();
    if (owner == nullptr || owner->dead || !IsOp(*owner, "Scan") || !IsRewritten(*graph)) continue;
    for (const Value* output : graph->outputs()) {
      const Fact& fact = workspace.facts().Of(output);
      if (!fact.has_rank) continue;
      const std::string type = WithRank(output->declared_type, fact.rank());
      if (!type.empty()) workspace.rewriter().Declare(output, type);
    }
  }
  return absl::OkStatus();
}

}  // namespace ascend_fuse
