// The rules in force: the built-in ones load, a user's rules add and override, and every misspelt name is
// refused with its place.
#include "patterns/language/rule_set.h"

#include <algorithm>
#include <string>

#include "tests/unit/rule_testing.h"

namespace ascend_fuse {
namespace {

using testing::FindRule;
using testing::Refusal;
using testing::Rules;

TEST(RuleSetTest, BuiltInRulesLoad) {
  for (const RuleFolder folder : {RuleFolder::kLibrary, RuleFolder::kNpu, RuleFolder::kReference, RuleFolder::kContrib,
                                  RuleFolder::kLeftovers, RuleFolder::kAdapt}) {
    const auto rules = RuleSet::Load(folder);
    ASSERT_TRUE(rules.ok()) << rules.status().message();
    EXPECT_FALSE((*rules)->rules().empty());
    for (size_t i = 0; i < (*rules)->rules().size(); ++i) EXPECT_FALSE((*rules)->RootOperators(i).empty());
  }
}

TEST(RuleSetTest, LargerPatternsAreTriedFirstAndPreferenceMovesARule) {
  const auto plain = Rules("rule r (x) => (y) match { y = Relu (Relu (x)) } rule tiny (x) => (y) match { y = Relu (x) }");
  auto place = [](const RuleSet& rules, const std::string& name) { return FindRule(rules, name) - rules.rules().data(); };
  EXPECT_LT(place(*plain, "gelu_tanh"), place(*plain, "r"));
  EXPECT_LT(place(*plain, "r"), place(*plain, "tiny"));
  const auto moved = Rules(
      "rule r (x) => (y) match { y = Relu (Relu (x)) } rule tiny <preferred_over = r> (x) => (y) match { y = "
      "Relu "
      "(x) }");
  EXPECT_LT(place(*moved, "tiny"), place(*moved, "r"));
  EXPECT_EQ(Refusal("rule r <preferred_over = nobody> (x) => (y) match { y = Relu (x) }"),
            "user.rule:1:6: preferred_over: there is no rule 'nobody'");
}

TEST(RuleSetTest, RootsAreSeenThroughDefinitionsAndOptionalParts) {
  const auto rules = Rules("rule r (x) => (y) match { y = narrow? (silu_of (x)) }");
  const size_t index = FindRule(*rules, "r") - rules->rules().data();
  EXPECT_EQ(rules->RootOperators(index), (std::vector<std::string>{"Cast", "Div", "Mul"}));
}

TEST(RuleSetTest, AUsersRuleIsAdded) {
  const auto built_in = RuleSet::Load(RuleFolder::kLibrary);
  ASSERT_TRUE(built_in.ok());
  const auto rules = Rules("# Mine.\nrule r <kind = silu> (x) => (y) match { y = silu_of (x) } emit { y = Swish (x) }");
  EXPECT_EQ(rules->rules().size(), (*built_in)->rules().size() + 1);
  ASSERT_NE(FindRule(*rules, "r"), nullptr);
  EXPECT_EQ(FindRule(*rules, "r")->position.ToString(), "user.rule:2:6");
}

TEST(RuleSetTest, AUsersRuleOfABuiltInNameReplacesIt) {
  const auto built_in = RuleSet::Load(RuleFolder::kLibrary);
  ASSERT_TRUE(built_in.ok());
  ASSERT_NE(FindRule(**built_in, "silu"), nullptr);
  const auto rules = Rules("rule silu (x) => (y) match { y = Relu (x) } emit { y = Swish <alpha = 1> (x) }");
  EXPECT_EQ(rules->rules().size(), (*built_in)->rules().size());
  EXPECT_EQ(FindRule(*rules, "silu")->position.file, "user.rule");
  EXPECT_EQ(FindRule(*rules, "silu")->match[0].pattern->name, "Relu");
}

TEST(RuleSetTest, AUsersDefinitionReplacesTheBuiltInOneInBuiltInRules) {
  const auto rules = Rules("def silu_of (x)\n  | Elu (x)\n");
  const size_t index = FindRule(*rules, "silu") - rules->rules().data();
  EXPECT_EQ(rules->RootOperators(index), (std::vector<std::string>{"Elu"}));
}

TEST(RuleSetTest, TheLaterOfTwoUserFilesCounts) {
  const auto rules = RuleSet::Load(RuleFolder::kLibrary, {{"a.rule", "rule r (x) => (y) match { y = Relu (x) }"},
                                                          {"b.rule", "rule r (x) => (y) match { y = Elu (x) }"}});
  ASSERT_TRUE(rules.ok()) << rules.status().message();
  EXPECT_EQ(FindRule(**rules, "r")->position.file, "b.rule");
}

TEST(RuleSetTest, AUsersRuleBelongsWhereItReadsOrMakesNpuNodes) {
  const std::string text =
      "rule one (x) => (y) match { y = Relu (x) } emit { y = Swish (x) }\n"
      "rule two (x) => (y) match { y = Swish (x) } emit { y = Mul (npu.NPUGate (x), x) }\n"
      "rule three (x) => (y) match { y = npu.NPUGate (x) } emit { y = Sigmoid (x) }\n";
  const std::vector<std::pair<RuleFolder, std::string>> wanted = {
      {RuleFolder::kLibrary, "one"}, {RuleFolder::kNpu, "two"}, {RuleFolder::kReference, "three"}};
  for (const auto& [folder, name] : wanted) {
    const auto rules = Rules(text, folder);
    for (const char* other : {"one", "two", "three"}) {
      EXPECT_EQ(FindRule(*rules, other) != nullptr, other == name) << name << " " << other;
    }
  }
}

TEST(RuleSetTest, AUsersDefinitionOfLibraryPartsDoesNotHinderTheOtherFolders) {
  const std::string text =
      "def mine (x)\n  | silu_of (x)\nrule r (x) => (y) match { y = mine (x) } emit { y = Swish <alpha = 1> "
      "(x) }\n";
  for (const RuleFolder folder : {RuleFolder::kLibrary, RuleFolder::kNpu, RuleFolder::kReference, RuleFolder::kContrib,
                                  RuleFolder::kLeftovers, RuleFolder::kAdapt}) {
    const auto rules = RuleSet::Load(folder, {{"user.rule", text}});
    EXPECT_TRUE(rules.ok()) << rules.status().message();
  }
  // A definition nobody can use is still looked at once.
  EXPECT_EQ(Refusal("def mine (x)\n  | nothing_of (x)\n"), "user.rule:2:5: unknown operator or definition 'nothing_of'");
}

TEST(RuleSetTest, UnknownNamesAreRefusedWithTheirPlace) {
  EXPECT_EQ(Refusal("rule r (x) => (y)\nmatch { y = Rellu (x) }"), "user.rule:2:13: unknown operator or definition 'Rellu'");
  EXPECT_EQ(Refusal("rule r (x) => (y)\nmatch { y = nowhere.Relu (x) }"),
            "user.rule:2:13: unknown operator or definition 'nowhere.Relu'");
  EXPECT_EQ(Refusal("rule r (x) => (y)\nmatch { y = Softmax <axes = 1> (x) }"),
            "user.rule:2:13: Softmax has no attribute or input 'axes' at any opset");
  EXPECT_EQ(Refusal("rule r (x) => (y)\nmatch { y = Relu (x) }\nwhere { shap (x) = [D] }"),
            "user.rule:3:9: unknown function 'shap'");
  EXPECT_EQ(Refusal("rule r (x) => (y)\nmatch { y = nothing? (x) }"),
            "user.rule:2:13: 'nothing?': only a definition can be optional, and there is none of that name");
  EXPECT_EQ(Refusal("rule r (x) => (y)\nmatch { y = Relu (x) }\nemit { y = Swish <alpha = beta> (x) }"),
            "user.rule:3:27: unknown name 'beta'");
  EXPECT_EQ(Refusal("rule r (x) => (y)\nmatch { y = Relu (x) }\nemit { y = Swish (z) }"), "user.rule:3:19: unknown name 'z'");
  EXPECT_EQ(Refusal("rule r (x) => (y)\nmatch { y = Relu (x) }\nemit { y = Swishh (x) }"),
            "user.rule:3:12: unknown operator or definition 'Swishh'");
  EXPECT_EQ(Refusal("rule r (x) => (y)\nmatch { y = Relu (x) }\nwhere { D >= 4 }"), "user.rule:3:9: unknown name 'D'");
}

TEST(RuleSetTest, AVariableThatOccursOnceIsMisspelt) {
  EXPECT_EQ(Refusal("rule r (x) => (y)\nmatch { y = Add (Relu (x), z) }"),
            "user.rule:2:28: 'z' occurs nowhere else: a misspelt name, or one to write as _ or _z");
  EXPECT_EQ(Refusal("rule r (x) => (y)\nmatch { y = Elu <alpha> (x) }"),
            "user.rule:2:18: 'alpha' occurs nowhere else: a misspelt name, or one to write as _ or _alpha");
  EXPECT_EQ(Refusal("rule r (x) => (y)\nmatch { y = Relu (x) }\nwhere { let n = rank (x) }"),
            "user.rule:3:13: 'n' occurs nowhere else: a misspelt name, or one to write as _ or _n");
  EXPECT_EQ(Refusal("def d (x)\n  | Add (x, z)\nrule r (x) => (y) match { y = d (x) }"),
            "user.rule:2:13: 'z' occurs nowhere else: a misspelt name, or one to write as _ or _z");
  // Inputs and outputs are for others, letters of shapes count dims, and an underscore says that it is meant
  // so.
  Rules("rule r (x) => (y) match { y = Add (Relu (x), _z) } where { shape (x) = [A, B] }");
  Rules("rule r (x) => (y) match { y = Elu <alpha = _alpha> (x) }");
}

TEST(RuleSetTest, AnnotationsMustBeKnown) {
  EXPECT_EQ(Refusal("rule r <kind = glue> (x) => (y) match { y = Relu (x) }").substr(0, 65),
            "user.rule:1:16: 'glue' is neither a kind nor a rule; the kinds ar");
  EXPECT_EQ(Refusal("rule r <ge_construct = linear_relo> (x) => (y) match { y = Relu (x) }").substr(0, 70),
            "user.rule:1:24: 'linear_relo' is neither a kind nor a declared constru");
  EXPECT_EQ(Refusal("rule r <joined_by_ge = linear_relo> (x) => (y) match { y = Relu (x) }").substr(0, 70),
            "user.rule:1:24: 'linear_relo' is neither a kind nor a declared constru");
  EXPECT_EQ(Refusal("rule r <ge_construct = linear_relu, no_ge_pass> (x) => (y) match { y = Relu (x) }"),
            "user.rule:1:24: ge_construct names what a pass of GE builds, and no_ge_pass says that none does");
  // The name of a rule is a kind.
  Rules("rule r (x) => (y) match { y = Relu (x) } rule s <kind = r> (x) => (y) match { y = Elu (x) }");
}

TEST(RuleSetTest, AFormulaIsWrittenOutWhereItIsUsed) {
  const auto rules = Rules(
      "def mine (a, n = 2.0) = Mul (a, Add (a, n))\n"
      "rule r (x) => (y) match { y = Relu (x) } emit { y = mine (Neg (x)) }\n"
      "rule s (x) => (y) match { y = Elu (x) } emit { y = mine (x, 3.0) }");
  // What the formula mentions twice and is more than a name stands for one value.
  const Rule& r = *FindRule(*rules, "r");
  ASSERT_EQ(r.emit.size(), 2u);
  EXPECT_EQ(r.emit[0].value.text, "Neg");
  EXPECT_EQ(r.emit[1].value.text, "Mul");
  EXPECT_EQ(r.emit[1].value.arguments[0].slot, r.scope.Find(r.emit[0].names[0]));
  EXPECT_EQ(r.emit[1].value.arguments[1].arguments[1].number, 2.0);
  const Rule& s = *FindRule(*rules, "s");
  ASSERT_EQ(s.emit.size(), 1u);
  EXPECT_EQ(s.emit[0].value.arguments[0].text, "x");
  EXPECT_EQ(s.emit[0].value.arguments[1].arguments[1].number, 3.0);
}

TEST(RuleSetTest, FormulasUseFormulasAndKeepTheirNamesApart) {
  // `x` of the rule, of `inner` and of `outer` are three names.
  const auto rules = Rules(
      "def outer (x, y) = Sub (inner (Neg (y)), inner (x))\n"
      "def inner (x) = Mul (x, x)\n"
      "rule r (x, w) => (y) match { y = Add (x, w) } where { let d = outer (w, x) } emit { y = Abs (d) }");
  const Rule& r = *FindRule(*rules, "r");
  ASSERT_EQ(r.where.size(), 2u);
  EXPECT_EQ(r.where[0].right.text, "Neg");
  EXPECT_EQ(r.where[0].right.arguments[0].text, "x");
  EXPECT_EQ(r.where[1].right.text, "Sub");
  EXPECT_EQ(r.where[1].right.arguments[1].arguments[0].text, "w");
}

TEST(RuleSetTest, WrongFormulasAreRefusedWithTheirPlace) {
  const std::string use = "\nrule r (x) => (y) match { y = Relu (x) } emit { y = f (x) }";
  EXPECT_EQ(Refusal("def f (a) = Mul (a, b)" + use), "user.rule:1:21: unknown name 'b'");
  EXPECT_EQ(Refusal("def f (a) = Mull (a, a)" + use), "user.rule:1:13: unknown operator or definition 'Mull'");
  EXPECT_EQ(Refusal("def f (a) = shap (a)" + use), "user.rule:1:13: unknown function 'shap'");
  EXPECT_EQ(Refusal("def f (a) = Neg (g (a))\ndef g (a) = f (a)" + use), "user.rule:1:5: 'f' is defined by itself");
  EXPECT_EQ(Refusal("def f (a, b) = Mul (a, b)" + use),
            "user.rule:2:53: f, defined at user.rule:1:5, takes 2 arguments, 1 given");
  EXPECT_EQ(Refusal("def rotation (a) = Neg (a)" + use),
            "user.rule:1:5: 'rotation' is a function that rules call; give the definition another name");
  EXPECT_EQ(Refusal("def f (a) = Neg (a)\ndef f (a) = Abs (a)" + use), "user.rule:2:5: 'f' is defined twice in this file");
  EXPECT_EQ(Refusal("def f (a) = Neg (a)\nrule r (x) => (y) match { y = Relu (x) } where { f (x) }"),
            "user.rule:1:13: 'Neg' builds a node; nodes can be built in let and emit only");
  // Each twice the one before it.
  std::string doubling = "def f0 (a) = Add (a, Neg (a))\n";
  for (int i = 1; i < 30; ++i) {
    doubling += fmt::format("def f{} (a) = Add (f{} (Neg (a)), f{} (Abs (a)))\n", i, i - 1, i - 1);
  }
  EXPECT_NE(Refusal(doubling).find("has more than 10000 parts when it is written out"), std::string::npos);
}

TEST(RuleSetTest, ATableTranslatesWords) {
  const std::string table = "table t { \"none\" -> \"none\", \"tanh\" -> 1 }\n";
  const auto rules = Rules(table +
                               "rule r (x) => (y) match { y = Gelu <approximate> (x) } where { let w = t (approximate) "
                               "} emit { y = npu.NPUGeluV2 <approximate = t (\"none\")> (Gelu <approximate = w> (x)) }",
                           RuleFolder::kNpu);
  const Rule& r = *FindRule(*rules, "r");
  EXPECT_EQ(r.where[0].right.text, "translated");
  EXPECT_EQ(r.emit[0].value.attributes[0].value.text, "none");
  EXPECT_EQ(Refusal(table + "rule r (x) => (y) match { y = Relu (x) } where { t (\"erf\") = 1 }"),
            "user.rule:2:50: the table t has no word \"erf\"");
  EXPECT_EQ(Refusal(table + "rule r (x) => (y) match { y = Relu (x) } where { t (x, 1) = 1 }"),
            "user.rule:2:50: the table t takes 1 argument, 2 given");
}

TEST(RuleSetTest, AnOperatorThatCanDoWithoutAnOperandHasTwo) {
  EXPECT_EQ(Refusal("rule r (x) => (y)\nmatch { y = Relu (x) }\nemit { y = Neg? (x) }"),
            "user.rule:3:12: 'Neg?': only an operator of two operands can do without one");
  EXPECT_EQ(Refusal("rule r (x) => (y)\nmatch { y = Relu (x) }\nwhere { let n = absent? () }\nemit { y = Neg (n) }"),
            "user.rule:3:17: 'absent?' needs a first argument");
}

TEST(RuleSetTest, RulesAreFoundByTheOperatorThatTheyEndIn) {
  const auto rules = RuleSet::Load(RuleFolder::kNpu);
  ASSERT_TRUE(rules.ok()) << rules.status().message();
  size_t found = 0;
  for (const size_t r : (*rules)->RulesEndingIn("Gelu")) {
    const std::vector<std::string>& roots = (*rules)->RootOperators(r);
    EXPECT_NE(std::find(roots.begin(), roots.end(), "Gelu"), roots.end());
    ++found;
  }
  EXPECT_GE(found, 2u);  // a node of its own, with the linear before it
  EXPECT_TRUE((*rules)->RulesEndingIn("Conv").empty());
}

TEST(RuleSetTest, ArgumentsAreCounted) {
  EXPECT_EQ(Refusal("rule r (x) => (y)\nmatch { y = Relu (x, x) }"), "user.rule:2:13: Relu takes at most 1 inputs, 2 given");
  EXPECT_EQ(Refusal("rule r (x) => (y)\nmatch { y = square (x, x) }"), "user.rule:2:13: square takes 1 arguments, 2 given");
  EXPECT_EQ(Refusal("rule r (x) => (y)\nmatch { y = Relu (x) }\nwhere { shape (x, x) = [D] }"),
            "user.rule:3:9: shape takes 1 argument, 2 given");
  EXPECT_EQ(Refusal("rule r (x) => (y)\nmatch { y = square <axis = 1> (x) }"),
            "user.rule:2:13: 'square' is a definition and has no attributes");
  // Sum takes any number.
  Rules("rule r (a, b, c, d) => (y) match { y = Sum (a, b, c, d) }");
}

TEST(RuleSetTest, InputsAndOutputsMustBeUsedAndComputed) {
  EXPECT_EQ(Refusal("rule r (x, z) => (y) match { y = Relu (x) }"), "user.rule:1:6: the input 'z' occurs nowhere in match");
  EXPECT_EQ(Refusal("rule r (x) => (z) match { y = Relu (x) }"), "user.rule:1:6: no line of match computes the output 'z'");
  EXPECT_EQ(Refusal("rule r (x) => (y) match { y = Relu (x) }\nemit { z = Relu (x) }"),
            "user.rule:1:6: emit does not compute the output 'y'");
  EXPECT_EQ(Refusal("rule r (x) => (y) match { }"), "user.rule:1:6: rule r matches nothing");
  EXPECT_EQ(Refusal("rule r (x) => () match { y = Relu (x) }"), "user.rule:1:6: a rule needs an output");
  EXPECT_EQ(Refusal("rule r (x) => (y)\nmatch { y = Relu (x)\n y = Elu (x) }"), "user.rule:3:2: 'y' is named twice");
  EXPECT_EQ(Refusal("rule r (x) => (y) match { y = x }"), "user.rule:1:6: the output of rule r can be anything");
  EXPECT_EQ(Refusal("rule r (x) => (y)\nmatch { y, z = square (x) }"),
            "user.rule:2:9: only one operator, not a definition, can have several outputs");
}

TEST(RuleSetTest, NodesAreBuiltInLetAndEmitOnly) {
  EXPECT_EQ(Refusal("rule r (x) => (y)\nmatch { y = Relu (x) }\nwhere { Neg (x) = x }"),
            "user.rule:3:9: 'Neg' builds a node; nodes can be built in let and emit only");
}

TEST(RuleSetTest, TwiceInOneFileIsAnError) {
  EXPECT_EQ(Refusal("rule r (x) => (y) match { y = Relu (x) }\nrule r (x) => (y) match { y = Elu (x) }"),
            "user.rule:2:6: 'r' is defined twice in this file");
  EXPECT_EQ(Refusal("def d (x) | Relu (x)\ndef d (x) | Elu (x)"), "user.rule:2:5: 'd' is defined twice in this file");
}

TEST(RuleSetTest, ADefinitionMayNotReachItselfWithoutAnOperatorBetween) {
  EXPECT_EQ(Refusal("def d (x)\n  | d (x)\n"), "user.rule:1:5: 'd' is defined by itself");
  EXPECT_EQ(Refusal("def d (x)\n  | e (x)\ndef e (x)\n  | Relu (x)\n  | d (x)\n"), "user.rule:1:5: 'd' is defined by itself");
  EXPECT_EQ(Refusal("def d (x)\n  | narrow? (d (x))\n"), "user.rule:1:5: 'd' is defined by itself");
  EXPECT_EQ(Refusal("def wrap (x)\n  | x\ndef d (x)\n  | wrap (d (x))\n"), "user.rule:3:5: 'd' is defined by itself");
  // With an operator between it is a chain of any length.
  Rules("def chain (x)\n  | Relu (chain? (x))\nrule r (x) => (y) match { y = chain (x) }");
}

TEST(RuleSetTest, AWrongUserFileKeepsItsOwnName) {
  const auto rules = RuleSet::Load(RuleFolder::kNpu, {{"mine/one.rule", "rule"}});
  ASSERT_FALSE(rules.ok());
  EXPECT_EQ(rules.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(std::string(rules.status().message()), "mine/one.rule:1:5: expected the rule's name, found the end of the file");
}

}  // namespace
}  // namespace ascend_fuse
