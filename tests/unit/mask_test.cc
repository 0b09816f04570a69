// What a mask can hold, followed through the program that computes it, and the explicit mask that is made of
// it.
#include "patterns/analysis/mask.h"

#include <limits>
#include <string>
#include <vector>

#include "tests/unit/rule_testing.h"

namespace ascend_fuse {
namespace {

using testing::Subject;

constexpr double kInfinity = std::numeric_limits<double>::infinity();
const double kLowest = std::numeric_limits<float>::lowest();

// The numbers that y can hold; {NaN-free} or "unknown" as an empty list with known = false.
PossibleValues Of(const std::string& text, int opset = 17) {
  Subject subject(text, opset);
  return ValuesOf(subject.Context(), subject.Named("y"));
}

std::vector<double> Values(const std::string& text, int opset = 17) {
  const PossibleValues set = Of(text, opset);
  EXPECT_TRUE(set.known) << text;
  return set.values;
}

bool Unknown(const std::string& text, int opset = 17) { return !Of(text, opset).known; }

using Numbers = std::vector<double>;

TEST(ValueSetTest, Leaves) {
  EXPECT_EQ(Values("(bool[4] x) => (bool[4] y) { y = Identity (x) }"), (Numbers{0, 1}));
  EXPECT_EQ(Values("() => (float[3] y) <float[3] c = {0, -1e30, 0}> { y = Identity (c) }"),
            (Numbers{static_cast<double>(-1e30f), 0}));
  EXPECT_TRUE(Unknown("(float[4] x) => (float[4] y) { y = Identity (x) }"));
  EXPECT_TRUE(Unknown("() => (float[2] y) <float[2] c = {0, nan}> { y = Identity (c) }"));
  const PossibleValues mask = Of("(int64[4] x) => (int64[4] y) { y = Identity (x) }");
  EXPECT_EQ(mask.values, (Numbers{0, 1}));
  EXPECT_EQ(mask.assumptions, (std::vector<std::string>{"the integer input x holds only 0 and 1, as a mask does"}));
  EXPECT_TRUE(Of("(bool[4] x) => (bool[4] y) { y = Identity (x) }").assumptions.empty());
}

TEST(ValueSetTest, AnOverridableInitializerIsNoConstant) {
  EXPECT_TRUE(Unknown("(float[2] c) => (float[2] y) <float[2] c = {0, 1}> { y = Identity (c) }"));
}

TEST(ValueSetTest, MoreThanSixteenNumbersAreNotFollowed) {
  EXPECT_EQ(Values("() => (float[16] y) <float[16] c = {0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15}> { y = Identity (c) }").size(),
            16u);
  EXPECT_TRUE(Unknown("() => (float[17] y) <float[17] c = {0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16}> { y = Identity (c) }"));
}

TEST(ValueSetTest, ComparisonsAndLogicAreBoolWhateverTheyRead) {
  EXPECT_EQ(Values("(float[4] x, float[4] z) => (bool[4] y) { y = Less (x, z) }"), (Numbers{0, 1}));
  EXPECT_EQ(Values("(bool[4] x) => (bool[4] y) { y = Not (x) }"), (Numbers{0, 1}));
  EXPECT_EQ(Values("(float[4] x) => (bool[4] y) { y = Cast <to = 9> (x) }"), (Numbers{0, 1}));
}

TEST(ValueSetTest, BertsMaskInEverySpelling) {
  EXPECT_EQ(Values("(bool[4] x) => (float[4] y) <float one = {1}, float low = {-10000.0}> "
                   "{ f = Cast <to = 1> (x)\n r = Sub (one, f)\n y = Mul (r, low) }"),
            (Numbers{-10000, 0}));
  EXPECT_EQ(Values("(bool[4] x) => (float[4] y) <float one = {1}, float low = {10000.0}> "
                   "{ f = Cast <to = 1> (x)\n r = Sub (f, one)\n y = Mul (low, r) }"),
            (Numbers{-10000, 0}));
  EXPECT_EQ(Values("(bool[4] x) => (float[4] y) <float zero = {0}, float low = {-3.4028235e38}> { y = Where "
                   "(x, zero, low) }"),
            (Numbers{kLowest, 0}));
}

TEST(ValueSetTest, WhatIsLeftOfAnInvertedMaskIsItsZeros) {
  // Where (x as bool, fill, x): transformers' _expand_mask.
  EXPECT_EQ(Values("(bool[4] x) => (float[4] y) <float one = {1}, float low = {-3.4028235e38}> { f = Cast "
                   "<to = 1> (x)\n "
                   "i = Sub (one, f)\n b = Cast <to = 9> (i)\n y = Where (b, low, i) }"),
            (Numbers{kLowest, 0}));
  // Of another value all its numbers are left.
  EXPECT_EQ(Values("(bool[4] x, bool[4] z) => (float[4] y) <float low = {-5.0}> { f = Cast <to = 1> (x)\n "
                   "g = Cast <to = 1> (z)\n b = Cast <to = 9> (g)\n y = Where (b, low, f) }"),
            (Numbers{-5, 0, 1}));
  // The other way round the ones are left.
  EXPECT_EQ(Values("(bool[4] x) => (float[4] y) <float low = {-5.0}> { f = Cast <to = 1> (x)\n "
                   "b = Cast <to = 9> (f)\n y = Where (b, f, low) }"),
            (Numbers{-5, 0, 1}));
}

TEST(ValueSetTest, SumsRoundAsTheRunDoes) {
  EXPECT_EQ(Values("(bool[4] a, bool[4] b) => (float[4] y) <float zero = {0}, float low = {-3.4028235e38}> "
                   "{ c = Where (a, zero, low)\n d = Where (b, zero, low)\n y = Add (c, d) }"),
            (Numbers{-kInfinity, kLowest, 0}));
  EXPECT_EQ(Values("(bool[4] a, bool[4] b) => (float16[4] y) <float16 zero = {0}, float16 low = {-65504.0}> "
                   "{ c = Where (a, zero, low)\n d = Where (b, zero, low)\n y = Add (c, d) }"),
            (Numbers{-kInfinity, -65504, 0}));
}

TEST(ValueSetTest, IntegersBeyondTheirTypeAreUnknown) {
  const std::string choice =
      "(bool[4] a) => (int32[4] y) <int32 zero = {0}, int32 low = {-2147483648}> { c = Where (a, zero, low)\n ";
  EXPECT_TRUE(Unknown(choice + "y = Add (c, c) }")) << "0 again";
  EXPECT_TRUE(Unknown(choice + "y = Neg (c) }"));
  EXPECT_TRUE(
      Unknown("(bool[4] a) => (int8[4] y) { c = Cast <to = 6> (a)\n d = Mul (c, c)\n e = Sub (d, d)\n "
              "n = Constant <value_int = 200> ()\n m = Cast <to = 6> (n)\n f = Mul (c, m)\n y = Cast <to = 3> (f) }"));
  EXPECT_EQ(Values(choice + "y = Add (c, zero) }"), (Numbers{-2147483648.0, 0}));
}

TEST(ValueSetTest, WhatCouldBeNanIsUnknown) {
  EXPECT_TRUE(Unknown("(bool[4] a) => (float[4] y) <float low = {-inf}> { f = Cast <to = 1> (a)\n y = Mul (f, low) }"))
      << "0 * -inf";
  EXPECT_TRUE(
      Unknown("(bool[4] a) => (float[4] y) <float zero = {0}, float low = {-inf}, float high = {inf}> "
              "{ c = Where (a, zero, low)\n y = Add (c, high) }"))
      << "-inf + inf";
  EXPECT_TRUE(Unknown("(bool[4] a) => (float[4] y) { f = Cast <to = 1> (a)\n y = Div (f, f) }")) << "0 / 0";
}

TEST(ValueSetTest, CopiesConcatAndTriangles) {
  EXPECT_EQ(Values("(bool[2, 4] x) => (y) <int64[1] a = {0}, int64[4] r = {1, 1, 2, 4}, int64[4] e = {3, 1, 2, 4}> "
                   "{ f = Cast <to = 1> (x)\n s = Reshape (f, r)\n t = Expand (s, e)\n y = Transpose <perm = [0, "
                   "1, 3, 2]> (t) }"),
            (Numbers{0, 1}));
  EXPECT_EQ(Values("(bool[4] x) => (y) <float[2] c = {5, 6}> { f = Cast <to = 1> (x)\n y = Concat <axis = 0> "
                   "(f, c) }"),
            (Numbers{0, 1, 5, 6}));
  EXPECT_TRUE(Unknown("(bool[4] x, float[4] z) => (y) { f = Cast <to = 1> (x)\n y = Concat <axis = 0> (f, z) }"));
  EXPECT_EQ(Values("() => (float[2, 2] y) <float[2, 2] c = {-7, -7, -7, -7}> { y = Trilu <upper = 1> (c) }"), (Numbers{-7, 0}));
  EXPECT_EQ(Values("(bool[3, 2] x, bool[1, 2] u) => (y) <int64[1, 1] i = {1}, float low = {-9.0}, float zero = {0}> "
                   "{ d = Where (x, zero, low)\n f = Cast <to = 1> (u)\n y = ScatterND (d, i, f) }"),
            (Numbers{-9, 0, 1}));
  EXPECT_TRUE(
      Unknown("(bool[3, 2] x, bool[1, 2] u) => (y) <int64[1, 1] i = {1}> { d = Cast <to = 1> (x)\n f = Cast "
              "<to = 1> (u)\n "
              "y = ScatterND <reduction = \"add\"> (d, i, f) }",
              16));
}

TEST(ValueSetTest, OperatorsItDoesNotKnow) {
  EXPECT_TRUE(Unknown("(bool[4] x) => (float[4] y) { f = Cast <to = 1> (x)\n y = Exp (f) }"));
  EXPECT_TRUE(Unknown("(bool[4, 4] x) => (float[4, 4] y) { f = Cast <to = 1> (x)\n y = MatMul (f, f) }"));
  EXPECT_TRUE(Unknown("(int64[4] x) => (int64[4] y) <int64 ax = {0}> { y = CumSum (x, ax) }"));
}

TEST(ValueSetTest, AssumptionsAreCarriedOnce) {
  const PossibleValues set = Of("(int64[4] x) => (float[4] y) { f = Cast <to = 1> (x)\n g = Sub (f, f)\n y = Add (f, g) }");
  EXPECT_EQ(set.assumptions.size(), 1u);
}

TEST(MaskTest, OnlyMinusInfinityMasksWithInfinity) {
  auto infinite = [](const std::string& low) {
    Subject subject("(bool[4] x) => (float[4] y) <float zero = {0}, float low = {" + low + "}> { y = Where (x, zero, low) }");
    return MasksWithInfinity(subject.Context(), subject.Named("y"));
  };
  EXPECT_TRUE(infinite("-inf"));
  EXPECT_FALSE(infinite("-3.4028235e38"));
  EXPECT_FALSE(infinite("-10000.0"));
}

// What ExplicitMask makes of value m for query q and key k: the operators from the outside in, or the
// refusal.
std::string Explicit(const std::string& inputs, const std::string& body, std::vector<std::string>* assumptions = nullptr,
                     const std::string& consts = "float zero = {0}, float low = {-3.4028235e38}",
                     const std::string& shapes = "float[2, 4, 8, 64] q, float[2, 4, 16, 64] k") {
  Subject subject("(" + shapes + ", " + inputs + ") => (m) <" + consts + "> { " + body + " }");
  std::vector<std::string> sink;
  const absl::StatusOr<Term> term = ExplicitMask(subject.Context(assumptions != nullptr ? assumptions : &sink),
                                                 subject.Named("m"), subject.Named("q"), subject.Named("k"));
  if (!term.ok()) return "refused: " + std::string(term.status().message());
  std::string text;
  Term at = *term;
  while (at.kind == Term::Kind::kNode) {
    text += at.node->op_type + " ";
    at = at.node->inputs[0];
  }
  return text + (at.kind == Term::Kind::kValue ? std::string(ValueName(*at.value)) : "?");
}

TEST(MaskTest, PolarityFollowsTheOperandsOfWhere) {
  EXPECT_EQ(Explicit("bool[2, 1, 8, 16] b", "m = Where (b, zero, low)"), "Not b");
  EXPECT_EQ(Explicit("bool[2, 1, 8, 16] b", "m = Where (b, low, zero)"), "b");
  EXPECT_EQ(Explicit("bool[2, 1, 8, 16] b", "n = Not (b)\n m = Where (n, zero, low)"), "b");
  EXPECT_EQ(Explicit("bool[2, 1, 8, 16] b", "n = Not (b)\n m = Where (n, low, zero)"), "n");
}

TEST(MaskTest, ABooleanMaskAttendsWhereItIsTrue) { EXPECT_EQ(Explicit("bool[2, 1, 8, 16] b", "m = Identity (b)"), "Not m"); }

TEST(MaskTest, OtherMasksAreCompared) {
  EXPECT_EQ(Explicit("bool[2, 1, 8, 16] b", "f = Cast <to = 1> (b)\n m = Mul (f, low)"), "Less m");
}

TEST(MaskTest, SmallerMasksAreExpanded) {
  EXPECT_EQ(Explicit("bool[2, 1, 1, 16] b", "m = Where (b, zero, low)"), "Expand Not b");
  EXPECT_EQ(Explicit("bool[8, 16] b", "m = Where (b, zero, low)"), "Not b");  // kernels take [S, T]
  EXPECT_EQ(Explicit("bool[1, 1, 8, 16] b", "m = Where (b, zero, low)"), "Not b");
}

TEST(MaskTest, WhatIsNoMaskIsRefused) {
  EXPECT_EQ(Explicit("float[2, 1, 8, 16] b", "m = Identity (b)"),
            "refused: m is an additive bias, not a mask: it is not proved to hold only 0 and minus infinity");
  EXPECT_EQ(Explicit("bool[2, 1, 8, 16] b", "m = Where (b, zero, low)", nullptr, "float zero = {0}, float low = {-100.0}"),
            "refused: m can hold -100, which is a bias and not a mask");
  EXPECT_EQ(Explicit("bool[2, 1, 8, 16] b", "m = Where (b, zero, low)", nullptr, "float zero = {1}, float low = {-1e9}"),
            "refused: m can hold 1, which is a bias and not a mask");
  EXPECT_EQ(Explicit("bool[2, 4, 8, 16] b", "m = Where (b, zero, low)"),
            "refused: the mask b may differ from head to head (4 heads), and the kernel takes one mask for all");
  EXPECT_EQ(Explicit("bool[3, 1, 8, 16] b", "m = Where (b, zero, low)"), "refused: the mask's batch 3 is not the query's 2");
  EXPECT_EQ(Explicit("bool[2, 1, 9, 16] b", "m = Where (b, zero, low)"), "refused: the mask has 9 queries and the attention 8");
  EXPECT_EQ(Explicit("bool[1, 2, 1, 8, 16] b", "m = Where (b, zero, low)"), "refused: the mask b has 5 dimensions, at most 4");
}

TEST(MaskTest, UndecidedDimsAreAssumptions) {
  std::vector<std::string> assumptions;
  EXPECT_EQ(Explicit("bool[M, 1, 8, 16] b", "m = Where (b, zero, low)", &assumptions), "Not b");
  EXPECT_EQ(assumptions, (std::vector<std::string>{"the batch of the mask, M, is 1 or 2, that of the query"}));
  assumptions.clear();
  EXPECT_EQ(Explicit("bool[2, 1, M, 16] b", "m = Where (b, zero, low)", &assumptions), "Expand Not b");
  EXPECT_EQ(assumptions, (std::vector<std::string>{"the mask's number of queries M is 1 or the attention's 8"}));
}

TEST(MaskTest, TheThresholdIsMinusTenThousandAsBfloat16RoundsIt) {
  EXPECT_LT(-9984.0, kMaskThreshold);
  EXPECT_GT(-9900.0, kMaskThreshold);
}

}  // namespace
}  // namespace ascend_fuse
