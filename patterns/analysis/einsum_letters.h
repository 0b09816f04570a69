// The letters of an Einsum's equation.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"

namespace ascend_fuse {

// The letters of the operands, of these ranks, and of the result after them. Axes of dots get digits, counted from the last
// one. Where the equation names no result, it has the dots and then the letters that stand there once, in order. A refusal
// where the equation does not fit the ranks; that letters are letters is the caller's to ask.
absl::StatusOr<std::vector<std::string>> EinsumLetters(std::string_view equation, absl::Span<const size_t> ranks);

}  // namespace ascend_fuse
