// Sites that a pass of GE takes where dims are numbers, and where they are that only for us: an Ascend node takes it for granted,
// or a node that is gone said so. GE reads the file, and knows neither.
#pragma once

#include <vector>

#include "passes/core/workspace.h"

namespace ascend_fuse {

// Takes from each of these sites that is pending what it was to be to GE, and returns them: they are to be lowered like sites
// that no pass of GE takes.
std::vector<Site*> SitesOfOpenDims(Workspace& workspace);

}  // namespace ascend_fuse
