"""One edit to a graph that fuses: what `list` says of it names the node that was edited, and what it found there."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import onnx
import pytest
from conftest import run_ok
from onnx import numpy_helper, shape_inference

RMS = ["sq = Pow (x, two)", "me = ReduceMean <axes = [-1], keepdims = 1> (sq)", "va = Add (me, eps)", "rt = Sqrt (va)", "n = Div (x, rt)",
       "y = Mul (n, w)"]
LAYER = ["mu = ReduceMean <axes = [-1], keepdims = 1> (x)", "d = Sub (x, mu)", "sq = Pow (d, two)",
         "va = ReduceMean <axes = [-1], keepdims = 1> (sq)", "ve = Add (va, eps)", "rt = Sqrt (ve)", "n = Div (d, rt)", "g = Mul (n, w)",
         "y = Add (g, b)"]
GELU = ["dv = Div (x, root)", "er = Erf (dv)", "pl = Add (er, one)", "ml = Mul (x, pl)", "y = Mul (ml, half)"]
GELU_TANH = ["p3 = Pow (x, three)", "c3 = Mul (p3, c44)", "sm = Add (x, c3)", "sc = Mul (sm, c79)", "th = Tanh (sc)", "pl = Add (th, one)",
             "hx = Mul (x, half)", "y = Mul (hx, pl)"]
QUICK_GELU = ["sc = Mul (x, c17)", "sg = Sigmoid (sc)", "y = Mul (x, sg)"]
HARD_SWISH = ["a = Add (x, three)", "c = Clip (a, zero, six)", "m = Mul (x, c)", "y = Div (m, six)"]
MISH = ["e = Exp (x)", "p = Add (e, one)", "l = Log (p)", "t = Tanh (l)", "y = Mul (x, t)"]
ROTARY = ["lo = Slice (x, at_0, at_32, last)", "hi = Slice (x, at_32, to_end, last)", "ng = Neg (hi)", "ro = Concat <axis = -1> (ng, lo)",
          "xc = Mul (x, cos)", "xs = Mul (ro, sin)", "y = Add (xc, xs)"]
ATTENTION = ["q = MatMul (x, m1)", "k = MatMul (x, m2)", "v = MatMul (x, m3)", "q4 = Reshape (q, heads)", "k4 = Reshape (k, heads)",
             "v4 = Reshape (v, heads)", "qt = Transpose <perm = [0, 2, 1, 3]> (q4)", "kt = Transpose <perm = [0, 2, 3, 1]> (k4)",
             "vt = Transpose <perm = [0, 2, 1, 3]> (v4)", "s = MatMul (qt, kt)", "sc = Mul (s, scale)", "sm = Add (sc, mask)",
             "p = Softmax <axis = -1> (sm)", "o = MatMul (p, vt)", "ot = Transpose <perm = [0, 2, 1, 3]> (o)", "of = Reshape (ot, rows)",
             "y = MatMul (of, m4)"]
ROWS = ("float[2, 16, 64] x", "float[2, 16, 64] y")
HEADS = ("float[2, 4, 16, 64] x, float[1, 1, 16, 64] cos, float[1, 1, 16, 64] sin", "float[2, 4, 16, 64] y")
GRAPHS = {"rms_norm": (RMS, *ROWS), "layer_norm": (LAYER, *ROWS), "gelu": (GELU, *ROWS), "gelu_tanh": (GELU_TANH, *ROWS),
          "quick_gelu": (QUICK_GELU, *ROWS), "hard_swish": (HARD_SWISH, *ROWS), "mish": (MISH, *ROWS), "rotary": (ROTARY, *HEADS),
          "attention": (ATTENTION, *ROWS)}
KINDS = {"gelu_tanh": "gelu", "quick_gelu": "gelu"}  # of sites, where it is not the name of the graph
FLOATS = {"two": 2.0, "eps": 1e-6, "root": 1.4142135, "one": 1.0, "half": 0.5, "three": 3.0, "c44": 0.044715, "c79": 0.7978845608,
          "near": 1.5, "large": 7.0, "nine": 0.9, "six": 6.0, "five": 5.0, "zero": 0.0, "c17": 1.702, "scale": 0.25}
INTEGERS = {"at_0": [0], "at_32": [32], "to_end": [2**63 - 1], "last": [-1], "heads": [2, 16, 4, 16], "rows": [2, 16, 64]}
CAUSAL = np.triu(np.full((1, 1, 16, 16), -np.inf, np.float32), 1)
WEIGHTS = {name: np.linspace(-1, 1, 4096, dtype=np.float32).reshape(64, 64) for name in ("m1", "m2", "m3", "m4")}
ARRAYS = {"mask": CAUSAL, "keys": np.linspace(0.5, 1, 16, dtype=np.float32), "w": np.full(64, 0.5, np.float32), "b": np.full(64, 0.5, np.float32)}

# Which graph, the node that is written anew, and a word of what is found there.
FAULTS = [
    ("rms_norm", "sq = Pow (x, three)", "three"),
    ("rms_norm", "sq = Pow (x, near)", "near"),
    ("rms_norm", "sq = Abs (x)", "Abs"),
    ("rms_norm", "sq = Exp (x)", "Exp"),
    ("rms_norm", "me = ReduceMax <axes = [-1], keepdims = 1> (sq)", "ReduceMax"),
    ("rms_norm", "me = ReduceMin <axes = [-1], keepdims = 1> (sq)", "ReduceMin"),
    ("rms_norm", "va = Sub (me, eps)", "Sub"),
    ("rms_norm", "va = Add (me, w)", "w (float[64]) is not a constant number"),
    ("rms_norm", "rt = Exp (va)", "Exp"),
    ("rms_norm", "rt = Log (va)", "Log"),
    ("rms_norm", "rt = Abs (va)", "Abs"),
    ("rms_norm", "n = Mul (x, rt)", "Mul"),
    ("rms_norm", "n = Sub (x, rt)", "Sub"),
    ("rms_norm", "n = Max (x, rt)", "Max"),
    ("layer_norm", "sq = Pow (d, three)", "three"),
    ("layer_norm", "sq = Pow (d, half)", "half"),
    ("layer_norm", "sq = Abs (d)", "Abs"),
    ("layer_norm", "sq = Mul (d, x)", "x"),
    ("layer_norm", "va = ReduceMax <axes = [-1], keepdims = 1> (sq)", "ReduceMax"),
    ("layer_norm", "va = ReduceSum <keepdims = 1> (sq)", "ReduceSum"),
    ("layer_norm", "ve = Sub (va, eps)", "Sub"),
    ("layer_norm", "rt = Exp (ve)", "Exp"),
    ("layer_norm", "rt = Neg (ve)", "Neg"),
    ("layer_norm", "n = Mul (d, rt)", "Mul"),
    ("layer_norm", "n = Sub (d, rt)", "Sub"),
    ("gelu", "dv = Div (x, two)", "two"),
    ("gelu", "dv = Div (x, near)", "near"),
    ("gelu", "dv = Mul (x, root)", "root"),
    ("gelu", "er = Tanh (dv)", "Tanh"),
    ("gelu", "pl = Add (er, two)", "two"),
    ("gelu", "pl = Add (er, large)", "large"),
    ("gelu", "pl = Sub (er, one)", "Sub"),
    ("gelu", "ml = Add (x, pl)", "Add"),
    ("gelu_tanh", "p3 = Pow (x, two)", "two"),
    ("gelu_tanh", "p3 = Pow (x, near)", "near"),
    ("gelu_tanh", "c3 = Mul (p3, half)", "half"),
    ("gelu_tanh", "c3 = Mul (p3, large)", "large"),
    ("gelu_tanh", "sm = Sub (x, c3)", "Sub"),
    ("gelu_tanh", "sc = Mul (sm, nine)", "nine"),
    ("gelu_tanh", "sc = Mul (sm, two)", "two"),
    ("gelu_tanh", "th = Sigmoid (sc)", "Sigmoid"),
    ("gelu_tanh", "pl = Add (th, two)", "two"),
    ("gelu_tanh", "hx = Mul (x, nine)", "nine"),
    ("quick_gelu", "sc = Mul (x, near)", "near"),
    ("quick_gelu", "sc = Add (x, c17)", "Add"),
    ("hard_swish", "a = Add (x, two)", "two"),
    ("hard_swish", "a = Sub (x, three)", "Sub"),
    ("hard_swish", "c = Clip (a, zero, five)", "max = 5"),
    ("hard_swish", "c = Clip (a, one, six)", "min = 1"),
    ("hard_swish", "m = Add (x, c)", "Add"),
    ("hard_swish", "y = Div (m, five)", "five"),
    ("mish", "e = Abs (x)", "Abs"),
    ("mish", "p = Add (e, two)", "two"),
    ("mish", "p = Mul (e, one)", "Mul"),
    ("mish", "l = Sqrt (p)", "Sqrt"),
    ("mish", "t = Sigmoid (l)", "Sigmoid"),
    ("rotary", "ro = Concat <axis = -1> (lo, ng)", "channel 0 stays in its place"),
    ("rotary", "ro = Concat <axis = -1> (ng, hi)", "channel 32 stays in its place"),
    ("rotary", "xc = Add (x, cos)", "Add"),
    ("rotary", "xs = Div (ro, sin)", "Div"),
    ("attention", "sc = Mul (s, keys)", "keys, which is not the same for all keys"),
    ("attention", "sc = Sqrt (s)", "Sqrt"),
    ("attention", "sc = Abs (s)", "Abs"),
    ("attention", "sc = Relu (s)", "Relu"),
    ("attention", "sc = Exp (s)", "Exp"),
    ("attention", "sc = Pow (s, two)", "Pow"),
    ("attention", "sc = Div (scale, s)", "Div"),
    ("attention", "sm = Mul (sc, mask)", "multiplied by mask"),
    ("attention", "sm = Max (sc, mask)", "Max"),
    ("attention", "sm = Min (sc, mask)", "Min"),
    ("attention", "p = Softmax <axis = 0> (sm)", "axis 0"),
    ("attention", "p = Softmax <axis = 1> (sm)", "axis 1"),
    ("attention", "p = Softmax <axis = 2> (sm)", "axis 2"),
]


def write(lines: list[str], given: str, gives: str, path: Path) -> None:
    model = onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["" : 17]> g ({given}) => ({gives}) {{ {" ".join(lines)} }}')
    constants = {name: np.array(number, np.float32) for name, number in FLOATS.items()} | ARRAYS | WEIGHTS
    constants |= {name: np.array(numbers, np.int64) for name, numbers in INTEGERS.items()}
    read = {name for node in model.graph.node for name in node.input}
    model.graph.initializer.extend(numpy_helper.from_array(constants[name], name) for name in sorted(read & set(constants)))
    for node in model.graph.node:
        node.name = f"node_{node.output[0]}"
    shape_inference.infer_shapes(model, strict_mode=True)  # the edited model is a model
    onnx.save(model, path)


@pytest.mark.parametrize("graph", GRAPHS)
def test_without_a_fault_it_is_recognised(graph: str, tmp_path: Path) -> None:
    write(*GRAPHS[graph], tmp_path / "m.onnx")
    report = json.loads(run_ok("list", tmp_path / "m.onnx", "--json", "-").out)
    assert [(site["kind"], site["state"] != "left") for site in report["sites"]] == [(KINDS.get(graph, graph), True)]
    assert report["near_misses"] == []


@pytest.mark.parametrize(("graph", "line", "found"), FAULTS)
def test_the_edited_node_is_named(graph: str, line: str, found: str, tmp_path: Path) -> None:
    lines, given, gives = GRAPHS[graph]
    node = line.split(" = ")[0]
    edited = [line if other.startswith(f"{node} = ") else other for other in lines]
    assert edited != lines
    write(edited, given, gives, tmp_path / "m.onnx")
    report = json.loads(run_ok("list", tmp_path / "m.onnx", "--json", "-").out)
    said = [(miss["stopped_by"], f"{miss['expected']} {miss['found']}") for miss in report["near_misses"]]
    assert any(stopped == f"node_{node}" and found in words for stopped, words in said), f"{said}, sites {report['sites']}"
