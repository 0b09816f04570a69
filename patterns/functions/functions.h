// Every C++ function that a rule may call, in one table. A function is pure: it reads facts and returns a
// term, or a sentence that says why it cannot.
#pragma once

#include <string>
#include <string_view>

#include "absl/types/span.h"
#include "patterns/functions/registry.h"

namespace ascend_fuse {

absl::Span<const FunctionRow> Functions();
int FindFunction(std::string_view name);  // -1 if there is none

// The table as Markdown: what `ascend-fuse rules --functions` prints and docs/rules.md holds.
std::string DescribeFunctions();

}  // namespace ascend_fuse
