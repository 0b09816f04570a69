"""Facts behind and inside the bodies of If, Loop and Scan, nested, and behind functions, against what ONNX Runtime
computes: every value of every body is made visible (body_values.py), under several bindings of the symbols."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import numpy as np
import onnx
import onnx.parser
import pytest
from check_inference import check_observed, observe
from conftest import run_ok

from ascend_fuse.session import plain_session

REPOSITORY = Path(__file__).resolve().parents[2]
TOOL = Path(os.environ.get("ASCEND_FUSE_BUILD", REPOSITORY / "build")) / "tests" / "infer_tool"

BINDINGS = [
    {"n": 2, "k": 3, "m": 3, "t": 4, "b": 2, "c": True},
    {"n": 5, "k": 1, "m": 1, "t": 1, "b": 1, "c": False},
    {"n": 1, "k": 4, "m": 2, "t": 3, "b": 3, "c": True},
    {"n": 4, "k": 2, "m": 0, "t": 2, "b": 2, "c": False},
]

# name: (graph and functions, values whose shape inference does not know in full)
MODELS = {
    "branches": ("""g (bool c, float[n, 4] x, float[k, 4] y) => (z, w, s) {
        z, w, s = If (c) <
          then_branch = t () => (a, a2, a3) {
            a = Relu (x)
            p = Add (x, a)
            a2 = Transpose (p)
            a3 = Shape (a)
          },
          else_branch = e () => (e1, e2, e3) {
            e1 = Concat <axis = 0> (y, x)
            q = Neg (x)
            e2 = Transpose (q)
            e3 = Shape (e2)
          }>
        }""", {"z"}),
    "a broadcast that one branch decides": ("""g (bool c, float[n] x, float[k] y, float[n, 4] w) => (z) {
        u = Add (x, x)
        z = If (c) <
          then_branch = t () => (a) { s = Add (x, u)
                                      a = MatMul (s, w) },
          else_branch = e () => (e1) { r = ReduceSum <keepdims = 1> (y)
                                       f = Constant <value_floats = [1.0, 2.0, 3.0, 4.0]> ()
                                       e1 = Mul (r, f) }>
        }""", set()),
    "an accumulator": ("""g (int64 m, bool c, float[n, 4] x) => (y, all) {
        yes = Constant <value = bool {1}> ()
        y, all = Loop (m, yes, x) <body = b (int64 i, bool c1, float[] v) => (bool c2, float[] w, float[] o) {
          c2 = Identity (c1)
          f = Cast <to = 1> (i)
          h = Add (v, f)
          w = Add (h, x)
          o = Concat <axis = 1> (w, x)
        }>
        }""", {"all"}),
    "what grows": ("""g (int64 m, bool c, float[n, 4] x) => (y) {
        y = Loop (m, , x) <body = b (int64 i, bool c1, float[] v) => (bool c2, float[] w) {
          c2 = Identity (c1)
          r = Relu (v)
          w = Concat <axis = 0> (r, x)
          s = Shape (w)
        }>
        }""", {"y", "v", "r", "w"}),
    "what changes places": ("""g (int64 m, float[n, 4] x) => (y) {
        y = Loop (m, , x) <body = b (int64 i, bool c1, float[] v) => (bool c2, float[] w) {
          c2 = Identity (c1)
          w = Transpose (v)
        }>
        }""", {"y", "v", "w"}),
    "a rank that changes": ("""g (int64 m, float[n, 4] x) => (y) {
        a = Constant <value_ints = [0]> ()
        y = Loop (m, , x) <body = b (int64 i, bool c1, float[] v) => (bool c2, float[] w) {
          c2 = Identity (c1)
          w = Unsqueeze (v, a)
        }>
        }""", {"y", "v", "w"}),
    "an end that data decide": ("""g (int64 m, bool c, float[n, 4] x) => (y, all) {
        y, all = Loop (m, c, x) <body = b (int64 i, bool c1, float[] v) => (bool c2, float[] w, float[] o) {
          one = Constant <value_int = 1> ()
          c2 = Less (i, one)
          w = Relu (v)
          o = ReduceSum <keepdims = 0> (w)
        }>
        }""", {"all"}),
    "loops in branches in loops": ("""g (int64 m, bool c, float[n, 4] x, float[k, 4] z) => (y) {
        y = Loop (m, , x) <body = b (int64 i, bool c1, float[] v) => (bool c2, float[] w) {
          c2 = Identity (c1)
          w = If (c) <
            then_branch = t () => (a) {
              a, as = Loop (m, , v) <body = b2 (int64 j, bool d1, float[] u) => (bool d2, float[] r, float[] q) {
                d2 = Identity (d1)
                r = Add (u, x)
                q = Concat <axis = 0> (u, z)
              }>
            },
            else_branch = e () => (e1) { l = Neg (v)
                                         e1 = Mul (l, x) }>
        }>
        }""", {"as"}),
    "a scan": ("""g (float[b, 8] state, float[t, b, 8] x, float[b, t, 2] z) => (y, all, turned) {
        y, all, turned = Scan <num_scan_inputs = 2, scan_input_axes = [0, 1], scan_output_axes = [1, -1],
          body = body (float[] s, float[] e, float[] f) => (float[] s2, float[] o, float[] p) {
            s2 = Add (s, e)
            o = Concat <axis = 1> (s2, f)
            p = Transpose (s)
          }> (state, x, z)
        }""", set()),
    "functions in loops": ("""g (int64 m, float[n, 4] x, float[k, 3] z) => (y, u) {
        y = local.twice (x)
        u = Loop (m, , z) <body = b (int64 i, bool c1, float[] v) => (bool c2, float[] w) {
          c2 = Identity (c1)
          h = local.twice (v)
          w = Relu (h)
        }>
        }
        <domain: "local", opset_import: ["" : 18, "local" : 1]>
        once (a) => (r) { r = Add (a, a) }
        <domain: "local", opset_import: ["" : 18, "local" : 1]>
        twice (a) => (r) {
          q = local.once (a)
          r = local.once (q)
        }""", set()),
}


def feeds_of(model: onnx.ModelProto, binding: dict[str, int]) -> dict[str, np.ndarray]:
    random = np.random.default_rng(1)
    feeds = {}
    for value in model.graph.input:
        shape = [d.dim_value or binding[d.dim_param] for d in value.type.tensor_type.shape.dim]
        if value.type.tensor_type.elem_type == onnx.TensorProto.FLOAT:
            feeds[value.name] = random.standard_normal(shape).astype(np.float32)
        else:
            dtype = onnx.helper.tensor_dtype_to_np_dtype(value.type.tensor_type.elem_type)
            feeds[value.name] = np.array(binding[value.name], dtype)
    return feeds


@pytest.mark.parametrize("name", MODELS)
def test_every_value_of_every_body(name: str, tmp_path: Path):
    text, vague = MODELS[name]
    model = onnx.parser.parse_model(f'<ir_version: 10, opset_import: ["" : 18, "local" : 1]>\n{text}')
    path = tmp_path / "model.onnx"
    onnx.save(model, path)
    # What a loop that never turns stacks up has the shape [0] in ONNX Runtime, whatever its body gives.
    stacks = any(n.op_type == "Loop" and len(n.output) > len(n.input) - 2 for n in model.graph.node)
    bindings = [b for b in BINDINGS if b["m"] > 0 or not stacks]
    assert len(bindings) >= 3
    facts, problems, runs = observe(path, [(str(b), feeds_of(model, b)) for b in bindings], TOOL)
    assert sum(f["body"] for f in facts) > 0
    checked = set()
    for run in runs:
        problems += check_observed(facts, run, checked)
    assert problems == []
    assert {f["name"] for f in facts} == checked, "every value was seen in at least one run"
    assert {f["name"] for f in facts if f["fresh"]} == vague


def test_a_contradiction_would_be_seen(tmp_path: Path):
    text, _ = MODELS["an accumulator"]
    model = onnx.parser.parse_model(f'<ir_version: 10, opset_import: ["" : 18, "local" : 1]>\n{text}')
    path = tmp_path / "model.onnx"
    onnx.save(model, path)
    facts, _, runs = observe(path, [("one", feeds_of(model, BINDINGS[0]))], TOOL)
    wrong = next(f for f in facts if f["name"] == "o")
    wrong["shape"][1] = 9
    assert check_observed(facts, runs[0], set()) != []


SCAN = """<ir_version: 8, opset_import: ["" : 14]>
g (int64[n] a, int64[n] b, float[n, 4] x, float[3, 4] elements) => (float[n, 4] y)
<int64[1] one = {1}, float zero = {0}>
{
  above = Greater (a, b)
  keep = Not (above)
  rows = Unsqueeze (keep, one)
  kept = Where (rows, x, zero)
  y = Scan <num_scan_inputs = 1, body = body (float[] state, float[4] element) => (float[] sum) { sum = Add (state, element) }>
      (kept, elements)
}
"""


def test_a_scan_runs_after_what_was_rewritten(tmp_path: Path):
    """ONNX Runtime knows no shape of a LessOrEqual before opset 16, and runs no Scan whose results have no rank that it knows."""
    source, written = tmp_path / "m.onnx", tmp_path / "o.onnx"
    onnx.save(onnx.parser.parse_model(SCAN), source)
    run_ok("optimize", source, "-o", written, "--force", "--quiet")
    assert "LessOrEqual" in {node.op_type for node in onnx.load(written).graph.node}
    rng = np.random.default_rng(1)
    feeds = {"a": rng.integers(0, 3, 5), "b": rng.integers(0, 3, 5)}
    feeds |= {"x": rng.standard_normal((5, 4)).astype(np.float32), "elements": np.ones((3, 4), np.float32)}
    expected, found = (plain_session(str(path)).run(None, feeds)[0] for path in (source, written))
    np.testing.assert_array_equal(expected, found)


# An Identity that is taken away, so that the body reads a value whose name it has itself.
HIDING = {
    "an initializer": """g (float[2] in, bool c) => (float[2] y) {
        r = Sin (in)
        x = Identity (r)
        y = If (c) <then_branch = t () => (float[2] a) <float[2] r = {10, 20}> { a = Add (x, r) },
                    else_branch = e () => (float[2] b) { b = Neg (x) }>
        }""",
    "that of the other branch": """g (float[2] in, bool c) => (float[2] y) {
        r = Sin (in)
        x = Identity (r)
        y = If (c) <then_branch = t () => (float[2] a) <float[2] r = {10, 20}> { a = Add (in, r) },
                    else_branch = e () => (float[2] b) { b = Neg (x) }>
        }""",
    "carried": """g (float[2] in, bool c) => (float[2] y) <int64 k = {3}> {
        r = Sin (in)
        x = Identity (r)
        y = Loop (k, c, in) <body = b (int64 i, bool more, float[2] r) => (bool again, float[2] o) {
          o = Add (x, r)
          again = Identity (more) }>
        }""",
    "a slice": """g (float[2] in, bool c) => (float[2] y, float[2, 2] all) {
        r = Sin (in)
        x = Identity (r)
        s = Concat <axis = 0> (r, in)
        two = Constant <value = int64[2] {2, 2}> ()
        rows = Reshape (s, two)
        y, all = Scan <num_scan_inputs = 1, body = b (float[2] in, float[2] r) => (float[2] o, float[2] copy) {
          p = Mul (x, r)
          o = Add (p, in)
          copy = Identity (r) }> (in, rows)
        }""",
    "read in a body of the body": """g (float[2] in, bool c) => (float[2] y) <int64 k = {3}> {
        r = Sin (in)
        x = Identity (r)
        y = Loop (k, c, in) <body = b (int64 i, bool more, float[2] r) => (bool again, float[2] o) {
          n = Identity (more)
          o = If (n) <then_branch = t () => (float[2] a) { p = Add (x, r)
                                                           a = Mul (p, x) },
                      else_branch = e () => (float[2] b) <float[2] in = {7, 9}> { q = Mul (r, in)
                                                                                 b = Sub (q, x) }>
          again = Identity (more) }>
        }""",
    "given as it came": """g (float[2] in, bool c) => (float[2] y) <int64 k = {3}> {
        r = Sin (in)
        x = Identity (r)
        y0, y1 = Loop (k, c, in, in) <body = b (int64 i, bool more, float[2] r, float[2] v) => (bool more, float[2] o, float[2] r) {
          o = Add (x, v) }>
        y = Sub (y0, y1)
        }""",
}


@pytest.mark.parametrize("name", HIDING)
def test_a_body_that_has_the_name_of_a_value_around_it(name: str, tmp_path: Path) -> None:
    """Found by optimize_fuzz: ONNX and ONNX Runtime take such bodies. The one of the body gets another name."""
    model = onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["" : 17]> {HIDING[name]}')
    onnx.checker.check_model(model)
    onnx.save(model, tmp_path / "m.onnx")
    run_ok("optimize", tmp_path / "m.onnx", "-o", tmp_path / "o.onnx", "--tidy", "exact", "--force")  # stock ATC has no Loop
    optimized = onnx.load(tmp_path / "o.onnx")
    onnx.checker.check_model(optimized)
    assert "Identity" not in {node.op_type for node in optimized.graph.node}
    for c in (True, False):
        feeds = {"in": np.array([1, -1], np.float32), "c": np.array(c)}
        expected = plain_session(tmp_path / "m.onnx").run(None, feeds)
        for one, other in zip(expected, plain_session(tmp_path / "o.onnx").run(None, feeds)):
            np.testing.assert_array_equal(one, other)
