"""One edit to a graph that fuses: what `list` says of it names the node that was edited, and what it found there."""

from __future__ import annotations

import json
from pathlib import Path

import onnx
import pytest
from conftest import run_ok
from onnx import TensorProto, helper

RMS = ["sq = Pow (x, two)", "me = ReduceMean <axes = [-1], keepdims = 1> (sq)", "va = Add (me, eps)", "rt = Sqrt (va)", "n = Div (x, rt)",
       "y = Mul (n, w)"]
LAYER = ["mu = ReduceMean <axes = [-1], keepdims = 1> (x)", "d = Sub (x, mu)", "sq = Pow (d, two)",
         "va = ReduceMean <axes = [-1], keepdims = 1> (sq)", "ve = Add (va, eps)", "rt = Sqrt (ve)", "n = Div (d, rt)", "g = Mul (n, w)",
         "y = Add (g, b)"]
GELU = ["dv = Div (x, root)", "er = Erf (dv)", "pl = Add (er, one)", "ml = Mul (x, pl)", "y = Mul (ml, half)"]
GELU_TANH = ["p3 = Pow (x, three)", "c3 = Mul (p3, c44)", "sm = Add (x, c3)", "sc = Mul (sm, c79)", "th = Tanh (sc)", "pl = Add (th, one)",
             "hx = Mul (x, half)", "y = Mul (hx, pl)"]
ROWS = ("float[2, 16, 64] x", "float[2, 16, 64] y")
GRAPHS = {"rms_norm": (RMS, *ROWS), "layer_norm": (LAYER, *ROWS), "gelu": (GELU, *ROWS), "gelu_tanh": (GELU_TANH, *ROWS)}
FLOATS = {"two": 2.0, "eps": 1e-6, "root": 1.4142135, "one": 1.0, "half": 0.5, "three": 3.0, "c44": 0.044715, "c79": 0.7978845608,
          "near": 1.5, "large": 7.0, "nine": 0.9}

# Which graph, the node that is written anew, and a word of what is found there.
FAULTS = [
    ("rms_norm", "sq = Pow (x, three)", "three"),
    ("rms_norm", "sq = Pow (x, near)", "near"),
    ("rms_norm", "va = Sub (me, eps)", "Sub"),
    ("rms_norm", "rt = Exp (va)", "Exp"),
    ("rms_norm", "rt = Log (va)", "Log"),
    ("rms_norm", "rt = Abs (va)", "Abs"),
    ("layer_norm", "va = ReduceMax <axes = [-1], keepdims = 1> (sq)", "ReduceMax"),
    ("layer_norm", "va = ReduceSum <keepdims = 1> (sq)", "ReduceSum"),
    ("layer_norm", "sq = Pow (d, three)", "three"),
    ("layer_norm", "sq = Pow (d, half)", "half"),
    ("layer_norm", "rt = Exp (ve)", "Exp"),
    ("layer_norm", "rt = Neg (ve)", "Neg"),
    ("gelu", "dv = Div (x, two)", "two"),
    ("gelu", "dv = Div (x, near)", "near"),
    ("gelu", "pl = Add (er, two)", "two"),
    ("gelu", "pl = Add (er, large)", "large"),
    ("gelu_tanh", "c3 = Mul (p3, half)", "half"),
    ("gelu_tanh", "c3 = Mul (p3, large)", "large"),
    ("gelu_tanh", "sc = Mul (sm, nine)", "nine"),
    ("gelu_tanh", "sc = Mul (sm, two)", "two"),
    ("gelu_tanh", "p3 = Pow (x, two)", "two"),
    ("gelu_tanh", "p3 = Pow (x, near)", "near"),
]


def write(lines: list[str], given: str, gives: str, path: Path) -> None:
    model = onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["" : 17]> g ({given}) => ({gives}) {{ {" ".join(lines)} }}')
    read = {name for node in model.graph.node for name in node.input}
    for name, number in FLOATS.items():
        if name in read:
            model.graph.initializer.append(helper.make_tensor(name, TensorProto.FLOAT, [], [number]))
    for name in read & {"w", "b"}:
        model.graph.initializer.append(helper.make_tensor(name, TensorProto.FLOAT, [64], [0.5] * 64))
    for node in model.graph.node:
        node.name = f"node_{node.output[0]}"
    onnx.save(model, path)


@pytest.mark.parametrize("graph", GRAPHS)
def test_without_a_fault_it_is_recognised(graph: str, tmp_path: Path) -> None:
    write(*GRAPHS[graph], tmp_path / "m.onnx")
    report = json.loads(run_ok("list", tmp_path / "m.onnx", "--json", "-").out)
    assert [site["kind"] for site in report["sites"]] == [graph.removesuffix("_tanh")]
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
