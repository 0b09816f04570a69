"""Models of one operator with attributes and inputs at their edges, by a seed: the operators that adapters write anew.

A row of the table makes an operator's inputs and attributes with a `Maker`, at an opset of 11 and what follows; whether a
parameter is an attribute or an input there is read from the definitions of the onnx package. Edges: dims of 0 and 1, empty lists,
negative and huge numbers, NaN, infinities, the limits of integers, parameters left out, constants and fed inputs, static and
symbolic dims. What ONNX does not define (a division by zero, an index out of range) is not made.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import ml_dtypes
import numpy as np
import onnx
import onnx.defs
from onnx import helper, numpy_helper

FIRST, NEWEST = 11, onnx.defs.onnx_opset_version()
FLOATS = (np.float32, np.float32, np.float16, np.float64)
INTEGERS = (np.int32, np.int64, np.int8, np.int16, np.uint8, np.uint32, np.uint64)
LENGTHS = (0, 1, 1, 2, 2, 3, 3, 4, 5, 7)


@dataclass
class Case:
    """One model and what it is fed. `kind` says what its numbers are, `exact` that every bit of the result is defined."""

    op: str
    opset: int
    model: onnx.ModelProto
    feeds: dict[str, np.ndarray]
    kind: str
    exact: bool


@dataclass
class Maker:
    """Chooses numbers by its seed, and puts the inputs and attributes of one node together."""

    op: str
    opset: int
    random: np.random.Generator
    inputs: list[tuple[np.ndarray | None, bool]] = field(default_factory=list)  # and whether it may be a constant
    attributes: dict[str, object] = field(default_factory=dict)
    outputs: int = 1
    exact: bool = False
    kind: str = "plain"

    def __post_init__(self) -> None:
        self.schema = onnx.defs.get_schema(self.op, self.opset)
        self.kind = self.one("plain", "plain", "plain", "nan", "infinite", "huge")

    def one(self, *choices):
        return choices[int(self.random.integers(len(choices)))]

    def chance(self, share: float) -> bool:
        return bool(self.random.random() < share)

    def integer(self, low: int, high: int) -> int:
        return int(self.random.integers(low, high + 1))

    def shape(self, low: int = 0, high: int = 4, lengths: tuple[int, ...] = LENGTHS) -> list[int]:
        return [self.one(*lengths) for _ in range(self.integer(low, high))]

    def floats(self, shape, dtype=None) -> np.ndarray:
        dtype = dtype or self.one(*FLOATS)
        array = self.random.standard_normal(shape) * self.one(0.1, 1.0, 10.0)
        special = {"nan": [np.nan], "infinite": [np.inf, -np.inf],
                   "huge": [float(np.finfo(dtype).max), -float(np.finfo(dtype).max), float(np.finfo(dtype).tiny), -0.0, 0.0]}
        if self.kind in special and array.ndim > 0:
            places = self.random.random(shape) < 0.2
            array = np.where(places, self.random.choice(special[self.kind], shape), array)
        with np.errstate(over="ignore"):
            return np.asarray(array).astype(dtype)

    def integers(self, shape, dtype=None, low: int | None = None, high: int | None = None) -> np.ndarray:
        dtype = np.dtype(dtype or self.one(*INTEGERS))
        limits = np.iinfo(dtype)
        array = self.random.integers(max(limits.min, -9 if low is None else low), min(limits.max, 9 if high is None else high) + 1, shape)
        array = np.asarray(array).astype(dtype)
        if self.kind == "huge" and low is None and high is None:
            edges = np.array([limits.min, limits.min + 1, limits.max, limits.max - 1, limits.max // 2 + 1, 0], dtype)
            array = np.where(self.random.random(shape) < 0.5, self.random.choice(edges, shape), array)
        return np.asarray(array, dtype)

    def numbers(self, shape) -> np.ndarray:
        return self.floats(shape) if self.chance(0.7) else self.integers(shape)

    def axis(self, rank: int) -> int:
        return self.integer(-rank, rank - 1)

    def axes(self, rank: int) -> list[int]:
        places = self.random.permutation(rank)[: self.integer(0, rank)]
        return [int(p) - rank if self.chance(0.5) else int(p) for p in places]

    def has(self, name: str) -> bool:
        return name in self.schema.attributes

    def put(self, array: np.ndarray | None, constant: bool = True) -> np.ndarray | None:
        self.inputs.append((None if array is None else np.asarray(array), constant))
        return array

    def set(self, **attributes) -> None:
        """Attributes that the opset has and that are not None."""
        self.attributes |= {name: value for name, value in attributes.items() if value is not None and self.has(name)}

    def give(self, name: str, value, dtype=np.int64) -> None:
        """A parameter that is an attribute at some opsets and an input at others, or is left out."""
        if self.has(name):
            self.set(**{name: value or None})
        else:
            self.put(None if value is None else np.array(value, dtype))

    def case(self) -> Case | None:
        """The model; None where the opset has no such operator, or another number of inputs."""
        while self.inputs and self.inputs[-1][0] is None:
            self.inputs.pop()
        symbolic, constants = self.chance(0.5), self.chance(0.6)
        names, feeds, values, initializers = [], {}, [], []
        for i, (array, constant) in enumerate(self.inputs):
            if array is None:
                names.append("")
                continue
            names.append(f"x{i}")
            if constant and constants and i > 0:
                initializers.append(numpy_helper.from_array(array, f"x{i}"))
                continue
            feeds[f"x{i}"] = array
            dims = [f"n{i}_{axis}" if symbolic else size for axis, size in enumerate(array.shape)]
            values.append(helper.make_tensor_value_info(f"x{i}", helper.np_dtype_to_tensor_dtype(array.dtype), dims))
        outputs = [f"y{i}" for i in range(self.outputs)]
        node = helper.make_node(self.op, names, outputs, **self.attributes)
        graph = helper.make_graph([node], "g", values, [onnx.ValueInfoProto(name=name) for name in outputs], initializers)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", self.opset)], ir_version=10 if self.opset > 20 else 8)
        return Case(self.op, self.opset, model, feeds, self.kind, self.exact)


ROWS: dict[str, Callable[[Maker], None]] = {}


def row(*ops: str):
    def add(make: Callable[[Maker], None]):
        ROWS.update(dict.fromkeys(ops, make))
        return make

    return add


@row("ReduceMean", "ReduceSum", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceL1", "ReduceL2", "ReduceSumSquare", "ReduceLogSum",
     "ReduceLogSumExp")
def reductions(m: Maker) -> None:
    exact = m.op in ("ReduceMax", "ReduceMin")
    x = m.put(m.numbers(m.shape()) if exact or m.chance(0.7) else m.integers(m.shape(), m.one(np.int32, np.int64), -9, 9))
    if x.dtype.kind in "iu" and not exact:  # what overflows is not defined
        m.inputs[0] = (x % 10, True)
    m.exact = exact
    m.give("axes", m.one(None, [], m.axes(x.ndim), m.axes(x.ndim), [m.axis(x.ndim)] if x.ndim else []))
    m.set(keepdims=m.one(None, 0, 1), noop_with_empty_axes=m.one(None, 0, 1))


@row("Mod")
def mod(m: Maker) -> None:
    shape = m.shape(0, 3)
    if m.chance(0.4) or m.opset < 13 and m.chance(0.5):
        x = m.put(m.floats(shape))
        y = m.floats(m.one(shape, shape[1:], []), x.dtype.type)
        m.set(fmod=m.one(1, 1, 0))
    else:
        x = m.put(m.integers(shape))
        y = m.integers(m.one(shape, shape[1:], []), x.dtype.type)
        y = np.where((y == 0) | (y.astype(object) == -1), np.array(3, y.dtype), y).astype(y.dtype)
        if x.dtype.itemsize == 8:  # ONNX Runtime computes fmod of 64-bit integers in double
            x //= x.dtype.type(2**14)
        m.set(fmod=m.one(None, 0, 0, 1))
        m.exact = True
    m.put(y)


@row("Clip")
def clip(m: Maker) -> None:
    x = m.put(m.numbers(m.shape(0, 2)))
    for _ in range(m.integer(0, 2)):
        m.put(m.one(None, np.array(m.integer(0, 5), x.dtype)))
    m.exact = True


@row("Dropout")
def dropout(m: Maker) -> None:
    x = m.put(m.floats(m.shape(0, 3)))
    if m.opset >= 12:
        m.put(m.one(None, np.array(0.5, np.float32), np.array(0.0, x.dtype)))
        m.put(m.one(None, np.array(False)))
    m.outputs = m.one(1, 1, 2)
    m.exact = True


@row("CastLike")
def cast_like(m: Maker) -> None:
    m.kind = "plain"
    m.put(m.numbers(m.shape(0, 2)))
    m.put(m.numbers([1]))


@row("Gemm")
def gemm(m: Maker) -> None:
    rows, inner, columns = (m.one(*LENGTHS[1:]) for _ in range(3))
    s, t = m.one(0, 1), m.one(0, 1)
    x = m.put(m.floats([inner, rows] if s else [rows, inner], m.one(np.float32, np.float64, np.float16)))
    m.put(m.floats([columns, inner] if t else [inner, columns], x.dtype.type))
    if m.chance(0.7):
        m.put(m.floats(m.one([columns], [1], [], [rows, columns], [rows, 1], [1, columns]), x.dtype.type))
    m.set(transA=m.one(None, s) if s == 0 else 1, transB=m.one(None, t) if t == 0 else 1, alpha=m.one(None, 0.0 if m.kind == "plain" else 1.5, 2.5, -1.0), beta=m.one(None, 0.0 if m.kind == "plain" else 1.5, 0.5))


@row("TopK")
def top_k(m: Maker) -> None:
    m.kind = m.one("plain", "infinite")
    x = m.put(m.numbers(m.shape(1, 3)))
    axis = m.axis(x.ndim)
    flat = m.random.permutation(x.size).reshape(x.shape).astype(x.dtype)  # no two are the same
    m.inputs[0] = (np.where(np.isinf(x), x, flat) if x.dtype.kind == "f" else flat, True)
    m.kind = "plain"
    m.inputs[0] = (flat, True)
    m.put(np.array([m.integer(0, x.shape[axis])]))
    m.set(axis=m.one(axis, axis - x.ndim if axis >= 0 else axis), largest=m.one(None, 0, 1), sorted=m.one(None, 1))
    m.outputs = 2
    m.exact = True


@row("InstanceNormalization")
def instance_norm(m: Maker) -> None:
    x = m.put(m.floats([2, m.one(1, 3), *m.shape(1, 3, (1, 2, 5))], np.float32))
    for _ in range(2):
        m.put(m.floats([x.shape[1]], np.float32))
    m.set(epsilon=m.one(None, 0.1, 0.0001))


@row("GroupNormalization")
def group_norm(m: Maker) -> None:
    m.kind = "plain"
    groups, each = m.one(1, 2, 3), m.one(1, 2)
    x = m.put(m.floats([m.one(1, 2), groups * each, *m.shape(1, 3, (1, 2, 4))], m.one(np.float32, np.float16)))
    for _ in range(2):
        m.put(m.floats([groups * each if m.opset > 20 else groups], x.dtype.type))
    m.set(num_groups=groups, epsilon=m.one(None, 0.1))


@row("LayerNormalization", "RMSNormalization")
def layer_norm(m: Maker) -> None:
    m.kind = "plain"
    kinds = (np.float32, np.float16) if m.op == "RMSNormalization" else (np.float32, np.float64, np.float16)  # float32 inside
    x = m.put(m.floats(m.shape(1, 4, (1, 2, 3, 8)), m.one(*kinds)))
    axis = m.axis(x.ndim)
    m.put(m.floats(x.shape[axis:], x.dtype.type))
    if m.op == "LayerNormalization":
        m.put(m.one(None, m.floats(x.shape[axis:], x.dtype.type)))
    m.set(axis=axis, epsilon=m.one(None, 0.1))


@row("BatchNormalization")
def batch_norm(m: Maker) -> None:
    x = m.put(m.floats([2, m.one(1, 3), *m.shape(0, 2, (1, 2, 5))], np.float32))
    for i in range(4):
        values = m.random.random(x.shape[1]) + 0.5
        m.put(values.astype(np.float32), i < 2 or m.opset < 14)
    m.set(epsilon=m.one(None, 0.1), momentum=m.one(None, 0.5), training_mode=m.one(None, 0, 1))
    if m.kind == "huge" and m.attributes.get("training_mode"):
        x /= 1e20  # its variance overflows else, where another order of the sum need not
    m.outputs = 3 if m.attributes.get("training_mode") else 1


@row("Softmax", "LogSoftmax", "Hardmax")
def softmax(m: Maker) -> None:
    m.kind = m.one("plain", "plain", "huge")
    x = m.put(m.floats(m.shape(1, 4), m.one(np.float32, np.float64)))
    m.set(axis=m.one(None, m.axis(x.ndim)))


@row("Einsum")
def einsum(m: Maker) -> None:
    equation = m.one("ij,jk->ik", "ij,jk", "bij,bjk->bik", "i,j->ij", "ii->i", "ii", "ij->ji", "ij->", "...ij,...jk->...ik", "bi,bi->b",
                     "bhqd,bhkd->bhqk", "a,a,a->a", "ij,kj->ik", " i j -> j i ", "ab,cd->abcd")
    sizes: dict[str, int] = {}
    m.kind = "plain"
    for term in equation.split("->")[0].split(","):
        letters = term.replace(" ", "").replace("...", "Z")
        m.put(m.floats([sizes.setdefault(c, m.one(1, 2, 3)) for c in letters], np.float32))
    m.set(equation=equation)


@row("ArgMax", "ArgMin")
def arg(m: Maker) -> None:
    m.kind = "plain"
    shape = m.shape(1, 3, LENGTHS[1:])
    x = m.put(m.integers(shape, m.one(np.int32, np.int8), -2, 2) if m.chance(0.5)
              else m.integers(shape, np.int32, -2, 2).astype(m.one(np.float32, np.float64)))
    m.set(axis=m.one(None, m.axis(x.ndim)), keepdims=m.one(None, 0, 1), select_last_index=m.one(None, 0, 1))
    m.exact = True


@row("Shape")
def shape(m: Maker) -> None:
    m.put(m.numbers(m.shape()))
    m.set(start=m.one(None, m.integer(-6, 6)), end=m.one(None, m.integer(-6, 6)))
    m.exact = True


@row("Size", "Transpose")
def size(m: Maker) -> None:
    x = m.put(m.numbers(m.shape(0 if m.op == "Size" else 1)))
    m.set(perm=m.one(None, [int(p) for p in m.random.permutation(x.ndim)]))
    m.exact = True


@row("Squeeze")
def squeeze(m: Maker) -> None:
    x = m.put(m.numbers(m.shape(0, 4, (1, 1, 2, 3, 0))))
    ones = [axis - m.one(0, x.ndim) for axis, length in enumerate(x.shape) if length == 1 and m.chance(0.7)]
    m.give("axes", m.one(None, ones if ones else None))
    m.exact = True


@row("Pad")
def pad(m: Maker) -> None:
    m.exact = True
    mode = m.one("constant", "constant", "edge", "reflect", *(["wrap"] if m.opset > 18 else []))
    x = m.put(m.numbers(m.shape(1, 3, LENGTHS[1:] if mode != "constant" else LENGTHS)))
    axes = m.axes(x.ndim) if m.opset > 17 and m.chance(0.5) else None
    count = x.ndim if axes is None else len(axes)
    lengths = [x.shape[a] for a in (range(x.ndim) if axes is None else axes)]
    least = [-min(1, length // 2) if m.chance(0.3) else 0 for length in lengths]
    most = [3 if mode == "constant" else min(2, max(0, length - 1)) for length in lengths]
    pads = [m.integer(low, max(low, high)) for _ in range(2) for low, high in zip(least, most, strict=True)]
    m.put(np.array(pads, np.int64).reshape(2 * count))
    m.put(m.one(None, np.array(m.integer(0, 9), x.dtype)) if mode == "constant" else None)
    if axes is not None:
        m.put(np.array(axes, m.one(np.int64, np.int32)))
    m.set(mode=m.one(None, mode) if mode == "constant" else mode)


@row("Slice")
def slices(m: Maker) -> None:
    m.exact = True
    x = m.put(m.numbers(m.shape(1, 3)))
    axes = m.axes(x.ndim) or [0]
    kind = m.one(np.int64, np.int64, np.int32)
    edges = (np.iinfo(kind).min, np.iinfo(kind).max, -1, 0, 1, 2, -9, 9)
    steps = [m.one(1, 1, 1, 2, -1, -2, np.iinfo(kind).max) for _ in axes]
    m.put(np.array([m.one(*edges) for _ in axes], kind))
    m.put(np.array([m.one(*edges) for _ in axes], kind))
    m.put(np.array(axes, kind))
    m.put(m.one(None, np.array([1 for _ in axes], kind), np.array(steps, kind)))


@row("Expand")
def expand(m: Maker) -> None:
    m.exact = True
    x = m.put(m.numbers(m.shape(0, 3)))
    target = [m.one(1, length) if length != 1 else m.one(*LENGTHS) for length in x.shape]
    m.put(np.array(m.one(target, target[m.integer(0, len(target)):], [2, *target], []), np.int64))


@row("Gather", "GatherElements")
def gather(m: Maker) -> None:
    m.exact = True
    x = m.put(m.numbers(m.shape(1, 3, LENGTHS[1:])))
    axis = m.axis(x.ndim)
    length = x.shape[axis]
    shape = m.shape(0, 2) if m.op == "Gather" else list(x.shape)
    low = m.one(0, -length)
    m.put(m.integers(shape, m.one(np.int64, np.int32), low, length - 1))
    m.set(axis=m.one(axis, None) if axis == 0 else axis)


@row("GatherND")
def gather_nd(m: Maker) -> None:
    m.exact = True
    x = m.put(m.numbers(m.shape(1, 4, LENGTHS[1:])))
    batch = m.integer(0, x.ndim - 1) if m.opset > 11 else 0
    depth = m.integer(1, x.ndim - batch)
    outer = [*x.shape[:batch], *m.shape(0 if batch else 1, 2)]
    parts = [m.integers([*outer, 1], np.int64, m.one(0, -x.shape[batch + i]), x.shape[batch + i] - 1) for i in range(depth)]
    m.put(np.concatenate(parts, -1))
    m.set(batch_dims=m.one(batch, None) if batch == 0 else batch)


@row("Trilu")
def trilu(m: Maker) -> None:
    m.exact = True
    m.put(m.one(m.numbers(m.shape(2, 4)), m.random.random([3, 4]) < 0.5))
    m.put(m.one(None, np.array(m.one(0, 1, -1, 5, -5, 100, -100, 2**40, -(2**40)), np.int64)))
    m.set(upper=m.one(None, 0, 1))


@row("Range")
def ranges(m: Maker) -> None:
    kind = m.one(np.int64, np.int32, np.int16, np.float32, np.float64, np.float16)
    start, step = m.integer(-9, 9), m.one(1, 1, 2, 3, -1, -2)
    if np.dtype(kind).kind == "f":
        step *= m.one(1, 0.5, 0.3)
    for number in (start, start + m.integer(-3, 7) * step, step):
        m.put(np.array(number, kind))
    m.exact = np.dtype(kind).kind == "i"


@row("Where")
def where(m: Maker) -> None:
    m.exact = True
    shape = m.shape(0, 3)
    values = m.one(m.numbers(shape), np.asarray(m.random.random(shape) < 0.5))
    m.put(np.asarray(m.random.random(m.one(shape, shape[1:], [])) < 0.5))
    m.put(values)
    m.put(np.flip(values) if values.ndim else values)


@row("Split")
def split(m: Maker) -> None:
    m.exact = True
    x = m.put(m.numbers(m.shape(1, 3)))
    axis = m.axis(x.ndim)
    length, n = x.shape[axis], m.integer(1, 4)
    m.set(axis=m.one(axis, None) if axis == 0 else axis)
    m.outputs = n
    if m.chance(0.4):
        cuts = np.sort(m.random.integers(0, length + 1, n - 1))
        m.give("split", np.diff([0, *cuts, length]).tolist())
    elif m.has("num_outputs"):
        m.set(num_outputs=n)


@row("Sum", "Mean", "Max", "Min")
def variadic(m: Maker) -> None:
    shape = m.shape(0, 3)
    x = m.put(m.floats(shape) if m.op in ("Sum", "Mean") else m.numbers(shape))
    for _ in range(m.integer(0, 3)):
        other = m.one(shape, shape[1:], [1] * len(shape))
        m.put(m.floats(other, x.dtype.type) if x.dtype.kind == "f" else m.integers(other, x.dtype.type))


@row("CenterCropPad")
def center_crop_pad(m: Maker) -> None:
    m.exact = True
    x = m.put(m.numbers(m.shape(1, 3)))
    axes = m.one(None, sorted({a % x.ndim for a in m.axes(x.ndim)}))
    count = x.ndim if axes is None else len(axes)
    m.put(np.array([m.one(*LENGTHS) for _ in range(count)], np.int64))
    m.set(axes=axes or None)
    if axes == []:
        m.inputs[1] = (np.array([m.one(*LENGTHS) for _ in range(x.ndim)], np.int64), True)


@row("ConstantOfShape")
def constant_of_shape(m: Maker) -> None:
    m.exact = True
    m.put(np.array(m.shape(0, 3), np.int64))
    kind = m.one(np.float32, np.float16, np.int64, np.int32, np.int8, np.uint8, np.bool_, np.float64)
    raw = m.chance(0.5)
    array = np.array([m.integer(0, 1)], kind)
    tensor = numpy_helper.from_array(array, "v") if raw else helper.make_tensor("v", helper.np_dtype_to_tensor_dtype(array.dtype), [1], array)
    m.set(value=m.one(None, tensor, tensor))


@row("Conv", "ConvTranspose")
def conv(m: Maker) -> None:
    m.kind = "plain"
    axes, group = m.integer(1, 3), m.one(1, 1, 2)
    kernel = [m.integer(1, 3) for _ in range(axes)]
    x = m.put(m.floats([m.one(1, 2), 2 * group, *(m.integer(3, 6) for _ in range(axes))], np.float32))
    m.put(m.floats([4 * group if m.op == "Conv" else 2 * group, 2 if m.op == "Conv" else m.one(1, 3), *kernel], np.float32))
    if m.chance(0.5):
        m.put(m.floats([m.inputs[1][0].shape[0] if m.op == "Conv" else m.inputs[1][0].shape[1] * group], np.float32))
    word = m.one(None, None, "NOTSET", "VALID", "SAME_UPPER", "SAME_LOWER")
    m.set(auto_pad=word, group=m.one(group, None) if group == 1 else group, kernel_shape=m.one(None, kernel),
          strides=m.one(None, [m.integer(1, 3) for _ in range(axes)]), dilations=m.one(None, [m.integer(1, 2) for _ in range(axes)]),
          pads=[m.integer(0, 1) for _ in range(2 * axes)] if word in (None, "NOTSET") and m.chance(0.5) else None)
    del x


@row("OneHot")
def one_hot(m: Maker) -> None:
    m.exact = True
    indices = m.put(m.integers(m.shape(0, 2), m.one(np.int64, np.int32), -9, 9))
    m.put(np.array(m.one(1, 3, 5), m.one(np.int64, np.int32, np.float32)).reshape(m.one([], [1])))
    m.put(np.array([m.integer(-3, 0), m.integer(1, 5)], m.one(np.float32, np.int64, np.int32)))
    m.set(axis=m.one(None, m.integer(-indices.ndim - 1, indices.ndim)))


@row("ScatterND")
def scatter_nd(m: Maker) -> None:
    m.kind = "plain"
    x = m.put(m.numbers(m.shape(1, 3, (2, 3, 4))))
    depth = m.integer(1, x.ndim)
    places = np.stack(np.unravel_index(m.random.permutation(int(np.prod(x.shape[:depth])))[: m.integer(0, 3)], x.shape[:depth]), -1)
    places = places - np.array(x.shape[:depth]) * (m.random.random(places.shape) < 0.3)
    m.put(places.astype(np.int64))
    shape = [len(places), *x.shape[depth:]]
    m.put(m.floats(shape, x.dtype.type) if x.dtype.kind == "f" else m.integers(shape, x.dtype.type))
    m.set(reduction=m.one(None, "none", "add", "mul", *(["max", "min"] if m.opset > 17 else [])))


@row("ScatterElements")
def scatter_elements(m: Maker) -> None:
    m.kind = "plain"
    x = m.put(m.numbers(m.shape(1, 2, (2, 3, 4))))
    axis = m.axis(x.ndim)
    shape = list(x.shape)
    shape[axis] = m.integer(1, x.shape[axis])
    places = np.argsort(m.random.random(x.shape), axis).take(range(shape[axis]), axis)
    m.put((places - x.shape[axis] * (m.random.random(shape) < 0.3)).astype(m.one(np.int64, np.int32)))
    m.put(m.floats(shape, x.dtype.type) if x.dtype.kind == "f" else m.integers(shape, x.dtype.type))
    m.set(axis=axis, reduction=m.one(None, "none", "add", "mul", *(["max", "min"] if m.opset > 17 else [])))


@row("Resize")
def resize(m: Maker) -> None:
    m.kind = "plain"
    x = m.put(m.floats([1, 2, *m.shape(1, 2, (2, 3, 4))], np.float32))
    mode = m.one("nearest", "nearest", "linear", "cubic" if x.ndim == 4 else "linear")
    m.put(m.one(None, np.zeros(0, np.float32)) if m.opset > 12 else np.zeros(0, np.float32))
    factors = [1.0, 1.0, *(m.one(1.0, 2.0, 3.0, 0.5, 1.5) for _ in range(x.ndim - 2))]
    if m.chance(0.5):
        m.put(np.array(factors, np.float32))
    else:
        m.put(None if m.opset > 12 else np.zeros(0, np.float32))
        m.put(np.array([max(1, int(n * f)) for n, f in zip(x.shape, factors, strict=True)], np.int64))
    m.set(mode=mode, coordinate_transformation_mode=m.one(None, "asymmetric", "align_corners", "half_pixel", "pytorch_half_pixel",
                                               *(["tf_half_pixel_for_nn"] if m.opset < 13 else [])),
          nearest_mode=m.one(None, "floor", "ceil", "round_prefer_ceil") if mode == "nearest" else None)


@row("Gelu", "Swish", "Mish", "HardSwish", "Celu", "Elu", "Selu", "Softplus", "ThresholdedRelu", "HardSigmoid", "Shrink")
def activation(m: Maker) -> None:
    m.kind = m.one("plain", "plain", "nan")
    m.put(m.floats(m.shape(0, 3)))
    m.set(approximate=m.one(None, "none", "tanh"), alpha=m.one(None, 0.5, 2.0) if m.op != "Selu" else None)


@row("RotaryEmbedding")
def rotary(m: Maker) -> None:
    m.kind = "plain"
    batch, heads, tokens, width = m.one(1, 2), m.one(1, 3), m.one(1, 5), m.one(4, 8)
    part = m.one(0, 0, width // 2)
    flat = m.chance(0.4)
    x = m.put(m.floats([batch, tokens, heads * width] if flat else [batch, heads, tokens, width], m.one(np.float32, np.float16)))
    half = (part or width) // 2
    with_places = m.chance(0.6)
    table = [7, half] if with_places else [batch, tokens, half]
    for _ in range(2):
        m.put(m.floats(table, x.dtype.type))
    m.put(m.integers([batch, tokens], np.int64, 0, 6) if with_places else None)
    m.set(interleaved=m.one(None, 0, 1), num_heads=heads if flat else None, rotary_embedding_dim=part or None)


@row("Attention")
def attention(m: Maker) -> None:
    m.kind = "plain"
    batch, groups, each, queries, keys, width = m.one(1, 2), m.one(1, 2), m.one(1, 2), m.one(1, 3, 5), m.one(1, 4, 5), m.one(4, 8)
    kind = m.one(np.float32, np.float16)
    heads = groups * each
    m.put(m.floats([batch, heads, queries, width], kind))
    for _ in range(2):
        m.put(m.floats([batch, groups, keys, width], kind))
    mask = m.one(None, (queries, keys), (batch, 1, queries, keys))
    if mask is not None:
        m.put(np.asarray(m.random.random(mask) < 0.7) if m.chance(0.5) else m.floats(mask, kind))
    m.set(is_causal=m.one(None, 0, 1), scale=m.one(None, 0.5), softcap=m.one(None, 0.0, 2.0),
          left_window_size=m.one(None, -1, 0, 2), right_window_size=m.one(None, -1, 0, 1))


@row("BitShift")
def bit_shift(m: Maker) -> None:
    m.exact = True
    kind = m.one(np.uint8, np.uint16, np.uint32, np.uint64, np.int32, np.int64)
    x = m.put(m.integers(m.shape(0, 2), kind))
    m.put(m.integers(x.shape, kind, 0, 7))
    m.set(direction=m.one("LEFT", "RIGHT"))


@row("SpaceToDepth", "DepthToSpace")
def space_to_depth(m: Maker) -> None:
    m.exact = True
    block = m.one(1, 2)
    m.put(m.floats([1, block * block * m.one(1, 3), block * 2, block * 3], np.float32))
    m.set(blocksize=block, mode=m.one(None, "DCR", "CRD"))


@row("CumSum", "CumProd")
def cumulated(m: Maker) -> None:
    m.kind = "plain"
    x = m.put(m.numbers(m.shape(1, 3)))
    m.put(np.array(m.axis(x.ndim), m.one(np.int64, np.int32)))
    m.set(exclusive=m.one(None, 0, 1), reverse=m.one(None, 0, 1))


def opsets_of(op: str) -> list[int]:
    """The opsets at which the operator has a version, with those that models are written at more often."""
    first = min(s.since_version for s in onnx.defs.get_all_schemas_with_history() if s.name == op and s.domain == "")
    return [o for o in (*range(FIRST, NEWEST + 1), 13, 17, 18, 18, 20, 21, NEWEST) if o >= first]


def make(op: str, seed: int) -> Case:
    """The case of the operator with this seed; the same one each time."""
    random = np.random.default_rng([seed, *op.encode()])
    opsets = opsets_of(op)
    maker = Maker(op, opsets[int(random.integers(len(opsets)))], random)
    ROWS[op](maker)
    case = maker.case()
    if case is not None and case.opset < 17 and seed % 2 == 1:
        raise_it(case)
    return case


def raise_it(case: Case) -> None:
    """Puts a HardSwish of older opsets beside the node: for its kernel the opset of the model is raised, and the node is written there."""
    graph = case.model.graph
    case.feeds["h"] = np.array([[-4.0, -1.0, 0.5], [2.0, 3.5, 7.0]], np.float32)
    graph.input.append(helper.make_tensor_value_info("h", onnx.TensorProto.FLOAT, ["h0", 3]))
    for name, number in (("h_zero", 0.0), ("h_three", 3.0), ("h_six", 6.0)):
        graph.initializer.append(numpy_helper.from_array(np.array(number, np.float32), name))
    output = f"y{len(graph.output)}"
    graph.node.extend([helper.make_node("Add", ["h", "h_three"], ["h_moved"]), helper.make_node("Clip", ["h_moved", "h_zero", "h_six"], ["h_cut"]),
                       helper.make_node("Div", ["h_cut", "h_six"], ["h_gate"]), helper.make_node("Mul", ["h", "h_gate"], [output])])
    graph.output.append(onnx.ValueInfoProto(name=output))


def declare(model: onnx.ModelProto, outputs: list[np.ndarray]) -> None:
    """Gives the outputs the types that they have, with dims that are not known."""
    del model.graph.output[:]
    for i, array in enumerate(outputs):
        dims = [f"o{i}_{axis}" for axis in range(array.ndim)]
        model.graph.output.append(helper.make_tensor_value_info(f"y{i}", helper.np_dtype_to_tensor_dtype(array.dtype), dims))


def difference(found: np.ndarray, expected: np.ndarray, case: Case) -> str:
    """Why the two are not the same, "" where they are. Of numbers that are not exact those count that stay in their range."""
    if found.dtype != expected.dtype or found.shape != expected.shape:
        return f"{found.dtype}{list(found.shape)} for {expected.dtype}{list(expected.shape)}"
    if expected.dtype.kind not in "f" and expected.dtype != ml_dtypes.bfloat16:
        wrong = found != expected
    else:
        a, b = found.astype(np.float64), expected.astype(np.float64)
        # ONNX Runtime computes the Gelu of doubles with constants of float32.
        loose = {2: 2e-2, 4: 2e-4, 8: 1e-7 if case.op == "Gelu" else 1e-9}[expected.dtype.itemsize]
        finite = np.isfinite(b)
        with np.errstate(invalid="ignore"):
            scale = max([1.0, *(float(np.abs(x.astype(np.float64)).max()) for x in case.feeds.values()
                                if case.kind == "plain" and x.dtype.kind == "f" and x.size)])
            close = (a == b) | (np.isnan(a) & np.isnan(b)) | (np.abs(a - b) <= loose * np.maximum(np.abs(b), scale))
        if case.kind == "huge" and not case.exact:
            close |= ~finite | (np.abs(b) > 1e4)  # on the way there another order overflows elsewhere
        wrong = ~close
    if not wrong.any():
        return ""
    place = tuple(int(i[0]) for i in np.nonzero(wrong)) if wrong.ndim else ()
    return f"{found[place]} for {expected[place]} at {list(place)}"
