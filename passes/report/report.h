// The report of a run as text and JSON, and what --require asks of it.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "passes/core/records.h"

namespace ascend_fuse {

// --require: INVALID_ARGUMENT with the kinds there are for a name that is not among them.
absl::Status CheckRequirements(const std::vector<std::string>& kinds);
// What --require asked for and the report does not show: a sentence for each of the kinds that was not found, or has sites left.
std::vector<std::string> UnmetRequirements(const Report& report, const std::vector<std::string>& kinds);

struct ReportTextOptions {  // what the text leaves out
  bool verbose = false;     // every site on its own line, with what it covers; pass timings
  bool changed = true;      // false for `list`: nothing was written, so say "can be fused"
};

// The same report gives the same bytes.
std::string ReportToJson(const Report& report);
std::string ReportToText(const Report& report, const ReportTextOptions& options = {});
// What the rest of the graph was tidied of, by kind: "12 copies, 31 twins"; empty where nothing was.
std::string TidiedInWords(const Report& report);
// "weights 3.5 GB -> 14 GB (each run reads ...)"; "" where their bytes stay within a hundredth, or where only 100 kB
// went away.
std::string WeightsInWords(const Report& report);
// The findings of `check`, those of one kind together: up to `places` places of each.
std::string FindingsToText(const Report& report, size_t places = 3);
// INVALID_ARGUMENT with a sentence for text that is not a report of this schema.
absl::StatusOr<Report> ReportFromJson(const std::string& json);

}  // namespace ascend_fuse
