"""Products of uint8 and int8 in the oracle: those of ONNX on every processor, whatever its kernels of ONNX Runtime do."""

from __future__ import annotations

import numpy as np
import onnx
import onnxruntime
import pytest
from ascend_fuse import exact_products, session
from onnx import TensorProto, helper, numpy_helper

RNG = np.random.default_rng(5)
CODES = {"u": (np.uint8, TensorProto.UINT8), "s": (np.int8, TensorProto.INT8)}


def model_of(nodes: list[onnx.NodeProto], left: str, shape: list[int], constants: dict[str, np.ndarray]) -> onnx.ModelProto:
    """One input `a`, one output `y`, constants."""
    kind = TensorProto.FLOAT if left == "f" else CODES[left][1]
    graph = helper.make_graph(
        nodes, "products", [helper.make_tensor_value_info("a", kind, shape)], [onnx.ValueInfoProto(name="y")],
        [numpy_helper.from_array(np.asarray(value), name) for name, value in constants.items()])
    return helper.make_model(graph, ir_version=8, opset_imports=[helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)])


def run(model: onnx.ModelProto, a: np.ndarray) -> np.ndarray:
    """By ONNX Runtime as it is."""
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    return onnxruntime.InferenceSession(model.SerializeToString(), options, ["CPUExecutionProvider"]).run(None, {"a": a})[0]


@pytest.mark.parametrize("zeros", [None, 3, "columns"])
def test_the_whole_range_of_codes(zeros: int | str | None) -> None:
    """Sums that kernels without VNNI saturate."""
    a, b = RNG.integers(0, 256, (4, 32)).astype(np.uint8), RNG.integers(-128, 128, (32, 8)).astype(np.int8)
    b[:, 0], a[0] = 127, 255
    zero = RNG.integers(-9, 9, 8).astype(np.int8) if zeros == "columns" else np.int8(zeros or 0)
    inputs = ["a", "b", "za", *(["zb"] if zeros is not None else [])]
    model = model_of([helper.make_node("MatMulInteger", inputs, ["y"])], "u", [4, 32], {"b": b, "za": np.uint8(7), "zb": zero})
    assert exact_products.make_exact(model)
    assert (run(model, a) == (a.astype(int) - 7) @ (b.astype(int) - zero)).all()


F = np.float32
SCALES = {"sa": F(0.02), "sb": F(0.03), "sy": F(0.2)}
FORMS = {
    "MatMulInteger": ("u", [4, 16], ["a", "b", "za", "zb"], {}, [16, 8]),
    "ConvInteger": ("u", [1, 3, 6, 6], ["a", "b", "za", "zb"], {}, [4, 3, 3, 3]),
    "QLinearMatMul": ("u", [4, 16], ["a", "sa", "za", "b", "sb", "zb", "sy", "zy"], {}, [16, 8]),
    "QLinearConv": ("u", [1, 3, 6, 6], ["a", "sa", "za", "b", "sb", "zb", "sy", "zy"], {}, [4, 3, 3, 3]),
    "MatMulIntegerToFloat": ("u", [4, 16], ["a", "b", "sa", "sb", "za", "zb"], {}, [16, 8]),
    "DynamicQuantizeMatMul": ("f", [4, 16], ["a", "b", "sb", "zb"], {}, [16, 8]),
    "QGemm": ("u", [4, 16], ["a", "sa", "za", "b", "sb", "zb", "", "sy", "zy"], {}, [16, 8]),
    "QAttention": ("u", [2, 4, 16], ["a", "b", "bias", "sa", "sb", "", "za", "zb"], {"num_heads": 2}, [16, 48]),
}


def form(op_type: str, left: str | None = None) -> tuple[onnx.ModelProto, np.ndarray]:
    """A node whose codes are so small that no kernel saturates, and what it is fed."""
    kind, shape, inputs, attributes, weight = FORMS[op_type]
    kind = left or kind
    domain = exact_products.PRODUCTS[op_type][0]
    dtype = np.float32 if kind == "f" else CODES[kind][0]
    constants = {**SCALES, "b": RNG.integers(-64, 64, weight).astype(np.int8), "zb": np.int8(3), "bias": RNG.standard_normal(48).astype(F)}
    if kind != "f":
        constants |= {"za": dtype(5), "zy": dtype(60)}
    read = {name: value for name, value in constants.items() if name in inputs}
    model = model_of([helper.make_node(op_type, inputs, ["y"], domain=domain, **attributes)], kind, shape, read)
    a = RNG.standard_normal(shape) if kind == "f" else RNG.integers(0, 100, shape)
    return model, a.astype(dtype)


@pytest.mark.parametrize("op_type", sorted(exact_products.PRODUCTS))
def test_a_weight_of_uint8_gives_the_same(op_type: str) -> None:
    model, a = form(op_type)
    before = run(model, a)
    assert exact_products.make_exact(model)
    if op_type == "DynamicQuantizeMatMul":  # its codes take the whole range
        if not session.saturates():
            np.testing.assert_array_equal(run(model, a), before)
    else:
        np.testing.assert_array_equal(run(model, a), before)


def test_products_of_int8_stay() -> None:
    """Kernels do not saturate these, and some are not there for the other type."""
    for op_type in ("MatMulInteger", "ConvInteger", "QLinearMatMul"):
        model, _ = form(op_type, left="s")
        assert not exact_products.make_exact(model), op_type


def test_in_a_branch_with_codes_of_the_outside() -> None:
    body = helper.make_graph([helper.make_node("MatMulInteger", ["q", "b", "z"], ["product"])], "then", [],
                             [helper.make_tensor_value_info("product", TensorProto.INT32, None)])
    other = onnx.GraphProto.FromString(body.SerializeToString())
    nodes = [helper.make_node("DynamicQuantizeLinear", ["a"], ["q", "s", "z"]),
             helper.make_node("If", ["yes"], ["y"], then_branch=body, else_branch=other)]
    b = np.full((16, 8), 127, np.int8)
    model = model_of(nodes, "f", [4, 16], {"b": b, "yes": np.bool_(True)})
    a = np.abs(RNG.standard_normal((4, 16))).astype(F)
    codes = np.clip(np.round(a / (a.max() / F(255))), 0, 255).astype(int)
    assert (session.plain_session(model.SerializeToString()).run(None, {"a": a})[0] == codes @ b.astype(int)).all()


def test_weights_in_a_file(tmp_path) -> None:  # type: ignore[no-untyped-def]
    a, b = np.full((2, 64), 255, np.uint8), np.full((64, 64), 127, np.int8)
    model = model_of([helper.make_node("MatMulInteger", ["a", "b"], ["y"])], "u", [2, 64], {"b": b})
    onnx.save(model, tmp_path / "m.onnx", save_as_external_data=True, location="m.data", size_threshold=0)
    assert (session.plain_session(tmp_path / "m.onnx").run(None, {"a": a})[0] == 64 * 255 * 127).all()
