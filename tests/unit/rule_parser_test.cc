// Rule text to rules: what every construct becomes, and where and in which words errors are told.
#include "patterns/language/rule_parser.h"

#include <string>
#include <vector>

#include "gtest/gtest.h"

namespace ascend_fuse {
namespace {

struct Parsed : RuleText {
  absl::Status status;
};

Parsed Parse(const std::string& text) {
  absl::StatusOr<RuleText> read = ParseRules("f.rule", text);
  if (!read.ok()) return {{}, read.status()};
  return {*std::move(read), absl::OkStatus()};
}

std::string Message(const std::string& text) {
  const Parsed parsed = Parse(text);
  EXPECT_EQ(parsed.status.code(), absl::StatusCode::kInvalidArgument) << text;
  return std::string(parsed.status.message());
}

TEST(RuleParserTest, ARuleWithEveryPart) {
  const Parsed parsed = Parse(R"(# y = gelu (x)
#
# More words.
rule gelu <kind = activation, precision = approximate, ge_construct = linear_gelu, preferred_over = silu> (x, m?) => (y, s)
match {
  y = Mul (x, 0.5) | Add (x, m)
  s, _ = npu.Op <axis = -1, scale> (y, "", _)
}
where {
  shape (x) = [..., D], D >= 8
  let half = D / 2
}
emit {
  y, _ = npu.Other <axis = half> (x)
  s = Relu (y)
}
)");
  ASSERT_TRUE(parsed.status.ok()) << parsed.status.message();
  ASSERT_EQ(parsed.rules.size(), 1u);
  const Rule& rule = parsed.rules[0];
  EXPECT_EQ(rule.name, "gelu");
  EXPECT_EQ(rule.doc, "y = gelu (x)\n\nMore words.");
  EXPECT_EQ(rule.kind, "activation");
  EXPECT_EQ(rule.precision, "approximate");
  EXPECT_EQ(rule.ge_construct, "linear_gelu");
  EXPECT_EQ(rule.preferred_over, "silu");
  EXPECT_FALSE(rule.no_ge_pass);
  EXPECT_EQ(rule.kind_position.ToString(), "f.rule:4:19");
  EXPECT_EQ(rule.position.ToString(), "f.rule:4:6");
  ASSERT_EQ(rule.inputs.size(), 2u);
  EXPECT_FALSE(rule.inputs[0].optional);
  EXPECT_TRUE(rule.inputs[1].optional);
  EXPECT_EQ(rule.outputs, (std::vector<std::string>{"y", "s"}));
  ASSERT_EQ(rule.match.size(), 2u);
  const Pattern& either = *rule.match[0].pattern;
  ASSERT_EQ(either.kind, Pattern::Kind::kAlternatives);
  EXPECT_EQ(either.arguments[0]->name, "Mul");
  EXPECT_EQ(either.arguments[0]->arguments[1]->kind, Pattern::Kind::kLiteral);
  EXPECT_EQ(either.arguments[0]->arguments[1]->number, 0.5);
  const Pattern& op = *rule.match[1].pattern;
  EXPECT_EQ(rule.match[1].names, (std::vector<std::string>{"s", "_"}));
  EXPECT_EQ(op.domain, "npu");
  EXPECT_EQ(op.name, "Op");
  ASSERT_EQ(op.attributes.size(), 2u);
  EXPECT_EQ(op.attributes[0].value.number, -1);
  EXPECT_EQ(op.attributes[1].value.kind, Expression::Kind::kName);  // <scale> binds scale
  EXPECT_EQ(op.attributes[1].value.text, "scale");
  EXPECT_EQ(op.arguments[1]->kind, Pattern::Kind::kAbsent);
  EXPECT_EQ(op.arguments[2]->kind, Pattern::Kind::kWildcard);
  ASSERT_EQ(rule.where.size(), 3u);
  EXPECT_EQ(rule.where[0].relation, Condition::Relation::kEqual);
  EXPECT_EQ(rule.where[0].source, "shape (x) = [..., D]");
  EXPECT_EQ(rule.where[1].relation, Condition::Relation::kGreaterEqual);
  EXPECT_EQ(rule.where[2].relation, Condition::Relation::kLet);
  ASSERT_EQ(rule.emit.size(), 2u);
  EXPECT_EQ(rule.emit[0].names, (std::vector<std::string>{"y", "_"}));
  EXPECT_EQ(rule.emit[0].value.domain, "npu");
}

TEST(RuleParserTest, ADefinitionWithAlternativesDefaultsAndConditions) {
  const Parsed parsed = Parse(R"(# doc
def scaled (x, f = 1.0)
  | Mul (x, u)  let f = value (u)
  | Div (x, u)  where value (u) != 0  let f = 1 / value (u)
)");
  ASSERT_TRUE(parsed.status.ok()) << parsed.status.message();
  ASSERT_EQ(parsed.definitions.size(), 1u);
  const Definition& definition = parsed.definitions[0];
  EXPECT_EQ(definition.doc, "doc");
  EXPECT_FALSE(definition.parameters[0].has_default);
  EXPECT_TRUE(definition.parameters[1].has_default);
  ASSERT_EQ(definition.alternatives.size(), 2u);
  EXPECT_EQ(definition.alternatives[0].conditions.size(), 1u);
  EXPECT_EQ(definition.alternatives[1].conditions.size(), 2u);
}

TEST(RuleParserTest, AFormulaIsADefinitionWithAnEqualsSign) {
  const Parsed parsed = Parse("# doc\ndef silu (x, a = 1.0) = Mul (x, Sigmoid (Mul (x, a)))\ndef d (x) | Relu (x)");
  ASSERT_TRUE(parsed.status.ok()) << parsed.status.message();
  ASSERT_EQ(parsed.vocabulary.formulas.size(), 1u);
  EXPECT_EQ(parsed.definitions.size(), 1u);
  const Formula& formula = parsed.vocabulary.formulas[0];
  EXPECT_EQ(formula.name, "silu");
  EXPECT_EQ(formula.doc, "doc");
  EXPECT_EQ(formula.position.ToString(), "f.rule:2:5");
  EXPECT_TRUE(formula.parameters[1].has_default);
  EXPECT_EQ(formula.value.kind, Expression::Kind::kOperator);
  EXPECT_EQ(formula.value.text, "Mul");
}

TEST(RuleParserTest, ATableOfWords) {
  const Parsed parsed = Parse("table t { \"a\" -> \"b\", \"c\" -> -1 }");
  ASSERT_TRUE(parsed.status.ok()) << parsed.status.message();
  ASSERT_EQ(parsed.vocabulary.tables.size(), 1u);
  ASSERT_EQ(parsed.vocabulary.tables[0].words.size(), 2u);
  EXPECT_EQ(parsed.vocabulary.tables[0].words[0].first, "a");
  EXPECT_EQ(parsed.vocabulary.tables[0].words[0].second.text, "b");
  EXPECT_EQ(parsed.vocabulary.tables[0].words[1].second.number, -1);
  EXPECT_EQ(Message("table t { a -> \"b\" }"), "f.rule:1:11: expected a word in quotes, found 'a'");
  EXPECT_EQ(Message("table t { \"a\" = \"b\" }"), "f.rule:1:15: expected '-', found '='");
  EXPECT_EQ(Message("table t { \"a\" -> b }"), "f.rule:1:18: expected a word in quotes or a number, found 'b'");
  EXPECT_EQ(Message("table t { \"a\" -> 1, \"a\" -> 2 }"), "f.rule:1:21: the table has \"a\" twice");
}

TEST(RuleParserTest, OptionalFunctionsAndOperatorsOfEmissions) {
  const Parsed parsed = Parse(
      "rule r (x, b?) => (y) match { y = Relu (x) } where { let m = f? (b) } emit { y = npu.Add? <a = 1> (x, "
      "m) }");
  ASSERT_TRUE(parsed.status.ok()) << parsed.status.message();
  EXPECT_TRUE(parsed.rules[0].where[0].right.optional);
  EXPECT_TRUE(parsed.rules[0].emit[0].value.optional);
  EXPECT_EQ(parsed.rules[0].emit[0].value.attributes.size(), 1u);
}

TEST(RuleParserTest, OptionalWrappersAndParentheses) {
  const Parsed parsed = Parse("rule r (x) => (y) match { y = (widen? (x)) }");
  ASSERT_TRUE(parsed.status.ok()) << parsed.status.message();
  EXPECT_TRUE(parsed.rules[0].match[0].pattern->optional);
  EXPECT_TRUE(parsed.rules[0].emit.empty());
}

TEST(RuleParserTest, ArithmeticBindsAsUsual) {
  const Parsed parsed = Parse("rule r (x) => (y) match { y = Relu (x) } where { let a = 1 + 2 * -3 - 4 }");
  ASSERT_TRUE(parsed.status.ok()) << parsed.status.message();
  const Expression& difference = parsed.rules[0].where[0].right;
  ASSERT_EQ(difference.text, "-");
  ASSERT_EQ(difference.arguments[0].text, "+");
  EXPECT_EQ(difference.arguments[0].arguments[1].text, "*");
  EXPECT_EQ(difference.arguments[0].arguments[1].arguments[1].number, -3);
}

TEST(RuleParserTest, AComparisonIsNoAttributeList) {
  const Parsed parsed = Parse("rule r (x) => (y) match { y = Relu (x) } where { D < 5, E <= 4 }");
  ASSERT_TRUE(parsed.status.ok()) << parsed.status.message();
  EXPECT_EQ(parsed.rules[0].where[0].relation, Condition::Relation::kLess);
  EXPECT_EQ(parsed.rules[0].where[1].relation, Condition::Relation::kLessEqual);
}

TEST(RuleParserTest, ACommentApartFromARuleIsNotItsDocumentation) {
  const Parsed parsed = Parse("# apart\n\nrule r (x) => (y) match { y = Relu (x) }  # after\n");
  ASSERT_TRUE(parsed.status.ok()) << parsed.status.message();
  EXPECT_EQ(parsed.rules[0].doc, "");
}

TEST(RuleParserTest, ErrorsNameLineColumnExpectedAndFound) {
  EXPECT_EQ(Message("rules r"), "f.rule:1:1: expected 'def', 'table' or 'rule', found 'rules'");
  EXPECT_EQ(Message("rule (x) => (y)"), "f.rule:1:6: expected the rule's name, found '('");
  EXPECT_EQ(Message("rule r (x) (y)"), "f.rule:1:12: expected '=>', found '('");
  EXPECT_EQ(Message("rule r (x) => (y)\nemit { }"), "f.rule:2:1: expected 'match', found 'emit'");
  EXPECT_EQ(Message("rule r (x) => (y)\nmatch { y = }"), "f.rule:2:13: expected a pattern, found '}'");
  EXPECT_EQ(Message("rule r (x) => (y)\nmatch { y = Relu (x"), "f.rule:2:20: expected ')', found the end of the file");
  EXPECT_EQ(Message("rule r (x) => (y)\nmatch { y = Relu (x) | }"), "f.rule:2:24: expected a pattern, found '}'");
  EXPECT_EQ(Message("rule r (x) => (y)\nmatch { y = Mul (x, -x) }"), "f.rule:2:22: expected a number, found 'x'");
  EXPECT_EQ(Message("rule r (x) => (y)\nmatch { y = npu.Op }"), "f.rule:2:20: expected '(', found '}'");
  EXPECT_EQ(Message("rule r (x) => (y)\nmatch { y = Cast <to> }"), "f.rule:2:23: expected '(', found '}'");
  EXPECT_EQ(Message("rule r (x) => (y)\nmatch { y = Relu (\"x\") }"), "f.rule:2:19: expected a pattern, found '\"x\"'");
  EXPECT_EQ(Message("def d (x)\nrule"), "f.rule:2:1: expected '|' and an alternative, or '=' and an expression, found 'rule'");
  EXPECT_EQ(Message("rule r (x) => (y) match { y = Relu (x) }\nwhere { let 5 = x }"),
            "f.rule:2:19: expected let name = expression, found '}'");
  EXPECT_EQ(Message("rule r (x) => (y) match { y = Relu (x) }\nwhere { shape (x) = }"),
            "f.rule:2:21: expected an expression, found '}'");
}

TEST(RuleParserTest, ErrorsOfTokensAndAnnotations) {
  EXPECT_EQ(Message("rule r (x) => (y) match { y = Relu (x) } where { x = \"open }"),
            "f.rule:1:54: the string that starts here has no closing quote");
  EXPECT_EQ(Message("rule r (x) => (y)\n  match { y = Relu (x) & }"), "f.rule:2:24: expected an output's name, found '&'");
  EXPECT_EQ(Message("rule r <kinds = a> (x) => (y)"),
            "f.rule:1:9: unknown annotation 'kinds'; known are kind, precision, ge_construct, joined_by_ge, "
            "yields_to_ge, no_ge_pass, preferred_over, fixes, assumes, differs");
  EXPECT_EQ(Message("rule r <assumes = hope> (x) => (y)"), "f.rule:1:19: expected a sentence in quotes, found 'hope'");
  EXPECT_EQ(Message("rule r <precision = excat> (x) => (y)"),
            "f.rule:1:21: expected a precision (exact, reassociated or approximate), found 'excat'");
  EXPECT_EQ(Message("rule r <kind> (x) => (y)"), "f.rule:1:13: expected '=', found '>'");
}

TEST(RuleParserTest, DeepNestingIsAnErrorAndNotACrash) {
  std::string pattern = "x";
  for (int i = 0; i < 20000; ++i) pattern = "Relu (" + pattern;
  EXPECT_NE(Message("rule r (x) => (y) match { y = " + pattern).find("fewer nested patterns (at most 100)"), std::string::npos);
  EXPECT_NE(Message("rule r (x) => (y) match { y = Relu (x) } where { " + std::string(20000, '(') + " }")
                .find("a less deeply nested expression (at most 100)"),
            std::string::npos);
  EXPECT_NE(Message("rule r (x) => (y) match { y = Relu (x) } where { " + std::string(200000, '-') + "x = 1 }")
                .find("a less deeply nested expression (at most 100)"),
            std::string::npos);
}

}  // namespace
}  // namespace ascend_fuse
