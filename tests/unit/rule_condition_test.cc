// What conditions say of numbers and dims, of words in tables, and of inputs that are absent.
#include <string>

#include "tests/unit/rule_testing.h"

namespace ascend_fuse {
namespace {

using testing::Attempt;
using testing::Try;

bool Holds(const std::string& condition) {
  return static_cast<bool>(Try("(float[s, t, 8] x) => (float[s, t, 8] y) { y = Relu (x) }",
                               "rule r (x) => (y) match { y = Relu (x) } where { shape (x) = [S, T, D]\n" + condition + " }"));
}

TEST(RuleConditionTest, DimsAreComparedWhereItIsProved) {
  EXPECT_TRUE(Holds("S < S + 1"));
  EXPECT_TRUE(Holds("S + 1 > S"));
  EXPECT_TRUE(Holds("S <= S"));
  EXPECT_TRUE(Holds("S >= S"));
  EXPECT_TRUE(Holds("S < S + T + 1"));
  EXPECT_TRUE(Holds("D < 9"));
  EXPECT_TRUE(Holds("D > 7"));
  // For some runs only, or for none.
  EXPECT_FALSE(Holds("S < S"));
  EXPECT_FALSE(Holds("S > S"));
  EXPECT_FALSE(Holds("S < T"));
  EXPECT_FALSE(Holds("S > 4"));
  EXPECT_FALSE(Holds("S < 4"));
  EXPECT_FALSE(Holds("S + 1 < S"));
  EXPECT_FALSE(Holds("D < 8"));
  EXPECT_FALSE(Holds("D > 8"));
}

TEST(RuleConditionTest, AWordThatATableLacksIsNoMatchAndSaysWhy) {
  const std::string rule =
      "table t { \"none\" -> 1, \"other\" -> 2 }\n"
      "rule r (x) => (y) match { y = Gelu <approximate> (x) } where { let form = t (approximate), form > 0 }";
  const Attempt known = Try("(float[4] x) => (float[4] y) { y = Gelu (x) }", rule, 20);
  ASSERT_TRUE(known);
  EXPECT_EQ(known["form"], "1");
  const Attempt lacking = Try("(float[4] x) => (float[4] y) { y = Gelu <approximate = \"tanh\"> (x) }", rule, 20);
  EXPECT_FALSE(lacking);
  EXPECT_EQ(lacking.failure.found, "the table t has no word \"tanh\"");
  EXPECT_FALSE(lacking.failure.is_sentence);  // another attribute, no more
}

TEST(RuleConditionTest, WhatIsAskedOfAnAbsentInputHasNoValue) {
  const std::string rule =
      "rule r (x, low?) => (y) match { y = Clip (x, low, _) } where {\n"
      "let bound = value? (low)\n let kind = given (low, 2, 0)\n let none = given (low, 1)\n"
      "given (bound, kind, 1) > 0\n given (none, 1, 1) = 1 }";
  const Attempt without = Try("(float[4] x, float h) => (float[4] y) { y = Clip (x, , h) }", rule);
  ASSERT_TRUE(without);
  EXPECT_EQ(without["bound"], "absent");
  EXPECT_EQ(without["kind"], "0");
  EXPECT_EQ(without["none"], "absent");
  const Attempt with = Try("(float[4] x, float h) => (float[4] y) <float l = {0.5}> { y = Clip (x, l, h) }", rule);
  ASSERT_TRUE(with);
  EXPECT_EQ(with["bound"], "0.5");
  EXPECT_EQ(with["kind"], "2");
  // A function that has no value for what is there still refuses.
  EXPECT_FALSE(Try("(float[4] x, float l, float h) => (float[4] y) { y = Clip (x, l, h) }", rule));
}

TEST(RuleConditionTest, AnOperatorOfTwoCanDoWithoutOne) {
  const std::string rule =
      "rule r (x, low?, high?) => (y) match { y = Clip (x, low, high) } where {\n"
      "let sum = Add? (low, high)\n let here = given (sum, 1, 0) here >= 0 given (sum, 1, 1) = 1 }";
  const Attempt none = Try("(float[4] x) => (float[4] y) { y = Clip (x) }", rule);
  ASSERT_TRUE(none);
  EXPECT_EQ(none["sum"], "absent");
  EXPECT_EQ(none["here"], "0");
  const Attempt one = Try("(float[4] x, float h) => (float[4] y) { y = Clip (x, , h) }", rule);
  ASSERT_TRUE(one);
  EXPECT_EQ(one["sum"], "h");
  const Attempt both = Try("(float[4] x, float l, float h) => (float[4] y) { y = Clip (x, l, h) }", rule);
  ASSERT_TRUE(both);
  EXPECT_EQ(both["sum"], "other");  // a node to be built
  EXPECT_EQ(both["here"], "1");
}

}  // namespace
}  // namespace ascend_fuse
