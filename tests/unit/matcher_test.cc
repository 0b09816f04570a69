// The matcher: every choice is taken back with its bindings when something later fails, repeated names are
// one value, attributes are closed, and parameters are read where this opset keeps them.
#include "patterns/language/matcher.h"

#include <algorithm>
#include <iterator>
#include <string>

#include "tests/unit/rule_testing.h"

namespace ascend_fuse {
namespace {

using testing::Attempt;
using testing::Try;

TEST(MatcherTest, AnAlternativeIsTakenBackWhenAConditionOfTheRuleFails) {
  // Both alternatives match the node; only the second gives a `k` that the rule's condition takes.
  const std::string rule = R"(
def either (x, k)
  | Mul (x, _)  let k = 1
  | Mul (x, _)  let k = 2
rule r (x) => (y) match { y = Relu (either (x, k)) } where { k = 2 }
)";
  const Attempt attempt = Try("(float[4] a, float[4] b) => (float[4] y) { m = Mul (a, b)\n y = Relu (m) }", rule);
  ASSERT_TRUE(attempt);
  EXPECT_EQ(attempt["k"], "2");
  EXPECT_EQ(attempt["x"], "a");
}

TEST(MatcherTest, ABindingOfAFailedAlternativeIsTakenBack) {
  // The first alternative binds x to a and fails at the outer node, which needs x = b.
  const std::string rule = "rule r (x) => (y) match { y = Sub (Relu (x) | Relu (Neg (x)), x) }";
  const Attempt attempt = Try("(float[4] b) => (float[4] y) { a = Neg (b)\n c = Relu (a)\n y = Sub (c, b) }", rule);
  ASSERT_TRUE(attempt);
  EXPECT_EQ(attempt["x"], "b");
}

TEST(MatcherTest, OperandOrderIsTakenBackAcrossTwoNodes) {
  // Each product may be read either way; only one of the four readings has the same x in both.
  const std::string rule = "rule r (x, u, v) => (y) match { y = Sub (Mul (u, x), Mul (v, x)) }";
  const Attempt attempt =
      Try("(float[4] a, float[4] b, float[4] c) => (float[4] y) { p = Mul (a, b)\n q = Mul (a, c)\n y = Sub "
          "(p, q) }",
          rule);
  ASSERT_TRUE(attempt);
  EXPECT_EQ(attempt["x"], "a");
  EXPECT_EQ(attempt["u"], "b");
  EXPECT_EQ(attempt["v"], "c");
}

TEST(MatcherTest, AnOptionalPartIsLeftOutWhenWhatIsInsideDoesNotFit) {
  // With the Cast as narrow the rest would have to be a Relu of a float; the Cast is the x itself.
  const std::string rule = "rule r (x) => (y) match { y = Neg (narrow? (x)) } where { dtype (x) = float16 }";
  const Attempt attempt = Try("(float[4] a) => (float16[4] y) { c = Cast <to = 10> (a)\n y = Neg (c) }", rule);
  ASSERT_TRUE(attempt);
  EXPECT_EQ(attempt["x"], "c");
}

TEST(MatcherTest, ADefinitionsConditionBelongsToItsAlternative) {
  const std::string rule = R"(
def times_two (x)
  | Mul (x, u)  where value (u) = 2
  | Add (x, x)
rule r (x) => (y) match { y = times_two (x) }
)";
  EXPECT_TRUE(Try("(float[4] a) => (float[4] y) <float two = {2}> { y = Mul (two, a) }", rule));
  EXPECT_TRUE(Try("(float[4] a) => (float[4] y) { y = Add (a, a) }", rule));
  EXPECT_FALSE(Try("(float[4] a) => (float[4] y) <float three = {3}> { y = Mul (a, three) }", rule));
  EXPECT_FALSE(Try("(float[4] a, float[4] b) => (float[4] y) { y = Add (a, b) }", rule));
}

TEST(MatcherTest, ARepeatedNameIsOneValueOrTheSameComputation) {
  const std::string rule = "rule r (x) => (y) match { y = Mul (Relu (x), Neg (x)) }";
  EXPECT_TRUE(Try("(float[4] a) => (float[4] y) { b = Relu (a)\n c = Neg (a)\n y = Mul (b, c) }", rule));
  EXPECT_TRUE(
      Try("(float[4] a) => (float[4] y) { e = Exp (a)\n f = Exp (a)\n b = Relu (e)\n c = Neg (f)\n y = Mul "
          "(b, c) }",
          rule));
  EXPECT_FALSE(Try("(float[4] a, float[4] z) => (float[4] y) { b = Relu (a)\n c = Neg (z)\n y = Mul (b, c) }", rule));
}

TEST(MatcherTest, ARepeatedDimIsOneDim) {
  const std::string rule = "rule r (x) => (y) match { y = Relu (x) } where { shape (x) = [D, D] }";
  EXPECT_TRUE(Try("(float[N, N] a) => (float[N, N] y) { y = Relu (a) }", rule));
  EXPECT_TRUE(Try("(float[4, 4] a) => (float[4, 4] y) { y = Relu (a) }", rule));
  EXPECT_FALSE(Try("(float[4, 5] a) => (float[4, 5] y) { y = Relu (a) }", rule));
  EXPECT_FALSE(Try("(float[N, M] a) => (float[N, M] y) { y = Relu (a) }", rule));  // may be equal, not provably
}

TEST(MatcherTest, ShapesWithAnEllipsis) {
  const std::string rule = "rule r (x) => (y) match { y = Relu (x) } where { shape (x) = [B, ..., 8] }";
  EXPECT_TRUE(Try("(float[N, 8] a) => (float[N, 8] y) { y = Relu (a) }", rule));
  EXPECT_TRUE(Try("(float[N, 2, 3, 8] a) => (float[N, 2, 3, 8] y) { y = Relu (a) }", rule));
  EXPECT_FALSE(Try("(float[8] a) => (float[8] y) { y = Relu (a) }", rule));
  EXPECT_FALSE(Try("(float[N, 9] a) => (float[N, 9] y) { y = Relu (a) }", rule));
}

TEST(MatcherTest, CommutativityComesFromTheOperator) {
  const std::string add = "rule r (x) => (y) match { y = Add (Relu (x), Neg (x)) }";
  EXPECT_TRUE(Try("(float[4] a) => (float[4] y) { b = Relu (a)\n c = Neg (a)\n y = Add (b, c) }", add));
  EXPECT_TRUE(Try("(float[4] a) => (float[4] y) { b = Relu (a)\n c = Neg (a)\n y = Add (c, b) }", add));
  const std::string sub = "rule r (x) => (y) match { y = Sub (Relu (x), Neg (x)) }";
  EXPECT_TRUE(Try("(float[4] a) => (float[4] y) { b = Relu (a)\n c = Neg (a)\n y = Sub (b, c) }", sub));
  EXPECT_FALSE(Try("(float[4] a) => (float[4] y) { b = Relu (a)\n c = Neg (a)\n y = Sub (c, b) }", sub));
  const std::string matmul = "rule r (x) => (y) match { y = MatMul (Relu (x), Neg (x)) }";
  EXPECT_FALSE(Try("(float[4, 4] a) => (float[4, 4] y) { b = Relu (a)\n c = Neg (a)\n y = MatMul (c, b) }", matmul));
}

TEST(MatcherTest, AttributesThatAreNotMentionedMustHaveTheirDefault) {
  const std::string rule = "rule r (x) => (y) match { y = Softmax (x) }";
  EXPECT_TRUE(Try("(float[4, 4] a) => (float[4, 4] y) { y = Softmax (a) }", rule));
  EXPECT_TRUE(Try("(float[4, 4] a) => (float[4, 4] y) { y = Softmax <axis = -1> (a) }", rule));
  EXPECT_FALSE(Try("(float[4, 4] a) => (float[4, 4] y) { y = Softmax <axis = 0> (a) }", rule));
  const Attempt attempt = Try("(float[4, 4] a) => (float[4, 4] y) { y = Softmax <axis = 0> (a) }", rule);
  EXPECT_EQ(attempt.failure.expected, "Softmax with the default of `axis`");
  EXPECT_EQ(attempt.failure.found, "axis = 0");
}

TEST(MatcherTest, DefaultsAreThoseOfTheOpset) {
  const std::string rule = "rule r (x) => (y) match { y = Softmax <axis = -1> (x) }";
  EXPECT_TRUE(Try("(float[2, 4, 4] a) => (float[2, 4, 4] y) { y = Softmax (a) }", rule, 13));
  EXPECT_FALSE(Try("(float[2, 4, 4] a) => (float[2, 4, 4] y) { y = Softmax (a) }", rule, 11));  // axis 1 there
  EXPECT_TRUE(Try("(float[2, 4, 4] a) => (float[2, 4, 4] y) { y = Softmax <axis = 2> (a) }", rule, 11));
}

TEST(MatcherTest, AnAttributeThatIsUnknownToTheOperatorIsNotOverlooked) {
  EXPECT_FALSE(Try("(float[4] a) => (float[4] y) { y = Relu <slope = 2.0> (a) }", "rule r (x) => (y) match { y = Relu (x) }"));
}

TEST(MatcherTest, AttributeOrInput) {
  const std::string rule = "rule r (x) => (y) match { y = ReduceMean <axes = [-1], keepdims = 1> (x) }";
  EXPECT_TRUE(Try("(float[2, 4] a) => (float[2, 1] y) { y = ReduceMean <axes = [-1]> (a) }", rule, 17));
  EXPECT_TRUE(Try("(float[2, 4] a) => (float[2, 1] y) { y = ReduceMean <axes = [1], keepdims = 1> (a) }", rule, 17));
  EXPECT_TRUE(Try("(float[2, 4] a) => (float[2, 1] y) <int64[1] ax = {-1}> { y = ReduceMean (a, ax) }", rule, 18));
  EXPECT_TRUE(Try("(float[2, 4] a) => (float[2, 1] y) <int64[1] ax = {1}> { y = ReduceMean (a, ax) }", rule, 18));
  EXPECT_FALSE(Try("(float[2, 4] a) => (float[2, 1] y) <int64[1] ax = {0}> { y = ReduceMean (a, ax) }", rule, 18));
  EXPECT_FALSE(Try("(float[2, 4] a) => (float[1, 1] y) { y = ReduceMean (a) }", rule, 18));  // all axes
  EXPECT_FALSE(Try("(float[2, 4] a, int64[1] ax) => (y) { y = ReduceMean (a, ax) }", rule,
                   18));  // decided at run time
  EXPECT_FALSE(Try("(float[2, 4] a) => (float[2] y) { y = ReduceMean <axes = [-1], keepdims = 0> (a) }", rule, 17));
}

TEST(MatcherTest, AnAxisOfUnknownRankIsNotCountedFromTheEnd) {
  const std::string rule = "rule r (x) => (y) match { y = Softmax <axis = -1> (x) }";
  EXPECT_TRUE(Try("(float a) => (float y) { y = Softmax <axis = -1> (a) }", rule));
  const std::string unknown = "(int64[n] shape, float[N] a) => (y) { u = Reshape (a, shape)\n y = Softmax <axis = 3> (u) }";
  EXPECT_FALSE(Try(unknown, rule));
}

TEST(MatcherTest, AnAttributeIsBound) {
  const std::string rule = "rule r (x) => (y) match { y = LayerNormalization <axis = -1, epsilon> (x, _) } where { epsilon > 0 }";
  const Attempt attempt =
      Try("(float[2, 4] a, float[4] g) => (float[2, 4] y) { y = LayerNormalization <epsilon = 0.5> (a, g) }", rule);
  ASSERT_TRUE(attempt);
  EXPECT_EQ(attempt["epsilon"], "0.5");
  EXPECT_FALSE(Try("(float[2, 4] a, float[4] g, float[4] b) => (float[2, 4] y) { y = LayerNormalization (a, g, b) }", rule))
      << "a third input is not in the pattern";
}

TEST(MatcherTest, AbsentInputsAndOptionalOnes) {
  const std::string absent = "rule r (x, h) => (y) match { y = Clip (x, \"\", h) }";
  EXPECT_TRUE(Try("(float[4] a) => (float[4] y) <float six = {6}> { y = Clip (a, , six) }", absent));
  EXPECT_FALSE(Try("(float[4] a) => (float[4] y) <float zero = {0}, float six = {6}> { y = Clip (a, zero, six) }", absent));
  const std::string optional = "rule r (x, l?, h) => (y) match { y = Clip (x, l, h) }";
  const Attempt with =
      Try("(float[4] a) => (float[4] y) <float zero = {0}, float six = {6}> { y = Clip (a, zero, six) }", optional);
  ASSERT_TRUE(with);
  EXPECT_EQ(with["l"], "zero");
  const Attempt without = Try("(float[4] a) => (float[4] y) <float six = {6}> { y = Clip (a, , six) }", optional);
  ASSERT_TRUE(without);
  EXPECT_EQ(without["l"], "absent");
}

TEST(MatcherTest, LiteralsHaveTheToleranceOfTheirType) {
  const std::string rule = "rule r (x) => (y) match { y = Mul (x, 0.044715) }";
  EXPECT_TRUE(Try("(float[4] a) => (float[4] y) <float c = {0.044715}> { y = Mul (a, c) }", rule));
  EXPECT_TRUE(Try("(float[4] a) => (float[4] y) <float c = {0.0447150}> { y = Mul (c, a) }", rule));
  EXPECT_FALSE(Try("(float[4] a) => (float[4] y) <float c = {0.04473}> { y = Mul (a, c) }", rule));
  EXPECT_TRUE(Try("(float16[4] a) => (float16[4] y) <float16 c = {0.0447}> { y = Mul (a, c) }", rule));
  EXPECT_FALSE(Try("(float16[4] a) => (float16[4] y) <float16 c = {0.0449}> { y = Mul (a, c) }", rule));
  // What every type keeps exactly must be met exactly.
  const std::string half = "rule r (x) => (y) match { y = Mul (x, 0.5) }";
  EXPECT_FALSE(Try("(float[4] a) => (float[4] y) <float c = {0.50001}> { y = Mul (a, c) }", half));
}

TEST(MatcherTest, ALiteralIsOneElementOfAtMostOneDim) {
  const std::string rule = "rule r (x) => (y) match { y = Mul (x, 2) }";
  EXPECT_TRUE(Try("(float[3, 4] a) => (float[3, 4] y) <float c = {2}> { y = Mul (a, c) }", rule));
  EXPECT_TRUE(Try("(float[3, 4] a) => (float[3, 4] y) <float[1] c = {2}> { y = Mul (a, c) }", rule));
  EXPECT_TRUE(Try("(float[3, 4] a) => (float[3, 4] y) { c = Constant <value_float = 2.0> ()\n y = Mul (c, a) }", rule));
  EXPECT_FALSE(Try("(float[3, 4] a) => (float[1, 3, 4] y) <float[1, 1, 1] c = {2}> { y = Mul (a, c) }", rule));
  EXPECT_FALSE(Try("(float[1, 4] a) => (float[2, 4] y) <float[2, 1] c = {2, 2}> { y = Mul (a, c) }", rule));
  EXPECT_FALSE(Try("(float[3, 4] a, float c) => (float[3, 4] y) <float c = {2}> { y = Mul (a, c) }", rule))
      << "an initializer that a caller may override is not a constant";
}

TEST(MatcherTest, SeveralOutputs) {
  const std::string rule = "rule r (x) => (y, s) match { y = Neg (s)\n s, _ = Split <axis = 0, split = _> (x) }";
  const std::string model = "(float[4] a) => (float[2] y) <int64[2] z = {2, 2}> { u, v = Split (a, z)\n y = Neg (%) }";
  auto with = [&](const std::string& name) {
    std::string text = model;
    return text.replace(text.find('%'), 1, name);
  };
  const Attempt attempt = Try(with("u"), rule);
  ASSERT_TRUE(attempt);
  EXPECT_EQ(attempt["s"], "u");
  EXPECT_FALSE(Try(with("v"), rule)) << "v is the second output and s the first";
  EXPECT_FALSE(Try("(float[4] a) => (float[2] y) <int64[3] z = {2, 1, 1}> { u, v, w = Split (a, z)\n y = Neg (u) }", rule));
}

TEST(MatcherTest, CostlyNodesThatStayAreNotComputedTwice) {
  const std::string rule = "rule r (a, b) => (y) match { y = Relu (narrow? (MatMul (a, b))) } emit { y = Relu (MatMul (a, b)) }";
  EXPECT_TRUE(Try("(float[4, 4] a) => (float[4, 4] y) { m = MatMul (a, a)\n y = Relu (m) }", rule));
  const Attempt output = Try("(float[4, 4] a) => (float[4, 4] y, float[4, 4] m) { m = MatMul (a, a)\n y = Relu (m) }", rule);
  EXPECT_FALSE(output);
  EXPECT_EQ(output.failure.found, "m is an output of the graph");
  const Attempt read =
      Try("(float[4, 4] a) => (float[4, 4] y, float[4, 4] z) { m = MatMul (a, a)\n y = Relu (m)\n z = Neg (m) }", rule);
  EXPECT_FALSE(read);
  EXPECT_EQ(read.failure.found, "m is also read by Neg");
  // Also after a copy.
  const Attempt behind =
      Try("(float[4, 4] a) => (float16[4, 4] y, float16[4, 4] z) "
          "{ m = MatMul (a, a)\n c = Cast <to = 10> (m)\n y = Relu (c)\n z = Neg (c) }",
          rule);
  EXPECT_FALSE(behind);
  EXPECT_EQ(behind.failure.found, "c is also read by Neg");
  // A reader that nothing needs any more is not one.
  EXPECT_TRUE(Try("(float[4, 4] a) => (float[4, 4] y) { m = MatMul (a, a)\n i = Identity (m)\n y = Relu (i) }", rule));
}

TEST(MatcherTest, CoveredNodesAreEachOnceAndTheRootFirst) {
  const Attempt attempt = Try("(float[4] a) => (float[4] y) { e = Exp (a)\n i = Identity (e)\n y = Mul (i, i) }",
                              "rule r (x) => (y) match { y = Mul (Exp (x), Exp (x)) }");
  ASSERT_TRUE(attempt);
  ASSERT_EQ(attempt.match->covered.size(), 3u);
  EXPECT_TRUE(IsOp(*attempt.match->covered[0], "Mul"));
}

TEST(MatcherTest, AFailureRanksByNodesAndThenByWhatStoppedIt) {
  const FailureRank nothing;
  EXPECT_FALSE(nothing.tried());
  auto rank = [](int nodes, Stop stop) {
    FailureRank made;
    made.nodes = nodes;
    made.stop = stop;
    return made;
  };
  const FailureRank in_order[] = {
      nothing,
      rank(0, Stop::kWrongOperator),
      rank(1, Stop::kWrongOperator),
      rank(1, Stop::kWrongValue),
      rank(1, Stop::kWrongAttribute),
      rank(1, Stop::kConditionFails),
      rank(2, Stop::kWrongOperator),
      rank(1, Stop::kWrongConstant),
      rank(2, Stop::kConditionFails),
      rank(3, Stop::kWrongOperator),
  };
  for (size_t i = 1; i < std::size(in_order); ++i) EXPECT_TRUE(in_order[i - 1] < in_order[i]) << i;
  // The first of two that got equally far is told.
  EXPECT_TRUE(rank(1, Stop::kWrongConstant) == rank(2, Stop::kWrongAttribute));
}

TEST(MatcherTest, ASearchWithoutEndIsGivenUp) {
  // Every product can be read two ways and nothing fits in the end.
  std::string nodes = "a0 = Relu (a)\n";
  std::string pattern = "Neg (x)";
  for (int i = 0; i < 40; ++i) {
    nodes += "a" + std::to_string(i + 1) + " = Mul (a" + std::to_string(i) + ", a" + std::to_string(i) + ")\n";
    pattern = "Mul (" + pattern + ", " + (i == 0 ? "Neg (x)" : "_") + ")";
  }
  EXPECT_FALSE(Try("(float[4] a) => (float[4] y) { " + nodes + " y = Neg (a40) }",
                   "rule r (x) => (y) match { y = Neg (" + pattern + ") }"));
}

}  // namespace
}  // namespace ascend_fuse
