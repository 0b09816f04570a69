"""Capped scores with tokens padded for NPUScaledMaskedSoftmax, in numbers: lengths around the steps of 32, two batches, heads
that share keys, rows without any key, both element types.

What is right is ONNX Runtime without graph optimizations on the graph as it is, against the graph after optimize and expand:
one model of open lengths for all of them. Rows without a key count too.
"""

import numpy
import onnx
import onnx.parser
import pytest
from ascend_fuse.session import plain_session

import pipeline
from test_golden_numeric import compare

D = 16
LENGTHS = [(1, 0), (1, 31), (5, 3), (31, 0), (32, 0), (33, 31), (64, 1), (70, 26)]  # new tokens, and those of a cache
FLAGS = ["--target=ascend910b", "--dim=S=1..1024", "--dim=P=0..3072"]


def model_of(heads, groups, element, mask, past):
    keys = "P + S" if past else "S"
    shape = {"rows": f"B, 1, S, {keys}", "shared": f"1, 1, S, {keys}", "keys": f"B, 1, 1, {keys}"}[mask]
    low = -65504 if element == "float16" else -3.4028235e38
    kind = onnx.TensorProto.DataType.Value(element.upper())
    return onnx.parser.parse_model(f"""
<ir_version: 8, opset_import: ["" : 17]>
capped ({element}[B, {heads}, S, {D}] q, {element}[B, {groups}, "{keys}", {D}] k, {element}[B, {groups}, "{keys}", {D}] v,
        bool[{shape.replace(keys, f'"{keys}"') if past else shape}] keep) => ({element}[B, {heads}, S, {D}] y)
<float a = {{0.25}}, float b = {{3}}, float o = {{0}}, float l = {{{low}}},
 int64[1] two = {{2}}, int64[5] repeats = {{1, 1, {heads // groups}, 1, 1}}, int64[4] joined = {{0, {heads}, -1, {D}}}>
{{
  scale = Cast <to = {kind}> (a)
  cap = Cast <to = {kind}> (b)
  zero = Cast <to = {kind}> (o)
  low = Cast <to = {kind}> (l)
  kw = Unsqueeze (k, two)
  ke = Expand (kw, repeats)
  kr = Reshape (ke, joined)
  vw = Unsqueeze (v, two)
  ve = Expand (vw, repeats)
  vr = Reshape (ve, joined)
  kt = Transpose <perm = [0, 1, 3, 2]> (kr)
  s = MatMul (q, kt)
  z = Mul (s, scale)
  d = Div (z, cap)
  n = Tanh (d)
  c = Mul (n, cap)
  m = Where (keep, zero, low)
  t = Add (c, m)
  p = Softmax <axis = -1> (t)
  y = MatMul (p, vr)
}}""")


def feeds_of(model, queries, past, seed):
    generator = numpy.random.default_rng(seed)
    sizes = {"B": 2, "S": queries, "P + S": past + queries}
    feeds = {}
    for value in model.graph.input:
        shape = [sizes[d.dim_param] if d.dim_param else d.dim_value for d in value.type.tensor_type.shape.dim]
        if value.name != "keep":
            dtype = onnx.helper.tensor_dtype_to_np_dtype(value.type.tensor_type.elem_type)
            feeds[value.name] = generator.normal(size=shape).astype(dtype)
            continue
        keep = generator.random(shape) < 0.5
        # A query, or a batch, without a key. In half precision ONNX Runtime adds the least number without rounding it.
        keep[0, :, 0] = model.graph.input[0].type.tensor_type.elem_type == onnx.TensorProto.FLOAT16
        feeds[value.name] = keep
    return feeds


@pytest.mark.parametrize("mask", ["rows", "shared", "keys"])
@pytest.mark.parametrize("past", [False, True], ids=["prefill", "cache"])
@pytest.mark.parametrize("heads,groups,element", [(4, 2, "float"), (6, 2, "float"), (4, 1, "float16")])
def test_numbers(tmp_path, heads, groups, element, past, mask):
    model = model_of(heads, groups, element, mask, past)
    source = tmp_path / "model.onnx"
    onnx.save(model, source)
    flags = FLAGS if past else FLAGS[:2]
    runs = pipeline.optimize(source, tmp_path, {"target": flags})
    assert not runs.wrong
    run = runs.targets["target"]
    assert [site["emitted_op"] for site in run.report["sites"]] == ["npu.NPUScaledMaskedSoftmax"]
    original, expanded = plain_session(str(source)), plain_session(str(run.expanded))
    for seed, (queries, cached) in enumerate(LENGTHS):
        if cached and not past:
            continue
        feeds = feeds_of(model, queries, cached, seed)
        [a], [b] = original.run(None, feeds), expanded.run(None, feeds)
        compare(f"y of {queries} queries and {cached + queries} keys", a, b, False)
