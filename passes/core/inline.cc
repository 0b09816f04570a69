// Inline: nodes of local functions take the places of their calls.
#include <string>

#include "ir/operands.h"
#include "ir/status_macros.h"
#include "passes/core/module_path.h"
#include "passes/core/passes.h"
#include "passes/core/weights.h"
#include "passes/core/workspace.h"

namespace ascend_fuse {

absl::Status Inline(Workspace& workspace) {
  RETURN_IF_ERROR(CheckImports(workspace.model()));
  if (!workspace.model().functions().empty()) {
    const ModuleNames names(workspace.model());
    workspace.inliner().Run([&](const Node& call, const CallScope& outer) {
      workspace.result.adapted[{"function-call-left", std::string(OpType(call))}].emplace_back(Label(call));
      return names.ScopeOf(call, outer);
    });
  }
  workspace.StartRewriting();
  workspace.result.nodes_before = workspace.CountNodes();
  workspace.result.weights_before = CountWeights(workspace.model());
  return absl::OkStatus();
}

}  // namespace ascend_fuse
