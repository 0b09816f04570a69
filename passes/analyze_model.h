// The command `analyze`: what a model is, what will be slow and why, what is fused, what is left, how hard the move is.
#pragma once

#include "absl/status/statusor.h"
#include "ir/model.h"
#include "passes/analyze/analysis.h"
#include "passes/optimize.h"

namespace ascend_fuse {

// Measures the model as it is and as Optimize would write it; where sites are left, it is tried once more with our op plugin.
// The model is as before when this returns. Weights are not read. Errors are those of Optimize.
absl::StatusOr<Analysis> AnalyzeModel(Model* model, const OptimizeOptions& options = {});

}  // namespace ascend_fuse
