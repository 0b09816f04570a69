// Restore and keep calls: what comes back because nothing took it.
#include <algorithm>
#include <iterator>

#include "passes/core/copy_value.h"
#include "passes/core/workspace.h"
#include "passes/lower/passes.h"

namespace ascend_fuse {

absl::Status Restore(Workspace& workspace) {
  // The latest replacement first: one may stand on another.
  for (auto site = workspace.sites.rbegin(); site != workspace.sites.rend(); ++site) {
    if (site->fused() || site->made.empty()) continue;
    // What was lowered as a part of another site is gone; a copy of it that nothing reads may be gone before.
    if ((site->node != nullptr ? site->node : site->made.back())->dead) continue;
    for (auto made = site->made.rbegin(); made != site->made.rend(); ++made) {
      if (!(*made)->dead) workspace.rewriter().Restore(*made);
    }
  }
  for (const Site& site : workspace.sites) {
    if (!site.fused()) continue;
    for (const Node* node : site.equals) {
      if (!node->dead) BecomeCopy(workspace, node->output(0), site.value);
    }
  }
  for (const GroupedHalves& grouped : workspace.grouped_halves) {
    const bool is_as_it_was = !grouped.whole->dead && std::none_of(grouped.parts.begin(), grouped.parts.end(),
                                                                   [](const Node* part) { return part->dead; });
    if (is_as_it_was) workspace.rewriter().Restore(grouped.whole);
  }
  for (const StraightenedNorm& norm : workspace.straightened_norms) {
    // A part of it may be a node by now, where what it ends in was part of something that was left.
    const bool taken =
        std::any_of(norm.originals.begin(), norm.originals.end(), [](const auto& made) { return made.first->dead; });
    if (!norm.root->dead && !taken) workspace.rewriter().Restore(norm.root);
  }
  for (Site& site : workspace.sites) {
    if (site.record.state != "by_ge") continue;
    std::copy_if(site.covered.begin(), site.covered.end(), std::back_inserter(site.for_ge),
                 [](const Node* node) { return !node->dead; });
    for (const Node* node : site.for_ge) workspace.emitter().KeepForGe(node);
  }
  return absl::OkStatus();
}

absl::Status KeepCalls(Workspace& workspace) {
  // ATC knows no functions: only where nothing at all is to be changed do the calls stand again.
  if (workspace.inliner().inlined() == 0 || !workspace.ChangesNothing()) return absl::OkStatus();
  for (const auto& graph : workspace.model().graphs()) {
    const auto& nodes = graph->nodes();
    if (std::any_of(nodes.begin(), nodes.end(),
                    [](const Node* node) { return (node->is_new || node->rewired) && !node->dead; })) {
      return absl::OkStatus();
    }
  }
  workspace.result.calls_kept = workspace.inliner().inlined();
  workspace.result.adapted.clear();
  workspace.TakeEverythingBack();
  workspace.result.nodes_before = workspace.CountNodes();
  return absl::OkStatus();
}

}  // namespace ascend_fuse
