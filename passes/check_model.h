// The command `check`: all findings about a model, and what would mend each.
#pragma once

#include "absl/status/statusor.h"
#include "ir/model.h"
#include "passes/core/records.h"
#include "passes/optimize.h"

namespace ascend_fuse {

// All findings about a model. `fixed_by` is found by trying: the model is optimized, and what is not found again was
// fixed. The model is of no use afterwards. Errors are those of Target::Load.
absl::StatusOr<Report> CheckModel(Model* model, const OptimizeOptions& options);

}  // namespace ascend_fuse
