"""Makes the values inside bodies of If, Loop and Scan visible as outputs of the model.

A value of a body is collected in a sequence, one element for each time that the body ran. The sequence goes from
outside into every body on the way as a loop-carried value, or is read from outside by a branch, and comes back the
same way. Scan carries no sequences: its values become scan outputs, and only where Scan stands in the main graph.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import onnx
from onnx import helper

Path = tuple[tuple[str, str], ...]  # (first output of the node, name of the attribute) on the way to a body


@dataclass
class Seen:
    """A value of a body and the output of the model that shows it."""

    name: str
    body: Path
    output: str
    stacked: bool  # a tensor with the turns in its first dim, not a sequence


def bodies(graph: onnx.GraphProto, path: Path = ()) -> Iterator[tuple[Path, onnx.GraphProto]]:
    """Yields every body below the graph with the way to it."""
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.type == onnx.AttributeProto.GRAPH:
                here = (*path, (node.output[0], attribute.name))
                yield here, attribute.g
                yield from bodies(attribute.g, here)


def _descend(model: onnx.ModelProto, path: Path) -> list[tuple[onnx.GraphProto, onnx.NodeProto, onnx.GraphProto]]:
    """The (graph, node, body) of every step of the way."""
    steps = []
    graph = model.graph
    for output, attribute in path:
        node = next(n for n in graph.node if n.output and n.output[0] == output)
        body = next(a.g for a in node.attribute if a.name == attribute)
        steps.append((graph, node, body))
        graph = body
    return steps


def _pad(names: "onnx.RepeatedScalar", count: int) -> None:  # type: ignore[name-defined]
    while len(names) < count:
        names.append("")


def _insert(names: "onnx.RepeatedScalar", place: int, name: str) -> None:  # type: ignore[name-defined]
    values = list(names)
    del names[:]
    names.extend([*values[:place], name, *values[place:]])


def _insert_output(body: onnx.GraphProto, place: int, value: onnx.ValueInfoProto) -> None:
    values = [onnx.ValueInfoProto.FromString(v.SerializeToString()) for v in body.output]
    del body.output[:]
    body.output.extend([*values[:place], value, *values[place:]])


def _expose(model: onnx.ModelProto, path: Path, name: str, element_type: int) -> Seen | None:
    steps = _descend(model, path)
    if any(node.op_type == "Scan" for _, node, _ in steps):
        if len(steps) > 1:
            return None
        _, node, body = steps[0]
        output = f"{name}__seen"
        body.node.append(helper.make_node("Identity", [name], [f"{name}__copy"]))
        body.output.append(helper.make_tensor_value_info(f"{name}__copy", element_type, None))
        _pad(node.output, len(body.output) - 1)
        node.output.append(output)
        axes = next((a for a in node.attribute if a.name == "scan_output_axes"), None)
        if axes is not None:
            axes.ints.append(0)
        directions = next((a for a in node.attribute if a.name == "scan_output_directions"), None)
        if directions is not None:
            directions.ints.append(0)
        model.graph.output.append(onnx.ValueInfoProto(name=output))
        return Seen(name, path, output, True)

    def info(value: str) -> onnx.ValueInfoProto:
        return helper.make_tensor_sequence_value_info(value, element_type, None)

    sequence = f"{name}__seen"
    start = helper.make_node("SequenceEmpty", [], [f"{sequence}_0"], dtype=element_type)
    nodes = [onnx.NodeProto.FromString(n.SerializeToString()) for n in model.graph.node]
    del model.graph.node[:]
    model.graph.node.extend([start, *nodes])
    steps = _descend(model, path)
    current = f"{sequence}_0"
    outside = []
    for i, (_, node, body) in enumerate(steps):
        outside.append(current)
        if node.op_type == "Loop":
            _pad(node.input, 2)
            node.input.append(current)
            current = f"{sequence}_in{i}"
            body.input.append(info(current))
    steps[-1][2].node.append(helper.make_node("SequenceInsert", [current, name], [f"{sequence}_last"]))
    current = f"{sequence}_last"
    for i, (_, node, body) in reversed(list(enumerate(steps))):
        result = f"{sequence}_out{i}"
        if node.op_type == "Loop":
            carried = len(node.input) - 3
            _insert_output(body, 1 + carried, info(current))
            _pad(node.output, carried)
            _insert(node.output, carried, result)
        else:
            for attribute in node.attribute:
                if attribute.name == path[i][1]:
                    body.output.append(info(current))
                elif attribute.type == onnx.AttributeProto.GRAPH:
                    attribute.g.node.append(helper.make_node("Identity", [outside[i]], [f"{result}_other"]))
                    attribute.g.output.append(info(f"{result}_other"))
            _pad(node.output, len(body.output) - 1)
            node.output.append(result)
        current = result
    model.graph.output.append(info(current))
    return Seen(name, path, current, False)


def expose(model: onnx.ModelProto, types: dict[str, int]) -> list[Seen]:
    """Changes the model so that it shows the values of its bodies that `types` gives an element type for."""
    wanted = []
    for path, body in bodies(model.graph):
        for name in [*(i.name for i in body.input), *(o for n in body.node for o in n.output if o)]:
            if types.get(name):
                wanted.append((path, name))
    seen = (_expose(model, path, name, types[name]) for path, name in wanted)
    return [s for s in seen if s is not None]
