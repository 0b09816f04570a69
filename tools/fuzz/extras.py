"""What models have around the parts that all of them share: sinks, ALiBi, gates of heads, scales of layers, routers, convolutions, poolings.
Most of it stands between things that are fused, and looks like a part of them."""

from __future__ import annotations

import random
from typing import Any

from fuzz import activations, norms, rotary
from fuzz.graph import TYPES, Graph

FIRST_SEED = 10_000_000  # smaller seeds are the graphs that they were: tests and docs/fuzzing.md name them
OF_ATTENTION = ("sink", "alibi", "output_gate", "head_gate", "value_norm", "difference", "query_scale", "shared_rotary_key", "clamped_scores")
OF_LAYER = ("layer_scale", "residual_scale", "stream_scale", "parallel", "router", "convolution", "mask_of_tokens")


def choose(rng: random.Random, layers: list[dict[str, Any]], layout: str) -> None:
    """Adds names of extras to the layers; nothing to two graphs of three."""
    if rng.random() < 0.65:
        return
    for layer in layers:
        extras = [name for name in OF_LAYER if rng.random() < 0.12]
        if layer["body"] == "attention" and layer["spelling"] == "spelled":
            extras += [name for name in OF_ATTENTION if rng.random() < 0.15]
        if layout != "bsh":
            extras = [name for name in extras if name not in ("head_gate", "shared_rotary_key", "parallel", "convolution", "mask_of_tokens")]
        layer["extras"] = extras


# Of attention.


def with_sink(g: Graph, scores: str, heads: int, island: bool) -> str:
    """One more column of scores, a number for each head (gpt-oss). island: scores are wider than what is stored."""
    shape = g.shapes[scores]
    column = g.reshape(g.weight("sinks", [heads]), [1] * (len(shape) - 3) + [heads, 1, 1])
    if island:
        column = g.cast(column, g.dtypes[scores])
    most = g.reduce("ReduceMax", scores, [-1])
    sinks = g.op("Add", g.op("Mul", most, g.const(0.0, g.dtypes[scores])), column, dtype=g.dtypes[scores])
    return g.op("Concat", scores, sinks, axis=-1, dtype=g.dtypes[scores])


def without_sink(g: Graph, probabilities: str, shape: list[Any]) -> str:
    return g.op("Slice", probabilities, g.ints([0]), g.ints([-1]), g.ints([-1]), shape=shape)


def alibi(g: Graph, scores: str, heads: int, queries: str, keys: str, past: str | None) -> str:
    """A slope for each head times the distance of key and query."""
    shape = g.shapes[scores]
    q, k = g.arange(queries), g.arange(keys)
    if past is not None:
        q = g.keep(q, g.op("Add", q, g.dim_value(past)))
    distance = g.op("Sub", g.unsqueeze(k, [0]), g.unsqueeze(q, [1]), dtype="int64", shape=[queries, keys])
    number = g.op("Cast", distance, to=TYPES[g.main], dtype=g.main, shape=[queries, keys])
    slopes = g.const([[[2.0 ** -(1 + h)]] for h in range(heads)])
    return g.keep_shape(g.commuted("Add", scores, g.commuted("Mul", slopes, number)), shape)


def query_scale(g: Graph, q: str, tokens: str) -> str:
    """Queries times a number of their position (Llama 4)."""
    shape = g.shapes[q]
    position = g.op("Cast", g.arange(tokens), to=TYPES[g.main], dtype=g.main, shape=[tokens])
    scale = g.op("Add", g.op("Mul", g.op("Log", g.op("Add", position, g.const(1.0))), g.const(0.1)), g.const(1.0))
    g.shapes[scale] = [tokens]
    return g.keep_shape(g.commuted("Mul", q, g.unsqueeze(scale, [1])), shape)


def shared_rotary_key(g: Graph, x: str, k: str, hidden: int, tokens: str, rope: dict[str, Any] | None) -> str:
    """The last half of each key is one vector for all heads, rotated or not (DeepSeek)."""
    shape = g.shapes[k]
    heads, width = shape[1], shape[3]
    own = width // 2
    one = g.reshape(activations.linear(g, x, hidden, width - own, "k_rope_proj"), ["b", tokens, 1, width - own])
    one = g.transpose(one, [0, 2, 1, 3])
    if rope is not None and (width - own) % 2 == 0:
        plan = {**rope, "part": width - own, "spelling": "spelled", "tables": "range"}
        one = rotary.rotate(g, one, plan, *rotary.tables(g, plan, tokens, None, 1, True), width - own)
    wide = ["b", heads, tokens, width - own]
    shared = g.op("Expand", one, g.dim_values(wide), shape=wide)
    return g.concat([g.slice(k, 3, 0, own), shared], -1, shape)


def clamped_scores(g: Graph, scores: str) -> str:
    shape = g.shapes[scores]
    return g.keep_shape(g.op("Max", g.op("Min", scores, g.const(4.0)), g.const(-4.0)), shape)


def value_norm(g: Graph, y: str, layer: dict[str, Any], width: int) -> str:
    return g.keep(y, norms.norm(g, y, layer["norm_plan"], width, "value_norm"))


def head_gate(g: Graph, y: str, x: str, hidden: int, heads: int) -> str:
    """Each head times a number of each token."""
    gate = g.op("Sigmoid", activations.linear(g, x, hidden, heads, "head_gate_proj"))
    g.shapes[gate] = ["b", "s", heads]
    return g.keep(y, g.commuted("Mul", y, g.unsqueeze(g.transpose(gate, [0, 2, 1]), [3])))


def output_gate(g: Graph, merged: str, x: str, hidden: int) -> str:
    shape = g.shapes[merged]
    gate = g.op("Sigmoid", activations.linear(g, x, hidden, shape[-1], "gate_proj"))
    return g.keep_shape(g.commuted("Mul", merged, gate), shape)


# Of layers.


def around_body(g: Graph, extras: list[str], x: str, y: str, last: int) -> str:
    """What becomes of the result of a body before it is added to the stream; x is what the body read."""
    shape = g.shapes[y]
    with g.within("extras"):
        if "parallel" in extras:
            mlp = {"gate": "two", "activation": {"kind": "silu", "spelling": "spelled", "half": "first", "root": "div", "cube": "mul"}, "factor": 1,
                   "bias": False, "spelling": "matmul"}
            y = g.keep_shape(g.commuted("Add", y, activations.mlp(g, x, mlp, last)), shape)
        if "convolution" in extras and not g.inner:
            turned = g.transpose(y, [0, 2, 1])
            turned = g.op("Conv", turned, g.weight("conv.weight", [last, 1, 3], 0.4), group=last, pads=[1, 1], kernel_shape=[3])
            y = g.op("Transpose", turned, perm=[0, 2, 1], shape=shape)
        if "router" in extras:
            p = g.op("Softmax", activations.linear(g, x, last, 4, "router"), axis=-1 if g.opset >= 13 else len(shape) - 1)
            best, _ = g.op("TopK", p, g.ints([2]), outputs=2, axis=-1, dtype=[g.main, "int64"])
            g.shapes[best] = [*shape[:-1], 2]
            y = g.keep_shape(g.commuted("Mul", y, g.reduce("ReduceSum", best, [-1])), shape)
        if "layer_scale" in extras:
            y = g.keep_shape(g.commuted("Mul", y, g.weight("gamma", [last], 0.2, 0.5)), shape)
        if "residual_scale" in extras:
            y = g.keep_shape(g.commuted("Mul", y, g.const(0.22)), shape)
        if "mask_of_tokens" in extras and not g.inner:
            mask = g.input("token_mask", g.main, ["b", "s"], "keep")
            y = g.keep_shape(g.commuted("Mul", y, g.unsqueeze(mask, [2])), shape)
    return y


def of_stream(g: Graph, extras: list[str], before: str) -> str:
    if "stream_scale" not in extras:
        return before
    return g.keep(before, g.commuted("Mul", before, g.const(1.5)))


def pooled(g: Graph, x: str, how: str) -> str:
    """A vector for each row of the batch: the mean of its tokens, or the first one, of length one."""
    shape = g.shapes[x]
    one = g.reduce("ReduceMean", x, [1], keepdims=1) if how == "mean" else g.slice(x, 1, 0, 1)
    one = g.squeeze(one, [1])
    length = g.reduce("ReduceL2", one, [-1])
    return g.op("Div", one, g.op("Max", length, g.const(1e-6)), shape=["b", shape[-1]])
