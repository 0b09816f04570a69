// Constants to be built that the functions of rules share.
#pragma once

#include "absl/status/statusor.h"
#include "patterns/functions/registry.h"

namespace ascend_fuse {

// A constant with these dims, all of whose elements are the number. FAILED_PRECONDITION for dims that are not numbers
// from 1 on, or more than 2^24 elements.
absl::StatusOr<Term> Filled(const FunctionContext& context, List dims, double number, DataType type);

}  // namespace ascend_fuse
