// What a report warns of, each finding with its code: forms that the ATC of the chosen release does not read, and not of
// releases for which it is not true; the opset; names of --dim.
#include "passes/check/check.h"

#include <algorithm>
#include <memory>
#include <string>

#include "fmt/format.h"
#include "gtest/gtest.h"
#include "ir/text/parser.h"
#include "passes/check/atc_check.h"

namespace ascend_fuse {
namespace {

std::unique_ptr<Model> Parse(const std::string& graph, int opset = 18) {
  auto model =
      ParseModelText(fmt::format("<ir_version: 8, opset_import: [\"\" : {}, \"com.microsoft\" : 1]>\ng {}", opset, graph));
  EXPECT_TRUE(model.ok()) << model.status();
  return *std::move(model);
}

Target On(const std::string& cann) {
  TargetOptions options;
  options.cann = cann;
  auto target = Target::Load(options);
  EXPECT_TRUE(target.ok()) << target.status();
  return *std::move(target);
}

std::vector<std::string> CodesOf(const std::vector<WarningRecord>& warnings) {
  std::vector<std::string> codes;
  for (const WarningRecord& warning : warnings) codes.push_back(warning.code);
  return codes;
}

std::vector<std::string> Forms(const std::string& graph, const std::string& cann = "8.1", int opset = 18) {
  const auto model = Parse(graph, opset);
  Facts facts = Infer(*model);
  return CodesOf(CheckForms(FindInNodes(*model, facts, On(cann))));
}

using Codes = std::vector<std::string>;

TEST(CheckTest, AxesOfReduceMeanAreMisreadBeforeTheyWereFixed) {
  const std::string input = "(float[2, 4] x, int64[1] axes) => (float[2, 1] y) { y = ReduceMean (x, axes) }";
  EXPECT_EQ(Forms(input), Codes{"reduce-axes-input"});
  EXPECT_EQ(Forms(input, "2026.07"), Codes());  // read since 31 July 2026
  const std::string attribute = "(float[2, 4] x) => (float[2, 1] y) { y = ReduceMean <axes = [1]> (x) }";
  EXPECT_EQ(Forms(attribute, "8.1", 17), Codes());
  const auto model = Parse(input);
  Facts facts = Infer(*model);
  const auto warnings = CheckForms(FindInNodes(*model, facts, On("8.1")));
  ASSERT_EQ(warnings.size(), 1u);
  EXPECT_EQ(warnings[0].message,
            "1 ReduceMean with axes as an input: ATC before 9.2 averages over all axes there without a word "
            "(hicann/ops-math:math/reduce_mean/framework; 94d615ff7 (31 Jul 2026)); export at opset 17 or lower");
}

TEST(CheckTest, StartAndEndOfShapeAreIgnoredByEveryRelease) {
  for (const std::string& cann : Target::CannVersions()) {
    EXPECT_EQ(Forms("(float[2, 4] x) => (int64[1] y) { y = Shape <start = 1> (x) }", cann), Codes{"shape-start-end"});
    EXPECT_EQ(Forms("(float[2, 4] x) => (int64[1] y) { y = Shape <end = 1> (x) }", cann), Codes{"shape-start-end"});
    // Both at once are one finding, and a start of 0 is not one.
    EXPECT_EQ(Forms("(float[2, 4] x) => (int64[0] y) { y = Shape <start = 1, end = 1> (x) }", cann), Codes{"shape-start-end"});
    EXPECT_EQ(Forms("(float[2, 4] x) => (int64[2] y) { y = Shape <start = 0> (x) }", cann), Codes());
  }
}

TEST(CheckTest, SplitWithNumOutputs) {
  EXPECT_EQ(Forms("(float[4] x) => (float[2] y, float[2] z) { y, z = Split <num_outputs = 2> (x) }"), Codes{"split-num-outputs"});
  EXPECT_EQ(Forms("(float[4] x, int64[2] n) => (float[2] y, float[2] z) { y, z = Split (x, n) }"), Codes());
}

TEST(CheckTest, OperatorsWithoutAParser) {
  EXPECT_EQ(Forms("(float[4] x) => (float[4] y) { y = Gelu (x) }", "8.1", 20), Codes{"no-parser"});
  EXPECT_EQ(Forms("(float[4] x) => (float[4] y) { y = com.microsoft.Gelu (x) }"), Codes{"no-parser"});
  EXPECT_EQ(Forms("(float[4] x) => (float[4] y) { y = Relu (x) }"), Codes());
  // A parser for some opsets only.
  const std::string norm = "(float[4] x) => (float[1] y) { y = ReduceL2 (x) }";
  EXPECT_EQ(Forms(norm, "8.1", 17), Codes());
  EXPECT_EQ(Forms(norm, "8.1", 18), Codes{"no-parser"});
  // Nodes of one operator are one finding.
  const auto model = Parse("(float[4] x) => (float[4] y) { a = Gelu (x)\n y = Gelu (a) }", 20);
  Facts facts = Infer(*model);
  const auto warnings = CheckForms(FindInNodes(*model, facts, On("8.1")));
  ASSERT_EQ(warnings.size(), 1u);
  EXPECT_EQ(warnings[0].message, "2 Gelu: stock ATC has no parser for it and will refuse the model");
}

TEST(CheckTest, OtherFormsThatAreRefusedOrMisread) {
  EXPECT_EQ(Forms("(float[2, 4] x) => (float[4, 2] y) { y = Transpose (x) }"), Codes{"transpose-without-perm"});
  EXPECT_EQ(Forms("(float[2, 4] x) => (float[4, 2] y) { y = Transpose <perm = [1, 0]> (x) }"), Codes());
  EXPECT_EQ(Forms("(float[4] x) => (float[4] y) { y = Clip (x) }"), Codes{"clip-without-bounds"});
  EXPECT_EQ(Forms("(float[4] x, float m) => (float[4] y) { y = Clip (x, , m) }"), Codes());
  EXPECT_EQ(Forms("() => (int64 y) { y = Constant <value_int = 1> () }"), Codes{"constant-value-form"});
  EXPECT_EQ(Forms("() => (int64 y) { y = Constant <value = int64 {1}> () }"), Codes());
  const std::string scatter =
      "(float[4] x, int64[2, 1] i, float[2] u) => (float[4] y) { y = ScatterND <reduction = \"RED\"> (x, i, u) }";
  const auto with = [&](const std::string& word) {
    std::string text = scatter;
    return text.replace(text.find("RED"), 3, word);
  };
  EXPECT_EQ(Forms(with("add")), Codes{"scatter-reduction"});
  EXPECT_EQ(Forms(with("none")), Codes());
}

TEST(CheckTest, FormsInBodiesCount) {
  const std::string text = R"((bool c, float[2, 4] x) => (float[4, 2] y) {
    y = If (c) <then_branch = t () => (float[4, 2] a) { a = Transpose (x) },
                else_branch = e () => (float[4, 2] b) { b = Transpose <perm = [1, 0]> (x) }>
  })";
  EXPECT_EQ(Forms(text), Codes{"transpose-without-perm"});
}

TEST(CheckTest, TheOpset) {
  const std::string relu = "(float[4] x) => (float[4] y) { y = Relu (x) }";
  EXPECT_EQ(CodesOf(CheckOpset(*Parse(relu, 18), On("8.1"))), Codes());
  EXPECT_EQ(CodesOf(CheckOpset(*Parse(relu, 19), On("8.1"))), Codes{"opset-too-high"});
}

TEST(CheckTest, NamesOfDims) {
  const auto model = Parse(R"((float["batch", "past + seq", 4] x, int64[N] m) => (float["batch", "out", 4] y) {
    y = Relu (x)
  })");
  const auto check = [&](const std::string& name) {
    InferOptions options;
    options.dims = {{name, {1, 1}}};
    return CheckDims(*model, options);
  };
  for (const char* name : {"batch", "past", "seq", "N"}) EXPECT_EQ(CodesOf(check(name)), Codes()) << name;
  EXPECT_EQ(CheckDims(*model, {}).size(), 0u);
  // A name that only an output has is bound by nothing.
  for (const char* name : {"bach", "out"}) {
    const auto warnings = check(name);
    ASSERT_EQ(CodesOf(warnings), Codes{"dim-unknown"});
    EXPECT_EQ(warnings[0].message,
              fmt::format("--dim {}: no input of the model has a dim of that name; there are N, batch, past, seq", name));
  }
  const auto unnamed = Parse("(float[?, 4] x) => (float[?, 4] y) { y = Relu (x) }");
  InferOptions first;
  first.dims = {{"x_d0", {1, 1}}};
  EXPECT_EQ(CodesOf(CheckDims(*unnamed, first)), Codes());
  first.dims = {{"y_d0", {1, 1}}};
  EXPECT_EQ(CheckDims(*unnamed, first)[0].message, "--dim y_d0: no input of the model has a dim of that name; there are x_d0");
  const auto fixed = Parse("(float[4] x) => (float[4] y) { y = Relu (x) }");
  InferOptions options;
  options.dims = {{"batch", {1, 1}}};
  ASSERT_EQ(CheckDims(*fixed, options).size(), 1u);
  EXPECT_EQ(CheckDims(*fixed, options)[0].message, "--dim batch: no input of the model has a symbolic dim");
}

TEST(CheckTest, ADimThatCanOnlyBeZeroIsTold) {
  // Three rows more than x has are to be as many as those of a constant.
  const auto check = [](int rows, const InferOptions& options) {
    const auto model = Parse(fmt::format(R"((float[B, 2] x, float[3, 2] more, float[{}, 2] all) => (float[n, 2] y) {{
      joined = Concat <axis = 0> (x, more)
      y = Add (joined, all)
    }})",
                                         rows));
    Facts facts = Infer(*model, options);
    return CheckEmptyDims(*model, facts, options);
  };
  EXPECT_EQ(CodesOf(check(5, {})), Codes());
  const auto warnings = check(3, {});
  ASSERT_EQ(CodesOf(warnings), Codes{"dim-only-zero"});
  EXPECT_EQ(
      warnings[0].message,
      "the dim `B` of input x can only be 0: numbers in the model, most often those of a Reshape, fit no other size of it, and "
      "ONNX Runtime ends with an error for every other one");
  InferOptions given;
  given.dims = {{"B", {0, 0}}};
  EXPECT_EQ(CodesOf(check(3, given)), Codes());  // as was said
}

}  // namespace
}  // namespace ascend_fuse
