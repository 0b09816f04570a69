"""Masks of attention: which keys a query may see, written as exporters write it; biases that are added to scores."""

from __future__ import annotations

import random
from typing import Any

import numpy as np

from fuzz.graph import TYPES, Graph

PROGRAMS = ("none", "causal", "top_left", "window", "padding", "additive_input", "bool_input", "constant", "full_additive", "bias")
FILLS = ("inf", "min", "-1e9", "-1e4", "-65504")


def choose_mask(rng: random.Random, cross: bool, cache: bool) -> dict[str, Any]:
    parts: list[str] = []
    if rng.random() < 0.25:
        pass
    elif cross:
        parts = rng.choice([["padding"], ["padding"], ["bool_input"], ["additive_input"], ["bias"], ["constant"]])
    else:
        parts = rng.choice([["causal"], ["causal"], ["causal", "padding"], ["causal", "padding"], ["padding"], ["window"],
                            ["window", "padding"], ["top_left"], ["bool_input"], ["additive_input"], ["full_additive"], ["constant"],
                            ["bias"], ["causal", "bias"], ["padding", "bias"], ["causal", "padding", "bias"]])
    if cache and "constant" in parts:
        parts = ["causal"]
    return {
        "parts": parts, "apply": rng.choice(["add", "add", "where", "combined_add"]), "fill": rng.choice(FILLS),
        "padding_type": rng.choice(["int64", "int64", "bool", "float"]), "causal": rng.choice(["compare", "compare", "trilu", "constant"]),
        "join": rng.choice(["and", "add", "where"]), "window": rng.choice([1, 2, 4]), "bias_heads": rng.random() < 0.7,
        "bias_batch": rng.random() < 0.2, "inverted": rng.random() < 0.3, "guard": rng.random() < 0.15, "cast": rng.random() < 0.3,
    }


def fill_value(g: Graph, plan: dict[str, Any]) -> float:
    kind = g.dtype
    least = {"float16": -65504.0, "float": float(np.finfo(np.float32).min), "bfloat16": -3.3895314e38, "double": -1.7976931348623157e308}[kind]
    if plan["fill"] == "inf":
        return float("-inf")
    if plan["fill"] == "min":
        return least
    return max(float(plan["fill"]), least)


def positions(g: Graph, queries: str, keys: str, past: str | None) -> tuple[str, str]:
    """Positions of queries [q, 1] and of keys [1, k]; the last query stands at the last key where there is a past."""
    q = g.arange(queries)
    if past is not None:
        q = g.keep(q, g.op("Add", q, g.dim_value(past)))
    return g.unsqueeze(q, [1]), g.unsqueeze(g.arange(keys), [0])


def _causal(g: Graph, plan: dict[str, Any], queries: str, keys: str, past: str | None) -> str:
    """bool [q, k], true where the key may be seen."""
    static = g.size(queries) is not None and g.size(keys) is not None
    window = plan["window"] if "window" in plan["parts"] else None
    if plan["causal"] == "constant" and static and (past is None or g.size(past) is not None):
        rows, columns = g.size(queries), g.size(keys)
        i = np.arange(rows)[:, None] + (g.size(past) if past else 0)
        j = np.arange(columns)[None]
        keep = (j <= i) & ((j > i - window) if window else True)
        return g.keep_shape(g.const(keep, "bool"), [queries, keys])
    if plan["causal"] == "trilu" and g.opset >= 15 and window is None:
        shape = g.concat([g.dim_value(queries), g.dim_value(keys)], 0)
        g.dtypes[shape] = "int64"
        ones = g.op("Expand", g.const(True, "bool", shape=[1, 1]), shape, dtype="bool", shape=[queries, keys])
        if g.chance(0.5):
            ones = g.op("ConstantOfShape", shape, value=onnx_true(), dtype="bool", shape=[queries, keys])
        inputs = [ones] if past is None else [ones, g.squeeze(g.dim_value(past), [0])]
        return g.op("Trilu", *inputs, upper=0, shape=[queries, keys])
    q, k = positions(g, queries, keys, past)
    if g.chance(0.5) and g.opset >= 12:
        keep = g.op("LessOrEqual", k, q, dtype="bool", shape=[queries, keys])
    else:
        keep = g.op("Not", g.op("Greater", k, q, dtype="bool"), dtype="bool", shape=[queries, keys])
    if window:
        near = g.op("Greater", k, g.op("Sub", q, g.ints(window)), dtype="bool", shape=[queries, keys])
        keep = g.commuted("And", keep, near)
    return keep


def onnx_true() -> Any:
    from onnx import helper

    return helper.make_tensor("", TYPES["bool"], [1], [True])


def padding_input(g: Graph, plan: dict[str, Any], keys: str) -> str:
    """The mask over keys [b, k] as an input: 1 or true where a key is real."""
    dtype = {"float": g.main}.get(plan["padding_type"], plan["padding_type"])
    suffix = {"s": "", "m": "_memory"}.get(keys, "_total")
    if plan["padding_type"] == "float":
        return g.input(f"mask{suffix}_float", dtype, ["b", keys], "keep")
    return g.input(f"attention_mask{suffix}" if dtype == "int64" else f"mask{suffix}_{dtype}", dtype, ["b", keys], "keep")


def _keep_parts(g: Graph, plan: dict[str, Any], queries: str, keys: str, past: str | None) -> list[str]:
    parts = []
    names = plan["parts"]
    if "causal" in names or "window" in names:
        parts.append(g.unsqueeze(_causal(g, plan, queries, keys, past), [0, 1]))
    if "top_left" in names:
        parts.append(g.unsqueeze(_causal(g, plan, queries, keys, None), [0, 1]))
    if "padding" in names:
        mask = padding_input(g, plan, keys)
        if g.dtypes[mask] != "bool":
            if g.dtypes[mask] == "int64" and plan["cast"]:
                mask = g.op("Greater", mask, g.const(0, "int64"), dtype="bool", shape=g.shapes[mask])
            else:
                mask = g.op("Cast", mask, to=TYPES["bool"], dtype="bool", shape=g.shapes[mask])
        parts.append(g.unsqueeze(mask, [1, 2]))
    if "bool_input" in names:
        parts.append(g.input(f"keep_{queries}_{keys.replace('+', '_')}", "bool", ["b", 1, queries, keys], "keep"))
    if "constant" in names and g.size(queries) is not None and g.size(keys) is not None:
        rng = np.random.default_rng(g.seed)
        keep = rng.random((g.size(queries), g.size(keys))) < 0.7
        if keep.shape[1]:
            keep[:, 0] = True
            if plan["inverted"] and keep.shape[0] > 1:
                keep[1] = False  # a row that keeps no key
        parts.append(g.keep_shape(g.const(keep[None, None], "bool"), [1, 1, queries, keys]))
    return parts


def _additive(g: Graph, keep: str, fill: float, how: str) -> str:
    """0 where kept, fill elsewhere."""
    if how == "where" or fill == float("-inf") or abs(fill) > 1e10:
        return g.op("Where", keep, g.const(0.0), g.const(fill), dtype=g.main, shape=g.shapes.get(keep))
    number = g.op("Cast", keep, to=TYPES[g.main], dtype=g.main, shape=g.shapes.get(keep))
    return g.keep(number, g.op("Mul", g.op("Sub", g.const(1.0), number), g.const(fill)))


class Mask:
    """What is done to scores [b, heads, q, k]: a bool that keeps, and values that are added."""

    def __init__(self, g: Graph, plan: dict[str, Any], heads: int, queries: str, keys: str, past: str | None):
        self.g, self.plan = g, plan
        self.keep: str | None = None
        self.added: list[str] = []
        self.biases: list[str] = []
        fill = fill_value(g, plan)
        with g.within("mask"):
            parts = _keep_parts(g, plan, queries, keys, past)
            if plan["join"] == "add" and plan["apply"] != "where":
                self.added = [_additive(g, part, fill, "where" if plan["inverted"] else "mul") for part in parts]
            elif parts:
                self.keep = parts[0]
                for part in parts[1:]:
                    self.keep = g.keep_shape(g.commuted("And", self.keep, part), ["b", 1, queries, keys])
                if plan["apply"] != "where":
                    self.added = [_additive(g, self.keep, fill, "where" if plan["inverted"] else "mul")]
            if "additive_input" in plan["parts"]:
                self.added.append(g.input(f"additive_{keys.replace('+', '_')}", g.main, ["b", 1, 1, keys], "additive"))
            if "full_additive" in plan["parts"]:
                self.added.append(g.input(f"additive_{queries}_{keys.replace('+', '_')}", g.main, ["b", 1, queries, keys], "additive"))
            if "bias" in plan["parts"]:
                self.biases.append(self._bias(heads, queries, keys))
            if len(self.added) > 1 and plan["apply"] == "combined_add":
                total = self.added[0]
                for part in self.added[1:]:
                    total = g.commuted("Add", total, part)
                self.added = [g.keep_shape(total, ["b", 1, queries, keys])]

    def _bias(self, heads: int, queries: str, keys: str) -> str:
        g, plan = self.g, self.plan
        if g.size(queries) is not None and g.size(keys) is not None and g.chance(0.5):
            rng = np.random.default_rng(g.seed + 1)
            return g.const(rng.standard_normal((1, heads if plan["bias_heads"] else 1, g.size(queries), g.size(keys))))
        return g.input(f"bias_{queries}_{keys.replace('+', '_')}_{heads if plan['bias_heads'] else 1}{'b' if plan['bias_batch'] else ''}", g.main,
                       ["b" if plan["bias_batch"] else 1, heads if plan["bias_heads"] else 1, queries, keys], "bias")

    def apply(self, scores: str) -> str:
        g = self.g
        shape = g.shapes[scores]
        for value in [*self.biases, *self.added]:
            scores = g.keep_shape(g.commuted("Add", scores, value), shape)
        if self.keep is not None and self.plan["apply"] == "where":
            fill = g.const(fill_value(g, self.plan))
            if self.plan["inverted"]:
                scores = g.op("Where", g.op("Not", self.keep, dtype="bool"), fill, scores, dtype=g.main, shape=shape)
            else:
                scores = g.op("Where", self.keep, scores, fill, dtype=g.main, shape=shape)
        return scores
