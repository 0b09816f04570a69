"""Small quantised models: single operators at their edges, and what ONNX Runtime's quantisers write of small float models."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, TensorShapeProto, helper, numpy_helper
from onnxruntime.quantization import CalibrationDataReader, QuantFormat, QuantType, quantize_dynamic, quantize_static

from ascend_fuse.session import plain_session

Array = NDArray[np.generic]
RUNTIME = "com.microsoft"
FLOAT = TensorProto.FLOAT


def build(nodes: list[onnx.NodeProto], inputs: dict[str, Array], outputs: dict[str, int], constants: dict[str, Array | onnx.TensorProto],
          opset: int = 17) -> onnx.ModelProto:
    """A model of these nodes, for inputs of the types and shapes of these arrays."""
    given = [helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape)
             for name, array in inputs.items()]
    made = [helper.make_tensor_value_info(name, kind, None) for name, kind in outputs.items()]
    tensors = [value if isinstance(value, onnx.TensorProto) else numpy_helper.from_array(np.asarray(value), name)
               for name, value in constants.items()]
    for tensor, name in zip(tensors, constants, strict=True):
        tensor.name = name
    graph = helper.make_graph(nodes, "g", given, made, tensors)
    imports = [helper.make_opsetid("", opset), helper.make_opsetid(RUNTIME, 1)]
    model = helper.make_model(graph, opset_imports=imports, ir_version=10)
    for value, result in zip(model.graph.output, plain_session(model.SerializeToString()).run(None, inputs), strict=True):
        value.type.tensor_type.shape.dim.extend(TensorShapeProto.Dimension(dim_value=dim) for dim in result.shape)
    return model


def single(op: str, inputs: dict[str, Array], constants: dict[str, Array], types: list[int], version: int = 17,
           order: str | None = None, domain: str = "", **attributes: object) -> onnx.ModelProto:
    """A model of one node, whose inputs have these names in this order, "-" for one that is left out."""
    names = (order or " ".join([*inputs, *constants])).split()
    outputs = [f"y{i}" for i in range(len(types))]
    node = helper.make_node(op, ["" if name == "-" else name for name in names], outputs, domain=domain, **attributes)
    return build([node], inputs, dict(zip(outputs, types, strict=True)), constants, version)


def codes(rng: np.random.Generator, kind: type, *shape: int) -> Array:
    """Codes over the whole range of the type, both ends among them."""
    info = np.iinfo(kind)
    made = rng.integers(info.min, info.max + 1, shape).astype(kind)
    if made.size > 1:
        made.flat[0], made.flat[-1] = info.min, info.max
    return made


def packed(numbers: Array, kind: int, dims: list[int]) -> onnx.TensorProto:
    """Integers of 4 bits, two in a byte, the first one in the low half."""
    flat = (numbers.astype(np.int64).ravel() & 15).astype(np.uint8)
    flat = np.append(flat, np.zeros(flat.size % 2, np.uint8))
    return TensorProto(data_type=kind, dims=dims, raw_data=(flat[::2] | flat[1::2] << 4).tobytes())


def _weights(rng: np.random.Generator, **dims: tuple[int, ...]) -> dict[str, Array]:
    return {name: (rng.standard_normal(shape) * 0.2).astype(np.float32) for name, shape in dims.items()}


def linears(rng: np.random.Generator) -> onnx.ModelProto:
    """Linears with activations, of odd sizes."""
    node = helper.make_node
    nodes = [node("MatMul", ["x", "w1"], ["a"]), node("Add", ["a", "b1"], ["b"]), node("Relu", ["b"], ["r"]),
             node("MatMul", ["r", "w2"], ["d"]), node("Sigmoid", ["d"], ["e"]), node("Gemm", ["e", "w3", "b3"], ["y"], transB=1)]
    return build(nodes, {"x": np.zeros((3, 33), np.float32)}, {"y": FLOAT},
                 _weights(rng, w1=(33, 45), b1=(45,), w2=(45, 64), w3=(7, 64), b3=(7,)))


def convolutions(rng: np.random.Generator) -> onnx.ModelProto:
    """Convolutions, poolings, a sum, a Concat."""
    node = helper.make_node
    nodes = [node("Conv", ["x", "w1", "b1"], ["a"], pads=[1, 1, 1, 1]), node("Relu", ["a"], ["b"]),
             node("MaxPool", ["b"], ["p"], kernel_shape=[2, 2], strides=[2, 2]), node("Conv", ["p", "w2"], ["d"], pads=[1, 1, 1, 1]),
             node("Add", ["d", "p"], ["e"]), node("LeakyRelu", ["e"], ["l"], alpha=0.1), node("Concat", ["l", "e"], ["k"], axis=1),
             node("GlobalAveragePool", ["k"], ["q"]), node("Flatten", ["q"], ["f"]), node("Gemm", ["f", "w3", "b3"], ["y"])]
    return build(nodes, {"x": np.zeros((3, 3, 8, 8), np.float32)}, {"y": FLOAT},
                 _weights(rng, w1=(16, 3, 3, 3), b1=(16,), w2=(16, 16, 3, 3), w3=(32, 5), b3=(5,)))


def attention(rng: np.random.Generator) -> onnx.ModelProto:
    """Embeddings, an attention, a residual sum, a norm, a linear."""
    node = helper.make_node
    nodes = [node("Gather", ["table", "ids"], ["x"]), node("MatMul", ["x", "wq"], ["q"]), node("MatMul", ["x", "wk"], ["k"]),
             node("MatMul", ["x", "wv"], ["v"]), node("Transpose", ["k"], ["t"], perm=[0, 2, 1]), node("MatMul", ["q", "t"], ["s"]),
             node("Mul", ["s", "scale"], ["u"]), node("Softmax", ["u"], ["p"], axis=-1), node("MatMul", ["p", "v"], ["o"]),
             node("Add", ["o", "x"], ["r"]), node("LayerNormalization", ["r", "gain", "shift"], ["n"]), node("MatMul", ["n", "wo"], ["y"])]
    constants = _weights(rng, table=(50, 32), wq=(32, 32), wk=(32, 32), wv=(32, 32), wo=(32, 48), gain=(32,), shift=(32,))
    return build(nodes, {"ids": np.zeros((2, 6), np.int64)}, {"y": FLOAT}, {**constants, "scale": np.float32(0.17)})


MODELS: dict[str, Callable[[np.random.Generator], onnx.ModelProto]] = {
    "linears": linears, "convolutions": convolutions, "attention": attention}
# The linears and convolutions of each that a quantiser takes, products of two activations included, as static and as dynamic.
PRODUCTS = {"linears": (3, 3), "convolutions": (3, 3), "attention": (6, 4)}


def feeds(model: onnx.ModelProto, rng: np.random.Generator) -> dict[str, Array]:
    """Inputs of a model."""
    made: dict[str, Array] = {}
    for value in model.graph.input:
        kind = helper.tensor_dtype_to_np_dtype(value.type.tensor_type.elem_type)
        dims = [dim.dim_value for dim in value.type.tensor_type.shape.dim]
        floating = np.issubdtype(kind, np.floating)
        made[value.name] = rng.standard_normal(dims).astype(kind) if floating else rng.integers(0, 50, dims).astype(kind)
    return made


class Calibration(CalibrationDataReader):  # type: ignore[misc]
    """A few inputs."""

    def __init__(self, model: onnx.ModelProto) -> None:
        self.rest: Iterator[dict[str, Array]] = iter([feeds(model, np.random.default_rng(seed)) for seed in range(4)])

    def get_next(self) -> dict[str, Array] | None:
        return next(self.rest, None)


STATIC = [f"{form}-{activation}-{weight}-{spread}" for form in ("QDQ", "QOperator") for activation in ("QInt8", "QUInt8")
          for weight in ("QInt8", "QUInt8") for spread in ("tensor", "channel") if (activation, weight) != ("QInt8", "QUInt8")]
DYNAMIC = [f"dynamic-{weight}-{spread}-{width}" for weight in ("QInt8", "QUInt8") for spread in ("tensor", "channel")
           for width in ("whole", "reduced")]


def quantise(source: Path, way: str, to: Path) -> None:
    """Quantises a float model in one of the ways of STATIC and DYNAMIC."""
    form, first, second, third = way.split("-")
    if form == "dynamic":
        quantize_dynamic(source, to, weight_type=QuantType[first], per_channel=second == "channel", reduce_range=third == "reduced")
    else:
        quantize_static(source, to, Calibration(onnx.load(source)), quant_format=QuantFormat[form], activation_type=QuantType[first],
                        weight_type=QuantType[second], per_channel=third == "channel")
