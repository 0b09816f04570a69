// What is added to the scores of an attention, taken apart into masks and biases.
#include "patterns/analysis/score_bias.h"

#include <string>
#include <vector>

#include "patterns/terms/refusal.h"
#include "tests/unit/rule_testing.h"

namespace ascend_fuse {
namespace {

using testing::Subject;

std::string NamesOf(const std::vector<const Value*>& values) {
  std::string names;
  for (const Value* value : values) names += (names.empty() ? "" : " ") + std::string(ValueName(*value));
  return names;
}

// "masks; drops; biases" of y, or why it is neither.
std::string Split(const std::string& text) {
  Subject subject(text);
  const Value* const added = subject.Named("y");
  const absl::StatusOr<ScoreParts> parts = SplitScores(subject.Context(), absl::MakeConstSpan(&added, 1));
  if (!parts.ok()) return CodeOf(parts.status());
  return NamesOf(parts->masks) + "; " + NamesOf(parts->drops) + "; " + NamesOf(parts->biases);
}

constexpr char kTable[] = "<float[2] table = {0.5, -3}, float zero = {0}, float low = {-3.4028235e38}> ";
std::string WithTable(const std::string& inputs, const std::string& nodes) {
  return "(" + inputs + ") => (float[4] y) " + kTable + "{ b = Gather (table, places)\n" + nodes + " }";
}

TEST(ScoreBiasTest, WhatOnlyMasksIsAMask) {
  EXPECT_EQ(Split(WithTable("int64[4] places, bool[4] m", "y = Where (m, zero, low)")), "y; ; ");
}

TEST(ScoreBiasTest, NumbersOfATableAreABias) { EXPECT_EQ(Split(WithTable("int64[4] places", "y = Identity (b)")), "; ; y"); }

TEST(ScoreBiasTest, ASumIsTakenApart) {
  EXPECT_EQ(Split(WithTable("int64[4] places, bool[4] m", "k = Where (m, zero, low)\n y = Add (k, b)")), "k; ; b");
}

TEST(ScoreBiasTest, AChoiceIsTakenApart) {
  EXPECT_EQ(Split(WithTable("int64[4] places, bool[4] m", "y = Where (m, b, low)")), "m; ; b");
  EXPECT_EQ(Split(WithTable("int64[4] places, bool[4] m", "y = Where (m, low, b)")), "; m; b");
}

TEST(ScoreBiasTest, WhatTheNetworkComputesIsABias) {
  EXPECT_EQ(Split("(float[4, 2] q, float[2, 4] w) => (float[4, 4] y) { y = MatMul (q, w) }"), "; ; y");
}

// The relative positions of another window size: BEiT, by bilinear interpolation of its table.
std::string Resized(const std::string& attributes) {
  return "(int64[4] places) => (float[4] y) <float[1, 1, 2] table = {0.5, -3}, float[3] scales = {1, 1, 2}, int64[1] all = {-1}> "
         "{ r = Resize <" +
         attributes + "> (table, , scales)\n t = Reshape (r, all)\n y = Gather (t, places) }";
}

TEST(ScoreBiasTest, ATableBetweenItsNumbersIsABias) {
  EXPECT_EQ(Split(Resized("mode = \"linear\"")), "; ; y");
  EXPECT_EQ(Split(Resized("mode = \"cubic\"")), "mask-is-bias");
  EXPECT_EQ(Split(Resized("mode = \"linear\", coordinate_transformation_mode = \"tf_crop_and_resize\"")), "mask-is-bias");
}

TEST(ScoreBiasTest, AnInputMayHoldBoth) {
  EXPECT_EQ(Split("(float[4] x) => (float[4] y) { y = Identity (x) }"), "mask-is-bias");
  EXPECT_EQ(Split(WithTable("int64[4] places, float[4] x", "y = Add (b, x)")), "mask-is-bias");
}

TEST(ScoreBiasTest, NumbersOfBothKindsAreNeither) {
  EXPECT_EQ(Split("(int64[4] p) => (float[4] y) <float[2] t = {0.5, -20000}> { y = Gather (t, p) }"), "mask-is-bias");
  EXPECT_EQ(Split("(int64[4] p, float[4] x) => (float[4] y) <float[2] t = {0.5, 1}> { b = Gather (t, p)\n y = Div (b, x) }"),
            "mask-is-bias");
  // A number that is multiplied may become as low as one likes.
  EXPECT_EQ(
      Split("(int64[4] p) => (float[4] y) <float[2] t = {0.5, -1}, float c = {10000}> { b = Gather (t, p)\n y = Mul (b, c) }"),
      "mask-is-bias");
}

}  // namespace
}  // namespace ascend_fuse
