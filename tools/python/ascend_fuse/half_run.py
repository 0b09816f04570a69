"""A model run node by node in ONNX Runtime, in float32 or as a precision mode runs it.

Every node runs by itself, with graph optimizations off and in float32: weights are mapped from their file when a node reads
them, and a value is dropped after its last reader, so that memory holds one layer and not a model. In a half run

- a node that is lowered reads and gives rounded numbers, and computes in float32 inside: matrix products accumulate in float32,
  and so do the kernels of norms, Softmax and reductions that take float16 (docs/precision.md has the sources);
- a node that is kept reads constants, inputs and results of other kept nodes as they are, and what lowered nodes gave as rounded;
- Cast keeps its type in every mode (hicann/ge: IsDtypeSensitiveOp), so what it gives is rounded by a lowered reader only;
- a value that the file declares as float16 or bfloat16 is rounded to that in any case.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Mapping
from typing import Any, Callable, Dict, List

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from ascend_fuse.expanded import VerifyError, first_line
from ascend_fuse.half_numbers import BFLOAT16, FLOAT16, HalfType, saturated
from ascend_fuse.precision_model import FLOATS, Constants, PrecisionModel, Unit
from ascend_fuse.regions import reads_of
from ascend_fuse.session import plain_session

_HALVES = (TensorProto.FLOAT16, TensorProto.BFLOAT16)
_RANDOM = {"RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike", "Bernoulli", "Multinomial"}
_HEAVY = {"MatMul", "Gemm", "Conv", "ConvTranspose", "Einsum", "Attention"}  # worth the threads of a session
_CACHED_BYTES = 1 << 28  # of rounded constants
_FIXED_BYTES = 1 << 16  # of one value that is kept for the next run
_SMALL = 1 << 16  # elements of constants that a session is made with, where a kernel wants them so

Arrays = Dict[str, np.ndarray]


@dataclasses.dataclass(frozen=True)
class Mode:
    """How float values are taken: `half` is None for the float run."""

    half: HalfType | None = None
    kept: frozenset[int] = frozenset()  # units that stay float32
    saturates: bool = False  # what a chip without infinities makes of an overflow
    clips_constants: bool = False  # constants beyond the range become the largest number, as GE's own conversion has it

    def lowers(self, unit: Unit) -> bool:
        return self.half is not None and unit.index not in self.kept and unit.op != "Cast"


class _Plan:
    """What is the same in every run of a node."""

    def __init__(self, node: Any) -> None:
        self.node = _widened(node)
        self.bodies = any(a.HasField("g") or a.graphs for a in self.node.attribute)
        self.reads = list(dict.fromkeys(name for name in reads_of(self.node) if name))
        self.gives = [name for name in self.node.output if name]
        self.names = {name: name if self.bodies else f"i{i}" for i, name in enumerate(self.reads)}
        self.key = (node.domain, node.op_type, tuple(sorted(a.SerializeToString(deterministic=True) for a in self.node.attribute)),
                    tuple(self.names.get(name, "") for name in node.input), tuple(bool(name) for name in node.output),
                    tuple(self.reads) if self.bodies else ())


class NodeRunner:
    """Runs single nodes. Nodes that differ in names only have one session."""

    def __init__(self, opsets: dict[str, int], ir_version: int) -> None:
        self._opsets = [helper.make_opsetid(domain, version) for domain, version in opsets.items()]
        self._ir_version = ir_version
        self._sessions: dict[Any, Any] = {}
        self._plans: dict[int, _Plan] = {}
        self._as_initializers: set[tuple[str, str]] = set()

    def plan(self, node: Any) -> _Plan:
        """Returns the plan of a node, which lives as long as the model."""
        if id(node) not in self._plans:
            self._plans[id(node)] = _Plan(node)
        return self._plans[id(node)]

    def run(self, plan: _Plan, values: Mapping[str, np.ndarray], constant: Callable[[str], bool]) -> list[np.ndarray]:
        """Returns what a node gives; values has what it and its bodies read."""
        node = plan.node
        if (node.domain, node.op_type) not in self._as_initializers:
            try:
                return self._run(plan, values, {})
            except VerifyError:
                if not any(constant(name) for name in node.input):
                    raise
                self._as_initializers.add((node.domain, node.op_type))
        fixed = {name: values[name] for name in node.input if name and constant(name) and values[name].size <= _SMALL}
        return self._run(plan, values, fixed)

    def _run(self, plan: _Plan, values: Mapping[str, np.ndarray], fixed: Mapping[str, np.ndarray]) -> list[np.ndarray]:
        node, names = plan.node, plan.names
        free = [name for name in plan.reads if name not in fixed]
        if any(not isinstance(values[name], np.ndarray) for name in free):
            raise VerifyError(f"{node.op_type} {node.name or node.output[0]} reads a sequence or an optional value, which is not run")
        key = (plan.key, tuple(values[name].dtype.str for name in free), tuple((names[name], values[name].dtype.str, values[name].shape, values[name].tobytes()) for name in fixed))
        try:
            if key not in self._sessions:
                self._sessions[key] = self._session(node, names, {n: values[n] for n in free}, fixed)
            # A scalar stays one: ascontiguousarray would make a vector of it.
            feeds = {names[name]: np.ascontiguousarray(values[name]) if values[name].ndim else values[name] for name in free}
            return list(self._sessions[key].run(None, feeds))
        except Exception as error:
            raise VerifyError(f"{node.op_type} {node.name or node.output[0]} does not run: {first_line(error)}") from None

    def _session(self, node: Any, names: dict[str, str], values: Arrays, fixed: Mapping[str, np.ndarray]) -> Any:
        copy = onnx.NodeProto()
        copy.CopyFrom(node)
        copy.name = ""
        for i, name in enumerate(copy.input):
            copy.input[i] = names.get(name, "")
        for i, name in enumerate(copy.output):
            copy.output[i] = f"o{i}" if name else ""
        inputs = [helper.make_tensor_value_info(names[n], helper.np_dtype_to_tensor_dtype(v.dtype), None)
                  for n, v in values.items()]
        outputs = [onnx.ValueInfoProto(name=name) for name in copy.output if name]
        constants = [numpy_helper.from_array(np.ascontiguousarray(v), names[n]) for n, v in fixed.items()]
        graph = helper.make_graph([copy], "node", inputs, outputs, constants)
        model = helper.make_model(graph, opset_imports=self._opsets, ir_version=self._ir_version)
        return plain_session(model.SerializeToString(), 0 if node.op_type in _HEAVY else 1)


def _widened(node: Any) -> Any:
    """The node as it computes in float32 what the file has in half types."""
    if not node.attribute or not any(_has_half(a) for a in node.attribute):
        return node
    copy = onnx.NodeProto()
    copy.CopyFrom(node)
    for attribute in copy.attribute:
        _widen(attribute)
    return copy


def _has_half(attribute: Any) -> bool:
    if attribute.name in ("to", "dtype", "output_dtype"):
        return attribute.i in _HALVES
    return attribute.HasField("g") or bool(attribute.graphs) or (attribute.HasField("t") and attribute.t.data_type in _HALVES)


def _widen(attribute: Any) -> None:
    if attribute.name in ("to", "dtype", "output_dtype") and attribute.i in _HALVES:
        attribute.i = TensorProto.FLOAT
    if attribute.HasField("t"):
        _widen_tensor(attribute.t)
    for graph in [attribute.g] if attribute.HasField("g") else attribute.graphs:
        for tensor in graph.initializer:
            _widen_tensor(tensor)
        for value in (*graph.input, *graph.output, *graph.value_info):
            if value.type.tensor_type.elem_type in _HALVES:
                value.type.tensor_type.elem_type = TensorProto.FLOAT
        for node in graph.node:
            for inner in node.attribute:
                _widen(inner)


def _widen_tensor(tensor: Any) -> None:
    if tensor.data_type in _HALVES and tensor.data_location != TensorProto.EXTERNAL:
        tensor.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(tensor).astype(np.float32), tensor.name))


class Program:
    """A model prepared for runs: where values end, and what is shared by all runs."""

    def __init__(self, model: PrecisionModel) -> None:
        self.model = model
        self.runner = NodeRunner(model.opsets, model.expanded.ir_version)
        last = {name: i for i, (node, _) in enumerate(model.steps) for name in (*reads_of(node), *node.output)}
        outputs = set(model.outputs)
        self.ends: dict[int, list[str]] = {}
        for name, step in last.items():
            if name not in outputs and name not in model.constants:
                self.ends.setdefault(step, []).append(name)
        self.unaffected = self._unaffected()
        self._rounded: dict[Any, np.ndarray] = {}
        self._rounded_bytes = 0

    def _unaffected(self) -> set[str]:
        """Values without a float before them: shapes, positions, masks. They are the same in every run on the same inputs."""
        model = self.model
        affected = {value.name for value in model.inputs if model.types.get(value.name) in FLOATS}
        unaffected = set()
        for node, _ in model.steps:
            names = [name for name in node.output if name]
            if affected.isdisjoint(reads_of(node)) and not any(model.types.get(name, 0) in (0, *FLOATS) for name in names):
                unaffected.update(names)
            else:
                affected.update(names)
        return unaffected

    def constant(self, name: str, mode: Mode, lowered: bool) -> np.ndarray:
        """Returns a constant as a node of a run reads it."""
        constants = self.model.constants
        half = _declared(constants.type(name)) or (mode.half if lowered else None)
        if not (constants.type(name) in _HALVES or (half is not None and constants.type(name) == TensorProto.FLOAT)):
            return constants.array(name)
        key = (name, half.name if half else "", mode.saturates, mode.clips_constants)
        if key in self._rounded:
            return self._rounded[key]
        array = np.asarray(constants.array(name), dtype=np.float32)
        if half is not None:
            result = half.rounded(array)
            if mode.clips_constants:
                array = np.asarray(np.clip(result, -half.largest, half.largest))  # of a scalar clip makes no array
            else:
                array = np.where(np.isinf(array), result, np.clip(result, -half.largest, half.largest)) if mode.saturates else result
        if self._rounded_bytes + array.nbytes <= _CACHED_BYTES:
            self._rounded_bytes += array.nbytes
            self._rounded[key] = array
        return array


def _bytes(arrays: list[Any]) -> int:
    """The bytes of arrays; sequences and optional values count as too many."""
    return sum(a.nbytes if isinstance(a, np.ndarray) else 1 << 30 for a in arrays)


def _declared(elem_type: int) -> HalfType | None:
    return FLOAT16 if elem_type == TensorProto.FLOAT16 else BFLOAT16 if elem_type == TensorProto.BFLOAT16 else None


class Execution:
    """One run in one mode, which is stepped from node to node."""

    def __init__(self, program: Program, mode: Mode, feeds: Arrays, fixed: Arrays) -> None:
        self.program, self.mode, self.fixed = program, mode, fixed
        self.values: Arrays = {}
        self._done: set[str] = set()  # values that are rounded already
        for value in program.model.inputs:
            array = np.asarray(feeds[value.name])
            widen = value.type.tensor_type.elem_type in _HALVES
            self.values[value.name] = array.astype(np.float32) if widen else array
            if mode.half is not None and _declared(value.type.tensor_type.elem_type) is mode.half:
                self._done.add(value.name)

    def step(self, node: Any, unit: Unit) -> None:
        """Runs a node of a unit."""
        lowered = self.mode.lowers(unit)
        edges = self.program.model.edges
        self._run(node, lowered, {name for name in node.output if name in edges}, edges)

    def _run(self, node: Any, lowered: bool, rounds: Collection[str], edges: Collection[str]) -> None:
        if node.op_type == "If" and node.domain in ("", "ai.onnx"):
            return self._branch(node, lowered, edges)
        plan = self.program.runner.plan(node)
        if plan.gives and plan.gives[0] in self.fixed:
            found = [self.fixed[name] for name in plan.gives]
        else:
            reads = {name: self._read(name, lowered and name in edges) for name in plan.reads}
            found = self.program.runner.run(plan, reads, self.program.model.constants.__contains__)
            if node.op_type == "ConstantOfShape" and self.mode.clips_constants and lowered and found[0].dtype == np.float32:
                found = [np.asarray(np.clip(found[0], -FLOAT16.largest, FLOAT16.largest))]
            if node.op_type in _RANDOM or (plan.gives[0] in self.program.unaffected and _bytes(found) <= _FIXED_BYTES):
                self.fixed.update(zip(plan.gives, found))
        for name, array in zip(plan.gives, found):
            self._store(name, array, lowered, name in rounds)

    def _branch(self, node: Any, lowered: bool, edges: Collection[str]) -> None:
        """Runs the branch of an If that is taken; its nodes are rounded like nodes outside."""
        taken = "then_branch" if bool(np.asarray(self._read(node.input[0], False)).reshape(-1)[0]) else "else_branch"
        branch = next(a.g for a in node.attribute if a.name == taken)
        constants = Constants(branch, self.program.model.path.parent)
        for name in constants:  # of two branches the same names may mean different constants
            array = constants.array(name)
            self.values[name] = np.asarray(array, np.float32) if constants.type(name) in _HALVES else array
        inner = {*constants, *(name for inside in branch.node for name in inside.output)}
        for inside in branch.node:
            if inside.op_type != "Constant":
                self._run(inside, lowered and inside.op_type != "Cast", set(inside.output), {*edges, *inner})
        for name, value in zip(node.output, branch.output):
            if name:
                self._store(name, self._read(value.name, lowered), lowered, True)
        for name in inner:
            self.values.pop(name, None)

    def _store(self, name: str, array: Any, lowered: bool, rounds: bool) -> None:
        mode = self.mode
        declared = _declared(self.program.model.types.get(name, 0)) if mode.half is not None else None
        half = declared or (mode.half if lowered else None)
        if rounds and half is not None and isinstance(array, np.ndarray) and array.dtype == np.float32:
            array = half.rounded(array)
            if mode.saturates:
                array = saturated(array, half)
            if half is mode.half:
                self._done.add(name)
        self.values[name] = array

    def _read(self, name: str, rounded: bool) -> np.ndarray:
        if name not in self.values:
            if name not in self.program.model.constants:
                raise VerifyError(f"the value {name} is not computed before it is read")
            return self.program.constant(name, self.mode, rounded)
        value = self.values[name]
        half = self.mode.half
        if not rounded or half is None or name in self._done or not isinstance(value, np.ndarray) or value.dtype != np.float32:
            return value
        result = half.rounded(value)
        return saturated(result, half) if self.mode.saturates else result

    def read_lowered(self, name: str) -> np.ndarray:
        """Returns a value as a lowered reader gets it."""
        return self._read(name, True)

    def end(self, step: int) -> None:
        """Drops the values that no later node reads."""
        for name in self.program.ends.get(step, ()):
            self.values.pop(name, None)
            self._done.discard(name)

    def outputs(self) -> Arrays:
        return {name: self._read(name, False) for name in self.program.model.outputs}


Observer = Callable[[Unit, str, List[Execution]], None]


def run(program: Program, modes: list[Mode], feeds: Arrays, fixed: Arrays, observe: Observer | None = None) -> list[Arrays]:
    """Runs a model in several modes side by side, and returns the outputs of each.

    observe(unit, value, executions) is called for every value that a unit gives, before it is dropped. `fixed` keeps what is the same
    in all runs of the same feeds: what random operators gave, and small values without a float before them.
    """
    executions = [Execution(program, mode, feeds, fixed) for mode in modes]
    for i, (node, unit) in enumerate(program.model.steps):
        for execution in executions:
            execution.step(node, unit)
        if observe is not None:
            for name in node.output:
                if name:
                    observe(unit, name, executions)
        for execution in executions:
            execution.end(i)
    return [execution.outputs() for execution in executions]
