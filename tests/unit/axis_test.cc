// Axes and bounds as ONNX counts them, up to the ends of 64 bits.
#include "ir/movement/axis.h"

#include <cstdint>

#include "gtest/gtest.h"

namespace ascend_fuse {
namespace {

TEST(Axis, CountedFromTheFront) {
  EXPECT_EQ(NormalizeAxis(1, 3), 1);
  EXPECT_EQ(NormalizeAxis(-1, 3), 2);
  EXPECT_EQ(NormalizeAxis(-3, 3), 0);
  EXPECT_EQ(NormalizeAxis(3, 3), -1);
  EXPECT_EQ(NormalizeAxis(-4, 3), -1);
  EXPECT_EQ(NormalizeAxis(0, 0), -1);
}

// Of an unknown rank (-1) no axis is known. What overflows does not compile here.
TEST(Axis, NoneOfAnUnknownRank) {
  static_assert(NormalizeAxis(INT64_MIN, -1) == -1);
  static_assert(NormalizeAxis(INT64_MAX, -1) == -1);
  static_assert(NormalizeAxis(0, -1) == -1);
  static_assert(NormalizeAxis(-1, -1) == -1);
  static_assert(NormalizeAxis(INT64_MIN, INT64_MAX) == -1);
  static_assert(NormalizeAxis(-INT64_MAX, INT64_MAX) == 0);
}

}  // namespace
}  // namespace ascend_fuse
