"""An attention with a mask in a branch of an If: every chip writes it in a form that ATC reads there, or leaves it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnx.parser
import onnxruntime
import pytest
from conftest import run_ok

CHIPS = ["ascend310b", "ascend310p", "ascend910", "ascend910b", "ascend910_93", "ascend950"]
MODEL = """<ir_version: 8, opset_import: ["" : 17]>
g (float[2, 4, 128, 32] q, float[2, 4, 128, 32] k, float[2, 4, 128, 32] v, bool[2, 1, 128, 128] keep, bool c)
  => (float[2, 4, 128, 32] z)
<float scale = {0.17677669}, float lowest = {-3.4028235e38}>
{
  z = If (c) <
    then_branch = t () => (float[2, 4, 128, 32] y) {
      kt = Transpose <perm = [0, 1, 3, 2]> (k)
      s = MatMul (q, kt)
      scaled = Mul (s, scale)
      masked = Where (keep, scaled, lowest)
      p = Softmax <axis = -1> (masked)
      y = MatMul (p, v)
    },
    else_branch = e () => (float[2, 4, 128, 32] o) { o = Relu (q) }
  >
}"""


@pytest.mark.parametrize("flags", [[], ["--plugin"]], ids=["stock", "plugin"])
@pytest.mark.parametrize("target", CHIPS)
def test_a_masked_attention_in_a_branch(tmp_path: Path, target: str, flags: list[str]) -> None:
    newer = ["--cann", "2026.07"] if flags and target in ("ascend910_93", "ascend950") else []
    onnx.save(onnx.parser.parse_model(MODEL), tmp_path / "m.onnx")
    # Exit code 4 where ATC would not read the result.
    run_ok("optimize", tmp_path / "m.onnx", "-o", tmp_path / "o.onnx", "--target", target, "--quiet", *flags, *newer)
    run_ok("expand", tmp_path / "o.onnx", "-o", tmp_path / "e.onnx")
    random = np.random.default_rng(4)
    feeds = {name: random.standard_normal((2, 4, 128, 32)).astype(np.float32) for name in "qkv"}
    feeds["keep"] = random.random((2, 1, 128, 128)) < 0.6
    feeds["keep"][..., 0] = True
    for condition in (True, False):
        was, now = (onnxruntime.InferenceSession(tmp_path / name, providers=["CPUExecutionProvider"]).run(
            None, feeds | {"c": np.array(condition)})[0] for name in ("m.onnx", "e.onnx"))
        np.testing.assert_allclose(now, was, atol=2e-3)
