"""One small model for each form that an adapter writes anew, beside the nearest one that it leaves alone.

What is written computes the same in ONNX Runtime, `check` finds the form no more, and a second run changes nothing. The
nearest model is not touched by a byte.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import onnx
import onnx.checker
import onnx.parser
import onnx.reference
import pytest
from conftest import run, run_ok

from ascend_fuse.session import plain_session

HEAD = '<ir_version: {ir}, opset_import: ["" : {opset}{more}]>\n'
TYPES = {onnx.TensorProto.FLOAT: np.float32, onnx.TensorProto.INT64: np.int64, onnx.TensorProto.INT32: np.int32,
         onnx.TensorProto.INT16: np.int16, onnx.TensorProto.INT8: np.int8, onnx.TensorProto.FLOAT16: np.float16, onnx.TensorProto.BOOL: np.bool_,
         onnx.TensorProto.DOUBLE: np.float64}


@dataclass
class Case:
    """A graph with the form, and one that nearly has it; code and operator of the record of the report."""

    code: str
    op: str
    opset: int
    text: str
    near: str = ""  # none where every form of the operator is written anew
    flags: tuple[str, ...] = ()
    dims: dict[str, int] = field(default_factory=dict)
    highest: dict[str, int | tuple[int, int]] = field(default_factory=dict)  # of integer inputs; with the lowest
    runtime: str = ""  # another import
    replaces: tuple[tuple[str, str], ...] = ()  # in node names and values, what text cannot say
    check: bool = True


OLD = ("--target", "ascend310b")  # no node is emitted for it
ROTARY = "float[2, 3, 5, 8] x, float[7, 4] c, float[7, 4] s, int64[2, 5] p"
CASES = [
    Case("no-parser", "RotaryEmbedding", 23, f"({ROTARY}) => (float[2, 3, 5, 8] y) {{ y = RotaryEmbedding (x, c, s, p) }}",
         flags=OLD, highest={"p": 7}),
    Case("no-parser", "RotaryEmbedding", 23,
         f"({ROTARY}) => (float[2, 3, 5, 8] y) {{ y = RotaryEmbedding <interleaved = 1> (x, c, s, p) }}",
         flags=OLD, highest={"p": 7}),
    Case("no-parser", "RotaryEmbedding", 23,
         "(float[B, S, 24] x, float[B, S, 2] c, float[B, S, 2] s) => (float[B, S, 24] y) "
         "{ y = RotaryEmbedding <num_heads = 3, rotary_embedding_dim = 4> (x, c, s) }", flags=OLD, dims={"B": 2, "S": 5}),
    Case("no-parser", "GroupNormalization", 21,
         "(float[N, 6, 4, 5] x, float[6] g, float[6] b) => (float[N, 6, 4, 5] y) "
         "{ y = GroupNormalization <num_groups = 3, epsilon = 0.01> (x, g, b) }", flags=OLD, dims={"N": 2}),
    Case("no-parser", "GroupNormalization", 21,
         "(float[2, 6, 7] x, float[6] g, float[6] b) => (float[2, 6, 7] y) "
         "{ y = GroupNormalization <num_groups = 2> (x, g, b) }", flags=OLD),
    Case("no-parser", "CenterCropPad", 18, "(float[10, 7, 3] x) => (float[7, 10, 3] y) <int64[3] n = {7, 10, 3}> "
         "{ y = CenterCropPad (x, n) }"),
    Case("no-parser", "CenterCropPad", 18, "(float[8, 7, 4] x) => (float[8, 4, 7] y) <int64[2] n = {7, 4}> "
         "{ y = CenterCropPad <axes = [-1, 1]> (x, n) }"),
    Case("mod-sign", "Mod", 17, "(int16[2, 4] x) => (int16[2, 4] y) <int16 d = {3}> { y = Mod (x, d) }",
         "(int16[2, 4] x) => (int16[2, 4] y) <int16 d = {3}> { y = Mod <fmod = 1> (x, d) }"),
    Case("mod-sign", "Mod", 17, "(int8[2, 4] x) => (int8[2, 4] y) <int8 d = {-7}> { y = Mod (x, d) }"),
    Case("mod-sign", "Mod", 17, "(int32[2, 4] x) => (int32[2, 4] y) <int32 d = {2147483647}> { y = Mod (x, d) }",
         highest={"x": (-(2**31), 2**31 - 1)}),
    Case("mod-sign", "Mod", 17, "(int64[9, 4] x, int64[4] z) => (int64[9, 4] y) <int64 d = {4611686018427387905}> "
         "{ y = Mod (x, d) }", highest={"x": (-(2**63), 2**63 - 1), "z": 2}),
    Case("reduce-axes-input", "ReduceMean", 18,
         "(float[2, A] x) => (float[B, C] y) <int64[0] a = {}> { y = ReduceMean <noop_with_empty_axes = 1> (x, a) }",
         "(float[2, A] x) => (float[B, C] y) { y = ReduceMean (x) }", dims={"A": 4}),
    Case("reduce-axes-input", "ReduceMean", 18,
         "(double[3, A] x, int64[1] a) => (double[B, C] y) { y = ReduceMean (x, a) }", dims={"A": 5}, highest={"a": 2}),
    Case("reduce-without-axes", "ReduceMean", 18, "(float[2, A] x) => (float[B, C] y) { y = ReduceMean <noop_with_empty_axes = 1> (x) }",
         flags=("--cann", "9.1"), dims={"A": 4}),
    *(Case("no-parser", op, 18, f"(float[2, A] x) => (float[B, C] y) <int64[0] a = {{}}> {{ y = {op} <noop_with_empty_axes = 1> (x{a}) }}",
           dims={"A": 4}) for op in ("ReduceL1", "ReduceL2") for a in ("", ", a")),
    Case("reduce-axes-input", "ReduceLogSumExp", 18,
         "(float[2, A] x) => (float[B, C] y) <int64[0] a = {}> { y = ReduceLogSumExp <noop_with_empty_axes = 1> (x, a) }", dims={"A": 4}),
    Case("clip-without-bounds", "Clip", 17, "(float[2, A] x) => (float[2, A] y) { y = Clip (x) }",
         "(float[2, A] x) => (float[2, A] y) <float low = {-1}> { y = Clip (x, low) }", dims={"A": 4}),
    Case("clip-without-bounds", "Clip", 17, "(int32[2, A] x) => (int32[2, A] y) { y = Clip (x) }", dims={"A": 4}),
    Case("gather-nd-negative-index", "GatherND", 17,
         "(float[A, B, 3] x) => (float[2, 3] y) <int64[2, 2] i = {-1, 0, 1, -2}> { y = GatherND (x, i) }",
         "(float[A, B, 3] x) => (float[2, 3] y) <int64[2, 2] i = {1, 0, 1, 2}> { y = GatherND (x, i) }", dims={"A": 4, "B": 5}),
    Case("gather-negative-index", "Gather", 17,
         "(float[A, B, 3] x) => (float[A, 3] y) <int64 i = {-1}> { y = Gather <axis = 1> (x, i) }",
         "(float[A, B, 3] x) => (float[A, 3] y) <int64 i = {1}> { y = Gather <axis = 1> (x, i) }", dims={"A": 4, "B": 5}),
    Case("sum-broadcast", "Mean", 17, "(float[2, 4] x, float[4] b, float[2, 1] c) => (float[2, 4] y) { y = Mean (x, b, c) }",
         "(float[2, 4] x, float[2, 4] b) => (float[2, 4] y) { y = Mean (x, b) }"),
    Case("conv-attributes", "Conv", 17, "(float[1, 2, 5, 6] x, float[3, 2, 2, 3] w) => (float[1, 3, 4, 4] y) { y = Conv (x, w) }",
         "(float[1, 2, 5, 6] x, float[3, 2, 2, 3] w) => (float[1, 3, 4, 4] y) { y = Conv <strides = [1, 1]> (x, w) }"),
    Case("conv-attributes", "Conv", 17,
         "(float[1, 2, 5, 6, 7] x, float[3, 2, 2, 3, 4] w) => (float[1, 3, 3, 3, 4] y) "
         "{ y = Conv <auto_pad = \"SAME_UPPER\", strides = [2, 2, 2]> (x, w) }",
         "(float[1, 2, 5, 6, 7] x, float[3, 2, 2, 3, 4] w) => (float[1, 3, 2, 2, 2] y) "
         "{ y = Conv <auto_pad = \"VALID\", strides = [2, 2, 2]> (x, w) }"),
    Case("conv-transpose-kernel", "ConvTranspose", 17,
         "(float[1, 2, 5, 6] x, float[2, 3, 2, 3] w) => (float[1, 3, H, W] y) { y = ConvTranspose (x, w) }",
         "(float[1, 2, 5, 6] x, float[2, 3, 2, 3] w) => (float[1, 3, H, W] y) { y = ConvTranspose <kernel_shape = [2, 3]> (x, w) }"),
    Case("conv-transpose-shape", "ConvTranspose", 17,
         "(float[1, 2, 5, 6] x, float[2, 3, 3, 3] w) => (float[1, 3, H, W] y) "
         "{ y = ConvTranspose <kernel_shape = [3, 3], strides = [2, 2], output_shape = [9, 11], output_padding = [0, 0]> (x, w) }"),
    Case("constant-of-shape-field", "ConstantOfShape", 17,
         "(int64[2] s) => (float16[A, B] y) { y = ConstantOfShape <value = float16[1] {2}> (s) }",
         "(int64[2] s) => (float[A, B] y) { y = ConstantOfShape <value = float[1] {2}> (s) }", highest={"s": 4}),
    Case("reduce-without-axes", "ReduceSum", 17,
         "(float[2, 4] x) => (float[2, 4] y) { y = ReduceSum <noop_with_empty_axes = 1> (x) }", flags=("--cann", "8.5")),
    Case("gemm-alpha", "Gemm", 17,
         "(float[2, 4] x, float[3, 4] w, float[3] c) => (float[2, 3] y) { y = Gemm <alpha = 2.0, beta = 0.5, transB = 1> (x, w, c) }",
         "(float[2, 4] x, float[3, 4] w, float[3] c) => (float[2, 3] y) { y = Gemm <transB = 1> (x, w, c) }", flags=("--cann", "9.1")),
    Case("empty-optional-input", "Gemm", 17,
         "(float[2, 4] x, float[4, 3] w) => (float[2, 3] y) { y = Gemm (x, w, EMPTY) }",
         "(float[2, 4] x, float[4, 3] w) => (float[2, 3] y) { y = Gemm (x, w) }", replaces=(("EMPTY", ""),)),
    Case("empty-optional-input", "LayerNormalization", 17,
         "(float[2, 4] x, float[4] w) => (float[2, 4] y) { y = LayerNormalization <epsilon = 0.5> (x, w, EMPTY) }",
         replaces=(("EMPTY", ""),)),
    Case("gather-nd-batch-dims", "GatherND", 17,
         "(float[3, 4, 5] x) => (float[3, 2] y) <int64[3, 2, 2] i = {0, 1, -1, 2, 3, 3, 1, 0, 2, 4, 0, -5}> "
         "{ y = GatherND <batch_dims = 1> (x, i) }",
         "(float[3, 4, 5] x) => (float[2, 5] y) <int64[2, 2] i = {0, 1, 2, 3}> { y = GatherND (x, i) }"),
    Case("gather-nd-batch-dims", "GatherND", 17,
         "(float[A, B, 5] x, int64[A, B, 2, 1] i) => (float[A, B, 2] y) { y = GatherND <batch_dims = 2> (x, i) }",
         dims={"A": 3, "B": 2}, highest={"i": 5}),
    Case("gather-nd-negative-index", "GatherND", 17,
         "(float[A, 5] x, int64[3, 2] i) => (float[3] y) { y = GatherND (x, i) }", dims={"A": 5}, highest={"i": (-5, 5)}),
    Case("select-last-index", "ArgMax", 17,
         "(int32[3, A] x) => (int64[3] y) { y = ArgMax <axis = 1, keepdims = 0, select_last_index = 1> (x) }",
         "(int32[3, A] x) => (int64[3] y) { y = ArgMax <axis = 1, keepdims = 0> (x) }", dims={"A": 9}, highest={"x": 3}),
    Case("select-last-index", "ArgMin", 17,
         "(int32[3, 9] x) => (int64[1, 9] y) { y = ArgMin <select_last_index = 1> (x) }", highest={"x": 2}),
    Case("operator-without-kernel", "Hardmax", 17, "(float[3, A, 4] x) => (float[3, A, 4] y) { y = Hardmax <axis = 1> (x) }",
         dims={"A": 5}),
    Case("operator-without-kernel", "Hardmax", 12, "(float[3, 4] x) => (float[3, 4] y) { y = Hardmax (x) }"),
    Case("operator-without-kernel", "Where", 17,
         "(bool[3, 1] c, bool[4] a, bool[3, 4] b) => (bool[3, 4] y) { y = Where (c, a, b) }",
         "(bool[3, 1] c, float[4] a, float[3, 4] b) => (float[3, 4] y) { y = Where (c, a, b) }"),
    Case("one-hot-depth", "OneHot", 17,
         "(int64[3, 4] i) => (float[3, 5, 4] y) <int64 d = {5}, float[2] v = {-1, 2}> { y = OneHot <axis = 1> (i, d, v) }",
         "(float[3, 5] x) => (float[3, 5] y) <int64 d = {5}, float[2] v = {-1, 2}> "
         "{ i = ArgMax <axis = 1, keepdims = 0> (x)\n y = OneHot (i, d, v) }", highest={"i": (-9, 9)}),
    Case("one-hot-depth", "OneHot", 13,
         "(int32[4] i) => (float[4, 3] y) <float d = {3}, float[2] v = {7, 9}> { y = OneHot (i, d, v) }", highest={"i": (-5, 5)}),
    Case("range-empty", "Range", 17, "(float[2] x) => (int64[A] y, float[2] z) <int64 a = {5}, int64 b = {3}, int64 s = {1}> "
         "{ y = Range (a, b, s)\n z = Relu (x) }"),
    Case("pad-axes-input", "Pad", 18,
         "(float[3, A, 4] x, int64[4] p) => (float[B, A, C] y) <int64[2] a = {0, -1}> { y = Pad (x, p, , a) }",
         "(float[3, A, 4] x, int64[6] p) => (float[B, C, D] y) { y = Pad (x, p) }", dims={"A": 5}, highest={"p": 3}),
    Case("pad-axes-input", "Pad", 18,
         "(float[3, 4] x, int64[2] p, int64[1] a) => (float[B, C] y) { y = Pad (x, p, , a) }",
         highest={"p": 3, "a": (-2, 2)}),
    Case("reduce-axes-input", "ReduceMean", 18,
         "(float[3, 4, A] x, int64[1] a) => (float[B, C, D] y) { y = ReduceMean (x, a) }", flags=("--cann", "8.1"),
         dims={"A": 5}, highest={"a": (-3, 3)}),
    Case("reduce-axes-input", "ReduceSumSquare", 18,
         "(float[3, 4, 5] x, int64[1] a) => (float[B, C] y) { y = ReduceSumSquare <keepdims = 0> (x, a) }",
         flags=("--cann", "8.1"), highest={"a": 3}),
    Case("no-parser", "ReduceL2", 18, "(float[3, 4, 5] x, int64[1] a) => (float[B, C, D] y) { y = ReduceL2 (x, a) }",
         highest={"a": 3}),
    Case("no-parser", "ReduceL1", 18, "(float[3, 4, 5] x, int64[1] a) => (float[B, C, D] y) { y = ReduceL1 (x, a) }",
         highest={"a": 3}),
    Case("batch-norm-training", "BatchNormalization", 17,
         "(float[3, 2, A] x, float[2] g, float[2] s, float[2] m, float[2] v) => (float[3, 2, A] y, float[2] n, float[2] w) "
         "{ y, n, w = BatchNormalization <training_mode = 1, momentum = 0.75, epsilon = 0.125> (x, g, s, m, v) }",
         "(float[3, 2, A] x, float[2] g, float[2] s, float[2] m, float[2] v) => (float[3, 2, A] y) "
         "{ y = BatchNormalization <epsilon = 0.125> (x, g, s, m, v) }", flags=("--cann", "9.1"), dims={"A": 5}),
    Case("scatter-reduction", "ScatterND", 18,
         "(float[4, A, 3] x, float[2, 3] u) => (float[4, A, 3] y) <int64[2, 2] i = {-1, 2, 1, 0}> "
         "{ y = ScatterND <reduction = \"add\"> (x, i, u) }", flags=("--cann", "9.0"), dims={"A": 5}),
    Case("scatter-reduction", "ScatterElements", 18,
         "(float[4, 3] x, float[2, 3] u) => (float[4, 3] y) <int64[2, 3] i = {-1, 2, 1, 0, 1, 2}> "
         "{ y = ScatterElements <reduction = \"max\"> (x, i, u) }",
         "(float[4, 3] x, float[2, 3] u) => (float[4, 3] y) <int64[2, 3] i = {1, 2, 1, 0, 1, 2}> "
         "{ y = ScatterElements (x, i, u) }", flags=("--cann", "9.0")),
    Case("resize-nearest", "Resize", 17,
         "(float[2, 3, A, B] x) => (float[2, 3, C, D] y) <float[4] s = {1, 1, 2, 3}> { y = Resize (x, , s) }",
         "(float[2, 3, A, B] x) => (float[2, 3, C, D] y) <float[4] s = {1, 1, 2, 3}> { y = Resize "
         "<coordinate_transformation_mode = \"asymmetric\", nearest_mode = \"floor\"> (x, , s) }", dims={"A": 4, "B": 5}),
    Case("resize-nearest", "Resize", 17,
         "(float[2, A, 4, 5] x) => (float[2, A, C, D] y) <float[4] s = {1, 1, 3, 0.5}> "
         "{ y = Resize <coordinate_transformation_mode = \"asymmetric\", nearest_mode = \"ceil\"> (x, , s) }", dims={"A": 3}),
    Case("resize-nearest", "Resize", 17,
         "(float[2, 3, 4, 5] x) => (float[2, 3, 7, 3] y) <int64[4] s = {2, 3, 7, 3}> "
         "{ y = Resize <coordinate_transformation_mode = \"align_corners\"> (x, , , s) }"),
    Case("resize-nearest", "Resize", 19,
         "(float[2, 3, 4, 5] x) => (float[2, 3, C, D] y) <float[2] s = {2, 1}> { y = Resize <axes = [2, -1]> (x, , s) }"),
    Case("resize-form", "Resize", 17,
         "(float[2, 3, 5] x) => (float[2, 3, 10] y) <float[3] s = {1, 1, 2}> { y = Resize <coordinate_transformation_mode = "
         "\"asymmetric\", nearest_mode = \"floor\"> (x, , s) }"),
    Case("resize-attribute", "Resize", 18,
         "(float[2, 3, A, 5] x) => (float[2, 3, A, D] y) <float[1] s = {2}> { y = Resize <mode = \"linear\", axes = [3]> (x, , s) }",
         "(float[2, 3, A, 5] x) => (float[2, 3, A, D] y) <float[4] s = {1, 1, 1, 2}> { y = Resize <mode = \"linear\"> (x, , s) }",
         dims={"A": 4}),
    Case("resize-attribute", "Resize", 18,
         "(float[2, 3, 4, 5] x) => (float[2, 3, C, D] y) <int64[2] s = {8, 10}> "
         "{ y = Resize <mode = \"cubic\", axes = [2, 3]> (x, , , s) }"),
    Case("resize-attribute", "Resize", 18,
         "(float[1, 1, 4, 6] x) => (float[1, 1, C, D] y) <int64[2] s = {12, 12}> { y = Resize <axes = [2, 3], "
         "coordinate_transformation_mode = \"asymmetric\", nearest_mode = \"floor\", "
         "keep_aspect_ratio_policy = \"not_larger\"> (x, , , s) }"),
    *(Case("einsum-kernel", "Einsum", 17, f"({inputs}) => ({output} y) {{ y = Einsum <equation = \"{equation}\"> ({names}) }}",
           flags=("--target", "ascend310p"), dims={"A": 3, "B": 4})
      for equation, inputs, output, names in (
          ("ij,jk,kl->il", "float[A, 4] x, float[4, 5] z, float[5, B] w", "float[A, B]", "x, z, w"),
          ("bi,bj,bk,bl->bijl", "float[A, 2] x, float[A, 3] z, float[A, 4] w, float[A, 5] v", "float[A, 2, 3, 5]", "x, z, w, v"),
          ("ij,jk", "float[A, 4] x, float[4, B] z", "float[A, B]", "x, z"),
          ("ba", "float[A, B] x", "float[B, A]", "x"),
          ("...ij,...jk->...ik", "float[2, A, 3, 4] x, float[2, A, 4, 5] z", "float[2, A, 3, 5]", "x, z"),
          ("...i->...", "float[2, A, 3] x", "float[2, A]", "x"),
          ("bii->bi", "float[A, 4, 4] x", "float[A, 4]", "x"),
          ("ii", "float[4, 4] x", "float", "x"),
          ("i,i,i->", "float[4] x, float[4] z, float[4] w", "float", "x, z, w"))),
]
# Of two operators ONNX Runtime has kernels for GPUs only: what they compute stands in other operators of it (bottom).
RUNTIME = [
    "(float[2, 3, 8] x, float[8, 6] w, float[6] b) => (float[2, 3, 6] y) { y = com.microsoft.GemmFastGelu (x, w, b) }",
    "(float[2, 3, 8] x, float[8, 6] w) => (float[2, 3, 6] y) { y = com.microsoft.GemmFastGelu (x, w) }",
    "(float[2, 3, 8] x, float[8] b) => (float[2, 3, 4] y) { y = com.microsoft.BiasSplitGelu (x, b) }",
    "(float[2, 3, 8] a, float[2, 3, 8] b, float[8] g, float[8] s) => (float[2, 3, 8] y) "
    "{ y = com.microsoft.SkipLayerNormalization <epsilon = 0.01> (a, b, g, s) }",
    "(float[2, 3, 5, 8] x, int64[2, 5] p, float[7, 4] c, float[7, 4] s) => (float[2, 3, 5, 8] y) "
    "{ y = com.microsoft.RotaryEmbedding (x, p, c, s) }",
    "(float[2, 5, 24] x, int64[1] p, float[7, 4] c, float[7, 4] s) => (float[2, 5, 24] y) "
    "{ y = com.microsoft.RotaryEmbedding <interleaved = 1> (x, p, c, s) }",
]

ON_CPU = {
    "com.microsoft.GemmFastGelu (x, w, b)": "com.microsoft.FastGelu (p, b)",
    "com.microsoft.GemmFastGelu (x, w)": "com.microsoft.FastGelu (p)",
    "com.microsoft.BiasSplitGelu (x, b)": "Mul (first, g)",
}
BEFORE = {"GemmFastGelu": "p = MatMul (x, w)", "BiasSplitGelu": "a = Add (x, b) first, second = Split <axis = -1> (a) "
          "g = com.microsoft.Gelu (second)"}


def parse(case: Case, text: str) -> onnx.ModelProto:
    more = f', "{case.runtime}" : 1' if case.runtime else ""
    model = onnx.parser.parse_model(HEAD.format(ir=13 if case.opset > 18 else 8, opset=case.opset, more=more) + "g " + text)
    for old, new in case.replaces:
        for node in model.graph.node:
            node.input[:] = [new if name == old else name for name in node.input]
    return model


def feeds_of(model: onnx.ModelProto, case: Case) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(7)
    feeds = {}
    for value in model.graph.input:
        tensor = value.type.tensor_type
        shape = [dim.dim_value or case.dims[dim.dim_param] for dim in tensor.shape.dim]
        kind = TYPES[tensor.elem_type]
        if kind is np.bool_:
            feeds[value.name] = rng.integers(0, 2, shape).astype(kind)
        elif np.issubdtype(kind, np.integer):
            limits = case.highest.get(value.name, (-100, 100))
            low, high = limits if isinstance(limits, tuple) else (0, limits)
            feeds[value.name] = rng.integers(low, high, shape).astype(kind)
        else:
            feeds[value.name] = rng.standard_normal(shape).astype(kind)
    return feeds


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.code}-{case.op}-{CASES.index(case)}")
def test_a_form_is_written_anew(case: Case, tmp_path: Path) -> None:
    model = parse(case, case.text)
    source, written = tmp_path / "m.onnx", tmp_path / "o.onnx"
    onnx.save(model, source)
    result = run_ok("optimize", source, "-o", written, "--json", "-", *case.flags)
    adapted = {(record["code"], record["op"]): record["nodes"] for record in json.loads(result.out)["adapted"]}
    assert adapted.get((case.code, case.op)) == [model.graph.node[0].output[0]], result.out
    onnx.checker.check_model(onnx.load(written), full_check=True)
    found = json.loads(run("check", written, "--json", "-", *case.flags).out)["findings"]
    assert case.code not in [f["code"] for f in found]
    feeds = feeds_of(model, case)
    if case.op == "Where":  # of truths, which ONNX Runtime has no kernel for
        expected = onnx.reference.ReferenceEvaluator(model).run(None, feeds)
    else:
        expected = plain_session(model.SerializeToString()).run(None, feeds)
    for a, b in zip(expected, plain_session(str(written)).run(None, feeds), strict=True):
        assert a.dtype == b.dtype and a.shape == b.shape
        np.testing.assert_allclose(b, a, rtol=1e-5, atol=1e-5)
    run_ok("optimize", written, "-o", tmp_path / "again.onnx", *case.flags)
    assert (tmp_path / "again.onnx").read_bytes() == written.read_bytes()


@pytest.mark.parametrize("case", [case for case in CASES if case.near], ids=lambda case: f"{case.code}-{case.op}-{CASES.index(case)}")
def test_the_nearest_form_stays(case: Case, tmp_path: Path) -> None:
    source, written = tmp_path / "m.onnx", tmp_path / "o.onnx"
    onnx.save(parse(case, case.near), source)
    run_ok("optimize", source, "-o", written, *case.flags)
    assert written.read_bytes() == source.read_bytes()


@pytest.mark.parametrize("text", RUNTIME, ids=lambda text: text.split("com.microsoft.")[1].split()[0])
def test_operators_of_onnx_runtime_that_no_node_takes(text: str, tmp_path: Path) -> None:
    opset = 14 if "SkipLayer" in text else 17
    case = Case("", "", opset, text, runtime="com.microsoft", highest={"p": 2 if "int64[1] p" in text else 7})
    model = parse(case, text)
    source, written = tmp_path / "m.onnx", tmp_path / "o.onnx"
    onnx.save(model, source)
    result = run_ok("optimize", source, "-o", written, "--json", "-", *OLD)
    assert any(w["code"] == "decomposed" for w in json.loads(result.out)["warnings"])
    loaded = onnx.load(written)
    assert {node.domain for node in loaded.graph.node} <= {"", "ai.onnx"} and len(loaded.opset_import) == 1
    feeds = feeds_of(model, case)
    for word, lines in BEFORE.items():
        text = text.replace("{", "{ " + lines + " ", 1) if word in text else text
    for old, new in ON_CPU.items():
        text = text.replace(old, new)
    expected = plain_session(parse(case, text).SerializeToString()).run(None, feeds)[0]
    np.testing.assert_allclose(plain_session(str(written)).run(None, feeds)[0], expected, rtol=1e-4, atol=1e-5)


def optimized(model: onnx.ModelProto, folder: Path, *flags: str) -> tuple[onnx.ModelProto, dict]:
    onnx.save(model, folder / "m.onnx")
    result = run_ok("optimize", folder / "m.onnx", "-o", folder / "o.onnx", "--json", "-", *flags)
    return onnx.load(folder / "o.onnx"), json.loads(result.out)


@pytest.mark.parametrize("opset, body, flags", [
    (18, "y = ReduceMean <keepdims = 0> (x, a)", ("--cann", "8.1")),  # converted
    (18, "y, z = Split <num_outputs = 2> (x)", ()),  # by a function
    (17, "[x] y = Relu (x)", ()),  # named anew
])
def test_nodes_keep_their_notes(opset: int, body: str, flags: tuple[str, ...], tmp_path: Path) -> None:
    outputs = "float[A, B] y, float[C, D] z" if "z" in body else "y"
    model = onnx.parser.parse_model(HEAD.format(ir=10, opset=opset, more="")
                                    + f"g (float[2, 4] x) => ({outputs}) <int64[1] a = {{1}}> {{ {body} }}")
    model.graph.node[0].doc_string = "as written by hand"
    model.graph.node[0].metadata_props.add(key="namespace", value="layer/0")
    written, report = optimized(model, tmp_path, *flags)
    assert report["adapted"] or any(w["code"] == "opset-converted" for w in report["warnings"])
    node = next(node for node in written.graph.node if node.output[0] == "y")
    assert node.doc_string == "as written by hand"
    assert [(p.key, p.value) for p in node.metadata_props] == [("namespace", "layer/0")]


UP = [
    # CANN 9.1 reads the axes of these reductions as an input only, which opset 18 has, and those of a mean as an attribute.
    ("9.1", 17, 18, "y = ReduceMin <axes = [1]> (x)\n z = ReduceMean <axes = [1]> (x)"),
    ("9.1", 14, 18, "y = ReduceMax <axes = [1]> (x)\n z = Relu (x)"),
    # From opset 18 on a Split into equal parts says how many, which is then written as their sizes.
    ("9.1", 17, 18, "y = ReduceMin <axes = [1]> (x)\n z, w = Split <axis = 1> (x)"),
    # No parser is registered for opset 7.
    ("8.1", 7, 17, "y = Relu (x)\n z = Add (x, y)"),
    ("8.1", 6, 17, "y = ReduceSum <axes = [1]> (x)\n z = Clip <min = -0.5, max = 0.5> (x)"),
]


@pytest.mark.parametrize("cann, opset, to, body", UP, ids=lambda value: str(value).split(" ")[-1])
def test_a_newer_opset_where_only_that_is_read(cann: str, opset: int, to: int, body: str, tmp_path: Path) -> None:
    model = onnx.parser.parse_model(HEAD.format(ir=8, opset=opset, more="") + f"g (float[2, 4] x) => (float[A, B] y, float[C, D] z) {{ {body} }}")
    written, report = optimized(model, tmp_path, "--cann", cann)
    onnx.checker.check_model(written, full_check=True)
    assert written.opset_import[0].version == to
    assert "opset-converted" in [w["code"] for w in report["warnings"]] and report["findings"] == []
    x = np.random.default_rng(5).standard_normal((2, 4)).astype(np.float32)
    found = plain_session(written.SerializeToString()).run(None, {"x": x})
    for a, b in zip(plain_session(model.SerializeToString()).run(None, {"x": x}), found, strict=True):
        np.testing.assert_allclose(b, a, rtol=1e-6)
    again, _ = optimized(written, tmp_path, "--cann", cann)
    assert again == written
    # Where it is read, it stays: the same on another release, at an opset that has parsers.
    if opset > 8:
        assert optimized(model, tmp_path, "--cann", "9.2")[0] == model


# Operators that a later opset changed: what they are there has no form before it.
NEW = [
    ("(int32[4] x) => (int32[4] y) { y = BitShift <direction = \"LEFT\"> (x, x) }", "BitShift y does not take int32 before opset 28"),
    ("(uint32[4] x, uint32[4] n) => (uint32[4] y) { y = BitShift <direction = \"LEFT\"> (x, n) }",
     "BitShift y does not say before opset 28 what a shift by all bits gives"),
    ("(float[1, 4, 4, 4] x) => (float[1, 16, 2, 2] y) { y = SpaceToDepth <blocksize = 2, mode = \"CRD\"> (x) }", "SpaceToDepth y has no mode there"),
    ("(float16[4] x) => (float16[4] y) { y = Celu (x) }", "Celu y does not take float16 before opset 28"),
    ("(float16 x) => (float16[A] y) { y = Range (x, x, x) }", "Range y does not take float16 before opset 27"),
]


@pytest.mark.parametrize("text, why", NEW, ids=lambda value: value.split(" ")[0])
def test_what_a_later_opset_brought_is_not_written_before_it(text: str, why: str, tmp_path: Path) -> None:
    for opset, told in ((28, why), (29, "may mean something else at opset 29: ONNX is known here up to opset 28")):
        onnx.save(onnx.parser.parse_model(HEAD.format(ir=10, opset=opset, more="") + "g " + text), tmp_path / "m.onnx")
        result = run("optimize", tmp_path / "m.onnx", "-o", tmp_path / "o.onnx", "--json", "-")
        assert result.code == 4 and not (tmp_path / "o.onnx").exists()
        assert told in next(w["message"] for w in json.loads(result.out)["warnings"] if w["code"] == "opset-kept")


OLD_FORMS = [
    ("(uint32[4] x) => (uint32[4] y) <uint32 n = {3}> { y = BitShift <direction = \"LEFT\"> (x, n) }", np.uint32),
    ("(float[1, 4, 4, 4] x) => (float[1, 16, 2, 2] y) { y = SpaceToDepth <blocksize = 2, mode = \"DCR\"> (x) }", np.float32),
    ("(float[4] x) => (float[4] y) { y = Celu (x) }", np.float32),
    ("(float[4] x) => (float[4] y) <float d = {-0.75}> { y = Mod (x, d) }", np.float32),
]


@pytest.mark.parametrize("text, kind", OLD_FORMS, ids=lambda value: str(value).split(" ")[0])
def test_what_it_had_before_is(text: str, kind: type, tmp_path: Path) -> None:
    model = onnx.parser.parse_model(HEAD.format(ir=10, opset=28, more="") + "g " + text)
    written, _ = optimized(model, tmp_path)
    assert written.opset_import[0].version == 17
    dims = [d.dim_value for d in model.graph.input[0].type.tensor_type.shape.dim]
    x = (np.random.default_rng(3).standard_normal(dims) * 9).astype(np.int64 if kind is np.uint32 else kind).astype(kind)
    expected = onnx.reference.ReferenceEvaluator(model).run(None, {"x": x})[0]
    np.testing.assert_allclose(plain_session(written.SerializeToString()).run(None, {"x": x})[0], expected, rtol=1e-6)


def test_the_opset_stays_where_a_node_has_no_newer_form(tmp_path: Path) -> None:
    text = "g (float[2, 3, 4] x) => (float[A, B, C] y, float[D, E, F] z) { y = ReduceMin <axes = [1]> (x)\n z = Softmax <axis = 1> (x) }"
    model = onnx.parser.parse_model(HEAD.format(ir=8, opset=11, more="") + text.replace("[1]> (x)\n", "[1]> (x)\n w = Hardmax <axis = 1> (x)\n"))
    onnx.save(model, tmp_path / "m.onnx")
    run("optimize", tmp_path / "m.onnx", "-o", tmp_path / "o.onnx", "--cann", "9.1", "--force")
    assert onnx.load(tmp_path / "o.onnx").opset_import[0].version == 11


@pytest.mark.parametrize("number, told", [("70000.0", True), ("-70000.0", False), ("65504.0", False)])
def test_numbers_beyond_float16_are_told(number: str, told: bool, tmp_path: Path) -> None:
    text = f"g (float[2, 4] x) => (float[2, 4] y) <float b = {{{number}}}> {{ y = Div (x, b) }}"
    model = onnx.parser.parse_model(HEAD.format(ir=8, opset=17, more="") + text)
    for flags, expected in (((), told), (("--precision-mode", "must_keep_origin_dtype"), False)):
        warnings = {w["code"]: w["message"] for w in optimized(model, tmp_path, *flags)[1]["warnings"]}
        assert ("half-overflow" in warnings) == expected
        if expected:
            assert warnings["half-overflow"].endswith("the largest is 70000: b")


@pytest.mark.parametrize("places", [[[0, 1], [2, 0]], [1, 6]], ids=["by_axes", "in_a_row"])
def test_a_sparse_constant_is_written_whole(places: list, tmp_path: Path) -> None:
    model = onnx.parser.parse_model(HEAD.format(ir=8, opset=17, more="")
                                    + "g (float[3, 3] x) => (float[3, 3] y) { c = Constant <value_float = 0.0> ()\n y = Add (x, c) }")
    values = onnx.helper.make_tensor("v", onnx.TensorProto.FLOAT, [2], [2.5, -4.0])
    flat = np.array(places, np.int64)
    indices = onnx.helper.make_tensor("i", onnx.TensorProto.INT64, flat.shape, flat.ravel())
    node = onnx.helper.make_node("Constant", [], ["c"], sparse_value=onnx.helper.make_sparse_tensor(values, indices, [3, 3]))
    model.graph.node[0].CopyFrom(node)
    written, _ = optimized(model, tmp_path)
    expected = np.zeros((3, 3), np.float32)
    expected[0, 1], expected[2, 0] = 2.5, -4.0
    assert (onnx.numpy_helper.to_array(written.graph.node[0].attribute[0].t) == expected).all()


def test_what_a_rule_writes_has_the_notes_of_what_it_replaces(tmp_path: Path) -> None:
    text = "g (float[N, 4] x) => (int64[1] y) { y = Shape <start = 0, end = 1> (x) }"
    model = onnx.parser.parse_model(HEAD.format(ir=10, opset=17, more="") + text)
    model.graph.node[0].doc_string = "as written by hand"
    model.graph.node[0].metadata_props.add(key="namespace", value="layer/0")
    written, _ = optimized(model, tmp_path)
    assert [node.op_type for node in written.graph.node] == ["Shape", "Gather"]
    for node in written.graph.node:
        assert node.doc_string == "as written by hand" and node.metadata_props[0].value == "layer/0"
