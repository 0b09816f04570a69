"""Products of uint8 and int8 as ONNX defines them, on processors on which ONNX Runtime computes others.

Without VNNI or AVX-512, its kernels for products of uint8 and int8 add two products at a time in int16, saturated
(onnxruntime.ai, "Quantize ONNX models", on U8S8): a model with weights of the whole range of int8 gives other numbers than
elsewhere. Its own way out, session.x64quantprecision, needs its graph optimizations, which err elsewhere. So the weight
becomes uint8 in the graph: 128 is added to it and to its zero point, which changes no product.
"""

from __future__ import annotations

from typing import Iterator

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

# Of each operator: its domain, and the places of its left operand's zero point, of the weight and of the weight's zero point.
PRODUCTS = {
    "MatMulInteger": ("", 2, 1, 3),
    "ConvInteger": ("", 2, 1, 3),
    "QLinearMatMul": ("", 2, 3, 5),
    "QLinearConv": ("", 2, 3, 5),
    "MatMulIntegerToFloat": ("com.microsoft", 4, 1, 5),
    "DynamicQuantizeMatMul": ("com.microsoft", None, 1, 3),  # which makes the codes of its left operand itself
    "QGemm": ("com.microsoft", 2, 3, 5),
    "QAttention": ("com.microsoft", 6, 1, 7),
}
_SAME_TYPE = {"Identity", "Reshape", "Transpose", "Squeeze", "Unsqueeze", "Flatten", "Concat", "Slice", "Gather", "Pad", "MaxPool"}


def make_exact(model: onnx.ModelProto) -> bool:
    """Changes the weights of such products to uint8; returns whether there were any. Weights may lie in files."""
    types = _Types(model)
    changed = [_Graph(graph, types).run() for graph in _graphs(model.graph)]
    return any(changed)


def _graphs(graph: onnx.GraphProto) -> Iterator[onnx.GraphProto]:
    yield graph
    for node in graph.node:
        for attribute in node.attribute:
            for body in [attribute.g] if attribute.HasField("g") else attribute.graphs:
                yield from _graphs(body)


class _Types:
    """The types of values of a model, whose names are unique over all bodies."""

    def __init__(self, model: onnx.ModelProto) -> None:
        self.types: dict[str, int] = {}
        self.makers: dict[str, onnx.NodeProto] = {}
        for graph in _graphs(model.graph):
            self.types.update({tensor.name: tensor.data_type for tensor in graph.initializer})
            self.types.update({v.name: v.type.tensor_type.elem_type for v in [*graph.input, *graph.value_info]
                               if v.type.tensor_type.elem_type})
            self.makers.update({name: node for node in graph.node for name in node.output})

    def of(self, name: str) -> int:
        """Returns the type of a value; 0 where it is not known."""
        for _ in range(64):
            if name in self.types:
                return self.types[name]
            node = self.makers.get(name)
            if node is None:
                return 0
            attributes = {attribute.name: attribute for attribute in node.attribute}
            if node.op_type == "Constant" and "value" in attributes:
                return attributes["value"].t.data_type
            if node.op_type == "Cast":
                return attributes["to"].i
            if node.op_type == "DynamicQuantizeLinear":
                return TensorProto.FLOAT if name == node.output[1] else TensorProto.UINT8
            if node.op_type == "QuantizeLinear" and len(node.input) < 3:
                return TensorProto.UINT8
            if node.op_type in ("QLinearMatMul", "QLinearConv"):
                name = node.input[7]
            elif node.op_type == "QuantizeLinear":
                name = node.input[2]
            elif node.op_type in _SAME_TYPE or node.domain == "com.microsoft":
                name = node.input[0]
            else:
                return 0
        return 0


class _Graph:
    """One graph, whose products are changed."""

    def __init__(self, graph: onnx.GraphProto, types: _Types) -> None:
        self.graph = graph
        self.types = types
        self.made: dict[str, str] = {}

    def run(self) -> bool:
        nodes: list[onnx.NodeProto] = []
        for node in self.graph.node:
            domain, left, weight, zero = PRODUCTS.get(node.op_type, ("-", None, 0, 0))
            if node.domain == domain and self.types.of(node.input[weight]) == TensorProto.INT8 and self._reads_uint8(node, left):
                nodes += self._widened(node, weight, zero)
            nodes.append(node)
        if not self.made:
            return False
        copies = [onnx.NodeProto.FromString(node.SerializeToString()) for node in nodes]
        del self.graph.node[:]
        self.graph.node.extend(copies)
        return True

    def _reads_uint8(self, node: onnx.NodeProto, left: int | None) -> bool:
        if left is None:
            return True
        given = len(node.input) > left and node.input[left]
        return self.types.of(given or node.input[0]) == TensorProto.UINT8

    def _widened(self, node: onnx.NodeProto, weight: int, zero: int) -> list[onnx.NodeProto]:
        """Returns the nodes that make its weight and its zero point uint8, and lets it read what they give."""
        node.input.extend([""] * (zero + 1 - len(node.input)))
        nodes = self._plus_128(node.input[weight])
        node.input[weight] = self.made[node.input[weight]]
        if node.input[zero]:
            nodes += self._plus_128(node.input[zero])
            node.input[zero] = self.made[node.input[zero]]
        else:
            nodes.append(self._constant(f"{node.output[0]}.zero_point_128", np.uint8(128)))
            node.input[zero] = nodes[-1].output[0]
        return nodes

    def _plus_128(self, name: str) -> list[onnx.NodeProto]:
        if name in self.made:
            return []
        wide, sum_, result = f"{name}.int32", f"{name}.plus_128", f"{name}.uint8"
        self.made[name] = result
        number = self._constant(f"{name}.128", np.int32(128))
        return [number, helper.make_node("Cast", [name], [wide], to=TensorProto.INT32),
                helper.make_node("Add", [wide, number.output[0]], [sum_]), helper.make_node("Cast", [sum_], [result], to=TensorProto.UINT8)]

    @staticmethod
    def _constant(name: str, number: np.generic) -> onnx.NodeProto:
        return helper.make_node("Constant", [], [name], value=numpy_helper.from_array(np.array(number), name))
