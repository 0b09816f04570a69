"""Small models made by hand to get a wrong number out of the tool: near misses of what is fused, and what is fused in unusual surroundings."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

TYPES = {np.float32: TensorProto.FLOAT, np.float16: TensorProto.FLOAT16, np.int64: TensorProto.INT64, np.int32: TensorProto.INT32,
         np.bool_: TensorProto.BOOL}
SIZES = ({"B": 2, "S": 32, "T": 64}, {"B": 1, "S": 1, "T": 32})
MODELS: dict[str, Callable[[Maker], None]] = {}
H, D = 2, 64
E = H * D


class Maker:
    """A model that grows node by node, and what it is fed."""

    def __init__(self, name: str, opset: int = 17, dtype: type = np.float32) -> None:
        self.random = np.random.default_rng(sum(name.encode()))
        self.opset, self.dtype = opset, dtype
        self.nodes: list[onnx.NodeProto] = []
        self.inputs: list[tuple[str, list[int | str], type, Callable[..., np.ndarray] | None]] = []
        self.weights: list[onnx.TensorProto] = []
        self.outputs: list[str] = []

    def input(self, name: str, dims: Sequence[int | str], dtype: type | None = None, values: Callable[..., np.ndarray] | None = None) -> str:
        self.inputs.append((name, list(dims), dtype or self.dtype, values))
        return name

    def const(self, value, dtype: type | None = None) -> str:
        name = f"c{len(self.weights)}"
        self.weights.append(numpy_helper.from_array(np.asarray(value, dtype or self.dtype), name))
        return name

    def ints(self, *values: int) -> str:
        return self.const(np.array(values), np.int64)

    def weight(self, *dims: int, scale: float | None = None) -> str:
        return self.const(self.random.standard_normal(dims) * (scale or dims[0] ** -0.5))

    def op(self, kind: str, *inputs: str, outputs: int = 1, domain: str = "", **attributes):
        names = [f"{kind}_{len(self.nodes)}_{i}" for i in range(outputs)]
        self.nodes.append(helper.make_node(kind, list(inputs), names, name=f"{kind}_{len(self.nodes)}", domain=domain, **attributes))
        return names[0] if outputs == 1 else names

    def output(self, *names: str) -> None:
        self.outputs += names

    def model(self) -> onnx.ModelProto:
        values = [helper.make_tensor_value_info(name, TYPES[dtype], dims) for name, dims, dtype, _ in self.inputs]
        graph = helper.make_graph(self.nodes, "g", values, [onnx.ValueInfoProto(name=name) for name in self.outputs], self.weights)
        imports = [helper.make_opsetid("", self.opset), helper.make_opsetid("com.microsoft", 1)]
        return helper.make_model(graph, opset_imports=imports, ir_version=10 if self.opset > 20 else 8)

    def feeds(self, sizes: dict[str, int]) -> dict[str, np.ndarray]:
        random = np.random.default_rng(7)
        fed = {}
        for name, dims, dtype, values in self.inputs:
            shape = [sizes[d] if isinstance(d, str) else d for d in dims]
            fed[name] = np.asarray(values(shape) if values else random.standard_normal(shape), dtype)
        return fed

    # What many models begin or end with.

    def heads(self, x: str, count: int = H, width: int = D) -> str:
        return self.op("Transpose", self.op("Reshape", x, self.ints(0, 0, count, width)), perm=[0, 2, 1, 3])

    def qkv(self, kv: str | None = None, tokens: str = "S") -> tuple[str, str, str]:
        x = self.input("x", ["B", "S", E])
        other = self.input(kv, ["B", tokens, E]) if kv else x
        return tuple(self.heads(self.op("MatMul", of, self.weight(E, E))) for of in (x, other, other))  # type: ignore[return-value]

    def scores(self, q: str, k: str, scale: float | None = D**-0.5) -> str:
        product = self.op("MatMul", q, self.op("Transpose", k, perm=[0, 1, 3, 2]))
        return product if scale is None else self.op("Mul", product, self.const(scale))

    def end(self, scores: str, v: str, axis: int = -1) -> str:
        y = self.op("MatMul", self.op("Softmax", scores, axis=axis), v)
        self.output(self.op("Reshape", self.op("Transpose", y, perm=[0, 2, 1, 3]), self.ints(0, 0, -1)))
        return y

    def grid(self, q: str, k: str) -> tuple[str, str]:
        """Columns of places of queries and rows of places of keys."""
        def places(value: str, axis: int) -> str:
            count = self.op("Squeeze", self.op("Slice", self.op("Shape", value), self.ints(2), self.ints(3), self.ints(0)), self.ints(0))
            return self.op("Unsqueeze", self.op("Range", self.const(0, np.int64), count, self.const(1, np.int64)), self.ints(axis))
        return places(q, 1), places(k, 0)

    def kept(self, keep: str, scores: str, never: float = -math.inf) -> str:
        return self.op("Where", keep, scores, self.const(never))


def made(maker: Callable[[Maker], None]) -> Callable[[Maker], None]:
    MODELS[maker.__name__] = maker
    return maker


def make(name: str, dtype: type = np.float32) -> Maker:
    maker = Maker(name, OPSETS.get(name, 17), dtype)
    MODELS[name](maker)
    return maker


OPSETS = {"attention_23": 23, "attention_23_with_a_cache": 23, "attention_23_of_all": 23, "attention_23_scores": 23, "attention_24_of_lengths": 24,
          "rotary_23_of_pairs": 23, "rms_norm_of_tokens": 18}


# Scales.


@made
def negative_scale(m: Maker) -> None:
    q, k, v = m.qkv()
    m.end(m.scores(q, k, -0.125), v)


@made
def scales_of_query_key_and_scores(m: Maker) -> None:
    q, k, v = m.qkv()
    q, k = m.op("Mul", q, m.const(-0.5)), m.op("Div", k, m.const(-3.0))
    m.end(m.op("Div", m.scores(q, k, 0.7), m.const(2.0)), v)


@made
def scale_by_head(m: Maker) -> None:
    q, k, v = m.qkv()
    m.end(m.op("Mul", m.scores(q, k, None), m.const(np.array([0.1, 0.2]).reshape(1, H, 1, 1))), v)


@made
def scale_that_is_an_input(m: Maker) -> None:
    q, k, v = m.qkv()
    m.end(m.op("Mul", m.scores(q, k, None), m.input("scale", [1])), v)


@made
def scale_of_the_result(m: Maker) -> None:
    q, k, v = m.qkv()
    y = m.op("MatMul", m.op("Mul", m.op("Softmax", m.scores(q, k), axis=-1), m.const(0.5)), v)
    m.output(y)


# Axes.


@made
def softmax_over_queries(m: Maker) -> None:
    q, k, v = m.qkv()
    m.end(m.scores(q, k), v, axis=-2)


@made
def softmax_over_heads(m: Maker) -> None:
    q, k, v = m.qkv()
    m.end(m.scores(q, k), v, axis=1)


@made
def heads_and_channels_the_other_way(m: Maker) -> None:
    """Heads are every second channel."""
    x = m.input("x", ["B", "S", E])
    def heads(y):
        return m.op("Transpose", m.op("Reshape", y, m.ints(0, 0, D, H)), perm=[0, 3, 1, 2])
    q, k, v = (heads(m.op("MatMul", x, m.weight(E, E))) for _ in range(3))
    m.end(m.scores(q, k), v)


@made
def heads_joined_the_other_way(m: Maker) -> None:
    q, k, v = m.qkv()
    y = m.op("MatMul", m.op("Softmax", m.scores(q, k), axis=-1), v)
    m.output(m.op("Reshape", m.op("Transpose", y, perm=[0, 2, 3, 1]), m.ints(0, 0, E)))


@made
def keys_are_values(m: Maker) -> None:
    q, k, _ = m.qkv()
    m.end(m.scores(q, k), k)


@made
def all_three_are_one(m: Maker) -> None:
    q, _, _ = m.qkv()
    m.end(m.scores(q, q), q)


@made
def repeated_by_tiles(m: Maker) -> None:
    """Head h reads key h modulo 2, not h / 2."""
    x = m.input("x", ["B", "S", E])
    q = m.heads(m.op("MatMul", x, m.weight(E, 4 * D)), 4)
    k, v = (m.op("Tile", m.heads(m.op("MatMul", x, m.weight(E, 2 * D))), m.ints(1, 2, 1, 1)) for _ in range(2))
    m.end(m.scores(q, k), v)


@made
def repeated_one_by_one(m: Maker) -> None:
    x = m.input("x", ["B", "S", E])
    q = m.heads(m.op("MatMul", x, m.weight(E, 4 * D)), 4)
    def repeated(y):
        y = m.op("Tile", m.op("Unsqueeze", y, m.ints(2)), m.ints(1, 1, 2, 1, 1))
        return m.op("Reshape", y, m.ints(0, 4, -1, D))
    k, v = (repeated(m.heads(m.op("MatMul", x, m.weight(E, 2 * D)))) for _ in range(2))
    m.end(m.scores(q, k), v)


@made
def keys_by_tiles_and_values_one_by_one(m: Maker) -> None:
    x = m.input("x", ["B", "S", E])
    q = m.heads(m.op("MatMul", x, m.weight(E, 4 * D)), 4)
    k = m.op("Tile", m.heads(m.op("MatMul", x, m.weight(E, 2 * D))), m.ints(1, 2, 1, 1))
    v = m.op("Tile", m.op("Unsqueeze", m.heads(m.op("MatMul", x, m.weight(E, 2 * D))), m.ints(2)), m.ints(1, 1, 2, 1, 1))
    m.end(m.scores(q, k), m.op("Reshape", v, m.ints(0, 4, -1, D)))


@made
def heads_that_are_mixed(m: Maker) -> None:
    """Talking heads: probabilities of one head are added to those of another."""
    q, k, v = m.qkv()
    p = m.op("Softmax", m.scores(q, k), axis=-1)
    turned = m.op("MatMul", m.op("Transpose", p, perm=[0, 2, 3, 1]), m.weight(H, H))
    m.output(m.op("MatMul", m.op("Transpose", turned, perm=[0, 3, 1, 2]), v))


# Masks.


@made
def mask_of_the_past(m: Maker) -> None:
    """Only later keys are seen."""
    q, k, v = m.qkv()
    i, j = m.grid(q, k)
    m.end(m.kept(m.op("GreaterOrEqual", j, i), m.scores(q, k)), v)


@made
def causal_without_itself(m: Maker) -> None:
    """One key less than causal: the first query sees none."""
    q, k, v = m.qkv()
    i, j = m.grid(q, k)
    m.end(m.kept(m.op("Less", j, i), m.scores(q, k), -1e4), v)


@made
def causal_and_one_more(m: Maker) -> None:
    q, k, v = m.qkv()
    i, j = m.grid(q, k)
    m.end(m.kept(m.op("LessOrEqual", j, m.op("Add", i, m.const(1, np.int64))), m.scores(q, k)), v)


@made
def causal_from_the_top_left(m: Maker) -> None:
    q, k, v = m.qkv("memory", "T")
    i, j = m.grid(q, k)
    m.end(m.kept(m.op("LessOrEqual", j, i), m.scores(q, k)), v)


@made
def window_of_both_sides(m: Maker) -> None:
    q, k, v = m.qkv()
    i, j = m.grid(q, k)
    m.end(m.kept(m.op("Less", m.op("Abs", m.op("Sub", i, j)), m.const(3, np.int64)), m.scores(q, k)), v)


@made
def blocks_of_four(m: Maker) -> None:
    q, k, v = m.qkv()
    i, j = m.grid(q, k)
    four = m.const(4, np.int64)
    m.end(m.kept(m.op("Equal", m.op("Div", i, four), m.op("Div", j, four)), m.scores(q, k)), v)


@made
def every_second_key(m: Maker) -> None:
    q, k, v = m.qkv()
    i, j = m.grid(q, k)
    m.end(m.kept(m.op("Equal", m.op("Mod", m.op("Add", i, j), m.const(2, np.int64)), m.const(0, np.int64)), m.scores(q, k)), v)


def left(shape: Sequence[int]) -> np.ndarray:
    keep = np.ones(shape, bool)
    keep[-1, ..., : shape[-1] // 2] = False
    return keep


@made
def padding_of_keys(m: Maker) -> None:
    q, k, v = m.qkv("memory", "T")
    m.end(m.kept(m.input("keep", ["B", 1, 1, "T"], np.bool_, left), m.scores(q, k)), v)


@made
def padding_the_other_way(m: Maker) -> None:
    """True drops."""
    q, k, v = m.qkv("memory", "T")
    drop = m.input("drop", ["B", 1, 1, "T"], np.bool_, lambda shape: ~left(shape))
    m.end(m.op("Where", drop, m.const(-math.inf), m.scores(q, k)), v)


@made
def one_mask_both_ways(m: Maker) -> None:
    x = m.input("x", ["B", "S", E])
    keep = m.input("keep", ["B", 1, "S", "S"], np.bool_, lambda shape: np.indices(shape).sum(0) % 2 == 0)
    for one in (keep, m.op("Not", keep)):
        q, k, v = (m.heads(m.op("MatMul", x, m.weight(E, E))) for _ in range(3))
        m.end(m.kept(one, m.scores(q, k), -1e4), v)


@made
def mask_of_three_numbers(m: Maker) -> None:
    """Some keys are only less likely."""
    q, k, v = m.qkv("memory", "T")
    added = m.input("added", ["B", 1, 1, "T"], None, lambda shape: np.where(np.arange(shape[-1]) % 3 == 0, 0, np.where(np.arange(
        shape[-1]) % 3 == 1, -2.0, -1e4)) + np.zeros(shape))
    m.end(m.op("Add", m.scores(q, k), added), v)


@made
def mask_that_is_multiplied(m: Maker) -> None:
    """Zero is not minus infinity: such a key counts as exp (0)."""
    q, k, v = m.qkv("memory", "T")
    m.end(m.op("Mul", m.scores(q, k), m.input("keep", ["B", 1, 1, "T"], None, left)), v)


@made
def mask_after_softmax(m: Maker) -> None:
    q, k, v = m.qkv("memory", "T")
    p = m.op("Softmax", m.scores(q, k), axis=-1)
    m.output(m.op("MatMul", m.op("Mul", p, m.input("keep", ["B", 1, 1, "T"], None, left)), v))


@made
def mask_before_the_scale(m: Maker) -> None:
    """-20 times the scale is no mask."""
    q, k, v = m.qkv("memory", "T")
    added = m.op("Mul", m.op("Sub", m.const(1.0), m.input("keep", ["B", 1, 1, "T"], None, left)), m.const(-20.0))
    m.end(m.op("Mul", m.op("Add", m.scores(q, k, None), added), m.const(D**-0.5)), v)


@made
def mask_of_heads(m: Maker) -> None:
    q, k, v = m.qkv()
    keep = m.input("keep", [H, "S", "S"], np.bool_, lambda shape: np.indices(shape).sum(0) % 2 == 0)
    m.end(m.kept(keep, m.scores(q, k), -1e4), v)


@made
def bias_by_distance(m: Maker) -> None:
    """ALiBi, and causal."""
    q, k, v = m.qkv()
    i, j = m.grid(q, k)
    far = m.op("Cast", m.op("Neg", m.op("Abs", m.op("Sub", i, j))), to=TYPES[m.dtype])
    bias = m.op("Mul", far, m.const(np.array([0.5, 0.25]).reshape(H, 1, 1)))
    m.end(m.kept(m.op("LessOrEqual", j, i), m.op("Add", m.scores(q, k), bias)), v)


@made
def sink(m: Maker) -> None:
    """A key that is no key takes a part of the probabilities."""
    q, k, v = m.qkv()
    scores = m.scores(q, k)
    shape = m.op("Concat", m.op("Slice", m.op("Shape", scores), m.ints(0), m.ints(3), m.ints(0)), m.ints(1), axis=0)
    column = m.op("Expand", m.const(np.array([0.5, -1.0]).reshape(1, H, 1, 1)), shape)
    p = m.op("Softmax", m.op("Concat", scores, column, axis=-1), axis=-1)
    m.output(m.op("MatMul", m.op("Slice", p, m.ints(0), m.ints(-1), m.ints(3)), v))


# Values that are read elsewhere.


@made
def probabilities_are_an_output(m: Maker) -> None:
    q, k, v = m.qkv()
    i, j = m.grid(q, k)
    p = m.op("Softmax", m.kept(m.op("LessOrEqual", j, i), m.scores(q, k)), axis=-1)
    m.output(m.op("MatMul", p, v), p)


@made
def scores_and_mask_are_outputs(m: Maker) -> None:
    q, k, v = m.qkv()
    i, j = m.grid(q, k)
    keep, scores = m.op("LessOrEqual", j, i), m.scores(q, k)
    m.end(m.kept(keep, scores), v)
    m.output(scores, keep)


@made
def query_is_read_again(m: Maker) -> None:
    q, k, v = m.qkv()
    y = m.end(m.scores(q, k), v)
    m.output(m.op("Add", y, q))


@made
def values_of_another_width(m: Maker) -> None:
    x = m.input("x", ["B", "S", E])
    q, k = (m.heads(m.op("MatMul", x, m.weight(E, E))) for _ in range(2))
    m.end(m.scores(q, k), m.heads(m.op("MatMul", x, m.weight(E, H * 32)), H, 32))


@made
def keys_of_a_cache(m: Maker) -> None:
    q, k, v = m.qkv()
    k, v = (m.op("Concat", m.input(name, ["B", H, "T", D]), value, axis=2) for name, value in (("past_k", k), ("past_v", v)))
    m.output(k, v)
    i, j = m.grid(q, k)
    first = m.op("Squeeze", m.op("Slice", m.op("Shape", "past_k"), m.ints(2), m.ints(3), m.ints(0)), m.ints(0))
    m.end(m.kept(m.op("LessOrEqual", j, m.op("Add", i, first)), m.scores(q, k)), v)


@made
def cache_after_the_keys(m: Maker) -> None:
    """The new keys stand before those of the cache."""
    q, k, v = m.qkv()
    k, v = (m.op("Concat", value, m.input(name, ["B", H, "T", D]), axis=2) for name, value in (("past_k", k), ("past_v", v)))
    i, j = m.grid(q, k)
    first = m.op("Squeeze", m.op("Slice", m.op("Shape", "past_k"), m.ints(2), m.ints(3), m.ints(0)), m.ints(0))
    m.end(m.kept(m.op("LessOrEqual", j, m.op("Add", i, first)), m.scores(q, k)), v)


# Norms.


def rms(m: Maker, x: str, of: str | None = None, epsilon: float = 1e-6, axis: int = -1) -> str:
    squares = m.op("Mul", of or x, of or x)
    mean = (m.op("ReduceMean", squares, axes=[axis], keepdims=1) if m.opset < 18 else m.op("ReduceMean", squares, m.ints(axis), keepdims=1))
    return m.op("Div", x, m.op("Sqrt", m.op("Add", mean, m.const(epsilon))))


@made
def rms_norm_of_another(m: Maker) -> None:
    x = m.input("x", ["B", "S", E])
    m.output(m.op("Mul", rms(m, x, m.op("Mul", x, m.weight(E))), m.weight(E)))


@made
def rms_norm_of_tokens(m: Maker) -> None:
    x = m.input("x", ["B", 64, 64])
    m.output(m.op("Mul", rms(m, x, axis=1), m.weight(64)))


@made
def rms_norm_without_an_epsilon(m: Maker) -> None:
    x = m.input("x", ["B", "S", E])
    m.output(m.op("Mul", rms(m, x, epsilon=0.0), m.weight(E)))


@made
def rms_norm_of_small_numbers(m: Maker) -> None:
    """The epsilon decides."""
    x = m.op("Mul", m.input("x", ["B", "S", E]), m.const(1e-3))
    m.output(m.op("Mul", rms(m, x, epsilon=1e-5), m.weight(E)), m.op("Mul", rms(m, x, epsilon=1e-3), m.weight(E)))


@made
def rms_norm_of_a_sum_that_broadcasts(m: Maker) -> None:
    total = m.op("Add", m.input("x", ["B", "S", E]), m.input("bias", [1, 1, E]))
    m.output(m.op("Mul", rms(m, total), m.weight(E)), total)


@made
def two_norms_of_one_sum(m: Maker) -> None:
    total = m.op("Add", m.input("x", ["B", "S", E]), m.input("z", ["B", "S", E]))
    m.output(m.op("Mul", rms(m, total), m.weight(E)), m.op("Mul", rms(m, total, epsilon=1e-5), m.weight(E)), total)


def centred(m: Maker, x: str) -> str:
    return m.op("Sub", x, m.op("ReduceMean", x, axes=[-1], keepdims=1))


def variance(m: Maker, y: str) -> str:
    return m.op("ReduceMean", m.op("Mul", y, y), axes=[-1], keepdims=1)


@made
def layer_norm_with_the_epsilon_outside(m: Maker) -> None:
    y = centred(m, m.input("x", ["B", "S", E]))
    m.output(m.op("Div", y, m.op("Add", m.op("Sqrt", variance(m, y)), m.const(0.5))))


@made
def layer_norm_of_one_less(m: Maker) -> None:
    """The variance of a sample."""
    y = centred(m, m.input("x", ["B", "S", 16]))
    m.output(m.op("Div", y, m.op("Sqrt", m.op("Add", m.op("Mul", variance(m, y), m.const(16 / 15)), m.const(1e-5)))))


@made
def layer_norm_with_the_bias_first(m: Maker) -> None:
    y = centred(m, m.input("x", ["B", "S", E]))
    y = m.op("Div", y, m.op("Sqrt", m.op("Add", variance(m, y), m.const(1e-5))))
    m.output(m.op("Mul", m.op("Add", y, m.weight(E)), m.weight(E)))


@made
def layer_norm_that_centres_another(m: Maker) -> None:
    x = m.input("x", ["B", "S", E])
    y = centred(m, x)
    m.output(m.op("Div", x, m.op("Sqrt", m.op("Add", variance(m, y), m.const(1e-5)))))


@made
def layer_norm_of_large_numbers(m: Maker) -> None:
    x = m.op("Add", m.input("x", ["B", "S", E]), m.const(100.0))
    y = centred(m, x)
    m.output(m.op("Mul", m.op("Div", y, m.op("Sqrt", m.op("Add", variance(m, y), m.const(1e-5)))), m.weight(E)))


@made
def layer_norm_whose_sum_is_an_output(m: Maker) -> None:
    total = m.op("Add", m.input("x", ["B", "S", E]), m.input("z", ["B", "S", E]))
    m.output(total, m.op("LayerNormalization", total, m.weight(E), m.weight(E), axis=-1, epsilon=1e-5))


@made
def skip_layer_norm_of_all(m: Maker) -> None:
    x, z = m.input("x", ["B", "S", E]), m.input("z", ["B", "S", E])
    y = m.op("SkipLayerNormalization", x, z, m.weight(E), m.weight(E), m.weight(E), outputs=4, domain="com.microsoft", epsilon=1e-3)
    m.output(y[0], y[3])
    y = m.op("SkipSimplifiedLayerNormalization", x, z, m.weight(E), m.weight(E), outputs=4, domain="com.microsoft", epsilon=1e-5)
    m.output(y[0], y[3])


@made
def group_norm_with_a_scale_of_groups(m: Maker) -> None:
    x = m.op("Reshape", m.input("x", ["B", 32, 8, 8]), m.ints(0, 4, -1))
    y = m.op("InstanceNormalization", x, m.const([1, 2, 3, 4]), m.const([0, 0.5, 0, 1]), epsilon=1e-5)
    y = m.op("Reshape", y, m.ints(-1, 32, 8, 8))
    y = m.op("Add", m.op("Mul", y, m.weight(32, 1, 1)), m.weight(32, 1, 1))
    m.output(m.op("Mul", y, m.op("Sigmoid", y)))


# Activations and gates.


@made
def gate_with_the_halves_exchanged(m: Maker) -> None:
    packed = m.op("MatMul", m.input("x", ["B", "S", E]), m.weight(E, 256))
    a, b = m.op("Split", packed, m.ints(128, 128), outputs=2, axis=-1)
    m.output(m.op("Mul", a, m.op("Mul", b, m.op("Sigmoid", b))))
    m.output(m.op("Mul", m.op("Mul", a, m.op("Sigmoid", b)), a))  # of another than it multiplies


@made
def gate_of_unequal_parts(m: Maker) -> None:
    packed = m.op("MatMul", m.input("x", ["B", "S", E]), m.weight(E, 129))
    a, b = m.op("Split", packed, m.ints(128, 1), outputs=2, axis=-1)
    m.output(m.op("Mul", m.op("Mul", a, m.op("Sigmoid", a)), b))


@made
def gate_of_every_second_channel(m: Maker) -> None:
    packed = m.op("MatMul", m.input("x", ["B", "S", E]), m.weight(E, 256))
    a = m.op("Slice", packed, m.ints(0), m.ints(256), m.ints(2), m.ints(2))
    b = m.op("Slice", packed, m.ints(1), m.ints(256), m.ints(2), m.ints(2))
    m.output(m.op("Mul", m.op("Mul", a, m.op("Sigmoid", a)), b))


@made
def gate_of_tokens(m: Maker) -> None:
    a, b = m.op("Split", m.input("x", ["B", 128, 128]), m.ints(64, 64), outputs=2, axis=1)
    m.output(m.op("Mul", m.op("Mul", a, m.op("Sigmoid", a)), b))


@made
def gate_of_tied_weights(m: Maker) -> None:
    x, w = m.input("x", ["B", "S", E]), m.weight(E, 128)
    a, b = m.op("MatMul", x, w), m.op("MatMul", x, w)
    m.output(m.op("Mul", m.op("Mul", a, m.op("Sigmoid", a)), b))


@made
def almost_gelu(m: Maker) -> None:
    x = m.op("MatMul", m.input("x", ["B", "S", E]), m.weight(E, E))
    for root, half, one in ((1.4142135, 0.49, 1.0), (1.5, 0.5, 1.0), (1.4142135, 0.5, 1.02)):
        erf = m.op("Add", m.op("Erf", m.op("Div", x, m.const(root))), m.const(one))
        m.output(m.op("Mul", m.op("Mul", x, erf), m.const(half)))


@made
def almost_gelu_by_tanh(m: Maker) -> None:
    x = m.op("MatMul", m.input("x", ["B", "S", E]), m.weight(E, E))
    for cube, root in ((0.044715, 0.7978846), (0.05, 0.7978846), (0.044715, 0.75)):
        inner = m.op("Add", x, m.op("Mul", m.op("Pow", x, m.const(3.0)), m.const(cube)))
        tanh = m.op("Add", m.op("Tanh", m.op("Mul", inner, m.const(root))), m.const(1.0))
        m.output(m.op("Mul", m.op("Mul", x, tanh), m.const(0.5)))


@made
def sigmoids_times_factors(m: Maker) -> None:
    x = m.op("MatMul", m.input("x", ["B", "S", E]), m.weight(E, E))
    for factor in (1.702, 1.7, -1.0, 2.0):
        m.output(m.op("Mul", x, m.op("Sigmoid", m.op("Mul", x, m.const(factor)))))
    m.output(m.op("QuickGelu", x, domain="com.microsoft", alpha=1.25), m.op("FastGelu", x, m.weight(E), domain="com.microsoft"),
             m.op("BiasGelu", x, m.weight(E), domain="com.microsoft"))


@made
def biases_of_rows(m: Maker) -> None:
    x = m.op("MatMul", m.input("x", ["B", 32, E]), m.weight(E, E))
    m.output(m.op("Relu", m.op("Add", x, m.weight(32, 1))), m.op("Relu", m.op("Add", x, m.weight(32, E))))


# Rotations.


def rotation(m: Maker, x: str, cos: str, sin: str, order: int = 1) -> str:
    a, b = m.op("Split", x, m.ints(D // 2, D // 2), outputs=2, axis=-1)
    turned = m.op("Concat", *((m.op("Neg", b), a) if order == 1 else (b, m.op("Neg", a))), axis=-1)
    return m.op("Add", m.op("Mul", x, cos), m.op("Mul", turned, sin))


def tables(m: Maker, halves: bool = True) -> tuple[str, str]:
    angles = m.op("Mul", m.op("Cast", m.op("Unsqueeze", m.input("places", ["B", "S"], np.int64, lambda shape: np.arange(np.prod(shape)).reshape(
        shape)), m.ints(1, 3)), to=TYPES[m.dtype]), m.const(0.3 ** np.arange(D // 2)))
    other = angles if halves else m.op("Mul", angles, m.const(0.5))
    both = m.op("Concat", angles, other, axis=-1)
    return m.op("Cos", both), m.op("Sin", both)


@made
def rotation_backwards(m: Maker) -> None:
    q, k, v = m.qkv()
    cos, sin = tables(m)
    m.end(m.scores(rotation(m, q, cos, sin, -1), rotation(m, k, cos, sin, -1)), v)


@made
def rotation_of_unequal_halves(m: Maker) -> None:
    q, k, v = m.qkv()
    cos, sin = tables(m, False)
    m.end(m.scores(rotation(m, q, cos, sin), rotation(m, k, cos, sin)), v)


@made
def rotations_of_two_tables(m: Maker) -> None:
    q, k, v = m.qkv()
    cos, sin = tables(m)
    m.end(m.scores(rotation(m, q, cos, sin), rotation(m, k, sin, cos)), v)


@made
def rotation_of_the_values(m: Maker) -> None:
    q, k, v = m.qkv()
    cos, sin = tables(m)
    m.end(m.scores(rotation(m, q, cos, sin), k), rotation(m, v, cos, sin))


@made
def rotated_query_is_the_key(m: Maker) -> None:
    q, _, v = m.qkv()
    cos, sin = tables(m)
    turned = rotation(m, q, cos, sin)
    m.end(m.scores(turned, turned), v)


@made
def rotation_of_the_second_part(m: Maker) -> None:
    x = m.input("x", ["B", "S", 2 * E])
    q = m.heads(m.op("MatMul", x, m.weight(2 * E, 2 * E)), H, 2 * D)
    cos, sin = tables(m)
    for first in (True, False):
        a, b = m.op("Split", q, m.ints(D, D), outputs=2, axis=-1)
        m.output(m.op("Concat", *((rotation(m, a, cos, sin), b) if first else (a, rotation(m, b, cos, sin))), axis=-1))


@made
def rotary_23_of_pairs(m: Maker) -> None:
    q, k, v = m.qkv()
    places = m.input("places", ["B", "S"], np.int64, lambda shape: np.arange(np.prod(shape)).reshape(shape) % 32)
    angles = np.arange(64)[:, None] * 0.3 ** np.arange(16)
    turned = [m.op("RotaryEmbedding", y, m.const(np.cos(angles)), m.const(np.sin(angles)), places, interleaved=1, rotary_embedding_dim=32)
              for y in (q, k)]
    m.output(turned[0])
    m.end(m.scores(*turned), v)


# Operators that are attentions.


@made
def attention_23(m: Maker) -> None:
    q, k, v = m.qkv("memory", "T")
    m.output(m.op("Attention", q, k, v, is_causal=1), m.op("Attention", q, k, v, scale=0.3, softcap=3.0))


@made
def attention_23_with_a_cache(m: Maker) -> None:
    q, k, v = m.qkv()
    cache = [m.input(name, ["B", H, "T", D]) for name in ("past_k", "past_v")]
    m.output(*m.op("Attention", q, k, v, "", *cache, outputs=3, is_causal=1))


@made
def attention_23_of_all(m: Maker) -> None:
    x = m.input("x", ["B", "S", E])
    k, v = (m.op("MatMul", x, m.weight(E, D)) for _ in range(2))
    mask = m.input("mask", ["B", 1, "S", "S"], np.bool_, lambda shape: np.indices(shape).sum(0) % 3 != 1)
    m.output(m.op("Attention", x, k, v, m.op("Or", mask, m.const(np.zeros((1, 1, 1, 1)), np.bool_)), q_num_heads=H, kv_num_heads=1, scale=0.2))


@made
def attention_23_scores(m: Maker) -> None:
    q, k, v = m.qkv()
    for mode in range(4):
        y = m.op("Attention", q, k, v, m.input(f"added{mode}", ["S", "S"]), outputs=4, qk_matmul_output_mode=mode, softcap=2.0)
        m.output(y[0], y[3])


@made
def attention_24_of_lengths(m: Maker) -> None:
    q, k, v = m.qkv("memory", "T")
    lengths = m.input("lengths", ["B"], np.int64, lambda shape: np.arange(shape[0]) * 5 + 9)
    m.output(m.op("Attention", q, k, v, "", "", "", lengths))


@made
def multi_head_attention(m: Maker) -> None:
    q, k, v = (m.op("MatMul", m.input(f"x{i}", ["B", "S" if i == 0 else "T", E]), m.weight(E, E)) for i in range(3))
    keep = m.input("keep", ["B", "T"], np.int32, left)
    added = m.input("added", [1, H, "S", "T"])
    m.output(m.op("MultiHeadAttention", q, k, v, m.weight(3 * E, scale=0.2), keep, added, domain="com.microsoft", num_heads=H, scale=0.2))


@made
def packed_attention(m: Maker) -> None:
    x = m.input("x", ["B", "S", E])
    keep = m.input("keep", ["B", "S"], np.int32, lambda shape: np.arange(shape[-1]) + np.arange(shape[0])[:, None] < shape[-1])
    m.output(m.op("Attention", x, m.weight(E, 3 * E), m.weight(3 * E, scale=0.2), keep, domain="com.microsoft", num_heads=H, unidirectional=1))


# Tokens before the batch.


def tokens_first(m: Maker, x: str, keys: str | None = None) -> str:
    """Attention of torch.nn.MultiheadAttention: [S, B, E], heads merged with the batch, three axes."""
    def rows(of: str) -> str:
        return m.op("Transpose", m.op("Reshape", m.op("MatMul", of, m.weight(E, E)), shape(of)), perm=[1, 0, 2])
    def shape(of: str) -> str:
        dims = m.op("Shape", of)
        count = m.op("Mul", m.op("Slice", dims, m.ints(1), m.ints(2), m.ints(0)), m.ints(H))
        return m.op("Concat", m.op("Slice", dims, m.ints(0), m.ints(1), m.ints(0)), count, m.ints(D), axis=0)
    q, k, v = rows(x), rows(keys or x), rows(keys or x)
    scores = m.op("MatMul", m.op("Mul", q, m.const(D**-0.5)), m.op("Transpose", k, perm=[0, 2, 1]))
    y = m.op("Transpose", m.op("MatMul", m.op("Softmax", scores, axis=-1), v), perm=[1, 0, 2])
    return m.op("MatMul", m.op("Reshape", y, m.op("Shape", x)), m.weight(E, E))


@made
def layer_of_tokens_first(m: Maker) -> None:
    x = m.input("x", ["S", "B", E])
    total = m.op("Add", x, tokens_first(m, m.op("Mul", rms(m, x), m.weight(E))))
    m.output(m.op("Mul", rms(m, total, epsilon=1e-5), m.weight(E)), total)


@made
def layer_of_tokens_first_without_taps(m: Maker) -> None:
    x = m.input("x", ["S", "B", E])
    total = m.op("Add", tokens_first(m, x), x)
    y = m.op("LayerNormalization", total, m.weight(E), m.weight(E), axis=-1, epsilon=1e-3)
    inner = m.op("Relu", m.op("Add", m.op("MatMul", y, m.weight(E, 256)), m.weight(256)))
    m.output(m.op("Add", m.op("MatMul", inner, m.weight(256, E)), total))


@made
def cross_attention_of_tokens_first(m: Maker) -> None:
    x, memory = m.input("x", ["S", "B", E]), m.input("memory", ["T", "B", E])
    y = m.op("Add", x, tokens_first(m, x, memory))
    m.output(m.op("Add", y, tokens_first(m, y)), y)


@made
def norm_by_head_of_tokens_first(m: Maker) -> None:
    x = m.input("x", ["S", "B", E])
    def heads(y: str) -> str:
        return m.op("Reshape", y, m.ints(0, 0, H, D))
    q, k, v = (heads(m.op("MatMul", x, m.weight(E, E))) for _ in range(3))
    total = m.op("Add", q, k)
    q, k = (m.op("Mul", rms(m, y), m.weight(D)) for y in (total, k))
    q, k, v, total = (m.op("Transpose", y, perm=[1, 2, 0, 3]) for y in (q, k, v, total))
    y = m.op("MatMul", m.op("Softmax", m.scores(q, k), axis=-1), v)
    m.output(m.op("Reshape", m.op("Transpose", m.op("Add", y, total), perm=[2, 0, 1, 3]), m.ints(0, 0, -1)))


@made
def layer_norm_by_head_of_tokens_first(m: Maker) -> None:
    """GE joins the nodes of these norms itself: none is moved away from the others."""
    x = m.input("x", ["S", "B", E])
    def heads(y: str) -> str:
        return m.op("Reshape", y, m.ints(0, 0, H, D))
    def normed(y: str) -> str:
        y = centred(m, y)
        y = m.op("Div", y, m.op("Sqrt", m.op("Add", variance(m, y), m.const(1e-5))))
        return m.op("Add", m.op("Mul", y, m.weight(D)), m.weight(D))
    q, k, v = (heads(m.op("MatMul", x, m.weight(E, E))) for _ in range(3))
    q, k, v = (m.op("Transpose", y, perm=[1, 2, 0, 3]) for y in (normed(q), normed(k), v))
    cos, sin = tables(m)
    y = m.op("MatMul", m.op("Softmax", m.scores(rotation(m, q, cos, sin), rotation(m, k, cos, sin)), axis=-1), v)
    m.output(m.op("Reshape", m.op("Transpose", y, perm=[2, 0, 1, 3]), m.ints(0, 0, -1)))
