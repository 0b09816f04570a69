// The functions that rules call: their table, arguments of a wrong kind, final words, and the types of nodes to be
// built.
#include "patterns/functions/functions.h"

#include <cmath>
#include <cstdint>
#include <set>
#include <string>

#include "ir/whole_number.h"
#include "patterns/terms/function_context.h"
#include "patterns/terms/refusal.h"
#include "patterns/terms/term.h"
#include "tests/unit/rule_testing.h"

namespace ascend_fuse {
namespace {

using testing::Attempt;
using testing::Refusal;
using testing::Rules;
using testing::Subject;
using testing::Try;

// What the conditions of a rule about Relu say of a float16 [2, 3].
Attempt Where(const std::string& conditions) {
  return Try("(float16[2, 3] a) => (float16[2, 3] y) { y = Relu (a) }",
             "rule r (x) => (y) match { y = Relu (x) } where { " + conditions + " }");
}

std::string RefusedAtLoad(const std::string& condition) {
  const std::string text = Refusal("rule r (x) => (y) match { y = Relu (x) }\nwhere {\n" + condition + "\n}");
  return text.substr(text.find(": ") + 2);
}

TEST(FunctionsTest, EveryRowIsNamedOnceAndDocumentedInOneSentence) {
  std::set<std::string_view> names;
  for (const FunctionRow& row : Functions()) {
    EXPECT_TRUE(names.insert(row.name).second) << row.name;
    EXPECT_EQ(row.signature.substr(0, row.name.size() + 2), std::string(row.name) + " (");
    EXPECT_EQ(row.arguments.size(), static_cast<size_t>(row.maximum_arguments)) << row.name;
    EXPECT_TRUE(row.doc.ends_with('.')) << row.doc;
    EXPECT_EQ(FindFunction(row.name), &row - Functions().data());
  }
  EXPECT_EQ(FindFunction("nobody"), -1);
}

TEST(FunctionsTest, AWrongArgumentIsNamedWithWhatWasFound) {
  EXPECT_EQ(Where("let n = rank (x)  half (n) = 0").failure.found, "half: part must be a value of the graph, found 2");
  EXPECT_EQ(Where("let t = dtype (x)  sqrt (t) = 0").failure.found, "sqrt: n must be a number, found float16");
  EXPECT_EQ(Where("let n = 0.5  number (n) = 0").failure.found, "number: d must be a dim, found 0.5");
  EXPECT_EQ(Where("let n = absent ()  linear (n)").failure.found, "linear: y must be a value of the graph, found no value");
  // Infinity is a number, and no whole one.
  EXPECT_EQ(Where("let n = infinity  opset_from (n)").failure.found, "opset_from: n must be a whole number, found inf");
  EXPECT_FALSE(Where("let n = rank (x)  half (n) = 0").failure.final_word);
}

TEST(FunctionsTest, ANumberIsAListOfOneAndAWholeNumberADim) {
  EXPECT_TRUE(Where("trailing_axes (-1) = -1"));
  EXPECT_TRUE(Where("trailing_axes ([-2, -1]) = -2"));
  EXPECT_TRUE(Where("product (6) = product (shape (x))"));
  EXPECT_TRUE(Where("multiple_of (dim (x, -1), 3)"));
  EXPECT_FALSE(Where("multiple_of (dim (x, -1), 2)"));
}

TEST(FunctionsTest, WhatIsWrittenInTheWrongKindIsRefusedAtLoad) {
  EXPECT_EQ(RefusedAtLoad("rank (\"x\") = 2"), "rank: x must be a value of the graph or a node to be built, found a text");
  EXPECT_EQ(RefusedAtLoad("sqrt (\"2\") = 2"), "sqrt: n must be a number, found a text");
  EXPECT_EQ(RefusedAtLoad("never (1)"), "never: sentence must be a text, found a number");
  EXPECT_EQ(RefusedAtLoad("half ([1, 2]) = 0"), "half: part must be a value of the graph, found a list");
  EXPECT_EQ(RefusedAtLoad("last_axes (0.5) = [-1]"), "last_axes: k must be a whole number, found a number");
  // What a function gives is known as well, and what is computed.
  EXPECT_EQ(RefusedAtLoad("sqrt (dtype (x)) = 2"), "sqrt: n must be a number, found an element type");
  EXPECT_EQ(RefusedAtLoad("rank (rank (x) + 1) = 2"),
            "rank: x must be a value of the graph or a node to be built, found a number");
  EXPECT_EQ(RefusedAtLoad("rotation (x, x) = \"half\""), "rotation takes 3 to 4 arguments, 2 given");
}

TEST(FunctionsTest, WhatMayFitIsTakenAtLoad) {
  Rules(
      "rule r (x) => (y) match { y = LeakyRelu <alpha> (x) } where { sqrt (alpha) = 2  dim (x, rank (x) - 1) = 2 }"
      " rule s (x) => (y) match { y = Relu (x) } where { last_axes (2) = [-2, -1]  sqrt (4) = 2 }");
}

TEST(FunctionsTest, AFinalWordIsToldApart) {
  const Attempt never = Where("never (\"this is not a construct\")");
  EXPECT_EQ(never.failure.found, "this is not a construct");
  EXPECT_TRUE(never.failure.final_word);
  EXPECT_EQ(never.failure.expected, "");
  const Attempt opset = Where("opset_from (18)");
  EXPECT_EQ(opset.failure.found, "the model imports opset 17");
  EXPECT_FALSE(opset.failure.final_word);
  EXPECT_EQ(opset.failure.expected, "opset_from (18)");
  EXPECT_TRUE(IsFinalWord(FinalWord("no")));
  EXPECT_FALSE(IsFinalWord(Refuse("no")));
  EXPECT_FALSE(IsFinalWord(absl::OkStatus()));
}

TEST(FunctionsTest, TheTypeOfANodeToBeBuiltIsWhatItsOperatorGives) {
  EXPECT_TRUE(Where("let n = Mul (x, 2)  dtype (n) = float16"));
  EXPECT_TRUE(Where("let n = Div (1, x)  dtype (n) = float16"));
  EXPECT_TRUE(Where("let n = Cast <to = float> (x)  dtype (n) = float"));
  EXPECT_TRUE(Where("let n = Cast <to = 1> (x)  dtype (n) = float"));
  EXPECT_TRUE(Where("let n = Less (x, 0)  dtype (n) = bool"));
  EXPECT_TRUE(Where("let n = Not (Less (x, 0))  dtype (n) = bool"));
  EXPECT_TRUE(Where("let n = Where (Less (x, 0), x, Relu (x))  dtype (n) = float16"));
  EXPECT_TRUE(Where("let n = Where (Less (x, 0), 0, x)  dtype (n) = float16"));
  EXPECT_TRUE(Where("let n = Shape (x)  dtype (n) = int64"));
  EXPECT_TRUE(Where("let n = Slice <starts = [0], ends = [1], axes = [0]> (Shape (x))  dtype (n) = int64"));
  EXPECT_FALSE(Where("let n = Less (x, 0)  dtype (n) = float16"));
}

TEST(FunctionsTest, TheTypeOfANodeThatItsOperatorDoesNotSayIsAnError) {
  EXPECT_EQ(Where("let n = npu.NPURmsNorm (x, x)  dtype (n) = float16").failure.found,
            "the type of a NPURmsNorm to be built is not known");
  EXPECT_EQ(Where("let n = QuantizeLinear (x, x)  dtype (n) = float16").failure.found,
            "the type of a QuantizeLinear to be built is not known");
}

// As numbers of terms they are doubles, of which the nearest lies beyond int64_t.
TEST(FunctionsTest, TheEndsOfIntegersComeBack) {
  const FunctionContext context;
  EXPECT_EQ(DescribeTerm(context, Term::Integer(INT64_MAX)), "9223372036854775807");
  EXPECT_EQ(DescribeTerm(context, Term::Integer(INT64_MIN)), "-9223372036854775808");
  EXPECT_EQ(WholeNumber(-1.5), -1);
  EXPECT_EQ(WholeNumber(std::nan("")), 0);
  EXPECT_EQ(WholeNumber<int8_t>(300), 127);
  EXPECT_EQ(WholeNumber<int32_t>(-1e30), INT32_MIN);
}

TEST(FunctionsTest, AxesThatNoTensorHasAreNotListed) {
  EXPECT_EQ(Where("last_axes (5000) = [-1]").failure.found, "there are no last 5000 axes");
}

TEST(FunctionsTest, TheTableIsMarkdown) {
  const std::string table = DescribeFunctions();
  EXPECT_NE(table.find("| `shape (x)` | list | The dims of x. |\n"), std::string::npos);
  EXPECT_NE(table.find("| `linear (y)` | condition | "), std::string::npos);
  EXPECT_NE(table.find("[a \\| b]"), std::string::npos);
}

}  // namespace
}  // namespace ascend_fuse
