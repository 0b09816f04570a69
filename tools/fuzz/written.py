"""Runs a written model node by node: standard nodes in ONNX Runtime, Ascend nodes in numpy (npu_numpy.py).

Standard nodes between two Ascend nodes run as one session. An If whose branches hold Ascend nodes, a Loop and a Scan are
interpreted here.
"""

from __future__ import annotations

import collections
from typing import Any

import ml_dtypes
import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from ascend_fuse.session import plain_session
from fuzz import npu_numpy

STANDARD = ("", "ai.onnx")


def is_npu(node: onnx.NodeProto) -> bool:
    """Domain npu, or the default domain under a name that ATC knows there (style D)."""
    return node.domain == "npu" or (node.domain in STANDARD and (node.op_type.startswith("NPU") or node.op_type in npu_numpy.NODES))


def is_interpreted(node: onnx.NodeProto) -> bool:
    """What no session computes: Ascend nodes, what holds them, and Scan, of which ONNX Runtime wants every shape beforehand."""
    return node.op_type == "Scan" or holds_npu(node)


def bodies(node: onnx.NodeProto) -> list[onnx.GraphProto]:
    return [a.g for a in node.attribute if a.type == onnx.AttributeProto.GRAPH]


def holds_npu(node: onnx.NodeProto) -> bool:
    return is_npu(node) or any(holds_npu(inner) for body in bodies(node) for inner in body.node)


def all_nodes(nodes: Any) -> list[onnx.NodeProto]:
    found = []
    for node in nodes:
        found.append(node)
        for body in bodies(node):
            found += all_nodes(body.node)
    return found


def reads(node: onnx.NodeProto) -> set[str]:
    """Names that a node reads, those that its bodies capture among them."""
    return {name for name in node.input if name}.union(*map(captured, bodies(node)))


def own_names(body: onnx.GraphProto) -> set[str]:
    """Names that a body has before its first node."""
    return {i.name for i in body.input} | {t.name for t in body.initializer}


def captured(body: onnx.GraphProto) -> set[str]:
    """Names that a body reads from around it."""
    names, inside = set[str](), own_names(body)
    for node in body.node:
        names |= reads(node) - inside
        inside |= set(node.output)
    return names | {o.name for o in body.output} - inside


def retyped(model: onnx.ModelProto, source: int, target: int) -> onnx.ModelProto:
    """The model with another float type: of bfloat16, and double where it lacks kernels, ONNX Runtime runs too little."""
    result = onnx.ModelProto()
    result.CopyFrom(model)
    array = {TensorProto.FLOAT: np.float32, TensorProto.DOUBLE: np.float64}[target]

    def tensor(t: onnx.TensorProto) -> None:
        if t.data_type == source:
            values = numpy_helper.to_array(t)
            with np.errstate(over="ignore"):
                t.CopyFrom(numpy_helper.from_array(np.asarray(values).astype(array), t.name))

    def info(v: onnx.ValueInfoProto) -> None:
        if v.type.tensor_type.elem_type == source:
            v.type.tensor_type.elem_type = target

    def walk_nodes(nodes: Any) -> None:
        for node in nodes:
            for a in node.attribute:
                if a.name in ("to", "dtype") and a.type == onnx.AttributeProto.INT and a.i == source:
                    a.i = target
                if a.type == onnx.AttributeProto.TENSOR:
                    tensor(a.t)
                if a.type == onnx.AttributeProto.GRAPH:
                    walk(a.g)

    def walk(graph: onnx.GraphProto) -> None:
        for t in graph.initializer:
            tensor(t)
        for v in [*graph.input, *graph.output, *graph.value_info]:
            info(v)
        walk_nodes(graph.node)

    walk(result.graph)
    for function in result.functions:
        walk_nodes(function.node)
    return result


class Written:
    """A model to be run by `run`. `used` counts the Ascend nodes that were evaluated."""

    def __init__(self, model: onnx.ModelProto):
        self.model = model
        imports = {o.domain if o.domain != "ai.onnx" else "": o.version for o in model.opset_import}
        self.imports = [helper.make_opsetid(d, v) for d, v in imports.items() if d != "npu"]
        self.used: collections.Counter[str] = collections.Counter()
        self.sessions: dict[Any, Any] = {}
        self.readers: dict[int, list[set[str]]] = {}
        # Graphs are known by the identity of their objects, which protobuf keeps while somebody holds them.
        self.alive = [model.graph, *(body for node in all_nodes(model.graph.node) for body in bodies(node))]

    def run(self, feeds: dict[str, Any]) -> dict[str, Any]:
        """Returns the outputs by name."""
        env = dict(feeds)
        self._graph(self.model.graph, env)
        return {o.name: env[o.name] for o in self.model.graph.output}

    def _graph(self, graph: onnx.GraphProto, env: dict[str, Any]) -> None:
        tensors = {t.name: t for t in graph.initializer}
        for name, t in tensors.items():
            if name not in env:
                env[name] = t
        if id(graph) not in self.readers:
            self.readers[id(graph)] = [reads(node) for node in graph.node]
        needed = self.readers[id(graph)]
        pending = list(range(len(graph.node)))
        outputs = {o.name for o in graph.output}
        while pending:
            segment, made = [], set()
            for number in pending:
                node = graph.node[number]
                if not is_interpreted(node) and all(name in env or name in made for name in needed[number]):
                    segment.append(number)
                    made.update(node.output)
            if segment:
                self._segment(graph, segment, needed, made, outputs, env)
            inside = set(segment)
            pending = [number for number in pending if number not in inside]
            ready = [number for number in pending if is_interpreted(graph.node[number]) and needed[number] <= env.keys()]
            if not ready and not segment:
                raise ValueError(f"{graph.node[pending[0]].name} reads what nothing computes")
            for number in ready:
                self._special(graph.node[number], env)
            gone = set(ready)
            pending = [number for number in pending if number not in gone]

    def _segment(self, graph: onnx.GraphProto, numbers: list[int], needed: list[set[str]], made: set[str], outputs: set[str],
                 env: dict[str, Any]) -> None:
        inside = set(numbers)
        later = set().union(*[needed[n] for n in range(len(graph.node)) if n not in inside]) | outputs
        given = [name for name in made if name and name in later]
        wanted = sorted(set().union(*[needed[n] for n in numbers]) - made)
        feeds = {name: env[name] for name in wanted if not isinstance(env[name], onnx.TensorProto)}
        key = (id(graph), tuple(numbers), tuple((name, np.ndim(value)) for name, value in sorted(feeds.items())))
        if not given:
            return
        if key not in self.sessions:
            nodes = []
            for number in numbers:
                node = onnx.NodeProto()
                node.CopyFrom(graph.node[number])
                node.domain = "" if node.domain == "ai.onnx" else node.domain
                for inner in all_nodes([node]):
                    inner.domain = "" if inner.domain == "ai.onnx" else inner.domain
                nodes.append(node)
            inputs = [helper.make_tensor_value_info(name, element_type(value), [None] * np.ndim(value)) for name, value in feeds.items()]
            constants = [env[name] for name in wanted if isinstance(env[name], onnx.TensorProto)]
            part = helper.make_graph(nodes, "part", inputs, [onnx.ValueInfoProto(name=name) for name in given], constants)
            model = helper.make_model(part, opset_imports=self.imports, ir_version=min(self.model.ir_version, 10))
            model.functions.extend(self.model.functions)
            self.sessions[key] = plain_session(model.SerializeToString(), 1)
        session = self.sessions[key]
        env.update(zip([o.name for o in session.get_outputs()], session.run(None, feeds)))

    def _value(self, env: dict[str, Any], name: str) -> Any:
        value = env[name]
        return numpy_helper.to_array(value) if isinstance(value, onnx.TensorProto) else value

    def _special(self, node: onnx.NodeProto, env: dict[str, Any]) -> None:
        if is_npu(node):
            inputs = [self._value(env, name) if name else None for name in node.input]
            attributes = {a.name: helper.get_attribute_value(a) for a in node.attribute}
            count = max((i + 1 for i, name in enumerate(node.output) if name), default=0)
            try:
                results = npu_numpy.evaluate(node.op_type, inputs, attributes, count)
            except npu_numpy.ContractError as error:
                raise npu_numpy.ContractError(f"{node.op_type}: {error}") from None
            self.used[node.op_type] += 1
            env.update({name: value for name, value in zip(node.output, results) if name})
        elif node.op_type == "If":
            condition = bool(np.asarray(self._value(env, node.input[0])).ravel()[0])
            body = next(a.g for a in node.attribute if a.name == ("then_branch" if condition else "else_branch"))
            env.update(zip(node.output, self._body(body, env, [])))
        elif node.op_type == "Loop":
            self._loop(node, env)
        elif node.op_type == "Scan":
            self._scan(node, env)
        else:
            raise ValueError(f"{node.op_type} with Ascend nodes in its body is not interpreted")

    def _body(self, body: onnx.GraphProto, env: dict[str, Any], values: list[Any]) -> list[Any]:
        inner = {**env, **{t.name: t for t in body.initializer}}  # a body may have names of values around it
        inner.update(zip([i.name for i in body.input], values))
        self._graph(body, inner)
        return [self._value(inner, o.name) for o in body.output]

    def _loop(self, node: onnx.NodeProto, env: dict[str, Any]) -> None:
        body = bodies(node)[0]
        rounds = int(np.asarray(self._value(env, node.input[0])).ravel()[0]) if node.input[0] else 2**62
        go_on = bool(np.asarray(self._value(env, node.input[1])).ravel()[0]) if len(node.input) > 1 and node.input[1] else True
        states = [self._value(env, name) for name in node.input[2:]]
        scanned: list[list[Any]] = [[] for _ in range(len(body.output) - 1 - len(states))]
        number = 0
        while number < rounds and go_on:
            again, *results = self._body(body, env, [np.asarray(number, np.int64), np.asarray(go_on), *states])
            go_on = bool(np.asarray(again).ravel()[0])
            states = results[: len(states)]
            for kept, one in zip(scanned, results[len(states) :]):
                kept.append(one)
            number += 1
        env.update({name: value for name, value in zip(node.output, [*states, *map(np.stack, scanned)]) if name})

    def _scan(self, node: onnx.NodeProto, env: dict[str, Any]) -> None:
        body = bodies(node)[0]
        count = next(a.i for a in node.attribute if a.name == "num_scan_inputs")
        if any(a.name.startswith("scan_") for a in node.attribute):
            raise ValueError("a Scan over other axes is not interpreted")
        values = [self._value(env, name) for name in node.input]
        states, sequences = values[: len(values) - count], values[len(values) - count :]
        scanned: list[list[Any]] = [[] for _ in range(len(body.output) - len(states))]
        for number in range(len(sequences[0])):
            results = self._body(body, env, [*states, *[np.asarray(s[number]) for s in sequences]])
            states = results[: len(states)]
            for kept, one in zip(scanned, results[len(states) :]):
                kept.append(one)
        env.update({name: value for name, value in zip(node.output, [*states, *map(np.stack, scanned)]) if name})


def element_type(value: Any) -> int:
    dtype = np.asarray(value).dtype
    if dtype == ml_dtypes.bfloat16:
        return TensorProto.BFLOAT16
    return helper.np_dtype_to_tensor_dtype(dtype)
