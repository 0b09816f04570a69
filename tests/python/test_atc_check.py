"""Every form that ATC does not read is caught by `check` in a foreign file, and the nearest form to it is not. The table is
complete: every row of patterns/targets with a code has a case."""

from __future__ import annotations

import functools
import json
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import onnx
import onnx.defs
import onnx.parser
import pytest
from conftest import ROOT, TOOL, run

TARGETS = ROOT / "patterns" / "targets"


@dataclass
class Case:
    """A graph that has the form and one that nearly has it."""

    code: str
    opset: int
    caught: str
    near: str
    cann: str = "9.2"
    target: str = "ascend910b"
    certain: bool = True
    form: str = ""  # what the sentence must hold
    ir: str = ""


def x_to_y(body: str, x: str = "float[2, 4] x", y: str = "float[N, M] y", more: str = "") -> str:
    return f"({x}{', ' if more else ''}{more}) => ({y}) {{ {body} }}"


def reduce(op: str, axes: bool = True) -> str:
    return x_to_y(f"y = {op} (x, axes)" if axes else f"y = {op} (x)", more="int64[1] axes" if axes else "")


AXES = "<int64[1] axes = {1}>"
CASES = [
    Case("shape-start-end", 15, x_to_y("y = Shape <start = 1> (x)", y="int64[1] y"),
         x_to_y("y = Shape <start = 0> (x)", y="int64[2] y")),
    Case("shape-start-end", 15, x_to_y("y = Shape <end = 1> (x)", y="int64[1] y"), x_to_y("y = Shape (x)", y="int64[2] y")),
    Case("if-condition-rank", 17,
         "(bool[1] c, float[2] x) => (float[2] y) { y = If (c) <then_branch = t () => (float[2] a) { a = Relu (x) }, "
         "else_branch = e () => (float[2] b) { b = Neg (x) }> }",
         "(bool c, float[2] x) => (float[2] y) { y = If (c) <then_branch = t () => (float[2] a) { a = Relu (x) }, "
         "else_branch = e () => (float[2] b) { b = Neg (x) }> }"),
    Case("gather-nd-negative-index", 17, "(float[2, 4] x) => (float[1, 4] y) <int64[1, 1] i = {-1}> { y = GatherND (x, i) }",
         "(float[2, 4] x) => (float[1, 4] y) <int64[1, 1] i = {1}> { y = GatherND (x, i) }"),
    Case("gather-nd-negative-index", 17, "(float[2, 4] x, int64[1, 1] i) => (float[1, 4] y) { y = GatherND (x, i) }",
         "(float[2, 4] x, bool[2] m) => (float[K, 4] y) { n = NonZero (m)\n i = Transpose <perm = [1, 0]> (n)\n "
         "y = GatherND (x, i) }", certain=False),
    Case("constant-value-form", 17, "(float[2] x) => (float[2] y) { c = Constant <value_float = 2.0> ()\n y = Mul (x, c) }",
         "(float[2] x) => (float[2] y) { c = Constant <value = float {2.0}> ()\n y = Mul (x, c) }"),
    Case("mod-sign", 17, "(int64[2] x) => (int64[2] y) <int64 m = {3}, int64 k = {-5}> { y = Mod (k, m) }",
         "(int64[2] x) => (int64[2] y) <int64 m = {3}, int64 k = {5}> { y = Mod (k, m) }"),
    Case("mod-sign", 17, "(int64[2] x) => (int64 y) <int64 m = {-3}, int64 k = {5}> { y = Mod (k, m) }",
         "(int64[2] x) => (int64 y) <int64 m = {-3}, int64 k = {5}> { y = Mod <fmod = 1> (k, m) }"),
    Case("mod-sign", 17, "(int64[2] x) => (int64[2] y) <int64 m = {3}> { y = Mod (x, m) }",
         "(float[S, 4] x) => (int64[1] y) <int64 m = {3}, int64[1] i = {0}> { s = Shape (x)\n d = Gather (s, i)\n "
         "y = Mod (d, m) }", certain=False),
    Case("resize-nearest", 17, "(float[1, 1, 2, 2] x) => (float[1, 1, 4, 4] y) <float[4] s = {1, 1, 2, 2}> "
         "{ y = Resize <mode = \"nearest\"> (x, , s) }",
         "(float[1, 1, 2, 2] x) => (float[1, 1, 4, 4] y) <float[4] s = {1, 1, 2, 2}> { y = Resize <mode = \"nearest\", "
         "coordinate_transformation_mode = \"asymmetric\", nearest_mode = \"floor\"> (x, , s) }", certain=False),
    Case("resize-nearest", 17, "(float[1, 1, 2, 2] x) => (float[1, 1, 4, 4] y) <float[4] s = {1, 1, 2, 2}> "
         "{ y = Resize <mode = \"nearest\", coordinate_transformation_mode = \"asymmetric\"> (x, , s) }",
         "(float[1, 1, 2, 2] x) => (float[1, 1, 4, 4] y) <float[4] s = {1, 1, 2, 2}> { y = Resize <mode = \"linear\", "
         "coordinate_transformation_mode = \"asymmetric\"> (x, , s) }", certain=False, form="another rounding"),
    Case("sum-broadcast", 17, "(float[2, 4] x, float[4] z) => (float[2, 4] y) { y = Sum (x, z) }",
         "(float[2, 4] x, float[2, 4] z) => (float[2, 4] y) { y = Sum (x, z) }"),
    Case("one-hot-depth", 17, "(int64[2] x) => (float[2, 3] y) <int64 d = {3}, float[2] v = {0, 1}> { y = OneHot (x, d, v) }",
         "(float[2, 3] x) => (float[2, 3] y) <int64 d = {3}, float[2] v = {0, 1}> { i = ArgMax <axis = 1, keepdims = 0> (x)\n "
         "y = OneHot (i, d, v) }", certain=False),
    Case("gemm-alpha", 17, "(float[2, 4] x, float[4, 3] w) => (float[2, 3] y) { y = Gemm <alpha = 2.0> (x, w) }",
         "(float[2, 4] x, float[4, 3] w, float[3] c) => (float[2, 3] y) { y = Gemm <alpha = 2.0> (x, w, c) }"),
    Case("gemm-alpha", 17,
         "(float[2, 4] x, float[4, 3] w, float[3] c) => (float[2, 3] y) { y = Gemm <alpha = 2.0> (x, w, c) }",
         "(float[2, 4] x, float[4, 3] w, float[3] c) => (float[2, 3] y) { y = Gemm (x, w, c) }", "9.1", certain=False),
    Case("gemm-alpha", 17,
         "(float[2, 4] x, float[4, 3] w, float[3] c) => (float[2, 3] y) { y = Gemm <beta = 2.0> (x, w, c) }",
         "(float[2, 4] x, float[4, 3] w, float[3] c) => (float[2, 3] y) { y = Gemm <beta = 1.0> (x, w, c) }", "9.0",
         certain=False, form="with beta"),
    Case("conv-transpose-shape", 17, "(float[1, 1, 4, 4] x, float[1, 1, 3, 3] w) => (float[1, 1, 6, 6] y) "
         "{ y = ConvTranspose <kernel_shape = [3, 3], output_shape = [6, 6]> (x, w) }",
         "(float[1, 1, 4, 4] x, float[1, 1, 3, 3] w) => (float[1, 1, 6, 6] y) { y = ConvTranspose <kernel_shape = [3, 3]> "
         "(x, w) }", certain=False),
    Case("conv-transpose-kernel", 17,
         "(float[1, 1, 4, 4] x, float[1, 1, 3, 3] w) => (float[1, 1, 6, 6] y) { y = ConvTranspose (x, w) }",
         "(float[1, 1, 4, 4] x, float[1, 1, 3, 3] w) => (float[1, 1, 6, 6] y) { y = ConvTranspose <kernel_shape = [3, 3]> "
         "(x, w) }"),
    Case("log-softmax-axis", 11, "(float[2, 3, 4] x) => (float[2, 3, 4] y) { y = LogSoftmax (x) }",
         "(float[2, 4] x) => (float[2, 4] y) { y = LogSoftmax (x) }"),
    Case("softmax-axis", 11, "(float[2, 4] x) => (float[2, 4] y) { y = Softmax <axis = 0> (x) }",
         "(float[2, 4] x) => (float[2, 4] y) { y = Softmax <axis = 1> (x) }", form="three or more dims"),
    Case("softmax-axis", 11, "(float[B, 3, 4] x) => (float[B, 3, 4] y) { y = Softmax <axis = 1> (x) }",
         "(float[B, 3, 4] x) => (float[B, 3, 4] y) { y = Softmax <axis = 2> (x) }", form="-1 for a dim"),
    Case("softmax-axis", 11, "(float[2, 3, 4] x) => (float[2, 3, 4] y) { y = Softmax <axis = 1> (x) }",
         "(float[2, 3, 4] x) => (float[2, 3, 4] y) { y = Softmax <axis = -1> (x) }", certain=False, form="a pass"),
    Case("pad-axes-input", 18, "(float[2, 4] x, int64[2] p, int64[1] a) => (float[N, M] y) { y = Pad (x, p, , a) }",
         "(float[2, 4] x, int64[4] p) => (float[N, M] y) { y = Pad (x, p) }"),
    Case("dropout-inputs", 17, "(float[2] x) => (float[2] y) <float r = {0.5}, bool t = {1}> { y = Dropout (x, r, t) }",
         "(float[2] x) => (float[2] y) <float r = {0.5}, bool t = {0}> { y = Dropout (x, r, t) }"),
    Case("dropout-inputs", 17, "(float[2] x) => (float[2] y) <float r = {0.5}> { y = Dropout (x, r) }",
         "(float[2] x) => (float[2] y) { y = Dropout (x) }", "2026.07", certain=False),
    Case("constant-of-shape-field", 17,
         "(int64[1] x) => (bool[N] y) { y = ConstantOfShape <value = bool[1] {1}> (x) }",
         "(int64[1] x) => (float[N] y) { y = ConstantOfShape <value = float[1] {1}> (x) }"),
    Case("top-k-index-type", 17, "(float[2, 4] x) => (float[2, 1] v, int64[2, 1] y) <int64[1] k = {1}> { v, y = TopK (x, k) }",
         "(float[2, 4] x) => (float[2, 1] v, int64[2, 1] y) <int64[1] k = {1}> { v, i = TopK (x, k)\n "
         "y = Cast <to = 7> (i) }"),
    Case("size-type", 17, "(float[2, 4] x) => (int64 y) { y = Size (x) }",
         "(float[2, 4] x) => (int64 y) { s = Size (x)\n y = Cast <to = 7> (s) }", certain=False),
    Case("split-num-outputs", 18, "(float[4] x) => (float[2] y, float[2] z) { y, z = Split <num_outputs = 2> (x) }",
         "(float[4] x, int64[2] n) => (float[2] y, float[2] z) { y, z = Split (x, n) }"),
    Case("squeeze-without-axes", 17, "(float[n, 1] x) => (float[n] y) { y = Squeeze (x) }",
         "(float[4, 1] x) => (float[4] y) { y = Squeeze (x) }", certain=False),
    Case("transpose-without-perm", 17, "(float[2, 4] x) => (float[4, 2] y) { y = Transpose (x) }",
         "(float[2, 4] x) => (float[4, 2] y) { y = Transpose <perm = [1, 0]> (x) }"),
    Case("clip-without-bounds", 17, "(float[4] x) => (float[4] y) { y = Clip (x) }",
         "(float[4] x, float m) => (float[4] y) { y = Clip (x, , m) }"),
    Case("gather-nd-batch-dims", 17,
         "(float[2, 4] x) => (float[2] y) <int64[2, 1] i = {1, 2}> { y = GatherND <batch_dims = 1> (x, i) }",
         "(float[2, 4] x) => (float[2, 4] y) <int64[2, 1] i = {1, 0}> { y = GatherND <batch_dims = 0> (x, i) }"),
    Case("select-last-index", 17, "(float[2, 4] x) => (int64[1, 4] y) { y = ArgMin <select_last_index = 1> (x) }",
         "(float[2, 4] x) => (int64[1, 4] y) { y = ArgMin (x) }"),
    Case("instance-norm-rank", 17,
         "(float[1, 2, 8] x, float[2] s, float[2] b) => (float[1, 2, 8] y) { y = InstanceNormalization (x, s, b) }",
         "(float[1, 2, 8, 1] x, float[2] s, float[2] b) => (float[1, 2, 8, 1] y) { y = InstanceNormalization (x, s, b) }",
         certain=False),
    Case("range-empty", 17, "(float[2] x) => (int64[0] y) <int64 a = {5}, int64 b = {3}, int64 s = {1}> { y = Range (a, b, s) }",
         "(float[2] x) => (int64[2] y) <int64 a = {5}, int64 b = {3}, int64 s = {-1}> { y = Range (a, b, s) }"),
    Case("resize-form", 17, "(float[1, 1, 2, 2] x, float[8] r) => (float[N, M, K, L] y) { y = Resize <mode = \"linear\"> (x, r) }",
         "(float[1, 1, 2, 2] x, float[4] s) => (float[N, M, K, L] y) { y = Resize <mode = \"linear\"> (x, , s) }"),
    Case("resize-form", 17, "(float[1, 2, 2] x) => (float[1, 4, 4] y) <float[3] s = {1, 2, 2}> { y = Resize <mode = "
         "\"nearest\", coordinate_transformation_mode = \"asymmetric\", nearest_mode = \"floor\"> (x, , s) }",
         "(float[1, 2, 2] x) => (float[1, 4, 4] y) <float[3] s = {1, 2, 2}> { y = Resize <mode = \"linear\"> (x, , s) }",
         form="not four dims"),
    Case("resize-form", 17, "(float[1, 1, 1, 2, 2] x) => (float[1, 1, 1, 4, 4] y) <float[5] s = {1, 1, 1, 2, 2}> { y = Resize "
         "<mode = \"nearest\", coordinate_transformation_mode = \"asymmetric\", nearest_mode = \"floor\"> (x, , s) }",
         "(float[1, 1, 2, 2] x) => (float[1, 1, 4, 4] y) <float[4] s = {1, 1, 2, 2}> { y = Resize "
         "<mode = \"nearest\", coordinate_transformation_mode = \"asymmetric\", nearest_mode = \"floor\"> (x, , s) }",
         form="not four dims"),
    Case("resize-form", 17, "(float[1, 1, 2, 2] x, float[4] s) => (float[N, M, K, L] y) { y = Resize <mode = \"area\"> (x, , s) }",
         "(float[1, 1, 2, 2] x, float[4] s) => (float[N, M, K, L] y) { y = Resize <mode = \"cubic\"> (x, , s) }",
         form="another mode"),
    Case("conv-attributes", 17, "(float[1, 1, 4, 4] x, float[1, 1, 3, 3] w) => (float[1, 1, 2, 2] y) { y = Conv (x, w) }",
         "(float[1, 1, 4, 4] x, float[1, 1, 3, 3] w) => (float[1, 1, 2, 2] y) { y = Conv <strides = [1, 1]> (x, w) }"),
    Case("conv-attributes", 17, "(float[1, 1, 4, 4, 4] x, float[1, 1, 3, 3, 3] w) => (float[1, 1, 4, 4, 4] y) "
         "{ y = Conv <kernel_shape = [3, 3, 3], auto_pad = \"SAME_UPPER\"> (x, w) }",
         "(float[1, 1, 4, 4] x, float[1, 1, 3, 3] w) => (float[1, 1, 4, 4] y) "
         "{ y = Conv <kernel_shape = [3, 3], auto_pad = \"SAME_UPPER\"> (x, w) }", form="three spatial axes"),
    Case("reduce-axes-input", 18, reduce("ReduceMean"), reduce("ReduceSum"), "9.1"),
    Case("reduce-axes-input", 18, reduce("ReduceSumSquare"), reduce("ReduceMax"), "9.1", form="ReduceSumSquare"),
    Case("reduce-axes-input", 18, reduce("ReduceMax"), reduce("ReduceSum"), "9.0", form="ReduceMax"),
    Case("reduce-axes-input", 18, reduce("ReduceLogSum"), x_to_y("y = ReduceLogSum (x)"), "8.5", form="ReduceLogSum"),
    Case("reduce-axes-attribute", 17, x_to_y("y = ReduceMin <axes = [1]> (x)"), x_to_y("y = ReduceMean <axes = [1]> (x)"),
         "9.1"),
    Case("reduce-without-axes", 17, x_to_y("y = ReduceSum (x)"), x_to_y("y = ReduceMean (x)"), "9.0"),
    Case("reduce-without-axes", 17, x_to_y("y = ReduceMax (x)"), x_to_y("y = ReduceMax <axes = [0, 1]> (x)"), "8.5"),
    Case("reduce-without-axes", 18, x_to_y("y = ReduceMax (x)"), x_to_y("y = ReduceMax <noop_with_empty_axes = 1> (x)"),
         "9.0"),
    Case("reduce-without-axes", 17, x_to_y("y = ReduceSum <noop_with_empty_axes = 1> (x)"), reduce("ReduceSum"), "9.0",
         form="noop"),
    Case("reduce-without-axes", 18, x_to_y("y = ReduceMean <noop_with_empty_axes = 1> (x)"), x_to_y("y = ReduceMean (x)"), "9.1"),
    Case("reduce-without-axes", 18, x_to_y("y = ReduceSumSquare <noop_with_empty_axes = 1> (x)"), x_to_y("y = ReduceSumSquare (x)"),
         "9.1", certain=False),
    Case("reduce-without-axes", 18, x_to_y("y = ReduceMean <noop_with_empty_axes = 1> (x)"), x_to_y("y = ReduceMean (x)"), "8.1",
         certain=False),
    Case("reduce-without-axes", 18, x_to_y("y = ReduceLogSum <noop_with_empty_axes = 1> (x)"), x_to_y("y = ReduceLogSum (x)"), "8.1",
         certain=False),
    Case("reduce-without-axes", 17, x_to_y("y = ReduceSum (x)"), reduce("ReduceSum"), "8.1", certain=False),
    Case("reduce-without-axes", 17, x_to_y("y = ReduceSum <noop_with_empty_axes = 1> (x)"), reduce("ReduceSum"), "8.1",
         certain=False, form="noop"),
    Case("reduce-without-axes", 17, x_to_y("y = ReduceProd (x)"), x_to_y("y = ReduceProd <axes = [0]> (x)"), "8.1",
         certain=False),
    Case("reduce-without-axes", 18, x_to_y("y = ReduceProd (x)"), x_to_y("y = ReduceMean (x)"), "8.1", certain=False),
    Case("batch-norm-training", 15,
         "(float[1, 2, 4] x, float[2] s, float[2] b, float[2] m, float[2] v) => (float[1, 2, 4] y) "
         "{ y, mm, vv = BatchNormalization <training_mode = 1> (x, s, b, m, v) }",
         "(float[1, 2, 4] x, float[2] s, float[2] b, float[2] m, float[2] v) => (float[1, 2, 4] y) "
         "{ y = BatchNormalization (x, s, b, m, v) }", "9.1"),
    Case("gather-negative-index", 17, "(float[2, 4] x) => (float[4] y) <int64 i = {-1}> { y = Gather (x, i) }",
         "(float[2, 4] x) => (float[4] y) <int64 i = {1}> { y = Gather (x, i) }", "8.1", certain=False),
    Case("slice-steps", 17, "(float[2, 4] x) => (float[2, 2] y) <int64[1] s = {0}, int64[1] e = {2}, int64[1] a = {1}, "
         "int64[1] t = {1}> { y = Slice (x, s, e, a, t) }",
         "(float[2, 4] x) => (float[2, 2] y) <int64[1] s = {0}, int64[1] e = {2}, int64[1] a = {-1}> { y = Slice (x, s, e, a) }",
         "8.1", certain=False),
    Case("expand-rank", 17, "(float[1, 4] x) => (float[1, 4] y) <int64[1] s = {4}> { y = Expand (x, s) }",
         "(float[1, 4] x) => (float[3, 4] y) <int64[2] s = {3, 4}> { y = Expand (x, s) }", "9.1"),
    Case("expand-rank", 17, "(float[1, 4] x) => (float[1, 4] y) <int64[1] s = {4}> { y = Expand (x, s) }",
         "(float[1, 4] x) => (float[3, 4] y) <int64[2] s = {3, 4}> { y = Expand (x, s) }", "2026.07"),
    Case("trilu-kernel", 17, "(float[4, 4] x) => (float[4, 4] y) { y = Trilu (x) }",
         "(float[4, 4] x) => (float[4, 4] y) { y = Relu (x) }", certain=False),
    Case("cast-like-kernel", 17, "(float[4] x, int64[1] l) => (int64[4] y) { y = CastLike (x, l) }",
         "(float[4] x) => (int64[4] y) { y = Cast <to = 7> (x) }"),
    Case("sum-type", 17, "(int64[4] x, int64[4] z) => (int64[4] y) { y = Sum (x, z) }",
         "(float[4] x, float[4] z) => (float[4] y) { y = Sum (x, z) }"),
    Case("operator-without-kernel", 17, "(float[2, 4] x) => (float[2, 4] y) { y = Hardmax (x) }",
         "(float[2, 4] x) => (float[2, 4] y) { y = Softmax (x) }"),
    Case("operator-without-kernel", 17, "(bool[4] c, bool[4] x, bool[4] z) => (bool[4] y) { y = Where (c, x, z) }",
         "(bool[4] c, float[4] x, float[4] z) => (float[4] y) { y = Where (c, x, z) }", certain=False),
    Case("einsum-kernel", 17, "(float[2, 3] x) => (float[3, 2] y) { y = Einsum <equation = \"ij->ji\"> (x) }",
         "(float[2, 3] x) => (float[3, 2] y) { y = Transpose <perm = [1, 0]> (x) }", target="ascend310p"),
    Case("einsum-kernel", 17, "(float[2, 3] x) => (float[3, 2] y) { y = Einsum <equation = \"ij->ji\"> (x) }",
         "(float[2, 3] x) => (float[3, 2] y) { y = Transpose <perm = [1, 0]> (x) }", target="ascend910_93", certain=False),
    Case("einsum-kernel", 17, "(float[2, 3] x) => (float y) { y = Einsum <equation = \"ij\"> (x) }",
         "(float[2, 3] x) => (float[3, 2] y) { y = Einsum <equation = \"ij->ji\"> (x) }", form="without an arrow"),
    Case("einsum-kernel", 17, "(float[2] x, float[2] z) => (float y) { y = Einsum <equation = \"i,i,i->\"> (x, z, x) }",
         "(float[2] x, float[2] z) => (float y) { y = Einsum <equation = \"i,i->\"> (x, z) }", form="three or more"),
    Case("einsum-kernel", 17, "(float[B, 3] x) => (float[3, B] y) { y = Einsum <equation = \"ij->ji\"> (x) }",
         "(float[2, 3] x) => (float[3, 2] y) { y = Einsum <equation = \"ij->ji\"> (x) }", certain=False),
]
for _red, _op in (("add", "ScatterND"), ("add", "ScatterElements")):
    _i = "int64[2, 1] i" if _op == "ScatterND" else "int64[2] i"
    _graph = f"(float[4] x, {_i}, float[2] u) => (float[4] y) {{{{ y = {_op} <reduction = \"{{}}\"> (x, i, u) }}}}"
    CASES.append(Case("scatter-reduction", 17, _graph.format(_red), _graph.format("none"), "9.0", form=_op))
    if _op == "ScatterND":
        CASES.append(Case("scatter-reduction", 17, _graph.format("add"), _graph.format("none"), "2026.07", certain=False))
        CASES.append(Case("scatter-reduction", 17, _graph.format("mul"), _graph.format("none"), form="mul"))
for _words, _near in (('mode = "cubic", cubic_coeff_a = -0.5', 'mode = "cubic", cubic_coeff_a = -0.75'),
                      ('mode = "cubic", exclude_outside = 1', 'mode = "linear", exclude_outside = 0'),
                      ('mode = "linear", coordinate_transformation_mode = "tf_crop_and_resize", extrapolation_value = 1.0',
                       'mode = "linear", coordinate_transformation_mode = "tf_crop_and_resize"'),
                      ('mode = "linear", antialias = 1', 'mode = "linear", antialias = 0'),
                      ('mode = "linear", axes = [0, 1, 2, 3]', 'mode = "linear"'),
                      ('mode = "linear", keep_aspect_ratio_policy = "not_larger"', 'mode = "linear"')):
    _graph = "(float[1, 1, 2, 2] x, float[8] r, float[4] s) => (float[N, M, K, L] y) {{ y = Resize <{}> (x, r, s) }}"
    _form = re.findall(r"(cubic_coeff_a|exclude_outside|extrapolation_value|antialias|axes|keep_aspect_ratio_policy)", _words)
    CASES.append(Case("resize-attribute", 18, _graph.format(_words), _graph.format(_near), form=_form[0]))
for _op, _caught, _near, _types in (
        ("LayerNormalization", "x, s, EMPTY", "x, s", "float[2, 4] x, float[4] s"),
        ("Gemm", "x, s, EMPTY", "x, s", "float[2, 4] x, float[4, 3] s")):
    CASES.append(Case("empty-optional-input", 17, f"({_types}) => (float[N, M] y) {{ y = {_op} ({_caught}) }}",
                      f"({_types}) => (float[N, M] y) {{ y = {_op} ({_near}) }}", form=_op))
for _op in ("Conv", "ConvTranspose"):
    _graph = "(float[1, 1, 4, 4] x, float[1, 1, 3, 3] w) => (float[1, 1, N, M] y) {{ y = {} <kernel_shape = [3, 3]> (x, w{}) }}"
    CASES.append(Case("empty-optional-input", 17, _graph.format(_op, ", EMPTY"), _graph.format(_op, ""), form=_op))
# What runs elsewhere.
CASES += [
    Case("on-ai-cpu", 17, "(float[4] x) => (float[4] y) { y = RandomNormalLike (x) }",
         "(float[4] x) => (float[4] y) { y = Relu (x) }"),
    Case("on-ai-cpu", 17, "(int64[4] x, int64[4] z) => (int64[4] y) { y = Div (x, z) }",
         "(float[4] x, float[4] z) => (float[4] y) { y = Div (x, z) }"),
    Case("on-ai-cpu", 17, "(int64[4] x, int64[4] z) => (int64[4] y) { y = Pow (x, z) }",
         "(float[4] x, float[4] z) => (float[4] y) { y = Pow (x, z) }"),
    Case("on-ai-cpu", 17, "(int64[4] x) => (int64[4] y) <int64 a = {0}> { y = CumSum (x, a) }",
         "(float[4] x) => (float[4] y) <int64 a = {0}> { y = CumSum (x, a) }", certain=False),
    Case("on-ai-cpu", 17, "(int64[4] x) => (int64[2, 4] y) <int64[2] s = {2, 4}> { y = Expand (x, s) }",
         "(float[4] x) => (float[2, 4] y) <int64[2] s = {2, 4}> { y = Expand (x, s) }", certain=False),
    Case("on-ai-cpu", 17, "(float[4] x, int64[1] s) => (float[N] y) <int64[1] e = {4}> { y = Slice (x, s, e) }",
         "(float[4] x) => (float[2] y) <int64[1] s = {2}, int64[1] e = {4}> { y = Slice (x, s, e) }"),
    Case("on-ai-cpu", 17, "(float[4] x, int64[1] e) => (float[N] y) <int64[1] s = {0}> { y = Slice (x, s, e) }",
         "(float[4] x) => (float[2] y) <int64[1] s = {2}, int64[1] e = {4}> { y = Slice (x, s, e) }"),
    Case("on-ai-cpu", 17, "(float[4] x, int64[1] k) => (float[K] y) { y, i = TopK (x, k) }",
         "(float[4] x) => (float[1] y) <int64[1] k = {1}> { y, i = TopK (x, k) }"),
    Case("on-ai-cpu", 17, "(float[4] x, int64[2, 1] i, float[2] u) => (float[4] y) { y = ScatterND (x, i, u) }",
         "(float[4] x, int64[2] i, float[2] u) => (float[4] y) { y = ScatterElements (x, i, u) }", certain=False),
    Case("on-ai-cpu", 17, "(float[4, 2] x, int64[2] l) => (float[4, 2] y) { y = ReverseSequence (x, l) }",
         "(float[4, 2] x) => (float[4, 2] y) { y = Relu (x) }"),
    Case("on-ai-cpu", 17, "(float[1, 2, 4] b, float[1, 1, 2] s) => (int64[N, 3] y) { y = NonMaxSuppression (b, s) }",
         "(float[4, 2] x) => (float[4, 2] y) { y = Relu (x) }", certain=False),
    Case("on-ai-cpu", 17, "(float[4] x) => (bool[4] y) { y = IsNaN (x) }", "(float[4] x) => (bool[4] y) { y = IsInf (x) }",
         target="ascend310p"),
    Case("on-ai-cpu", 17, "(int64[4] x) => (int64[1] y) <int64[1] k = {1}> { y, i = TopK (x, k) }",
         "(float[4] x) => (float[1] y) <int64[1] k = {1}> { y, i = TopK (x, k) }"),
    Case("on-ai-cpu", 17, "(int64[4, 3] x) => (int64[1, 3] y) { y = ArgMax (x) }", "(float[4, 3] x) => (int64[1, 3] y) { y = ArgMax (x) }",
         target="ascend310p"),
    # What was measured to be slow, or seen to fail.
    Case("slow-kernel", 17, "(float[2, 3] x) => (int64[1, 3] y) { y = ArgMax (x) }",
         "(float[4, 3] x) => (int64[1, 3] y) { y = ArgMax (x) }", target="ascend310p"),
    Case("slow-kernel", 17, "(float[4, 2] x) => (int64[4] y) { y = ArgMin <axis = -1, keepdims = 0> (x) }",
         "(float[4, N] x) => (int64[4] y) { y = ArgMin <axis = -1, keepdims = 0> (x) }", target="ascend310p"),
    Case("slow-kernel", 17, "(float[4] x, int64[2, 1] i, float[2] u) => (float[4] y) { y = ScatterND (x, i, u) }",
         "(float[4] x, int64[1] i, float[1] u) => (float[4] y) { y = Add (x, u) }", target="ascend310p"),
    Case("negative-pads", 17, "(float[4] x) => (float[3] y) <int64[2] p = {-1, 0}> { y = Pad (x, p) }",
         "(float[4] x) => (float[5] y) <int64[2] p = {1, 0}> { y = Pad (x, p) }", certain=False),
    Case("seen-wrong-once", 17, "(float[1, 1, 2, 2] x) => (float[1, 1, 4, 4] y) <float[4] s = {1, 1, 2, 2}> "
         "{ y = Resize <mode = \"linear\"> (x, EMPTY, s) }", "(float[1, 1, 2, 2] x) => (float[1, 1, 4, 4] y) <float[4] s = {1, 1, 2, 2}> "
         "{ y = Resize <mode = \"linear\", coordinate_transformation_mode = \"align_corners\"> (x, EMPTY, s) }",
         target="ascend310b", certain=False),
    Case("seen-wrong-once", 17, "(float[4] x, float[5] z) => (float[5] y) <int64[2] p = {0, 1}> { q = Pad (x, p) y = Add (q, z) }",
         "(float[4] x, float[5] z) => (float[5] y) <int64[2] p = {0, 1}> { q = Pad (x, p) y = Mul (q, z) }", target="ascend310b",
         certain=False),
    Case("half-kernel-only", 17, "(float[1, 1, 4, 4] x) => (float[1, 1, 2, 2] y) { y = MaxPool <kernel_shape = [2, 2], strides = [2, 2]> (x) }",
         "(float16[1, 1, 4, 4] x) => (float16[1, 1, 2, 2] y) { y = MaxPool <kernel_shape = [2, 2], strides = [2, 2]> (x) }",
         target="ascend310b", certain=False),
    Case("on-host", 17, "(float[4] x) => (seq(float[4]) y) { y = SequenceConstruct (x) }",
         "(float[4] x) => (float[4] y) { y = Identity (x) }"),
    Case("on-host", 17, "(bool c, float[2] x) => (float[2] y) { y = If (c) <then_branch = t () => (float[2] a) { a = Relu (x) }, "
         "else_branch = e () => (float[2] b) { b = Neg (x) }> }",
         "(bool c, float[2] x, float[2] z) => (float[2] y) { y = Where (c, x, z) }"),
    Case("no-parser", 18, "(float[4] x) => (float y) { y = ReduceL2 (x) }", "(float[4] x) => (float y) { y = ReduceSum (x) }"),
    Case("no-parser", 17, "(float[4] x) => (float[4] y) { y = Gelu (x) }", "(float[4] x) => (float[4] y) { y = Erf (x) }"),
    Case("no-parser", 17, "(float[4] x) => (float[4] y) { y = Frobnicate (x) }", "(float[4] x) => (float[4] y) { y = Erf (x) }"),
]
for _op, _x in (("Abs", "x"), ("Neg", "x"), ("Sign", "x")):
    CASES.append(Case("on-ai-cpu", 17, f"(int64[4] x) => (int64[4] y) {{ y = {_op} (x) }}",
                      f"(float[4] x) => (float[4] y) {{ y = {_op} (x) }}", target="ascend310p", form=_op))


def parse(case: Case, graph: str) -> onnx.ModelProto:
    model = onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["" : {case.opset}]>\ng {graph}')
    for node in model.graph.node:
        node.input[:] = ["" if name == "EMPTY" else name for name in node.input]
    return model


def findings(model: onnx.ModelProto, folder: Path, *flags: str) -> list[dict[str, Any]]:
    path = folder / "m.onnx"
    onnx.save(model, path)
    result = run("check", path, "--json", "-", *flags)
    assert result.code in (0, 4), result.err
    report = json.loads(result.out)
    fatal = [f for f in report["findings"] if f["certain"] and f["effect"] not in ("ai_cpu", "host", "slow", "precision")]
    assert result.code == (4 if fatal else 0), report["findings"]
    return report["findings"]


def of(case: Case, graph: str, folder: Path) -> list[dict[str, Any]]:
    found = findings(parse(case, graph), folder, "--cann", case.cann, "--target", case.target)
    return [f for f in found if f["code"] == case.code and case.form in f["because"]]


def name_of(case: Case) -> str:
    return f"{case.code}-{case.cann}-{case.form or case.certain}".replace(" ", "_")


@pytest.mark.parametrize("case", CASES, ids=name_of)
def test_a_form_is_caught_and_the_nearest_one_is_not(case: Case, tmp_path: Path) -> None:
    caught = of(case, case.caught, tmp_path)
    assert len(caught) == 1, caught
    assert caught[0]["certain"] == case.certain
    assert caught[0]["node"] and caught[0]["because"]
    assert of(case, case.near, tmp_path) == []


def rows() -> list[dict[str, str]]:
    """Code, effect, form and operators of every `unsupported` row of the data."""
    found = []
    for path in sorted(TARGETS.glob("*.txtpb")):
        if path.name == "_plugin.txtpb":
            continue  # what our op plugin refuses: tests/python/test_op_plugin.py asks it and `check`
        for text in re.findall(r"^unsupported \{\n(.*?)^\}", path.read_text(), re.MULTILINE | re.DOTALL):
            row = {"file": path.name}
            for field in ("code", "form", "because"):
                match = re.search(rf'(?:^|\s){field}: "([^"]*)"', text)
                row[field] = match[1] if match else ""
            row["ops"] = " ".join(re.findall(r'\bop: "(\w+)"', text))
            found.append(row)
    assert len(found) > 90
    return found


def test_every_row_has_a_case(tmp_path: Path) -> None:
    said: set[str] = set()
    for case in CASES:
        for finding in findings(parse(case, case.caught), tmp_path, "--cann", case.cann, "--target", case.target):
            said.add(finding["because"].split(" (possible: ")[0])
    missing = [row for row in rows()
               if not any(sentence == f"{op}{' ' if row['form'] else ''}{row['form']}: {row['because']}"
                          for sentence in said for op in row["ops"].split())]
    assert missing == []


def test_every_standard_operator_is_parsed_or_has_no_parser() -> None:
    text = (TARGETS / "_parser.txtpb").read_text()
    parsed: list[str] = []
    for block in re.findall(r"^parsed \{\n(.*?)^\}", text, re.MULTILINE | re.DOTALL):
        assert re.search(r"first: \d+ last: \d+", block)
        parsed += re.findall(r'op: "(\w+)"', block)
    assert len(parsed) == len(set(parsed))
    unparsed = [op for row in rows() if row["code"] == "no-parser" for op in row["ops"].split()]
    assert sorted(set(parsed) & set(unparsed)) == []
    names = {s.name for s in onnx.defs.get_all_schemas_with_history() if s.domain == "" and s.since_version <= 24}
    assert len(names) > 190
    assert sorted(names - set(parsed) - set(unparsed)) == []
