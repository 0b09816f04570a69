// The prefilter: what a pattern asks for at fixed places, and nothing that one binding may lack.
#include "patterns/language/prefilter.h"

#include <string>

#include "tests/unit/rule_testing.h"

namespace ascend_fuse {
namespace {

// The form as text: "Mul (_, Sigmoid (_))", "1 | Add (_, _)"; _ asks for nothing.
std::string Text(const RuleSet& rules, Prefilter::FormId id) {
  if (id == Prefilter::kAnything) return "_";
  std::string text;
  for (const Prefilter::Branch& branch : rules.prefilter().Branches(rules.prefilter().form(id))) {
    if (!text.empty()) text += " | ";
    if (branch.operator_number == 0) {
      text += fmt::format("{}", branch.number);
      continue;
    }
    for (const char* name : {"Mul", "Add", "Sub", "Neg", "Relu", "Exp", "Sigmoid"}) {
      if (rules.OperatorNumber("", name) == branch.operator_number) text += name;
    }
    std::string arguments;
    for (const Prefilter::FormId argument : rules.prefilter().Arguments(branch)) {
      arguments += (arguments.empty() ? "" : ", ") + Text(rules, argument);
    }
    text += fmt::format(" ({})", arguments);
  }
  return text;
}

std::string Root(const std::string& rule) {
  const auto rules = testing::Rules(rule);
  return Text(*rules, testing::FindRule(*rules, "r")->root_form);
}

TEST(PrefilterTest, OperatorsAndNumbersAtFixedPlacesAreAskedFor) {
  EXPECT_EQ(Root("rule r (x) => (y) match { y = Mul (x, Add (Sigmoid (x), 1)) }"), "Mul (_, Add (Sigmoid (_), 1))");
  EXPECT_EQ(Root("rule r (x) => (y) match { y = Neg (Relu (x) | Exp (x)) }"), "Neg (Relu (_) | Exp (_))");
  EXPECT_EQ(Root("rule r (x) => (y) match { y = Neg (Relu (x) | x) }"), "Neg (_)");
}

TEST(PrefilterTest, DefinitionsAreWrittenOut) {
  const std::string def = "def half_of (a, b)\n  | Mul (a, b)\n  | Sub (b, a)\n";
  EXPECT_EQ(Root(def + "rule r (x) => (y) match { y = Neg (half_of (x, Exp (x))) }"),
            "Neg (Mul (_, Exp (_)) | Sub (Exp (_), _))");
  EXPECT_EQ(Root(def + "rule r (x) => (y) match { y = Neg (half_of? (Relu (x), 2)) }"),
            "Neg (Mul (Relu (_), 2) | Sub (2, Relu (_)) | Relu (_))");
}

TEST(PrefilterTest, OnlyTheFirstPlaceOfAParameterIsMatchedAgainstTheArgument) {
  // The second is compared with what was found, which may be a copy of it without the operator.
  EXPECT_EQ(Root("def twice (a)\n  | Mul (a, Neg (a))\nrule r (x) => (y) match { y = twice (Exp (x)) }"),
            "Mul (Exp (_), Neg (_))");
  // Which place comes first is not known here: `other` decides.
  EXPECT_EQ(Root("def other (a, b)\n  | Mul (b, a)\ndef twice (a)\n  | other (Neg (a), a)\n"
                 "rule r (x) => (y) match { y = twice (Exp (x)) }"),
            "Mul (_, Neg (_))");
}

TEST(PrefilterTest, ALineThatIsNamedTwiceIsNotAskedFor) {
  EXPECT_EQ(Root("rule r (x) => (y) match { y = Mul (a, Neg (b))\n a = Exp (x)\n b = Add (a, x) }"), "Mul (_, Neg (Add (_, _)))");
}

}  // namespace
}  // namespace ascend_fuse
