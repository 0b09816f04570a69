// An analysis as a page for a browser, complete in itself: one style, one script, nothing that is fetched. docs/analyze.md says
// what is on it.
#pragma once

#include <string>

#include "passes/analyze/analysis.h"

namespace ascend_fuse {

struct AnalysisPageOptions {
  bool changed = false;  // true for `optimize`: the model was written, so say "fused" and not "can be fused"
};

// The same analysis gives the same bytes.
std::string AnalysisToHtml(const Analysis& analysis, const AnalysisPageOptions& options = {});

}  // namespace ascend_fuse
