"""Sequences and optionals whose elements are known are written without them; what is computed at run time stays."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnx.checker
import onnx.parser
import pytest
from conftest import run_ok

from ascend_fuse.session import plain_session

HEAD = '<ir_version: 8, opset_import: ["" : {opset}]>\ng '
X = "float[4, 6] x, float[2, 6] z"
AT = "y = SequenceAt (s, i)"
# The graph, and the operators that are left in what is written.
KNOWN = {
    "constructed": (17, f"({X}) => (float[A, 6] y) <int64 i = {{-1}}> {{ s = SequenceConstruct (x, z)\n {AT} }}", {"Identity"}),
    "inserted": (17, f"({X}) => (float[A, 6] y) <int64 i = {{1}}, int64 p = {{0}}> {{ e = SequenceEmpty ()\n "
                     f"a = SequenceInsert (e, x)\n s = SequenceInsert (a, z, p)\n {AT} }}", {"Identity"}),
    "erased": (17, f"({X}) => (float[A, 6] y) <int64 i = {{0}}> {{ a = SequenceConstruct (x, z)\n s = SequenceErase (a, i)\n {AT} }}",
               {"Identity"}),
    "split": (17, f"({X}) => (float[A, 6] y) <int64 i = {{1}}, int64 n = {{3}}> {{ s = SplitToSequence (x, n)\n {AT} }}",
              {"Slice", "Identity"}),
    "split_by_sizes": (17, f"({X}) => (float[A, B] y) <int64 i = {{1}}, int64[2] n = {{2, 4}}> "
                           f"{{ s = SplitToSequence <axis = -1> (x, n)\n {AT} }}", {"Slice", "Identity"}),
    "split_one_by_one": (12, f"({X}) => (float[6] y) <int64 i = {{-2}}> {{ s = SplitToSequence <keepdims = 0> (x)\n {AT} }}",
                         {"Slice", "Squeeze", "Identity"}),
    "joined": (17, f"({X}) => (float[A, 6] y) {{ s = SequenceConstruct (x, z, x)\n y = ConcatFromSequence <axis = 0> (s) }}", {"Concat"}),
    "stacked": (17, f"({X}) => (float[A, B, 6] y) {{ s = SequenceConstruct (x, x)\n y = ConcatFromSequence <axis = -2, new_axis = 1> (s) }}",
                {"Concat", "Unsqueeze"}),
    "counted": (17, f"({X}) => (int64 y) {{ s = SplitToSequence (x)\n y = SequenceLength (s) }}", {"Constant"}),
    "held": (18, f"({X}) => (float[4, 6] y) {{ o = Optional (x)\n y = OptionalGetElement (o) }}", {"Identity"}),
    "is_held": (18, f"({X}) => (bool y) {{ y = OptionalHasElement (x) }}", {"Constant"}),
}
# What comes at run time.
COMPUTED = {
    "computed_place": f"({X}, int64 i) => (float[A, 6] y) {{ s = SequenceConstruct (x, z)\n {AT} }}",
    "unknown_length": f"(float[N, 6] x) => (float[A, 6] y) <int64 i = {{-1}}> {{ s = SplitToSequence (x)\n {AT} }}",
    "computed_sizes": f"({X}, int64[2] n) => (float[A, 6] y) <int64 i = {{0}}> {{ s = SplitToSequence (x, n)\n {AT} }}",
}


def optimized(opset: int, text: str, folder: Path) -> tuple[Path, Path]:
    onnx.save(onnx.parser.parse_model(HEAD.format(opset=opset) + text), folder / "m.onnx")
    run_ok("optimize", folder / "m.onnx", "-o", folder / "o.onnx", "--keep-rest")
    return folder / "m.onnx", folder / "o.onnx"


@pytest.mark.parametrize("name", KNOWN)
def test_known_elements_are_read_directly(name: str, tmp_path: Path) -> None:
    opset, text, left = KNOWN[name]
    source, written = optimized(opset, text, tmp_path)
    model = onnx.load(written)
    onnx.checker.check_model(model, full_check=True)
    assert {node.op_type for node in model.graph.node} == left
    rng = np.random.default_rng(3)
    feeds = {"x": rng.standard_normal((4, 6)).astype(np.float32), "z": rng.standard_normal((2, 6)).astype(np.float32)}
    for a, b in zip(*(plain_session(str(path)).run(None, feeds) for path in (source, written)), strict=True):
        assert a.dtype == b.dtype
        np.testing.assert_array_equal(b, a)
    run_ok("optimize", written, "-o", tmp_path / "again.onnx", "--keep-rest")
    assert (tmp_path / "again.onnx").read_bytes() == written.read_bytes()


@pytest.mark.parametrize("name", COMPUTED)
def test_what_is_computed_stays(name: str, tmp_path: Path) -> None:
    source, written = optimized(17, COMPUTED[name], tmp_path)
    assert written.read_bytes() == source.read_bytes()
