// What is known of the names of input dims, and what of it is new.
#include "passes/core/learned_dims.h"

#include <string>
#include <utility>
#include <vector>

#include "fmt/format.h"
#include "gtest/gtest.h"
#include "tests/unit/inferred.h"

namespace ascend_fuse {
namespace {

using testing::Inferred;

constexpr char kGraph[] = "g (float[N, T] x, float[M, S] y, float[K, 2] z) => (float[N, T] out) { out = Identity (x) }";

// "M=N, T=3"
std::string Learned(const InferOptions& before, const InferOptions& now) {
  Inferred first(kGraph, before);
  Inferred second(kGraph, now);
  std::string text;
  for (const LearnedDim& dim :
       LearnedSince(KnownDimsOf(first.model(), first.facts()), KnownDimsOf(second.model(), second.facts()))) {
    const std::string is = dim.number.has_value() ? fmt::format("{}", *dim.number) : dim.other;
    text += fmt::format("{}{}={}", text.empty() ? "" : ", ", dim.name, is);
  }
  return text;
}

InferOptions Told(std::vector<LearnedDim> dims) {
  InferOptions options;
  options.learned_dims = std::move(dims);
  return options;
}

TEST(LearnedDims, ANumberAndAnEqualNameAreNew) {
  EXPECT_EQ(Learned({}, Told({{"T", 3, ""}})), "T=3");
  EXPECT_EQ(Learned({}, Told({{"N", {}, "M"}})), "N=M");
  EXPECT_EQ(Learned({}, Told({{"K", {}, "M"}, {"N", {}, "K"}, {"S", 1, ""}})), "M=K, N=K, S=1");
}

TEST(LearnedDims, WhatWasKnownIsNotNew) {
  EXPECT_EQ(Learned({}, {}), "");
  EXPECT_EQ(Learned(Told({{"T", 3, ""}}), Told({{"T", 3, ""}})), "");
  EXPECT_EQ(Learned(Told({{"N", {}, "M"}}), Told({{"M", {}, "N"}})), "");  // said the other way
  EXPECT_EQ(Learned(Told({{"N", {}, "M"}}), {}), "");
}

TEST(LearnedDims, ANumberOfOneOfTwoEqualNamesIsNewOfBoth) {
  EXPECT_EQ(Learned(Told({{"N", {}, "M"}}), Told({{"N", {}, "M"}, {"M", 8, ""}})), "M=8, N=8");
}

// Whether an earlier run learned it or --dim says it: inference knows the same.
TEST(LearnedDims, InferenceIsToldThem) {
  constexpr char kSum[] = "g (float[N, 4] x, float[M, 4] y) => (float[a, b] out) { out = Concat <axis = 1> (x, y) }";
  EXPECT_EQ(Inferred(kSum, Told({{"M", 3, ""}, {"N", {}, "M"}}))["x"], "float[3, 4]");
}

// x_d0 is what sentences call the dim, so --dim takes that name.
TEST(LearnedDims, ADimOfAnInputWithoutANameIsCalledByItsPlace) {
  constexpr char kJoined[] = "g (float[?, 4] x, float[M, 4] y) => (float[a, b] out) { out = Concat <axis = 1> (x, y) }";
  EXPECT_EQ(Inferred(kJoined)["x"], "float[M, 4]");
  constexpr char kAlone[] = "g (float[?, 4] x, float[?] y) => (float[?, 4] out) { out = Identity (x) }";
  EXPECT_EQ(Inferred(kAlone)["x"], "float[x_d0, 4]");
  EXPECT_EQ(Inferred(kAlone, Told({{"x_d0", 3, ""}}))["x"], "float[3, 4]");
  EXPECT_EQ(Inferred(kAlone, Told({{"x_d0", {}, "y_d0"}}))["y"], "float[x_d0]");
  EXPECT_EQ(Inferred(kAlone, Told({{"out_d0", 3, ""}}))["out"], "float[x_d0, 4]");  // no input
}

TEST(LearnedDims, AnInputThatDeclaresTheNameHasIt) {
  constexpr char kTaken[] = "g (float[?, 4] x, float[x_d0] y) => (float[?, 4] out) { out = Identity (x) }";
  Inferred told(kTaken, Told({{"x_d0", 3, ""}}));
  EXPECT_EQ(told["y"], "float[3]");
  EXPECT_EQ(told["x"], "float[x_d0'1, 4]");
}

TEST(LearnedDims, TwoInputsWhoseDimsHaveOneName) {
  constexpr char kTwice[] = R"(g (float[?] "x:0", float[?] "x/0") => (float[?] out) { out = Identity ("x:0") })";
  Inferred told(kTwice, Told({{"x.0_d0", 3, ""}}));
  EXPECT_NE(told["x:0"], "float[3]");
  EXPECT_NE(told["x/0"], "float[3]");
}

TEST(LearnedDims, WhatIsLearnedOfADimWithoutAName) {
  constexpr char kSum[] = "g (float[?, 4] x, float[3, 4] y) => (float[a, b] out) { out = Concat <axis = 1> (x, y) }";
  constexpr char kNothing[] = "g (float[?, 4] x, float[3, 4] y) => (float[a, b] out) { out = Identity (x) }";
  Inferred first(kNothing);
  Inferred second(kSum);
  const auto learned = LearnedSince(KnownDimsOf(first.model(), first.facts()), KnownDimsOf(second.model(), second.facts()));
  ASSERT_EQ(learned.size(), 1u);
  EXPECT_EQ(learned[0].name, "x_d0");
  EXPECT_EQ(learned[0].number, 3);
}

}  // namespace
}  // namespace ascend_fuse
