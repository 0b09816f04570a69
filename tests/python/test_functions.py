"""Local functions: exports whose modules are functions give the same sites, the same nodes and the same numbers as the same
exports without, and as the same functions inlined by the onnx package."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import numpy
import onnx
import onnx.inliner
import pytest
from conftest import TOOL, run, run_ok
from onnx import helper, numpy_helper

import fill
from ascend_fuse import verification as verify
from ascend_fuse.session import plain_session
from outline import outline, without_metadata

# Exports of dynamo that keep module paths, one of each kind of model.
MODELS = ["llama-sdpa-past-dy18-dynamic", "gpt2-sdpa-nocache-dy18-dynamic", "bert-sdpa-dy18-dynamic",
          "gemma2-eager-nocache-dy18-dynamic", "clip-vision-sdpa-dy18-dynamic", "dinov2-swiglu-sdpa-dy18-dynamic"]


def optimized(model: onnx.ModelProto, folder: Path, name: str) -> tuple[dict[str, Any], onnx.ModelProto, Path]:
    path, out, report = folder / f"{name}.onnx", folder / f"{name}.out.onnx", folder / f"{name}.json"
    onnx.save(model, path)
    run_ok("optimize", path, "-o", out, "--json", report, "--quiet")
    return json.loads(report.read_text()), onnx.load(out), out


def sites(report: dict[str, Any]) -> Counter[tuple[str, str, str]]:
    return Counter((site["kind"], site["state"], site.get("emitted_op", "")) for site in report.get("sites", []))


def operators(model: onnx.ModelProto) -> Counter[str]:
    """Operators; the domain of NPU nodes follows from what else the model imports."""
    return Counter(node.op_type for node in model.graph.node if node.op_type != "Constant")


@pytest.mark.parametrize("model_id", MODELS)
def test_modules_as_functions(model_id: str, tmp_path: Path) -> None:
    exported = fill.load_model(model_id)
    called = outline(exported)
    onnx.checker.check_model(called)
    assert len(called.functions) > 10 and any(node.domain.startswith("pkg.") for node in called.graph.node)
    report, result, _ = optimized(called, tmp_path, "called")
    flat_report, flat, _ = optimized(without_metadata(exported), tmp_path, "flat")
    other_report, other, _ = optimized(onnx.inliner.inline_local_functions(called), tmp_path, "other")
    assert sites(report) == sites(flat_report) == sites(other_report)
    assert any(state == "fused" for _, state, _ in sites(report))
    assert operators(result) == operators(flat) == operators(other)
    assert not result.functions and {entry.domain for entry in result.opset_import} == {
        entry.domain for entry in flat.opset_import}
    assert not [line for line in report.get("warnings", []) if "local function" in line["message"]]
    # Every site lies in the module that the exporter named.
    exported_report, _, _ = optimized(exported, tmp_path, "exported")
    assert [(site["kind"], site.get("module", "")) for site in report["sites"]] == [
        (site["kind"], site.get("module", "")) for site in exported_report["sites"]]
    entry = next(entry for entry in fill.load_manifest()["models"] if entry["id"] == model_id)
    verified = verify.verify_models(tmp_path / "called.onnx", tmp_path / "called.out.onnx", tool=str(TOOL), entry=entry,
                                    report=tmp_path / "called.json")
    assert verified.ok, verified.to_text()
