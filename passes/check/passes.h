// The pass that looks at the result with the eyes of ATC. The table of docs/passes.md says what it takes and gives.
#pragma once

#include "absl/status/status.h"

namespace ascend_fuse {

class Workspace;

absl::Status CheckResult(Workspace& workspace);

}  // namespace ascend_fuse
