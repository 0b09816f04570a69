// Zeros between the elements of tensors: through which shapes and nodes they are followed, and through which they are not.
#include "passes/layout/zero_padding.h"

#include <string>
#include <vector>

#include "fmt/format.h"
#include "fmt/ranges.h"
#include "gtest/gtest.h"
#include "passes/layout/regrouped_padding.h"
#include "tests/unit/inferred.h"

namespace ascend_fuse {
namespace {

using testing::Inferred;

std::string Text(const Places& places) { return places.empty() ? std::string("-") : fmt::format("{}", fmt::join(places, " ")); }

std::string Text(const ZeroPadding& padding) {
  std::vector<std::string> axes;
  for (const Places& places : padding) axes.push_back(Text(places));
  return fmt::format("{}", fmt::join(axes, " | "));
}

// What the operands of the node that computes `value` have to be: "0: - | 0 1 -1". Or why there are none.
std::string Operands(Inferred& model, const std::string& value, const std::vector<ZeroPadding>& outputs) {
  const auto operands = OperandsOf(model.facts(), *model.Find(value)->producer, outputs);
  if (!operands.ok()) return std::string(operands.status().message());
  std::vector<std::string> texts;
  for (const PaddedOperand& operand : *operands) {
    std::vector<std::string> axes;
    for (const PaddedPart& part : operand.parts) {
      const std::string where = part.length < 0 ? "" : fmt::format("{}+{}: ", part.start, part.length);
      axes.push_back(where + Text(part.places));
    }
    texts.push_back(fmt::format("{}: {}", operand.index, fmt::join(axes, " | ")));
  }
  return fmt::format("{}", fmt::join(texts, "; "));
}

TEST(ZeroPadding, HeadsHaveTheirZerosBehindThem) {
  EXPECT_EQ(Text(PlacesOfHeads(6, 3, 4)), "0 1 2 -1 3 4 5 -1");
  EXPECT_EQ(Text(PlacesOfHeads(2, 2, 4)), "0 1 -1 -1");
}

// What overflows does not compile here. The first was found by optimize_fuzz.
TEST(ZeroPadding, SizesThatNoTensorHas) {
  static_assert(PaddedSize(INT64_MAX, 16) == 0);
  static_assert(PaddedSize(INT64_MIN, 16) == 0);
  static_assert(PaddedSize(kMostPlaces, 16) == kMostPlaces && PaddedSize(17, 16) == 32 && PaddedSize(32, 16) == 32);
  DimTable dims;
  const auto none = [&](const std::vector<int64_t>& from, const ZeroPadding& padding, const std::vector<int64_t>& to) {
    std::vector<Dim> before;
    std::vector<Dim> after;
    for (const int64_t number : from) before.push_back(Dim::Of(number));
    for (const int64_t number : to) after.push_back(Dim::Of(number));
    return !RegroupPadding(dims, before, padding, after).has_value();
  };
  const Places four = PlacesOfHeads(4, 4, 6);
  const int64_t huge = (int64_t{1} << 62) + 2;  // four times as many are 8, to 64 bits
  EXPECT_TRUE(none({4, huge}, {four, {}}, {8}));
  EXPECT_TRUE(none({huge, 4}, {{}, four}, {4, huge}));
  EXPECT_FALSE(none({4, huge}, {four, {}}, {2, 2, huge})) << "an axis of its own";
}

TEST(ZeroPadding, ShapesOfTheSameElements) {
  DimTable dims;
  const Dim batch = dims.Symbol("batch");
  const Dim tokens = dims.Symbol("tokens");
  const auto n = [](int64_t number) { return Dim::Of(number); };
  const auto regrouped = [&](const std::vector<Dim>& from, const ZeroPadding& padding, const std::vector<Dim>& to) {
    const auto result = RegroupPadding(dims, from, padding, to);
    return result.has_value() ? Text(*result) : std::string("none");
  };
  const Places three = PlacesOfHeads(3, 3, 4);
  // Heads joined, and taken apart again.
  EXPECT_EQ(regrouped({batch, tokens, n(2), n(3)}, {{}, {}, {}, three}, {batch, tokens, n(6)}), "- | - | 0 1 2 -1 3 4 5 -1");
  EXPECT_EQ(regrouped({batch, tokens, n(6)}, {{}, {}, PlacesOfHeads(6, 3, 4)}, {batch, tokens, n(2), n(3)}),
            "- | - | - | 0 1 2 -1");
  // Rows are joined beside them, whatever their number is.
  EXPECT_EQ(regrouped({batch, tokens, n(3)}, {{}, {}, three}, {dims.Mul(batch, tokens), n(3)}), "- | 0 1 2 -1");
  EXPECT_EQ(regrouped({batch, n(1), n(2), n(3), tokens}, {{}, {}, {}, three, {}}, {batch, n(6), n(1), tokens}),
            "- | 0 1 2 -1 3 4 5 -1 | - | -");
  // Heads beside a batch of any size, as nn.MultiheadAttention has them.
  EXPECT_EQ(regrouped({tokens, dims.Mul(batch, n(2)), n(3)}, {{}, {}, three}, {tokens, batch, n(6)}),
            "- | - | 0 1 2 -1 3 4 5 -1");
  EXPECT_EQ(regrouped({tokens, batch, n(6)}, {{}, {}, PlacesOfHeads(6, 3, 4)}, {tokens, dims.Mul(batch, n(2)), n(3)}),
            "- | - | 0 1 2 -1");
  EXPECT_EQ(regrouped({tokens, batch, n(6)}, {{}, {}, PlacesOfHeads(6, 6, 8)}, {tokens, dims.Mul(batch, n(2)), n(3)}), "none");
  // Across the heads: 2 x 3 as 3 x 2.
  EXPECT_EQ(regrouped({n(2), n(3)}, {{}, three}, {n(3), n(2)}), "none");
  // Nobody knows where the elements go.
  EXPECT_EQ(regrouped({tokens, n(3), batch}, {{}, three, {}}, {dims.Symbol("other"), dims.Symbol("rest")}), "none");
}

TEST(ZeroPadding, OperandsOfMovesAndProducts) {
  Inferred model(R"(
    g (float[2, 5, 8] x, float[2, 5, 6] other, float[6] table, float[8, 6] w, float[6] b) => (float[2, 5, 6] y)
    <int64[4] heads = {2, 5, 2, 3}, float two = {2}>
    { m = MatMul (x, w)  a = Add (m, b)  s = Mul (a, two)  r = Reshape (s, heads)  t = Transpose <perm = [0, 2, 1, 3]> (r)
      d = Div (two, a)  p = Add (a, two)  n = Softmax (a)  c = Concat <axis = 2> (a, other)  j = Concat <axis = 1> (a, other)
      g = Mul (a, table)  y = Identity (a) })");
  const Places three = PlacesOfHeads(3, 3, 4);
  const Places six = PlacesOfHeads(6, 3, 4);
  EXPECT_EQ(Operands(model, "t", {{{}, {}, {}, three}}), "0: - | - | - | 0 1 2 -1");
  EXPECT_EQ(Operands(model, "t", {{{}, PlacesOfHeads(2, 2, 3), {}, {}}}), "0: - | - | 0 1 -1 | -");
  EXPECT_EQ(Operands(model, "r", {{{}, {}, {}, three}}), "0: - | - | 0 1 2 -1 3 4 5 -1");
  // A factor for all is not handled; one for each channel has zeros, too.
  EXPECT_EQ(Operands(model, "s", {{{}, {}, six}}), "0: - | - | 0 1 2 -1 3 4 5 -1");
  EXPECT_EQ(Operands(model, "g", {{{}, {}, six}}), "0: - | - | 0 1 2 -1 3 4 5 -1; 1: 0 1 2 -1 3 4 5 -1");
  EXPECT_EQ(Operands(model, "a", {{{}, {}, six}}), "0: - | - | 0 1 2 -1 3 4 5 -1; 1: 0 1 2 -1 3 4 5 -1");
  EXPECT_EQ(Operands(model, "m", {{{}, {}, six}}), "1: - | 0 1 2 -1 3 4 5 -1");
  EXPECT_EQ(Operands(model, "j", {{{}, {}, six}}), "0: - | - | 0 1 2 -1 3 4 5 -1; 1: - | - | 0 1 2 -1 3 4 5 -1");
}

TEST(ZeroPadding, WhatMakesNumbersOfZeros) {
  Inferred model(R"(
    g (float[2, 5, 8] x, float[2, 5, 4] other, float[8, 6] w, float[6] b) => (float[2, 5, 6] y)
    <float two = {2}>
    { m = MatMul (x, w)  d = Div (two, m)  e = Div (b, m)  p = Add (m, two)  n = Softmax (m)  c = Concat <axis = 2> (m, other)
      y = Identity (m) })");
  const ZeroPadding six = {{}, {}, PlacesOfHeads(6, 3, 4)};
  EXPECT_EQ(Operands(model, "d", {six}), "Div 'd' would divide by zeros");
  EXPECT_EQ(Operands(model, "e", {six}), "Div 'e' would divide by zeros");
  EXPECT_EQ(Operands(model, "p", {six}), "Add 'p' adds to zeros");
  EXPECT_EQ(Operands(model, "n", {six}), "Softmax 'n' computes with them");
  EXPECT_EQ(Operands(model, "c", {{{}, {}, PlacesOfHeads(10, 5, 6)}}), "Concat 'c' joins parts of a head");
}

TEST(ZeroPadding, TurnedInPairs) {
  Inferred model(R"(
    g (float[B, 2, S, 6] x, float[1, 1, S, 6] cos, float[S, 6] sin) => (float[B, 2, S, 6] y)
    { pairs = ascend_fuse.Rotary <mode = "interleaved"> (x, cos, sin)  halves = ascend_fuse.Rotary <mode = "half"> (x, cos, sin)
      y = Identity (x) })");
  const auto of_head = [](Places places) { return ZeroPadding{{}, {}, {}, std::move(places)}; };
  EXPECT_EQ(Operands(model, "pairs", {of_head(PlacesOfHeads(6, 6, 8))}),
            "0: - | - | - | 0 1 2 3 4 5 -1 -1; 1: - | - | - | 0 1 2 3 4 5 -1 -1; 2: - | 0 1 2 3 4 5 -1 -1");
  // Half a pair of zeros gets what the other half is, and so do halves of a head.
  EXPECT_EQ(Operands(model, "pairs", {of_head(PlacesOfHeads(6, 6, 7))}), "Rotary 'pairs' computes with them");
  EXPECT_EQ(Operands(model, "pairs", {of_head(PlacesOfHeads(6, 3, 4))}), "Rotary 'pairs' computes with them");
  EXPECT_EQ(Operands(model, "pairs", {{{}, PlacesOfHeads(2, 2, 4), {}, {}}}), "Rotary 'pairs' computes with them");
  EXPECT_EQ(Operands(model, "halves", {of_head(PlacesOfHeads(6, 6, 8))}), "Rotary 'halves' computes with them");
}

TEST(ZeroPadding, PartsOfAPackedProjection) {
  Inferred model(R"(
    g (float[2, 5, 10] x, float[3, 2, 4] five) => (float[2, 5, 4] y)
    <int64[2] sizes = {4, 6}, int64[1] start = {4}, int64[1] end = {100}, int64[1] axis = {2}, int64 one = {1}>
    { a, b = Split <axis = -1> (x, sizes)  s = Slice (x, start, end, axis)  q = Gather (five, one)  y = Identity (a) })");
  EXPECT_EQ(Operands(model, "a", {{{}, {}, PlacesOfHeads(4, 2, 3)}, {{}, {}, {}}}),
            "0: - | - | 0+4: 0 1 -1 2 3 -1; 0: - | - | 4+6: -");
  EXPECT_EQ(Operands(model, "s", {{{}, {}, PlacesOfHeads(6, 3, 4)}}), "0: - | - | 4+6: 0 1 2 -1 3 4 5 -1");
  EXPECT_EQ(Operands(model, "q", {{{}, PlacesOfHeads(4, 4, 5)}}), "0: 1+1: - | - | 0 1 2 3 -1");
}

TEST(ZeroPadding, CutsAreAskedOfTheMovement) {
  Inferred model(R"(
    g (float[2, 9, 6] x, int64[1] n, int64 i) => (float[2, 9, 6] y)
    <int64[2] starts = {2, 2}, int64[2] ends = {7, 100}, int64[2] axes = {1, 2}, int64[3] some = {1, 2, 3}, int64[3] odd = {0, 2, 5}>
    { both = Slice (x, starts, ends, axes)  run = Gather <axis = 2> (x, some)  picked = Gather <axis = 2> (x, odd)
      at = Gather <axis = 1> (x, n)  one = Gather <axis = 1> (x, i)  last = Gather <axis = 2> (x, i)  y = Identity (x) })");
  const Places two = PlacesOfHeads(4, 2, 3);
  EXPECT_EQ(Operands(model, "both", {{{}, {}, two}}), "0: - | 2+5: - | 2+4: 0 1 -1 2 3 -1");
  EXPECT_EQ(Operands(model, "run", {{{}, {}, {}}}), "0: - | - | 1+3: -");
  EXPECT_EQ(Operands(model, "at", {{{}, {}, PlacesOfHeads(6, 3, 4)}}), "0: - | - | 0 1 2 -1 3 4 5 -1") << "wherever it cuts";
  EXPECT_EQ(Operands(model, "one", {{{}, PlacesOfHeads(6, 3, 4)}}), "0: - | - | 0 1 2 -1 3 4 5 -1");
  EXPECT_EQ(Operands(model, "last", {{{}, {}}}), "0: - | - | -");
  EXPECT_EQ(Operands(model, "picked", {{{}, {}, {}}}), "0: - | - | -");
  EXPECT_EQ(Operands(model, "picked", {{{}, {}, PlacesOfHeads(3, 3, 4)}}), "Gather 'picked' moves to places that are not known");
}

TEST(ZeroPadding, AWeightTakesZerosOut) {
  Inferred model(R"(
    g (float[2, 5, 6] x, float[2, 3] rows, float[6, 4] w, float[4, 3] t) => (float[2, 5, 4] y)
    { y = MatMul (x, w)  g = Gemm <transB = 1> (rows, t) })");
  const auto other = [&](const std::string& value, const ZeroPadding& padding) {
    const auto operand = OtherFactorOf(model.facts(), *model.Find(value)->producer, 0, padding);
    if (!operand.has_value()) return std::string("none");
    ZeroPadding axes;
    for (const PaddedPart& part : operand->parts) axes.push_back(part.places);
    return Text(axes);
  };
  EXPECT_EQ(other("y", {{}, {}, PlacesOfHeads(6, 3, 4)}), "0 1 2 -1 3 4 5 -1 | -");
  EXPECT_EQ(other("y", {{}, PlacesOfHeads(5, 5, 6), {}}), "none");
  EXPECT_EQ(other("g", {{}, PlacesOfHeads(3, 3, 4)}), "- | 0 1 2 -1");
}

}  // namespace
}  // namespace ascend_fuse
