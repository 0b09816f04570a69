// The pass of `expand`: NPU nodes become standard operators again. The table of docs/passes.md says what each takes and gives.
#pragma once

#include "absl/status/status.h"

namespace ascend_fuse {

class Workspace;

// FAILED_PRECONDITION names the nodes that no rule of patterns/rules/reference knows.
absl::Status ExpandNodes(Workspace& workspace);

}  // namespace ascend_fuse
