// Rule text to Rule: the parser of the rule language (docs/rules.md).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "patterns/language/pattern.h"

namespace ascend_fuse {

// Appends the definitions and rules written in `text`. INVALID_ARGUMENT with file, line and column, what was
// expected and what was found.
absl::Status ParseRules(const std::string& file, std::string_view text, std::vector<Definition>* definitions,
                        std::vector<Rule>* rules);

}  // namespace ascend_fuse
