// Which channels of which value another value holds, followed through the operators that move them, and the rotations
// that are read from it.
#include "patterns/analysis/channels.h"

#include <string>
#include <vector>

#include "fmt/format.h"
#include "patterns/analysis/halves.h"
#include "patterns/analysis/rotation.h"
#include "tests/unit/rule_testing.h"

namespace ascend_fuse {
namespace {

using testing::Subject;

// The channels of x that y holds, "0 1 -3", or the sentence that says why it is not known.
std::string Channels(const std::string& text, int opset = 17) {
  Subject subject(text, opset);
  const FunctionContext context = subject.Context();
  const Value* x = subject.Named("x");
  const absl::StatusOr<ChannelMap> map = FollowChannels(context, subject.Named("y"), {x});
  if (!map.ok()) return std::string(map.status().message());
  std::string text_of;
  for (const Channel& channel : ListOf(*map)) {
    text_of += fmt::format("{}{}{}", text_of.empty() ? "" : " ", channel.negative ? "-" : "", channel.index);
  }
  for (const Window& window : map->windows) {
    if (!window.whole) text_of += fmt::format(" from {}", window.start.is_number() ? window.start.number() : -1);
  }
  return text_of;
}

std::string Mode(const std::string& text, int sign = 1) {
  Subject subject(text);
  const FunctionContext context = subject.Context();
  const absl::StatusOr<std::string> mode = RotationMode(context, subject.Named("r"), subject.Named("h"), sign);
  return mode.ok() ? *mode : std::string(mode.status().message());
}

bool Has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

TEST(ChannelsTest, OperatorsThatMove) {
  EXPECT_EQ(Channels("(float[B, 4] x) => (y) <int64[1] s = {1}, int64[1] e = {3}, int64[1] a = {-1}> "
                     "{ y = Slice (x, s, e, a) }"),
            "1 2");
  EXPECT_EQ(Channels("(float[B, 4] x) => (y) <int64[1] s = {-1}, int64[1] e = {-9}, int64[1] a = {1}, int64[1] p = {-2}> "
                     "{ y = Slice (x, s, e, a, p) }"),
            "3 1");
  EXPECT_EQ(Channels("(float[B, 4] x) => (y) <int64[2] n = {1, 3}> { a, b = Split <axis = 1> (x, n)\n"
                     " c = Neg (b)\n y = Concat <axis = -1> (c, a) }"),
            "-1 -2 -3 0");
  EXPECT_EQ(Channels("(float[B, 4] x) => (y) <int64[3] i = {3, 0, -3}> { y = Gather <axis = 1> (x, i) }"), "3 0 1");
  EXPECT_EQ(Channels("(float[B, 6] x) => (y) <int64[3] s = {0, 3, 2}, int64[2] f = {0, 6}> { a = Reshape (x, s)\n"
                     " b = Transpose <perm = [0, 2, 1]> (a)\n y = Reshape (b, f) }"),
            "0 2 4 1 3 5");
  EXPECT_EQ(Channels("(float[B, 2] x) => (y) <float[2, 2] m = {0, -1, 1, 0}> { y = MatMul (x, m) }"), "1 -0");
  EXPECT_EQ(Channels("(float[B, 4] x) => (y) <float[4] m = {1, -1, 1, -1}> { y = Mul (x, m) }"), "0 -1 2 -3");
}

TEST(ChannelsTest, WhatComputesIsTheEnd) {
  EXPECT_TRUE(Has(Channels("(float[B, 4] x) => (y) { y = Exp (x) }"), "y is computed by Exp"));
  EXPECT_TRUE(Has(Channels("(float[B, 4] x) => (y) <float f = {2}> { y = Mul (x, f) }"), "y is computed by Mul"));
  EXPECT_TRUE(Has(Channels("(float[B, 2] x) => (y) <float[2, 2] m = {1, 1, 1, 0}> { y = MatMul (x, m) }"), "MatMul"));
  EXPECT_TRUE(Has(Channels("(float[B, C] x) => (y) { y = Neg (x) }"), "not a number of channels"));
  EXPECT_TRUE(Has(Channels("(float[4, 6] x) => (y) <int64[2] s = {6, 4}> { y = Reshape (x, s) }"),
                  "does not keep the leading dims apart"));
}

TEST(ChannelsTest, ASliceOfALeadingAxisIsRemembered) {
  const std::string slice =
      "(float[8, 4] x) => (y) <int64[2] s = {{{}, 0}}, int64[2] e = {{8, 2}}, int64[2] a = {{0, 1}}{}> "
      "{{ y = Slice (x, s, e, a{}) }}";
  EXPECT_EQ(Channels(fmt::format(fmt::runtime(slice), 2, "", "")), "0 1 from 2");
  EXPECT_EQ(Channels(fmt::format(fmt::runtime(slice), -6, "", "")), "0 1 from 2");
  EXPECT_EQ(Channels(fmt::format(fmt::runtime(slice), 0, "", "")), "0 1");
  EXPECT_TRUE(Has(Channels(fmt::format(fmt::runtime(slice), 0, ", int64[2] p = {2, 1}", ", p")), "not on the channels"))
      << "every other row is not a part";
}

TEST(ChannelsTest, PartsOfOneTensorComeFromTheSameRows) {
  const std::string parts =
      "(float[8, 4] x) => (y) <int64[2] s = {{1, 0}}, int64[2] t = {{{}, 2}}, int64[2] e = {{7, 2}}, "
      "int64[2] f = {{{}, 4}}, int64[2] a = {{0, 1}}> "
      "{{ p = Slice (x, s, e, a)\n q = Slice (x, t, f, a)\n y = Concat <axis = 1> (q, p) }}";
  EXPECT_EQ(Channels(fmt::format(fmt::runtime(parts), 1, 7)), "2 3 0 1 from 1");
  EXPECT_TRUE(Has(Channels(fmt::format(fmt::runtime(parts), 2, 8)), "do not fit"));
}

const char kHalves[] =
    "(float[B, 4] h) => (r) <int64[2] n = {2, 2}> { a, b = Split <axis = 1> (h, n)\n c = Neg (b)\n "
    "r = Concat <axis = 1> (c, a) }";

TEST(ChannelsTest, Rotations) {
  EXPECT_EQ(Mode(kHalves), "half");
  EXPECT_TRUE(Has(Mode(kHalves, -1), "turns the other way"));
  EXPECT_EQ(Mode("(float[B, 4] h) => (r) <float[4, 4] m = {0, 1, 0, 0, -1, 0, 0, 0, 0, 0, 0, 1, 0, 0, -1, 0}> "
                 "{ r = MatMul (h, m) }"),
            "interleaved");
  EXPECT_EQ(Mode("(float[B, 4] h) => (r) <float[4, 4] m = {0, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0, 1, 0, 0, -1, 0}> "
                 "{ r = MatMul (h, m) }"),
            "the signs are those of no rotation; one negates the odd channels only");
  EXPECT_TRUE(Has(Mode("(float[B, 4] h) => (r) <int64[2] n = {2, 2}> { a, b = Split <axis = 1> (h, n)\n "
                       "r = Concat <axis = 1> (b, a) }"),
                  "no part is negated"));
}

TEST(ChannelsTest, TheSourceOfTwoHalves) {
  Subject subject(
      "(float[8, 4] x, float[6, 4] y) => (z) <int64[2] s = {1, 0}, int64[2] e = {7, 2}, int64[2] t = {1, 2}, "
      "int64[2] f = {7, 4}, int64[2] a = {0, 1}> "
      "{ p = Slice (x, s, e, a)\n q = Slice (x, t, f, a)\n z = Add (p, q) }");
  const FunctionContext context = subject.Context();
  const absl::StatusOr<Cut> cut = CutSource(context, subject.Named("p"), subject.Named("q"), subject.Named("y"));
  ASSERT_TRUE(cut.ok()) << cut.status();
  EXPECT_EQ(cut->mode, "half");
  EXPECT_EQ(cut->source, subject.Named("x"));
  ASSERT_EQ(cut->whole.kind, Term::Kind::kNode);
  EXPECT_EQ(cut->whole.node->op_type, "Slice");
  EXPECT_FALSE(CutSource(context, subject.Named("p"), subject.Named("q"), subject.Named("x")).ok())
      << "x has rows that neither holds";
  EXPECT_FALSE(CutSource(context, subject.Named("q"), subject.Named("p"), subject.Named("y")).ok())
      << "the second half comes first";
}

}  // namespace
}  // namespace ascend_fuse
