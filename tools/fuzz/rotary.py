"""Rotary position embeddings: halves and pairs, of whole heads or a part, with tables from positions or constants."""

from __future__ import annotations

import random
from typing import Any

import numpy as np

from fuzz.graph import TYPES, Graph


def choose_rotary(rng: random.Random, opset: int, dtype: str, width: int) -> dict[str, Any]:
    spellings = ["spelled"] * 4
    if opset >= 23:
        spellings += ["op", "op"]
    if dtype == "float":
        spellings.append("contrib")
    if width % 4:
        spellings = ["spelled"]
    part = width if rng.random() < 0.7 or width % 8 else width // 2
    return {
        "mode": rng.choice(["half", "half", "half", "interleaved"]), "part": part, "first": rng.random() < 0.7,
        "tables": rng.choice(["positions", "positions", "range", "constant"]), "spelling": rng.choice(spellings),
        "island": rng.random() < 0.5, "negate": rng.choice(["neg", "mul"]), "full": rng.random() < 0.8,
    }


def tables(g: Graph, plan: dict[str, Any], tokens: str, past: str | None, heads_axis: int, rank4: bool) -> tuple[str, str]:
    """cos and sin, [b or 1, tokens, part] with an axis for the heads."""
    part = plan["part"]
    half = part // 2
    repeated = plan["mode"] == "half"
    if plan["tables"] == "constant" and g.size(tokens) is not None:
        angles = np.outer(np.arange(g.size(tokens)), 1.0 / 100 ** (np.arange(half) / half))
        angles = np.concatenate([angles, angles], -1) if repeated else np.repeat(angles, 2, -1)
        cos, sin = g.const(np.cos(angles)), g.const(np.sin(angles))
        for one in (cos, sin):
            g.shapes[one] = [tokens, part]
        if rank4:
            axes = [0, 2] if heads_axis == 2 else [0, 1]
            return g.unsqueeze(cos, axes), g.unsqueeze(sin, axes)
        axis = 0 if heads_axis == 0 else 1
        return g.unsqueeze(cos, [axis]), g.unsqueeze(sin, [axis])
    if plan["tables"] == "positions" and rank4:
        positions = g.input("position_ids", "int64", ["b", tokens], "positions")
        column = g.unsqueeze(positions, [2])
    else:
        positions = g.arange(tokens)
        if past is not None:
            positions = g.keep(positions, g.op("Add", positions, g.dim_value(past)))
        column = g.unsqueeze(g.unsqueeze(positions, [0]), [2]) if rank4 else g.unsqueeze(positions, [1])
    wide = plan["island"]
    dtype = g.wide if wide else g.main
    column = g.op("Cast", column, to=TYPES[dtype], dtype=dtype, shape=g.shapes[column])
    inverse = g.const(1.0 / 100 ** (np.arange(half) / half), wide=wide)
    if rank4 and g.chance(0.5):
        angles = g.op("MatMul", column, g.unsqueeze(inverse, [0]), shape=[*g.shapes[column][:-1], half])
    else:
        angles = g.op("Mul", column, inverse, shape=[*g.shapes[column][:-1], half])
    shape = [*g.shapes[column][:-1], part]
    if repeated:
        angles = g.concat([angles, angles], -1, shape)
    else:
        last = g.unsqueeze(angles, [len(shape)])
        angles = g.reshape(g.concat([last, last], -1), shape) if None not in [g.size(d) for d in shape] else g.op(
            "Reshape", g.concat([last, last], -1), g.ints([0] * (len(shape) - 1) + [part]) if len(shape) == 3 else g.ints([0, part]), shape=shape)
    cos, sin = g.keep(angles, g.op("Cos", angles)), g.keep(angles, g.op("Sin", angles))
    if wide:
        cos, sin = g.cast(cos, g.main), g.cast(sin, g.main)
    axis = heads_axis
    return g.unsqueeze(cos, [axis]), g.unsqueeze(sin, [axis])


def rotate(g: Graph, x: str, plan: dict[str, Any], cos: str, sin: str, width: int) -> str:
    """x with its part rotated; the last axis is `width` wide."""
    part = plan["part"]
    shape = g.shapes[x]
    axis = len(shape) - 1
    with g.within("rotary"):
        rest = None
        if part != width:
            sizes = [part, width - part] if plan["first"] else [width - part, part]
            a, b = g.split(x, axis, sizes)
            x, rest = (a, b) if plan["first"] else (b, a)
        y = g.keep_shape(_rotated(g, x, plan, cos, sin), [*shape[:-1], part])
        if rest is None:
            return y
        return g.concat([y, rest] if plan["first"] else [rest, y], -1, shape)


def _rotated(g: Graph, x: str, plan: dict[str, Any], cos: str, sin: str) -> str:
    shape = g.shapes[x]
    axis, part = len(shape) - 1, plan["part"]
    half = part // 2
    if plan["mode"] == "half":
        first, second = g.split(x, axis, [half, half])
        negative = g.op("Neg", second) if plan["negate"] == "neg" else g.op("Mul", second, g.const(-1.0))
        turned = g.concat([negative, first], -1, shape)
    else:
        even = g.op("Slice", x, g.ints([0]), g.ints([2**63 - 1]), g.ints([axis]), g.ints([2]), shape=[*shape[:-1], half])
        odd = g.op("Slice", x, g.ints([1]), g.ints([2**63 - 1]), g.ints([axis]), g.ints([2]), shape=[*shape[:-1], half])
        pair = [g.unsqueeze(g.keep(odd, g.op("Neg", odd)), [axis + 1]), g.unsqueeze(even, [axis + 1])]
        stacked = g.concat(pair, -1, [*shape[:-1], half, 2])
        if len(shape) <= 4 and g.chance(0.5):
            turned = g.op("Reshape", stacked, g.ints([0] * (len(shape) - 1) + [part]), shape=shape)
        else:
            turned = g.op("Reshape", stacked, g.op("Shape", x, dtype="int64"), shape=shape)
    return g.commuted("Add", g.commuted("Mul", x, cos), g.commuted("Mul", turned, sin))


def rotate_by_operator(g: Graph, x: str, plan: dict[str, Any], tokens: str) -> str:
    """ONNX's RotaryEmbedding of [b, heads, tokens, width], or com.microsoft's."""
    part = plan["part"]
    half = part // 2
    interleaved = int(plan["mode"] == "interleaved")
    angles = np.outer(np.arange(160), 1.0 / 100 ** (np.arange(half) / half))
    cos, sin = g.const(np.cos(angles)), g.const(np.sin(angles))
    positions = g.input("position_ids", "int64", ["b", tokens], "positions")
    more = {"interleaved": interleaved}
    if plan["spelling"] == "contrib":
        return g.keep(x, g.op("RotaryEmbedding", x, positions, cos, sin, domain="com.microsoft", **more))
    if part != g.shapes[x][-1]:
        more["rotary_embedding_dim"] = part
    return g.keep(x, g.op("RotaryEmbedding", x, cos, sin, positions, **more))
