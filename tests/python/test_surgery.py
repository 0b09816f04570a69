"""What people patch by hand in exports for Ascend, optimized by one command. Each model of tests/zoo/surgery is as small as it goes and
has what a public script patches in a large one (tools/zoo/surgery.py, docs/tidy.md): that is gone or better here, a second run finds
nothing, and the numbers are those of the export."""

from __future__ import annotations

import collections
import json
import lzma
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import onnx
import pytest
from conftest import ROOT, TOOL, run_ok

MODELS = ROOT / "tests" / "zoo" / "surgery"
SHAPES = frozenset({"Shape", "ConstantOfShape", "Where", "Equal"})


@dataclass(frozen=True)
class Case:
    model: str
    target: str
    gone: frozenset[str]  # operators of which none is left
    most: int  # nodes that are left, without Constants
    fused: str = ""  # kind of a site that is fused


CASES = [
    Case("pointpillars", "ascend310p", SHAPES | {"ScatterND", "ArgMax", "Expand"}, 15),
    Case("yolo", "ascend310b", SHAPES | {"GatherElements", "Tile", "Expand"}, 13),
    Case("dbnet", "ascend310p", frozenset({"Gather", "Unsqueeze", "Concat", "Cast"}), 8),
    Case("conformer", "ascend910b", frozenset({"Cast", "Identity"}), 18),
    Case("wav2vec2", "ascend310p", frozenset({"Erf", "Div", "Mul"}), 12, "gelu"),
    Case("tsm", "ascend310p", SHAPES | {"ScatterND", "Expand", "Unsqueeze"}, 19),
    Case("vit", "ascend310p", frozenset({"Softmax", "Cast", "Unsqueeze", "Squeeze", "Div"}), 21, "attention"),
    Case("swin", "ascend310p", SHAPES | {"Gather", "Slice", "Cast", "Unsqueeze", "Squeeze", "Softmax"}, 25, "attention"),
    Case("segformer", "ascend310p", SHAPES | {"ArgMax", "Unsqueeze", "Concat", "Slice"}, 9),
    Case("bert", "ascend910b", frozenset({"Softmax", "Pow", "Div", "Squeeze"}), 24, "attention"),
]


def nodes(path: Path) -> collections.Counter[str]:
    return collections.Counter(node.op_type for node in onnx.load(path).graph.node if node.op_type != "Constant")


def test_every_model_has_a_case() -> None:
    assert {path.name.removesuffix(".onnx.xz") for path in MODELS.iterdir()} == {case.model for case in CASES}


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.model)
def test_what_scripts_patch_is_gone(case: Case, tmp_path: Path) -> None:
    source, written, again = (tmp_path / name for name in ("m.onnx", "o.onnx", "p.onnx"))
    source.write_bytes(lzma.decompress((MODELS / f"{case.model}.onnx.xz").read_bytes()))
    report = json.loads(run_ok("optimize", source, "-o", written, "--target", case.target, "--json", "-").out)
    left = nodes(written)
    assert set(left) & case.gone == set()
    assert sum(left.values()) <= case.most < sum(nodes(source).values()), left
    assert not case.fused or report["summary"]["sites"][case.fused]["fused"] > 0
    run_ok("optimize", written, "-o", again, "--target", case.target)
    assert again.read_bytes() == written.read_bytes()
    words = [sys.executable, "-m", "ascend_fuse.verification", source, written, "--tool", TOOL]
    verified = subprocess.run([str(word) for word in words], capture_output=True, text=True, check=False, cwd=ROOT / "tools" / "python")
    assert verified.returncode == 0, verified.stderr
