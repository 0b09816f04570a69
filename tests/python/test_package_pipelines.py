"""Pipelines of docs/pipelines.md that need no torch: passes of onnx_ir, make, and models that ONNX Runtime quantized."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import onnx_ir
import onnxruntime.quantization
import pytest
from conftest import BUILD, ROOT, run, run_ok

import ascend_fuse
from ascend_fuse.session import plain_session

EXAMPLES = ROOT / "examples" / "pipelines"
MODEL = "llama-sdpa-past-ts17-dynamic.onnx"


def test_an_onnx_ir_pass(zoo: Path) -> None:
    from ascend_fuse.ir_pass import OptimizePass

    fuse = OptimizePass(target="ascend910b")
    model = onnx_ir.load(zoo / MODEL)
    result = fuse(model)
    assert result.modified and result.model is not model and fuse.report is not None
    assert fuse.report.summary.sites["attention"].fused == 2
    # onnx_ir writes the domain ai.onnx as the empty one, which ATC of 8.1 does not read beside a second import: optimize says
    # so. `save` of the pass writes what ATC reads.
    with pytest.raises(ascend_fuse.NotReadByAtc, match="empty domain"):
        OptimizePass(target="ascend910b")(result.model)
    assert not OptimizePass(target="ascend910b", force=True)(result.model).modified


def test_behind_the_optimizer_of_onnxscript(zoo: Path, tmp_path: Path) -> None:
    subprocess.run([sys.executable, EXAMPLES / "onnxscript_pass.py", zoo / MODEL, tmp_path / "out.onnx"], check=True,
                   env=dict(os.environ, PYTHONPATH=str(BUILD / "python")), capture_output=True)
    written = onnx.load(tmp_path / "out.onnx")
    assert "NPURmsNorm" in {node.op_type for node in written.graph.node}
    assert {opset.domain for opset in written.opset_import} == {"ai.onnx", "npu"} == {node.domain for node in written.graph.node}
    assert not ascend_fuse.check(tmp_path / "out.onnx").fatal
    before = (tmp_path / "out.onnx").read_bytes()
    run_ok("optimize", tmp_path / "out.onnx", "-o", tmp_path / "again.onnx", "--quiet")
    assert (tmp_path / "again.onnx").read_bytes() == before, "a second run changes nothing"


def test_a_pass_writes_a_file_whole_or_not_at_all(zoo: Path, tmp_path: Path) -> None:
    from ascend_fuse.ir_pass import OptimizePass

    fuse = OptimizePass(target="ascend910b")
    result = fuse(onnx_ir.load(zoo / MODEL))
    fuse.save(result.model, tmp_path / "m.onnx", external_data="m.data")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["m.data", "m.onnx"]
    assert not ascend_fuse.check(tmp_path / "m.onnx").fatal
    assert ascend_fuse.verify(zoo / MODEL, tmp_path / "m.onnx", regions=False, tool=str(BUILD / "ascend-fuse")).ok
    with pytest.raises(ValueError, match="must be relative"):
        fuse.save(result.model, tmp_path / "n.onnx", external_data="/n.data")
    assert not (tmp_path / "n.onnx").exists() and len(list(tmp_path.iterdir())) == 2


def test_bodies_are_spelled_too() -> None:
    from ascend_fuse.ir_pass import spell_default_domain

    model = onnx.parser.parse_model("""<ir_version: 8, opset_import: ["" : 17, "f" : 1]>
        g (float[2] x, bool c) => (float[2] y) {
          y = If (c) <then_branch = a () => (float[2] t) { t = Relu (x) }, else_branch = b () => (float[2] e) { e = f.g (x) }>
        }
        <domain: "f", opset_import: ["" : 17]> g (p) => (q) { q = Abs (p) }""")
    spell_default_domain(model)
    [branch] = model.graph.node
    assert {node.domain for attribute in branch.attribute for node in attribute.g.node} == {"ai.onnx", "f"}
    assert branch.domain == model.functions[0].node[0].domain == model.functions[0].opset_import[0].domain == "ai.onnx"


def make(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    environment = dict(os.environ, PATH=f"{BUILD}:{os.environ['PATH']}")
    return subprocess.run(["make", "-C", folder, *words], env=environment, capture_output=True, text=True)


def test_make(zoo: Path, tmp_path: Path) -> None:
    shutil.copy(EXAMPLES / "Makefile", tmp_path)
    shutil.copy(zoo / MODEL, tmp_path / "llama.onnx")
    done = make(tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert json.loads((tmp_path / "llama.report.json").read_text())["summary"]["sites"]["attention"]["left"] == 0
    assert "Nothing to be done" in make(tmp_path).stdout
    (tmp_path / "llama.npu.onnx").unlink()
    failed = make(tmp_path, "REQUIRE=glu")
    assert failed.returncode != 0 and "not written" in failed.stderr and not (tmp_path / "llama.npu.onnx").exists()


def test_container_files_are_the_same_for_both_processors() -> None:
    texts = {name: (ROOT / "examples" / "docker" / f"Dockerfile.{name}").read_text() for name in ("x86_64", "aarch64")}
    assert texts["x86_64"].replace("x86_64", "aarch64").replace("linux/amd64", "linux/arm64") == texts["aarch64"]
    for name, text in texts.items():
        words = [line.split()[0] for line in text.splitlines() if line and not line.startswith(("#", " "))]
        assert words == ["ARG", "FROM", "RUN", "COPY", "RUN", "RUN", "USER", "WORKDIR", "ENTRYPOINT", "CMD"]
        assert f"*manylinux_2_28_{name}.whl" in text


@pytest.mark.parametrize("kind", ["dynamic", "static"])
def test_a_quantized_model_is_written_without_operators_for_quantising(tmp_path: Path, kind: str) -> None:
    """The report names what was written, and the numbers are the same (docs/quantised.md)."""
    rng = np.random.default_rng(0)
    plain = onnx.parser.parse_model("""<ir_version: 8, opset_import: ["": 17]>
      g (float[2, 8] x) => (float[2, 8] y) { h = MatMul (x, w) s = Sigmoid (h) z = Mul (h, s) y = MatMul (z, v) }""")
    for name in "wv":
        plain.graph.initializer.append(onnx.numpy_helper.from_array(rng.normal(size=(8, 8)).astype(np.float32), name))
    onnx.save(plain, tmp_path / "m.onnx")
    if kind == "dynamic":
        onnxruntime.quantization.quantize_dynamic(tmp_path / "m.onnx", tmp_path / "q.onnx")
    else:
        class Reader(onnxruntime.quantization.CalibrationDataReader):
            batches = iter([{"x": rng.normal(size=(2, 8)).astype(np.float32)}] * 2)

            def get_next(self) -> dict[str, np.ndarray] | None:
                return next(self.batches, None)

        onnxruntime.quantization.quantize_static(tmp_path / "m.onnx", tmp_path / "q.onnx", Reader())
    before = onnx.load(tmp_path / "q.onnx")
    result = ascend_fuse.optimize(tmp_path / "q.onnx")
    quantized = {"MatMulInteger", "DynamicQuantizeLinear", "QuantizeLinear", "DequantizeLinear", "QLinearMatMul"}
    kinds = {node.op_type for node in before.graph.node} & quantized
    assert kinds and not {node.op_type for node in result.model.graph.node} & quantized
    # Products on the kernel are sites.
    on_kernel = {"MatMulInteger"} if any(site.state == "fused" for site in result.report.sites) else set()
    written = {row.op for row in result.report.adapted if row.code == "quantised-written"}
    assert kinds - on_kernel <= written <= kinds
    assert [site.kind for site in result.report.sites if site.kind == "quantised_linear"] == ["quantised_linear"] * 2
    feeds = {"x": rng.normal(size=(2, 8)).astype(np.float32)}
    onnx.save(result.model, tmp_path / "o.onnx")  # int8 products of a static model are nodes of the chip
    after = ascend_fuse.expand(tmp_path / "o.onnx").model
    first, second = (plain_session(model.SerializeToString()).run(None, feeds)[0] for model in (before, after))
    # The kernel gives float16, so that a value between two codes may take the other one.
    code = np.abs(first).max() / 127
    assert np.allclose(first, second, rtol=1e-5, atol=2 * code), np.abs(first - second).max() / code
