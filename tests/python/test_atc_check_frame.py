"""`check` on the frame of a foreign file, on its constants and on npu nodes; what it says can be done; and the commands
around it: `targets`, and the line for ATC."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx.parser
import pytest
from conftest import run, run_ok
from onnx import TensorProto, helper, numpy_helper


def parse(graph: str, imports: str = '"" : 17') -> onnx.ModelProto:
    return onnx.parser.parse_model(f"<ir_version: 8, opset_import: [{imports}]>\ng {graph}")


def with_empty_names(model: onnx.ModelProto) -> onnx.ModelProto:
    """The names EMPTY written as empty ones, in branches too."""
    graphs = [model.graph]
    for graph in graphs:
        for node in graph.node:
            node.input[:] = ["" if name == "EMPTY" else name for name in node.input]
            node.output[:] = ["" if name == "EMPTY" else name for name in node.output]
            graphs += [attribute.g for attribute in node.attribute if attribute.HasField("g")]
    return model


def findings(model: onnx.ModelProto, folder: Path, *flags: str) -> list[dict[str, Any]]:
    onnx.save(model, folder / "m.onnx")
    result = run("check", folder / "m.onnx", "--json", "-", *flags)
    assert result.code in (0, 4), result.err
    return json.loads(result.out)["findings"]


def codes(model: onnx.ModelProto, folder: Path, *flags: str) -> list[str]:
    return sorted({f["code"] for f in findings(model, folder, *flags)})


PLAIN = "(float[2] x) => (float[2] y) { a = Relu (x)\n y = Neg (a) }"


def test_a_plain_model_has_no_finding(tmp_path: Path) -> None:
    assert codes(parse(PLAIN), tmp_path) == []
    result = run("check", tmp_path / "m.onnx")
    assert result.code == 0
    assert result.out.endswith("nothing found\n")


def test_two_imports_and_the_empty_domain(tmp_path: Path) -> None:
    mixed = parse(PLAIN, '"" : 17, "com.microsoft" : 1')
    found = findings(mixed, tmp_path)
    assert [(f["code"], f["effect"], f["error"]) for f in found] == [("imports-mixed", "refused", "E16005")]
    assert codes(mixed, tmp_path, "--cann", "2026.07") == []
    explicit = parse(PLAIN, '"ai.onnx" : 17, "com.microsoft" : 1')
    for node in explicit.graph.node:
        node.domain = "ai.onnx"
    assert codes(explicit, tmp_path) == []
    # The import must have the name that the nodes have.
    explicit.opset_import[0].domain = ""
    assert codes(explicit, tmp_path) == ["imports-mixed"]


def test_the_opset(tmp_path: Path) -> None:
    assert codes(parse(PLAIN, '"" : 19'), tmp_path) == ["opset-too-high"]
    assert codes(parse(PLAIN, '"" : 18'), tmp_path) == []


def test_names(tmp_path: Path) -> None:
    def named(first: str, second: str) -> onnx.ModelProto:
        model = parse(PLAIN)
        model.graph.node[0].name, model.graph.node[1].name = first, second
        return model

    assert codes(named("a", "a"), tmp_path) == ["name-twice"]
    assert codes(named("a", "b"), tmp_path) == []
    assert [(f["code"], f["error"]) for f in findings(named("x", "b"), tmp_path)] == [("name-of-an-input", "E13009")]
    # A name that ATC makes of an operator and a number.
    assert [(f["code"], f["certain"]) for f in findings(named("", "Relu_0"), tmp_path)] == [("name-twice", False)]
    assert codes(named("", "Relu_7"), tmp_path) == []
    assert codes(named("", "Neg_0"), tmp_path) == []


def test_empty_names(tmp_path: Path) -> None:
    clip = "(float[2] x, float m) => (float[2] y, float[1] v) <int64[1] k = {{1}}> {{ y = Clip (x, EMPTY, m)\n v{} = TopK (x, k) }}"
    assert "empty-names-wired" in codes(with_empty_names(parse(clip.format(", EMPTY"))), tmp_path)
    assert "empty-names-wired" not in codes(with_empty_names(parse(clip.format(""))), tmp_path)
    branch = ("(bool c, float[2] x, float m) => (float[2] y) {{ y = If (c) <then_branch = t () => (float[2] a) {{ a = Clip "
              "(x, {}) }}, else_branch = e () => (float[2] b) {{ b = Neg (x) }}> }}")
    assert "empty-input-in-branch" in codes(with_empty_names(parse(branch.format("EMPTY, m"))), tmp_path)
    assert "empty-input-in-branch" not in codes(with_empty_names(parse(branch.format("m, m"))), tmp_path)


def test_a_branch_inside_a_branch(tmp_path: Path) -> None:
    text = """(bool c, float[2] x) => (float[2] y) {{
      h = Neg (x)
      y = If (c) <then_branch = t () => (float[2] a) {{
        p = Relu ({})
        q = If (c) <then_branch = tt () => (float[2] aa) {{ aa = Neg (h) }}, else_branch = te () => (float[2] ab) {{ ab = Relu (p) }}>
        a = Add (p, q)
      }}, else_branch = e () => (float[2] b) {{ b = Neg (x) }}> }}"""
    assert "nested-capture" in codes(parse(text.format("x")), tmp_path)
    assert "nested-capture" not in codes(parse(text.format("h")), tmp_path)


def test_an_if_with_more_attributes(tmp_path: Path) -> None:
    model = parse("(bool c, float[2] x) => (float[2] y) { y = If (c) <then_branch = t () => (float[2] a) { a = Relu (x) }, "
                  "else_branch = e () => (float[2] b) { b = Neg (x) }> }")
    assert "if-attributes" not in codes(model, tmp_path)
    model.graph.node[0].attribute.append(helper.make_attribute("note", 1))
    assert "if-attributes" in codes(model, tmp_path)


def test_no_inputs(tmp_path: Path) -> None:
    empty = parse("() => (float[2] y) { y = RandomNormal <shape = [2]> () }")
    assert "no-inputs" in codes(empty, tmp_path)


def with_constant(array: np.ndarray) -> onnx.ModelProto:
    model = parse("(float[2] x) => (float[2] y) { y = Mul (x, w) }")
    model.graph.initializer.append(numpy_helper.from_array(array, "w"))
    return model


@pytest.mark.parametrize("array, code", [
    (np.array([1, -1e9], np.float32), "half-overflow"),
    (np.array(1e-12, np.float32), "half-vanishes"),
    (np.array([np.nan, 1], np.float32), "constant-is-nan"),
    (np.array([1, 65504], np.float32), None),
    (np.array([1, -np.inf], np.float32), None),
    (np.array([1e-12, 1], np.float32), None),
])
def test_constants_that_float16_does_not_hold(array: np.ndarray, code: str | None, tmp_path: Path) -> None:
    found = findings(with_constant(array), tmp_path)
    assert [f["code"] for f in found] == ([code] if code else [])
    assert all(f["effect"] == "precision" and f["node"] == "w" for f in found)
    kept = codes(with_constant(array), tmp_path, "--precision-mode", "must_keep_origin_dtype")
    assert kept == (["constant-is-nan"] if code == "constant-is-nan" else [])


def test_a_type_that_is_not_read(tmp_path: Path) -> None:
    model = parse("(float[2] x) => (float[2] y) { f = Cast <to = 1> (w)\n y = Mul (x, f) }", '"" : 18')
    model.graph.initializer.append(helper.make_tensor("w", TensorProto.FLOAT8E5M2FNUZ, [2], [1.0, 2.0]))
    assert codes(model, tmp_path) == ["constant-type"]


def test_a_local_function(tmp_path: Path) -> None:
    model = onnx.parser.parse_model("""<ir_version: 8, opset_import: ["" : 17, "f" : 1]>
    g (float[2] x) => (float[2] y) { y = f.twice (x) }
    <domain: "f", opset_import: ["" : 17]> twice (a) => (b) { b = Add (a, a) }""")
    found = findings(model, tmp_path, "--cann", "2026.07")
    assert [(f["code"], f["effect"]) for f in found] == [("function-call-left", "no_parser")]


NPU = '"ai.onnx" : 17, "npu" : 1'


def npu(body: str) -> onnx.ModelProto:
    return parse(f"(float16[2, 4, 64] x, float16[64] w) => (float16[2, 4, 64] y) {{ {body} }}", NPU)


def test_npu_nodes_against_their_contract(tmp_path: Path) -> None:
    assert codes(npu("y = npu.NPURmsNorm <epsilon = 0.000001> (x, w)"), tmp_path) == []
    found = findings(npu("y = npu.NPURmsNorm <epsilon = 0.5> (x, w)"), tmp_path)
    assert [(f["code"], f["effect"], f["op"], f["certain"]) for f in found] == [
        ("attribute-refused", "refused", "npu.NPURmsNorm", True)]
    assert codes(npu("y = npu.NPURmsNorm <epsilon = 0.000001> (x, x)"), tmp_path) == ["shape-refused"]
    assert codes(npu("y = npu.NPUNobodyKnows (x)"), tmp_path) == ["no-node"]
    # Under its name in the default domain, too.
    alias = parse("(float16[2, 4, 64] x, float16[64] w) => (float16[2, 4, 64] y) { y = NPURmsNorm <epsilon = 0.5> (x, w) }")
    assert codes(alias, tmp_path) == ["attribute-refused"]


def test_what_the_plugin_fixes(tmp_path: Path) -> None:
    model = parse("(float16[2, 64] x) => (float16[2, 32] y) { y = npu.NPUSwiGlu <dim = -1> (x) }", NPU)
    found = findings(model, tmp_path)
    assert [(f["code"], f["fixed_by"]) for f in found] == [("node-refused", "plugin")]
    assert codes(model, tmp_path, "--plugin") == []


def test_what_optimize_fixes(tmp_path: Path) -> None:
    model = parse("(float[2, 4, 64] x, float[64] w) => (float[2, 4, 64] y) "
                  "{ y = RMSNormalization <epsilon = 0.000001> (x, w) }", '"" : 23')
    by_code = {f["code"]: f["fixed_by"] for f in findings(model, tmp_path)}
    assert by_code["no-parser"] == "optimize"
    left = parse("(float[4] x) => (float[4] y) { y = Frobnicate (x) }")
    assert [f["fixed_by"] for f in findings(left, tmp_path)] == [""]


def test_optimize_warns_of_what_is_possible_and_writes(tmp_path: Path) -> None:
    onnx.save(parse("(int64[2, 4] x, int64 d, float[2] v) => (float[2, 4, D] y) { y = OneHot (x, d, v) }"), tmp_path / "m.onnx")
    result = run_ok("optimize", tmp_path / "m.onnx", "-o", tmp_path / "o.onnx", "--json", "-")
    report = json.loads(result.out)
    assert [w["code"] for w in report["warnings"]] == ["one-hot-depth"] and report["findings"] == []
    assert (tmp_path / "o.onnx").exists()


@pytest.mark.parametrize("graph, code, sentence", [
    ("(float[4] x) => (float[4] y) { y = Frobnicate (x) }", "no-parser", "ATC has no parser for it"),
    ("(float[2, 4] x, int64[1, 1] at) => (float[2, 4] y) <float[1, 4] u = {1, 2, 3, 4}> "
     "{ y = ScatterND <reduction = \"add\"> (x, at, u) }", "scatter-reduction", "overwrites, without a word"),
])
def test_optimize_writes_nothing_that_atc_surely_refuses_or_misreads(graph: str, code: str, sentence: str, tmp_path: Path) -> None:
    onnx.save(parse(graph), tmp_path / "m.onnx")
    command = ("optimize", tmp_path / "m.onnx", "-o", tmp_path / "o.onnx", "--json", tmp_path / "r.json")
    result = run(*command)
    assert result.code == 4 and not (tmp_path / "o.onnx").exists()
    assert f"[{code}]" in result.err and sentence in result.err and "--force" in result.err
    assert [f["code"] for f in json.loads((tmp_path / "r.json").read_text())["findings"]] == [code]
    run_ok(*command, "--force")
    assert code in codes(onnx.load(tmp_path / "o.onnx"), tmp_path)
    # Nothing is written, so that nothing is refused.
    run_ok("list", tmp_path / "m.onnx")


def test_an_import_that_no_node_needs_goes(tmp_path: Path) -> None:
    model = parse(PLAIN, '"" : 17, "com.microsoft" : 1')
    assert [(f["code"], f["fixed_by"]) for f in findings(model, tmp_path)] == [("imports-mixed", "optimize")]
    result = run_ok("optimize", tmp_path / "m.onnx", "-o", tmp_path / "o.onnx", "--json", "-")
    assert json.loads(result.out)["adapted"] == [{"code": "imports-mixed", "op": "import", "nodes": ["com.microsoft"]}]
    written = onnx.load(tmp_path / "o.onnx")
    assert [import_.domain for import_ in written.opset_import] == [""]
    # A parser that reads both keeps it.
    result = run_ok("optimize", tmp_path / "m.onnx", "-o", tmp_path / "n.onnx", "--cann", "2026.07")
    assert (tmp_path / "n.onnx").read_bytes() == (tmp_path / "m.onnx").read_bytes()


def test_names_that_atc_refuses_are_made_anew(tmp_path: Path) -> None:
    model = parse("(float[2] x) => (float[2] y) { [same] a = Relu (x)\n [same] b = Neg (a)\n [x] c = Abs (b)\n [d] y = Exp (c) }")
    onnx.save(model, tmp_path / "m.onnx")
    run_ok("optimize", tmp_path / "m.onnx", "-o", tmp_path / "o.onnx")
    written = onnx.load(tmp_path / "o.onnx")
    names = [node.name for node in written.graph.node]
    assert names[0] == "same" and names[3] == "d" and len({*names, "x"}) == 5, names
    for i in (0, 3):
        assert written.graph.node[i].SerializeToString() == model.graph.node[i].SerializeToString()
    assert [node.op_type for node in written.graph.node] == ["Relu", "Neg", "Abs", "Exp"]
    assert codes(written, tmp_path) == []


def test_empty_outputs_get_names_where_an_input_is_empty(tmp_path: Path) -> None:
    graph = """(float[2, 4] x) => (int64[2, 1] y) <float high = {2}, int64[1] k = {1}> {
        c = Clip (x, EMPTY, high)
        EMPTY, y = TopK <axis = 1> (c, k) }"""
    model = with_empty_names(parse(graph))
    found = {(f["code"], f["fixed_by"]) for f in findings(model, tmp_path)}
    assert ("empty-names-wired", "optimize") in found
    run_ok("optimize", tmp_path / "m.onnx", "-o", tmp_path / "o.onnx")
    written = onnx.load(tmp_path / "o.onnx")
    onnx.checker.check_model(written, full_check=True)
    assert all(name for node in written.graph.node for name in node.output)


def test_our_own_output_has_no_finding(tmp_path: Path) -> None:
    model = parse("(float[B, 4, 64] x, float[64] w) => (float[B, 4, 64] y) <float two = {2}, float e = {0.000001}> "
                  "{ s = Pow (x, two)\n m = ReduceMean <axes = [-1]> (s)\n a = Add (m, e)\n r = Sqrt (a)\n d = Div (x, r)\n "
                  "y = Mul (w, d) }", '"" : 17, "com.microsoft" : 1')
    onnx.save(model, tmp_path / "m.onnx")
    for cann in ("8.1", "2026.07"):
        run_ok("optimize", tmp_path / "m.onnx", "-o", tmp_path / "o.onnx", "--cann", cann)
        result = run("check", tmp_path / "o.onnx", "--cann", cann, "--json", "-")
        assert [f["code"] for f in json.loads(result.out)["findings"]] == [], result.out


@pytest.mark.parametrize("name, chip", [
    ("ascend910b", "ascend910b"), ("Ascend910B4", "ascend910b"), ("ASCEND910B4-1", "ascend910b"), ("910B3", "ascend910b"),
    ("Ascend910_9391", "ascend910_93"), ("Ascend310P3", "ascend310p"), ("310p", "ascend310p"), ("Ascend310B4", "ascend310b"),
    ("Ascend910A", "ascend910"), ("ascend910", "ascend910"), ("Ascend910PremiumA", "ascend910"),
    ("Ascend950PR_9599", "ascend950"),
])
def test_names_of_targets(name: str, chip: str) -> None:
    assert run_ok("targets", name).out.startswith(f"{chip}: ")


def test_a_name_that_is_misspelt() -> None:
    result = run("targets", "Ascend301P3")
    assert result.code == 2
    assert "did you mean Ascend310P3?" in result.err
    result = run("targets", "Ascend910X")
    assert result.code == 2
    assert "no target is called Ascend910X" in result.err


def test_a_chip_of_which_little_is_known_says_so(tmp_path: Path) -> None:
    onnx.save(npu("y = npu.NPURmsNorm <epsilon = 0.000001> (x, w)"), tmp_path / "m.onnx")
    for chip in ("ascend310b", "ascend910"):
        found = json.loads(run("check", tmp_path / "m.onnx", "--target", chip, "--json", "-").out)["findings"]
        assert [f["code"] for f in found] == ["node-refused"]
        assert "not read" in found[0]["because"]


def test_targets() -> None:
    out = run_ok("targets").out
    for word in ("ascend310p", "Ascend910B4", "2026.07", "CANN 9.1.0"):
        assert word in out
    assert "npu.NPURmsNorm\n" in run_ok("targets", "ascend910b").out
    assert "parsed at opset 8 to 18\n" in run_ok("targets", "ascend910b", "ReduceMean").out
    assert "[reduce-axes-input]" in run_ok("targets", "ascend910b", "ReduceMean", "--cann", "9.1").out
    assert "[reduce-axes-input]" not in run_ok("targets", "ascend910b", "ReduceMean", "--cann", "9.2").out
    result = run("targets", "ascend910b", "Frobnicate")
    assert result.code == 1
    assert "nothing is known of Frobnicate" in result.err


def atc_line(model: onnx.ModelProto, folder: Path, *flags: str) -> str:
    onnx.save(model, folder / "m.onnx")
    out = run_ok("optimize", folder / "m.onnx", "-o", folder / "o.onnx", *flags).out
    lines = [line for line in out.splitlines() if line.startswith("atc ")]
    assert len(lines) == 1
    return lines[0]


def test_the_line_for_atc(tmp_path: Path) -> None:
    model = parse("(float[batch, seq, 4] x, float s) => (float[batch, seq, 4] y) { y = Mul (x, s) }")
    line = atc_line(model, tmp_path)
    assert "'--input_shape=x:-1,-1,4;s:'" in line
    assert line.endswith('--soc_version="$SOC_VERSION"')
    for word in (f"--model={tmp_path}/o.onnx", "--framework=5", "--input_format=ND", "--precision_mode=force_fp16"):
        assert word in line
    bound = atc_line(model, tmp_path, "--dim", "batch=2", "--dim", "seq=1..8", "--target", "Ascend310P3")
    assert "'--input_shape=x:2,1~8,4;s:'" in bound
    assert bound.endswith("--soc_version=Ascend310P3")
    # 310B takes no ranges.
    assert "'--input_shape=x:2,-1,4;s:'" in atc_line(model, tmp_path, "--dim", "batch=2", "--dim", "seq=1..8", "--target",
                                                     "ascend310b")


def test_the_script_for_atc(tmp_path: Path) -> None:
    onnx.save(parse(PLAIN), tmp_path / "a model's.onnx")
    run_ok("optimize", tmp_path / "a model's.onnx", "-o", tmp_path / "o 1.onnx", "--atc-script", tmp_path / "s.sh")
    atc = tmp_path / "atc"
    atc.write_text('#!/bin/sh\nfor word in "$@"; do echo "$word"; done\n')
    atc.chmod(0o755)

    environment = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}", "SOC_VERSION": "Ascend910B4"}
    done = subprocess.run(["sh", tmp_path / "s.sh"], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        f"--model={tmp_path}/o 1.onnx", "--framework=5", f"--output={tmp_path}/o 1", "--input_format=ND", "--input_shape=x:2",
        "--precision_mode=force_fp16", "--soc_version=Ascend910B4"]
    del environment["SOC_VERSION"]
    assert subprocess.run(["sh", tmp_path / "s.sh"], env=environment, capture_output=True).returncode != 0
