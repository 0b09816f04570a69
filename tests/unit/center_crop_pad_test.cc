// CenterCropPad, of which one function says what it does to positions: what each reader makes of that.
#include <string>

#include "patterns/analysis/channels.h"
#include "patterns/analysis/halves.h"
#include "patterns/analysis/mask_form.h"
#include "tests/unit/inferred.h"
#include "tests/unit/rule_testing.h"

namespace ascend_fuse {
namespace {

using testing::Inferred;
using testing::Subject;

// y = CenterCropPad (x) along the last axis.
std::string Cropped(const std::string& x, int length) {
  return x + " => (y) <int64[1] n = {" + std::to_string(length) + "}> { y = CenterCropPad <axes = [-1]> (x, n) }";
}

TEST(CenterCropPadTest, ElementsOfSmallTensorsAreKnown) {
  const Inferred inferred(
      "g (float[B] a) => (y, z) <int64[5] x = {1, 2, 3, 4, 5}, int64[1] two = {2}, int64[1] eight = {8}> "
      "{ y = CenterCropPad (x, two)\n z = CenterCropPad (x, eight) }");
  EXPECT_EQ(inferred.Elements("y"), "2, 3");
  EXPECT_EQ(inferred.Elements("z"), "0, 1, 2, 3, 4, 5, 0, 0");
}

TEST(CenterCropPadTest, WhatTakesEverythingIsACopy) {
  EXPECT_TRUE(Subject(Cropped("(float[B, 4] x)", 4), 18).Same("x", "y"));
  EXPECT_FALSE(Subject(Cropped("(float[B, 4] x)", 2), 18).Same("x", "y"));
  EXPECT_FALSE(Subject(Cropped("(float[B, C] x)", 4), 18).Same("x", "y")) << "C may be another number";
}

TEST(CenterCropPadTest, ChannelsAreFollowed) {
  Subject subject(Cropped("(float[B, 6] x)", 3), 18);
  const auto map = FollowChannels(subject.Context(), subject.Named("y"), {subject.Named("x")});
  ASSERT_TRUE(map.ok()) << map.status();
  ASSERT_EQ(map->channels.pieces().size(), 1U);
  EXPECT_EQ(map->channels.pieces()[0].index, 1);
  EXPECT_EQ(map->channels.size(), 3);
}

TEST(CenterCropPadTest, ZerosAreNotChannels) {
  Subject subject(Cropped("(float[B, 6] x)", 8), 18);
  EXPECT_FALSE(FollowChannels(subject.Context(), subject.Named("y"), {subject.Named("x")}).ok());
}

TEST(CenterCropPadTest, TheMiddleIsNotAHalf) {
  Subject subject(Cropped("(float[B, 8] x)", 4), 18);
  const auto half = FindHalf(subject.Context(), subject.Named("y"));
  EXPECT_FALSE(half.ok());
  EXPECT_NE(std::string(half.status().message()).find("it starts elsewhere"), std::string::npos) << half.status();
}

TEST(CenterCropPadTest, ACroppedTriangleIsATriangle) {
  Inferred inferred(
      "g (float[B] a) => (m) <float f = {1}, int64[2] s = {6, 6}, int64[2] n = {4, 4}> "
      "{ o = Expand (f, s)\n t = Trilu <upper = 0> (o)\n c = CenterCropPad (t, n)\n m = Cast <to = 9> (c) }");
  const ValueNumbering numbering(inferred.model(), inferred.facts());
  DimTable& dims = inferred.facts().dims();
  MaskForms forms(inferred.model(), inferred.facts(), &dims, numbering, {});
  const MaskForm& form = forms.Of(inferred.Find("m"), {Dim(), Dim(), Dim::Of(4), Dim::Of(4)});
  EXPECT_EQ(MaskWord(form, Dim::Of(4), Dim::Of(4), dims), "causal_bottom_right");
}

}  // namespace
}  // namespace ascend_fuse
