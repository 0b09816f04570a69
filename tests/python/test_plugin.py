"""The nodes of our op plugin, expanded and run: each against its formula written once more, in numpy."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import onnx
import pytest
from ascend_fuse.session import plain_session
from conftest import ROOT, run, run_ok
from onnx import TensorProto, helper, numpy_helper

HALF, FLOAT = TensorProto.FLOAT16, TensorProto.FLOAT


def erf(x: np.ndarray) -> np.ndarray:
    import math

    return np.vectorize(math.erf)(x)


def sigmoid(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-x))


def norm(x: np.ndarray, epsilon: float, centre: bool) -> np.ndarray:
    d = x - x.mean(-1, keepdims=True) if centre else x
    return d / np.sqrt((d * d).mean(-1, keepdims=True) + epsilon)


def rotated(x: np.ndarray, cos: np.ndarray, sin: np.ndarray) -> np.ndarray:
    half = x.shape[-1] // 2
    return x * cos + np.concatenate([-x[..., half:], x[..., :half]], -1) * sin


def gelu_tanh(x: np.ndarray) -> np.ndarray:
    return x / 2 * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))


def attention(q: np.ndarray, k: np.ndarray, v: np.ndarray, masked: np.ndarray | bool = False) -> dict[int, np.ndarray]:
    """With a scale of 0.3; masked broadcasts over batch and heads. A row without a key is 0."""
    k, v = (np.repeat(x, q.shape[1] // x.shape[1], 1) for x in (k, v))
    scores = np.where(masked, -np.inf, q @ k.transpose(0, 1, 3, 2) * 0.3)
    most = np.maximum(scores.max(-1, keepdims=True), -1e30)
    weights = np.exp(scores - most)
    return {0: weights / np.maximum(weights.sum(-1, keepdims=True), 1e-30) @ v}


def group_norm(x: np.ndarray, gain: np.ndarray, shift: np.ndarray) -> np.ndarray:
    y = norm(x.reshape(len(x), 2, -1), 0.5, True).reshape(x.shape)
    return y * gain[:, None, None] + shift[:, None, None]


def right_of(offset: int) -> np.ndarray:
    """How far key j of 6 is right of query i of 4, for a diagonal that begins in key `offset`."""
    return np.arange(6)[None] - np.arange(4)[:, None] - offset


TOKENS = 2147483647
SCORES = [(2, 4, 4, 8), (2, 2, 6, 8), (2, 2, 6, 8)]
DIRECT = {"num_heads": 2, "input_layout": "BNSD", "scale_value": 0.3, "pre_tokens": TOKENS, "next_tokens": TOKENS,
          "sparse_mode": 0, "inner_precise": 2}
INFER = {"num_heads": 4, "num_key_value_heads": 2, "input_layout": "BNSD", "scale": 0.3, "pre_tokens": TOKENS,
         "next_tokens": TOKENS, "inner_precise": 2}

# operator, attributes, input shapes (None: not given), number of outputs, outputs that are compared, the formula
CASES = {
    "swiglu": ("NPUSwiGlu", {"dim": -1}, [(3, 8)], 1, lambda x: {0: x[:, :4] * sigmoid(x[:, :4]) * x[:, 4:]}),
    "geglu_erf": (
        "NPUGeGluV2", {"dim": -1, "approximate": 0, "activate_left": 0}, [(3, 8)], 1,
        lambda x: {0: x[:, :4] * x[:, 4:] / 2 * (1 + erf(x[:, 4:] / np.sqrt(2)))}),
    "geglu_erf_left": (
        "NPUGeGluV2", {"dim": -1, "approximate": 0, "activate_left": 1}, [(3, 8)], 1,
        lambda x: {0: x[:, 4:] * x[:, :4] / 2 * (1 + erf(x[:, :4] / np.sqrt(2)))}),
    "geglu_tanh": (
        "NPUGeGluV2", {"dim": -1, "approximate": 1, "activate_left": 0}, [(3, 8)], 1,
        lambda x: {0: x[:, :4] * gelu_tanh(x[:, 4:])}),
    "geglu_tanh_left": (
        "NPUGeGluV2", {"dim": -1, "approximate": 1, "activate_left": 1}, [(3, 8)], 1,
        lambda x: {0: x[:, 4:] * gelu_tanh(x[:, :4])}),
    "swish": ("NPUSwish", {}, [(3, 8)], 1, lambda x: {0: x * sigmoid(x)}),
    "rms_norm": (
        "NPURmsNormWithEpsilon", {"epsilon": 0.5}, [(3, 8), (8,)], 1, lambda x, g: {0: norm(x, 0.5, False) * g}),
    "add_rms_norm": (
        "NPUAddRmsNormWithEpsilon", {"epsilon": 0.5}, [(3, 8), (3, 8), (8,)], 3,
        lambda a, b, g: {0: norm(a + b, 0.5, False) * g, 2: a + b}),
    "add_rms_norm_of_rows": (
        "NPUAddRmsNormDynamicQuant", {"epsilon": 0.5}, [(3, 8), (3, 8), (8,)], 5,
        lambda a, b, g: {2: a + b, 3: np.abs(norm(a + b, 0.5, False) * g).max(axis=-1) / 127}),
    "layer_norm": (
        "NPULayerNormV4", {"epsilon": 0.5}, [(3, 8), "shape", (8,), (8,)], 1,
        lambda x, g, s: {0: norm(x, 0.5, True) * g + s}),
    "layer_norm_without_shift": (
        "NPULayerNormV4", {"epsilon": 0.5}, [(3, 8), "shape", (8,)], 1, lambda x, g: {0: norm(x, 0.5, True) * g}),
    "add_layer_norm": (
        "NPUAddLayerNorm", {"epsilon": 0.5, "additional_output": 1}, [(3, 8), (3, 8), (8,), (8,)], 4,
        lambda a, b, g, s: {0: norm(a + b, 0.5, True) * g + s, 3: a + b}),
    "rotary_of_query_and_key": (
        "NPUApplyRotaryPosEmb", {"layout": 1}, [(2, 5, 3, 8), (2, 5, 1, 8), (2, 5, 1, 8), (2, 5, 1, 8)], 2,
        lambda q, k, c, s: {0: rotated(q, c, s), 1: rotated(k, c, s)}),
    "matmul": ("NPUFusedMatMul", {"fused_op_type": ""}, [(3, 4), (4, 5)], 1, lambda a, b: {0: a @ b}),
    "matmul_bias": (
        "NPUFusedMatMul", {"fused_op_type": ""}, [(3, 4), (4, 5), (5,)], 1, lambda a, b, c: {0: a @ b + c}),
    "matmul_relu": (
        "NPUFusedMatMul", {"fused_op_type": "relu"}, [(3, 4), (4, 5)], 1, lambda a, b: {0: np.maximum(a @ b, 0)}),
    "matmul_bias_relu": (
        "NPUFusedMatMul", {"fused_op_type": "relu"}, [(3, 4), (4, 5), (5,)], 1,
        lambda a, b, c: {0: np.maximum(a @ b + c, 0)}),
    "matmul_gelu_erf": (
        "NPUFusedMatMul", {"fused_op_type": "gelu_erf"}, [(3, 4), (4, 5)], 1,
        lambda a, b: {0: a @ b / 2 * (1 + erf(a @ b / np.sqrt(2)))}),
    "matmul_gelu_tanh": (
        "NPUFusedMatMul", {"fused_op_type": "gelu_tanh"}, [(3, 4), (4, 5)], 1, lambda a, b: {0: gelu_tanh(a @ b)}),
    "gelu": ("NPUGelu", {}, [(3, 8)], 1, lambda x: {0: gelu_tanh(x)}),
    "group_norm": (
        "NPUGroupNorm", {"num_groups": 2, "eps": 0.5}, [(2, 4, 3, 3), (4,), (4,)], 1,
        lambda x, g, s: {0: group_norm(x, g, s)}),
    "rms_norm_of_many_digits": (
        "NPURmsNormWithEpsilon", {"epsilon": [0.123456789]}, [(3, 8), (8,)], 1,
        lambda x, g: {0: norm(x, 0.123456789, False) * g}),
    "attention_direct": (
        "NPUPromptFlashAttentionDirect", DIRECT, [(2, 2, 4, 8), (2, 2, 4, 8), (2, 2, 4, 8), None, "mask 2 1 4 4"], 1,
        lambda q, k, v, m: attention(q, k, v, m)),
    "attention_direct_of_one_mask": (
        "NPUPromptFlashAttentionDirect", {**DIRECT, "scale_value": [0.3]},
        [(2, 2, 4, 8), (2, 2, 4, 8), (2, 2, 4, 8), None, "mask 4 4"], 1, lambda q, k, v, m: attention(q, k, v, m)),
    "infer_attention": (
        "NPUFusedInferAttentionScore", {**INFER, "sparse_mode": 0}, SCORES, 2, lambda q, k, v: attention(q, k, v)),
    "infer_attention_masked": (
        "NPUFusedInferAttentionScore", {**INFER, "sparse_mode": 0}, [*SCORES, None, "mask 2 1 4 6"], 2,
        lambda q, k, v, m: attention(q, k, v, m)),
    "infer_attention_left_up": (
        "NPUFusedInferAttentionScore", {**INFER, "sparse_mode": 2}, [*SCORES, None, "template"], 2,
        lambda q, k, v: attention(q, k, v, right_of(0) > 0)),
    "infer_attention_right_down": (
        "NPUFusedInferAttentionScore", {**INFER, "sparse_mode": 3}, [*SCORES, None, "template"], 2,
        lambda q, k, v: attention(q, k, v, right_of(2) > 0)),
    "infer_attention_band": (
        "NPUFusedInferAttentionScore", {**INFER, "sparse_mode": 4, "pre_tokens": 2, "next_tokens": 0},
        [*SCORES, None, "template"], 2,
        lambda q, k, v: attention(q, k, v, (right_of(2) > 0) | (right_of(2) < -2))),
}  # fmt: skip


@pytest.mark.parametrize("style", ["npu", "default"])
@pytest.mark.parametrize("case", CASES)
def test_expanded_node_computes_its_formula(case: str, style: str, tmp_path: Path) -> None:
    op, attributes, shapes, output_count, formula = CASES[case]
    generator = np.random.default_rng(7)
    feeds, inputs, constants, values = {}, [], [], []
    for i, shape in enumerate(shapes):
        if shape is None:
            inputs.append("")
        elif shape == "shape":
            constants.append(helper.make_tensor("shape", TensorProto.INT32, [1], [8]))
            inputs.append("shape")
        elif shape == "template":
            template = np.triu(np.ones((2048, 2048), bool), 1)
            constants.append(numpy_helper.from_array(template, "template"))
            inputs.append("template")
        elif isinstance(shape, str):
            dims = [int(word) for word in shape.split()[1:]]
            feeds[f"x{i}"] = generator.random(dims) < 0.6
            inputs.append(f"x{i}")
            values.append(helper.make_tensor_value_info(f"x{i}", TensorProto.BOOL, dims))
        else:
            feeds[f"x{i}"] = generator.normal(size=shape).astype(np.float32)
            inputs.append(f"x{i}")
            values.append(helper.make_tensor_value_info(f"x{i}", FLOAT, shape))
    expected = formula(*(feed if feed.dtype == bool else feed.astype(np.float64) for feed in feeds.values()))
    names = [f"y{i}" if i in expected else f"unused{i}" for i in range(output_count)]
    domain = "npu" if style == "npu" else ""
    node = helper.make_node(op, inputs, names, domain=domain, name="node", **attributes)
    outputs = [helper.make_tensor_value_info(f"y{i}", FLOAT, value.shape) for i, value in expected.items()]
    imports = [helper.make_opsetid("", 17)] + [helper.make_opsetid("npu", 1)] * (style == "npu")
    graph = helper.make_graph([node], "g", values, outputs, constants)
    onnx.save(helper.make_model(graph, opset_imports=imports, ir_version=8), tmp_path / "m.onnx")
    run_ok("expand", tmp_path / "m.onnx", "-o", tmp_path / "e.onnx")
    onnx.checker.check_model(str(tmp_path / "e.onnx"), full_check=True)
    session = plain_session(tmp_path / "e.onnx", threads=1)
    for found, value in zip(session.run(None, feeds), expected.values(), strict=True):
        np.testing.assert_allclose(found, value, rtol=2e-5, atol=2e-5)


def test_attributes_that_no_formula_is_written_for_are_refused(tmp_path: Path) -> None:
    node = helper.make_node("NPUSwiGlu", ["x"], ["y"], domain="npu", dim=0)
    values = [helper.make_tensor_value_info("x", FLOAT, [4, 8])], [helper.make_tensor_value_info("y", FLOAT, [2, 8])]
    graph = helper.make_graph([node], "g", *values)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17), helper.make_opsetid("npu", 1)])
    onnx.save(model, tmp_path / "m.onnx")
    result = run("expand", tmp_path / "m.onnx", "-o", tmp_path / "e.onnx")
    assert result.code == 1
    assert "cannot be expanded" in result.err


def test_the_report_says_that_the_output_needs_the_plugin(zoo: Path, tmp_path: Path) -> None:
    source = zoo / "llama-sdpa-past-dy18-dynamic.onnx"
    stock = run_ok("optimize", source, "-o", tmp_path / "a.onnx")
    with_plugin = run_ok("optimize", source, "-o", tmp_path / "b.onnx", "--plugin")
    assert "with our op plugin" not in stock.out
    assert "target ascend910b, CANN 8.1 with our op plugin" in with_plugin.out
    assert "only with our op plugin installed, version 1 or later, and refuses the model without it: 2 NPUSwiGlu (" in with_plugin.out


def test_the_report_gives_the_evidence(zoo: Path, tmp_path: Path) -> None:
    source = zoo / "llama-sdpa-past-dy18-dynamic.onnx"
    report = json.loads(run_ok("optimize", source, "-o", tmp_path / "a.onnx", "--plugin", "--quiet", "--json", "-").out)
    gains = {gain["node"]: gain for gain in report["gains"]}
    emitted = {site["emitted_op"].removeprefix("npu.") for site in report["sites"] if site["state"] == "fused"}
    assert set(gains) == emitted
    assert gains["NPURmsNorm"]["evidence"] == "measured"
    assert gains["NPUSwiGlu"]["evidence"] == "likely"
    assert all(gain["because"] and gain["source"] for gain in gains.values())


def test_what_is_preferred_is_a_node_that_is_off(zoo: Path, tmp_path: Path) -> None:
    source = zoo / "llama-sdpa-past-dy18-dynamic.onnx"
    wrong = run("optimize", source, "-o", tmp_path / "a.onnx", "--plugin", "--prefer", "NPUSwish")
    assert wrong.code == 1
    assert "--prefer NPUSwish: valid names are NPUSwiGlu" in wrong.err
    assert not (tmp_path / "a.onnx").exists()
    run_ok("optimize", source, "-o", tmp_path / "a.onnx", "--plugin", "--prefer", "NPUSwiGlu")


def test_every_node_that_is_emitted_has_evidence() -> None:
    """And those that are not have none: the document says it of each, and all figures stand in the cost model."""
    text = (ROOT / "patterns" / "operators.txtpb").read_text()
    declared = dict(re.findall(r'\nop \{\n  name: "npu\.(\w+)"\n(.*?)\n\}', text, re.DOTALL))
    emitted = {name for name, body in declared.items() if "never_emitted" not in body}
    parts = re.split(r"^### npu\.", (ROOT / "docs" / "operators.md").read_text(), flags=re.MULTILINE)[1:]
    told = {part.split()[0]: re.findall(r"^Speed: (\w+): .+ \(.+\)\.$", part, re.MULTILINE) for part in parts}
    assert {name for name, words in told.items() if words} == emitted
    assert {word for words in told.values() for word in words} <= {"measured", "likely", "loss", "unknown"}


def test_check_says_which_version_is_needed(zoo: Path, tmp_path: Path) -> None:
    run_ok("optimize", zoo / "llama-sdpa-past-dy18-dynamic.onnx", "-o", tmp_path / "a.onnx", "--plugin")
    assert "install our op plugin, version 1 or later (docs/plugin.md), and say --plugin" in run("check", tmp_path / "a.onnx").out
    checked = run("check", tmp_path / "a.onnx", "--plugin").out
    assert "with our op plugin installed, version 1 or later, and refuses the model without it: 2 NPUSwiGlu" in checked


def nodes_of(path: Path) -> set[str]:
    return set(re.findall(r'op: "npu\.(\w+)"', path.read_text().split("\nnode {")[0]))


def test_the_nodes_of_the_plugin_are_documented_and_have_a_reference() -> None:
    targets = ROOT / "patterns" / "targets"
    ours = nodes_of(targets / "_plugin.txtpb")
    section = (ROOT / "docs" / "operators.md").read_text().split("\n## Ascend nodes of our op plugin\n")[1].split("\n## ")[0]
    assert set(re.findall(r"^### npu\.(NPU\w+)$", section, re.MULTILINE)) == ours
    rules = "".join(path.read_text() for path in (ROOT / "patterns" / "rules" / "reference").glob("*.rule"))
    assert ours <= set(re.findall(r"[=|] npu\.(\w+)", rules))


def test_no_stock_name_is_shadowed() -> None:
    targets = ROOT / "patterns" / "targets"
    ours = nodes_of(targets / "_plugin.txtpb")
    for path in targets.glob("cann-*.txtpb"):
        stock = set(re.findall(r'op: "npu\.(\w+)"', path.read_text()))
        assert not ours & stock
    stock = set(re.findall(r'op: "npu\.(\w+)"', (targets / "_parser.txtpb").read_text()))
    assert stock and not ours & stock
