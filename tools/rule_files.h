// Rule files of a user: looked at as a whole, and a first one to start from.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "passes/optimize.h"

namespace ascend_fuse {

// The rules of options.rule_files, each with what it is, what it ends in and what it makes: all are loaded as they would be
// for a run. INVALID_ARGUMENT with file, line and column for the first mistake.
absl::StatusOr<std::string> CheckRuleFiles(const OptimizeOptions& options);

// File names and texts: a rule of this name with a comment to each of its parts, the graph that it fuses, and the nearest one
// that it must not match. INVALID_ARGUMENT for a name that no rule can have or that a built-in one has.
absl::StatusOr<std::vector<std::pair<std::string, std::string>>> NewRuleFiles(const std::string& name);

}  // namespace ascend_fuse
