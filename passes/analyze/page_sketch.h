// Small drawings of sites: the nodes that a site stands for, and those that compute it as they are written.
#pragma once

#include <string>

#include "passes/analyze/measure.h"

namespace ascend_fuse {

// Of the first site of each group of equal ones. What computes a site in the written graph is found by its `outputs`.
std::vector<SketchRecord> SketchSites(const Report& report, const MeasuredGraph& before, const MeasuredGraph& after);
// All of them as SVG, folded.
std::string PageSketches(const Analysis& analysis, bool changed);

}  // namespace ascend_fuse
