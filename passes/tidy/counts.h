// What integers count (ir/infer/counts.h), asked while nodes are tidied.
#pragma once

#include <optional>
#include <vector>

#include "ir/infer/counts.h"
#include "passes/tidy/kinds.h"

namespace ascend_fuse {

// CountOf and RunsOf of ir/infer/counts.h; numbers are cast as long as they fit by what inference knows.
std::optional<Count> CountOf(const TidyContext& context, const Value& value);
std::vector<Count> RunsOf(const TidyContext& context, const Value* indices);

}  // namespace ascend_fuse
