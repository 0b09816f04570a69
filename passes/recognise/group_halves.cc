// Group halves: TorchScript writes a Concat of Concats as one. Rotations of parts of a head, by rows and columns of an image or
// by frames too, then end in one Concat of four parts and more. What is computed from the two halves of one value is joined
// for itself here, so that each rotation has a Concat of its own.
#include <vector>

#include "ir/movement/movement.h"
#include "ir/status_macros.h"
#include "passes/core/node_inserter.h"
#include "passes/core/workspace.h"
#include "passes/recognise/passes.h"
#include "patterns/analysis/halves.h"

namespace ascend_fuse {
namespace {

constexpr size_t kFewest = 4;  // of three parts there are rules (rotary_parts_before, rotary_parts_behind)

bool JoinsManyAlongLastAxis(const Workspace& workspace, const Node& node) {
  const Movement* join = node.input_count >= kFewest ? workspace.facts().MovementOf(node.output()) : nullptr;
  const int rank = workspace.facts().Of(node.output()).rank();
  return join != nullptr && join->kind == MovementKind::kJoins && join->parts.size() == node.input_count && rank >= 2 &&
         !join->parts.front().windows.empty() && join->parts.front().windows.front().axis == rank - 1;
}

void Group(Workspace& workspace, const Node& node) {
  NodeInserter inserter(workspace, node);
  NewNode plan = PlanOf(node);
  std::vector<const Value*> parts;
  GroupedHalves grouped;
  for (size_t i = 0; i < node.input_count; ++i) {
    if (i + 1 < node.input_count && AreOfHalvesOfOne(workspace.Context(), node.input(i), node.input(i + 1))) {
      parts.push_back(inserter.Op(plan.op_type, {node.input(i), node.input(i + 1)}, plan.attributes));
      grouped.parts.push_back(parts.back()->producer);
      ++i;
    } else {
      parts.push_back(node.input(i));
    }
  }
  if (grouped.parts.empty()) return;
  plan.inputs.assign(parts.begin(), parts.end());
  grouped.whole = workspace.rewriter().ReplaceValue(node.output(), plan);
  workspace.Refresh(grouped.whole);
  workspace.grouped_halves.push_back(std::move(grouped));
}

}  // namespace

absl::Status GroupHalves(Workspace& workspace) {
  if (workspace.ChangesNothing()) return absl::OkStatus();
  for (const auto& graph : workspace.model().graphs()) {
    const std::vector<const Node*> nodes = graph->nodes();  // grows while nodes are made
    for (const Node* node : nodes) {
      if (node->dead || !JoinsManyAlongLastAxis(workspace, *node)) continue;
      RETURN_IF_ERROR(workspace.GoOn());
      Group(workspace, *node);
    }
  }
  return absl::OkStatus();
}

}  // namespace ascend_fuse
