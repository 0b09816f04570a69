"""`expand --as-atc` and `verify --as-atc`: the numbers that ATC would make of a model, misreadings included.

Each case is a small model, what ONNX makes of its inputs, and what the named ATC makes of them.
"""

from __future__ import annotations

import dataclasses
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import onnx.checker
import onnx.helper
import onnx.parser
import pytest
from conftest import ROOT, TOOL, run, run_ok
from test_atc_check import CASES as FORMS
from test_atc_check import Case as Form
from test_atc_check import parse
from test_atc_check_frame import parse as parse_text

from ascend_fuse.session import plain_session

X = np.array([[1.0, 5.0, 3.0], [4.0, 2.0, 9.0]], np.float32)
HEAD = '<ir_version: 8, opset_import: ["" : {opset}]>\n'


@dataclasses.dataclass
class Case:
    rule: str
    opset: int
    text: str
    atc: Any  # what ATC makes of X
    cann: str = "8.1"
    feeds: dict[str, np.ndarray] = dataclasses.field(default_factory=dict)

    def write(self, folder: Path) -> Path:
        model = onnx.parser.parse_model(HEAD.format(opset=self.opset) + self.text)
        onnx.checker.check_model(model, full_check=True)
        path = folder / "m.onnx"
        onnx.save(model, str(path))
        return path


def reduce(op: str, opset: int, axes_input: bool = True) -> str:
    if axes_input:
        return f"g (float[2, 3] x) => (float[2, 1] y) <int64[1] a = {{1}}> {{ y = {op} (x, a) }}"
    return f"g (float[2, 3] x) => (float[2, 1] y) {{ y = {op} <axes = [1]> (x) }}"


def full(op: str) -> str:
    return f"g (float[2, 3] x) => (float[1, 1] y) {{ y = {op} (x) }}"


CASES = [
    Case("read_shape", 18, "g (float[2, 3] x) => (int64[1] y) { y = Shape <start = 1> (x) }", np.array([2, 3])),
    Case("read_shape", 15, "g (float[2, 3] x) => (int64[1] y) { y = Shape <end = 1> (x) }", np.array([2, 3])),
    Case("read_reduce_mean", 18, reduce("ReduceMean", 18), X.mean(keepdims=True)),
    Case("read_reduce_sum_square", 18, reduce("ReduceSumSquare", 18), (X * X).sum(keepdims=True)),
    Case("read_reduce_log_sum", 18, reduce("ReduceLogSum", 18), np.log(X.sum(keepdims=True))),
    Case("read_reduce_log_sum_exp", 18, reduce("ReduceLogSumExp", 18), np.log(np.exp(X).sum(keepdims=True))),
    Case("read_reduce_max", 18, reduce("ReduceMax", 18), X, cann="8.5"),
    Case("read_reduce_min", 18, reduce("ReduceMin", 18), X, cann="8.5"),
    Case("read_reduce_prod", 18, reduce("ReduceProd", 18), X, cann="8.5"),
    Case("read_no_mean", 18, "g (float[2, 3] x) => (float[A, B] y) { y = ReduceMean <noop_with_empty_axes = 1> (x) }",
         np.array([[4.0]], np.float32), cann="9.1"),
    Case("read_full_sum", 17, full("ReduceSum"), X, cann="8.5"),
    Case("read_full_max", 17, full("ReduceMax"), X, cann="8.5"),
    Case("read_full_min", 17, full("ReduceMin"), X, cann="8.5"),
    Case("read_full_prod", 17, full("ReduceProd"), X, cann="8.5"),
    Case("read_max_over", 17, reduce("ReduceMax", 17, False), X.max(keepdims=True), cann="9.1"),
    Case("read_min_over", 17, reduce("ReduceMin", 17, False), X.min(keepdims=True), cann="9.1"),
    Case("read_prod_over", 17, reduce("ReduceProd", 17, False), X.prod(keepdims=True), cann="9.1"),
    Case("read_log_sum_exp_over", 17, reduce("ReduceLogSumExp", 17, False), np.log(np.exp(X).sum(keepdims=True)), cann="9.1"),
    Case("read_mod", 17, "g (int64[2] i) => (int64[2] y) <int64 d = {3}> { y = Mod (i, d) }", np.array([-1, 2]),
         feeds={"i": np.array([-7, 5])}),
    Case("read_scatter_nd", 18, 'g (float[2, 3] x) => (float[2, 3] y) <int64[1, 2] at = {0, 1}, float[1] u = {10}>'
         ' { y = ScatterND <reduction = "add"> (x, at, u) }', np.array([[1, 10, 3], [4, 2, 9]], np.float32)),
    Case("read_scatter_elements", 18, 'g (float[2, 3] x) => (float[2, 3] y) <int64[1, 1] at = {1}, float[1, 1] u = {10}>'
         ' { y = ScatterElements <axis = 1, reduction = "add"> (x, at, u) }', np.array([[1, 10, 3], [4, 2, 9]], np.float32)),
    Case("read_gemm", 13, "g (float[2, 3] x) => (float[2, 2] y) <float[3, 2] w = {1, 0, 0, 1, 1, 1}>"
         " { y = Gemm <alpha = 2.0> (x, w) }", X @ np.array([[1, 0], [0, 1], [1, 1]], np.float32)),
    Case("read_softmax", 11, "g (float[2, 3] x) => (float[2, 3] y) { y = Softmax <axis = 0> (x) }",
         np.exp(X) / np.exp(X).sum(axis=0, keepdims=True), cann="9.2"),
    Case("read_one_hot", 17, "g (int64[2] i) => (float[2, 3] y) <int64 d = {3}, float[2] v = {0, 1}>"
         " { y = OneHot (i, d, v) }", np.array([[0, 1, 0], [0, 1, 0]], np.float32), feeds={"i": np.array([1, 4])}),
    Case("read_dropout", 13, "g (float[2, 3] x) => (float[2, 3] y) <float r = {0.5}, bool t = {1}>"
         " { y = Dropout (x, r, t) }", X),
    Case("read_batch_normalization", 14, "g (float[2, 3] x) => (float[2, 3] y) <float[3] one = {1, 1, 1},"
         " float[3] zero = {0, 0, 0}, float[3] m = {1, 1, 1}>"
         " { y, rm, rv = BatchNormalization <epsilon = 0.0, training_mode = 1> (x, one, zero, m, one) }", X - 1),
    Case("read_pad", 18, "g (float[2, 3] x) => (float[A, B] y) <int64[4] p = {1, 2, 0, 0}, int64[2] a = {1, 0}>"
         " { y = Pad (x, p, , a) }", np.pad(X, ((1, 0), (2, 0)))),
    Case("read_resize", 18, 'g (float[1, 1, 2, 3] z) => (float[1, 1, A, B] y) <int64[4] n = {1, 1, 4, 3}> { y = Resize <mode = '
         '"nearest", coordinate_transformation_mode = "asymmetric", nearest_mode = "floor", keep_aspect_ratio_policy = '
         '"not_larger"> (z, , , n) }', np.repeat(X, 2, axis=0)[None, None], feeds={"z": X[None, None]}),
    Case("read_top_k", 17, "g (float[2, 3] x) => (int64[2, 1] y) <int64[1] k = {1}> { v, i = TopK (x, k) y = Identity (i) }",
         np.array([[1], [2]], np.int32)),
    Case("log_softmax", 11, "g (float[1, 2, 3] z) => (float[1, 2, 3] y) { y = LogSoftmax (z) }",
         (X - np.log(np.exp(X).sum(axis=1, keepdims=True)))[None], feeds={"z": X[None]}),
    Case("log_softmax", 11, "g (float[1, 2, 3] z) => (float[1, 2, 3] y) { y = LogSoftmax <axis = 1> (z) }",
         (X - np.log(np.exp(X).sum(axis=0, keepdims=True)))[None], feeds={"z": X[None]}),
    Case("if", 17, """g (float[2, 3] x, bool[1] c) => (float[2, 3] y) {
        y = If (c) <then_branch = t () => (a) { a = Neg (x) }, else_branch = e () => (b) { b = Identity (x) }> }""", -X,
         feeds={"x": X, "c": np.array([False])}),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.rule}-{case.opset}-{case.cann}")
def test_what_atc_makes_of_a_misread_form(case: Case, tmp_path: Path) -> None:
    model, read = case.write(tmp_path), tmp_path / "read.onnx"
    run_ok("expand", model, "-o", read, "--as-atc", "--cann", case.cann)
    feeds = case.feeds or {"x": X}
    # Without declared output shapes and types, which no longer hold.
    loaded = onnx.load(str(read))
    for output in loaded.graph.output:
        output.type.tensor_type.ClearField("shape")
    loaded.graph.output[0].type.tensor_type.elem_type = onnx.helper.np_dtype_to_tensor_dtype(np.asarray(case.atc).dtype)
    found = plain_session(loaded.SerializeToString()).run(None, feeds)[0]
    np.testing.assert_allclose(found, case.atc, rtol=1e-6, atol=1e-6)
    expected = plain_session(str(model)).run(None, feeds)[0]
    assert (expected.shape, expected.dtype) != (found.shape, found.dtype) or not np.allclose(expected, found), "the case shows no misreading"


def test_every_rule_has_a_case() -> None:
    rules = (ROOT / "patterns" / "rules" / "misread" / "misread.rule").read_text()
    named = {line.split()[1] for line in rules.splitlines() if line.startswith("rule ")}
    assert named == {case.rule for case in CASES if case.rule not in ("if", "log_softmax")}


def test_what_is_read_rightly_is_not_touched(tmp_path: Path) -> None:
    case = Case("", 17, "g (float[2, 3] x) => (float[2, 1] y) { s = Shape (x) y = ReduceMean <axes = [1]> (x) }", None)
    model, read = case.write(tmp_path), tmp_path / "read.onnx"
    run_ok("expand", model, "-o", read, "--as-atc")
    assert read.read_bytes() == model.read_bytes()


@pytest.mark.parametrize(("opset", "text", "sentence"), [
    (18, "g (float[2, 4] x) => (float[2, 2] y, float[2, 2] z) { y, z = Split <axis = 1, num_outputs = 2> (x) }", "Split"),
    (20, "g (float[2, 3] x) => (float[2, 3] y) { y = Gelu (x) }", "opset"),
])
def test_a_model_that_atc_refuses_has_no_numbers(opset: int, text: str, sentence: str, tmp_path: Path) -> None:
    model = Case("", opset, text, None).write(tmp_path)
    result = run("expand", model, "-o", tmp_path / "read.onnx", "--as-atc")
    assert result.code == 3
    assert "refuses the model" in result.err and sentence in result.err
    assert not (tmp_path / "read.onnx").exists()


def verify(original: Path, second: Path, *flags: str) -> tuple[int, dict[str, Any]]:
    words = [sys.executable, "-m", "ascend_fuse.verification", original, second, "--tool", TOOL, "--json", "-", *flags]
    done = subprocess.run([str(w) for w in words], capture_output=True, text=True, check=False, cwd=ROOT / "tools" / "python")
    return done.returncode, json.loads(done.stdout)


def test_verify_shows_the_wrong_numbers_of_an_untouched_export(tmp_path: Path) -> None:
    model = Case("", 18, reduce("ReduceMean", 18), None).write(tmp_path)
    assert verify(model, model)[0] == 0
    code, result = verify(model, model, "--as-atc", "--cann", "8.1")
    assert code == 3 and not result["ok"]
    assert verify(model, model, "--as-atc", "--cann", "2026.07")[0] == 0


def test_verify_tells_what_atc_refuses(tmp_path: Path) -> None:
    text = "g (float[2, 4] x) => (float[2, 2] y, float[2, 2] z) { y, z = Split <axis = 1, num_outputs = 2> (x) }"
    model = Case("", 18, text, None).write(tmp_path)
    code, result = verify(model, model, "--as-atc")
    assert code == 3
    assert "refuses the model" in result["comparisons"][0]["because"]


# Misread, and no rule says what comes out: `expand --as-atc` stops with the form where it surely is one.
NO_READING = {
    "gather-nd-negative-index": "reads out of range, which has no numbers",
    "constant-value-form": "an empty tensor, of which nothing can be computed",
    "sum-broadcast": "the kernel reads past the end of the shorter operand",
    "constant-of-shape-field": "reads from nowhere",
}
# The sources leave open whether they are: read as ONNX defines them, and told by `check`.
OPEN = {"resize-nearest", "conv-transpose-shape", "gather-negative-index", "size-type", "seen-wrong-once"}
IN_CODE = {"if-condition-rank", "log-softmax-axis"}  # passes/expand/read_as_atc.cc


def misread_codes() -> set[str]:
    found = set()
    for path in (ROOT / "patterns" / "targets").glob("*.txtpb"):
        for row in re.findall(r"^unsupported \{\n(.*?)^\}", path.read_text(), re.MULTILINE | re.DOTALL):
            if re.search(r"effect: (MISREAD|LOSES_TYPE)", row):
                found.add(re.search(r'code: "([^"]*)"', row)[1])
    return found


def test_no_misreading_is_silently_left_out() -> None:
    rules = (ROOT / "patterns" / "rules" / "misread" / "misread.rule").read_text()
    written = set(re.findall(r"fixes = ([\w-]+)", rules))
    groups = [written, IN_CODE, OPEN, set(NO_READING)]
    assert set().union(*groups) == misread_codes()
    assert sum(map(len, groups)) == len(misread_codes()), "a code stands in two groups"


@pytest.mark.parametrize("case", [case for case in FORMS if case.code in NO_READING and case.certain], ids=lambda case: case.code)
def test_a_misreading_without_numbers_is_told(case: Form, tmp_path: Path) -> None:
    onnx.save(parse(case, case.caught), tmp_path / "m.onnx")
    result = run("expand", tmp_path / "m.onnx", "-o", tmp_path / "read.onnx", "--as-atc", "--cann", case.cann)
    assert result.code == 3 and f"[{case.code}]" in result.err
    assert not (tmp_path / "read.onnx").exists()


def test_the_precision_mode_decides_what_a_kernel_takes(tmp_path: Path) -> None:
    """Eight floats are the 32 bytes that the kernel of 310P moves, eight halves are not."""
    model = parse_text('(float[4, 8] x, float[8] w) => (float[4, 8] y) { y, r = npu.NPURmsNorm (x, w) }', '"" : 17, "npu" : 1')
    onnx.save(model, tmp_path / "m.onnx")
    words = ["expand", tmp_path / "m.onnx", "-o", tmp_path / "o.onnx", "--as-atc", "--target", "ascend310p", "--cann", "2026.07"]
    refused = run(*words)
    assert refused.code == 3 and "at least 32" in refused.err
    run_ok(*words, "--precision-mode", "must_keep_origin_dtype")


def test_nodes_that_are_made_beside_npu_nodes_of_the_file_are_spelled_like_them(tmp_path: Path) -> None:
    model = parse_text("""(float[4, 64] x, float[64] w) => (float[4, 64] z) <float two = {2}, float eps = {0.00001}> {
      y, r = npu.NPURmsNorm (x, w)
      mean = ReduceMean <axes = [-1], keepdims = 1> (y)
      centred = Sub (y, mean)
      squares = Mul (centred, centred)
      variance = ReduceMean <axes = [-1], keepdims = 1> (squares)
      moved = Add (variance, eps)
      root = Sqrt (moved)
      normed = Div (centred, root)
      scaled = Mul (normed, w)
      z = Add (scaled, w)
    }""", '"ai.onnx" : 13, "npu" : 1')
    for node in model.graph.node:
        node.domain = node.domain or "ai.onnx"
    onnx.save(model, tmp_path / "m.onnx")
    run_ok("optimize", tmp_path / "m.onnx", "-o", tmp_path / "o.onnx", "--target", "ascend310p")
    written = onnx.load(tmp_path / "o.onnx")
    assert {(node.op_type, node.domain) for node in written.graph.node} == {("NPURmsNorm", "npu"), ("LayerNormalization", "ai.onnx")}


@pytest.mark.parametrize("flags", [(), ("--as-atc",)])
def test_a_rotation_says_that_its_lengths_are_one(flags: tuple[str, ...], tmp_path: Path) -> None:
    """Which other node said so may be gone from a file that `optimize` wrote."""
    text = """<ir_version: 8, opset_import: ["" : 13, "npu" : 1]>
        g (float16[B, 2, S, 128] x, float16[1, 1, T, 128] c, float16[1, 1, U, 128] s) => (float16[B, 2, S, 128] y)
        { y = npu.NPURotaryMul (x, c, s) }"""
    onnx.save(onnx.parser.parse_model(text), tmp_path / "m.onnx")
    run_ok("expand", tmp_path / "m.onnx", "-o", tmp_path / "o.onnx", *flags)
    assert "NPURotaryMul" not in {node.op_type for node in onnx.load(tmp_path / "o.onnx").graph.node}
