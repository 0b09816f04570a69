// Merge Transposes: where one reads nothing but another one, both are one that moves every element once.
#include <cstdint>
#include <vector>

#include "passes/core/workspace.h"
#include "passes/layout/passes.h"

namespace ascend_fuse {
namespace {

// The axes of what the node reads, in the order in which it gives them; empty where it is not a Transpose that names them.
std::vector<int64_t> AxesOf(const Node* node) {
  if (node == nullptr || node->dead || !IsOp(*node, "Transpose")) return {};
  return IntsAttribute(*node, "perm").value_or(std::vector<int64_t>());
}

}  // namespace

absl::Status MergeTransposes(Workspace& workspace) {
  if (workspace.ChangesNothing()) return absl::OkStatus();
  for (const auto& graph : workspace.model().graphs()) {
    const std::vector<const Node*> nodes(graph->nodes().begin(), graph->nodes().end());  // those that were there before
    for (const Node* node : nodes) {
      const std::vector<int64_t> second = AxesOf(node);
      const std::vector<int64_t> first = second.empty() ? second : AxesOf(node->input(0)->producer);
      if (first.size() != second.size() || second.empty()) continue;
      std::vector<int64_t> both;
      for (const int64_t axis : second) both.push_back(first[static_cast<size_t>(axis)]);
      NewNode merged = PlanOf(*node);
      merged.inputs = {node->input(0)->producer->input(0)};
      merged.attributes = {Attribute::Ints("perm", both)};
      workspace.Refresh(workspace.rewriter().ReplaceNode(*node, merged));
    }
  }
  return absl::OkStatus();
}

}  // namespace ascend_fuse
