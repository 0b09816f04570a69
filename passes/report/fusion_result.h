// A report in the form of fusion_result.json, which GE writes of its own fusion passes: tools that read that file read this one.
#pragma once

#include <string>

#include "passes/report/report.h"

namespace ascend_fuse {

// By rule: match_times, the places that it recognised; effect_times, those that were fused. What GE fuses later is matched here
// and takes effect there.
std::string ReportToFusionResult(const Report& report);

}  // namespace ascend_fuse
