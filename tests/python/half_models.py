"""Small models that go wrong in float16 at one known place, and models that do not."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper


@dataclasses.dataclass
class Planted:
    """A model, inputs that show its fault, and how few nodes have to stay float32."""

    model: onnx.ModelProto
    feeds: dict[str, np.ndarray]
    fewest: int


class Builder:
    """Nodes with a name each; constants by value."""

    def __init__(self) -> None:
        self.nodes: list[onnx.NodeProto] = []
        self.constants: list[onnx.TensorProto] = []
        self.inputs: dict[str, np.ndarray] = {}

    def input(self, name: str, array: np.ndarray) -> str:
        self.inputs[name] = array
        return name

    def constant(self, value: object, dtype: type = np.float32) -> str:
        name = f"constant_{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(np.asarray(value, dtype), name))
        return name

    def __call__(self, op: str, *inputs: str, **attributes: object) -> str:
        name = f"/m/{op}_{len(self.nodes)}"
        self.nodes.append(helper.make_node(op, list(inputs), [f"{name}_output"], name=name, **attributes))
        return f"{name}_output"

    def planted(self, output: str, fewest: int, opset: int = 17) -> Planted:
        """Ends the model with some nodes that float16 does well."""
        output = self("Relu", self("Mul", output, self.constant(0.5)))
        inputs = [helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(a.dtype), list(a.shape)) for n, a in self.inputs.items()]
        outputs = [helper.make_tensor_value_info(output, TensorProto.FLOAT, None)]
        graph = helper.make_graph(self.nodes, "planted", inputs, outputs, self.constants)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)
        return Planted(model, self.inputs, fewest)


def numbers(*shape: int, scale: float = 1.0, seed: int = 3) -> np.ndarray:
    return (np.random.default_rng(seed).standard_normal(shape) * scale).astype(np.float32)


def rms_norm() -> Planted:
    """x of some hundreds: the squares and their mean leave float16. Pow, ReduceMean, Add and the Sqrt that reads them."""
    b = Builder()
    x = b.input("x", numbers(2, 8, 64, scale=900))
    mean = b("ReduceMean", b("Pow", x, b.constant(2.0)), axes=[-1], keepdims=1)
    return b.planted(b("Div", x, b("Sqrt", b("Add", mean, b.constant(1e-6)))), 4)


def layer_norm() -> Planted:
    """The same around the mean, with the square as a product: Mul, ReduceMean, Add, Sqrt."""
    b = Builder()
    x = b.input("x", numbers(2, 8, 64, scale=900) + np.float32(50))
    centred = b("Sub", x, b("ReduceMean", x, axes=[-1], keepdims=1))
    variance = b("ReduceMean", b("Mul", centred, centred), axes=[-1], keepdims=1)
    return b.planted(b("Div", centred, b("Sqrt", b("Add", variance, b.constant(1e-5)))), 4)


def logits() -> Planted:
    """Scores before the scale leave float16; after it they fit. MatMul, and the Mul that reads it."""
    b = Builder()
    query, key = b.input("q", numbers(2, 8, 64, scale=60)), b.input("k", numbers(2, 64, 8, scale=60, seed=4))
    scaled = b("Mul", b("MatMul", query, key), b.constant(1e-5))
    return b.planted(b("MatMul", b("Softmax", scaled, axis=-1), b.input("v", numbers(2, 8, 64, seed=5))), 2)


def mask() -> Planted:
    """(1 - mask) times the smallest float32: 0 times infinity. Only the Mul."""
    b = Builder()
    keep = np.ones((2, 1, 8), np.float32)
    keep[0, :, :3] = 0
    bias = b("Mul", b("Sub", b.constant(1.0), b.input("mask", keep)), b.constant(np.finfo(np.float32).min))
    scores = b("MatMul", b.input("q", numbers(2, 8, 16)), b.input("k", numbers(2, 16, 8, seed=4)))
    return b.planted(b("MatMul", b("Softmax", b("Add", scores, bias), axis=-1), b.input("v", numbers(2, 8, 16, seed=5))), 1)


def masked_row() -> Planted:
    """A row without a key: infinities only, and Softmax makes NaN of them. Where, Add and Softmax."""
    b = Builder()
    keep = np.tril(np.ones((8, 8), bool))
    keep[0] = False
    bias = b("Where", b.input("keep", keep), b.constant(0.0), b.constant(np.finfo(np.float32).min))
    scores = b("MatMul", b.input("q", numbers(2, 8, 16)), b.input("k", numbers(2, 16, 8, seed=4)))
    return b.planted(b("MatMul", b("Softmax", b("Add", scores, bias), axis=-1), b.input("v", numbers(2, 8, 16, seed=5))), 3)


def exp() -> Planted:
    """log (sum (exp (x))) of numbers up to 20: Exp, ReduceSum, Log."""
    b = Builder()
    x = b.input("x", np.linspace(-5, 20, 64, dtype=np.float32).reshape(2, 32))
    total = b("ReduceSum", b("Exp", x), b.constant([-1], np.int64), keepdims=1)
    return b.planted(b("Sub", b("Log", total), x), 3)


def accumulation() -> Planted:
    """A running sum to 80000: CumSum, and the Mul that reads it."""
    b = Builder()
    total = b("CumSum", b.input("x", np.full((1, 4000), 20, np.float32)), b.constant(1, np.int64))
    return b.planted(b("Mul", total, b.constant(1e-3)), 2)


def long_sum() -> Planted:
    """A mean that is written as a sum and a quotient: ReduceSum, Div."""
    b = Builder()
    x = b.input("x", np.abs(numbers(2, 4000, scale=40)))
    total = b("ReduceSum", x, b.constant([-1], np.int64), keepdims=1)
    return b.planted(b("Div", total, b.constant(4000.0)), 2)


def large_constant() -> Planted:
    """A factor of a million and back: Mul, Sqrt."""
    b = Builder()
    x = b.input("x", np.abs(numbers(4, 32)) + np.float32(0.1))
    return b.planted(b("Sqrt", b("Mul", x, b.constant(1e6))), 2)


def epsilon() -> Planted:
    """An epsilon of 1e-10 that keeps a quotient of small numbers finite: it is 0 in float16. Add and Div, and what computes their numbers."""
    b = Builder()
    x = b.input("x", np.array([[0, 0, 0, 0], [1, 2, 3, 4]], np.float32))
    norm = b("ReduceSum", b("Abs", x), b.constant([-1], np.int64), keepdims=1)
    return b.planted(b("Div", x, b("Add", norm, b.constant(1e-10))), 2)


def angles() -> Planted:
    """A rotary table of positions up to 4000: the angle and its cosine."""
    b = Builder()
    positions = b("Cast", b.input("positions", np.arange(3900, 4000, dtype=np.int64)[None, :, None]), to=TensorProto.FLOAT)
    angle = b("Mul", positions, b.constant(1.0 / 10000 ** (np.arange(0, 16, 2) / 16)))
    return b.planted(b("Add", b("Cos", angle), b.constant(1.0)), 2)


def residual() -> Planted:
    """A stream that grows to 1e5 and is normed: what adds, what norms, and nothing of the rest."""
    b = Builder()
    x = b.input("x", numbers(2, 8, 32, scale=100))
    grown = b("Add", b("Mul", x, b.constant(400.0)), x)
    mean = b("ReduceMean", b("Abs", grown), axes=[-1], keepdims=1)
    normed = b("Div", grown, mean)
    return b.planted(b("MatMul", normed, b.constant(numbers(32, 32, seed=8, scale=0.1))), 5)


PLANTED: dict[str, Callable[[], Planted]] = {f.__name__: f for f in (
    rms_norm, layer_norm, logits, mask, masked_row, exp, accumulation, long_sum, large_constant, epsilon, angles, residual)}


def fine_attention() -> Planted:
    """Attention with a mask of -10000 and numbers around 1."""
    b = Builder()
    keep = np.tril(np.ones((8, 8), bool))
    bias = b("Where", b.input("keep", keep), b.constant(0.0), b.constant(-10000.0))
    scores = b("Mul", b("MatMul", b.input("q", numbers(2, 8, 16)), b.input("k", numbers(2, 16, 8, seed=4))), b.constant(0.25))
    return b.planted(b("MatMul", b("Softmax", b("Add", scores, bias), axis=-1), b.input("v", numbers(2, 8, 16, seed=5))), 0)


def fine_norm() -> Planted:
    """The norm of numbers around 1."""
    b = Builder()
    x = b.input("x", numbers(2, 8, 64))
    mean = b("ReduceMean", b("Pow", x, b.constant(2.0)), axes=[-1], keepdims=1)
    return b.planted(b("Div", x, b("Sqrt", b("Add", mean, b.constant(1e-3)))), 0)


def fine_mlp() -> Planted:
    """Products and an activation."""
    b = Builder()
    hidden = b("MatMul", b.input("x", numbers(4, 64)), b.constant(numbers(64, 128, scale=0.1, seed=6)))
    gated = b("Mul", hidden, b("Sigmoid", hidden))
    return b.planted(b("MatMul", gated, b.constant(numbers(128, 64, scale=0.1, seed=7))), 0)


def fine_infinity() -> Planted:
    """A mask of -infinity in a row that keeps a key: it is infinite before and after."""
    b = Builder()
    bias = b("Where", b.input("keep", np.tril(np.ones((8, 8), bool))), b.constant(0.0), b.constant(-np.inf))
    return b.planted(b("Softmax", b("Add", b.input("x", numbers(2, 8, 8)), bias), axis=-1), 0)


FINE: dict[str, Callable[[], Planted]] = {f.__name__: f for f in (fine_attention, fine_norm, fine_mlp, fine_infinity)}
