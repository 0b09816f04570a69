"""What `expand` writes of an Ascend attention (patterns/rules/reference) and the numpy evaluator say the same at the edges: rows
without a key, and NaN that was there before."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from conftest import run_ok
from onnx import TensorProto, helper, numpy_helper

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))

from fuzz.npu_numpy import evaluate  # noqa: E402

B, N, S, T, D = 2, 4, 3, 5, 16
OPEN = {"pre_tokens": 2**31 - 1, "next_tokens": 2**31 - 1, "sparse_mode": 0, "inner_precise": 2, "input_layout": "BNSD", "num_heads": N}
# name, attributes, whether there is an added tensor of length 0, heads of the keys
NODES = [
    ("NPUPromptFlashAttention", {**OPEN, "scale_value": 0.25, "num_key_value_heads": 2}, True, 2),
    ("NPUPromptFlashAttentionDirect", {**OPEN, "scale_value": 0.25}, False, N),
    ("NPUFusedInferAttentionScore", {**OPEN, "scale": 0.25, "num_key_value_heads": 2}, False, 2),
]


def masks() -> dict[str, np.ndarray]:
    """True = masked: a row of each batch keeps no key."""
    full = np.zeros((B, 1, S, T), bool)
    full[0, 0, 1], full[1, 0, 2], full[:, :, 0, 3:] = True, True, True
    return {"of all rows": full, "without a batch": full[0, 0]}


@pytest.mark.parametrize("mask", masks().values(), ids=masks())
@pytest.mark.parametrize(("op_type", "attributes", "empty", "key_heads"), NODES, ids=[n[0] for n in NODES])
def test_a_nan_query_is_not_a_row_without_a_key(tmp_path: Path, op_type: str, attributes: dict, empty: bool, key_heads: int, mask: np.ndarray) -> None:
    rng = np.random.default_rng(3)
    q, k, v = (rng.standard_normal((B, h, n, D)).astype(np.float16) for h, n in ((N, S), (key_heads, T), (key_heads, T)))
    q[0, 0, 0, 0] = np.nan  # its row keeps keys
    q[0, 1, 1, 0] = np.nan  # its row keeps none
    added = ["added"] if empty else [""]
    node = helper.make_node(op_type, ["q", "k", "v", *added, "mask"], ["y"], domain="npu", **attributes)
    tensors = [numpy_helper.from_array(mask, "mask")] + ([numpy_helper.from_array(np.zeros(0, np.float16), "added")] if empty else [])
    values = [helper.make_tensor_value_info(name, TensorProto.FLOAT16, x.shape) for name, x in (("q", q), ("k", k), ("v", v))]
    graph = helper.make_graph([node], "one", values, [helper.make_tensor_value_info("y", TensorProto.FLOAT16, q.shape)], tensors)
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("npu", 1)]
    onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=8), tmp_path / "one.onnx")
    run_ok("expand", "--plugin", tmp_path / "one.onnx", "-o", tmp_path / "expanded.onnx")
    (actual,) = onnxruntime.InferenceSession(tmp_path / "expanded.onnx").run(None, {"q": q, "k": k, "v": v})
    absent = np.zeros(0, np.float16) if empty else None
    (expected,) = evaluate(op_type, [q, k, v, absent, mask], {a.name: helper.get_attribute_value(a) for a in node.attribute}, 1)
    np.testing.assert_array_equal(np.isnan(actual), np.isnan(expected))
    np.testing.assert_allclose(actual.astype(np.float64), np.asarray(expected, np.float64), rtol=2e-3, atol=2e-3)
    assert np.isnan(actual[0, 0, 0]).all() and (actual[0, :, 1] == 0).all()
