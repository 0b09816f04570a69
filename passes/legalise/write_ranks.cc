// Write ranks: ONNX Runtime wants to know of how many dims the results of a Scan's body are. Where the body does not declare them
// it finds out by inference, which does not know what a Reshape to computed dims gives, nor before opset 16 a LessOrEqual: where
// anything was rewritten, in a body or before it, they are declared.
#include <algorithm>
#include <string>

#include "ir/onnx/declared_type.h"
#include "passes/core/workspace.h"
#include "passes/legalise/passes.h"

namespace ascend_fuse {
namespace {

bool IsRewritten(const Model& model) {
  return std::any_of(model.graphs().begin(), model.graphs().end(), [](const auto& graph) {
    return std::any_of(graph->nodes().begin(), graph->nodes().end(),
                       [](const Node* node) { return !node->dead && (node->is_new || node->rewired); });
  });
}

bool IsLiveScan(const Node* node) { return node != nullptr && !node->dead && IsOp(*node, "Scan"); }

}  // namespace

absl::Status WriteRanks(Workspace& workspace) {
  const auto& graphs = workspace.model().graphs();
  const bool any = std::any_of(graphs.begin(), graphs.end(), [](const auto& graph) { return IsLiveScan(graph->owner()); });
  if (!any || !IsRewritten(workspace.model())) return absl::OkStatus();
  for (const auto& graph : graphs) {
    if (!IsLiveScan(graph->owner())) continue;
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
