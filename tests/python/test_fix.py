"""`--fix NAME=N`: symbolic dims become numbers of the model, and what follows from them constants."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx.checker
import onnx.parser
import pytest
from conftest import run, run_ok

import fill
import zoo_numbers
from ascend_fuse.inputs import make_inputs
from ascend_fuse.session import plain_session

TEXT = """<ir_version: 8, opset_import: ["" : 17]>
g (float[batch, seq, 4] x, float[batch, past, 4] p) => (float[batch, SUM, 4] y, float[N, M] z)
<int64[1] four = {4}, int64[1] rest = {-1}, int64 zero = {0}, int64 one = {1}>
{
  y = Concat <axis = 1> (p, x)
  s = Shape (x)
  b = Gather (s, zero)
  l = Gather (s, one)
  n = Mul (b, l)
  axes = Constant <value = int64[1] {0}> ()
  rows = Unsqueeze (n, axes)
  dims = Concat <axis = 0> (rows, four)
  z = Reshape (x, dims)
}
"""


def save(tmp_path: Path) -> Path:
    model = onnx.parser.parse_model(TEXT)
    model.graph.output[0].type.tensor_type.shape.dim[1].dim_param = "past + seq"  # as exporters write it
    onnx.save(model, tmp_path / "m.onnx")
    return tmp_path / "m.onnx"


def shapes(values: Any) -> dict[str, list[int | str]]:
    return {value.name: [dim.dim_value if dim.HasField("dim_value") else dim.dim_param
                         for dim in value.type.tensor_type.shape.dim] for value in values}


def test_numbers_stand_in_inputs_and_outputs(tmp_path: Path) -> None:
    source, written = save(tmp_path), tmp_path / "o.onnx"
    result = run_ok("optimize", source, "-o", written, "--fix", "batch=2", "--fix", "seq=3", "--json", "-")
    model = onnx.load(written)
    onnx.checker.check_model(model, full_check=True)
    assert shapes(model.graph.input) == {"x": [2, 3, 4], "p": [2, "past", 4]}
    assert shapes(model.graph.output) == {"y": [2, "past + 3", 4], "z": [6, 4]}
    # The arithmetic of the shape is one constant now.
    assert [node.op_type for node in model.graph.node] == ["Concat", "Reshape"]
    told = {w["code"]: w["message"] for w in json.loads(result.out)["warnings"]}
    assert told["dims-fixed"].startswith("the model is for batch = 2, seq = 3 only; 7 node(s) became constants")
    rng = np.random.default_rng(1)
    feeds = {"x": rng.standard_normal((2, 3, 4)).astype(np.float32), "p": rng.standard_normal((2, 5, 4)).astype(np.float32)}
    for a, b in zip(plain_session(str(source)).run(None, feeds), plain_session(str(written)).run(None, feeds), strict=True):
        np.testing.assert_array_equal(a, b)
    run_ok("optimize", written, "-o", tmp_path / "again.onnx")
    assert (tmp_path / "again.onnx").read_bytes() == written.read_bytes()


def test_a_dim_without_a_name_is_called_by_its_place(tmp_path: Path) -> None:
    source, written = save(tmp_path), tmp_path / "o.onnx"
    model = onnx.load(source)
    model.graph.input[0].type.tensor_type.shape.dim[1].Clear()
    onnx.save(model, source)
    run_ok("optimize", source, "-o", written, "--fix", "batch=2", "--fix", "x_d1=3", "--json", "-")
    assert shapes(onnx.load(written).graph.input) == {"x": [2, 3, 4], "p": [2, "past", 4]}
    assert shapes(onnx.load(written).graph.output)["z"] == [6, 4]
    result = run_ok("list", source, "--dim", "batch=2", "x_d1=1..8", "--json", "-")
    assert "dim-unknown" not in [w["code"] for w in json.loads(result.out)["warnings"]]


def test_without_it_nothing_is_folded(tmp_path: Path) -> None:
    source = save(tmp_path)
    run_ok("optimize", source, "-o", tmp_path / "o.onnx", "--dim", "batch=2", "--dim", "seq=3", "--keep-rest")
    assert (tmp_path / "o.onnx").read_bytes() == source.read_bytes()


def test_list_and_check_know_the_numbers_and_write_nothing(tmp_path: Path) -> None:
    source = save(tmp_path)
    before = source.read_bytes()
    result = run_ok("list", source, "--fix", "seq=3", "--json", "-")
    assert "dims-fixed" in [w["code"] for w in json.loads(result.out)["warnings"]]
    run_ok("check", source, "--fix", "seq=3")
    assert source.read_bytes() == before


@pytest.mark.parametrize("flags, sentence", [
    (("--fix", "sequence=3"), "no input of the model has a dim of that name; there are batch, past, seq"),
    (("--fix", "seq=1..3"), "expected name=N"),
    (("--fix", "seq"), "expected name=N"),
    (("--fix", "seq=3", "--dim", "seq=4"), "bound twice"),
])
def test_mistakes(flags: tuple[str, ...], sentence: str, tmp_path: Path) -> None:
    result = run("optimize", save(tmp_path), "-o", tmp_path / "o.onnx", *flags)
    assert result.code != 0 and sentence in result.err
    assert not (tmp_path / "o.onnx").exists()


ENTRIES = {entry["id"]: entry for entry in fill.load_manifest()["models"]}
PAIRS = [("llama-sdpa-nocache-ts17-dynamic", "llama-sdpa-nocache-ts17-static"),
         ("llama-sdpa-past-dy18-dynamic", "llama-sdpa-past-dy18-static"),
         ("bert-sdpa-ts17-dynamic", "bert-sdpa-ts17-static"),
         ("gpt2-sdpa-past-ts17-dynamic", "gpt2-sdpa-past-ts17-static")]


def bindings_of(entry: dict[str, Any], feeds: dict[str, np.ndarray]) -> dict[str, int]:
    """The numbers of plain symbols under the feeds of a binding."""
    numbers: dict[str, int] = {}
    for given in entry["inputs"]:
        for dim, length in zip(given["shape"], feeds[given["name"]].shape, strict=True):
            if isinstance(dim, str) and dim.isidentifier():
                numbers[dim] = length
    return numbers


@pytest.mark.parametrize("dynamic, static", [pair for pair in PAIRS if all(name in ENTRIES for name in pair)])
def test_a_dynamic_export_becomes_what_a_static_one_is(dynamic: str, static: str, zoo: Path, tmp_path: Path) -> None:
    """The same sites are fused as in the static export, and the numbers are those of the export."""
    entry = ENTRIES[dynamic]
    source, written, expanded = zoo / f"{dynamic}.onnx", tmp_path / "o.onnx", tmp_path / "e.onnx"
    feeds = make_inputs(entry, entry["bindings"][0])
    fixes = [word for name, number in bindings_of(entry, feeds).items() for word in ("--fix", f"{name}={number}")]
    result = run_ok("optimize", source, "-o", written, "--json", "-", *fixes)
    report = json.loads(result.out)
    of_static = json.loads(run_ok("list", zoo / f"{static}.onnx", "--json", "-").out)
    for kind, count in of_static["summary"]["sites"].items():
        found = report["summary"]["sites"][kind]
        assert (found["found"], found["fused"]) == (count["found"], count["fused"]), (kind, found, count)
    model = onnx.load(written)
    assert all(isinstance(dim, int) for dims in shapes(model.graph.input).values() for dim in dims), shapes(model.graph.input)
    run_ok("expand", written, "-o", expanded)
    session = plain_session(str(expanded))
    names = [output.name for output in session.get_outputs()]
    found_numbers = dict(zip(names, session.run(None, feeds), strict=True))
    original = plain_session(str(source))
    for name, a in zip([o.name for o in original.get_outputs()], original.run(None, feeds), strict=True):
        keep = zoo_numbers.visible(feeds, a)
        error, _ = zoo_numbers.compare(a[keep], found_numbers[name][keep])
        assert error <= 1e-4, name


BRANCHES = """<ir_version: 8, opset_import: ["" : 17]>
g (float[rows, 4] x) => (float[rows, 4] y)
<int64 zero = {0}, int64 two = {2}>
{
  s = Shape (x)
  d = Gather (s, zero)
  c = Greater (d, two)
  a0 = Abs (x)
  y = If (c) <then_branch = t () => (a) { a1 = Relu (a0)
    a = Neg (a1) }, else_branch = e () => (b) { b = Identity (a0) }>
}
"""


@pytest.mark.parametrize("rows, operators", [(5, ["Abs", "Relu", "Neg", "Identity"]), (2, ["Abs", "Identity", "Identity"])])
def test_the_branch_that_a_number_chooses_takes_the_place_of_its_if(rows: int, operators: list[str], tmp_path: Path) -> None:
    source, written = tmp_path / "m.onnx", tmp_path / "o.onnx"
    onnx.save(onnx.parser.parse_model(BRANCHES), source)
    run_ok("optimize", source, "-o", written, "--keep-rest", "--fix", f"rows={rows}")
    model = onnx.load(written)
    onnx.checker.check_model(model, full_check=True)
    assert [node.op_type for node in model.graph.node] == operators
    x = np.random.default_rng(3).standard_normal((rows, 4)).astype(np.float32)
    for a, b in zip(plain_session(str(source)).run(None, {"x": x}), plain_session(str(written)).run(None, {"x": x}), strict=True):
        np.testing.assert_array_equal(a, b)
    # Without the number both branches stay.
    run_ok("optimize", source, "-o", written)
    assert [node.op_type for node in onnx.load(written).graph.node][-1] == "If"


def test_what_a_branch_leaves_out_stays_out(tmp_path: Path) -> None:
    """An output that is not written is not an operand that is not there."""
    model = onnx.parser.parse_model(BRANCHES)
    branch = next(a.g for a in model.graph.node[-1].attribute if a.name == "then_branch")
    del branch.node[:]
    branch.node.append(onnx.helper.make_node("Dropout", ["a0"], ["p", ""]))
    branch.node.append(onnx.helper.make_node("Clip", ["p", "", "most"], ["a"]))
    model.graph.initializer.append(onnx.numpy_helper.from_array(np.float32(0.5), "most"))
    onnx.save(model, tmp_path / "m.onnx")
    run_ok("optimize", tmp_path / "m.onnx", "-o", tmp_path / "o.onnx", "--fix", "rows=5", "--style", "X")
    x = np.random.default_rng(3).standard_normal((5, 4)).astype(np.float32)
    outputs = [plain_session(str(tmp_path / f"{name}.onnx")).run(None, {"x": x})[0] for name in ("m", "o")]
    np.testing.assert_array_equal(*outputs)


def test_inputs_keep_their_notes(tmp_path: Path) -> None:
    model = onnx.load(save(tmp_path))
    model.graph.input[0].doc_string = "tokens"
    model.graph.output[0].metadata_props.add(key="kind", value="cache")
    onnx.save(model, tmp_path / "m.onnx")
    result = run_ok("optimize", tmp_path / "m.onnx", "-o", tmp_path / "o.onnx", "--fix", "batch=2", "--json", "-")
    written = onnx.load(tmp_path / "o.onnx")
    assert written.graph.input[0].doc_string == "tokens"
    assert [(p.key, p.value) for p in written.graph.output[0].metadata_props] == [("kind", "cache")]
    assert shapes(written.graph.input)["x"][0] == 2
    # The name is not a dim of the model any more, which is not an error.
    assert "dim-unknown" not in [warning["code"] for warning in json.loads(result.out)["warnings"]]


NORM_IN_A_BRANCH = """<ir_version: 8, opset_import: ["" : 17]>
g (float[batch, seq, 64] x, float[64] gamma) => (float[batch, seq, 64] y)
<int64 one = {1}, int64 four = {4}, float eps = {0.000001}>
{
  shape = Shape (x)
  length = Gather (shape, one)
  long = Greater (length, four)
  y = If (long) <then_branch = then () => (float[batch, seq, 64] a) { a = Sigmoid (x) },
    else_branch = other () => (float[batch, seq, 64] b) {
      squares = Mul (x, x)
      mean = ReduceMean <axes = [-1], keepdims = 1> (squares)
      moved = Add (mean, eps)
      root = Sqrt (moved)
      normed = Div (x, root)
      scaled = Mul (normed, gamma)
      b = Add (scaled, x)
    }>
}
"""


def test_a_branch_with_a_node_that_was_made_last_stands_in_order(tmp_path: Path) -> None:
    """What was fused in the branch is the last of its nodes and the first in its order."""
    source, written = tmp_path / "m.onnx", tmp_path / "o.onnx"
    onnx.save(onnx.parser.parse_model(NORM_IN_A_BRANCH), source)
    run_ok("optimize", source, "-o", written, "--target", "ascend310p", "--fix", "seq=1")
    assert [node.op_type for node in onnx.load(written).graph.node] == ["NPURmsNorm", "Add"]
    run_ok("optimize", source, "-o", written, "--target", "ascend310p", "--fix", "seq=5")
    assert [node.op_type for node in onnx.load(written).graph.node] == ["Sigmoid"]


SUM_IN_A_BRANCH = """<ir_version: 8, opset_import: ["" : 17]>
g (float[batch, seq, 64] x, float[batch, seq, 64] r, float[64] gamma, float[64] beta) => (float[batch, seq, 64] y, float[batch, seq, 64] h)
<int64 one = {1}, int64 four = {4}>
{
  shape = Shape (x)
  length = Gather (shape, one)
  long = Greater (length, four)
  h = If (long) <then_branch = then () => (float[batch, seq, 64] a) { a = Sigmoid (x) },
    else_branch = other () => (float[batch, seq, 64] b) { b = Add (x, r) }>
  y = LayerNormalization <axis = -1, epsilon = 0.00001> (h, gamma, beta)
}
"""


def test_a_branch_is_decided_before_anything_is_looked_for(tmp_path: Path) -> None:
    """The sum in it and the norm after it are one node, and a second run finds nothing more."""
    source, written, again = tmp_path / "m.onnx", tmp_path / "o.onnx", tmp_path / "p.onnx"
    onnx.save(onnx.parser.parse_model(SUM_IN_A_BRANCH), source)
    flags = ("--target", "ascend310p", "--plugin")
    run_ok("optimize", source, "-o", written, *flags, "--fix", "seq=2")
    assert "NPUAddLayerNorm" in {node.op_type for node in onnx.load(written).graph.node}
    run_ok("optimize", written, "-o", again, *flags)
    assert again.read_bytes() == written.read_bytes()


# Of h, which an If gives, in operators that opset 11 has.
NORM_AFTER_A_BRANCH = """  mean = ReduceMean <axes = [-1]> (h)
  centred = Sub (h, mean)
  squares = Pow (centred, two)
  variance = ReduceMean <axes = [-1]> (squares)
  sum = Add (variance, epsilon)
  root = Sqrt (sum)
  standard = Div (centred, root)
  scaled = Mul (standard, gamma)
  y = Add (scaled, beta)
}
"""

SOFTMAX_IN_A_BRANCH = """<ir_version: 7, opset_import: ["" : 11]>
g (float[batch, seq, 64] x, float[64] gamma, float[64] beta) => (float[batch, seq, 64] y)
<int64 one = {1}, int64 four = {4}, float two = {2}, float epsilon = {0.00001}>
{
  shape = Shape (x)
  length = Gather (shape, one)
  long = Greater (length, four)
  h = If (long) <then_branch = then () => (float[batch, seq, 64] a) { a = Softmax <axis = 1> (x) },
    else_branch = other () => (float[batch, seq, 64] b) { b = Sigmoid (x) }>
""" + NORM_AFTER_A_BRANCH


def test_a_branch_that_is_not_taken_does_not_hold_the_opset(tmp_path: Path) -> None:
    """Its Softmax means another thing from opset 13 on, and no run has it."""
    source, written = tmp_path / "m.onnx", tmp_path / "o.onnx"
    onnx.save(onnx.parser.parse_model(SOFTMAX_IN_A_BRANCH), source)
    run_ok("optimize", source, "-o", written, "--target", "ascend910", "--fix", "seq=2")
    model = onnx.load(written)
    assert [node.op_type for node in model.graph.node] == ["Sigmoid", "LayerNormalization"]
    assert model.opset_import[0].version == 17


ROTATION_IN_A_BRANCH = """<ir_version: 7, opset_import: ["" : 11]>
g (float[batch, 3, seq, 4] x, float[1, 1, seq, 4] cos, float[1, 1, seq, 4] sin, float[4] gamma, float[4] beta) => (float[batch, 3, seq, 4] y)
<int64 tokens = {2}, int64 four = {4}, float two = {2}, float epsilon = {0.00001}>
{
  shape = Shape (x)
  length = Gather (shape, tokens)
  long = Greater (length, four)
  h = If (long) <then_branch = then () => (float[batch, 3, seq, 4] a) {
      low, high = Split <axis = 3, split = [2, 2]> (x)
      minus = Neg (high)
      turned = Concat <axis = 3> (minus, low)
      of_cos = Mul (x, cos)
      of_sin = Mul (turned, sin)
      a = Add (of_cos, of_sin) },
    else_branch = other () => (float[batch, 3, seq, 4] b) { b = Sigmoid (x) }>
""" + NORM_AFTER_A_BRANCH


def test_nodes_of_a_branch_are_written_at_the_raised_opset(tmp_path: Path) -> None:
    """Those of the rotation, which no node takes, come back: a Split has its sizes as an input from opset 13 on."""
    source, written = tmp_path / "m.onnx", tmp_path / "o.onnx"
    onnx.save(onnx.parser.parse_model(ROTATION_IN_A_BRANCH), source)
    run_ok("optimize", source, "-o", written, "--target", "ascend310b", "--fix", "seq=8")
    model = onnx.load(written)
    assert model.opset_import[0].version == 17
    assert [list(node.attribute)[0].name for node in model.graph.node if node.op_type == "Split"] == ["axis"]
    onnx.checker.check_model(model, full_check=True)
    random = np.random.default_rng(0)
    shapes_of = {"x": (2, 3, 8, 4), "cos": (1, 1, 8, 4), "sin": (1, 1, 8, 4), "gamma": (4,), "beta": (4,)}
    feeds = {name: random.standard_normal(shape).astype(np.float32) for name, shape in shapes_of.items()}
    was, is_now = (plain_session(str(path)).run(None, feeds)[0] for path in (source, written))
    np.testing.assert_allclose(is_now, was, rtol=1e-4, atol=1e-5)


OPERATOR_IN_A_BRANCH = """<ir_version: 8, opset_import: ["" : 17]>
g (float[batch, seq, 64] x, float[64] gamma) => (float[batch, seq, 64] y)
<int64 one = {1}, int64 four = {4}>
{
  shape = Shape (x)
  length = Gather (shape, one)
  long = Greater (length, four)
  y = If (long) <then_branch = then () => (float[batch, seq, 64] a) { a = LayerNormalization <axis = -1, epsilon = 0.00001> (x, gamma) },
    else_branch = other () => (float[batch, seq, 64] b) { b = Sigmoid (x) }>
}
"""


def test_an_operator_of_a_branch_that_is_decided_is_a_site(tmp_path: Path) -> None:
    """It is one of the model, though a copy of it stands where the branch was."""
    source, written, report = tmp_path / "m.onnx", tmp_path / "o.onnx", tmp_path / "r.json"
    onnx.save(onnx.parser.parse_model(OPERATOR_IN_A_BRANCH), source)
    run_ok("optimize", source, "-o", written, "--target", "ascend910b", "--plugin", "--fix", "seq=8", "--report", report)
    assert [node.op_type for node in onnx.load(written).graph.node] == ["NPULayerNormV4"]
    assert [(site["kind"], site["state"]) for site in json.loads(report.read_text())["sites"]] == [("layer_norm", "fused")]


def test_what_only_dim_promises_is_not_written(tmp_path: Path) -> None:
    """--dim is a promise about runs, and the written model is as general as it was: a second run without --fix finds nothing."""
    source, written = save(tmp_path), tmp_path / "o.onnx"
    run_ok("optimize", source, "-o", written, "--fix", "seq=3", "--dim", "batch=2")
    model = onnx.load(written)
    assert shapes(model.graph.input)["x"][:2] == ["batch", 3]
    session = plain_session(str(written))
    rng = np.random.default_rng(1)
    for batch in (2, 4):  # whoever breaks the promise gets the right numbers all the same where no node rests on it
        feeds = {"x": rng.standard_normal((batch, 3, 4)).astype(np.float32), "p": rng.standard_normal((batch, 5, 4)).astype(np.float32)}
        for a, b in zip(plain_session(str(source)).run(None, feeds), session.run(None, feeds), strict=True):
            np.testing.assert_array_equal(a, b)
    run_ok("optimize", written, "-o", tmp_path / "again.onnx", "--dim", "batch=2")
    assert (tmp_path / "again.onnx").read_bytes() == written.read_bytes()


def test_equal_constructs_of_a_decided_branch_are_one(tmp_path: Path) -> None:
    """Nodes of a branch keep their places: what replaces the first of two equal norms stands before the second, which reads it."""
    def norm(end: str) -> str:
        return f"""f{end} = Cast <to = 1> (x)
            s{end} = Pow (f{end}, two)
            m{end} = ReduceMean <axes = [-1]> (s{end})
            v{end} = Add (m{end}, e)
            r{end} = Sqrt (v{end})
            n{end} = Div (f{end}, r{end})
            h{end} = Cast <to = 10> (n{end})
            k{end} = Mul (w, h{end})"""

    text = f"""<ir_version: 8, opset_import: ["" : 17]>
        norms (float16[B, S, 4] x) => (float16[B, S, 4] y)
        <float16[4] w = {{1, 2, 3, 4}}, float two = {{2}}, float e = {{1e-6}}, int64 one = {{1}}, int64 least = {{4}}>
        {{
          shape = Shape (x)
          length = Gather <axis = 0> (shape, one)
          long = Greater (length, least)
          y = If (long) <
            then_branch = then () => (float16[B, S, 4] a) {{
              {norm("")}
              {norm("2")}
              t = Tanh (k2)
              a = Mul (k, t)
            }},
            else_branch = else () => (float16[B, S, 4] b) {{ b = Identity (x) }}
          >
        }}"""
    onnx.save(onnx.parser.parse_model(text), tmp_path / "m.onnx")
    run_ok("optimize", tmp_path / "m.onnx", "-o", tmp_path / "o.onnx", "--fix", "S=8", "--json", tmp_path / "r.json")
    assert [node.op_type for node in onnx.load(tmp_path / "o.onnx").graph.node] == ["NPURmsNorm", "Tanh", "Mul"]
    sites = json.loads((tmp_path / "r.json").read_text())["sites"]
    assert [(site["kind"], site["state"]) for site in sites] == [("rms_norm", "fused")]


# The mask says how long the keys are until it is a constant, which may be broadcast over them as over a single one.
LEARNED = """<ir_version: 8, opset_import: ["" : 17]>
g (float[b, 1, 4] x, float[b, keys, 4] k, float[b, past, 4] v) => (float[b, 1, 4] y)
<int64 one = {1}, int64[1] axis = {0}, int64[1] rows = {1}, float low = {-1}>
{
  t = Transpose <perm = [0, 2, 1]> (k)
  s = MatMul (x, t)
  shape = Shape (k)
  length = Gather (shape, one)
  columns = Unsqueeze (length, axis)
  dims = Concat <axis = 0> (rows, columns)
  mask = Expand (low, dims)
  a = Add (s, mask)
  y = MatMul (a, v)
}
"""


@pytest.mark.parametrize("promise", [(), ("--dim", "b=2")])
def test_what_nodes_said_that_are_constants_now_stays_known(promise: tuple[str, ...], tmp_path: Path) -> None:
    source, written, again = (tmp_path / name for name in ("m.onnx", "o.onnx", "again.onnx"))
    onnx.save(onnx.parser.parse_model(LEARNED), source)
    run_ok("optimize", source, "-o", written, "--fix", "past=3", *promise)
    assert shapes(onnx.load(written).graph.input) == {"x": ["b", 1, 4], "k": ["b", 3, 4], "v": ["b", 3, 4]}
    run_ok("optimize", written, "-o", again, *promise)
    assert written.read_bytes() == again.read_bytes()
