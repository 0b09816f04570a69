"""The numpy evaluator of Ascend nodes (tools/fuzz/npu_numpy.py): what each kernel's document says, on small numbers."""

from __future__ import annotations

import math
import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tools"))

from fuzz.npu_numpy import GARBAGE, NODES, ContractError, evaluate  # noqa: E402

ROW = np.array([[3.0, -4.0]], np.float32)
ONES = np.ones(2, np.float32)
RNG = np.random.default_rng(7)


def close(actual: object, expected: object) -> None:
    np.testing.assert_allclose(np.asarray(actual, np.float64), np.asarray(expected, np.float64), rtol=1e-5, atol=1e-6)


def softmax(x: np.ndarray) -> np.ndarray:
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def test_rms_norm_always_adds_1e_6() -> None:
    y, rstd = evaluate("NPURmsNorm", [ROW * 1e-3, ONES], {"epsilon": 0.5}, 2)
    root = math.sqrt(12.5e-6 + 1e-6)
    close(y, ROW * 1e-3 / root)
    close(rstd, [[1 / root]])
    (y,) = evaluate("NPURmsNormWithEpsilon", [ROW, ONES * 2], {"epsilon": 0.5}, 1)
    close(y, 2 * ROW / math.sqrt(13.0))


def test_the_sum_is_output_two() -> None:
    y, _, total = evaluate("NPUAddRmsNorm", [ROW, ROW, ONES], {}, 3)
    close(total, 2 * ROW)
    close(y, 2 * ROW / math.sqrt(50.0))
    with pytest.raises(ContractError, match="another shape"):
        evaluate("NPUAddRmsNorm", [ROW, ROW[:, :1], ONES], {}, 1)
    with pytest.raises(ContractError, match="gamma"):
        evaluate("NPUAddRmsNorm", [ROW, ROW, np.ones(3, np.float32)], {}, 1)


def test_layer_norms() -> None:
    expected = np.array([[1.0, -1.0]]) * 2 + 0.5
    close(evaluate("NPULayerNormV4", [ROW, np.array([2], np.int32), ONES * 2, ONES / 2], {"epsilon": 0.0})[0], expected)
    y, _, _, total = evaluate("NPUAddLayerNorm", [ROW, ROW, ONES * 2, ONES / 2], {"epsilon": 0.0, "additional_output": 1}, 4)
    close(y, expected)
    close(total, 2 * ROW)
    *_, total = evaluate("NPUAddLayerNorm", [ROW, ROW, ONES, ONES], {}, 4)
    close(total, np.full_like(ROW, GARBAGE))  # not asked for


def test_group_norm_silu_has_groups_of_channels() -> None:
    x = np.array([[[1.0], [3.0], [10.0], [30.0]]], np.float32)
    normed = np.array([[[-1.0], [1.0], [-1.0], [1.0]]])
    close(evaluate("NPUGroupNormSilu", [x, None, None], {"num_groups": 2, "eps": 0.0})[0], normed / (1 + np.exp(-normed)))
    close(evaluate("NPUGroupNorm", [x, None, None], {"num_groups": 2, "eps": 0.0})[0], normed)
    with pytest.raises(ContractError):
        evaluate("NPUGroupNormSilu", [x, None, None], {})  # the parser's default is 0 groups


def test_three_gelus_are_three_functions() -> None:
    x = np.array([1.0], np.float32)
    values = [float(evaluate(op, [x], attributes)[0][0]) for op, attributes in (
        ("NPUGeluV2", {}), ("NPUGeluV2", {"approximate": b"tanh"}), ("NPUGelu", {}), ("NPUFastGelu", {}))]
    close(values, [0.841345, 0.841192, 0.841192, 0.845796])
    close(evaluate("NPUMish", [x], {})[0], [0.865098])
    close(evaluate("NPUSwish", [x], {"scale": 2.0})[0], [1 / (1 + math.exp(-2.0))])


def test_which_half_is_activated() -> None:
    x = np.array([[1.0, 5.0]], np.float32)
    silu = 1 / (1 + math.exp(-1.0))
    close(evaluate("NPUSwiGlu", [x], {})[0], [[5 * silu]])
    close(evaluate("NPUGeglu", [x], {"activate_left": 1})[0], [[1 * 5.0]])  # gelu (5) is 5; the attribute is not read
    close(evaluate("NPUGeGluV2", [x], {"activate_left": 1, "approximate": 0})[0], [[5 * 0.841345]])
    with pytest.raises(ContractError):
        evaluate("NPUSwiGlu", [x[:, :1]], {})


@pytest.mark.parametrize(("mode", "expected"), [(0, [-3, -4, 1, 2]), (1, [-2, 1, -4, 3]), (2, [-2, 1, -4, 3])])
def test_rotary_modes(mode: int, expected: list[int]) -> None:
    x = np.arange(1, 5, dtype=np.float32).reshape(1, 1, 1, 4)
    zero, one = np.zeros_like(x), np.ones_like(x)
    close(evaluate("NPURotaryPositionEmbedding", [x, zero, one], {"mode": mode})[0].ravel(), expected)


def test_rotary_mul_is_half_whatever_is_written() -> None:
    x = np.arange(1, 5, dtype=np.float32).reshape(1, 1, 1, 4)
    close(evaluate("NPURotaryMul", [x, np.zeros_like(x), np.ones_like(x)], {"rotary_mode": b"interleaved"})[0].ravel(), [-3, -4, 1, 2])
    with pytest.raises(ContractError, match="mode must be given"):
        evaluate("NPURotaryPositionEmbedding", [x, x, x], {})
    wide = np.arange(64, dtype=np.float32).reshape(1, 1, 1, 64)
    (y,) = evaluate("NPUInterleaveRope", [wide, np.ones_like(wide), np.zeros_like(wide)], {})
    close(y.ravel(), np.r_[0:64:2, 1:64:2])


def attention_inputs(batch: int = 2, heads: int = 4, groups: int = 2, queries: int = 3, keys: int = 5, width: int = 16) -> list[np.ndarray]:
    return [RNG.standard_normal(shape).astype(np.float32) for shape in (
        (batch, heads, queries, width), (batch, groups, keys, width), (batch, groups, keys, width))]


def by_hand(q: np.ndarray, k: np.ndarray, v: np.ndarray, scale: float, keep: np.ndarray) -> np.ndarray:
    result = np.zeros((*q.shape[:3], v.shape[3]))
    times = q.shape[1] // k.shape[1]
    for b in range(q.shape[0]):
        for h in range(q.shape[1]):
            scores = q[b, h].astype(np.float64) @ k[b, h // times].T * scale
            result[b, h] = softmax(np.where(keep, scores, -1e30)) @ v[b, h // times]
    return result


def test_weights_of_four_and_eight_bits_are_scaled_by_groups() -> None:
    x = RNG.standard_normal((3, 64)).astype(np.float32)
    weight = RNG.integers(-8, 8, (64, 16))
    scale, offset = RNG.standard_normal((2, 16)).astype(np.float32), RNG.integers(-3, 4, (2, 16)).astype(np.float32)
    whole = (weight + np.repeat(offset, 32, axis=0)) * np.repeat(scale, 32, axis=0).astype(np.float64)
    packed = sum((weight.reshape(64, 2, 8)[..., i] & 15) << (4 * i) for i in range(8)).astype(np.uint32).view(np.int32)
    for codes in (weight.astype(np.int8), packed):
        close(evaluate("WeightQuantBatchMatmulV2", [x, codes, scale, offset], {"antiquant_group_size": 32})[0], x.astype(np.float64) @ whole)
    with pytest.raises(ContractError, match="groups of 16"):
        evaluate("WeightQuantBatchMatmulV2", [x, packed, scale, offset], {"antiquant_group_size": 16})
    with pytest.raises(ContractError, match="offset"):
        evaluate("WeightQuantBatchMatmulV2", [x, packed, scale, offset.astype(np.float16)], {"antiquant_group_size": 32})


def test_integers_are_multiplied_exactly_and_scaled_by_19_bits() -> None:
    x1, x2 = np.array([[127, -128]], np.int8), np.array([[127, 1], [-128, 2]], np.int8)
    scale = np.array([np.float32(0.1).view(np.uint32) | np.uint64(1 << 46)], np.uint64)
    bias = np.array([5, -1], np.int32)
    close(evaluate("QuantBatchMatMul", [x1, x2, scale, None, bias], {"dtype": 3})[0], [[127 * 127 + 128 * 128 + 5, 127 - 256 - 1]])
    kept = float(np.float32(0.0999755859375))  # 0.1 cut to ten bits after the first
    close(evaluate("QuantBatchMatMul", [x1, x2, scale], {})[0], (np.array([[32513, -129]]) * kept).astype(np.float16))
    close(evaluate("QuantBatchMatMul", [x1, x2.T, scale], {"transpose_x2": 1})[0], (np.array([[32513, -129]]) * kept).astype(np.float16))
    with pytest.raises(ContractError, match="int8"):
        evaluate("QuantBatchMatMul", [ROW, ROW, scale], {})


def test_codes_round_half_to_even_and_saturate() -> None:
    x = np.array([[0.5, 1.5, -2.5, 1e9, -1e9]], np.float32)
    close(evaluate("NPUQuantize", [x, np.ones(1, np.float32), None], {"dtype": 2})[0], [[0, 2, -2, 127, -128]])
    close(evaluate("AscendQuant", [x], {"scale": 1.0, "offset": 1.0})[0], [[2, 2, -2, 127, -128]])
    with pytest.raises(ContractError):
        evaluate("NPUQuantize", [x, np.ones(1, np.float32)], {})  # the parser would take it for uint8


def test_norms_of_a_sum_as_codes() -> None:
    half = np.array([[3.0, -4.0], [0.0, 0.0]], np.float16)
    ones, scales = np.ones(2, np.float16), np.full(2, 0.01, np.float32)
    codes, _, total = evaluate("NPUAddRmsNormQuant", [half, half, ones, scales, None, np.full(2, 3, np.int32)], {"epsilon": 1e-6}, 3)
    close(codes, [[88, -110], [3, 3]])  # 6 and -8 over the root of 50
    close(total, 2 * half)
    codes, _, total, scale, _ = evaluate("NPUAddRmsNormDynamicQuant", [half, half, ones], {"epsilon": 1e-6}, 5)
    close(codes, [[95, -127], [0, 0]])
    close(scale, np.array([8 / np.sqrt(50) / 127, 0], np.float32))
    with pytest.raises(ContractError, match="each column"):
        evaluate("NPUAddRmsNormQuant", [half, half, ones, scales[:1]], {})
    with pytest.raises(ContractError, match="one type"):
        evaluate("NPUAddRmsNormQuant", [half, half.astype(np.float32), ones, scales], {})


BNSD = {"num_heads": 4, "num_key_value_heads": 2, "input_layout": b"BNSD", "scale_value": 0.3, "pre_tokens": 2**31 - 1, "next_tokens": 2**31 - 1}


def test_attention_with_shared_keys_in_every_layout() -> None:
    q, k, v = attention_inputs()
    expected = by_hand(q, k, v, 0.3, np.ones((3, 5), bool))
    close(evaluate("NPUPromptFlashAttention", [q, k, v], BNSD)[0], expected)
    swapped = [np.swapaxes(x, 1, 2) for x in (q, k, v)]
    close(evaluate("NPUPromptFlashAttention", swapped, {**BNSD, "input_layout": b"BSND"})[0], np.swapaxes(expected, 1, 2))
    close(evaluate("NPUPromptFlashAttention", [q, k, v], {**BNSD, "input_layout": b"BNSD_BSND"})[0], np.swapaxes(expected, 1, 2))
    packed = [x.reshape(x.shape[0], x.shape[1], -1) for x in swapped]
    close(evaluate("NPUPromptFlashAttention", packed, {**BNSD, "input_layout": b"BSH"})[0], np.swapaxes(expected, 1, 2).reshape(2, 3, -1))
    direct = {**BNSD, "scale": 0.3}
    close(evaluate("NPUFusedInferAttentionScore", [q, k, v], direct)[0], expected)


def test_true_in_a_mask_is_masked_and_the_band_counts_too() -> None:
    q, k, v = attention_inputs()
    empty = np.zeros(0, np.float32)
    mask = np.zeros((1, 1, 3, 5), bool)
    mask[..., 4] = True
    close(evaluate("NPUPromptFlashAttention", [q, k, v, empty, mask], BNSD)[0], by_hand(q, k, v, 0.3, np.arange(5)[None] < 4))
    # Without both token limits the parser's 0 leaves the diagonal.
    plain = {key: value for key, value in BNSD.items() if not key.endswith("tokens")}
    diagonal = np.arange(3)[:, None] == np.arange(5)[None]
    close(evaluate("NPUPromptFlashAttention", [q, k, v, empty, mask], plain)[0], by_hand(q, k, v, 0.3, diagonal))


@pytest.mark.parametrize(("mode", "offset"), [(2, 0), (3, 2)])
def test_compressed_causal_masks(mode: int, offset: int) -> None:
    q, k, v = attention_inputs()
    template = np.triu(np.ones((2048, 2048), bool), 1)
    keep = np.arange(5)[None] <= np.arange(3)[:, None] + offset
    inputs = [q, k, v, np.zeros(0, np.float32), template]
    close(evaluate("NPUPromptFlashAttention", inputs, {**BNSD, "sparse_mode": mode})[0], by_hand(q, k, v, 0.3, keep))
    with pytest.raises(ContractError, match="above the diagonal"):
        evaluate("NPUPromptFlashAttention", [*inputs[:4], ~template], {**BNSD, "sparse_mode": mode})


def test_rows_without_a_key() -> None:
    q, k, v = attention_inputs()
    inputs = [q, k, v, np.zeros(0, np.float32), np.ones((3, 5), bool)]
    close(evaluate("NPUPromptFlashAttention", inputs, {**BNSD, "inner_precise": 2})[0], np.zeros((2, 4, 3, 16)))
    close(evaluate("NPUPromptFlashAttention", inputs, {**BNSD, "inner_precise": 1})[0], np.full((2, 4, 3, 16), GARBAGE))
    x = np.array([[[[1.0, 2.0]]]], np.float32)
    close(evaluate("NPUScaledMaskedSoftmax", [x, np.ones(x.shape, bool)], {})[0], np.full(x.shape, 0.5))


def test_what_the_parser_of_prompt_flash_attention_refuses() -> None:
    q, k, v = attention_inputs()
    for inputs in ([q, k, v, None, np.zeros((3, 5), bool)], [q, k, v, np.zeros(0, np.float32)], [q, k, v, np.zeros(0, np.float16), np.zeros((3, 5), bool)]):
        with pytest.raises(ContractError):
            evaluate("NPUPromptFlashAttention", inputs, BNSD)
    with pytest.raises(ContractError, match="empty tensor"):
        evaluate("NPUFusedInferAttentionScore", [q, k, v, np.zeros(0, np.float32)], BNSD)


def test_products() -> None:
    x, w = RNG.standard_normal((3, 4)), RNG.standard_normal((4, 6))
    close(evaluate("NPUFusedMatMul", [x, w, np.ones(6)], {"fused_op_type": b"relu"})[0], np.maximum(x @ w + 1, 0))
    with pytest.raises(ContractError, match="no bias"):
        evaluate("NPUFusedMatMul", [x, w, np.ones(6)], {"fused_op_type": b"gelu_erf"})


def test_every_declared_node_that_rules_make_is_known() -> None:
    rules = "".join(path.read_text() for path in (Path(__file__).resolve().parents[2] / "patterns/rules/npu").glob("*.rule"))
    made = {word.split("<")[0].split("(")[0].strip() for word in rules.replace("npu.NPU", "\nnpu.NPU").split("\n") if word.startswith("npu.NPU")}
    assert {name.removeprefix("npu.").split()[0] for name in made} <= set(NODES)
