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

}  // namespace ascend_fuse
