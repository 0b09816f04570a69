"""Linears of int8 with int8 on QuantBatchMatMul: which ones, at which opset, with which numbers, and why others are not."""

from __future__ import annotations

import json
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from conftest import run_ok
from quantised_models import FLOAT, Array, build, quantise, single
from test_quantised import EXACT, KERNELS, RNG, compare, written

from ascend_fuse.session import plain_session

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tools"))

from fuzz.npu_numpy import evaluate  # noqa: E402

NODE = onnx.helper.make_node


def linear(k: int = 40, n: int = 24, op: str = "MatMul", activation: type = np.int8, zero: int = 3, per_channel: bool = True,
           opset: int = 16, scale: float = 0.02, weight_zero: int = 0, weight: type = np.int8) -> tuple[dict[str, Array], onnx.ModelProto]:
    """A linear between DequantizeLinears, as quantize_static writes it: Gemm with an int32 bias and a turned weight."""
    rng, gemm = RNG(70), op == "Gemm"
    low = np.iinfo(weight).min
    weights = rng.integers(low + 1, low + 256, (n, k) if gemm else (k, n)).astype(weight)
    of_weight = rng.uniform(0.001, 0.01, n if per_channel else ()).astype(np.float32)
    constants = {"w": weights, "ws": of_weight, "wz": np.full(of_weight.shape, weight_zero, weight), "xs": np.float32(scale),
                 "xz": np.array(zero, activation)}
    nodes = [NODE("QuantizeLinear", ["x", "xs", "xz"], ["q"]), NODE("DequantizeLinear", ["q", "xs", "xz"], ["d"]),
             NODE("DequantizeLinear", ["w", "ws", "wz"], ["e"], axis=0 if gemm else 1)]
    if gemm:
        constants |= {"c": rng.integers(-3000, 3000, n).astype(np.int32), "cs": np.float32(scale) * np.broadcast_to(of_weight, n),
                      "cz": np.zeros(n, np.int32)}
        if not per_channel:
            constants |= {"cs": np.float32(scale) * of_weight, "cz": np.zeros((), np.int32)}
        nodes += [NODE("DequantizeLinear", ["c", "cs", "cz"], ["b"], axis=0), NODE("Gemm", ["d", "e", "b"], ["y"], transB=1)]
    else:
        nodes.append(NODE("MatMul", ["d", "e"], ["y"]))
    given = {"x": (rng.standard_normal((3, k) if gemm else (2, 3, k)) * 60 * scale).astype(np.float32)}
    return given, build(nodes, given, {"y": FLOAT}, constants, opset)


def ops(path: Path) -> list[str]:
    return [node.op_type for node in onnx.load(path).graph.node]


def the_site(report: dict[str, object]) -> dict[str, str]:
    (site,) = (site for site in report["sites"] if site["kind"] == "quantised_linear")  # type: ignore[attr-defined]
    return dict(site)


@pytest.mark.parametrize("op", ["MatMul", "Gemm"])
@pytest.mark.parametrize("per_channel", [False, True])
@pytest.mark.parametrize(("activation", "zero"), [(np.int8, 0), (np.int8, 3), (np.int8, -128), (np.int8, 127), (np.uint8, 128), (np.uint8, 0), (np.uint8, 255)])
def test_zero_points_go_into_the_bias(activation: type, zero: int, per_channel: bool, op: str, tmp_path: Path) -> None:
    """With saturated codes on both sides: to the bit where float32 is kept, and within the two roundings of float16 elsewhere."""
    given, model = linear(op=op, activation=activation, zero=zero, per_channel=per_channel, k=33, n=17)
    onnx.save(model, tmp_path / "m.onnx")
    made, report = written(tmp_path / "m.onnx", tmp_path, *EXACT)
    assert the_site(report)["emitted_op"] == "npu.QuantBatchMatMul"
    compare(tmp_path / "m.onnx", made, given, 5e-7)
    made, report = written(tmp_path / "m.onnx", tmp_path)
    assert ops(tmp_path / "m.ascend910b.onnx") == ["NPUQuantize", "QuantBatchMatMul", "Cast"]
    compare(tmp_path / "m.onnx", made, given, 1.2e-3)


@pytest.mark.parametrize("scale", [1e-10, 1e-4, 0.5, 1e5])
def test_scales_that_float16_does_not_hold_stay_off_its_kernel(scale: float, tmp_path: Path) -> None:
    given, model = linear(scale=scale)
    onnx.save(model, tmp_path / "m.onnx")
    made, report = written(tmp_path / "m.onnx", tmp_path, *EXACT)
    assert the_site(report)["state"] == "fused"
    compare(tmp_path / "m.onnx", made, given, 5e-7)
    made, report = written(tmp_path / "m.onnx", tmp_path)
    held = scale in (1e-4, 0.5)
    assert the_site(report)["state"] == ("fused" if held else "left")
    if scale < 1e5:
        compare(tmp_path / "m.onnx", made, given, 1.2e-3)
    if not held:
        assert "float16 does not hold" in the_site(report)["because"]


@pytest.mark.parametrize(("weight", "zero", "fits"), [(np.uint8, 128, True), (np.uint8, 100, False), (np.uint8, 0, False), (np.uint8, 255, False),
                                                      (np.int8, 1, True), (np.int8, 2, False), (np.int8, -128, False), (np.int8, 127, False)])
def test_a_weight_less_its_zero_point_is_int8_or_corrected_by_sums_of_rows(weight: type, zero: int, fits: bool, tmp_path: Path) -> None:
    """As int32, to the bit; a float16 holds no sum from which the rest is taken off."""
    given, model = linear(weight=weight, weight_zero=zero)
    onnx.save(model, tmp_path / "m.onnx")
    made, report = written(tmp_path / "m.onnx", tmp_path, *EXACT)
    assert (the_site(report)["state"], the_site(report)["precision"]) == ("fused", "exact")
    assert ("ReduceSum" in ops(tmp_path / "m.ascend910b.onnx")) != fits
    compare(tmp_path / "m.onnx", made, given, 5e-7)
    made, report = written(tmp_path / "m.onnx", tmp_path)
    assert (the_site(report)["state"], "int8" in the_site(report)["because"]) == (("fused", False) if fits else ("left", True))
    compare(tmp_path / "m.onnx", made, given, 1.2e-3)


def quantised_by_range(folder: Path, kind: str, per_channel: bool, reduced: bool) -> tuple[dict[str, Array], Path, Path]:
    """A linear as quantize_dynamic writes it, and the float model that it is of."""
    rng = RNG(72)
    constants = {"w": (rng.standard_normal((70, 33)) * 0.2 + 0.1).astype(np.float32), "b": rng.standard_normal(33).astype(np.float32)}
    given: dict[str, Array] = {"x": (rng.standard_normal((2, 3, 70)) + 0.5).astype(np.float32)}
    source, to = folder / "float.onnx", folder / "m.onnx"
    onnx.save(build([NODE("MatMul", ["x", "w"], ["a"]), NODE("Add", ["a", "b"], ["y"])], given, {"y": FLOAT}, constants), source)
    quantise(source, f"dynamic-{kind}-{'channel' if per_channel else 'tensor'}-{'reduced' if reduced else 'whole'}", to)
    return given, source, to


@pytest.mark.parametrize("reduced", [False, True])
@pytest.mark.parametrize("per_channel", [False, True])
@pytest.mark.parametrize("kind", ["QInt8", "QUInt8"])
def test_what_is_quantised_by_its_range_is_multiplied_in_integers(kind: str, per_channel: bool, reduced: bool, tmp_path: Path) -> None:
    """By the scale and the zero point of the model's own quantiser, which are computed."""
    given, _, source = quantised_by_range(tmp_path, kind, per_channel, reduced)
    made, report = written(source, tmp_path, *EXACT)
    assert (the_site(report)["state"], the_site(report)["precision"]) == ("fused", "exact")
    compare(source, made, given, 5e-7)
    made, report = written(source, tmp_path)
    left = kind == "QUInt8" and not reduced
    assert the_site(report)["state"] == ("left" if left else "fused")
    assert left == ("sums from which the rest is taken off" in the_site(report)["because"])
    compare(source, made, given, 1.2e-3)


@pytest.mark.parametrize("flags", [(), EXACT, ("--quantised", "fast"), ("--quantised", "float")])
@pytest.mark.parametrize("rows", [0, 1])
def test_empty_batches(rows: int, flags: tuple[str, ...], tmp_path: Path) -> None:
    given, model = linear(activation=np.uint8, zero=7)
    for value in (model.graph.input[0], model.graph.output[0]):
        value.type.tensor_type.shape.dim[0].dim_param = "batch"
    onnx.save(model, tmp_path / "m.onnx")
    made, _ = written(tmp_path / "m.onnx", tmp_path, *flags)
    if "float" not in flags or rows == 0:  # what saturates differs without rounding
        compare(tmp_path / "m.onnx", made, {"x": given["x"][:rows]}, 1.2e-3)


def test_a_weight_on_the_kernel_is_read_as_numbers_too(tmp_path: Path) -> None:
    given, model = linear(k=24)
    nodes = [*model.graph.node, NODE("Transpose", ["e"], ["t"]), NODE("MatMul", ["y", "t"], ["z"])]
    known = {tensor.name: onnx.numpy_helper.to_array(tensor) for tensor in model.graph.initializer}
    onnx.save(build(nodes, given, {"z": FLOAT}, known, 16), tmp_path / "m.onnx")
    for flags, within in ((EXACT, 5e-7), ((), 1.2e-3)):
        made, report = written(tmp_path / "m.onnx", tmp_path, *flags)
        assert {site["state"] for site in report["sites"] if site["kind"] == "quantised_linear"} == {"fused", "left"}  # type: ignore[attr-defined]
        compare(tmp_path / "m.onnx", made, given, within)


@pytest.mark.parametrize("op", ["DynamicQuantizeMatMul", "MatMulIntegerToFloat"])
def test_what_onnx_runtime_joins_is_multiplied_in_integers(op: str, tmp_path: Path) -> None:
    rng, fused = RNG(73), op == "MatMulIntegerToFloat"
    constants: dict[str, Array] = {"b": rng.integers(-128, 128, (40, 6)).astype(np.int8), "sb": rng.uniform(0.01, 0.02, 6).astype(np.float32),
                                   "zb": np.zeros(6, np.int8), "c": np.arange(6, dtype=np.float32)}
    x: Array = rng.standard_normal((3, 40)).astype(np.float32)
    order = "x b sb zb c"
    if fused:
        x, order = rng.integers(0, 256, (3, 40)).astype(np.uint8), "x b sa sb za zb c"
        constants |= {"sa": np.float32(0.02), "za": np.array(9, np.uint8)}
    onnx.save(single(op, {"x": x}, constants, [FLOAT], order=order, domain="com.microsoft"), tmp_path / "m.onnx")
    for flags, within in ((EXACT, 5e-7), ((), 1.2e-3)):
        made, report = written(tmp_path / "m.onnx", tmp_path, *flags)
        assert the_site(report)["state"] == "fused"
        compare(tmp_path / "m.onnx", made, {"x": x}, within)


@pytest.mark.parametrize("chip", [*KERNELS, "ascend310p", "ascend310b"])
def test_rows_are_quantised_by_their_own_range_on_request(chip: str, tmp_path: Path) -> None:
    """Another quantiser: as far from the float model as the model's own at most. A row of zeros stays zeros."""
    given, real, source = quantised_by_range(tmp_path, "QInt8", True, False)
    given["x"] *= np.geomspace(1, 0.02, 6, dtype=np.float32).reshape(2, 3, 1)  # rows of several sizes
    given["x"][0, 1] = 0
    made, report = written(source, tmp_path, "--quantised", "per-token", chip=chip)
    found = ops(tmp_path / f"m.{chip}.onnx")
    assert ("NPUDynamicQuant" in found) == (chip in KERNELS)
    if chip not in KERNELS:
        assert the_site(report)["state"] == "left"
        return
    assert "NPUQuantize" not in found
    assert (the_site(report)["state"], the_site(report)["emitted_op"]) == ("fused", "npu.QuantBatchMatMul")
    wanted, own, rows = (plain_session(str(path)).run(None, given)[0] for path in (real, source, made))
    assert np.sqrt(np.square(rows - wanted).mean()) < np.sqrt(np.square(own - wanted).mean())
    assert np.abs(rows[0, 1] - wanted[0, 1]).max() <= 2**-10 * np.abs(wanted).max()


@pytest.mark.parametrize("opset", [17, 18])
def test_with_the_plugin_the_model_keeps_its_opset(opset: int, tmp_path: Path) -> None:
    given, model = linear(opset=opset)
    onnx.save(model, tmp_path / "m.onnx")
    for flags in (("--plugin",), ("--plugin", *EXACT)):
        made, report = written(tmp_path / "m.onnx", tmp_path, *flags)
        result = onnx.load(tmp_path / "m.ascend910b.onnx")
        assert next(one.version for one in result.opset_import if one.domain in ("", "ai.onnx")) > 16
        assert "NPUQuantBatchMatMul" in ops(tmp_path / "m.ascend910b.onnx")
        assert the_site(report)["state"] == "fused"
        compare(tmp_path / "m.onnx", made, given, 5e-7 if EXACT[0] in flags else 1.2e-3)


def test_strict_takes_no_open_question(tmp_path: Path) -> None:
    given, model = linear()
    onnx.save(model, tmp_path / "m.onnx")
    made, report = written(tmp_path / "m.onnx", tmp_path, "--quantised", "fast", "--strict", chip="ascend310p")
    assert (the_site(report)["state"], the_site(report)["code"]) == ("left", "assumption-refused")
    compare(tmp_path / "m.onnx", made, given, 1e-6)


def convolution(channels: int = 24, zero: int = 0, group: int = 1, per_channel: bool = True, bias: str = "codes",
                form: str = "QDQ") -> tuple[dict[str, Array], onnx.ModelProto, onnx.ModelProto]:
    """A convolution between DequantizeLinears, or as QLinearConv, and the float model that it is of."""
    rng, count = RNG(74), 20
    given: dict[str, Array] = {"x": rng.uniform(-1, 1, (2, channels, 7, 6)).astype(np.float32)}
    weight = rng.integers(-127, 128, (count, channels // group, 3, 3)).astype(np.int8)
    ws = rng.uniform(0.001, 0.002, count if per_channel else ()).astype(np.float32)
    xs = np.float32(2 / 255)
    codes = rng.integers(-3000, 3000, count).astype(np.int32)
    both = (xs * np.broadcast_to(ws, count)).astype(np.float32) if per_channel else (xs * ws).astype(np.float32)
    constants: dict[str, Array] = {"w": weight, "ws": ws, "wz": np.zeros(ws.shape, np.int8), "xs": xs, "xz": np.array(zero, np.int8), "c": codes,
                                   "cs": both, "cz": np.zeros(both.shape, np.int32), "f": (codes * both).astype(np.float32),
                                   "ys": np.float32(0.05), "yz": np.array(3, np.int8)}
    of = {"pads": [1, 1, 1, 0], "strides": [2, 1], "group": group}
    quantized = NODE("QuantizeLinear", ["x", "xs", "xz"], ["q"])
    if form == "QDQ":
        nodes = [quantized, NODE("DequantizeLinear", ["q", "xs", "xz"], ["d"]), NODE("DequantizeLinear", ["w", "ws", "wz"], ["e"], axis=0),
                 NODE("DequantizeLinear", ["c", "cs", "cz"], ["b"], axis=0),
                 NODE("Conv", ["d", "e", {"codes": "b", "float": "f", "none": ""}[bias]], ["y"], **of)]
    else:
        nodes = [quantized, NODE("QLinearConv", ["q", "xs", "xz", "w", "ws", "wz", "ys", "yz", "c"], ["p"], **of),
                 NODE("DequantizeLinear", ["p", "ys", "yz"], ["y"])]
    real = weight.astype(np.float32) * ws.reshape(-1, 1, 1, 1)
    of_float = build([NODE("Conv", ["x", "w", *(["b"] if bias != "none" or form != "QDQ" else [])], ["y"], **of)], given, {"y": FLOAT},
                     {"w": real, "b": constants["f"]}, 16)
    return given, build(nodes, given, {"y": FLOAT}, constants, 16), of_float


def conv_site(report: dict[str, object]) -> dict[str, Any]:
    (site,) = (site for site in report["sites"] if site["kind"] == "quantised_conv")  # type: ignore[attr-defined]
    return dict(site)


@pytest.mark.parametrize("form", ["QDQ", "QLinear"])
@pytest.mark.parametrize("zero", [0, 3, -128, 127])
@pytest.mark.parametrize("chip", ["ascend310b", "ascend310p", "ascend910b", "ascend910_93"])
def test_convolutions_in_the_form_of_amct_on_request(chip: str, zero: int, form: str, tmp_path: Path) -> None:
    """With `fast`: off by less than what quantising the convolution cost. The zero point is GE's, which is told as an assumption."""
    given, model, real = convolution(zero=zero, form=form)
    onnx.save(model, tmp_path / "m.onnx")
    onnx.save(real, tmp_path / "float.onnx")
    made, report = written(tmp_path / "m.onnx", tmp_path, "--quantised", "fast", chip=chip)
    site = conv_site(report)
    assert site["state"] == "by_ge"
    assert bool(site.get("assumptions")) == (zero != 0)
    found = [node for node in onnx.load(tmp_path / f"m.{chip}.onnx").graph.node]
    assert [node.op_type for node in found][:3] == ["AscendQuant", "Conv", "AscendDequant"]
    plain, made_of = (plain_session(str(path)).run(None, given)[0] for path in (tmp_path / "m.onnx", made))
    wanted = plain_session(str(tmp_path / "float.onnx")).run(None, given)[0]
    within = 6e-3 * np.abs(plain).max() + (0.05 if form == "QLinear" else 0)  # a code of the result
    assert np.abs(made_of - plain).max() <= within
    if zero in (0, 3):  # where not half of the numbers saturates
        assert np.sqrt(np.square(made_of - plain).mean()) < np.sqrt(np.square(plain - wanted).mean())
    made, report = written(tmp_path / "m.onnx", tmp_path, chip=chip)
    assert (conv_site(report)["state"], conv_site(report)["code"]) == ("left", "kernel-unsettled")
    compare(tmp_path / "m.onnx", made, given, 1e-6 if form == "QDQ" else 0.05 / np.abs(plain).max() + 1e-6)


@pytest.mark.parametrize("bias", ["codes", "float", "none"])
@pytest.mark.parametrize("per_channel", [False, True])
def test_biases_of_convolutions(per_channel: bool, bias: str, tmp_path: Path) -> None:
    given, model, _ = convolution(per_channel=per_channel, bias=bias)
    onnx.save(model, tmp_path / "m.onnx")
    made, report = written(tmp_path / "m.onnx", tmp_path, "--quantised", "fast", chip="ascend310p")
    assert conv_site(report)["state"] == "by_ge"
    assert ("Add" in ops(tmp_path / "m.ascend310p.onnx")) == (bias == "float")
    compare(tmp_path / "m.onnx", made, given, 6e-3)


@pytest.mark.parametrize(("change", "chip", "flags", "because"), [
    ({"channels": 16}, "ascend310p", (), "16 channels"), ({"group": 2}, "ascend310p", (), "in groups"),
    ({"zero": 3}, "ascend310p", ("--strict",), "--strict"), ({}, "ascend310p", EXACT, "rules out"), ({}, "ascend950", (), ""),
    ({}, "ascend910", (), "")])
def test_convolutions_that_stay_floating_point(change: dict[str, int], chip: str, flags: tuple[str, ...], because: str, tmp_path: Path) -> None:
    given, model, _ = convolution(**change)  # type: ignore[arg-type]
    onnx.save(model, tmp_path / "m.onnx")
    made, report = written(tmp_path / "m.onnx", tmp_path, "--quantised", "fast", *flags, chip=chip)
    assert conv_site(report)["state"] == "left"
    assert because in conv_site(report)["because"]
    compare(tmp_path / "m.onnx", made, given, 1e-6)


def test_convolutions_of_open_shapes_stay_floating_point(tmp_path: Path) -> None:
    given, model, _ = convolution()
    for value in (model.graph.input[0], model.graph.output[0]):
        value.type.tensor_type.shape.dim[0].dim_param = "batch"
    onnx.save(model, tmp_path / "m.onnx")
    made, report = written(tmp_path / "m.onnx", tmp_path, "--quantised", "fast", chip="ascend310p")
    assert (conv_site(report)["state"], "fixed shapes" in conv_site(report)["because"]) == ("left", True)
    compare(tmp_path / "m.onnx", made, {"x": given["x"][:1]}, 1e-6)


def test_codes_that_ascend_quant_makes_are_read_by_products_alone(tmp_path: Path) -> None:
    """What adds the same numbers reads them as ONNX Runtime rounds them, and two products read one AscendQuant."""
    given, model, _ = convolution(bias="none")
    nodes = [*model.graph.node, NODE("Conv", ["d", "e"], ["v"]), NODE("Add", ["d", "one"], ["z"])]
    known = {tensor.name: onnx.numpy_helper.to_array(tensor) for tensor in model.graph.initializer}
    onnx.save(build(nodes, given, {"y": FLOAT, "v": FLOAT, "z": FLOAT}, {**known, "one": np.float32(1)}, 16), tmp_path / "m.onnx")
    made, _ = written(tmp_path / "m.onnx", tmp_path, "--quantised", "fast", chip="ascend310p")
    found = onnx.load(tmp_path / "m.ascend310p.onnx").graph.node
    assert Counter(node.op_type for node in found)["AscendQuant"] == 1
    (codes,) = (node.output[0] for node in found if node.op_type == "AscendQuant")
    assert {node.op_type for node in found if codes in node.input} == {"Conv"}
    plain, result = (plain_session(str(path)).run(None, given) for path in (tmp_path / "m.onnx", made))
    np.testing.assert_array_equal(result[2], plain[2])


@pytest.mark.parametrize("op", ["MatMul", "Gemm"])
@pytest.mark.parametrize("per_channel", [False, True])
@pytest.mark.parametrize("zero", [0, 3])
def test_linears_of_310b_in_the_form_of_amct_on_request(zero: int, per_channel: bool, op: str, tmp_path: Path) -> None:
    given, model = linear(op=op, zero=zero, per_channel=per_channel)
    onnx.save(model, tmp_path / "m.onnx")
    made, report = written(tmp_path / "m.onnx", tmp_path, "--quantised", "fast", chip="ascend310b")
    site = the_site(report)
    assert site["state"] == "by_ge"
    assert len(site.get("assumptions", [])) == (zero != 0) + per_channel
    assert ops(tmp_path / "m.ascend310b.onnx") == ["AscendQuant", "MatMul", *(["Add"] if op == "Gemm" else []), "AscendDequant"]
    compare(tmp_path / "m.onnx", made, given, 6e-3)


@pytest.mark.parametrize("chip", ["ascend310b", "ascend310p", "ascend910", *KERNELS])
@pytest.mark.parametrize("mode", ["exact", "fast", "float"])
def test_every_chip_and_every_way(mode: str, chip: str, tmp_path: Path) -> None:
    """310P has the kernel, and one question about it is open: it is taken with `fast`. 310B has AMCT's form, with `fast` too. Without
    rounding nothing is int8."""
    given, model = linear()
    onnx.save(model, tmp_path / "m.onnx")
    made, report = written(tmp_path / "m.onnx", tmp_path, "--quantised", mode, chip=chip)
    fused = mode != "float" and (chip in KERNELS or (chip == "ascend310p" and mode == "fast"))
    site = the_site(report)
    assert site["state"] == ("by_ge" if (chip, mode) == ("ascend310b", "fast") else "fused" if fused else "left")
    if chip == "ascend310p" and mode != "float":
        assert site["code"] == ("" if fused else "kernel-unsettled")
        assert fused == any("FRACTAL_NZ" in assumption for assumption in site.get("assumptions", []))
    if mode != "float":
        compare(tmp_path / "m.onnx", made, given, 6e-3 if site["state"] == "by_ge" else 1.2e-3)


@pytest.mark.parametrize("opset", [13, 16, 17, 18, 21])
def test_the_model_comes_to_an_opset_at_which_the_kernel_has_a_name(opset: int, tmp_path: Path) -> None:
    """LayerNormalization in the form that GE joins, reductions with axes in attributes."""
    given, model = linear(opset=13)
    before = [NODE("ReduceMean", ["x"], ["m"], axes=[-1]) if opset < 18 else NODE("ReduceMean", ["x", "axes"], ["m"]), NODE("Sub", ["x", "m"], ["s"])]
    constants = {"axes": np.array([-1])} if opset >= 18 else {}
    if opset >= 17:
        before.append(NODE("LayerNormalization", ["s", "gain", "shift"], ["n"], axis=-1))
        constants |= {"gain": np.linspace(0.5, 1.5, 40, dtype=np.float32), "shift": np.linspace(-1, 1, 40, dtype=np.float32)}
    nodes = list(model.graph.node)
    nodes[0].input[0] = "n" if opset >= 17 else "s"
    known = {tensor.name: onnx.numpy_helper.to_array(tensor) for tensor in model.graph.initializer}
    onnx.save(build([*before, *nodes], given, {"y": FLOAT}, {**known, **constants}, opset), tmp_path / "m.onnx")
    made, report = written(tmp_path / "m.onnx", tmp_path, *EXACT)
    result = onnx.load(tmp_path / "m.ascend910b.onnx")
    assert next(one.version for one in result.opset_import if one.domain in ("", "ai.onnx")) == min(opset, 16)
    assert "LayerNormalization" not in ops(tmp_path / "m.ascend910b.onnx")
    assert the_site(report)["state"] == "fused"
    assert {site["state"] for site in report["sites"] if site["kind"] == "layer_norm"} <= {"by_ge"}
    compare(tmp_path / "m.onnx", made, given, 2e-2)  # a norm in another order moves a code


def test_a_model_that_cannot_leave_its_opset_says_which_node_keeps_it(tmp_path: Path) -> None:
    given, model = linear(opset=17)
    nodes = [NODE("LayerNormalization", ["x", "gain", "shift"], ["n"], axis=-2), *model.graph.node]
    nodes[1].input[0] = "n"
    known = {tensor.name: onnx.numpy_helper.to_array(tensor) for tensor in model.graph.initializer}
    weights = {"gain": np.ones((3, 40), np.float32), "shift": np.zeros((3, 40), np.float32)}
    onnx.save(build(nodes, given, {"y": FLOAT}, {**known, **weights}, 17), tmp_path / "m.onnx")
    made, report = written(tmp_path / "m.onnx", tmp_path)
    site = the_site(report)
    assert (site["state"], site["code"]) == ("left", "opset-kept")
    assert "QuantBatchMatMul has a name up to opset 16" in site["because"]
    assert "LayerNormalization" in site["because"]
    compare(tmp_path / "m.onnx", made, given, 1e-6)


def test_codes_that_are_read_as_numbers_too_are_made_once(tmp_path: Path) -> None:
    given, model = linear(k=24)
    nodes = [*model.graph.node, NODE("Add", ["y", "d"], ["z"])]
    known = {tensor.name: onnx.numpy_helper.to_array(tensor) for tensor in model.graph.initializer}
    onnx.save(build(nodes, given, {"z": FLOAT}, known, 16), tmp_path / "m.onnx")
    made, _ = written(tmp_path / "m.onnx", tmp_path)
    found = ops(tmp_path / "m.ascend910b.onnx")
    assert found.count("NPUQuantize") == 1
    assert "Round" not in found
    compare(tmp_path / "m.onnx", made, given, 1.2e-3)


def test_codes_that_were_moved_are_not_those_before(tmp_path: Path) -> None:
    """A Transpose between the node that quantises and the linear."""
    given, model = linear(k=3)
    nodes = list(model.graph.node)
    nodes.insert(1, NODE("Transpose", ["q"], ["t"], perm=[0, 2, 1]))
    nodes[2].input[0] = "t"
    given = {"x": RNG(71).standard_normal((2, 3, 5)).astype(np.float32)}
    known = {tensor.name: onnx.numpy_helper.to_array(tensor) for tensor in model.graph.initializer}
    onnx.save(build(nodes, given, {"y": FLOAT}, known, 16), tmp_path / "m.onnx")
    for flags in ((), EXACT):
        made, report = written(tmp_path / "m.onnx", tmp_path, *flags)
        assert the_site(report)["state"] == "fused"
        compare(tmp_path / "m.onnx", made, given, 1.2e-3)


def test_weights_are_read_where_they_are(tmp_path: Path) -> None:
    """A weight that is int8 already is not written anew, and one that is shared with a reader of numbers serves both."""
    given, model = linear(k=256, n=512)
    onnx.save(model, tmp_path / "m.onnx")
    run_ok("optimize", tmp_path / "m.onnx", "-o", tmp_path / "o.onnx", "--target", "ascend910b", "--json", tmp_path / "r.json")
    tensors = {tensor.name: tensor for tensor in onnx.load(tmp_path / "o.onnx").graph.initializer}
    assert tensors["w"].data_type == onnx.TensorProto.INT8
    assert (tmp_path / "o.onnx").stat().st_size < 1.1 * (tmp_path / "m.onnx").stat().st_size
    assert json.loads((tmp_path / "r.json").read_text())["sites"][0]["state"] == "fused"


def deployed(kind: str, channels: int = 24, offset: float = -3.0) -> tuple[dict[str, Array], onnx.ModelProto]:
    """What AMCT writes of a layer: AscendQuant, the operator on int8, AscendDequant. ONNX does not know it."""
    rng, scale = RNG(80), np.float32(0.001)
    word = np.array([scale.view(np.uint32)], np.uint64)
    make = onnx.numpy_helper.from_array
    quant = NODE("AscendQuant", ["x"], ["q"], scale=50.0, offset=offset, dst_type="INT8")
    dequant = NODE("AscendDequant", ["s", "d"], ["y"], dtype=0)
    dims = [2, channels, 5, 5] if kind == "Conv" else [3, channels]
    weight = rng.integers(-127, 128, (8, channels, 3, 3) if kind == "Conv" else (channels, 8)).astype(np.int8)
    tensors = [make(weight, "w"), make(rng.integers(-500, 500, 8).astype(np.int32), "b"), make(word.repeat(8 if kind == "Conv" else 1), "d")]
    product = {"Conv": [NODE("Conv", ["q", "w", "b"], ["s"], pads=[1, 1, 1, 1])], "Gemm": [NODE("Gemm", ["q", "w", "b"], ["s"])],
               "MatMul": [NODE("MatMul", ["q", "w"], ["p"]), NODE("Add", ["p", "b"], ["s"])]}[kind]
    value = onnx.helper.make_tensor_value_info
    made = onnx.helper.make_graph([quant, *product, dequant], "g", [value("x", FLOAT, dims)], [value("y", FLOAT, [2, 8, 5, 5] if kind == "Conv" else [3, 8])], tensors)
    return ({"x": (rng.standard_normal(dims) * 2).astype(np.float32)},
            onnx.helper.make_model(made, opset_imports=[onnx.helper.make_opsetid("", 13)], ir_version=8))


def by_hand(kind: str, model: onnx.ModelProto, x: Array) -> Array:
    """The same with the numpy evaluator of the nodes, and sums of codes less their zero point."""
    quant = model.graph.node[0]
    attributes = {a.name: onnx.helper.get_attribute_value(a) for a in quant.attribute}
    tensors = {t.name: onnx.numpy_helper.to_array(t) for t in model.graph.initializer}
    codes = evaluate("AscendQuant", [x], attributes)[0].astype(np.int64) - int(attributes["offset"])
    if kind == "Conv":
        padded = np.pad(codes, ((0, 0), (0, 0), (1, 1), (1, 1)))
        views = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), axis=(2, 3))
        sums = np.einsum("nchwij,ocij->nohw", views, tensors["w"].astype(np.int64)) + tensors["b"].reshape(1, -1, 1, 1)
    else:
        sums = codes @ tensors["w"].astype(np.int64) + tensors["b"]
    return evaluate("AscendDequant", [sums.astype(np.int32), tensors["d"]], {"dtype": 0})[0]


@pytest.mark.parametrize("chip", ["ascend310b", "ascend310p", "ascend910b"])
@pytest.mark.parametrize("kind", ["Conv", "MatMul", "Gemm"])
def test_models_of_amct_stay_and_are_read(kind: str, chip: str, tmp_path: Path) -> None:
    given, model = deployed(kind)
    onnx.save(model, tmp_path / "m.onnx")
    run_ok("optimize", tmp_path / "m.onnx", "-o", tmp_path / "o.onnx", "--target", chip, "--json", tmp_path / "r.json")
    assert [node.op_type for node in onnx.load(tmp_path / "o.onnx").graph.node] == [node.op_type for node in model.graph.node]
    run_ok("check", tmp_path / "o.onnx", "--target", chip)
    (site,) = json.loads((tmp_path / "r.json").read_text())["sites"]
    assert (site["kind"], site["state"]) == ("quantised_conv" if kind == "Conv" else "quantised_linear", "by_ge")
    run_ok("expand", tmp_path / "o.onnx", "-o", tmp_path / "e.onnx")
    onnx.checker.check_model(onnx.load(tmp_path / "e.onnx"), full_check=True)
    found = plain_session(str(tmp_path / "e.onnx")).run(None, given)[0]
    np.testing.assert_array_equal(found, by_hand(kind, model, given["x"]))


def test_what_ge_does_not_compute_in_integers_is_said(tmp_path: Path) -> None:
    few = deployed("Conv", channels=16)[1]
    open_dims = deployed("Gemm")[1]
    open_dims.graph.input[0].type.tensor_type.shape.dim[0].dim_param = "batch"
    symmetric = deployed("Gemm", offset=0.0)[1]
    symmetric.graph.input[0].type.tensor_type.shape.dim[0].dim_param = "batch"
    for model, because in ((few, "16 channels"), (open_dims, "wrong numbers"), (symmetric, "")):
        onnx.save(model, tmp_path / "m.onnx")
        run_ok("optimize", tmp_path / "m.onnx", "-o", tmp_path / "o.onnx", "--target", "ascend310p", "--json", tmp_path / "r.json")
        (site,) = json.loads((tmp_path / "r.json").read_text())["sites"]
        assert site["state"] == ("left" if because else "by_ge")
        assert because in site["because"]


def test_a_layer_of_amct_that_gives_nothing_is_not_listed(tmp_path: Path) -> None:
    """Its last node has no named output, and ONNX does not know the operator, so that the loader takes it. Found by optimize_fuzz."""
    model = deployed("Conv")[1]
    model.graph.node[-1].output[0] = ""
    model.graph.node[-2].output[0] = model.graph.output[0].name
    model.graph.node[-1].input[0] = model.graph.output[0].name
    onnx.save(model, tmp_path / "m.onnx")
    run_ok("list", tmp_path / "m.onnx", "--target", "ascend310p", "--json", tmp_path / "r.json")
    assert json.loads((tmp_path / "r.json").read_text())["sites"] == []
