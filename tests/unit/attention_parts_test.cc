// The parts of an attention by themselves: the two products, the softmax in any spelling, and what lies between.
#include <string>

#include "patterns/analysis/product.h"
#include "patterns/analysis/scores.h"
#include "patterns/analysis/softmax.h"
#include "tests/unit/rule_testing.h"

namespace ascend_fuse {
namespace {

using testing::Subject;

// "x, axis 1" of the softmax that computes y, or "none".
std::string Softmax(const std::string& text, int opset = 17) {
  Subject subject(text, opset);
  const auto view = FindSoftmax(subject.Context(), subject.Named("y"));
  return view.has_value() ? fmt::format("{}, axis {}", ValueName(*view->input), view->axis) : "none";
}

TEST(SoftmaxTest, TheOperator) {
  const std::string model = "(float[2, 3, 4] x) => (float[2, 3, 4] y) { y = Softmax <axis = -1> (x) }";
  EXPECT_EQ(Softmax(model), "x, axis 2");
  EXPECT_EQ(Softmax(model, 11), "x, axis 2");
}

TEST(SoftmaxTest, BeforeOpset13AllAxesFromItsOwnOnAreOne) {
  const std::string model = "(float[2, 3, 4] x) => (float[2, 3, 4] y) { y = Softmax <axis = 1> (x) }";
  EXPECT_EQ(Softmax(model), "x, axis 1");
  EXPECT_EQ(Softmax(model, 11), "none");
  EXPECT_EQ(Softmax("(float[3, 4] x) => (float[3, 4] y) { y = Softmax (x) }", 11), "x, axis 1") << "1 is the default";
  EXPECT_EQ(Softmax("(float[2, 3, 4] x) => (float[2, 3, 4] y) { y = Softmax (x) }", 11), "none");
}

std::string Written(const std::string& nodes) {
  return Softmax("(float[2, 3] x, float[2, 3] z) => (float[2, 3] y) <int64[1] last = {1}, int64[1] other = {0}> { " + nodes +
                 " }");
}

TEST(SoftmaxTest, TheFormula) {
  EXPECT_EQ(Written("e = Exp (x)\n s = ReduceSum (e, last)\n y = Div (e, s)"), "x, axis 1");
  EXPECT_EQ(Written("m = ReduceMax <axes = [1]> (x)\n d = Sub (x, m)\n e = Exp (d)\n s = ReduceSum (e, last)\n y = Div (e, s)"),
            "x, axis 1");
  EXPECT_EQ(Written("e = Exp (x)\n s = ReduceSum (e, last)\n r = Reciprocal (s)\n y = Mul (r, e)"), "x, axis 1");
  EXPECT_EQ(Written("l = LogSoftmax <axis = 1> (x)\n y = Exp (l)"), "x, axis 1");
  EXPECT_EQ(Written("e = Exp (x)\n s = ReduceSum <keepdims = 0> (e, last)\n t = Unsqueeze (s, last)\n y = Div (e, t)"),
            "x, axis 1")
      << "an axis comes back";
}

TEST(SoftmaxTest, WhatOnlyLooksLikeTheFormula) {
  EXPECT_EQ(Written("e = Exp (x)\n f = Exp (z)\n s = ReduceSum (f, last)\n y = Div (e, s)"), "none") << "of another tensor";
  EXPECT_EQ(Written("e = Exp (x)\n s = ReduceSum (e, last)\n y = Div (s, e)"), "none") << "the inverse";
  // The maximum of another axis is a number for each column: a difference that the softmax does not forget.
  EXPECT_EQ(Written("m = ReduceMax <axes = [0]> (x)\n d = Sub (x, m)\n e = Exp (d)\n s = ReduceSum (e, last)\n y = Div (e, s)"),
            "d, axis 1");
}

// "a[0 1 -0] b[0 -0 2]": where the axes of both operands are in the result, -0 for the first that is summed over.
std::string Axes(const std::string& text) {
  Subject subject(text);
  const auto product = FindProduct(subject.Context(), subject.Named("y"));
  if (!product.has_value()) return "none";
  std::string words;
  for (size_t i = 0; i < 2; ++i) {
    words += fmt::format("{}{}[", i == 0 ? "" : " ", ValueName(*product->operands[i]));
    for (size_t k = 0; k < product->axes[i].size(); ++k) {
      const int axis = product->axes[i][k];
      words += (k == 0 ? "" : " ") +
               (Product::IsSummed(axis) ? fmt::format("-{}", Product::PlaceOfSummed(axis)) : fmt::format("{}", axis));
    }
    words += "]";
  }
  return words;
}

TEST(ProductTest, MatMul) {
  EXPECT_EQ(Axes("(float[2, 3, 4] a, float[2, 4, 5] b) => (y) { y = MatMul (a, b) }"), "a[0 1 -0] b[0 -0 2]");
  EXPECT_EQ(Axes("(float[7, 2, 3, 4] a, float[4, 5] b) => (y) { y = MatMul (a, b) }"), "a[0 1 2 -0] b[-0 3]");
  EXPECT_EQ(Axes("(float[3, 4] a, float[4] b) => (y) { y = MatMul (a, b) }"), "none") << "of a vector";
}

TEST(ProductTest, Einsum) {
  const auto einsum = [](const std::string& equation) {
    return Axes("(float[2, 3, 4] a, float[2, 5, 4] b) => (y) { y = Einsum <equation = \"" + equation + "\"> (a, b) }");
  };
  EXPECT_EQ(einsum("bqd,bkd->bqk"), "a[0 1 -0] b[0 2 -0]");
  EXPECT_EQ(einsum("b q d, b k d -> b k q"), "a[0 2 -0] b[0 1 -0]");
  EXPECT_EQ(einsum("bqd,bkd->qk"), "a[-0 0 -1] b[-0 1 -1]");
  EXPECT_EQ(einsum("bqd,dkb->qk"), "a[-0 0 -1] b[-1 1 -0]");
  EXPECT_EQ(einsum("bqd,bkd->bk"), "none") << "sums over a letter of one operand";
  EXPECT_EQ(einsum("bqd,bkd->bqkd"), "none") << "sums over none";
  EXPECT_EQ(einsum("bqd,bkd"), "none") << "without an arrow";
  EXPECT_EQ(einsum("...qd,...kd->...qk"), "a[0 1 -0] b[0 2 -0]");
  EXPECT_EQ(einsum("...qd,...kd->qk"), "none") << "sums over what the ellipsis stands for";
}

// "scale 0.125 masks m+ k? ..." of the way from y [2, 3, 5], what is multiplied by the value, to the product of q and k.
std::string Scores(const std::string& inputs, const std::string& nodes) {
  Subject subject("(float[2, 3, 4] q, float[2, 4, 5] k" + inputs +
                  ") => (float[2, 3, 5] y) <float scale = {0.125}, float cap = {5}, "
                  "float zero = {0}, float low = {-inf}> { s = MatMul (q, k)\n " +
                  nodes + " }");
  const FunctionContext context = subject.Context();
  AtomTable atoms(context.dims);
  AxisView weights;
  weights.value = subject.Named("y");
  for (int64_t size : {2, 3, 5}) weights.axes.push_back(atoms.New(Dim::Of(size)));
  std::vector<const Node*> reached;
  const auto path = FollowScores(context, &atoms, weights, weights.axes[2], weights.axes[0], std::nullopt, &reached);
  if (!path.ok()) return std::string(path.status().message());
  std::string text = fmt::format("scale {}", path->scale);
  if (path->softcap != 0) text += fmt::format(" softcap {}", path->softcap);
  if (path->guard) text += " guard";
  for (const ScoreMask& mask : path->masks) {
    static constexpr const char* kKinds[] = {"+", "-", " keeps", " drops", " multiplies"};
    text += fmt::format(" {}{}", ValueName(*mask.value), kKinds[static_cast<int>(mask.kind)]);
    if (mask.factor != 1) text += fmt::format(" times {}", mask.factor);
  }
  return text;
}

TEST(ScoresTest, ScaleAndMasksInAnyOrder) {
  EXPECT_EQ(Scores("", "y = Softmax (s)"), "scale 1");
  EXPECT_EQ(Scores("", "z = Mul (s, scale)\n y = Softmax (z)"), "scale 0.125");
  EXPECT_EQ(Scores(", float[3, 5] m", "z = Mul (s, scale)\n t = Add (m, z)\n y = Softmax (t)"), "scale 0.125 m+");
  EXPECT_EQ(Scores(", float[3, 5] m, bool[2, 1, 5] k2", "t = Add (s, m)\n u = Where (k2, t, low)\n y = Softmax (u)"),
            "scale 1 k2 keeps m+");
  EXPECT_EQ(Scores(", bool[2, 1, 5] d", "u = Where (d, low, s)\n y = Softmax (u)"), "scale 1 d drops");
  EXPECT_EQ(Scores(", float[3, 5] m", "t = Sub (s, m)\n y = Softmax (t)"), "scale 1 m-");
  EXPECT_EQ(Scores(", float[3, 5] m", "t = Add (s, m)\n z = Mul (t, scale)\n y = Softmax (z)"), "scale 0.125 m+ times 0.125");
}

TEST(ScoresTest, CapsAndGuards) {
  EXPECT_EQ(Scores("", "d = Div (s, cap)\n h = Tanh (d)\n c = Mul (h, cap)\n y = Softmax (c)"), "scale 1 softcap 5");
  EXPECT_EQ(Scores("", "p = Softmax (s)\n n = IsNaN (p)\n y = Where (n, zero, p)"), "scale 1 guard");
}

TEST(ScoresTest, WhatIsNoPartOfAnAttention) {
  EXPECT_NE(Scores("", "t = Relu (s)\n y = Softmax (t)").find("Relu"), std::string::npos);
  EXPECT_EQ(Scores("", "y = Softmax <axis = 1> (s)").find("scale"), std::string::npos) << "over the queries";
  EXPECT_EQ(Scores(", float[3, 5] m", "t = Add (s, m)\n d = Div (t, cap)\n h = Tanh (d)\n c = Mul (h, cap)\n y = Softmax (c)")
                .find("softcap"),
            std::string::npos)
      << "capped after a mask";
}

}  // namespace
}  // namespace ascend_fuse
