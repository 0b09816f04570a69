// Float32 islands of half-precision networks: values that a Cast widens in front of a computation.
#pragma once

#include "absl/types/span.h"
#include "patterns/language/function_context.h"
#include "patterns/language/term.h"

namespace ascend_fuse {

// `value` in the type that all of `operands` (of which it is one) can have in one kernel. Where each of them is of one
// half-precision type, or was widened from it to float32 by a Cast with only moves of data between, that is the half
// type: the moves are then made of the half value. Otherwise, where float32 is among them, a half value is widened. An
// operand of any other type, or of an unknown one, leaves `value` as it is.
Term InOneType(const FunctionContext& context, Value* value, absl::Span<Value* const> operands);

}  // namespace ascend_fuse
