// A rule of patterns/rules/npu at a recognised operator.
#pragma once

#include <optional>

#include "passes/core/workspace.h"
#include "passes/lower/attempt.h"

namespace ascend_fuse {

// Matches rule `r` at the operator of the attempt; nullopt says of its sites why not.
std::optional<Match> MatchRule(Workspace& workspace, size_t r, const FunctionContext& context, Attempt* attempt);

}  // namespace ascend_fuse
