// Passes that every pipeline begins or ends with: functions inlined, facts inferred, values numbered, dead nodes removed. The
// table of docs/passes.md says what each takes and gives.
#pragma once

#include "absl/status/status.h"

namespace ascend_fuse {

class Workspace;

absl::Status Inline(Workspace& workspace);
absl::Status InferFacts(Workspace& workspace);
absl::Status Number(Workspace& workspace);
absl::Status InferAgain(Workspace& workspace);
absl::Status Sweep(Workspace& workspace);

// Not a pass: facts of all nodes are computed anew from what is known, and kept where they say more; numbers follow. What was
// learnt of a dim late is told to nodes that stand early.
void InferFurther(Workspace& workspace);

}  // namespace ascend_fuse
