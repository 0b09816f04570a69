// Norms of a file that was optimized before, which are Ascend nodes: they are not sites of norms, and GE joins them with the sums
// that they read all the same.
#pragma once

#include <vector>

#include "passes/core/workspace.h"

namespace ascend_fuse {

// Those that a pass of the target's GE joins with the Add that computes their first input, which has both summands in one shape.
// Norms that rules made are sites, which say themselves what GE joins.
std::vector<const Node*> NormsJoinedBefore(const Workspace& workspace);

}  // namespace ascend_fuse
