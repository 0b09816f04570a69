// What differs between two versions of a model.
#include "passes/report/diff.h"

#include <memory>
#include <string>

#include "fmt/format.h"
#include "gtest/gtest.h"
#include "ir/text/parser.h"

namespace ascend_fuse {
namespace {

std::string Compared(const std::string& before, const std::string& after, const std::string& imports = R"("" : 17)") {
  const auto model = [](const std::string& body, const std::string& opsets) {
    auto parsed = ParseModelText(fmt::format("<ir_version: 8, opset_import: [{}]>\n{}", opsets, body));
    EXPECT_TRUE(parsed.ok()) << parsed.status().message();
    return *std::move(parsed);
  };
  return DiffToText(Diff(*model(before, R"("" : 17)"), *model(after, imports)));
}

constexpr char kRelu[] = R"(g (float[2, 4] x) => (float[2, 4] y) { a = Abs (x)  b = Neg (a)  y = Relu (b) })";

TEST(DiffTest, Nothing) {
  EXPECT_EQ(Compared(kRelu, kRelu), "no difference\n");
  // A name of a node is not one of its values.
  EXPECT_EQ(Compared(kRelu, R"(g (float[2, 4] x) => (float[2, 4] y) { [n] a = Abs (x)  b = Neg (a)  y = Relu (b) })"),
            "no difference\n");
}

TEST(DiffTest, NodesThatBecomeOne) {
  EXPECT_EQ(Compared(kRelu, R"(g (float[2, 4] x) => (float[2, 4] y) { y = npu.NPUThing (x) })", R"("" : 17, "npu" : 1)"),
            "nodes 3 -> 1\nnpu 1 is imported\n\ny\n  - Abs, Neg, Relu\n  + npu.NPUThing\n");
}

TEST(DiffTest, PlacesThatDoNotTouchAreTwo) {
  const char before[] = R"(g (float[2] x) => (float[2] y) { a = Abs (x)  b = Neg (a)  c = Exp (b)  y = Relu (c) })";
  const char after[] = R"(g (float[2] x) => (float[2] y) { a = Sin (x)  b = Neg (a)  c = Exp (b)  y = Cos (c) })";
  EXPECT_EQ(Compared(before, after), "nodes 4 -> 4\n\na\n  - Abs\n  + Sin\n\ny\n  - Relu\n  + Cos\n");
}

TEST(DiffTest, LayersAreOneLine) {
  std::string before = "g (float[2] x) => (float[2] y) {";
  std::string after = before;
  std::string last = "x";
  for (int i = 0; i < 3; ++i) {
    const std::string name = fmt::format("\"/layers.{}/out\"", i);
    before += fmt::format(" [\"/layers.{}/act/Abs\"] {} = Abs ({}) ", i, name, last);
    after += fmt::format(" [\"/layers.{}/act/Neg\"] {} = Neg ({}) ", i, name, last);
    last = name;
  }
  EXPECT_EQ(Compared(before + fmt::format(" y = Relu ({}) }}", last), after + fmt::format(" y = Relu ({}) }}", last)),
            "nodes 4 -> 4\n\n3 x layers.*.act\n  - Abs\n  + Neg\n");
}

TEST(DiffTest, VeryManyNodesAreCounted) {
  std::string before = "g (float[2] x) => (float[2] y) {";
  std::string last = "x";
  for (int i = 0; i < 13; ++i) {
    before += fmt::format(" a{0} = Abs ({1})  n{0} = Neg (a{0}) ", i, last);
    last = fmt::format("n{}", i);
  }
  EXPECT_EQ(Compared(before + fmt::format(" y = Relu ({}) }}", last), "g (float[2] x) => (float[2] y) { y = Exp (x) }"),
            "nodes 27 -> 1\n\ny\n  - 27 nodes: 13 Abs, 13 Neg, Relu\n  + Exp\n");
}

TEST(DiffTest, AttributesInputsAndPorts) {
  EXPECT_EQ(Compared(R"(g (float[2, 4] x) => (float[4, 2] y) { y = Transpose <perm = [1, 0]> (x) })",
                     R"(g (float[2, 4] x) => (float[4, 2] y) { y = Transpose (x) })"),
            "nodes 1 -> 1\n\ny\n  - Transpose\n  + Transpose\n");
  EXPECT_EQ(Compared(R"(g (float[2] x, float[2] z) => (float[2] y) { y = Add (x, z) })",
                     R"(g (float[3] x) => (float[3] y) { y = Add (x, x) })"),
            "nodes 1 -> 1\nthe input x has another type or shape\nthe input z is gone\nthe output y has another type or "
            "shape\n\ny\n  - Add\n  + Add\n");
  EXPECT_EQ(Compared(kRelu, R"(g (float[2, 4] x) => (float[2, 4] y) { a = Abs (x)  b = Neg (a)  y = Relu (b)  c = Exp (b) })"),
            "nodes 3 -> 4\n\nno name of both models\n  - nothing\n  + Exp\n");
}

}  // namespace
}  // namespace ascend_fuse
