// Passes that decide what becomes of each site: an NPU node, a pass of GE, or its original nodes with the reason. The table of
// docs/passes.md says what each takes and gives.
#pragma once

#include "absl/status/status.h"

namespace ascend_fuse {

class Workspace;

absl::Status ChooseOpset(Workspace& workspace);
absl::Status Lower(Workspace& workspace);
absl::Status ExplainUnfused(Workspace& workspace);
absl::Status Restore(Workspace& workspace);
absl::Status ConfirmGe(Workspace& workspace);
absl::Status KeepCalls(Workspace& workspace);

}  // namespace ascend_fuse
