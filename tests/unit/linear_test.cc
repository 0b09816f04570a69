// Every spelling of a linear layer is one view, and what only looks like one is not one.
#include "patterns/analysis/linear.h"

#include <string>

#include "fmt/format.h"
#include "tests/unit/rule_testing.h"

namespace ascend_fuse {
namespace {

using testing::Subject;

const char kConstants[] =
    "<float[2, 3] w = {1, 2, 3, 4, 5, 6}, float[2, 3] u = {6, 5, 4, 3, 2, 1}, float[3, 2] t = {1, 2, 3, 4, 5, 6}, float[3] b = "
    "{1, 2, 3}>";

// "x w b", with " transposed" and why it is not plain, or "no".
std::string View(const std::string& inputs, const std::string& nodes, int opset = 17) {
  Subject subject(fmt::format("({}) => (y) {} {{ {} }}", inputs, kConstants, nodes), opset);
  const FunctionContext context = subject.Context();
  const absl::StatusOr<LinearView> view = FindLinear(context, subject.Named("y"));
  if (!view.ok()) return "no";
  return fmt::format("{} {} {}{}{}", ValueName(*view->x), ValueName(*view->weight),
                     view->bias != nullptr ? ValueName(*view->bias) : "-", view->transposed ? " transposed" : "",
                     view->plain ? "" : ", not plain");
}

TEST(LinearTest, MatMul) {
  EXPECT_EQ(View("float[B, 2] x", "y = MatMul (x, w)"), "x w -");
  EXPECT_EQ(View("float[B, S, 2] x", "p = MatMul (x, w)\n y = Add (b, p)"), "x w b");
  EXPECT_EQ(View("float[B, 2] x", "m = Transpose <perm = [1, 0]> (t)\n y = MatMul (x, m)"), "x t - transposed");
}

TEST(LinearTest, Gemm) {
  EXPECT_EQ(View("float[4, 2] x", "y = Gemm (x, w, b)"), "x w b");
  EXPECT_EQ(View("float[4, 2] x", "y = Gemm <transB = 1> (x, t)"), "x t - transposed");
  EXPECT_EQ(View("float[4, 2] x", "y = Gemm <alpha = 2.0> (x, w, b)"), "x w b, not plain");
}

TEST(LinearTest, WhatIsNone) {
  EXPECT_EQ(View("float[B, 2] x, float[2, 3] v", "y = MatMul (x, v)"), "no") << "two activations";
  EXPECT_EQ(View("float[B, 2] x", "y = Relu (x)"), "no");
}

TEST(LinearTest, AResidualIsNoBias) {
  EXPECT_EQ(View("float[B, 2] x, float[B, 3] r", "p = MatMul (x, w)\n y = Add (p, r)"), "no");
}

TEST(LinearTest, NoiseIsLookedThrough) {
  EXPECT_EQ(View("float[B, 2] x", "p = MatMul (x, w)\n i = Identity (p)\n y = Add (i, b)"), "x w b");
}

TEST(LinearTest, TwoOfOneInputAreMerged) {
  auto merged = [](const std::string& second) {
    Subject subject(fmt::format("(float[B, 2] x, float[B, 2] z) => (y) {} {{ p = MatMul (x, w)\n q = {}\n y = Mul (p, q) }}",
                                kConstants, second));
    const FunctionContext context = subject.Context();
    return MergedLinear(context, subject.Named("p"), subject.Named("q")).ok();
  };
  EXPECT_TRUE(merged("MatMul (x, u)"));
  EXPECT_FALSE(merged("MatMul (z, u)")) << "another input";
  EXPECT_FALSE(merged("Gemm (x, u, b)")) << "one has a bias";
}

}  // namespace
}  // namespace ascend_fuse
