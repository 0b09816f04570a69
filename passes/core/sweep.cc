// Sweep: what nothing needs is removed for good.
#include "passes/core/passes.h"
#include "passes/core/workspace.h"

namespace ascend_fuse {

absl::Status Sweep(Workspace& workspace) {
  workspace.rewriter().Sweep(workspace.made_from());
  return absl::OkStatus();
}

}  // namespace ascend_fuse
