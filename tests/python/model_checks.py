"""What every written model must be, whatever it computes: read from the file alone, by code that shares none with ours.

Every value is defined once and before it is read, so that there is no cycle; graph inputs and outputs keep name, type and
shape; an expanded model passes onnx.checker. Nodes of unknown operators are as good as any other here.
"""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

import onnx


@functools.lru_cache(maxsize=32)
def read(path: Path) -> onnx.ModelProto:
    """Returns a model whose weights are in its file. Several tests read the same one; none may change it."""
    return onnx.ModelProto.FromString(path.read_bytes())


def _subgraphs(node: onnx.NodeProto) -> Iterator[onnx.GraphProto]:
    for attribute in node.attribute:
        if attribute.HasField("g"):
            yield attribute.g
        yield from attribute.graphs


def _walk(nodes: Iterable[onnx.NodeProto], known: set[str], where: str) -> list[str]:
    """Adds what the nodes define to `known`; returns what is wrong with their order and names."""
    problems = []
    for node in nodes:
        place = f"{where}, node '{node.name}' ({node.op_type})"
        problems += [f"{place} reads '{name}' before it is defined" for name in node.input if name and name not in known]
        for graph in _subgraphs(node):
            problems += _graph_problems(graph, known, place)
        for name in node.output:
            if name and name in known:
                problems.append(f"{place} defines '{name}' again")
            if name:
                known.add(name)
    return problems


def _graph_problems(graph: onnx.GraphProto, outer: set[str], where: str) -> list[str]:
    inputs = [value.name for value in graph.input]
    constants = [tensor.name for tensor in graph.initializer]
    constants += [tensor.values.name for tensor in graph.sparse_initializer]
    problems = [f"{where}: two inputs or two initializers are called '{name}'"
                for names in (inputs, constants) for name, count in Counter(names).items() if count > 1]
    known = outer | set(inputs) | set(constants)
    problems += _walk(graph.node, known, where)
    problems += [f"{where}: nothing defines the output '{v.name}'" for v in graph.output if v.name not in known]
    return problems


def order_problems(model: onnx.ModelProto) -> list[str]:
    """Returns a sentence for every value that is read before it is defined, defined twice, or not at all."""
    problems = _graph_problems(model.graph, set(), "graph")
    for function in model.functions:
        known = set(function.input)
        where = f"function {function.name}"
        problems += _walk(function.node, known, where)
        problems += [f"{where}: nothing defines the output '{name}'" for name in function.output if name not in known]
    return problems


def signature_problems(before: onnx.ModelProto, after: onnx.ModelProto) -> list[str]:
    """Returns a sentence where graph inputs or outputs have another name, type, shape or order than before."""
    problems = []
    for which in ("input", "output"):
        a = [value.SerializeToString(deterministic=True) for value in getattr(before.graph, which)]
        b = [value.SerializeToString(deterministic=True) for value in getattr(after.graph, which)]
        if a != b:
            names = [value.name for value in getattr(before.graph, which)]
            problems.append(f"the graph {which}s were {names}, now {[v.name for v in getattr(after.graph, which)]}, "
                            "or have another type or shape")
    return problems


def _duplicate_names(model: onnx.ModelProto) -> set[str]:
    return {name for name, count in Counter(node.name for node in model.graph.node).items() if name and count > 1}


def check_written(before: onnx.ModelProto, after: onnx.ModelProto) -> None:
    """Asserts that a rewritten model is in order, keeps its signature, and names no two nodes alike that were not so."""
    problems = order_problems(after) + signature_problems(before, after)
    problems += [f"several nodes are called '{name}'" for name in sorted(_duplicate_names(after) - _duplicate_names(before))]
    assert not problems, "\n".join(problems[:10])


def passes_checker(model: onnx.ModelProto) -> bool:
    try:
        onnx.checker.check_model(model, full_check=True)
    except (onnx.checker.ValidationError, onnx.shape_inference.InferenceError):
        return False
    return True


def check_expanded(before: onnx.ModelProto, expanded: onnx.ModelProto) -> None:
    """The same of an expanded model, and that it passes onnx.checker, unless the original does not pass either."""
    check_written(before, expanded)
    try:
        onnx.checker.check_model(expanded, full_check=True)
    except (onnx.checker.ValidationError, onnx.shape_inference.InferenceError):
        if passes_checker(before):
            raise
