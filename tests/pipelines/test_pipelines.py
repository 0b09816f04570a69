"""The examples of docs/pipelines.md with the real packages. scripts/test-pipelines runs this; what needs no torch is in
tests/python/test_package_pipelines.py."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import onnx
import pytest

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("ASCEND_FUSE_BUILD", ROOT / "build")).resolve()
EXAMPLES = ROOT / "examples" / "pipelines"
ENVIRONMENT = dict(os.environ, PYTHONPATH=f"{BUILD / 'python'}:{EXAMPLES}", PATH=f"{BUILD}:{os.environ['PATH']}",
                   HF_HUB_OFFLINE="1", TRANSFORMERS_OFFLINE="1")
sys.path[:0] = [str(BUILD / "python"), str(EXAMPLES)]


def run(*words: object, cwd: Path | None = None) -> str:
    done = subprocess.run([*map(str, words)], capture_output=True, text=True, env=ENVIRONMENT, cwd=cwd)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def npu(path: Path) -> set[str]:
    model = onnx.load(path, load_external_data=False)
    return {node.op_type for node in model.graph.node if node.op_type.startswith("NPU") or node.domain == "npu"}


def test_torch_export(tmp_path: Path) -> None:
    printed = run(sys.executable, EXAMPLES / "torch_export.py", tmp_path / "out.onnx")
    assert "rms_norm" in printed
    assert {"NPURmsNorm", "NPUMish"} <= npu(tmp_path / "out.onnx")


def test_a_program_runs_as_before(tmp_path: Path) -> None:
    """The ONNXProgram that comes out, expanded again, computes what the one that went in computes."""
    import torch
    import torch_export

    import ascend_fuse

    program = torch.onnx.export(torch_export.Block().eval(), (torch.randn(2, 8, 64),), dynamo=True, verbose=False)
    result = ascend_fuse.optimize(program)
    assert type(result.model) is type(program) and result.model is not program
    program.save(tmp_path / "original.onnx")
    result.model.save(tmp_path / "optimized.onnx")
    verified = ascend_fuse.verify(tmp_path / "original.onnx", tmp_path / "optimized.onnx", tool=BUILD / "ascend-fuse")
    assert verified.ok, verified.to_text()


def test_optimum(tmp_path: Path) -> None:
    """A tiny Llama of random weights, exported by optimum as people do, from a folder and not from the net."""
    pytest.importorskip("optimum.exporters.onnx")
    from transformers import LlamaConfig, LlamaForCausalLM

    config = LlamaConfig(vocab_size=64, hidden_size=64, intermediate_size=128, num_hidden_layers=2, num_attention_heads=4,
                         num_key_value_heads=4, max_position_embeddings=64)
    LlamaForCausalLM(config).save_pretrained(tmp_path / "model")
    from optimum.exporters.onnx import main_export

    main_export(str(tmp_path / "model"), tmp_path / "exported", task="text-generation-with-past", do_validation=False,
                no_post_process=True)
    run("ascend-fuse", "optimize", "model.onnx", "-o", "model.npu.onnx", "--json", "report.json", "--quiet", cwd=tmp_path / "exported")
    sites = json.loads((tmp_path / "exported" / "report.json").read_text())["summary"]["sites"]
    assert sites["rms_norm"]["found"] + sites["add_norm"]["found"] >= 5 and sites["attention"]["found"] == 2
    assert "NPURmsNorm" in npu(tmp_path / "exported" / "model.npu.onnx")


def test_olive(tmp_path: Path) -> None:
    pytest.importorskip("olive")
    import torch
    import torch_export

    torch.onnx.export(torch_export.Block().eval(), (torch.randn(2, 8, 64),), str(tmp_path / "m.onnx"), dynamo=True, verbose=False)
    run(sys.executable, EXAMPLES / "olive_pass.py", tmp_path / "m.onnx", tmp_path / "out", cwd=tmp_path)
    found = list((tmp_path / "out").rglob("*.onnx"))
    assert found and "NPURmsNorm" in npu(found[0])
