// What no adapter takes may be read at another opset still: reductions whose axes CANN 9.1 reads as an input only, or a model
// older than what is parsed.
#include <algorithm>
#include <map>
#include <string>

#include "ir/status_macros.h"
#include "passes/core/workspace.h"
#include "passes/legalise/adapt.h"
#include "passes/legalise/whole_model.h"

namespace ascend_fuse {
namespace {

// How many nodes have a form that ATC surely refuses or misreads, by code.
std::map<std::string, int64_t> FaultsAt(const Workspace& workspace, int64_t opset) {
  std::map<std::string, int64_t> faults;
  EachStandardNode(workspace.model(), [&](const Node* node) {
    for (const UnsupportedForm* form : FormsAt(workspace, *node, opset)) {
      if (form->certain) ++faults[form->code];
    }
  });
  return faults;
}

// Whether a fault is gone, or nodes of it, and none came.
bool IsBetter(const std::map<std::string, int64_t>& after, const std::map<std::string, int64_t>& before) {
  const auto is_no_worse = [&](const auto& fault) {
    const auto known = before.find(fault.first);
    return known != before.end() && fault.second <= known->second;
  };
  return after != before && std::all_of(after.begin(), after.end(), is_no_worse);
}

}  // namespace

absl::Status TryOtherOpsets(Workspace& workspace) {
  const int64_t from = workspace.model().OpsetVersion();
  const int64_t last = workspace.target()->MaxOpset();
  const std::map<std::string, int64_t> before = FaultsAt(workspace, from);
  const bool too_new = from > last;
  if ((before.empty() && !too_new) || !workspace.model().functions().empty()) return absl::OkStatus();
  for (const int64_t to : {kBestReadOpset, last}) {
    if (too_new ? to != last : to <= from || FaultsAt(workspace, to) == before) continue;
    PlannedNodes planned;
    if (!PlanOpset(workspace, to, &planned).empty()) continue;
    const Rewriter::Mark mark = workspace.rewriter().Now();
    const auto adapted = workspace.result.adapted;
    WriteOpset(workspace, planned, to);
    RETURN_IF_ERROR(ApplyAdapters(workspace, [](const Node&) { return true; }));
    const std::map<std::string, int64_t> after = FaultsAt(workspace, to);
    if (IsBetter(after, before) || (too_new && after == before)) {
      workspace.result.opset_before = workspace.result.opset_before > 0 ? workspace.result.opset_before : from;
      workspace.result.converted += static_cast<int64_t>(planned.size());
      workspace.result.opset_kept.clear();
      return absl::OkStatus();
    }
    workspace.emitter().TakeBackAll(mark);
    workspace.result.adapted = adapted;
  }
  return absl::OkStatus();
}

}  // namespace ascend_fuse
