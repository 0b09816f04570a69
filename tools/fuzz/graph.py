"""Writes one graph: nodes, weights, inputs and dims, as exporters spell them at an opset.

The same calls with `exact=True` give the graph in float64, with the weights and constants that the first one has after
rounding: the reference that rounding errors are measured against.
"""

from __future__ import annotations

import contextlib
import dataclasses
import random
import zlib
from collections.abc import Iterator, Sequence
from typing import Any

import ml_dtypes
import numpy as np
import onnx
from onnx import TensorProto, helper

from fuzz.hidden import hide_names

TYPES = {"float": TensorProto.FLOAT, "float16": TensorProto.FLOAT16, "bfloat16": TensorProto.BFLOAT16, "double": TensorProto.DOUBLE,
         "int64": TensorProto.INT64, "int32": TensorProto.INT32, "int8": TensorProto.INT8, "uint8": TensorProto.UINT8,
         "bool": TensorProto.BOOL}
ARRAYS = {"float": np.float32, "float16": np.float16, "bfloat16": ml_dtypes.bfloat16, "double": np.float64, "int64": np.int64,
          "int32": np.int32, "int8": np.int8, "uint8": np.uint8, "bool": np.bool_}
# Operators that ONNX Runtime has no kernel of for float64.
NO_DOUBLE = {"Erf", "InstanceNormalization", "GroupNormalization", "Attention", "RotaryEmbedding", "RMSNormalization", "HardSwish", "Mish",
             "HardSigmoid", "Swish", "Gelu", "SimplifiedLayerNormalization", "LayerNormalization", "LeakyRelu", "Elu", "Softplus", "IsNaN",
             "QuantizeLinear", "DequantizeLinear", "DynamicQuantizeLinear", "Conv"}
FLOATS = ("float", "float16", "bfloat16", "double")
CODES = ("int8", "uint8")


@dataclasses.dataclass
class Dim:
    """A dim of the plan: its name in the file, its size in the first binding, and whether the file says the size."""

    name: str
    size: int
    dynamic: bool
    aliases: int = 1  # under how many names it is declared


@dataclasses.dataclass
class Input:
    """An input of the model, and how its values are made."""

    name: str
    dtype: str
    shape: list[Any]
    meaning: str
    exact_dtype: str


class Graph:
    """What is written so far. A shape is a list of numbers, names of dims ("b") and products or sums of them ("b*4", "p+s")."""

    def __init__(self, seed: int, opset: int, dtype: str, dims: dict[str, Dim], exact: bool = False, poison: float | None = None):
        self.seed, self.opset, self.exact, self.poison = seed, opset, exact, poison
        self.dtype = dtype
        self.dims = dims
        self.main = "double" if exact else dtype
        self.wide = "double" if exact or dtype == "double" else "float"
        self.noise = random.Random(f"{seed}/noise")
        self.nodes: list[onnx.NodeProto] = []
        self.initializers: list[onnx.TensorProto] = []
        self.inputs: list[Input] = []
        self.outputs: list[str] = []
        self.functions: list[onnx.FunctionProto] = []
        self.domains: set[str] = set()
        self.produced: list[str] = []  # float values of the main graph that may become outputs
        self.dtypes: dict[str, str] = {}
        self.shapes: dict[str, list[Any]] = {}
        self.counts: dict[str, int] = {}
        self.scope = ""
        self.weights_as_inputs = False
        self.constants_as_nodes = 0.0
        self.share = False  # whether two linears may have one weight
        self.shared: dict[tuple[Any, ...], list[str]] = {}
        self.inner = 0  # how many bodies are open
        self.quantised: dict[str, Any] | None = None  # how linears of the layer are

    # Names and scopes.

    def name(self, stem: str) -> str:
        full = f"{self.scope}/{stem}"
        number = self.counts.get(full, 0)
        self.counts[full] = number + 1
        return f"{full}_{number}" if number else full

    @contextlib.contextmanager
    def within(self, scope: str) -> Iterator[None]:
        before = self.scope
        self.scope = f"{before}/{scope}"
        yield
        self.scope = before

    def chance(self, probability: float) -> bool:
        return self.noise.random() < probability

    # Nodes.

    def op(self, op_type: str, *inputs: str, outputs: int = 1, domain: str = "", dtype: str | list[str] | None = None,
           shape: list[Any] | None = None, **attributes: Any) -> Any:
        """Adds a node. Its outputs have the type of the first input unless `dtype` says another, one for all or one for each."""
        node_name = self.name(op_type)
        names = [f"{node_name}_output_{i}" for i in range(outputs)]
        attributes = {key: value for key, value in attributes.items() if value is not None}
        if domain:
            self.domains.add(domain)
        lacks_double = domain == "com.microsoft" or op_type in NO_DOUBLE or (op_type == "Clip" and self.opset < 12)
        kind = dtype or self.dtypes.get(next((i for i in inputs if i), ""), self.main)
        kinds = kind if isinstance(kind, list) else [kind] * outputs
        if self.exact and lacks_double:
            self._in_float(op_type, list(inputs), dict(zip(names, kinds)), node_name, domain, attributes)
        else:
            self.nodes.append(helper.make_node(op_type, list(inputs), names, name=node_name, domain=domain, **attributes))
        for output, kind in zip(names, kinds):
            self.dtypes[output] = kind
            if shape is not None:
                self.shapes[output] = list(shape)
            if kind in FLOATS and not self.inner:
                self.produced.append(output)
        return names[0] if outputs == 1 else names

    def _in_float(self, op_type: str, inputs: list[str], outputs: dict[str, str], node_name: str, domain: str, attributes: dict[str, Any]) -> None:
        """A node of the exact graph that has no kernel for float64 in ONNX Runtime."""
        for i, name in enumerate(inputs):
            if name and self.dtypes.get(name) == "double":
                inputs[i] = f"{node_name}_float_{i}"
                self.nodes.append(helper.make_node("Cast", [name], [inputs[i]], to=TensorProto.FLOAT))
        is_bool = op_type == "IsNaN"
        names = [name if kind in CODES else f"{name}_float" for name, kind in outputs.items()]
        self.nodes.append(helper.make_node(op_type, inputs, names, name=node_name, domain=domain, **attributes))
        for name, written in zip(outputs, names):
            if name != written:
                self.nodes.append(helper.make_node("Cast", [written], [name], to=TensorProto.BOOL if is_bool else TensorProto.DOUBLE))

    def commuted(self, op_type: str, a: str, b: str, **more: Any) -> str:
        """A node of a commutative operator, in either order."""
        kind = self.dtypes.get(a, self.main)
        shape = self.shapes.get(a)
        if self.chance(0.4):
            a, b = b, a
        return self.op(op_type, a, b, dtype=kind, shape=shape, **more)

    def keep(self, x: str, y: str) -> str:
        """y has the shape of x."""
        if x in self.shapes:
            self.shapes[y] = list(self.shapes[x])
        return y

    def cast(self, x: str, dtype: str) -> str:
        return self.keep(x, self.op("Cast", x, to=TYPES[dtype], dtype=dtype))

    # Constants and weights.

    def round(self, values: Any) -> np.ndarray:
        """Values as the original holds them: rounded to its type, in the type of this graph."""
        rounded = np.asarray(values, np.float64).astype(ARRAYS[self.dtype])
        return rounded.astype(ARRAYS[self.main])

    def tensor(self, stem: str, array: np.ndarray, dtype: str, as_node: bool | None = None) -> str:
        if as_node is None:
            as_node = self.chance(self.constants_as_nodes)
        if as_node:
            node_name = self.name("Constant")
            name = f"{node_name}_output_0"
            value = helper.make_tensor("", TYPES[dtype], array.shape, array.tobytes(), raw=True)
            self.nodes.append(helper.make_node("Constant", [], [name], name=node_name, value=value))
        else:
            name = self.name(stem)
            self.initializers.append(helper.make_tensor(name, TYPES[dtype], array.shape, array.tobytes(), raw=True))
        self.dtypes[name] = dtype
        self.shapes[name] = list(array.shape)
        return name

    def const(self, value: Any, dtype: str | None = None, wide: bool = False, shape: Sequence[int] | None = None) -> str:
        """A small constant, of the main type (`wide`: of that of fp32 islands) unless another is said."""
        if dtype is None or dtype in FLOATS:
            original = dtype or (("double" if self.dtype == "double" else "float") if wide else self.dtype)
            dtype = dtype or (self.wide if wide else self.main)
            with np.errstate(over="ignore"):
                array = np.asarray(value, np.float64).astype(ARRAYS[original]).astype(ARRAYS[dtype])
        else:
            array = np.asarray(value).astype(ARRAYS[dtype])
        if shape is not None:
            array = np.broadcast_to(array, shape).copy()
        return self.tensor("constant", array, dtype)

    def ints(self, values: Any) -> str:
        return self.const(np.asarray(values, np.int64), "int64")

    def weight(self, stem: str, shape: Sequence[int], scale: float = 1.0, offset: float = 0.0, kind: str = "normal") -> str:
        """A weight: seeded by its name, the same in the exact graph; an input of the model where the plan says so."""
        key = f"{self.scope}/{stem}"
        rng = np.random.default_rng([self.seed, zlib.crc32(key.encode())])
        values = rng.standard_normal(shape) * scale + offset
        if kind == "ones":
            values = np.ones(shape)
        elif kind == "zeros":
            values = np.zeros(shape)
        array = self.round(values)
        if self.weights_as_inputs and not self.inner and self.chance(0.5):
            name = self.name(stem)
            self.inputs.append(Input(name, self.main, list(shape), "weight", self.main))
            self.fixed_values = {**getattr(self, "fixed_values", {}), name: array}
            self.dtypes[name], self.shapes[name] = self.main, list(shape)
            return name
        as_node = self.chance(self.constants_as_nodes / 2)
        if not self.share or self.inner:
            return self.tensor(stem, array, self.main, as_node=as_node)
        choice = random.Random(f"{self.seed}/{key}")
        known = self.shared.setdefault((*shape, kind), [])
        if known and choice.random() < 0.6:
            return known[choice.randrange(len(known))]
        known.append(self.tensor(stem, array, self.main, as_node=as_node))
        return known[-1]

    def input(self, name: str, dtype: str, shape: list[Any], meaning: str) -> str:
        """An input; asked for twice it is the same one."""
        if any(i.name == name for i in self.inputs):
            return name
        self.inputs.append(Input(name, dtype, shape, meaning, dtype))
        self.dtypes[name], self.shapes[name] = dtype, list(shape)
        return name

    # Shapes.

    def size(self, dim: Any) -> int | None:
        """The number that a dim is in the file; None where it is dynamic."""
        if isinstance(dim, int):
            return dim
        product = 1
        for factor in str(dim).split("*"):
            total = 0
            for term in factor.split("+"):
                if term.isdigit():
                    total += int(term)
                elif self.dims[term].dynamic:
                    return None
                else:
                    total += self.dims[term].size
            product *= total
        return product

    def dim_value(self, dim: Any, source: list[tuple[str, int]] | None = None) -> str:
        """An int64 tensor [1] that holds a dim, read from a value that has it."""
        number = self.size(dim)
        if number is not None and self.chance(0.7):
            return self.ints([number])
        if isinstance(dim, int):
            return self.ints([dim])
        if "*" in dim:
            left, right = dim.rsplit("*", 1)
            return self.op("Mul", self.dim_value(left), self.dim_value(int(right) if right.isdigit() else right), dtype="int64")
        if "+" in dim:
            left, right = dim.split("+")
            return self.op("Add", self.dim_value(left), self.dim_value(int(right) if right.isdigit() else right), dtype="int64")
        for i in self.inputs:
            if dim in i.shape:
                shape = self.op("Shape", i.name, dtype="int64")
                axis = i.shape.index(dim)
                if self.chance(0.5):
                    return self.op("Gather", shape, self.ints([axis]), axis=0, dtype="int64")
                picked = self.op("Gather", shape, self.const(axis, "int64"), axis=0, dtype="int64")
                return self.unsqueeze(picked, [0])
        return self.ints([self.dims[dim].size])

    def dim_values(self, dims: list[Any]) -> str:
        """An int64 tensor of dims, each read from a value that has it."""
        return self.op("Concat", *[self.dim_value(dim) for dim in dims], axis=0, dtype="int64")

    def reshape(self, x: str, to: list[Any]) -> str:
        """Reshape by a constant with 0 and -1 where that says it, else by a computed shape."""
        before = self.shapes.get(x, [])
        numbers = [self.size(d) for d in to]
        unknown = [i for i, n in enumerate(numbers) if n is None]
        plain: list[int | None] = list(numbers)
        style = self.noise.choice(["constant", "constant", "computed"])
        if style == "constant":
            for i in list(unknown):
                if i < len(before) and before[i] == to[i] and (len(unknown) > 1 or self.chance(0.5)) and 0 not in numbers:
                    plain[i] = 0
                    unknown.remove(i)
            if len(unknown) == 1:
                plain[unknown[0]] = -1
                unknown = []
            elif not unknown and 0 not in numbers and self.chance(0.2):
                free = [i for i, n in enumerate(plain) if n != 0]
                if free:
                    plain[self.noise.choice(free)] = -1
            if not unknown:
                return self.op("Reshape", x, self.ints(plain), shape=to)
        return self.op("Reshape", x, self.dim_values(to), shape=to)

    def transpose(self, x: str, perm: list[int]) -> str:
        before = self.shapes.get(x)
        return self.op("Transpose", x, perm=perm, shape=[before[i] for i in perm] if before else None)

    def unsqueeze(self, x: str, axes: list[int]) -> str:
        before = self.shapes.get(x)
        shape = None
        if before is not None:
            shape = list(before)
            for axis in sorted(axes):
                shape.insert(axis, 1)
        if self.opset < 13:
            return self.op("Unsqueeze", x, axes=axes, shape=shape)
        return self.op("Unsqueeze", x, self.ints(axes), shape=shape)

    def squeeze(self, x: str, axes: list[int]) -> str:
        before = self.shapes.get(x)
        shape = [d for i, d in enumerate(before) if i not in axes] if before is not None else None
        if self.opset < 13:
            return self.op("Squeeze", x, axes=axes, shape=shape)
        return self.op("Squeeze", x, self.ints(axes), shape=shape)

    def slice(self, x: str, axis: int, start: int, stop: int) -> str:
        before = self.shapes.get(x)
        shape = None
        if before is not None:
            shape = list(before)
            shape[axis] = stop - start
        end = stop if self.chance(0.6) or before is None or stop != before[axis] else self.noise.choice([2**63 - 1, 2**31 - 1])
        if before is not None and self.chance(0.3):
            axis -= len(before)
        inputs = [self.ints([start]), self.ints([end]), self.ints([axis])]
        if self.chance(0.6):
            inputs.append(self.ints([1]))
        return self.op("Slice", x, *inputs, shape=shape)

    def split(self, x: str, axis: int, sizes: list[int]) -> list[str]:
        """Parts along an axis: Split, or Slices."""
        before = self.shapes[x]
        if self.chance(0.3):
            starts = np.cumsum([0, *sizes]).tolist()
            return [self.slice(x, axis, a, b) for a, b in zip(starts, starts[1:])]
        written = axis if self.chance(0.5) else axis - len(before)
        equal = len(set(sizes)) == 1
        count = len(sizes)
        if self.opset < 13:
            parts = self.op("Split", x, outputs=count, axis=written, split=None if equal and self.chance(0.5) else sizes)
        elif equal and self.chance(0.4):
            parts = self.op("Split", x, outputs=count, axis=written, num_outputs=count if self.opset >= 18 else None)
        else:
            parts = self.op("Split", x, self.ints(sizes), outputs=count, axis=written)
        parts = [parts] if count == 1 else parts
        for part, width in zip(parts, sizes):
            self.shapes[part] = [*before[:axis], width, *before[axis + 1 :]]
        return parts

    def concat(self, parts: Sequence[str], axis: int, shape: list[Any] | None = None) -> str:
        return self.op("Concat", *parts, axis=axis, shape=shape)

    def reduce(self, op_type: str, x: str, axes: list[int], keepdims: int = 1) -> str:
        before = self.shapes.get(x)
        shape = None
        if before is not None and keepdims:
            shape = [1 if i in [a % len(before) for a in axes] else d for i, d in enumerate(before)]
        as_input = self.opset >= (13 if op_type == "ReduceSum" else 18)
        if as_input:
            return self.op(op_type, x, self.ints(axes), keepdims=keepdims, shape=shape)
        return self.op(op_type, x, axes=axes, keepdims=keepdims, shape=shape)

    def arange(self, dim: Any, dtype: str = "int64") -> str:
        """0 .. dim - 1."""
        number = self.size(dim)
        if number is not None and self.chance(0.5):
            return self.keep_shape(self.const(np.arange(number), dtype), [dim])
        end = self.squeeze(self.dim_value(dim), [0])
        if dtype != "int64":
            end = self.cast(end, dtype)
        value = self.op("Range", self.const(0, dtype), end, self.const(1, dtype), dtype=dtype, shape=[dim])
        return value

    def keep_shape(self, x: str, shape: list[Any]) -> str:
        self.shapes[x] = list(shape)
        return x

    # The model.

    def model(self) -> onnx.ModelProto:
        graph = helper.make_graph(self.nodes, f"fuzz-{self.seed}", self._input_infos(), self._output_infos(), self.initializers)
        imports = [helper.make_opsetid("", self.opset)] + [helper.make_opsetid(d, 1) for d in sorted(self.domains)]
        noise = random.Random(f"{self.seed}/names")
        if noise.random() < 0.5:
            hide_names(graph, noise)
        return helper.make_model(graph, opset_imports=imports, ir_version=10 if self.opset >= 21 else 8, functions=self.functions)

    def declared(self, shape: list[Any], number: int) -> list[int | str]:
        """A shape as the file declares it; a dim of several names has another one at every input."""
        result: list[int | str] = []
        for dim in shape:
            size = self.size(dim)
            if size is not None:
                result.append(size)
            elif dim in self.dims:
                one = self.dims[dim]
                alias = number % one.aliases
                result.append(one.name if alias == 0 else f"{one.name}_{alias}")
            else:
                text = dim
                for key, one in self.dims.items():
                    text = "+".join(one.name if term == key else term for term in text.split("+"))
                result.append(text.replace("+", "_plus_").replace("*", "_times_"))
        return result

    def _input_infos(self) -> list[onnx.ValueInfoProto]:
        return [helper.make_tensor_value_info(i.name, TYPES[i.dtype], self.declared(i.shape, n)) for n, i in enumerate(self.inputs)]

    def _output_infos(self) -> list[onnx.ValueInfoProto]:
        return [helper.make_tensor_value_info(name, TYPES[self.dtypes[name]], None) for name in self.outputs]
