"""Which nodes of a model compute one thing: `optimize` computes it once, so that two constructs of the model are one in what it writes."""

from __future__ import annotations

from collections.abc import Iterable

import onnx
from onnx import numpy_helper


def content(tensor: onnx.TensorProto) -> int:
    array = numpy_helper.to_array(tensor)
    return hash((tensor.data_type, array.shape, array.tobytes()))


def structures(model: onnx.ModelProto) -> dict[str, int]:
    """By the name of a node: what it computes, from the inputs and constants of its graph on."""
    result: dict[str, int] = {}
    _add_structures(model.graph, {}, result)
    return result


def _add_structures(graph: onnx.GraphProto, outside: dict[str, int], result: dict[str, int]) -> None:
    known = outside | {value.name: hash(("input", value.name)) for value in graph.input}
    known.update((tensor.name, content(tensor)) for tensor in graph.initializer)
    for node in graph.node:
        if node.op_type == "Constant" and node.attribute[0].HasField("t"):
            known[node.output[0]] = content(node.attribute[0].t)
            continue
        for attribute in node.attribute:
            if attribute.HasField("g"):
                _add_structures(attribute.g, known, result)
        attributes = tuple(sorted(a.SerializeToString(deterministic=True) for a in node.attribute))
        # What a Reshape makes of a value can be said in many ways, by constants or computed: two of one value count as one.
        inputs = node.input[:1] if node.op_type == "Reshape" else node.input
        structure = hash((node.domain, node.op_type, tuple(known.get(name, hash(name)) for name in inputs), attributes))
        result[node.name] = structure
        for index, name in enumerate(node.output):
            known[name] = hash((structure, index))


def distinct(model: onnx.ModelProto, nodes: Iterable[str]) -> int:
    """How many things nodes of these names compute. A name that is not in the graph is a thing of its own."""
    known = structures(model)
    return len({known.get(name, name) for name in nodes})
