"""Linears with quantised weights or activations, in the spellings of quantisers: one more kind of block.

Weights are codes, dequantised in front of the MatMul (QDQ) or within MatMulNBits. Of these the reference is the same codes and
scales, dequantised in float32 as the original does and multiplied in float64: ordinary bounds hold, since nothing is rounded to a code.

Activations are rounded to codes (QuantizeLinear, or DynamicQuantizeLinear with MatMulInteger) where they are an input of the model and
nothing else. Such an operand is the same number in the original, in the reference and in what the optimizer writes, so that all of them
have the same codes, and what follows is a product of integers: ordinary bounds hold again. Anywhere else two numbers that differ by a
unit of float may have two codes, and no bound that means anything would hold for both.
"""

from __future__ import annotations

import random
import zlib
from typing import Any

import numpy as np

from fuzz.graph import TYPES, Graph

OF_WEIGHTS = ("dequantised", "dequantised", "blocks", "nbits")
OF_ACTIVATIONS = ("static", "dynamic")


def choose(rng: random.Random, opset: int, dtype: str) -> dict[str, Any] | None:
    """How the linears of a layer are quantised; None where the operators do not take the type."""
    if dtype != "float":
        return None
    kinds = [kind for kind in OF_WEIGHTS if (kind != "blocks" or opset >= 21)]
    return {"weights": rng.choice(kinds), "activations": rng.choice([None, *OF_ACTIVATIONS]), "codes": rng.choice(["int8", "uint8"]),
            "each_channel": opset >= 13 and rng.random() < 0.5, "zero": rng.random() < 0.5, "block": rng.choice([16, 32])}


def linear(g: Graph, x: str, width_in: int, width_out: int, stem: str, bias: bool, plan: dict[str, Any]) -> str:
    """x W (+ b) over the last axis, W and perhaps x as codes."""
    shape = [*g.shapes[x][:-1], width_out]
    with g.within(f"{stem}.quantised"):
        if plan["activations"] == "dynamic" and _is_input(g, x):
            y = _dynamic(g, x, width_in, width_out, plan, shape)
        elif plan["weights"] == "nbits" and width_in % plan["block"] == 0:
            y = _bits(g, x, width_in, width_out, plan, shape)
        else:
            if plan["activations"] == "static" and _is_input(g, x):
                x = _rounded(g, x, plan)
            y = g.op("MatMul", x, _dequantised(g, width_in, width_out, plan), shape=shape)
        return g.commuted("Add", y, g.weight("bias", [width_out], 0.3)) if bias else y


def _is_input(g: Graph, x: str) -> bool:
    """Whether nothing computes x, in a graph that nothing stands around."""
    return not g.inner and x in {i.name for i in g.inputs}


def _rng(g: Graph, stem: str) -> np.random.Generator:
    return np.random.default_rng([g.seed, zlib.crc32(f"{g.scope}/{stem}".encode())])


def _codes(g: Graph, shape: list[int], dtype: str) -> str:
    low, high = (0, 255) if dtype == "uint8" else (-127, 127)
    return g.tensor("weight", _rng(g, "codes").integers(low, high + 1, shape).astype(dtype), dtype)


def _scales(g: Graph, count: int | list[int] | None, width_in: int, reach: int) -> str:
    """Of codes up to `reach`, so that the weights are as large as those of other linears."""
    values = _rng(g, "scales").uniform(0.5, 1.5, count) * 2 * width_in**-0.5 / reach
    return g.const(values)


def _zero(plan: dict[str, Any], unsigned: int) -> int:
    """A zero point: the middle of codes without a sign, and 0 or a little beside it of those with one."""
    return unsigned if plan["codes"] == "uint8" else 3 * plan["zero"]


def _dequantised(g: Graph, width_in: int, width_out: int, plan: dict[str, Any]) -> str:
    blocks = plan["weights"] == "blocks" and width_in % plan["block"] == 0
    dtype = plan["codes"]
    codes = _codes(g, [width_in, width_out], dtype)
    zero = _zero(plan, 128)
    if blocks:
        rows = width_in // plan["block"]
        return g.op("DequantizeLinear", codes, _scales(g, [rows, width_out], width_in, 127), g.const(np.full([rows, width_out], zero), dtype), dtype=g.main,
                    shape=[width_in, width_out], axis=0, block_size=plan["block"])
    each = plan["each_channel"]
    inputs = [codes, _scales(g, width_out if each else None, width_in, 127)]
    if zero:
        inputs.append(g.const(np.full([width_out] if each else [], zero), dtype))
    return g.op("DequantizeLinear", *inputs, dtype=g.main, shape=[width_in, width_out], axis=1 if each else None)


def _bits(g: Graph, x: str, width_in: int, width_out: int, plan: dict[str, Any], shape: list[Any]) -> str:
    """MatMulNBits of 4 bits: two codes a byte, one scale a block, and a zero point a block or 8."""
    block = plan["block"]
    count = width_in // block
    packed = _codes(g, [width_out, count, block // 2], "uint8")
    inputs = [x, packed, _scales(g, width_out * count, width_in, 7)]
    if plan["zero"]:
        inputs.append(g.tensor("zeros", _rng(g, "zeros").integers(0, 256, [width_out * ((count + 1) // 2)]).astype("uint8"), "uint8"))
    return g.op("MatMulNBits", *inputs, domain="com.microsoft", dtype=g.main, shape=shape, K=width_in, N=width_out, bits=4, block_size=block)


def _rounded(g: Graph, x: str, plan: dict[str, Any]) -> str:
    """x as codes with a scale and a zero point that are constants, and back."""
    dtype = plan["codes"]
    scale, zero = g.const(0.04), g.const(_zero(plan, 120), dtype)
    codes = g.op("QuantizeLinear", x, scale, zero, dtype=dtype, shape=g.shapes[x])
    return g.op("DequantizeLinear", codes, scale, zero, dtype=g.main, shape=g.shapes[x])


def _dynamic(g: Graph, x: str, width_in: int, width_out: int, plan: dict[str, Any], shape: list[Any]) -> str:
    """Codes whose scale is computed of x, a product of integers, and its scales after it: what quantize_dynamic writes."""
    codes, scale, zero = g.op("DynamicQuantizeLinear", x, outputs=3, dtype=["uint8", g.main, "uint8"])
    dtype = plan["codes"]
    weight = _codes(g, [width_in, width_out], dtype)
    product = g.op("MatMulInteger", codes, weight, zero, g.const(_zero(plan, 128), dtype), dtype="int32", shape=shape)
    both = g.op("Mul", scale, _scales(g, None, width_in, 127), dtype=g.main, shape=[])
    return g.op("Mul", g.op("Cast", product, to=TYPES[g.main], dtype=g.main, shape=shape), both, shape=shape)
