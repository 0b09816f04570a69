// Passes that choose the order of axes, rows and channels around fused nodes, so that fewer elements are moved. The table of
// docs/passes.md says what each takes and gives.
#pragma once

#include "absl/status/status.h"

namespace ascend_fuse {

class Workspace;

absl::Status ShareKeys(Workspace& workspace);
// Only around attentions that are written in BNSD, as rules emit them.
absl::Status ChooseOrders(Workspace& workspace);

}  // namespace ascend_fuse
