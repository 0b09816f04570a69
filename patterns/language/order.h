// The order in which rules are tried, and the operators by which they are found.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "patterns/language/pattern.h"

namespace ascend_fuse {

// Gives every rule that has none yet its size, and brings all in the order in which they are tried: the larger pattern
// first, of equal ones the one written first, and a rule before the one that it is preferred over. INVALID_ARGUMENT
// where there is no rule of that name.
absl::Status OrderRules(const std::vector<Definition>& definitions, std::vector<Rule>* rules);

// The operator types ("domain.op_type", without "." for the default domain) that the pattern of `name`, an
// output of a checked rule, can end in: sorted, each once. Empty: anything.
std::vector<std::string> OperatorsOf(const std::vector<Definition>& definitions, const Rule& rule, const std::string& name);

}  // namespace ascend_fuse
