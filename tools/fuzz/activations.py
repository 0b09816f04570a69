"""Activations and gates, in the spellings of exporters and as operators."""

from __future__ import annotations

import math
import random
from typing import Any

from fuzz import quantised
from fuzz.graph import Graph

KINDS = ("relu", "gelu", "gelu", "gelu_tanh", "gelu_tanh", "quick_gelu", "silu", "silu", "hard_swish", "mish", "sigmoid", "tanh",
         "leaky_relu", "elu", "relu6")


def choose_activation(rng: random.Random, opset: int, dtype: str, kinds: tuple[str, ...] = KINDS) -> dict[str, Any]:
    return {"kind": rng.choice(kinds), "spelling": rng.choice(["spelled", "spelled", "spelled", "op"]), "half": rng.choice(["first", "last", "x"]),
            "root": rng.choice(["div", "mul"]), "cube": rng.choice(["pow", "mul"])}


def activation(g: Graph, x: str, plan: dict[str, Any]) -> str:
    return g.keep(x, _FUNCTIONS[plan["kind"]](g, x, plan))


def _gelu(g: Graph, x: str, plan: dict[str, Any]) -> str:
    if plan["spelling"] == "op" and g.opset >= 20:
        return g.op("Gelu", x)
    if plan["spelling"] == "op" and g.dtype == "float":
        return g.op("Gelu", x, domain="com.microsoft")
    inner = g.op("Div", x, g.const(math.sqrt(2))) if plan["root"] == "div" else g.commuted("Mul", x, g.const(1 / math.sqrt(2)))
    return _halved(g, x, g.commuted("Add", g.op("Erf", inner), g.const(1.0)), plan["half"])


def _halved(g: Graph, x: str, factor: str, where: str) -> str:
    if where == "first":
        return g.commuted("Mul", g.commuted("Mul", x, g.const(0.5)), factor)
    if where == "last":
        return g.commuted("Mul", g.commuted("Mul", x, factor), g.const(0.5))
    return g.commuted("Mul", x, g.commuted("Mul", factor, g.const(0.5)))


def _gelu_tanh(g: Graph, x: str, plan: dict[str, Any]) -> str:
    if plan["spelling"] == "op" and g.opset >= 20:
        return g.op("Gelu", x, approximate="tanh")
    if plan["spelling"] == "op" and g.dtype == "float":
        return g.op("FastGelu", x, domain="com.microsoft")
    cube = g.op("Pow", x, g.const(3.0)) if plan["cube"] == "pow" else g.commuted("Mul", g.op("Mul", x, x), x)
    inner = g.commuted("Add", x, g.commuted("Mul", cube, g.const(0.044715)))
    inner = g.commuted("Mul", inner, g.const(math.sqrt(2 / math.pi)))
    return _halved(g, x, g.commuted("Add", g.op("Tanh", inner), g.const(1.0)), plan["half"])


def _quick_gelu(g: Graph, x: str, plan: dict[str, Any]) -> str:
    return g.commuted("Mul", x, g.op("Sigmoid", g.commuted("Mul", x, g.const(1.702))))


def _silu(g: Graph, x: str, plan: dict[str, Any]) -> str:
    if plan["spelling"] == "op" and g.opset >= 24:
        return g.op("Swish", x)
    return g.commuted("Mul", x, g.op("Sigmoid", x))


def _hard_swish(g: Graph, x: str, plan: dict[str, Any]) -> str:
    if plan["spelling"] == "op" and g.opset >= 14:
        return g.op("HardSwish", x)
    shifted = g.commuted("Add", x, g.const(3.0))
    if g.opset >= 12 or g.dtype == "float":
        clipped = g.op("Clip", shifted, g.const(0.0), g.const(6.0))
        return g.op("Div", g.commuted("Mul", x, clipped), g.const(6.0))
    return g.commuted("Mul", x, g.op("HardSigmoid", x, alpha=1 / 6, beta=0.5))


def _mish(g: Graph, x: str, plan: dict[str, Any]) -> str:
    if plan["spelling"] == "op" and g.opset >= 18:
        return g.op("Mish", x)
    return g.commuted("Mul", x, g.op("Tanh", g.op("Softplus", x)))


_FUNCTIONS = {
    "relu": lambda g, x, plan: g.op("Relu", x), "gelu": _gelu, "gelu_tanh": _gelu_tanh, "quick_gelu": _quick_gelu, "silu": _silu,
    "hard_swish": _hard_swish, "mish": _mish, "sigmoid": lambda g, x, plan: g.op("Sigmoid", x), "tanh": lambda g, x, plan: g.op("Tanh", x),
    "leaky_relu": lambda g, x, plan: g.op("LeakyRelu", x, alpha=0.1), "elu": lambda g, x, plan: g.op("Elu", x, alpha=1.0),
    "relu6": lambda g, x, plan: g.op("Clip", x, g.const(0.0), g.const(6.0)),
}


def linear(g: Graph, x: str, width_in: int, width_out: int, stem: str, bias: bool = False, spelling: str = "matmul",
           weight: str | None = None) -> str:
    """x W (+ b), over the last axis."""
    if g.quantised is not None and weight is None:
        return quantised.linear(g, x, width_in, width_out, stem, bias, g.quantised)
    shape = [*g.shapes[x][:-1], width_out]
    if spelling == "gemm" and len(shape) == 2:
        transposed = g.chance(0.5)
        weight = g.weight(f"{stem}.weight", [width_out, width_in] if transposed else [width_in, width_out], width_in**-0.5)
        extra = [g.weight(f"{stem}.bias", [width_out], 0.3)] if bias else []
        return g.op("Gemm", x, weight, *extra, transB=1 if transposed else None, shape=shape)
    if weight is None and spelling == "transposed":
        weight = g.transpose(g.weight(f"{stem}.weight", [width_out, width_in], width_in**-0.5), [1, 0])
    weight = weight or g.weight(f"{stem}.weight", [width_in, width_out], width_in**-0.5)
    y = g.op("MatMul", x, weight, shape=shape)
    return g.commuted("Add", y, g.weight(f"{stem}.bias", [width_out], 0.3)) if bias else y


def choose_mlp(rng: random.Random, opset: int, dtype: str) -> dict[str, Any]:
    gate = rng.random() < 0.6
    kinds = ("silu", "silu", "silu", "gelu", "gelu_tanh", "gelu_tanh", "quick_gelu", "sigmoid", "relu") if gate else KINDS
    return {
        "body": "mlp", "gate": rng.choice(["two", "packed", "packed", "reversed"]) if gate else "none",
        "order": rng.choice(["act_first", "act_second"]),
        "activation": choose_activation(rng, opset, dtype, kinds), "factor": rng.choice([1, 2, 4]), "bias": rng.random() < 0.4,
        "spelling": rng.choice(["matmul", "matmul", "transposed", "gemm"]), "conv": rng.random() < 0.05,
    }


def mlp(g: Graph, x: str, plan: dict[str, Any], width: int) -> str:
    """Linear, activation or gate, linear."""
    inner = plan["factor"] * width
    bias, spelling = plan["bias"], plan["spelling"]
    with g.within("mlp"):
        if plan["gate"] == "none":
            h = activation(g, linear(g, x, width, inner, "fc1", bias, spelling), plan["activation"])
        elif plan["gate"] == "two":
            gate = activation(g, linear(g, x, width, inner, "gate_proj", bias, spelling), plan["activation"])
            up = linear(g, x, width, inner, "up_proj", bias, spelling)
            h = g.commuted("Mul", gate, up)
        else:
            packed = linear(g, x, width, 2 * inner, "gate_up_proj", bias, spelling)
            first, second = g.split(packed, len(g.shapes[packed]) - 1, [inner, inner])
            if plan["order"] == "act_second":
                h = g.commuted("Mul", first, activation(g, second, plan["activation"]))
            else:
                h = g.commuted("Mul", activation(g, first, plan["activation"]), second)
        return linear(g, h, inner, width, "down_proj", bias, spelling)
