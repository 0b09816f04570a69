// Rule text to Rule: the parser of the rule language (docs/rules.md).
#pragma once

#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "patterns/language/pattern.h"

namespace ascend_fuse {

// What is written in `text`. INVALID_ARGUMENT with file, line and column, what was expected and what was
// found.
absl::StatusOr<RuleText> ParseRules(std::string_view file, std::string_view text);

// The same name, valid until the process ends. Each name is kept once.
std::string_view InternFileName(std::string_view name);

}  // namespace ascend_fuse
