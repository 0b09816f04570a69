// Two reports, or two analyses, of one model: what got worse and what got better, for a pipeline that keeps the last one.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace ascend_fuse {

struct ReportChanges {  // sentences
  std::vector<std::string> worse;
  std::vector<std::string> better;
};

// Takes the JSON of `optimize`, `list`, `check` or `analyze`. Sites, and what ATC rejects or misreads, are compared in all of
// them; kernels, bytes, memory and the predicted ratio where both are analyses.
absl::StatusOr<ReportChanges> CompareReports(const std::string& kept, const std::string& now);

std::string ChangesToText(const ReportChanges& changes);

}  // namespace ascend_fuse
