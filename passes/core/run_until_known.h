// Passes that are run over a model once more where that learned of its input dims what they should have known.
#pragma once

#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "passes/core/pass.h"
#include "passes/core/workspace.h"

namespace ascend_fuse {

// Runs the passes `run.begin` to `run.end`, none of which is final, over the model as it was loaded. Errors are those of
// Workspace::Create and RunPasses. `workspace`: that of the last run, also where it failed.
//
// Where fused nodes ask for equal dims that nobody knew of when sites were recognised, the model that is written is one of such
// dims alone, and who reads it finds more in it. So what was done is taken back, and the passes run again with what was learned,
// at most twice. What the earlier run took for granted stays with its sites.
absl::Status RunUntilKnown(Model* model, const Target& target, const std::vector<Pass>& passes, WorkspaceOptions options,
                           const RunOptions& run, std::unique_ptr<Workspace>* workspace);

}  // namespace ascend_fuse
