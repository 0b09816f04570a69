// What the axes of a tensor are made of, followed through Reshapes, Transposes and copies, and written anew.
#include "patterns/analysis/axis_map.h"

#include <string>

#include "fmt/format.h"
#include "tests/unit/rule_testing.h"

namespace ascend_fuse {
namespace {

using testing::Subject;

// "[0 1] [2]": atoms by number, an axis of 1 is "[]".
std::string Text(const AxisList& axes) {
  std::string text;
  for (const Atoms& axis : axes) {
    std::string atoms;
    for (int atom : axis) atoms += fmt::format("{}{}", atoms.empty() ? "" : " ", atom);
    text += fmt::format("{}[{}]", text.empty() ? "" : " ", atoms);
  }
  return text;
}

// The axes of x as y names them, each axis of y one atom; what is split gets the next two numbers. Behind "*" what is
// copied; the value reached where it is not x.
std::string Axes(const std::string& text) {
  Subject subject(text);
  const FunctionContext context = subject.Context();
  AtomTable atoms(context.dims);
  AxisView view;
  view.value = subject.Named("y");
  for (Dim dim : context.facts->Of(view.value).shape) view.axes.push_back(atoms.New(dim));
  while (FollowCopy(context, &view) || FollowMovement(context, &atoms, &view)) {
  }
  std::string found = Text(atoms.Leaves(view.axes));
  if (!view.copied.empty()) found += " *" + Text({atoms.Leaves(view.copied)});
  return view.value == subject.Named("x") ? found : fmt::format("{}: {}", ValueName(*view.value), found);
}

TEST(AxisMapTest, HeadsAreFolded) {
  EXPECT_EQ(Axes("(float[2, 4, 8, 16] x) => (y) <int64[3] s = {8, 8, 16}> { y = Reshape (x, s) }"), "[3] [4] [1] [2]");
  // [B, S, N * D] to [B * N, S, D]: the atom of the fold is split by the batch.
  EXPECT_EQ(Axes("(float[B, S, 64] x) => (y) <int64[4] s = {0, 0, 4, 16}, int64[3] f = {-1, 7, 16}> "
                 "{ a = Reshape (x, s)\n b = Transpose <perm = [0, 2, 1, 3]> (a)\n y = Reshape (b, f) }"),
            "y: [0] [1] [2]");  // S is not 7 as far as is proved
  EXPECT_EQ(Axes("(float[B, 7, 64] x) => (y) <int64[4] s = {0, 0, 4, 16}, int64[3] f = {-1, 7, 16}> "
                 "{ a = Reshape (x, s)\n b = Transpose <perm = [0, 2, 1, 3]> (a)\n y = Reshape (b, f) }"),
            "[3] [1] [4 2]");
}

TEST(AxisMapTest, TheOrderOfAFoldIsFollowed) {
  EXPECT_EQ(Axes("(float[2, 8, 4, 16] x) => (y) <int64[3] f = {8, 8, 16}> "
                 "{ a = Transpose <perm = [2, 0, 1, 3]> (x)\n y = Reshape (a, f) }"),
            "[4] [1] [3] [2]");
}

TEST(AxisMapTest, CopiesAreNoAxesOfTheSource) {
  EXPECT_EQ(Axes("(float[2, 3, 5, 8] x) => (y) <int64[1] two = {2}, int64[5] e = {2, 3, 4, 5, 8}, int64[4] m = {2, 12, 5, 8}> "
                 "{ a = Unsqueeze (x, two)\n b = Expand (a, e)\n y = Reshape (b, m) }"),
            "[0] [4] [2] [3] *[5]");
  // Tile repeats all heads, one time after another: the copies are the outer ones.
  EXPECT_EQ(Axes("(float[2, 3, 5] x) => (y) <int64[3] t = {1, 4, 1}> { y = Tile (x, t) }"), "[0] [4] [2] *[3]");
}

TEST(AxisMapTest, OneDimBetweenEqualOnesIsEqual) {
  // The last dim is read from z. It is T, because there are as many elements.
  EXPECT_EQ(Axes("(float[B, 2, S, T] x, float[M, N] z) => (y) <int64[1] i0 = {0}, int64[1] i1 = {1}, int64[1] i2 = {2}> "
                 "{ a = Shape (x)\n c = Gather <axis = 0> (a, i0)\n s = Gather <axis = 0> (a, i2)\n h = Mul (c, i2)\n"
                 " b = Shape (z)\n n = Gather <axis = 0> (b, i1)\n f = Concat <axis = 0> (h, s, n)\n y = Reshape (x, f) }"),
            "[3] [4] [1] [2]");
}

TEST(AxisMapTest, WhatComputesOrPicksIsTheEnd) {
  EXPECT_EQ(Axes("(float[2, 4] x) => (y) { y = Relu (x) }"), "y: [0] [1]");
  EXPECT_EQ(Axes("(float[2, 4] x) => (y) <int64[1] i = {0}> { y = Gather <axis = 1> (x, i) }"), "y: [0] []");
}

// What is built of x [B, S, 4, 16] for the axes `to`, "op op ...".
std::string Built(const AxisList& to) {
  Subject subject("(float[B, S, 4, 16] x) => (y) { y = Relu (x) }");
  const FunctionContext context = subject.Context();
  AtomTable atoms(context.dims);
  const Value* x = subject.Named("x");
  AxisList from;
  for (Dim dim : context.facts->Of(x).shape) from.push_back(atoms.New(dim));
  const auto arranged = Arrange(context, atoms, Term::Of(x), from, to, x);
  if (!arranged.has_value()) return "none";
  std::string text;
  const Term* term = &arranged->term;
  int count = 0;
  for (; term->kind == Term::Kind::kNode; term = &term->node->inputs[0], ++count) text += term->node->op_type + " ";
  EXPECT_GE(arranged->nodes, count);
  return text + std::string(ValueName(*term->value));
}

TEST(AxisMapTest, Arrange) {
  EXPECT_EQ(Built({{0}, {1}, {2}, {3}}), "x");
  EXPECT_EQ(Built({{0}, {2}, {1}, {3}}), "Transpose x");
  EXPECT_EQ(Built({{0}, {1}, {2, 3}}), "Reshape x");
  EXPECT_EQ(Built({{0}, {}, {1}, {2}, {3}}), "Unsqueeze x");
  EXPECT_EQ(Built({{0, 2}, {1}, {3}}), "Reshape Transpose x");
  EXPECT_EQ(Built({{0}, {1}, {2}}), "none");            // an atom is lost
  EXPECT_EQ(Built({{0}, {1}, {2}, {3}, {3}}), "none");  // or would have to be copied
}

TEST(AxisMapTest, FactorsAreTakenUp) {
  Subject subject(
      "(float[2, 4] x, float[4] w) => (y, z) <float a = {0.5}, float[1, 1, 1] b = {4}> "
      "{ c = Mul (a, x)\n y = Div (c, a)\n d = Mul (x, b)\n z = Mul (x, w) }");
  const FunctionContext context = subject.Context();
  AxisView view;
  view.value = subject.Named("y");
  EXPECT_TRUE(FollowFactor(context, &view));
  EXPECT_TRUE(FollowFactor(context, &view));
  EXPECT_EQ(view.factor, 1);
  EXPECT_EQ(view.value, subject.Named("x"));
  view.value = subject.Named("d");  // the number brings an axis
  EXPECT_FALSE(FollowFactor(context, &view));
  view.value = subject.Named("z");
  EXPECT_FALSE(FollowFactor(context, &view));
}

}  // namespace
}  // namespace ascend_fuse
