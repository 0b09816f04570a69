// Which half of a tensor a Slice, Split or Gather gives, and the nearest parts that are none.
#include "patterns/analysis/halves.h"

#include <string>

#include "fmt/format.h"
#include "tests/unit/rule_testing.h"

namespace ascend_fuse {
namespace {

using testing::Subject;

// "x axis 1 first", or the sentence that says why y is not a half.
std::string Half(const std::string& text, int opset = 17) {
  Subject subject(text, opset);
  const FunctionContext context = subject.Context();
  const absl::StatusOr<HalfOf> half = FindHalf(context, subject.Named("y"));
  if (!half.ok()) return std::string(half.status().message());
  return fmt::format("{} axis {} {}{}", ValueName(*half->whole), half->axis, half->index == 0 ? "first" : "second",
                     half->strided ? " strided" : "");
}

bool Has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

TEST(HalvesTest, Split) {
  EXPECT_EQ(Half("(float[B, 8] x) => (y) { y, z = Split <axis = -1> (x) }"), "x axis 1 first");
  EXPECT_EQ(Half("(float[B, 8] x) => (y) { z, y = Split <axis = 1> (x) }"), "x axis 1 second");
  EXPECT_TRUE(
      Has(Half("(float[B, 8] x) => (y) <int64[2] n = {3, 5}> { y, z = Split <axis = 1> (x, n) }"), "it is 3 wide, cut from 8"));
  EXPECT_TRUE(Has(Half("(float[B, 9] x) => (y) <int64[3] n = {3, 3, 3}> { y, z, w = Split <axis = 1> (x, n) }"), "wide"));
}

std::string Slice(const std::string& start, const std::string& end, const std::string& axis = "1",
                  const std::string& step = "1") {
  return Half(
      fmt::format("(float[B, 8] x) => (y) <int64[1] s = {{{}}}, int64[1] e = {{{}}}, int64[1] a = {{{}}}, "
                  "int64[1] p = {{{}}}> {{ y = Slice (x, s, e, a, p) }}",
                  start, end, axis, step));
}

TEST(HalvesTest, Slice) {
  EXPECT_EQ(Slice("0", "4"), "x axis 1 first");
  EXPECT_EQ(Slice("4", "9223372036854775807", "-1"), "x axis 1 second");
  EXPECT_EQ(Slice("-4", "8"), "x axis 1 second");
  EXPECT_EQ(Slice("0", "8", "1", "2"), "x axis 1 first strided");
  EXPECT_EQ(Slice("1", "8", "1", "2"), "x axis 1 second strided");
  EXPECT_TRUE(Has(Slice("2", "6"), "it starts elsewhere"));
  EXPECT_TRUE(Has(Slice("7", "3", "1", "-1"), "a step other than 1"));
  EXPECT_TRUE(Has(Slice("0", "8"), "not a half"));
}

TEST(HalvesTest, SliceOfSeveralAxes) {
  const std::string slice =
      "(float[6, 8] x) => (y) <int64[2] s = {{{}}}, int64[2] e = {{6, 8}}, int64[2] a = {{0, 1}}> {{ y = Slice (x, s, e, a) }}";
  EXPECT_EQ(Half(fmt::format(fmt::runtime(slice), "0, 4")), "x axis 1 second");
  EXPECT_EQ(Half(fmt::format(fmt::runtime(slice), "3, 0")), "x axis 0 second");
  EXPECT_TRUE(Has(Half(fmt::format(fmt::runtime(slice), "3, 4")), "it is cut along several axes"));
}

TEST(HalvesTest, SymbolicWidth) {
  EXPECT_EQ(Half("(float[B, N] n) => (y) <int64[1] s = {0}, int64[1] a = {1}> "
                 "{ x = Concat <axis = 1> (n, n)\n d = Shape <start = 1> (n)\n y = Slice (x, s, d, a) }"),
            "x axis 1 first");
}

TEST(HalvesTest, Gather) {
  auto gather = [](const std::string& indices) {
    return Half(fmt::format("(float[B, 6] x) => (y) <int64[3] i = {{{}}}> {{ y = Gather <axis = 1> (x, i) }}", indices));
  };
  EXPECT_EQ(gather("0, 1, 2"), "x axis 1 first");
  EXPECT_EQ(gather("-3, -2, -1"), "x axis 1 second");
  EXPECT_EQ(gather("1, 3, 5"), "x axis 1 second strided");
  EXPECT_TRUE(Has(gather("1, 2, 3"), "it starts elsewhere"));
  EXPECT_TRUE(Has(gather("0, 2, 1"), "do not run through it in order"));
}

TEST(HalvesTest, NoiseIsLookedThrough) {
  EXPECT_EQ(Half("(float[B, 8] x) => (y) { a, b = Split <axis = 1> (x)\n y = Identity (b) }"), "x axis 1 second");
  EXPECT_TRUE(Has(Half("(float[B, 8] x) => (y) { a, b = Split <axis = 1> (x)\n y = Neg (b) }"), "Neg computes it"));
}

}  // namespace
}  // namespace ascend_fuse
