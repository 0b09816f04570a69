// What the functions of all adapters say: axes counted from the front, and lengths at run time.
#pragma once

#include <cstdint>

#include "absl/status/statusor.h"
#include "patterns/terms/function_context.h"
#include "patterns/terms/term.h"

namespace ascend_fuse::adapt {

// The place of a negative axis, counted from the front.
absl::StatusOr<int64_t> Place(int64_t axis, int64_t rank);

absl::StatusOr<int64_t> RankOf(const FunctionContext& context, const Term& x);

// The length of an axis as a scalar, at run time.
Term LengthOf(const Term& x, int64_t place);

}  // namespace ascend_fuse::adapt
