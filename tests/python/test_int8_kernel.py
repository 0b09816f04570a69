"""Linears of int8 with int8 on QuantBatchMatMul: which ones, at which opset, with which numbers, and why others are not."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import onnx
import pytest
from conftest import run_ok
from quantised_models import FLOAT, Array, build
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


@pytest.mark.parametrize(("weight", "zero", "fits"), [(np.uint8, 128, True), (np.uint8, 100, False), (np.int8, 1, True), (np.int8, 2, False)])
def test_a_weight_less_its_zero_point_must_be_int8(weight: type, zero: int, fits: bool, tmp_path: Path) -> None:
    given, model = linear(weight=weight, weight_zero=zero)
    onnx.save(model, tmp_path / "m.onnx")
    made, report = written(tmp_path / "m.onnx", tmp_path, *EXACT)
    compare(tmp_path / "m.onnx", made, given, 5e-7)
    assert (the_site(report)["state"], "int8" in the_site(report)["because"]) == (("fused", False) if fits else ("left", True))


@pytest.mark.parametrize("chip", ["ascend310b", "ascend310p", "ascend910", *KERNELS])
@pytest.mark.parametrize("mode", ["exact", "fast", "float"])
def test_every_chip_and_every_way(mode: str, chip: str, tmp_path: Path) -> None:
    """310P has the kernel, and one question about it is open: it is taken with `fast`. Without rounding nothing is int8."""
    given, model = linear()
    onnx.save(model, tmp_path / "m.onnx")
    made, report = written(tmp_path / "m.onnx", tmp_path, "--quantised", mode, chip=chip)
    fused = mode != "float" and (chip in KERNELS or (chip == "ascend310p" and mode == "fast"))
    site = the_site(report)
    assert site["state"] == ("fused" if fused else "left")
    if chip == "ascend310p" and mode != "float":
        assert site["code"] == ("" if fused else "kernel-unsettled")
        assert fused == any("FRACTAL_NZ" in assumption for assumption in site.get("assumptions", []))
    if mode != "float":
        compare(tmp_path / "m.onnx", made, given, 1.2e-3)


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
