// What the text of an analysis has with --verbose only: memory in detail, nodes, where operators run, types.
#pragma once

#include <string>

#include "passes/analyze/analysis.h"

namespace ascend_fuse {

std::string AnalysisDetails(const Analysis& analysis);

}  // namespace ascend_fuse
