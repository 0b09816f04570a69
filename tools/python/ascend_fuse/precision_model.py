"""A model as ATC sees its types: nodes under the names that ATC finds them by, types of values, constants that are read when
they are needed.

A *unit* is a node of the file. An NPU node is computed as what `ascend-fuse expand` writes for it, and is one unit all the same:
only what it reads and gives is rounded.
"""

from __future__ import annotations

import contextlib
import dataclasses
import pathlib
import re
from collections.abc import Iterator
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, numpy_helper

from ascend_fuse.comparison import Result
from ascend_fuse.expanded import Expanded, VerifyError, npu_nodes, read_graph
from ascend_fuse.regions import reads_of

FLOATS: dict[int, str] = {
    TensorProto.FLOAT: "float32", TensorProto.FLOAT16: "float16", TensorProto.BFLOAT16: "bfloat16", TensorProto.DOUBLE: "float64"
}
_HALVES = (TensorProto.FLOAT16, TensorProto.BFLOAT16)
_ITEM = re.compile(r"\d+")


@dataclasses.dataclass
class Unit:
    """A node of the file, with what is run for it."""

    index: int
    name: str  # that ATC gives it
    op: str  # "MatMul", "npu.NPURmsNorm"
    module: str
    inputs: list[str]
    outputs: list[str]
    node: Any
    nodes: list[Any] = dataclasses.field(default_factory=list)

    @property
    def pattern(self) -> tuple[str, str]:
        """Module and operator without numbers: the same place of every layer has one pattern."""
        return _ITEM.sub("*", self.module), self.op


def type_name(elem_type: int) -> str:
    """Returns "float32" for FLOAT, "int64" for INT64."""
    return FLOATS.get(elem_type) or (TensorProto.DataType.Name(elem_type).lower() if elem_type else "unknown")


def operator(node: Any) -> str:
    """Returns the operator as reports write it; npu.X for an Ascend node of either domain."""
    if node.domain == "npu" or (node.domain in ("", "ai.onnx") and node.op_type.startswith("NPU")):
        return f"npu.{node.op_type}"
    return node.op_type if node.domain in ("", "ai.onnx") else f"{node.domain}.{node.op_type}"


def module_of(node: Any) -> str:
    """Returns the module path that exporters leave in metadata or in names, as passes/core/module_path.cc finds it."""
    said = {entry.key: entry.value for entry in node.metadata_props}
    scopes = re.findall(r"'([^']*)'", said.get("pkg.torch.onnx.name_scopes", ""))
    if len(scopes) >= 2 and scopes[-2]:
        return scopes[-2]
    parts = [part.partition(":")[0] for part in said.get("namespace", "").split("/")]
    if len(parts) >= 2 and parts[-2]:
        return parts[-2]
    for name in (node.name, *node.output):
        path = re.sub(r"^/", "", name).rpartition("/")[0]
        if path:
            return path.replace("/", ".")
    for name in node.input:
        path, _, last = name.rpartition(".")
        if path and last in ("weight", "bias") and not re.search(r"[/: ]", name):
            return path
    return ""


class Constants:
    """The constants of a graph. Those in files are mapped, not read."""

    def __init__(self, graph: Any, folder: pathlib.Path) -> None:
        self._folder = folder
        self._tensors: dict[str, Any] = {tensor.name: tensor for tensor in graph.initializer}
        for node in graph.node:
            if node.op_type == "Constant" and len(node.attribute) == 1:
                self._tensors[node.output[0]] = _constant_of(node.attribute[0])

    def __contains__(self, name: str) -> bool:
        return name in self._tensors

    def __iter__(self) -> Iterator[str]:
        return iter(self._tensors)

    def type(self, name: str) -> int:
        return int(self._tensors[name].data_type)

    def shape(self, name: str) -> list[int]:
        return list(self._tensors[name].dims)

    def array(self, name: str) -> np.ndarray:
        """Returns the elements; bfloat16 as float32."""
        tensor = self._tensors[name]
        if tensor.data_location != TensorProto.EXTERNAL:
            array = numpy_helper.to_array(tensor)
            return array.astype(np.float32) if tensor.data_type == TensorProto.BFLOAT16 else array
        said = {entry.key: entry.value for entry in tensor.external_data}
        stored = np.uint16 if tensor.data_type == TensorProto.BFLOAT16 else onnx.helper.tensor_dtype_to_np_dtype(tensor.data_type)
        count = int(np.prod(tensor.dims, dtype=np.int64))
        path = self._folder / said["location"]
        if count == 0:
            return np.zeros(list(tensor.dims), stored)
        try:
            array = np.memmap(path, stored, "r", int(said.get("offset", 0)), (count,)).reshape(list(tensor.dims))
        except (OSError, ValueError) as error:
            raise VerifyError(f"the weights of {name} cannot be read from {path}: {error}") from None
        if tensor.data_type == TensorProto.BFLOAT16:
            return (array.astype(np.uint32) << 16).view(np.float32)
        return array


def _constant_of(attribute: Any) -> Any:
    if attribute.name == "value":
        return attribute.t
    if attribute.name in ("value_float", "value_floats"):
        return numpy_helper.from_array(np.array(attribute.f if attribute.name == "value_float" else list(attribute.floats), np.float32))
    if attribute.name in ("value_int", "value_ints"):
        return numpy_helper.from_array(np.array(attribute.i if attribute.name == "value_int" else list(attribute.ints), np.int64))
    if attribute.name in ("value_string", "value_strings"):
        return numpy_helper.from_array(np.array(attribute.s if attribute.name == "value_string" else list(attribute.strings), object))
    raise VerifyError(f"a Constant with {attribute.name} is not handled")


class PrecisionModel:
    """Nodes, types and constants of a model on a path."""

    def __init__(self, path: pathlib.Path, written: Any, expanded: Any) -> None:
        self.path, self.expanded = path, expanded
        self.functions = False  # whether the file has calls of local functions, which were inlined
        self.constants = Constants(expanded.graph, path.parent)
        self.units = _units(written.graph)
        self.opsets = {entry.domain.replace("ai.onnx", ""): entry.version for entry in expanded.opset_import}
        self.inputs = [v for v in expanded.graph.input if v.name not in {t.name for t in expanded.graph.initializer}]
        self.outputs = [v.name for v in expanded.graph.output]
        self.steps = self._steps()  # (node, its unit) in the order in which they run
        self.types = self._types()
        self.edges = {name for unit in self.units for name in (*unit.inputs, *unit.outputs)} | set(self.outputs)
        self.readers: dict[str, list[Unit]] = {}
        self.producers = {name: unit for unit in self.units for name in unit.outputs}
        for unit in self.units:
            for name in reads_of(unit.node):
                self.readers.setdefault(name, []).append(unit)

    def is_float(self, name: str) -> bool:
        """Whether a value is float32, float16 or bfloat16."""
        return self.types.get(name) in (TensorProto.FLOAT, *_HALVES)

    def is_half(self, name: str) -> bool:
        return self.types.get(name) in _HALVES

    def floats_of(self, unit: Unit) -> list[str]:
        """Returns the results of a unit that a precision mode may round."""
        return [name for name in unit.outputs if self.is_float(name)]

    def _steps(self) -> list[tuple[Any, Unit]]:
        own = {name: unit for unit in self.units for name in unit.outputs}
        known = set(own) | {v.name for v in self.expanded.graph.input} | set(self.constants)
        producers = {name: node for node in self.expanded.graph.node for name in node.output if name}
        of: dict[int, Unit] = {}
        for unit in self.units:
            waiting = [name for name in unit.outputs if name in producers]
            while waiting:
                node = producers[waiting.pop()]
                if id(node) not in of:
                    of[id(node)] = unit
                    unit.nodes.append(node)
                    waiting += [name for name in reads_of(node) if name in producers and name not in known]
        return [(node, of[id(node)]) for node in self.expanded.graph.node if id(node) in of and node.op_type != "Constant"]

    def _types(self) -> dict[str, int]:
        types = {v.name: v.type.tensor_type.elem_type for v in (*self.expanded.graph.value_info, *self.expanded.graph.input)}
        types.update({name: self.constants.type(name) for name in self.constants})
        for node, _ in self.steps:
            for name, elem_type in zip(node.output, output_types(node, types, self.opsets)):
                if name and not (elem_type == 0 and name in types):
                    types[name] = elem_type
        return types


def _units(graph: Any) -> list[Unit]:
    """The nodes, with the names that ATC's parser gives those that have none (hicann/ge:parser/parser/onnx/onnx_parser.cc,
    UpdateNodeNameAndOpType)."""
    units: list[Unit] = []
    nameless = 0
    for node in graph.node:
        name = node.name
        if not name:
            name = f"{node.op_type}_{nameless}"
            nameless += 1
        if node.op_type != "Constant":
            inputs = [value for value in node.input if value]
            outputs = [value for value in node.output if value]
            units.append(Unit(len(units), name, operator(node), module_of(node), inputs, outputs, node))
    return units


_GIVEN = {"Cast": ("to", 0), "BitCast": ("to", 0), "EyeLike": ("dtype", 0), "RandomNormal": ("dtype", 1), "RandomUniform": ("dtype", 1),
          "RandomNormalLike": ("dtype", 0), "RandomUniformLike": ("dtype", 0), "Multinomial": ("dtype", 6), "Bernoulli": ("dtype", 0), "HannWindow": ("output_datatype", 1), "HammingWindow": ("output_datatype", 1),
          "BlackmanWindow": ("output_datatype", 1), "MelWeightMatrix": ("output_datatype", 1)}


def output_types(node: Any, types: dict[str, int], opsets: dict[str, int]) -> list[int]:
    """Returns the element types of what a node gives, 0 for one that is not known."""
    count = len(node.output)
    first = types.get(node.input[0], 0) if node.input else 0
    if node.op_type in _GIVEN:
        attribute, default = _GIVEN[node.op_type]
        return [next((a.i for a in node.attribute if a.name == attribute), default or first)] * count
    if node.op_type == "ConstantOfShape":
        return [next((a.t.data_type for a in node.attribute if a.name == "value"), TensorProto.FLOAT)] * count
    if node.op_type == "If":
        branch = node.attribute[0].g
        inner = {**types, **{t.name: t.data_type for t in branch.initializer}}
        for inside in branch.node:
            inner.update(zip(inside.output, output_types(inside, inner, opsets)))
        return [inner.get(value.name, 0) for value in branch.output]
    if node.op_type == "Constant":
        return [int(_constant_of(node.attribute[0]).data_type)]
    domain = node.domain.replace("ai.onnx", "")
    try:
        schema = onnx.defs.get_schema(node.op_type, opsets.get(domain, 1), domain)
    except onnx.defs.SchemaError:
        return [first] * count
    bound: dict[str, int] = {}
    formal = list(schema.inputs)
    for i, name in enumerate(node.input):
        parameter = formal[min(i, len(formal) - 1)]
        if name and types.get(name):
            bound.setdefault(parameter.type_str, types[name])
    result = []
    for i in range(count):
        parameter = schema.outputs[min(i, len(schema.outputs) - 1)]
        only = {c.type_param_str: c.allowed_type_strs for c in schema.type_constraints}.get(parameter.type_str, [parameter.type_str])
        stash = TensorProto.FLOAT if node.op_type == "LayerNormalization" and i > 0 else 0
        result.append(bound.get(parameter.type_str) or (_named(only[0]) if len(only) == 1 else stash))
    return result


def _named(text: str) -> int:
    word = re.sub(r"^tensor\(|\)$", "", text).upper()
    return int(TensorProto.DataType.Value(word)) if word in TensorProto.DataType.keys() else 0


@contextlib.contextmanager
def opened(path: pathlib.Path, tool: Any = None, rules: Any = ()) -> Iterator[PrecisionModel]:
    """Opens a model; NPU nodes and calls of local functions are expanded by the program `tool`."""
    written = read_graph(path)
    if npu_nodes(written.graph) == 0 and not written.functions:
        yield PrecisionModel(path, written, written)
        return
    with _Rewritten(path, written, tool, Result("", "", 0.0), rules) as file:
        expanded = read_graph(file)
        model = PrecisionModel(path, expanded if written.functions else written, expanded)
        model.functions = bool(written.functions)
        yield model


class _Rewritten(Expanded):
    """The file that `expand` writes, for local functions too."""

    def __enter__(self) -> pathlib.Path:
        self._expand(npu_nodes(self.model.graph))
        assert self.file is not None
        return self.file
