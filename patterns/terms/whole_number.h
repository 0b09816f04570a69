// From the numbers of terms, which are doubles, back to integers.
#pragma once

#include <cstdint>
#include <limits>

namespace ascend_fuse {

// `number` without its fraction; beyond int64_t the end that is nearest, so that INT64_MAX, which as a double is 2^63, comes back
// as itself. 0 where it is not a number.
inline int64_t WholeNumber(double number) {
  constexpr double kBeyond = 9223372036854775808.0;  // 2^63
  if (number >= kBeyond) return std::numeric_limits<int64_t>::max();
  if (number < -kBeyond) return std::numeric_limits<int64_t>::min();
  return number == number ? static_cast<int64_t>(number) : 0;
}

}  // namespace ascend_fuse
