// Sites that a pass of GE takes where dims are numbers, and where they are that only for us: an Ascend node takes it for granted,
// or a node that is gone said so. GE reads the file, and knows neither.
#pragma once

#include <vector>

#include "passes/core/workspace.h"

namespace ascend_fuse {

// Each of these sites that is pending forgets its pass of GE. Returns them: they are to be lowered like sites that none takes.
std::vector<Site*> ForgetGeOfOpenDims(Workspace& workspace);

}  // namespace ascend_fuse
