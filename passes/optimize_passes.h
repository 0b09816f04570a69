// The pipeline of `optimize`.
#pragma once

#include <vector>

#include "passes/core/pass.h"

namespace ascend_fuse {

// docs/passes.md shows it as a table.
std::vector<Pass> OptimizePasses();

}  // namespace ascend_fuse
