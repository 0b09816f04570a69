// What --dim says is a promise about runs, which nodes of the target may rest on. The rest of the graph stays right without it.
#pragma once

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"

namespace ascend_fuse {

class Workspace;

// Runs `pass` with facts that rest on no promise: only numbers of --fix are known of symbols. Facts and numbers are those of all
// that was told again afterwards.
absl::Status WithoutPromises(Workspace& workspace, absl::FunctionRef<absl::Status()> pass);

}  // namespace ascend_fuse
