// Passes that write the model in forms, at the opset and in the style that ATC reads. The table of docs/passes.md says what each
// takes and gives.
#pragma once

#include "absl/status/status.h"

namespace ascend_fuse {

class Workspace;

absl::Status DecideBranches(Workspace& workspace);
// Einsums that no kernel runs, of axes that nothing says to be equal: the MatMul that is written for one says so, and an
// attention may be one because of it. Before anything is looked for, so that the first run knows as much as a second one would.
absl::Status EquateProducts(Workspace& workspace);
// Before orders are chosen, which know what a MatMul does to axes.
absl::Status AdaptProducts(Workspace& workspace);
absl::Status FoldConstants(Workspace& workspace);
absl::Status ConvertOpset(Workspace& workspace);
absl::Status Adapt(Workspace& workspace);
absl::Status ChooseStyle(Workspace& workspace);
absl::Status WriteStyle(Workspace& workspace);
absl::Status WriteDims(Workspace& workspace);
absl::Status WriteRanks(Workspace& workspace);

}  // namespace ascend_fuse
