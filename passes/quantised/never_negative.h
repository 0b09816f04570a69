// Values that no element of is below zero: codes that begin at zero take nothing away from them.
#pragma once

#include <optional>

#include "absl/functional/function_ref.h"
#include "ir/infer/facts.h"

namespace ascend_fuse {

// By what computes the value: an activation, a softmax, also after the guard of rows without a key. `number` gives the one
// number that all elements of a constant are.
bool IsNeverNegative(const Facts& facts, const Value* value, absl::FunctionRef<std::optional<double>(const Value*)> number);

}  // namespace ascend_fuse
