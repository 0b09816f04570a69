"""MoE and QMoE of ONNX Runtime: what is written in their place computes what ONNX Runtime does of them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from conftest import run
from onnx import helper
from quantised_models import FLOAT, RUNTIME, Array, build, single
from test_quantised import check, compare, written

E, T = 4, 5  # experts, tokens
GATED = {"activation_type": "swiglu", "swiglu_fusion": 1, "activation_alpha": 1.702, "activation_beta": 1.0}


def normal(rng: np.random.Generator, *shape: int) -> Array:
    return rng.standard_normal(shape).astype(np.float32)


def experts(hidden: int = 8, inner: int = 12, bias: bool = True, rank: int = 2, tie: bool = False,
            legacy: bool = False, **attributes: object) -> tuple[dict[str, Array], onnx.ModelProto]:
    """A MoE; of old files the dims of the weights are named the other way round, and the elements lie as in new ones."""
    rng = np.random.default_rng(71)
    width = inner * (2 if attributes.get("activation_type") == "swiglu" else 1)
    given = {"x": normal(rng, T, hidden), "r": np.zeros((T, E), np.float32) if tie else normal(rng, T, E)}
    if rank == 3:
        given["x"] = given["x"][None]
    first = (E, hidden, width) if legacy else (E, width, hidden)
    second = (E, inner, hidden) if legacy else (E, hidden, inner)
    constants: dict[str, Array] = {"w1": normal(rng, *first), "w2": normal(rng, *second)}
    if bias:
        constants |= {"b1": normal(rng, E, width), "b2": normal(rng, E, hidden)}
    order = "x r w1 b1 w2 b2" if bias else "x r w1 - w2"
    return given, single("MoE", given, constants, [FLOAT], order=order, domain=RUNTIME, **attributes)


@pytest.mark.parametrize("k", [1, 3])
@pytest.mark.parametrize("normalized", [0, 1])
@pytest.mark.parametrize("activation", [{"activation_type": name} for name in ("relu", "gelu", "silu", "identity")] + [GATED, GATED | {"swiglu_limit": 0.5}],
                         ids=["relu", "gelu", "silu", "identity", "swiglu", "swiglu of a limit"])
def test_experts(activation: dict[str, object], normalized: int, k: int, tmp_path: Path) -> None:
    given, model = experts(k=k, normalize_routing_weights=normalized, **activation)
    check(model, tmp_path, given, 2e-6)


@pytest.mark.parametrize("form", [{"bias": False}, {"rank": 3}, {"tie": True}, {"legacy": True}, {"hidden": 8, "inner": 8}, {"legacy": True, **GATED},
                                  {"hidden": 8, "inner": 8, **GATED}])
def test_forms_of_experts(form: dict[str, object], tmp_path: Path) -> None:
    given, model = experts(k=2, **form)
    check(model, tmp_path, given, 2e-6)


@pytest.mark.parametrize("attributes", [{"use_sparse_mixer": 1}, {"activation_type": "swiglu"}])
def test_experts_that_are_not_written(attributes: dict[str, object], tmp_path: Path) -> None:
    """What only other devices of ONNX Runtime compute: the node stays, and no file is written."""
    given, model = experts(k=2)
    kept = [one for one in model.graph.node[0].attribute if one.name not in attributes]
    del model.graph.node[0].attribute[:]
    model.graph.node[0].attribute.extend([*kept, *(helper.make_attribute(name, value) for name, value in attributes.items())])
    onnx.save(model, tmp_path / "m.onnx")
    done = run("optimize", tmp_path / "m.onnx", "-o", tmp_path / "o.onnx")
    assert done.code == 4 and "MoE: stock ATC has no parser" in done.err and not (tmp_path / "o.onnx").exists()


@pytest.mark.parametrize("gated", [False, True])
@pytest.mark.parametrize("zeros", [False, True])
@pytest.mark.parametrize(("bits", "block"), [(4, 0), (4, 16), (8, 0)])
def test_quantised_experts(bits: int, block: int, zeros: bool, gated: bool, tmp_path: Path) -> None:
    hidden, inner, rng = 16, 32, np.random.default_rng(72)
    width = 2 * inner if gated else inner
    given: dict[str, Array] = {"x": normal(rng, T, hidden), "r": normal(rng, T, E)}

    def half_of(codes: Array) -> Array:
        return (codes if bits == 8 else codes[..., 0::2] | codes[..., 1::2] << 4).astype(np.uint8)

    constants: dict[str, Array] = {}
    for i, (rows, length) in enumerate([(width, hidden), (hidden, inner)], 1):
        blocks = (length // block,) if block else ()
        constants[f"w{i}"] = half_of(rng.integers(0, 2**bits, (E, rows, length)))
        constants[f"s{i}"] = rng.uniform(0.01, 0.1, (E, rows, *blocks)).astype(np.float32) * 2.0 ** (4 - bits)
        if zeros:
            points = rng.integers(0, 2**bits, (E, rows, *blocks))
            whole = np.concatenate([points, np.zeros_like(points[..., :1])], -1) if bits == 4 and points.shape[-1] % 2 else points
            constants[f"z{i}"] = half_of(whole)
    attributes = GATED if gated else {"activation_type": "silu"}
    if block:
        attributes = attributes | {"block_size": block}
    order = "x r w1 s1 - w2 s2" + (" - - - - z1 z2" if zeros else "")
    model = single("QMoE", given, constants, [FLOAT], order=order, domain=RUNTIME, k=2, normalize_routing_weights=1,
                   expert_weight_bits=bits, **attributes)
    check(model, tmp_path, given, 2e-6)


@pytest.mark.parametrize("kind", [0, 1])
@pytest.mark.parametrize(("k", "n", "block"), [(64, 6, 16), (33, 5, 32), (32, 4, 64)])
def test_weights_of_fp4_and_nf4(k: int, n: int, block: int, kind: int, tmp_path: Path) -> None:
    """Blocks go on from row to row."""
    rng = np.random.default_rng(73)
    x = normal(rng, 3, k)
    constants: dict[str, Array] = {"b": rng.integers(0, 256, (n * k + 1) // 2).astype(np.uint8),
                                   "s": rng.uniform(0.1, 2, -(-n * k // block)).astype(np.float32)}
    model = single("MatMulBnb4", {"x": x}, constants, [FLOAT], domain=RUNTIME, K=k, N=n, block_size=block, quant_type=kind)
    check(model, tmp_path, {"x": x}, 2e-6)


@pytest.mark.parametrize("segments", [False, True])
def test_quantised_embeddings(segments: bool, tmp_path: Path) -> None:
    rng = np.random.default_rng(74)
    given: dict[str, Array] = {"ids": rng.integers(0, 20, (2, 6)).astype(np.int32)}
    names = ["words", "places", "kinds", "gain", "shift"]
    shapes = {"words": (20, 32), "places": (10, 32), "kinds": (2, 32), "gain": (32,), "shift": (32,)}
    if segments:
        given["segments"] = rng.integers(0, 2, (2, 6)).astype(np.int32)
    else:
        del shapes["kinds"]
    constants: dict[str, Array] = {}
    for name, shape in shapes.items():
        constants[name] = rng.integers(0, 256, shape).astype(np.uint8)
        constants[f"{name}_scale"] = np.float32(rng.uniform(0.01, 0.02))
        constants[f"{name}_zero"] = np.array(rng.integers(100, 150), np.uint8)
    word = [name if name in shapes else "-" for name in names]
    of = [[f"{name}_{kind}" if name in shapes else "-" for name in names] for kind in ("scale", "zero")]
    order = ["ids", "segments" if segments else "-", *word, "-", *of[0], *of[1]]
    model = single("QEmbedLayerNormalization", given, constants, [FLOAT, onnx.TensorProto.INT32], order=" ".join(order), domain=RUNTIME)
    check(model, tmp_path, given, 2e-6)


@pytest.mark.parametrize("spread", [False, True])
@pytest.mark.parametrize("direction", ["forward", "bidirectional"])
def test_a_quantised_lstm(direction: str, spread: bool, tmp_path: Path) -> None:
    """ONNX Runtime quantises its state at every step: only --quantised float writes it, as the LSTM of its weights."""
    inner, hidden, rng = 6, 5, np.random.default_rng(75)
    ways = 2 if direction == "bidirectional" else 1
    if spread and ways == 2:
        pytest.skip("left with a sentence")
    given = {"x": normal(rng, 3, 2, inner)}
    constants: dict[str, Array] = {}
    real: dict[str, Array] = {}
    for name, length in {"w": inner, "r": hidden}.items():
        codes = rng.integers(-127, 128, (ways, length, 4 * hidden)).astype(np.int8)
        scale = rng.uniform(0.001, 0.004, (ways, 4 * hidden) if spread else ways).astype(np.float32)
        constants |= {name: codes, f"s{name}": scale, f"z{name}": np.zeros(scale.shape, np.int8)}
        real[name] = (codes * (scale[:, None, :] if spread else scale[:, None, None])).transpose(0, 2, 1)
    bias = normal(rng, ways, 8 * hidden)
    attributes = {"hidden_size": hidden, "direction": direction}
    node = helper.make_node("DynamicQuantizeLSTM", ["x", "w", "r", "b", "", "", "", "", "sw", "zw", "sr", "zr"], ["y", "h"], domain=RUNTIME, **attributes)
    onnx.save(build([node], given, {"y": FLOAT, "h": FLOAT}, constants | {"b": bias}), tmp_path / "m.onnx")
    plain = helper.make_node("LSTM", ["x", "w", "r", "b"], ["y", "h"], **attributes)
    onnx.save(build([plain], given, {"y": FLOAT, "h": FLOAT}, {**real, "b": bias}), tmp_path / "plain.onnx")
    done = run("optimize", tmp_path / "m.onnx", "-o", tmp_path / "o.onnx")
    assert done.code == 4 and "--quantised float writes it as LSTM" in done.out + done.err
    made, _ = written(tmp_path / "m.onnx", tmp_path, "--quantised", "float")
    compare(tmp_path / "plain.onnx", made, given, 2e-6)
