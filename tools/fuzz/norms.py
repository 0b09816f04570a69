"""Norms of every kind, in the spellings of exporters and as operators of ONNX and com.microsoft."""

from __future__ import annotations

import random
from typing import Any

from fuzz.graph import Graph

EPSILONS = (1e-6, 1e-6, 1e-6, 1e-5, 1e-5, 1e-12, 1e-3)


def choose_norm(rng: random.Random, opset: int, dtype: str, kinds: tuple[str, ...] = ("rms", "layer")) -> dict[str, Any]:
    kind = rng.choice(kinds)
    spellings = ["spelled"] * 4
    if kind == "layer" and opset >= 17:
        spellings += ["op", "op"]
    if kind == "rms" and opset >= 23:
        spellings += ["op", "op"]
    if dtype == "float":
        spellings.append("contrib")
    return {
        "kind": kind, "spelling": rng.choice(spellings), "epsilon": rng.choice(EPSILONS),
        "weight": rng.choice(["normal", "normal", "normal", "ones", "one_plus", "none", "scalar"]),
        "bias": rng.choice(["normal", "normal", "none", "zeros"]),
        "island": rng.choice(["none", "none", "inner", "outer", "weight_wide"]) if dtype in ("float16", "bfloat16") else rng.choice(
            ["none"] * 5 + ["noise"]),
        "square": rng.choice(["pow", "mul"]), "root": rng.choice(["div", "div", "reciprocal", "rsqrt", "pow"]),
        "two_subs": rng.random() < 0.2, "one_pass": rng.random() < 0.1, "negative_axis": rng.random() < 0.8,
    }


def norm(g: Graph, x: str, plan: dict[str, Any], width: int, scope: str = "norm") -> str:
    """A norm over the last axis, which is `width` wide."""
    with g.within(scope):
        if plan["spelling"] == "op":
            return _operator(g, x, plan, width)
        if plan["spelling"] == "contrib" and g.dtype == "float":
            return _contrib(g, x, plan, width)
        return _spelled(g, x, plan, width)


def _weight(g: Graph, plan: dict[str, Any], width: int) -> str:
    if plan["weight"] in ("ones", "none"):
        return g.weight("weight", [width], kind="ones")
    return g.weight("weight", [width], scale=0.3, offset=1.0)


def _operator(g: Graph, x: str, plan: dict[str, Any], width: int) -> str:
    axis = -1 if plan["negative_axis"] or x not in g.shapes else len(g.shapes[x]) - 1
    if plan["kind"] == "rms":
        return g.keep(x, g.op("RMSNormalization", x, _weight(g, plan, width), axis=axis, epsilon=plan["epsilon"]))
    inputs = [x, _weight(g, plan, width)]
    if plan["bias"] != "none":
        inputs.append(g.weight("bias", [width], scale=0.3, kind=plan["bias"]))
    return g.keep(x, g.op("LayerNormalization", *inputs, axis=axis, epsilon=plan["epsilon"]))


def _contrib(g: Graph, x: str, plan: dict[str, Any], width: int) -> str:
    if plan["kind"] == "rms":
        return g.keep(x, g.op("SimplifiedLayerNormalization", x, _weight(g, plan, width), axis=-1, epsilon=plan["epsilon"], stash_type=1))
    zeros = g.weight("skip_weight", [width], kind="zeros")
    skip = g.keep(x, g.op("Mul", x, zeros))
    inputs = [x, skip, _weight(g, plan, width)]
    if plan["bias"] != "none":
        inputs.append(g.weight("bias", [width], scale=0.3, kind=plan["bias"]))
    return g.keep(x, g.op("SkipLayerNormalization", *inputs, domain="com.microsoft", epsilon=plan["epsilon"]))


def square(g: Graph, x: str, how: str, wide: bool) -> str:
    if how == "mul":
        return g.keep(x, g.op("Mul", x, x))
    return g.keep(x, g.op("Pow", x, g.const(2.0, wide=wide)))


def over_root(g: Graph, x: str, variance: str, epsilon: float, how: str, wide: bool) -> str:
    """x / sqrt(variance + epsilon)."""
    total = g.commuted("Add", variance, g.const(epsilon, wide=wide))
    if how == "pow":
        return g.commuted("Mul", x, g.op("Pow", total, g.const(-0.5, wide=wide)))
    root = g.op("Sqrt", total)
    if how == "div":
        return g.keep(x, g.op("Div", x, root))
    if how == "reciprocal":
        return g.commuted("Mul", x, g.op("Reciprocal", root))
    return g.commuted("Mul", x, g.op("Div", g.const(1.0, wide=wide), root))


def _spelled(g: Graph, x: str, plan: dict[str, Any], width: int) -> str:
    island = plan["island"] != "none"
    if island:
        x = g.cast(x, g.wide)
    rank = len(g.shapes[x])
    axes = [-1] if plan["negative_axis"] else [rank - 1]
    if plan["kind"] == "rms":
        centred = x
        variance = g.reduce("ReduceMean", square(g, x, plan["square"], island), axes)
    elif plan["one_pass"]:
        mean = g.reduce("ReduceMean", x, axes)
        moment = g.reduce("ReduceMean", square(g, x, plan["square"], island), axes)
        variance = g.op("Sub", moment, square(g, mean, plan["square"], island))
        centred = g.keep(x, g.op("Sub", x, mean))
    else:
        mean = g.reduce("ReduceMean", x, axes)
        centred = g.keep(x, g.op("Sub", x, mean))
        again = g.keep(x, g.op("Sub", x, mean)) if plan["two_subs"] else centred
        variance = g.reduce("ReduceMean", square(g, again, plan["square"], island), axes)
    y = over_root(g, centred, variance, plan["epsilon"], plan["root"], island)
    late = island and plan["island"] == "weight_wide"
    if island and not late:
        y = g.cast(y, g.main)
    if plan["weight"] != "none":
        weight = _written_weight(g, plan, width)
        y = g.commuted("Mul", y, g.cast(weight, g.wide) if late else weight)
    if plan["kind"] == "layer" and plan["bias"] != "none":
        bias = g.weight("bias", [width], scale=0.3, kind=plan["bias"])
        y = g.commuted("Add", y, g.cast(bias, g.wide) if late else bias)
    return g.cast(y, g.main) if late else y


def _written_weight(g: Graph, plan: dict[str, Any], width: int) -> str:
    if plan["weight"] == "one_plus":
        return g.commuted("Add", g.weight("weight", [width], scale=0.3), g.const(1.0))
    if plan["weight"] == "scalar":
        return g.weight("weight", [1], scale=0.3, offset=1.0)
    return g.weight("weight", [width], scale=0.3, offset=1.0, kind=plan["weight"])


def group_norm(g: Graph, x: str, plan: dict[str, Any], channels: int, groups: int) -> str:
    """GroupNorm of [b, channels, s], as PyTorch exports it: InstanceNormalization between two Reshapes, or the operator."""
    with g.within("group_norm"):
        shape = g.shapes[x]
        weight, bias = g.weight("weight", [channels], 0.3, 1.0), g.weight("bias", [channels], 0.3)
        if g.opset >= 21 and plan["spelling"] == "op":
            return g.keep(x, g.op("GroupNormalization", x, weight, bias, num_groups=groups, epsilon=plan["epsilon"]))
        before = g.op("Reshape", x, g.ints([0, groups, -1]))
        normed = g.op("InstanceNormalization", before, g.const([1.0] * groups), g.const([0.0] * groups), epsilon=plan["epsilon"])
        back = g.op("Reshape", normed, g.op("Shape", x, dtype="int64"))
        scaled = g.commuted("Mul", back, g.unsqueeze(weight, [1]))
        return g.keep_shape(g.commuted("Add", scaled, g.unsqueeze(bias, [1])), shape)
