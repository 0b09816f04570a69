// From doubles, which numbers of terms and of constants are read as, back to integers.
#pragma once

#include <cstdint>
#include <limits>

namespace ascend_fuse {

// `number` without its fraction; beyond what Integer holds the end that is nearest, so that INT64_MAX, which as a double is 2^63,
// comes back as itself. 0 where it is not a number.
template <typename Integer = int64_t>
Integer WholeNumber(double number) {
  using Limits = std::numeric_limits<Integer>;
  if (number >= static_cast<double>(Limits::max())) return Limits::max();
  if (number <= static_cast<double>(Limits::min())) return Limits::min();
  return number == number ? static_cast<Integer>(number) : 0;
}

}  // namespace ascend_fuse
