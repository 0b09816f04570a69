// What exporters leave in a graph without meaning it (docs/sources/export-patterns.md section 1, X1 ..., and the canonical form
// of section 9, C1 ...): a pattern sees through each, and not through the nearest thing that does mean something. What is larger
// than a pattern is in golden files:
//   X8   bodies of If, Loop and Scan      exporter_noise/body_*, rms_norm/in_branch_of_if
//   X9   local functions                  functions/*, and inline_test.cc, tests/python/test_functions.py
//   X10  operators of ONNX Runtime        exporter_noise/runtime_*, and contrib*, runtime_*, skip* of each construct
//   X11  clamped constants                exporter_noise/fill_*
//   X12  casts of autocast                exporter_noise/autocast_*
//   X16  inner values that are outputs    exporter_noise/present_keys_are_outputs, */*_is_output
#include <string>

#include "passes/optimize.h"
#include "tests/unit/rule_testing.h"

namespace ascend_fuse {
namespace {

using testing::Attempt;
using testing::Subject;
using testing::Try;

// Whether the rule takes `y`.
bool Takes(const std::string& rule, const std::string& model, int opset = 17) {
  return static_cast<bool>(Try(model, "rule r (x) => (y) " + rule, opset));
}

constexpr char kHalved[] = "match { y = Mul (x, 0.5) }";
// The number is bound and read back with value ().
constexpr char kScaled[] = "match { y = Relu (scaled (x, f)) } where { f = 0.5 }";

bool Halves(const std::string& constants, const std::string& nodes, const std::string& x = "float[2, 3, 4] x", int opset = 17) {
  return Takes(kHalved, "(" + x + ") => (y) " + constants + "{ " + nodes + " y = Mul (x, c) }", opset);
}

TEST(ExporterNoiseTest, X1ConstantsInEverySpelling) {
  EXPECT_TRUE(Halves("<float c = {0.5}>", ""));
  EXPECT_TRUE(Halves("<float[1] c = {0.5}>", ""));
  EXPECT_TRUE(Halves("", "c = Constant <value_float = 0.5> ()\n"));
  EXPECT_TRUE(Halves("", "c = Constant <value_floats = [0.5]> ()\n"));
  EXPECT_TRUE(Halves("", "c = Constant <value = float[1] {0.5}> ()\n"));
  EXPECT_TRUE(Halves("<double d = {0.5}>", "c = Cast <to = 1> (d)\n"));
  EXPECT_TRUE(Halves("<double d = {0.5}>", "c = CastLike (d, x)\n"));
  EXPECT_TRUE(Halves("<float d = {0.5}>", "c = Identity (d)\n"));
  EXPECT_TRUE(Halves("<float d = {0.5}, int64[1] s = {-1}>", "e = Cast <to = 1> (d)\n c = Reshape (e, s)\n"));
  EXPECT_TRUE(Halves("<float d = {0.5}, int64[2] a = {0, 1}>", "c = Unsqueeze (d, a)\n"));
  EXPECT_TRUE(Halves("<float d = {2}>", "c = Reciprocal (d)\n")) << "folded";
  EXPECT_FALSE(Halves("<float c = {0.25}>", ""));
  EXPECT_FALSE(Halves("<float[4] c = {0.5, 0.5, 0.5, 0.25}>", ""));
  EXPECT_TRUE(Takes("match { y = Mul (x, 2) }", "(int64[3] x) => (y) { c = Constant <value_ints = [2]> ()\n y = Mul (x, c) }"));
}

TEST(ExporterNoiseTest, X1ConstantsOfEqualElementsAreScalarsWhereTheyAddNothingToTheShape) {
  EXPECT_TRUE(Halves("<float[1, 1] c = {0.5}>", ""));
  EXPECT_TRUE(Halves("<float[1, 1, 1] c = {0.5}>", ""));
  EXPECT_TRUE(Halves("<float[4] c = {0.5, 0.5, 0.5, 0.5}>", ""));
  EXPECT_TRUE(Halves("<float[3, 1] c = {0.5, 0.5, 0.5}>", ""));
  EXPECT_FALSE(Halves("<float[1, 1, 1, 1] c = {0.5}>", "")) << "the result has rank 4";
  EXPECT_FALSE(Halves("<float[4] c = {0.5, 0.5, 0.5, 0.5}>", "", "float[2, 3, 1] x")) << "the result is wider";
  EXPECT_FALSE(Halves("<float[4] c = {0.5, 0.5, 0.5, 0.5}>", "", "float[2, n] x")) << "n may be 1";
  EXPECT_FALSE(Halves("<float[1, 1] c = {0.5}>", "", "float x"));
  // The same through a name and value ().
  const auto scaled = [](const std::string& x, const std::string& c, const std::string& op = "Mul") {
    return Takes(kScaled, "(" + x + ") => (y) <" + c + "> { h = " + op + " (x, c)\n y = Relu (h) }");
  };
  EXPECT_TRUE(scaled("float[2, n, 4] x", "float[1, 1, 1] c = {0.5}"));
  EXPECT_TRUE(scaled("float[2, n, 4] x", "float[1, 1, 1] c = {2}", "Div"));
  EXPECT_FALSE(scaled("float[n, 4] x", "float[1, 1, 1] c = {0.5}"));
  EXPECT_FALSE(scaled("float[n, 4] x", "float[4] c = {0.5, 0.5, 0.5, 0.25}"));
  // One name at two places: it must be a number at both.
  const std::string twice = "match { y = Add (Mul (a, c), Mul (b, c)) } where { value (c) = 2 }";
  const auto both = [&](const std::string& b) {
    return static_cast<bool>(Try("(float[2, 3, 4] a, " + b +
                                     " b) => (y) <float[1, 1, 1] c = {2}> "
                                     "{ p = Mul (a, c)\n q = Mul (b, c)\n y = Add (p, q) }",
                                 "rule r (a, b) => (y) " + twice));
  };
  EXPECT_TRUE(both("float[2, 3, 4]"));
  EXPECT_FALSE(both("float[4]"));
}

TEST(ExporterNoiseTest, X2CopiesOfWeights) {
  const std::string rule = "match { y = Add (MatMul (x, w), MatMul (x, w)) } where { rank (w) = 2 }";
  const auto tied = [&](const std::string& second) {
    return Takes(rule,
                 "(float[2, 8] x, float[8, 8] w, float[8, 8] v) => (y) { c = Identity (w)\n d = Identity (c)\n"
                 "p = MatMul (x, w)\n q = MatMul (x, " +
                     second + ")\n y = Add (p, q) }");
  };
  EXPECT_TRUE(tied("w"));
  EXPECT_TRUE(tied("c"));
  EXPECT_TRUE(tied("d"));
  EXPECT_FALSE(tied("v"));
}

// Between Neg and Relu stands what does nothing.
bool Through(const std::string& nodes, const std::string& x = "float[2, 3, 4] x", int opset = 18,
             const std::string& constants = "") {
  return Takes("match { y = Relu (Neg (x)) }",
               "(" + x + ") => (y) " + constants + "{ a = Neg (x)\n " + nodes + "\n y = Relu (b) }", opset);
}

TEST(ExporterNoiseTest, X3NodesThatDoNothing) {
  const std::string ints =
      "<int64[1] zero = {0}, int64[1] one = {1}, int64[1] two = {2}, int64[1] last = {9223372036854775807}, "
      "int64[3] ones = {1, 1, 1}, int64[3] twos = {2, 1, 1}, int64[6] none = {0, 0, 0, 0, 0, 0}, "
      "int64[6] shift = {0, 0, 1, 0, 0, -1}, float f0 = {0}, float f1 = {1}, float[4] fs = {1, 1, 1, 1}>";
  const auto noise = [&](const std::string& nodes, const std::string& x = "float[2, 3, 4] x") {
    return Through(nodes, x, 18, ints);
  };
  for (const char* nodes : {"b = Identity (a)",
                            "b = Dropout (a)",
                            "b = Cast <to = 1> (a)",
                            "b = CastLike (a, f1)",
                            "b = Concat <axis = 0> (a)",
                            "b = Sum (a)",
                            "b = Max (a)",
                            "b = Min (a)",
                            "b = Mean (a)",
                            "b = Split <axis = 0, num_outputs = 1> (a)",
                            "b = Slice (a, zero, last, two)",
                            "b = Slice (a, zero, last, one, one)",
                            "b = Expand (a, ones)",
                            "b = Tile (a, ones)",
                            "b = Pad (a, none)",
                            "b = Mul (a, f1)",
                            "b = Mul (f1, a)",
                            "b = Mul (a, fs)",
                            "b = Div (a, f1)",
                            "b = Pow (a, f1)",
                            "b = Add (a, f0)",
                            "b = Add (f0, a)",
                            "b = Sub (a, f0)",
                            "c = Cast <to = 11> (a)\n b = Cast <to = 1> (c)",
                            "c = Transpose (a)\n b = Transpose (c)",
                            "c = Unsqueeze (a, one)\n b = Squeeze (c, one)",
                            "c = Transpose <perm = [0, 2, 1]> (a)\n d = Identity (c)\n e = Mul (d, f1)\n "
                            "b = Transpose <perm = [0, 2, 1]> (e)"}) {
    EXPECT_TRUE(noise(nodes)) << nodes;
  }
  for (const char* nodes :
       {"b, m = Dropout (a, f1, t)\n t = Constant <value = bool {1}> ()", "b = Cast <to = 10> (a)",
        "c = Cast <to = 10> (a)\n b = Cast <to = 1> (c)", "b = CastLike (a, zero)", "b = Concat <axis = 0> (a, a)",
        "b = Sum (a, a)", "b = Slice (a, one, last, two)", "b = Expand (a, twos)\n", "b = Tile (a, twos)", "b = Pad (a, shift)",
        "b = Mul (a, f0)", "b = Div (f1, a)", "b = Pow (f1, a)", "b = Sub (f0, a)", "b = Add (a, f1)",
        "c = Transpose (a)\n b = Relu (c)", "b = Unsqueeze (a, one)",
        "c = Transpose <perm = [0, 2, 1]> (a)\n d = Exp (c)\n b = Transpose <perm = [0, 2, 1]> (d)"}) {
    EXPECT_FALSE(noise(nodes, "float[1, 3, 4] x")) << nodes;
  }
  EXPECT_FALSE(noise("b = Mul (a, fs)", "float[3, n] x")) << "n may be 1 and become 4";
}

TEST(ExporterNoiseTest, X3ReshapesThatComeBack) {
  const std::string shapes =
      "<int64[2] flat = {-1, 4}, int64[3] three = {2, 3, 4}, int64[3] other = {3, 2, 4}, int64[1] minus = {-1}>";
  EXPECT_TRUE(Through("c = Reshape (a, flat)\n b = Reshape (c, three)", "float[2, 3, 4] x", 17, shapes));
  EXPECT_TRUE(Through("c = Flatten <axis = 2> (a)\n d = Identity (c)\n e = Reshape (d, minus)\n b = Reshape (e, three)",
                      "float[2, 3, 4] x", 17, shapes));
  EXPECT_TRUE(Through("s = Shape (a)\n c = Reshape (a, flat)\n b = Reshape (c, s)", "float[b, s, 4] x", 17, shapes));
  EXPECT_FALSE(Through("c = Reshape (a, flat)\n b = Reshape (c, other)", "float[2, 3, 4] x", 17, shapes));
  EXPECT_FALSE(Through("c = Reshape (a, flat)\n d = Exp (c)\n b = Reshape (d, three)", "float[2, 3, 4] x", 17, shapes));
  EXPECT_FALSE(Through("c = Reshape (a, other)\n d = Transpose <perm = [1, 0, 2]> (c)\n b = Reshape (d, three)",
                       "float[2, 3, 4] x", 17, shapes))
      << "the rows are in another order";
}

TEST(ExporterNoiseTest, X4ExpandWithMinusOne) {
  // TorchScript: -1 becomes 1 by Where; older dynamo: by Abs.
  const std::string where =
      "s = Constant <value_ints = [-1, -1, 4]> ()\n m = Constant <value_int = -1> ()\n n = Shape (s)\n "
      "o = ConstantOfShape <value = int64[1] {1}> (n)\n e = Equal (s, m)\n t = Where (e, o, s)\n b = Expand (a, t)";
  EXPECT_TRUE(Through(where, "float[b, s, 4] x"));
  EXPECT_FALSE(Through(where, "float[b, s, 1] x")) << "from 1 to 4";
  EXPECT_TRUE(Through("s = Constant <value_ints = [-1, -1, -1]> ()\n t = Abs (s)\n b = Expand (a, t)", "float[b, s, 4] x"));
  EXPECT_FALSE(Through("s = Constant <value_ints = [-1, -2, -1]> ()\n t = Abs (s)\n b = Expand (a, t)", "float[b, s, 4] x"));
}

TEST(ExporterNoiseTest, X5AndX6ShapesFromEveryKindOfPlumbing) {
  const std::string rule =
      "match { y = Relu (Reshape <allowzero = _> (x, _)) } where { shape (x) = [B, S, 64], shape (y) = [B, S, 4, 16] }";
  const auto splits = [&](const std::string& nodes, const std::string& shape, const std::string& x = "b, s, 64") {
    return static_cast<bool>(
        Try("(float[" + x +
                "] x) => (y) <int64 i0 = {0}, int64 i1 = {1}, int64[1] v0 = {0}, int64[1] v1 = {1}, "
                "int64[1] v4 = {4}, int64[1] v16 = {16}, int64[1] minus = {-1}, int64[4] fixed = {0, 0, 4, 16}, "
                "int64[4] rest = {0, -1, 4, 16}> { " +
                nodes + " h = Reshape " + shape + "\n y = Relu (h) }",
            "rule r (x) => (y) " + rule));
  };
  EXPECT_TRUE(
      splits("s = Shape (x)\n b = Gather (s, i0)\n t = Gather (s, i1)\n ub = Unsqueeze (b, v0)\n "
             "ut = Unsqueeze (t, v0)\n to = Concat <axis = 0> (ub, ut, v4, v16)\n",
             "(x, to)"));
  EXPECT_TRUE(
      splits("s = Shape (x)\n b = Gather (s, i0)\n t = Gather (s, i1)\n ub = Unsqueeze (b, v0)\n "
             "ut = Unsqueeze (t, v0)\n to = Concat <axis = 0> (ub, ut, v4, minus)\n",
             "(x, to)"));
  EXPECT_TRUE(
      splits("b = Shape <start = 0, end = 1> (x)\n t = Shape <start = 1, end = 2> (x)\n q = Squeeze (t)\n "
             "u = Unsqueeze (q, v0)\n to = Concat <axis = 0> (b, u, v4, v16)\n",
             "(x, to)"));
  EXPECT_TRUE(splits("", "(x, fixed)"));
  EXPECT_TRUE(splits("", "(x, rest)"));
  EXPECT_FALSE(
      splits("b = Shape <start = 0, end = 1> (x)\n t = Shape <start = 1, end = 2> (x)\n "
             "to = Concat <axis = 0> (t, b, v4, v16)\n",
             "(x, to)"))
      << "batch and length change places";
  // With allowzero 0 is 0: the one reading makes a copy, the other an empty tensor.
  EXPECT_TRUE(
      splits("t = Shape <start = 0, end = 1> (x)\n to = Concat <axis = 0> (t, minus, v4, v16)\n", "<allowzero = 1> (x, to)"));
  EXPECT_FALSE(splits("", "<allowzero = 1> (x, fixed)"));
}

// ScatterND over the whole of `a`, as dynamo writes an assignment to a slice: updates u are all that is left.
TEST(ExporterNoiseTest, X7ScatterThatOverwritesEverythingBetweenTransposes) {
  const auto scatter = [](const std::string& start, const std::string& last_perm) {
    return Takes("match { y = Relu (Neg (x)) }",
                 "(float[b, s, t] x, float[b, s, t] d) => (y) <int64 i0 = {0}, int64 i1 = {1}, int64[1] last = {-1}> {\n"
                 "u = Neg (x)\n"
                 "dt = Transpose <perm = [2, 1, 0]> (d)\n ut = Transpose <perm = [2, 1, 0]> (u)\n"
                 "ds = Shape (dt)\n n = Gather (ds, i0)\n r = Range (" +
                     start +
                     ", n, i1)\n k = Unsqueeze (r, last)\n"
                     "w = ScatterND (dt, k, ut)\n"
                     "wt = Transpose <perm = [2, 1, 0]> (w)\n"
                     "et = Transpose <perm = [1, 0, 2]> (d)\n vt = Transpose <perm = [1, 0, 2]> (wt)\n"
                     "es = Shape (et)\n m = Gather (es, i0)\n q = Range (i0, m, i1)\n l = Unsqueeze (q, last)\n"
                     "z = ScatterND <reduction = \"none\"> (et, l, vt)\n"
                     "c = Transpose <perm = " +
                     last_perm + "> (z)\n y = Relu (c) }",
                 18);
  };
  EXPECT_TRUE(scatter("i0", "[1, 0, 2]"));
  EXPECT_FALSE(scatter("i1", "[1, 0, 2]")) << "the first row stays";
  EXPECT_FALSE(scatter("i0", "[2, 0, 1]"));
}

bool StartsWith(const std::string& text, std::string_view prefix) {
  if (text.rfind(prefix, 0) == 0) return true;
  ADD_FAILURE() << text;
  return false;
}

// Operators of ONNX Runtime that are a construct, and that no rule takes apart: counted, with the reason.
TEST(ExporterNoiseTest, X10OperatorsThatAreLeftSaySo) {
  const auto left = [](const std::string& signature, const std::string& nodes) {
    auto model = ParseModelText("<ir_version: 8, opset_import: [\"\" : 17, \"com.microsoft\" : 1]>\ng " + signature + " { " +
                                nodes + " }");
    EXPECT_TRUE(model.ok()) << model.status().message();
    const absl::StatusOr<Report> report = ListOpportunities(model->get());
    EXPECT_TRUE(report.ok()) << report.status().message();
    std::string text;
    for (const SiteRecord& site : report->sites) text += fmt::format("{} {}: {}\n", site.state, site.kind, site.because);
    return text;
  };
  EXPECT_TRUE(StartsWith(left("(float[t, 256] x, float[256, 768] w, float[768] c, int32[b, s] o, int32[n] l) => (y)",
                              "y = com.microsoft.PackedAttention <num_heads = 4> (x, w, c, o, l)"),
                         "left attention: PackedAttention"));
  EXPECT_TRUE(
      StartsWith(left("(float[b, s, 256] x, float[256, 768] w, float[768] c, float[b, s] m, float[256, 768] gw, float[768] gc, "
                      "int32[b, s] g) => (y)",
                      "y = com.microsoft.LongformerAttention <num_heads = 4, window = 32> (x, w, c, m, gw, gc, g)"),
                 "left attention: LongformerAttention"));
  // Taken apart, and left because of what it is then: a sink.
  EXPECT_NE(left("(float[b, s, 256] q, float[b, s, 128] k, float[b, s, 128] v, float[b, 2, p, 64] pk, "
                 "float[b, 2, p, 64] pv, int32[b] sl, int32 t, float[64, 32] c, float[64, 32] d) => (y)",
                 "y, nk, nv = com.microsoft.GroupQueryAttention <num_heads = 4, kv_num_heads = 2, "
                 "do_rotary = 1, smooth_softmax = 1> (q, k, v, pk, pv, sl, t, c, d)")
                .find("(a sink)"),
            std::string::npos);
  // Not a construct: the product alone.
  EXPECT_EQ(left("(float[b, s, 256] x, float[256, 64] w) => (y)", "y = com.microsoft.FusedMatMul <alpha = 2.0> (x, w)"), "");
}

TEST(ExporterNoiseTest, X13SumIsAnAddition) {
  const std::string rule = "match { y = Relu (Add (x, 1)) }";
  EXPECT_TRUE(Takes(rule, "(float[4] x) => (y) <float c = {1}> { s = Sum (x, c)\n y = Relu (s) }"));
  EXPECT_TRUE(Takes(rule, "(float[4] x) => (y) <float c = {1}> { s = Sum (c, x)\n y = Relu (s) }"));
  EXPECT_FALSE(Takes(rule, "(float[4] x) => (y) <float c = {1}> { s = Sum (x, c, c)\n y = Relu (s) }"));
  EXPECT_FALSE(Takes(rule, "(float[4] x) => (y) <float c = {1}> { s = Max (x, c)\n y = Relu (s) }"));
}

TEST(ExporterNoiseTest, X13OneFunctionInSeveralSpellings) {
  const std::string text =
      "(float[4, 8] x) => (y) <float two = {2}, float half = {0.5}, float minus_half = {-0.5}, "
      "float one = {1}, float minus = {-1}, float three = {3}> { ";
  const auto takes = [&](const std::string& pattern, const std::string& nodes) {
    return Takes("match { y = " + pattern + " }", text + nodes + " }");
  };
  EXPECT_TRUE(takes("square (x)", "y = Pow (x, two)"));
  EXPECT_TRUE(takes("square (x)", "y = Mul (x, x)"));
  EXPECT_FALSE(takes("square (x)", "y = Pow (x, three)"));
  EXPECT_TRUE(takes("root (x)", "y = Sqrt (x)"));
  EXPECT_TRUE(takes("root (x)", "y = Pow (x, half)"));
  EXPECT_FALSE(takes("root (x)", "y = Pow (x, minus_half)"));
  EXPECT_TRUE(takes("negated (x)", "y = Neg (x)"));
  EXPECT_TRUE(takes("negated (x)", "y = Mul (minus, x)"));
  EXPECT_FALSE(takes("negated (x)", "y = Mul (one, x)"));
  for (const char* nodes : {"r = Sqrt (x)\n y = Div (x, r)", "r = Sqrt (x)\n i = Reciprocal (r)\n y = Mul (i, x)",
                            "r = Sqrt (x)\n i = Div (one, r)\n y = Mul (x, i)", "r = Pow (x, minus_half)\n y = Mul (x, r)"}) {
    EXPECT_TRUE(takes("over_root (x, x)", nodes)) << nodes;
  }
  EXPECT_FALSE(takes("over_root (x, x)", "r = Sqrt (x)\n i = Div (two, r)\n y = Mul (x, i)"));
  EXPECT_TRUE(takes("scaled (x, _f)", "y = Div (x, two)"));
  EXPECT_FALSE(takes("scaled (x, _f)", "y = Div (two, x)"));
}

// baddbmm (empty, q, k, beta = 0, alpha = s) and beta = 1 with zeros.
TEST(ExporterNoiseTest, X14BatchedAdditionOfZeros) {
  const std::string rule = "match { y = Softmax <axis = -1> (scaled? (MatMul (x, _), _f)) }";
  const auto baddbmm = [&](const std::string& nodes, const std::string& shape = "Concat <axis = 0> (h, s, t)") {
    return Takes(rule,
                 "(float[h, s, 64] x, float[h, 64, t] k) => (y) <float c = {0.125}, float beta = {0}> {\n"
                 "h = Shape <start = 0, end = 1> (x)\n s = Shape <start = 1, end = 2> (x)\n"
                 "t = Shape <start = 2, end = 3> (k)\n to = " +
                     shape +
                     "\n e = ConstantOfShape (to)\n"
                     "m = MatMul (x, k)\n a = Mul (m, c)\n " +
                     nodes + "\n y = Softmax <axis = -1> (b) }");
  };
  EXPECT_TRUE(baddbmm("z = Mul (e, beta)\n b = Add (a, z)"));
  EXPECT_TRUE(baddbmm("z = Mul (e, beta)\n b = Add (z, a)"));
  EXPECT_TRUE(baddbmm("b = Add (a, e)"));
  EXPECT_FALSE(baddbmm("z = Add (e, c)\n b = Add (a, z)")) << "no zeros";
  EXPECT_FALSE(baddbmm("b = Add (a, e)", "Concat <axis = 0> (h, h, s, t)")) << "the zeros add a dim";
}

TEST(ExporterNoiseTest, X15TheSameTablesComputedForQueryAndKey) {
  // Every use reads its own length: the lengths are one by inference, so the tables are one value.
  const std::string model =
      "(float[b, 4, s, 64] q, float[b, 2, s, 64] k, float[b, 2, t, 64] v) => (y) <float[512, 64] table = {%}, "
      "int64[1] zero = {0}, int64[1] one = {1}, int64[2] lead = {0, 1}> {\n"
      "nq = Shape <start = 2, end = 3> (q)\n nk = Shape <start = 2, end = 3> (k)\n nv = Shape <start = -2, end = -1> (v)\n"
      "cq = Slice (table, zero, nq, zero)\n ck = Slice (table, zero, nk, zero, one)\n cv = Slice (table, zero, nv, zero)\n"
      "uq = Unsqueeze (cq, lead)\n uk = Unsqueeze (ck, lead)\n uv = Unsqueeze (cv, lead)\n"
      "a = Mul (q, uq)\n c = Mul (uk, k)\n d = Mul (v, uv)\n y = Relu (a) }";
  std::string text = model;
  std::string table = "0";
  for (int i = 1; i < 512 * 64; ++i) table += ", " + std::to_string(i % 7);
  const Subject subject(text.replace(text.find('%'), 1, table));
  EXPECT_TRUE(subject.Same("nq", "nk"));
  EXPECT_FALSE(subject.Same("nq", "nv")) << "another length";
  EXPECT_FALSE(subject.Same("uq", "uv"));
  EXPECT_FALSE(subject.Same("cq", "uq"));
}

TEST(ExporterNoiseTest, X15AttributesWrittenOrLeftAtTheirDefaults) {
  const Subject subject(R"((float[2, 3, 4] x) => (y) {
    a = Softmax (x)
    b = Softmax <axis = -1> (x)
    c = Softmax <axis = 1> (x)
    d = LeakyRelu <alpha = 0.01> (x)
    e = LeakyRelu (x)
    f = LeakyRelu <alpha = 0.02> (x)
    g = ReduceMean <keepdims = 1, axes = [1]> (x)
    h = ReduceMean <axes = [1]> (x)
    i = ReduceMean <axes = [1], keepdims = 0> (x)
    j = ReduceMean <axes = [1, 2]> (x)
    y = Relu (x)
  })");
  EXPECT_TRUE(subject.Same("a", "b"));
  EXPECT_FALSE(subject.Same("a", "c"));
  EXPECT_TRUE(subject.Same("d", "e"));
  EXPECT_FALSE(subject.Same("d", "f"));
  EXPECT_TRUE(subject.Same("g", "h"));
  EXPECT_FALSE(subject.Same("g", "i"));
  EXPECT_FALSE(subject.Same("h", "j"));
}

// Section 0b, 6: a cache of its own makes a Concat of one, and the And chain starts from a constant true.
TEST(ExporterNoiseTest, SeedsOfChainsOfAndAreLookedThrough) {
  const std::string seeded = "e = Constant <value = int64[0] {}> ()\n t = ConstantOfShape <value = bool[1] {1}> (e)\n ";
  EXPECT_TRUE(Takes("match { y = Not (Less (x, _)) }",
                    "(float[n] x, float[n] z) => (y) { " + seeded + "l = Less (x, z)\n a = And (t, l)\n y = Not (a) }"));
  EXPECT_FALSE(Takes("match { y = Not (Less (x, _)) }",
                     "(float[n] x, float[n] z) => (y) { " + seeded + "l = Less (x, z)\n a = Or (t, l)\n y = Not (a) }"));
  EXPECT_FALSE(Takes("match { y = Not (Less (x, _)) }",
                     "(float[n] x, float[n] z, bool t) => (y) { l = Less (x, z)\n a = And (t, l)\n y = Not (a) }"));
}

TEST(ExporterNoiseTest, C7CastsThatLoseNothing) {
  const auto back = [](const std::string& type, int there, int here) {
    return Takes("match { y = Relu (Neg (x)) }", "(" + type +
                                                     "[4] x) => (y) { a = Neg (x)\n c = Cast <to = " + std::to_string(there) +
                                                     "> (a)\n b = Cast <to = " + std::to_string(here) + "> (c)\n y = Relu (b) }");
  };
  EXPECT_TRUE(back("float16", 1, 10));
  EXPECT_TRUE(back("bfloat16", 1, 16));
  EXPECT_TRUE(back("float", 11, 1));
  EXPECT_FALSE(back("float", 10, 1));
  EXPECT_FALSE(back("float16", 16, 10)) << "bfloat16 has fewer digits";
  EXPECT_FALSE(back("float16", 1, 16));
  EXPECT_FALSE(back("float", 6, 1)) << "int32 truncates";
  EXPECT_FALSE(Takes("match { y = Relu (Neg (x)) }",
                     "(float16[4] x) => (y) { a = Neg (x)\n c = Cast <to = 1> (a)\n d = Exp (c)\n "
                     "b = Cast <to = 10> (d)\n y = Relu (b) }"));
}

}  // namespace
}  // namespace ascend_fuse
