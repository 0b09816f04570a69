"""Quantised operators, of which ATC reads none: what is written in their place computes what ONNX Runtime does of them."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import onnx
import onnx.checker
import pytest
from conftest import run, run_ok
from onnx import TensorProto
from quantised_models import DYNAMIC, FLOAT, MODELS, PRODUCTS, RUNTIME, STATIC, Array, build, codes, feeds, packed, quantise, single

from ascend_fuse.session import plain_session

EXACT = ("--precision-mode", "must_keep_origin_dtype")  # float32 stays float32
LINEARS = {"linears": 3, "convolutions": 1, "attention": 4}  # whose weight is constant
CHIPS = ("ascend310b", "ascend310p", "ascend910", "ascend910b", "ascend910_93", "ascend950")
U8, I8, I32 = TensorProto.UINT8, TensorProto.INT8, TensorProto.INT32


def written(source: Path, folder: Path, *flags: str, chip: str = "ascend910b") -> tuple[Path, dict[str, object]]:
    """What optimize writes, which ATC reads, and its report. A second run changes nothing."""
    to = folder / f"{source.stem}.{chip}.onnx"
    run_ok("optimize", source, "-o", to, "--target", chip, "--json", folder / "report.json", *flags)
    mode = (*(flags[flags.index(EXACT[0]):][:2] if EXACT[0] in flags else ()), *[flag for flag in flags if flag == "--plugin"])
    run_ok("check", to, "--target", chip, *mode)
    run_ok("optimize", to, "-o", folder / "again.onnx", "--target", chip, *flags)
    assert (folder / "again.onnx").read_bytes() == to.read_bytes()
    run_ok("expand", to, "-o", folder / "expanded.onnx")
    onnx.checker.check_model(onnx.load(folder / "expanded.onnx"), full_check=True)
    return folder / "expanded.onnx", json.loads((folder / "report.json").read_text())


def compare(source: Path, made: Path, given: dict[str, Array], within: float = 0, steps: int = 0) -> None:
    """Integers differ by at most `steps`, and floats by at most `within` of the largest."""
    for a, b in zip(*(plain_session(str(path)).run(None, given) for path in (source, made)), strict=True):
        assert a.dtype == b.dtype
        assert a.shape == b.shape
        if np.issubdtype(a.dtype, np.integer):
            assert np.abs(a.astype(np.int64) - b).max(initial=0) <= steps
        else:
            np.testing.assert_allclose(b, a, rtol=0, atol=within * np.abs(a.astype(np.float64)).max(initial=0))


def check(model: onnx.ModelProto, folder: Path, given: dict[str, Array], within: float = 0, steps: int = 0) -> None:
    """The model, written for a chip, gives what it gives in ONNX Runtime."""
    onnx.save(model, folder / "m.onnx")
    made, _ = written(folder / "m.onnx", folder)
    compare(folder / "m.onnx", made, given, within, steps)


RNG = np.random.default_rng
EDGES = {"middle": 0.5, "low": 0.0, "high": 1.0}  # where the zero point lies in the range of codes


def zero_of(kind: type, edge: str) -> Array:
    info = np.iinfo(kind)
    return np.array(round(info.min + EDGES[edge] * (info.max - info.min)), kind)


@pytest.mark.parametrize("edge", EDGES)
@pytest.mark.parametrize("kind", [np.uint8, np.int8, np.uint16, np.int16])
@pytest.mark.parametrize("scale", [1e-10, 0.02, 0.5, 1e5])
def test_quantize(kind: type, edge: str, scale: float, tmp_path: Path) -> None:
    """Ties, saturation on both sides, and tiny and large scales, to the bit."""
    x = np.concatenate([np.arange(-300, 300, 0.5), RNG(0).standard_normal(64) * 1e4, [np.inf, -np.inf]]) * scale
    opset = 21 if kind in (np.uint16, np.int16) else 17
    model = single("QuantizeLinear", {"x": x.astype(np.float32)}, {"s": np.float32(scale), "z": zero_of(kind, edge)},
                   [onnx.helper.np_dtype_to_tensor_dtype(np.dtype(kind))], opset)
    check(model, tmp_path, {"x": x.astype(np.float32)})


@pytest.mark.parametrize("edge", EDGES)
@pytest.mark.parametrize("kind", [np.uint8, np.int8])
def test_a_pair(kind: type, edge: str, tmp_path: Path) -> None:
    """What is quantised and dequantised at once never becomes integers."""
    x = (RNG(1).standard_normal((4, 9)) * 3).astype(np.float32)
    node = onnx.helper.make_node
    nodes = [node("QuantizeLinear", ["x", "s", "z"], ["q"]), node("Transpose", ["q"], ["t"], perm=[1, 0]), node("DequantizeLinear", ["t", "s", "z"], ["y"])]
    model = build(nodes, {"x": x}, {"y": FLOAT}, {"s": np.float32(0.02), "z": zero_of(kind, edge)})
    check(model, tmp_path, {"x": x})
    ops = {node.op_type for node in onnx.load(tmp_path / "expanded.onnx").graph.node}
    assert "Cast" not in ops


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_quantize_along_an_axis(axis: int, tmp_path: Path) -> None:
    x = RNG(2).standard_normal((4, 5, 4 if axis != 1 else 6)).astype(np.float32)
    n = x.shape[axis]
    s, z = np.linspace(0.001, 0.1, n).astype(np.float32), codes(RNG(3), np.int8, n)
    check(single("QuantizeLinear", {"x": x}, {"s": s, "z": z}, [I8], axis=axis), tmp_path, {"x": x})
    q = codes(RNG(4), np.int8, *x.shape)
    check(single("DequantizeLinear", {"q": q}, {"s": s, "z": z}, [FLOAT], axis=axis), tmp_path, {"q": q})


@pytest.mark.parametrize("kind", [np.uint8, np.int8, np.int32, np.uint16])
@pytest.mark.parametrize("shape", [(3, 5), (40, 200)])
def test_a_constant_is_dequantised(kind: type, shape: tuple[int, int], tmp_path: Path) -> None:
    """A small one is looked at, a large one is streamed."""
    w = codes(RNG(5), kind, *shape) if kind != np.int32 else RNG(5).integers(-2**31, 2**31, shape).astype(np.int32)
    zero = {} if kind == np.int32 else {"z": codes(RNG(6), kind, shape[1])}
    s = np.geomspace(1e-10, 1e5, shape[1]).astype(np.float32)
    node = onnx.helper.make_node
    nodes = [node("DequantizeLinear", ["w", "s", *zero], ["d"]), node("Mul", ["x", "d"], ["y"])]
    x = np.ones((1, 1), np.float32)
    check(build(nodes, {"x": x}, {"y": FLOAT}, {"w": w, "s": s, **zero}, 21), tmp_path, {"x": x})
    assert [node.op_type for node in onnx.load(tmp_path / "expanded.onnx").graph.node] == ["Mul"]


@pytest.mark.parametrize(("kind", "low"), [(TensorProto.INT4, -8), (TensorProto.UINT4, 0)])
@pytest.mark.parametrize(("axis", "block"), [(0, 16), (1, 32), (0, 0), (1, 0), (-1, 5)])
def test_a_constant_in_blocks_of_4_bits(kind: int, low: int, axis: int, block: int, tmp_path: Path) -> None:
    """Blocks need not divide the axis, and rows need not fill bytes."""
    shape = [45, 63]
    q, rng = RNG(7).integers(low, low + 16, shape), RNG(8)
    groups = [-(-n // block) if i == axis % 2 else n for i, n in enumerate(shape)] if block else [shape[axis]]
    zeros = packed(rng.integers(low, low + 16, groups), kind, groups)
    constants = {"w": packed(q, kind, shape), "s": rng.uniform(0.001, 0.1, groups).astype(np.float32), "z": zeros}
    node = onnx.helper.make_node
    extra = {"block_size": block} if block else {}
    nodes = [node("DequantizeLinear", ["w", "s", "z"], ["d"], axis=axis, **extra), node("MatMul", ["x", "d"], ["y"])]
    x = RNG(9).standard_normal((2, 45)).astype(np.float32)
    check(build(nodes, {"x": x}, {"y": FLOAT}, constants, 21), tmp_path, {"x": x}, 1e-6)


@pytest.mark.parametrize("x", [np.zeros((2, 3)), np.ones((2, 3)), -np.ones((2, 3)), RNG(10).standard_normal((5, 7)), np.full((1, 1), 1e-30)])
def test_dynamic_quantize(x: Array, tmp_path: Path) -> None:
    check(single("DynamicQuantizeLinear", {"x": x.astype(np.float32)}, {}, [U8, FLOAT, U8]), tmp_path, {"x": x.astype(np.float32)})


@pytest.mark.parametrize("k", [1, 33, 256, 257, 1000])
@pytest.mark.parametrize("kind", [np.uint8, np.int8])
def test_integers_are_multiplied_exactly(kind: type, k: int, tmp_path: Path) -> None:
    a, b = codes(RNG(11), kind, 3, k), np.full((k, 5), 255, np.uint8)
    zeros = {"za": zero_of(kind, "low"), "zb": np.zeros(5, np.uint8)}
    check(single("MatMulInteger", {"a": a}, {"b": b, **zeros}, [I32]), tmp_path, {"a": a})


def test_both_operands_may_be_computed(tmp_path: Path) -> None:
    a, b = codes(RNG(12), np.uint8, 2, 3, 40), codes(RNG(13), np.uint8, 2, 40, 5)
    given = {"a": a, "b": b, "za": np.array(3, np.uint8), "zb": np.array(1, np.uint8)}
    check(single("MatMulInteger", given, {}, [I32]), tmp_path, given)


@pytest.mark.parametrize("edge", EDGES)
def test_padding_of_a_convolution_of_integers_is_the_zero_point(edge: str, tmp_path: Path) -> None:
    x, w = codes(RNG(14), np.uint8, 1, 4, 6, 7), codes(RNG(15), np.uint8, 6, 2, 3, 3)
    constants = {"w": w, "zx": zero_of(np.uint8, edge), "zw": np.array(77, np.uint8)}
    check(single("ConvInteger", {"x": x}, constants, [I32], pads=[1, 2, 1, 0], group=2, strides=[2, 1]), tmp_path, {"x": x})


def product_of_codes(kind: type, weight: type, spread: bool, edge: str) -> tuple[dict[str, Array], dict[str, Array]]:
    """(a) and the other inputs of a QLinearMatMul [5, 33] x [33, 7]."""
    n = (7,) if spread else ()
    a, b = codes(RNG(16), kind, 5, 33), codes(RNG(17), weight, 33, 7)
    zero_b = codes(RNG(18), weight, 7) if spread else zero_of(weight, "middle")
    return {"a": a}, {"sa": np.float32(0.02), "za": zero_of(kind, edge), "b": b, "sb": RNG(19).uniform(0.01, 0.02, n).astype(np.float32),
                      "zb": zero_b, "sy": np.float32(0.3), "zy": zero_of(kind, edge)}


@pytest.mark.parametrize("edge", EDGES)
@pytest.mark.parametrize("spread", [False, True])
@pytest.mark.parametrize(("kind", "weight"), [(np.uint8, np.uint8), (np.uint8, np.int8), (np.int8, np.int8)])
def test_qlinear_matmul(kind: type, weight: type, spread: bool, edge: str, tmp_path: Path) -> None:
    given, constants = product_of_codes(kind, weight, spread, edge)
    check(single("QLinearMatMul", given, constants, [onnx.helper.np_dtype_to_tensor_dtype(np.dtype(kind))]), tmp_path, given, steps=1)


@pytest.mark.parametrize("spread", [False, True])
@pytest.mark.parametrize("bias", [False, True])
def test_qlinear_conv(spread: bool, bias: bool, tmp_path: Path) -> None:
    x, w = codes(RNG(20), np.uint8, 2, 4, 7, 7), codes(RNG(21), np.int8, 6, 4, 3, 3)
    n = (6,) if spread else ()
    constants = {"sx": np.float32(0.02), "zx": np.array(7, np.uint8), "w": w, "sw": RNG(22).uniform(0.01, 0.02, n).astype(np.float32),
                 "zw": np.zeros(n, np.int8), "sy": np.float32(0.4), "zy": np.array(130, np.uint8)}
    if bias:
        constants["b"] = RNG(23).integers(-20000, 20000, 6).astype(np.int32)
    check(single("QLinearConv", {"x": x}, constants, [U8], pads=[1, 1, 1, 1]), tmp_path, {"x": x}, steps=1)


def unary_inputs() -> tuple[Array, dict[str, Array]]:
    return codes(RNG(24), np.uint8, 2, 4, 6, 8), {"sx": np.float32(0.05), "zx": np.array(100, np.uint8), "sy": np.float32(0.04),
                                                  "zy": np.array(3, np.uint8)}


@pytest.mark.parametrize(("op", "attributes"), [
    ("QLinearSigmoid", {}), ("QLinearLeakyRelu", {"alpha": 0.3}), ("QLinearSoftmax", {"axis": -1, "opset": 13}),
    ("QLinearGlobalAveragePool", {"channels_last": 0}), ("QLinearGlobalAveragePool", {"channels_last": 1}),
    ("QLinearAveragePool", {"kernel_shape": [2, 3], "pads": [0, 1, 0, 1], "count_include_pad": 1}),
])
def test_qlinear_of_one(op: str, attributes: dict[str, object], tmp_path: Path) -> None:
    x, constants = unary_inputs()
    if op == "QLinearSoftmax":
        constants["sy"], constants["zy"] = np.float32(1 / 256), np.array(0, np.uint8)
    check(single(op, {"x": x}, constants, [U8], domain=RUNTIME, **attributes), tmp_path, {"x": x}, steps=1)


@pytest.mark.parametrize("op", ["QLinearAdd", "QLinearMul"])
@pytest.mark.parametrize("shape", [(4, 6), (6,), (1,)])
def test_qlinear_of_two(op: str, shape: tuple[int, ...], tmp_path: Path) -> None:
    given = {"a": codes(RNG(25), np.int8, 4, 6), "b": codes(RNG(26), np.int8, *shape)}
    constants = {"sa": np.float32(0.05), "za": np.array(-3, np.int8), "sb": np.float32(0.02), "zb": np.array(5, np.int8),
                 "sy": np.float32(0.06), "zy": np.array(-128, np.int8)}
    check(single(op, given, constants, [I8], order="a sa za b sb zb sy zy", domain=RUNTIME), tmp_path, given, steps=1)


def test_qlinear_concat(tmp_path: Path) -> None:
    given = {"a": codes(RNG(27), np.uint8, 3, 4), "b": codes(RNG(28), np.uint8, 3, 5)}
    constants = {"sy": np.float32(0.05), "zy": np.array(128, np.uint8), "sa": np.float32(0.05), "za": np.array(3, np.uint8),
                 "sb": np.float32(0.02), "zb": np.array(5, np.uint8)}
    check(single("QLinearConcat", given, constants, [U8], order="sy zy a sa za b sb zb", domain=RUNTIME, axis=1), tmp_path, given, steps=1)


@pytest.mark.parametrize("quantised", [False, True])
@pytest.mark.parametrize("transposed", [0, 1])
def test_qgemm(quantised: bool, transposed: int, tmp_path: Path) -> None:
    a, b = codes(RNG(29), np.uint8, 3, 40), codes(RNG(30), np.int8, *((6, 40) if transposed else (40, 6)))
    constants = {"sa": np.float32(0.02), "za": np.array(9, np.uint8), "b": b, "sb": RNG(31).uniform(0.01, 0.02, 6).astype(np.float32),
                 "zb": np.zeros(6, np.int8), "c": RNG(32).integers(-9999, 9999, 6).astype(np.int32)}
    if quantised:
        constants.update(sy=np.float32(0.4), zy=np.array(130, np.uint8))
    model = single("QGemm", {"a": a}, constants, [U8 if quantised else FLOAT], domain=RUNTIME, alpha=0.5, transB=transposed)
    check(model, tmp_path, {"a": a}, 2e-6, steps=1)


def test_products_of_codes_to_float(tmp_path: Path) -> None:
    a, b = codes(RNG(33), np.uint8, 3, 40), codes(RNG(34), np.int8, 40, 6)
    constants = {"b": b, "sa": np.float32(0.02), "sb": np.float32(0.01), "za": np.array(9, np.uint8), "zb": np.array(3, np.int8),
                 "c": np.arange(6, dtype=np.float32)}
    check(single("MatMulIntegerToFloat", {"a": a}, constants, [FLOAT], domain=RUNTIME), tmp_path, {"a": a}, 2e-6)
    x = RNG(35).standard_normal((3, 40)).astype(np.float32)
    constants = {"b": b, "sb": np.full(6, 0.01, np.float32), "zb": np.zeros(6, np.int8), "c": np.arange(6, dtype=np.float32)}
    check(single("DynamicQuantizeMatMul", {"x": x}, constants, [FLOAT], domain=RUNTIME), tmp_path, {"x": x}, 1.2e-3)  # in float16


@pytest.mark.parametrize("zeros", ["none", "packed", "float"])
@pytest.mark.parametrize(("bits", "k", "block"), [(4, 64, 32), (4, 70, 16), (4, 33, 32), (8, 64, 32), (2, 70, 32)])
def test_weights_in_blocks(bits: int, k: int, block: int, zeros: str, tmp_path: Path) -> None:
    """MatMulNBits: blocks that do not divide K, and odd numbers of zero points in a row."""
    if bits != 4 and zeros == "float":
        pytest.skip("ONNX Runtime has no such form")
    n, blocks, rng = 5, -(-k // block), RNG(36)
    constants: dict[str, Array] = {"b": codes(rng, np.uint8, n, blocks, block * bits // 8), "s": rng.uniform(0.01, 0.1, (n, blocks)).astype(np.float32)}
    if zeros == "packed":
        constants["z"] = codes(rng, np.uint8, n, -(-blocks * bits // 8))
    if zeros == "float":
        constants["z"] = rng.uniform(0, 2**bits, (n, blocks)).astype(np.float32)
    x = rng.standard_normal((2, 3, k)).astype(np.float32)
    model = single("MatMulNBits", {"x": x}, constants, [FLOAT], domain=RUNTIME, K=k, N=n, bits=bits, block_size=block)
    check(model, tmp_path, {"x": x}, 2e-6)


def test_weights_in_blocks_with_a_bias(tmp_path: Path) -> None:
    rng = RNG(37)
    constants = {"b": codes(rng, np.uint8, 6, 2, 16), "s": rng.uniform(0.01, 0.1, (6, 2)).astype(np.float32), "c": np.arange(6, dtype=np.float32)}
    x = rng.standard_normal((3, 64)).astype(np.float32)
    model = single("MatMulNBits", {"x": x}, constants, [FLOAT], order="x b s - - c", domain=RUNTIME, K=64, N=6, bits=4, block_size=32)
    check(model, tmp_path, {"x": x}, 2e-6)


@pytest.mark.parametrize("zeros", [False, True])
@pytest.mark.parametrize("kind", ["uint8", "int4", "uint4"])
@pytest.mark.parametrize(("width", "block"), [(64, 16), (96, 64), (32, 32)])
def test_tables_in_blocks(kind: str, zeros: bool, width: int, block: int, tmp_path: Path) -> None:
    """Rows are taken as int8 where blocks divide them."""
    rng, rows = RNG(38), 11
    numbers = rng.integers(0, 16, (rows, width)) - (8 if kind == "int4" else 0)
    blocks = -(-width // block)
    of_blocks = rng.integers(0, 16, (rows, blocks + (blocks % 2 if kind == "uint8" else 0))) - (8 if kind == "int4" else 0)
    where = {"uint8": TensorProto.UINT8, "int4": TensorProto.INT4, "uint4": TensorProto.UINT4}[kind]
    half = 2 if kind == "uint8" else 1
    constants = {"w": packed(numbers, where, [rows, width // half]), "s": rng.uniform(0.01, 0.1, (rows, blocks)).astype(np.float32)}
    if zeros:
        constants["z"] = packed(of_blocks, where, [rows, -(-blocks // half)])
    ids = rng.integers(0, rows, (2, 3))
    model = single("GatherBlockQuantized", {"ids": ids}, constants, [FLOAT], 21, order="w ids s" + " z" * zeros, domain=RUNTIME,
                   block_size=block, gather_axis=0, quantize_axis=1)
    check(model, tmp_path, {"ids": ids})


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("way", [*STATIC, *DYNAMIC])
def test_what_quantisers_write(name: str, way: str, tmp_path: Path) -> None:
    """To the bit but for a code in the middle between two, also of products on a kernel, whose integers are exact where float32 is
    kept: all linears with a constant weight are."""
    onnx.save(MODELS[name](RNG(0)), tmp_path / "float.onnx")
    quantise(tmp_path / "float.onnx", way, tmp_path / "m.onnx")
    made, report = written(tmp_path / "m.onnx", tmp_path, *EXACT)
    model = onnx.load(tmp_path / "m.onnx")
    for seed in range(3):
        compare(tmp_path / "m.onnx", made, feeds(model, RNG(100 + seed)), 2e-2 if "QOperator" in way else 1e-6)
    sites = [site for site in report["sites"] if site["kind"].startswith("quantised_")]
    assert len(sites) == PRODUCTS[name]["dynamic" in way]
    linears = [site for site in sites if site["kind"] == "quantised_linear"]
    assert [site["state"] for site in linears].count("fused") == LINEARS[name]


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("way", [way for way in STATIC if "QUInt8-QUInt8" not in way])
def test_a_result_in_float16_is_nearer_than_the_quantiser_was(name: str, way: str, tmp_path: Path) -> None:
    """Where a precision mode computes in float16, kernels scale their sums: the error is below that of quantising the model."""
    onnx.save(MODELS[name](RNG(0)), tmp_path / "float.onnx")
    quantise(tmp_path / "float.onnx", way, tmp_path / "m.onnx")
    made, report = written(tmp_path / "m.onnx", tmp_path)
    model = onnx.load(tmp_path / "m.onnx")
    made_error = own_error = 0.0
    for seed in range(4):
        given = feeds(model, RNG(seed))
        float_y, y, made_y = (plain_session(str(path)).run(None, given)[0] for path in (tmp_path / "float.onnx", tmp_path / "m.onnx", made))
        made_error += float(np.square(made_y - y).sum())
        own_error += float(np.square(y - float_y).sum())
    assert made_error <= 0.5 * own_error
    states = [site["state"] for site in report["sites"] if site["kind"] == "quantised_linear"]
    assert states.count("fused") == LINEARS[name]


@pytest.mark.parametrize("chip", CHIPS)
@pytest.mark.parametrize("way", ["QDQ-QInt8-QInt8-channel", "QOperator-QUInt8-QInt8-tensor", "dynamic-QUInt8-channel-reduced"])
def test_every_chip(chip: str, way: str, tmp_path: Path) -> None:
    onnx.save(MODELS["convolutions"](RNG(0)), tmp_path / "float.onnx")
    quantise(tmp_path / "float.onnx", way, tmp_path / "m.onnx")
    written(tmp_path / "m.onnx", tmp_path, chip=chip)
    written(tmp_path / "m.onnx", tmp_path, "--plugin", chip=chip)


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("way", ["QDQ-QUInt8-QInt8-channel", "QDQ-QInt8-QInt8-tensor", "QOperator-QUInt8-QUInt8-tensor", "dynamic-QInt8-channel-whole"])
def test_float_is_nearer_to_the_model_before(name: str, way: str, tmp_path: Path) -> None:
    """Without rounding of activations what is left is the rounding of weights: no Round, and a smaller error against the float model."""
    onnx.save(MODELS[name](RNG(0)), tmp_path / "float.onnx")
    quantise(tmp_path / "float.onnx", way, tmp_path / "m.onnx")
    made, _ = written(tmp_path / "m.onnx", tmp_path, "--quantised", "float")
    assert "Round" not in {node.op_type for node in onnx.load(made).graph.node}
    model = onnx.load(tmp_path / "m.onnx")
    error = {"m": 0.0, "expanded": 0.0}
    for seed in range(4):  # of the inputs that were calibrated, so that none lies beyond the range
        given = feeds(model, RNG(seed))
        wanted = plain_session(str(tmp_path / "float.onnx")).run(None, given)[0]
        for which in error:
            error[which] += float(np.square(plain_session(str(tmp_path / f"{which}.onnx")).run(None, given)[0] - wanted).sum())
    assert error["expanded"] <= error["m"]


def test_what_is_fused_goes_on(tmp_path: Path) -> None:
    """Where activations are not rounded, the attention between quantised linears is found."""
    onnx.save(MODELS["attention"](RNG(0)), tmp_path / "float.onnx")
    quantise(tmp_path / "float.onnx", "QDQ-QUInt8-QInt8-channel", tmp_path / "m.onnx")
    _, report = written(tmp_path / "m.onnx", tmp_path, "--quantised", "float")
    assert [site["state"] for site in report["sites"] if site["kind"] == "attention"] == ["fused"]


@pytest.mark.parametrize("way", ["QDQ-QUInt8-QInt8-channel", "QOperator-QInt8-QInt8-tensor", "dynamic-QInt8-channel-whole"])
def test_an_attention_that_rounding_keeps_apart_is_said(way: str, tmp_path: Path) -> None:
    """With the advice that fuses it. A dynamic quantiser leaves attentions as they are."""
    onnx.save(MODELS["attention"](RNG(0)), tmp_path / "float.onnx")
    quantise(tmp_path / "float.onnx", way, tmp_path / "m.onnx")
    _, report = written(tmp_path / "m.onnx", tmp_path)
    (site,) = (site for site in report["sites"] if site["kind"] == "attention")
    if "dynamic" in way:
        assert site["state"] == "fused"
        return
    assert (site["state"], site["code"]) == ("left", "rounded-between")
    assert "--quantised float" in site["because"]
    _, report = written(tmp_path / "m.onnx", tmp_path, "--quantised", "float")
    assert [site["state"] for site in report["sites"] if site["kind"] == "attention"] == ["fused"]


def test_what_cannot_be_written_is_said(tmp_path: Path) -> None:
    x, b = np.ones((2, 32), np.float32), np.ones((4, 1, 16), np.uint8)
    model = single("MatMulNBits", {"x": x, "b": b}, {"s": np.ones((4, 1), np.float32)}, [FLOAT], domain=RUNTIME, K=32, N=4, block_size=32)
    onnx.save(model, tmp_path / "m.onnx")
    assert run("optimize", tmp_path / "m.onnx", "-o", tmp_path / "o.onnx", "--json", tmp_path / "r.json").code == 4
    (site,) = json.loads((tmp_path / "r.json").read_text())["sites"]
    assert (site["state"], site["code"]) == ("left", "quantised-left")
    assert "its weight is not constant" in site["because"]


@pytest.mark.parametrize(("chip", "grows"), [("ascend910b", 1), ("ascend310p", 8)])
def test_the_report_says_how_many_bytes_weights_have(chip: str, grows: int, tmp_path: Path) -> None:
    """A table of which rows are taken is not read by each run; weights in integers are an eighth of float32."""
    rng = RNG(46)
    table = rng.standard_normal((50, 96)).astype(np.float32)
    ids = np.zeros((1, 3), np.int64)
    constants = {"t": table, "b": codes(rng, np.uint8, 16, 3, 16), "s": rng.uniform(0.01, 0.1, (16, 3)).astype(np.float32)}
    nodes = [onnx.helper.make_node("Gather", ["t", "ids"], ["x"]),
             onnx.helper.make_node("MatMulNBits", ["x", "b", "s"], ["y"], domain=RUNTIME, K=96, N=16, bits=4, block_size=32)]
    onnx.save(build(nodes, {"ids": ids}, {"y": FLOAT}, constants), tmp_path / "m.onnx")
    said = run_ok("optimize", tmp_path / "m.onnx", "-o", tmp_path / "o.onnx", "--target", chip, "--json", tmp_path / "r.json").out
    weights = json.loads((tmp_path / "r.json").read_text())["summary"]["weights"]
    assert weights["before"] == table.nbytes + constants["b"].nbytes + constants["s"].nbytes
    assert weights["read_before"] == weights["before"] - table.nbytes and weights["read_after"] == weights["after"] - table.nbytes
    if grows > 1:
        assert weights["read_after"] == constants["b"].nbytes * grows
        assert f"weights {weights['before'] / 1e3:.1f} kB -> {weights['after'] / 1e3:.1f} kB (each run reads, without tables of rows: " in said
    else:
        assert weights["read_after"] < constants["b"].nbytes * 1.5 and "\nweights " not in said


def test_a_shared_weight_is_written_once(tmp_path: Path) -> None:
    w = codes(RNG(40), np.int8, 64, 64)
    node = onnx.helper.make_node
    nodes = [node("DequantizeLinear", ["w", "s", "z"], ["d"]), node("DequantizeLinear", ["w", "s", "z"], ["e"]),
             node("MatMul", ["x", "d"], ["a"]), node("MatMul", ["a", "e"], ["b"]), node("Transpose", ["d"], ["t"]), node("MatMul", ["b", "t"], ["y"])]
    x = RNG(41).standard_normal((2, 64)).astype(np.float32)
    check(build(nodes, {"x": x}, {"y": FLOAT}, {"w": w, "s": np.float32(0.01), "z": np.array(3, np.int8)}), tmp_path, {"x": x}, 1e-6)
    sizes = [len(tensor.raw_data) for tensor in onnx.load(tmp_path / "m.ascend910b.onnx").graph.initializer]
    assert sorted(sizes)[-1] == 4 * w.size
    assert sum(sizes) < 5 * w.size


KERNELS = ("ascend910b", "ascend910_93", "ascend950")


def in_blocks(zeros: bool, bits: int = 4, k: int = 96, n: int = 16, block: int = 32) -> tuple[dict[str, Array], onnx.ModelProto]:
    """A MatMulNBits that the kernel for weights of integers takes."""
    rng, blocks = RNG(50), -(-k // block)
    constants: dict[str, Array] = {"b": codes(rng, np.uint8, n, blocks, block * bits // 8), "s": rng.uniform(0.01, 0.1, (n, blocks)).astype(np.float32)}
    if zeros:
        constants["z"] = codes(rng, np.uint8, n, -(-blocks * bits // 8))
    given = {"x": rng.standard_normal((2, 3, k)).astype(np.float32)}
    return given, single("MatMulNBits", given, constants, [FLOAT], domain=RUNTIME, K=k, N=n, bits=bits, block_size=block)


def kernels_of(path: Path) -> list[str]:
    return [node.op_type for node in onnx.load(path).graph.node if node.domain == "npu"]


@pytest.mark.parametrize("chip", CHIPS)
@pytest.mark.parametrize("zeros", [False, True])
@pytest.mark.parametrize(("bits", "k", "block"), [(4, 96, 32), (8, 96, 32), (4, 100, 32), (4, 64, 64), (8, 48, 128)])
def test_weights_of_integers_stay_on_a_kernel(bits: int, k: int, block: int, zeros: bool, chip: str, tmp_path: Path) -> None:
    """On chips that have one, as the same numbers: groups that do not divide K, and one group for all of it."""
    given, model = in_blocks(zeros, bits, k, block=block)
    onnx.save(model, tmp_path / "m.onnx")
    made, report = written(tmp_path / "m.onnx", tmp_path, chip=chip)
    assert kernels_of(tmp_path / f"m.{chip}.onnx") == ["WeightQuantBatchMatmulV2"] * (chip in KERNELS)
    compare(tmp_path / "m.onnx", made, given, 2e-6)
    (site,) = report["sites"]
    assert (site["kind"], site["state"]) == ("quantised_linear", "fused" if chip in KERNELS else "left")


@pytest.mark.parametrize(("change", "why"), [({"n": 12}, "multiple of 8"), ({"block": 16}, "multiple of 32"),
                                             ({"bits": 2}, "codes of 4 and 8 bits")])
def test_weights_that_the_kernel_does_not_take(change: dict[str, int], why: str, tmp_path: Path) -> None:
    given, model = in_blocks(False, **change)
    onnx.save(model, tmp_path / "m.onnx")
    made, report = written(tmp_path / "m.onnx", tmp_path)
    assert kernels_of(tmp_path / "m.ascend910b.onnx") == []
    compare(tmp_path / "m.onnx", made, given, 2e-6)
    (site,) = report["sites"]
    assert why in site["because"]


@pytest.mark.parametrize("chip", KERNELS)
@pytest.mark.parametrize("zeros", [False, True])
@pytest.mark.parametrize("n", [65536, 131104])
@pytest.mark.parametrize("form", ["rows", "columns"])
def test_a_weight_of_many_columns_is_multiplied_in_parts(form: str, n: int, zeros: bool, chip: str, tmp_path: Path) -> None:
    """As a head for a large vocabulary is: each part is some of its columns, from MatMulNBits and from blocks [K, N]."""
    given, model = in_blocks(zeros, k=64, n=n)
    if form == "columns":
        rng = RNG(53)
        constants: dict[str, Array | TensorProto] = {"w": packed(rng.integers(-8, 8, (64, n)), TensorProto.INT4, [64, n]),
                                                     "s": rng.uniform(0.01, 0.1, (2, n)).astype(np.float32)}
        if zeros:
            constants["z"] = packed(rng.integers(-8, 8, (2, n)), TensorProto.INT4, [2, n])
        nodes = [onnx.helper.make_node("DequantizeLinear", ["w", "s", *["z"] * zeros], ["d"], axis=0, block_size=32),
                 onnx.helper.make_node("MatMul", ["x", "d"], ["y"])]
        model = build(nodes, given, {"y": FLOAT}, constants, 21)
    onnx.save(model, tmp_path / "m.onnx")
    made, report = written(tmp_path / "m.onnx", tmp_path, chip=chip)
    assert kernels_of(tmp_path / f"m.{chip}.onnx") == ["WeightQuantBatchMatmulV2"] * -(-n // 65504)
    compare(tmp_path / "m.onnx", made, given, 2e-6)
    (site,) = report["sites"]
    assert site["state"] == "fused"


@pytest.mark.parametrize(("k", "n"), [(300, 1000), (1000, 8), (17, 16), (136, 520)])
@pytest.mark.parametrize("bits", [4, 8])
def test_weights_are_turned_as_they_are_streamed(bits: int, k: int, n: int, tmp_path: Path) -> None:
    """Sizes around those of the tiles in which that is done."""
    given, model = in_blocks(True, bits, k, n, 32)
    onnx.save(model, tmp_path / "m.onnx")
    made, _ = written(tmp_path / "m.onnx", tmp_path)
    assert kernels_of(tmp_path / "m.ascend910b.onnx") == ["WeightQuantBatchMatmulV2"]
    compare(tmp_path / "m.onnx", made, given, 2e-6)


@pytest.mark.parametrize("zeros", [False, True])
@pytest.mark.parametrize("flags", [("--plugin",), ("--plugin", "--quantised", "fast"), ("--quantised", "fast")])
def test_weights_of_int8_on_310p_with_the_plugin(flags: tuple[str, ...], zeros: bool, tmp_path: Path) -> None:
    """What is open about the kernel is an assumption, and only with `fast`."""
    given, model = in_blocks(zeros, 8, 48, 16, 128)
    onnx.save(model, tmp_path / "m.onnx")
    made, report = written(tmp_path / "m.onnx", tmp_path, *flags, chip="ascend310p")
    taken = len(flags) == 3
    found = [node.op_type for node in onnx.load(tmp_path / "m.ascend310p.onnx").graph.node]
    assert found.count("NPUWeightQuantBatchMatmulTurned") == taken
    compare(tmp_path / "m.onnx", made, given, 2e-6)
    (site,) = report["sites"]
    assert site["state"] == ("fused" if taken else "left")
    assert taken == any("FRACTAL_NZ" in assumption for assumption in site.get("assumptions", []))


def test_scales_beyond_float16_keep_a_weight_from_the_kernel(tmp_path: Path) -> None:
    for scale in (1e-6, 1e5):
        given, model = in_blocks(False)
        (scales,) = (tensor for tensor in model.graph.initializer if tensor.name == "s")
        scales.raw_data = np.full(scales.dims, scale, np.float32).tobytes()
        onnx.save(model, tmp_path / "m.onnx")
        made, report = written(tmp_path / "m.onnx", tmp_path)
        compare(tmp_path / "m.onnx", made, given, 2e-6)
        assert "float16" in report["sites"][0]["because"]


@pytest.mark.parametrize("kind", ["int8", "uint8", "int4", "uint4"])
@pytest.mark.parametrize("block", [0, 32])
@pytest.mark.parametrize("zeros", [False, True])
def test_dequantised_weights_stay_on_a_kernel(kind: str, block: int, zeros: bool, tmp_path: Path) -> None:
    """DequantizeLinear of a weight alone, as weight-only quantisers write it."""
    k, n, rng = 96, 16, RNG(51)
    where = getattr(TensorProto, kind.upper())
    low, count = (0 if kind[0] == "u" else -(2 ** (int(kind[-1]) - 1))), 2 ** int(kind[-1])
    groups = [k // block, n] if block else [n]

    def of(dims: list[int]) -> Array | onnx.TensorProto:
        numbers = rng.integers(low, low + count, dims)
        return packed(numbers, where, dims) if count == 16 else numbers.astype(kind)

    constants = {"w": of([k, n]), "s": rng.uniform(0.01, 0.1, groups).astype(np.float32), **({"z": of(groups)} if zeros else {})}
    node = onnx.helper.make_node
    extra = {"axis": 0, "block_size": block} if block else {"axis": 1}
    nodes = [node("DequantizeLinear", ["w", "s", *["z"] * zeros], ["d"], **extra), node("MatMul", ["x", "d"], ["y"])]
    given = {"x": rng.standard_normal((2, k)).astype(np.float32)}
    onnx.save(build(nodes, given, {"y": FLOAT}, constants, 21), tmp_path / "m.onnx")
    made, _ = written(tmp_path / "m.onnx", tmp_path)
    assert kernels_of(tmp_path / "m.ascend910b.onnx") == ["WeightQuantBatchMatmulV2"] * (zeros or kind[0] != "u")
    compare(tmp_path / "m.onnx", made, given, 2e-6)


def test_dims_that_are_not_known_reach_the_kernel(tmp_path: Path) -> None:
    given, model = in_blocks(True)
    for value in (model.graph.input[0], model.graph.output[0]):
        for name, dim in zip("BS", value.type.tensor_type.shape.dim, strict=False):
            dim.dim_param = name
    onnx.save(model, tmp_path / "m.onnx")
    made, _ = written(tmp_path / "m.onnx", tmp_path)
    assert kernels_of(tmp_path / "m.ascend910b.onnx") == ["WeightQuantBatchMatmulV2"]
    compare(tmp_path / "m.onnx", made, given, 2e-6)
    compare(tmp_path / "m.onnx", made, {"x": RNG(52).standard_normal((5, 1, 96)).astype(np.float32)}, 2e-6)


def test_half_precision_is_quantised_as_float32_and_comes_back(tmp_path: Path) -> None:
    x = RNG(60).standard_normal((4, 8)).astype(np.float16)
    node = onnx.helper.make_node
    nodes = [node("QuantizeLinear", ["x", "s", "z"], ["q"]), node("DequantizeLinear", ["q", "s", "z"], ["y"])]
    check(build(nodes, {"x": x}, {"y": TensorProto.FLOAT16}, {"s": np.float16(0.03), "z": np.array(-5, np.int8)}, 19), tmp_path, {"x": x})


X = RNG(61).standard_normal((2, 4, 8, 8)).astype(np.float32)
Q = onnx.helper.make_node("QuantizeLinear", ["x", "s", "z"], ["q"])
FACTORS = {"s": np.float32(0.03), "z": np.array(-5, np.int8), "t": np.float32(0.05), "w": np.array(3, np.int8)}


def dequantize(x: str, y: str, scale: str = "s", zero: str = "z") -> onnx.NodeProto:
    return onnx.helper.make_node("DequantizeLinear", [x, scale, zero], [y])


BETWEEN: dict[str, tuple[list[onnx.NodeProto], dict[str, int], dict[str, Array]]] = {
    "codes are an output too": ([Q, dequantize("q", "y")], {"q": I8, "y": FLOAT}, {}),
    "another scale and zero point": ([Q, dequantize("q", "y", "t", "w")], {"y": FLOAT}, {}),
    "joined with others": ([Q, onnx.helper.make_node("QuantizeLinear", ["x", "t", "w"], ["r"]),
                            onnx.helper.make_node("Concat", ["q", "r"], ["c"], axis=1), dequantize("c", "y")], {"y": FLOAT}, {}),
    "moved": ([Q, onnx.helper.make_node("MaxPool", ["q"], ["m"], kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1]),
               onnx.helper.make_node("Reshape", ["m", "dims"], ["r"]), onnx.helper.make_node("Slice", ["r", "from", "to", "axis"], ["p"]),
               dequantize("p", "y"), onnx.helper.make_node("Identity", ["p"], ["i"])], {"y": FLOAT, "i": I8},
              {"dims": np.array([2, -1]), "from": np.array([3]), "to": np.array([40]), "axis": np.array([1])}),
    "split": ([Q, onnx.helper.make_node("Split", ["q", "parts"], ["a", "b"], axis=1), dequantize("a", "y"), dequantize("b", "v", "t")],
              {"y": FLOAT, "v": FLOAT}, {"parts": np.array([1, 3])}),
}


@pytest.mark.parametrize("name", BETWEEN)
def test_between_quantising_and_dequantising(name: str, tmp_path: Path) -> None:
    nodes, outputs, more = BETWEEN[name]
    check(build(nodes, {"x": X}, outputs, {**FACTORS, **more}), tmp_path, {"x": X})


@pytest.mark.parametrize("axis", [None, 1])
def test_scales_and_zero_points_may_be_computed(axis: int | None, tmp_path: Path) -> None:
    given: dict[str, Array] = {"x": X, "s": np.array(0.03, np.float32), "z": np.array(7, np.int8)}
    if axis is not None:
        given = {"x": X, "s": np.linspace(0.01, 0.1, 4).astype(np.float32), "z": np.arange(4).astype(np.int8)}
    node = onnx.helper.make_node
    nodes = [node("QuantizeLinear", ["x", "s", "z"], ["q"], axis=1), node("DequantizeLinear", ["q", "s", "z"], ["y"], axis=1)]
    check(build(nodes, given, {"q": I8, "y": FLOAT}, {}), tmp_path, given)


def test_codes_are_read_in_branches(tmp_path: Path) -> None:
    made = [onnx.helper.make_tensor_value_info(name, FLOAT, X.shape) for name in "ae"]
    then = onnx.helper.make_graph([dequantize("q", "a")], "t", [], made[:1])
    other = onnx.helper.make_graph([dequantize("q", "d", "t"), onnx.helper.make_node("Relu", ["d"], ["e"])], "e", [], made[1:])
    given = {"x": X, "c": np.array(True)}
    model = build([Q, onnx.helper.make_node("If", ["c"], ["y"], then_branch=then, else_branch=other)], given, {"y": FLOAT}, FACTORS)
    for condition in (True, False):
        check(model, tmp_path, {**given, "c": np.array(condition)})


def test_rows_of_a_table_are_dequantised(tmp_path: Path) -> None:
    """A table that only Gather reads stays in integers; one that is a weight too is dequantised as a whole."""
    ids, node = np.array([[1, 2], [3, 0]]), onnx.helper.make_node
    constants = {"w": codes(RNG(62), np.uint8, 5, 8), "s": np.float32(0.03), "z": np.array(9, np.uint8)}
    rows = [dequantize("w", "d"), node("Gather", ["d", "i"], ["y"])]
    check(build(rows, {"i": ids}, {"y": FLOAT}, constants), tmp_path, {"i": ids})
    assert {tensor.data_type for tensor in onnx.load(tmp_path / "m.ascend910b.onnx").graph.initializer if len(tensor.dims) == 2} == {U8}
    tied = [dequantize("w", "d"), node("Gather", ["d", "i"], ["a"]), node("Transpose", ["d"], ["t"], perm=[1, 0]), node("MatMul", ["a", "t"], ["y"])]
    check(build(tied, {"i": ids}, {"y": FLOAT}, constants), tmp_path, {"i": ids}, 1e-6)


@pytest.mark.parametrize("spread", [False, True])
def test_qattention(spread: bool, tmp_path: Path) -> None:
    """It becomes the Attention of ONNX Runtime, which is found like any other."""
    x, rng = codes(RNG(63), np.uint8, 2, 5, 32), RNG(64)
    n = (96,) if spread else ()
    constants = {"w": codes(rng, np.int8, 32, 96), "b": rng.standard_normal(96).astype(np.float32), "sx": np.float32(0.02),
                 "sw": np.full(n, 0.004, np.float32), "zx": np.array(120, np.uint8), "zw": np.zeros(n, np.int8)}
    model = single("QAttention", {"x": x}, constants, [FLOAT], order="x w b sx sw - zx zw", domain=RUNTIME, num_heads=4)
    check(model, tmp_path, {"x": x}, 1e-5)
    assert "NPUPromptFlashAttention" in kernels_of(tmp_path / "m.ascend910b.onnx")


def test_an_opset_without_round_is_said(tmp_path: Path) -> None:
    onnx.save(build([Q, dequantize("q", "y")], {"x": X}, {"y": FLOAT}, {"s": FACTORS["s"], "z": FACTORS["z"]}, 10), tmp_path / "m.onnx")
    assert run("optimize", tmp_path / "m.onnx", "-o", tmp_path / "o.onnx", "--json", tmp_path / "r.json").code == 4
    assert "opset 11" in json.loads((tmp_path / "r.json").read_text())["sites"][0]["because"]


def test_a_chain_of_guards_after_a_softmax_ends(tmp_path: Path) -> None:
    """Each Where reads the last one twice: as many ways lead through them as 2 to the power of their number."""
    guards = " ".join(f"a{i + 1} = Where (c, a{i}, a{i})" for i in range(60))
    model = onnx.parser.parse_model(f"""<ir_version: 8, opset_import: ["": 17]>
      g (float[4, 4] x, float[4, 4] w, bool[4, 4] c) => (float[4, 4] a60, uint8[4, 4] q) <float s = {{1}}, uint8 z = {{0}}>
      {{ p = MatMul (x, w) a0 = Softmax (p) {guards} q = QuantizeLinear (x, s, z) }}""")
    onnx.save(model, tmp_path / "m.onnx")
    run_ok("optimize", tmp_path / "m.onnx", "-o", tmp_path / "o.onnx")


@pytest.mark.parametrize("before", ["a = Clip (x, low, high)",
                                    "p = Softmax (x) pq = QuantizeLinear (p, s, z) pd = DequantizeLinear (pq, s, z) "
                                    "bad = IsNaN (pd) a = Where (bad, none, pd)"], ids=["a Clip below zero", "probabilities"])
def test_codes_from_zero_on_let_no_negative_number_through(before: str, tmp_path: Path) -> None:
    """Without rounding, what differs is half a code of each factor: the Relu that saturation stands for is done."""
    model = onnx.parser.parse_model(f"""<ir_version: 8, opset_import: ["": 17]>
      g (float[2, 4, 4] x, float[2, 4, 8] v) => (float[2, 4, 8] y)
      <float s = {{0.00392157}}, uint8 z = {{0}}, float none = {{0.0}}, float low = {{-1.0}}, float high = {{1.0}}>
      {{ {before} aq = QuantizeLinear (a, s, z) ad = DequantizeLinear (aq, s, z) y = MatMul (ad, v) }}""")
    onnx.save(model, tmp_path / "m.onnx")
    made, _ = written(tmp_path / "m.onnx", tmp_path, "--quantised", "float")
    rng = np.random.default_rng(0)
    given: dict[str, Array] = {"x": rng.uniform(-1, 1, (2, 4, 4)).astype(np.float32), "v": rng.uniform(-1, 1, (2, 4, 8)).astype(np.float32)}
    compare(tmp_path / "m.onnx", made, given, within=0.01)
