// What the text of an analysis has with --verbose only: memory in detail, nodes, where operators run, types.
#pragma once

#include <string>
#include <string_view>

#include "passes/analyze/analysis.h"

namespace ascend_fuse {

// A kind of opportunity as people read it: "nodes that only fused subgraphs needed" of `swept`.
std::string_view OpportunityName(std::string_view kind);

std::string AnalysisDetails(const Analysis& analysis);

}  // namespace ascend_fuse
