// Inference over small graphs in ONNX text: one test for every kind of knowledge that the passes rely on.
#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "fmt/format.h"
#include "gtest/gtest.h"
#include "ir/infer/facts.h"
#include "ir/rewriter.h"
#include "tests/unit/inferred.h"

namespace ascend_fuse {
namespace {

using testing::Inferred;

TEST(InferTest, HeadSplitOfTorchScript) {
  const Inferred m(R"(g (float[batch, seq, 64] x) => (y) {
    zero = Constant <value_int = 0> ()
    one = Constant <value_int = 1> ()
    s = Shape (x)
    b = Gather (s, zero)
    t = Gather (s, one)
    axes = Constant <value_ints = [0]> ()
    b1 = Unsqueeze (b, axes)
    t1 = Unsqueeze (t, axes)
    minus = Constant <value_ints = [-1]> ()
    d = Constant <value_ints = [16]> ()
    to = Concat <axis = 0> (b1, t1, minus, d)
    r = Reshape (x, to)
    h = Transpose <perm = [0, 2, 1, 3]> (r)
    k = Transpose <perm = [0, 2, 3, 1]> (r)
    scores = MatMul (h, k)
    p = Softmax <axis = -1> (scores)
    o = MatMul (p, h)
    back = Transpose <perm = [0, 2, 1, 3]> (o)
    shape = Constant <value_ints = [0, 0, -1]> ()
    y = Reshape (back, shape)
  })");
  EXPECT_EQ(m.Elements("to"), "batch, seq, -1, 16");
  EXPECT_EQ(m["r"], "float[batch, seq, 4, 16]");
  EXPECT_EQ(m["scores"], "float[batch, 4, seq, seq]");
  EXPECT_EQ(m["y"], "float[batch, seq, 64]");
}

// Who looks at a dim as it stands, without the table, sees the number too.
TEST(InferTest, WhatIsLearntOfADimIsWrittenIntoEarlierFacts) {
  const Inferred m(R"(g (float[2, n] x, float[4, 3] w) => (y) {
    r = Relu (x)
    s = Shape (r)
    y = MatMul (r, w)
  })");
  ASSERT_EQ(m["r"], "float[2, 4]");
  EXPECT_TRUE(m.fact("r").shape[1].is(4));
  ASSERT_EQ(m.Elements("s"), "2, 4");
  EXPECT_TRUE(m.fact("s").elements->integers[1].is(4));
  EXPECT_EQ(m.facts().OriginOf(m.Find("r")), Origin::kUnified);
}

TEST(InferTest, WhatIsLearntOfADimLetsEarlierNodesComputeMore) {
  const Inferred m(R"(g (float[2, n] x, float[4, 3] w) => (y, p) {
    s = Shape <start = 1, end = 2> (x)
    limit = Squeeze (s)
    zero = Constant <value_int = 0> ()
    one = Constant <value_int = 1> ()
    p = Range (zero, limit, one)
    y = MatMul (x, w)
  })");
  EXPECT_EQ(m.Elements("p"), "0, 1, 2, 3");
}

TEST(InferTest, ExpandWithMinusOne) {
  const Inferred m(R"(g (float[batch, 1, 1, seq] x, float[batch, n] like) => (y) {
    s = Shape (like)
    m1 = Constant <value_ints = [-1]> ()
    one = Constant <value_ints = [1]> ()
    want = Concat <axis = 0> (s, m1, m1)
    n = Shape (want)
    ones = ConstantOfShape <value = int64[1] {1}> (n)
    minus = Constant <value_int = -1> ()
    all = Mul (ones, minus)
    is = Equal (want, all)
    to = Where (is, ones, want)
    y = Expand (x, to)
  })");
  EXPECT_EQ(m.Elements("is"), "0, 0, 1, 1");
  EXPECT_EQ(m.Elements("to"), "batch, n, 1, 1");
  EXPECT_EQ(m["y"], "float[batch, n, 1, seq]");
}

TEST(InferTest, ScaleOfSdpaIsANumber) {
  const Inferred m(R"(g (float[batch, 4, seq, 64] q) => (y) {
    s = Shape (q)
    i = Constant <value_int = -1> ()
    d = Gather (s, i)
    f = Cast <to = 1> (d)
    r = Sqrt (f)
    one = Constant <value_float = 1.0> ()
    inv = Div (one, r)
    scale = Sqrt (inv)
    half = Cast <to = 10> (scale)
    y = Mul (q, scale)
  })");
  EXPECT_EQ(m.Elements("r"), "8");
  EXPECT_DOUBLE_EQ(m.fact("scale").splat, static_cast<double>(std::sqrt(0.125F)));
  EXPECT_DOUBLE_EQ(m.fact("half").splat, 0.353515625);
  EXPECT_EQ(m["y"], "float[batch, 4, seq, 64]");
}

TEST(InferTest, FloatsOfExpressionsAreNotKnown) {
  const Inferred m(R"(g (float[batch, seq] x) => (f) {
    s = Shape (x)
    f = Cast <to = 1> (s)
  })");
  EXPECT_EQ(m["f"], "float[2]");
  EXPECT_EQ(m.Elements("f"), "-");
}

TEST(InferTest, LargestOfIntegersInFloatingPoint) {
  const Inferred m(R"(g (float[batch, seq, 64] x) => (y)
    <float[4] least = {1e9, -1e9, 1e9, 1e9}, int32[1] zero = {0}, int64[1] first = {1}, int64[1] second = {2},
     int32[4] begin = {0, 0, 0, 0}, int32 most = {1000000000}, int32 low = {-1000000000}, bool up = {0}, float half = {0.5}> {
    s = Shape (x)
    n = Slice (s, first, second)
    i = Cast <to = 6> (n)
    ends = Concat <axis = 0> (zero, i, zero, zero)
    f = Cast <to = 1> (ends)
    m = Max (f, least)
    c = Cast <to = 6> (m)
    e = Equal (c, most)
    a = And (e, up)
    y = Where (a, low, c)
    h = Max (f, half)
    other = Cast <to = 6> (h)
  })");
  EXPECT_EQ(m.Elements("c"), "1000000000, seq, 1000000000, 1000000000");
  EXPECT_EQ(m.Elements("y"), "1000000000, seq, 1000000000, 1000000000");
  EXPECT_EQ(m.Elements("other"), "-");
}

TEST(InferTest, ProductWithItsBatchAfterTheFirstDim) {
  const Inferred m(R"(g (float[s, b, h, k] x, float[n, b, h, k] w) => (y) {
    y = com.microsoft.FusedMatMul <transBatchA = 1, transB = 1, transBatchB = 1> (x, w)
  })");
  EXPECT_EQ(m["y"], "float[b, h, s, n]");
}

TEST(InferTest, PastKeysAndValuesAreUnified) {
  const Inferred m(R"(g (float[b, 2, s, 16] q, float[b, 2, s15, 16] past_k, float[b, 2, s89, 16] past_v,
                         float[b, 2, s, 16] k, float[b, 2, s, 16] v) => (o) {
    kk = Concat <axis = 2> (past_k, k)
    vv = Concat <axis = -2> (past_v, v)
    kt = Transpose <perm = [0, 1, 3, 2]> (kk)
    scores = MatMul (q, kt)
    p = Softmax <axis = -1> (scores)
    o = MatMul (p, vv)
  })");
  EXPECT_EQ(m["scores"], "float[b, 2, s, s + s15]");
  EXPECT_EQ(m["vv"], "float[b, 2, s + s15, 16]");
  EXPECT_EQ(m["past_v"], "float[b, 2, s15, 16]");
}

// Exporters write wrong names on outputs, and no runtime checks them: between dims that are known they are labels.
TEST(InferTest, NamesOfADeclaredOutputProveNothingOfKnownDims) {
  const Inferred m(
      R"(g (int64[batch, total] mask, float[batch, 2, past, 16] past_k, float[batch, 2, seq, 16] k)
                      => (float[batch, 2, total, 16] present) {
    present = Concat <axis = 2> (past_k, k)
  })");
  EXPECT_EQ(m["mask"], "int64[batch, total]");
  EXPECT_EQ(m["present"], "float[batch, 2, past + seq, 16]");
}

TEST(InferTest, ADeclaredOutputNamesWhatIsNotKnown) {
  const Inferred m("g (float[batch, 4] x) => (int64[2, count] y) { y = NonZero (x) }");
  EXPECT_EQ(m["y"], "int64[2, count]");
}

TEST(InferTest, DimParamsThatAreExpressions) {
  const Inferred m(R"(g (float[b, "s15 + s70"] x, float[b, s15] past, float[b, s70] new) => (y) {
    c = Concat <axis = 1> (past, new)
    y = Add (x, c)
  })");
  EXPECT_EQ(m["c"], "float[b, s15 + s70]");
  EXPECT_EQ(m["y"], "float[b, s15 + s70]");
}

TEST(InferTest, ADeclarationThatContradictsIsReportedNotBelieved) {
  Inferred m(R"(g (float[2, 3] x) => (float[2, 4] y, float[2] z) {
    y = Relu (x)
    z = Neg (x)
  })");
  EXPECT_EQ(m["y"], "float[2, 3]");
  EXPECT_EQ(m["z"], "float[2, 3]");
  ASSERT_EQ(m.facts().contradictions().size(), 2U);
  EXPECT_EQ(m.facts().contradictions()[0].value, "y");
  EXPECT_EQ(m.facts().contradictions()[0].declared, "float[2, 4]");
  EXPECT_EQ(m.facts().contradictions()[0].computed, "float[2, 3]");
}

TEST(InferTest, ANumberOfOneTraceDoesNotBindAnInputSymbol) {
  const Inferred m(R"(g (float[batch, 3] x) => (float[1, 3] y) {
    y = Relu (x)
  })");
  EXPECT_EQ(m["y"], "float[batch, 3]");
  EXPECT_EQ(m["x"], "float[batch, 3]");
}

TEST(InferTest, UnknownOperatorsKeepTheirDeclarations) {
  const Inferred m(R"(g (float[n, 3] x) => (w) <float[n, 7] y> {
    y = my.domain.Thing (x)
    z = my.domain.Thing (x)
    w = Relu (y)
    v = Relu (z)
  })");
  EXPECT_EQ(m["y"], "float[n, 7]");
  EXPECT_EQ(m["w"], "float[n, 7]");
  EXPECT_EQ(m["z"], "?[...]");
  EXPECT_EQ(m["v"], "?[...]");
}

TEST(InferTest, BroadcastProvesNothingButNumbersDecide) {
  Inferred m(R"(g (float[a, 1, 8] x, float[b, c, d] y) => (z) {
    z = Add (x, y)
  })");
  EXPECT_EQ(m["z"], "float[broadcast(a, b), c, 8]");
  EXPECT_FALSE(m.facts().dims().Equal(m.fact("x").shape[0], m.fact("y").shape[0]));
}

TEST(InferTest, BoundDims) {
  InferOptions options;
  options.dims = {{"batch", {1, 1}}, {"seq", {1, 2048}}};
  Inferred m("g (float[batch, seq] x) => (y) { y = Relu (x) }", options);
  EXPECT_EQ(m["y"], "float[1, seq]");
  EXPECT_EQ(m.facts().dims().UpperBound(m.fact("y").shape[1]), 2048);
}

TEST(InferTest, Reshapes) {
  const Inferred m(R"(g (float[b, s, 64] x, int64[2] unknown) => (y) {
    c1 = Constant <value_ints = [0, 0, 4, 16]> ()
    copied = Reshape (x, c1)
    c2 = Constant <value_ints = [-1, 64]> ()
    flat = Reshape (x, c2)
    c3 = Constant <value_ints = [-1, 3]> ()
    inexact = Reshape (x, c3)
    ranked = Reshape (x, unknown)
    sh = Shape (ranked)
    empty = Constant <value_ints = [0]> ()
    none = Reshape <allowzero = 1> (x, empty)
    y = Flatten <axis = 2> (x)
  })");
  EXPECT_EQ(m["copied"], "float[b, s, 4, 16]");
  EXPECT_EQ(m["flat"], "float[b*s, 64]");
  EXPECT_EQ(m["inexact"], "float[21*b*s + floor((b*s)/3), 3]");
  EXPECT_EQ(m["ranked"], "float[ranked_d0, ranked_d1]");
  EXPECT_EQ(m["none"], "float[0]");
  EXPECT_EQ(m["y"], "float[b*s, 64]");
}

TEST(InferTest, AnUnknownEntryOfAReshapeIsSolved) {
  const Inferred m(R"(g (float[b, s, 64] x, int64[1] n) => (y) {
    sixteen = Constant <value_ints = [16]> ()
    sh = Shape (x)
    zero = Constant <value_ints = [0]> ()
    two = Constant <value_ints = [2]> ()
    bs = Slice (sh, zero, two)
    to = Concat <axis = 0> (bs, n, sixteen)
    y = Reshape (x, to)
  })");
  EXPECT_EQ(m.Elements("to"), "b, s, ?, 16");
  EXPECT_EQ(m["y"], "float[b, s, 4, 16]");
}

TEST(InferTest, Slices) {
  const Inferred m(R"(g (float[b, s, 64] x, float[1, 512, 64] table) => (y) {
    zero = Constant <value_ints = [0]> ()
    one = Constant <value_ints = [1]> ()
    two = Constant <value_ints = [2]> ()
    minus = Constant <value_ints = [-1]> ()
    half = Constant <value_ints = [32]> ()
    max = Constant <value_ints = [9223372036854775807]> ()
    first = Slice (x, zero, half, two)
    second = Slice (x, half, max, minus)
    odd = Slice (x, one, max, two, two)
    last = Slice (x, minus, max, one)
    sh = Shape <start = 1, end = 2> (x)
    rows = Slice (table, zero, sh, one)
    y = Add (x, rows)
    part = Slice (sh, zero, one)
    back = Slice (x, minus, max, two, minus)
  })");
  EXPECT_EQ(m["first"], "float[b, s, 32]");
  EXPECT_EQ(m["second"], "float[b, s, 32]");
  EXPECT_EQ(m["odd"], "float[b, s, 32]");
  EXPECT_EQ(m["last"], "float[b, Min(1, s), 64]");
  EXPECT_EQ(m["y"], "float[b, s, 64]");
  EXPECT_EQ(m["rows"], "float[1, s, 64]");
  EXPECT_EQ(m.Elements("part"), "s");
}

TEST(InferTest, RangeAndFills) {
  const Inferred m(R"(g (float[b, past] p, float[b, seq] x) => (r) {
    i = Constant <value_int = 1> ()
    sp = Shape (p)
    sx = Shape (x)
    n = Gather (sp, i)
    k = Gather (sx, i)
    end = Add (n, k)
    r = Range (n, end, i)
    fill = ConstantOfShape <value = float[1] {-1.5}> (sx)
    neg = Neg (fill)
    three = Constant <value_int = 3> ()
    zero = Constant <value_int = 0> ()
    small = Range (zero, three, i)
    twice = Add (small, small)
  })");
  EXPECT_EQ(m["r"], "int64[seq]");
  EXPECT_EQ(m["fill"], "float[b, seq]");
  EXPECT_TRUE(m.fact("neg").is_splat);
  EXPECT_EQ(m.fact("neg").splat, 1.5);
  EXPECT_EQ(m.Elements("twice"), "0, 2, 4");
}

TEST(InferTest, GatherConcatSplitElements) {
  const Inferred m(R"(g (float[b, s] x) => (y) {
    c = Constant <value = int64[2, 3] {1, 2, 3, 4, 5, 6}> ()
    i = Constant <value_ints = [2, -3]> ()
    g1 = Gather <axis = 1> (c, i)
    t = Transpose (c)
    one = Constant <value_int = 1> ()
    row = Gather (c, one)
    cc = Concat <axis = 1> (c, g1)
    a, bb = Split <axis = 0, num_outputs = 2> (c)
    sh = Shape (x)
    u, v = Split <axis = 0, num_outputs = 2> (sh)
    y = Neg (x)
    q, w = Split <axis = 1, num_outputs = 2> (x)
    prod = ReduceProd <keepdims = 0> (sh)
  })");
  EXPECT_EQ(m.Elements("g1"), "3, 1, 6, 4");
  EXPECT_EQ(m.Elements("t"), "1, 4, 2, 5, 3, 6");
  EXPECT_EQ(m.Elements("row"), "4, 5, 6");
  EXPECT_EQ(m.Elements("cc"), "1, 2, 3, 3, 1, 4, 5, 6, 6, 4");
  EXPECT_EQ(m.Elements("bb"), "4, 5, 6");
  EXPECT_EQ(m.Elements("u"), "b");
  EXPECT_EQ(m.Elements("v"), "s");
  EXPECT_EQ(m.Elements("prod"), "b*s");
  EXPECT_EQ(m["w"], "float[b, floor(s/2)]");
}

TEST(InferTest, IntegerDivisionRoundsTowardZero) {
  const Inferred m(R"(g (float[b, s] x) => (y) {
    a = Constant <value_ints = [-7, 7]> ()
    two = Constant <value_int = 2> ()
    d = Div (a, two)
    r = Mod (a, two)
    f = Mod <fmod = 1> (a, two)
    sh = Shape (x)
    half = Div (sh, two)
    y = Neg (x)
  })");
  EXPECT_EQ(m.Elements("d"), "-3, 3");
  EXPECT_EQ(m.Elements("r"), "1, 1");
  EXPECT_EQ(m.Elements("half"), "floor(b/2), floor(s/2)");
}

TEST(InferTest, NpuAndOwnOperators) {
  const Inferred m(R"(g (float16[b, s, 64] x, float16[b, s, 64] x2, float16[64] gamma, float16[b, 4, s, 64] q,
                         float16[b, 2, t, 32] v) => (y) {
    y, rstd = npu.NPURmsNorm (x, gamma)
    z, rstd2, sum = npu.NPUAddRmsNorm (x, x2, gamma)
    ge, gate = npu.NPUGeglu <dim = -1> (x)
    at = npu.NPUPromptFlashAttention <num_heads = 4> (q, v, v)
    gl = ascend_fuse.Glu (x, x2)
    qg = ascend_fuse.QuickGelu (x)
    rm = npu.NPURotaryMul (q, q, q)
  })");
  EXPECT_EQ(m["rstd"], "float[b, s, 1]");
  EXPECT_EQ(m["sum"], "float16[b, s, 64]");
  EXPECT_EQ(m["ge"], "float16[b, s, 32]");
  EXPECT_EQ(m["at"], "float16[b, 4, s, 32]");
  EXPECT_EQ(m["gl"], "float16[b, s, 64]");
  EXPECT_EQ(m["qg"], "float16[b, s, 64]");
  EXPECT_EQ(m["rm"], "float16[b, 4, s, 64]");
}

// ONNX Runtime runs no other.
TEST(InferTest, AMultiHeadAttentionHasOneBatch) {
  const Inferred m(R"(g (float[b, s, 64] q, float[kb, t, 64] k, float[vb, t, 64] v, int32[mb, t2] mask) => (y) {
    y = com.microsoft.MultiHeadAttention <num_heads = 4> (q, k, v, , mask)
    kk = Identity (k)
    mm = Identity (mask)
  })");
  EXPECT_EQ(m["y"], "float[b, s, 64]");
  EXPECT_EQ(m["kk"], "float[b, t, 64]");
  EXPECT_EQ(m["mm"], "int32[b, t]");
}

TEST(InferTest, KeysOfBeforeHaveTheBatchOfTheQuery) {
  const Inferred m(
      R"(g (float[b, s, 64] q, float[b, t, 64] k, float[b, t, 64] v, float[pb, n, p, 16] pk, float[pb2, 4, p2, 16] pv) => (y) {
    y, kk, vv = com.microsoft.MultiHeadAttention <num_heads = 4> (q, k, v, , , , pk, pv)
    of_key = Identity (pk)
    of_value = Identity (pv)
  })");
  EXPECT_EQ(m["of_key"], "float[b, 4, p, 16]");
  EXPECT_EQ(m["of_value"], "float[b, 4, p, 16]");
}

TEST(InferTest, APackedAttentionHasOneBatch) {
  const Inferred m(
      R"(g (float[b, 4, 64] x, float[64, 192] w, float[192] bias, int32[mb, 4] mask, int32[ob, t] one, float[2, pb, 4, p, 16] past)
      => (y) {
    y = com.microsoft.Attention <num_heads = 4> (x, w, bias, mask)
    z = com.microsoft.Attention <num_heads = 4> (x, w, bias, one, past)
    mm = Identity (mask)
    oo = Identity (one)
    pp = Identity (past)
  })");
  EXPECT_EQ(m["mm"], "int32[b, 4]");
  EXPECT_EQ(m["oo"], "int32[ob, t]");  // of one key it is not looked at
  EXPECT_EQ(m["pp"], "float[2, b, 4, p, 16]");
}

TEST(InferTest, Opset23) {
  const Inferred m(R"(g (float[b, s, 128] q, float[b, s, 64] k, float[b, s, 64] v, float[b, 2, p, 32] pk,
                         float[b, 2, p, 32] pv) => (y) {
    y, kk, vv = Attention <q_num_heads = 4, kv_num_heads = 2> (q, k, v, , pk, pv)
    r = RMSNormalization (q, k)
  })",
                   {}, 23);
  EXPECT_EQ(m["y"], "float[b, s, 128]");
  EXPECT_EQ(m["kk"], "float[b, 2, s + p, 32]");
  EXPECT_EQ(m["r"], "float[b, s, 128]");
}

TEST(InferTest, WhatIsAsLongAsTheFramesOfAConvolution) {
  const std::string frames = "floor((t + 2)/4) - 2";
  const Inferred m(R"(g (float[batch, 8, t] x, float[16, 8, 10] w, float[1, 16, r] table) => (y) {
    frames = Conv <strides = [4]> (x, w)
    s = Shape (frames)
    two = Constant <value_int = 2> ()
    n = Gather (s, two)
    zero = Constant <value_int = 0> ()
    one = Constant <value_int = 1> ()
    counted = Range (zero, n, one)
    first = Constant <value_ints = [0]> ()
    last = Unsqueeze (n, first)
    axis = Constant <value_ints = [2]> ()
    row = Unsqueeze (counted, first)
    rows = Unsqueeze (row, first)
    cut = Slice (rows, first, last, axis)
    cast = Cast <to = 1> (cut)
    y = Add (frames, cast)
  })");
  EXPECT_EQ(m["frames"], "float[batch, 16, " + frames + "]");
  EXPECT_EQ(m["counted"], "int64[" + frames + "]");
  EXPECT_EQ(m["cut"], "int64[1, 1, " + frames + "]");
  EXPECT_EQ(m["y"], m["frames"]);
}

TEST(InferTest, FramesOfAConvolutionThatMayNotRun) {
  const Inferred m(R"(g (bool b, float[batch, 8, t] x, float[16, 8, 10] w) => (y, counted) {
    y = If <then_branch = yes () => (frames) { frames = Conv <strides = [4]> (x, w) },
            else_branch = no () => (same) { same = Identity (x) }> (b)
    s = Shape (x)
    two = Constant <value_int = 2> ()
    n = Gather (s, two)
    four = Constant <value_int = 4> ()
    more = Add (n, two)
    quarter = Div (more, four)
    length = Sub (quarter, two)
    zero = Constant <value_int = 0> ()
    one = Constant <value_int = 1> ()
    counted = Range (zero, length, one)
  })");
  EXPECT_EQ(m["counted"], "int64[Max(0, floor((t + 2)/4) - 2)]");
}

TEST(InferTest, ConvolutionAndPooling) {
  const Inferred m(R"(g (float[b, 3, h, 224] x, float[768, 3, 16, 16] w, float[8, 3, 3, 3] w3) => (y) {
    y = Conv <strides = [16, 16], kernel_shape = [16, 16]> (x, w)
    same = Conv <pads = [1, 1, 1, 1]> (x, w3)
    pool = MaxPool <kernel_shape = [2, 2], strides = [2, 2]> (x)
    mean = GlobalAveragePool (x)
  })");
  EXPECT_EQ(m["y"], "float[b, 768, floor(h/16), 14]");
  EXPECT_EQ(m["same"], "float[b, 8, h, 224]");
  EXPECT_EQ(m["pool"], "float[b, 3, floor(h/2), 112]");
  EXPECT_EQ(m["mean"], "float[b, 3, 1, 1]");
}

TEST(InferTest, Einsum) {
  const Inferred m(R"(g (float[b, q, n, d] x, float[b, k, n, d] y) => (s) {
    s = Einsum <equation = "bqnd,bknd->bnqk"> (x, y)
    t = Einsum <equation = "...ij,...jk->...ik"> (x, s)
  })");
  EXPECT_EQ(m["s"], "float[b, n, q, k]");
}

TEST(InferTest, HalfPrecisionIsRounded) {
  const Inferred m(R"(g (float[1] x) => (y) {
    third = Constant <value_float = 0.3333333> ()
    half = Cast <to = 10> (third)
    brain = Cast <to = 16> (third)
    big = Constant <value_float = 1e6> ()
    inf = Cast <to = 10> (big)
    y = Neg (x)
  })");
  EXPECT_EQ(m.fact("half").splat, 0.333251953125);
  EXPECT_EQ(m.fact("brain").splat, 0.333984375);
  EXPECT_TRUE(std::isinf(m.fact("inf").splat));
}

TEST(InferTest, NewNodes) {
  Inferred m("g (float[b, s, 64] x) => (y) { y = Relu (x) }");
  Rewriter rewriter(&m.model());
  const Node* relu = m.model().graph().nodes()[0];
  NewNode shape;
  shape.op_type = "Shape";
  shape.inputs = {relu->input(0)};
  const Node* node = rewriter.Insert(shape, 1, relu->graph, "shape_of_x");
  InferNode(*node, &m.facts());
  EXPECT_EQ(m.facts().Describe(node->output()), "int64[3]");
  EXPECT_EQ(m.Elements("shape_of_x"), "b, s, 64");
}

TEST(InferTest, HugeNumbersDoNoHarm) {
  const Inferred m(R"(g (float[b] x, float[9223372036854775807, 2147483648] big,
    float[2147483647, 2147483647, 2147483647] large) => (y) {
    c = Constant <value_ints = [9223372036854775807, -9223372036854775808, 2]> ()
    count = Size (large)
    flat = Flatten <axis = 2> (large)
    minus_one = Constant <value_ints = [-1]> ()
    all = Reshape (large, minus_one)
    joined = Concat <axis = 0> (large, large)
    twice = Add (c, c)
    square = Mul (c, c)
    neg = Neg (c)
    q = Div (c, neg)
    f = ConstantOfShape (c)
    t = Tile (big, c)
    e = Expand (x, c)
    r = Reshape (big, c)
    sz = Size (big)
    one = Constant <value_int = 1> ()
    mx = Constant <value_int = 9223372036854775807> ()
    rg = Range (one, mx, one)
    down = Range (mx, one, mx)
    zero = Div (one, one)
    y = Neg (x)
    un = Unsqueeze (x, c)
    tr = Transpose <perm = [5]> (x)
    s = Slice (big, c, c, c, c)
    p = Pad (x, c)
    g2 = Gather <axis = 77> (x, c)
    sp, sq = Split <axis = 0> (x, c)
    mp = MaxPool <kernel_shape = [9223372036854775807]> (x)
  })");
  EXPECT_EQ(m["y"], "float[b]");
  EXPECT_EQ(m.Elements("twice"), "?, ?, 4");
  EXPECT_EQ(m["rg"], "int64[rg_d0]") << "no tensor has so many";
  EXPECT_EQ(m["big"], "float[big_d0, big_d1]");
  EXPECT_EQ(m["large"], "float[2147483647, 2147483647, 2147483647]");
  EXPECT_EQ(m["flat"], "float[flat_d0, 2147483647]");
}

TEST(InferTest, APaddedVectorOfDims) {
  Inferred m(R"(g (float[n, 4] x) => (y)
    <int64[2] front = {1, 0}, int64[2] cut = {-1, 1}, int64 fill = {7}> {
    s = Shape (x)
    y = Pad (s, front)
    z = Pad (s, cut, fill)
    w = Pad <mode = "edge"> (s, front)
  })");
  EXPECT_EQ(m.Elements("y"), "0, n, 4");
  EXPECT_EQ(m.Elements("z"), "4, 7");
  EXPECT_EQ(m.Elements("w"), "-");
}

TEST(InferTest, OriginsAndTheSentenceOfAContradiction) {
  Inferred m(R"(g (float[n, 4] x, float[k, 8] w, float[m, 3] z) => (y)
  <float[n, 5] late, float[2, 2] vague> {
    a = Relu (x)
    u = Transpose (w)
    b = MatMul (u, z)
    late = Add (a, a)
    vague = Unheard (a)
    y = MatMul (late, z)
  })");
  const auto origin = [&m](std::string_view name) { return m.facts().OriginOf(m.Find(name)); };
  EXPECT_EQ(origin("x"), Origin::kInput);
  EXPECT_EQ(origin("a"), Origin::kOperator);
  EXPECT_EQ(origin("vague"), Origin::kDeclared);
  EXPECT_EQ(m.facts().ExplainOrigin(m.Find("a")), "computed by Relu ''");
  ASSERT_FALSE(m.facts().contradictions().empty());
  EXPECT_EQ(m.facts().contradictions()[0].sentence,
            "'late' is declared float[n, 5] in value_info, but Add '' computes float[n, 4]: 'a' is float[n, 4] "
            "(computed by Relu ''), 'a' is float[n, 4] (computed by Relu '')");
}

TEST(InferTest, DimsFoundEqualSayWhereTheyCameFrom) {
  Inferred m(R"(g (float[n, k] x, float[l, 8] w, float[3, 4] p, float[5, 6] q) => (y, z) {
    a = Relu (w)
    y = MatMul (x, a)
    z = MatMul (p, q)
  })");
  EXPECT_EQ(m.facts().OriginOf(m.Find("a")), Origin::kUnified);
  ASSERT_EQ(m.facts().contradictions().size(), 1U);
  EXPECT_EQ(m.facts().contradictions()[0].sentence,
            "MatMul '' needs 4 and 5 to be equal: 'p' is float[3, 4] (declared for a graph input), 'q' is "
            "float[5, 6] "
            "(declared for a graph input)");
}

}  // namespace
}  // namespace ascend_fuse
