// The command `analyze`: what a model is, what will be slow and why, what is fused, what is left, how hard the move is.
#pragma once

#include <functional>
#include <memory>

#include "absl/status/statusor.h"
#include "ir/model.h"
#include "passes/analyze/analysis.h"
#include "passes/optimize.h"

namespace ascend_fuse {

// Measures the model as it is and as Optimize would write it; where sites are left, it is tried once more with our op plugin.
// The model is as before when this returns. Weights are not read. Errors are those of Optimize.
absl::StatusOr<Analysis> AnalyzeModel(Model* model, const OptimizeOptions& options = {});

// A run and what it was measured to do: the passes run once.
struct AnalyzedRun {
  Report report;      // as Optimize or ListOpportunities gives it
  Analysis analysis;  // its report has the findings of the model as it was besides
};

// A model as it was before Optimize changed it: loaded anew where sites were left, to ask whether our op plugin takes them.
using ModelSource = std::function<absl::StatusOr<std::shared_ptr<Model>>()>;

// Optimize, measured in that run. Errors are those of Optimize, and of `untouched`.
absl::StatusOr<AnalyzedRun> OptimizeAndAnalyze(Model* model, const OptimizeOptions& options, const ModelSource& untouched);
// The same of ListOpportunities.
absl::StatusOr<AnalyzedRun> ListAndAnalyze(Model* model, const OptimizeOptions& options = {});

}  // namespace ascend_fuse
