"""Attention: projections, norms of heads, rotary, caches, grouped heads, masks, in the spellings of exporters and as operators."""

from __future__ import annotations

import math
import random
from typing import Any

import numpy as np
from onnx import helper

from fuzz import activations, extras, masks, norms, rotary
from fuzz.graph import TYPES, Graph

WIDTHS = (16, 16, 32, 64, 64, 64, 128, 8, 24, 80)


def choose_attention(rng: random.Random, opset: int, dtype: str, layout: str, heads: int, width: int) -> dict[str, Any]:
    batched = layout in ("bsh", "sbh", "bnsd")
    cross = batched and rng.random() < 0.15
    cache = batched and not cross and rng.random() < 0.3
    groups = [k for k in range(1, heads + 1) if heads % k == 0]
    operators = ["spelled"] * 7
    if opset >= 23 and layout == "bsh":
        operators += ["onnx", "onnx", "onnx"]
    if dtype == "float" and layout == "bsh" and not cross:
        operators += ["mha", "attention", "gqa"]
    spelling = rng.choice(operators)
    if spelling == "gqa":
        cache = False
    packed3 = spelling == "onnx" and rng.random() < 0.5
    plan = {
        "body": "attention", "spelling": spelling, "cross": cross, "cache": cache,
        "kv_heads": rng.choice([heads, heads, *groups]) if spelling in ("spelled", "onnx") else heads,
        "value_width": width if rng.random() < 0.9 else rng.choice([8, 16, 32, 64]),
        "projection": rng.choice(["separate", "separate", "separate", "packed", "shared_qk"]), "bias": rng.random() < 0.3,
        "qk_norm": norms.choose_norm(rng, opset, dtype) if rng.random() < 0.2 else None,
        "rotary": rotary.choose_rotary(rng, opset, dtype, width) if rng.random() < 0.5 and not cross and width % 2 == 0 else None,
        "rotary_before_transpose": rng.random() < 0.35, "mask": masks.choose_mask(rng, cross, cache),
        "scale": rng.choice(["mul", "div", "query", "both", "none", "odd"]), "transpose_key": rng.choice(["direct", "twice"]),
        "repeat": rng.choice(["expand", "expand", "tile", "concat"]), "softmax": rng.choice(["plain", "plain", "island"]),
        "softcap": rng.random() < 0.06, "present": rng.random() < 0.8, "merged_heads": rng.random() < 0.3,
        "einsum": rng.random() < 0.1 and opset >= 12, "flat": packed3, "filter": rng.choice([None, None, -1.0, -10000.0, -1e30]),
        "inner_rotary": rng.random() < 0.4, "local_window": rng.choice([None, None, 2, 5]),
    }
    if not batched:
        plan["kv_heads"] = heads if plan["merged_heads"] else plan["kv_heads"]
        plan["mask"]["parts"] = [p for p in plan["mask"]["parts"] if p in ("causal", "top_left", "window", "constant")]
    if layout == "bnsd":
        plan["projection"], plan["value_width"], plan["kv_heads"] = "separate", width, heads
    if plan["projection"] == "shared_qk":
        plan["kv_heads"] = heads
    if plan["spelling"] != "spelled" and plan["rotary"] is not None:
        plan["rotary_before_transpose"] = False
    if packed3:
        plan["qk_norm"] = plan["rotary"] = None
    if plan["spelling"] != "spelled" and "constant" in plan["mask"]["parts"]:
        plan["mask"]["inverted"] = False  # of a row without a key operators of ONNX Runtime make 0, and ONNX an average
    return plan


class Attention:
    """One attention over the stream x; heads x width is the width of the stream."""

    def __init__(self, g: Graph, plan: dict[str, Any], layout: str, heads: int, width: int, memory: str | None):
        self.g, self.plan, self.layout = g, plan, layout
        self.heads, self.width, self.kv = heads, width, plan["kv_heads"]
        self.value_width = plan["value_width"]
        self.hidden = heads * width
        self.memory = memory
        self.extras = plan.get("extras", [])
        self.batched = layout in ("bsh", "sbh", "bnsd")
        self.source_tokens = "m" if plan["cross"] else "s"
        self.past = "p" if plan["cache"] else None
        self.keys = "p+s" if plan["cache"] else self.source_tokens

    def run(self, x: str) -> str:
        with self.g.within("attn"):
            if self.plan["spelling"] == "spelled":
                return self._spelled(x)
            return self._by_operator(x)

    # Projections.

    def _project(self, x: str) -> tuple[str, str, str]:
        g, plan = self.g, self.plan
        source = self.memory if plan["cross"] else x
        sizes = [self.heads * self.width, self.kv * self.width, self.kv * self.value_width]
        if self.layout == "bnsd":
            return tuple(activations.linear(g, one, self.width, self.width, f"{name}_proj", plan["bias"])
                         for one, name in ((x, "q"), (source, "k"), (source, "v")))  # type: ignore[return-value]
        if plan["projection"] == "packed" and not plan["cross"]:
            packed = activations.linear(g, x, self.hidden, sum(sizes), "qkv_proj", plan["bias"])
            q, k, v = g.split(packed, len(g.shapes[packed]) - 1, sizes)
            return q, k, v
        q = activations.linear(g, x, self.hidden, sizes[0], "q_proj", plan["bias"])
        if plan["projection"] == "shared_qk" and not plan["cross"]:
            k = q
        else:
            k = activations.linear(g, source, self.hidden, sizes[1], "k_proj", plan["bias"])
        return q, k, activations.linear(g, source, self.hidden, sizes[2], "v_proj", plan["bias"])

    def _heads(self, x: str, heads: int, width: int, tokens: str) -> str:
        """[.., tokens, heads, width] of a projection, before the Transpose."""
        lead = {"bsh": ["b", tokens], "sbh": [tokens, "b"], "sh": [tokens]}[self.layout]
        return self.g.reshape(x, [*lead, heads, width])

    def _to_front(self, x: str) -> str:
        """heads before tokens."""
        return self.g.transpose(x, {"bsh": [0, 2, 1, 3], "sbh": [1, 2, 0, 3], "sh": [1, 0, 2]}[self.layout])

    def _rotary(self, x: str, tokens: str, tables: tuple[str, str], width: int) -> str:
        return rotary.rotate(self.g, x, self.plan["rotary"], *tables, width)

    def _queries_and_keys(self, x: str) -> tuple[str, str, str]:
        """q, k, v with heads in front, normed and rotated."""
        g, plan = self.g, self.plan
        q, k, v = self._project(x)
        tokens = self.source_tokens
        rope = plan["rotary"]
        early = rope is not None and plan["rotary_before_transpose"] and self.layout in ("bsh", "sh") and rope["spelling"] == "spelled"
        shared = q == k
        if self.layout != "bnsd":
            q = self._heads(q, self.heads, self.width, "s")
            k = q if shared else self._heads(k, self.kv, self.width, tokens)
            v = self._heads(v, self.kv, self.value_width, tokens)
        if plan["qk_norm"] is not None:
            q = norms.norm(g, q, plan["qk_norm"], self.width, "q_norm")
            k = q if shared and g.chance(0.3) else norms.norm(g, k, plan["qk_norm"], self.width, "k_norm")
        if early:
            tables = rotary.tables(g, rope, "s", self.past, 2 if self.batched else 1, self.batched)
            q, k = self._rotary(q, "s", tables, self.width), self._rotary(k, "s", tables, self.width)
        if self.layout != "bnsd":
            q, k, v = self._to_front(q), self._to_front(k), self._to_front(v)
        if rope is not None and not early:
            if rope["spelling"] != "spelled" and self.batched:
                q, k = rotary.rotate_by_operator(g, q, rope, "s"), rotary.rotate_by_operator(g, k, rope, "s")
            else:
                tables = rotary.tables(g, rope, "s", self.past, 1 if self.batched else 0, self.batched)
                q, k = self._rotary(q, "s", tables, self.width), self._rotary(k, "s", tables, self.width)
        return q, k, v

    def _cached(self, x: str, which: str, width: int) -> str:
        g = self.g
        past = g.input(f"past_{which}{g.scope.replace('/', '_')}", g.main, ["b", self.kv, "p", width], "past")
        total = g.concat([past, x], 2 if g.chance(0.7) else -2, ["b", self.kv, "p+s", width])
        if self.plan["present"] and not g.inner:
            g.outputs.append(total)
        return total

    def _repeat(self, x: str, width: int) -> str:
        g = self.g
        if self.kv == self.heads:
            return x
        times = self.heads // self.kv
        shape = g.shapes[x]
        axis = len(shape) - 3
        wide = [*shape[: axis + 1], times, *shape[axis + 1 :]]
        column = g.unsqueeze(x, [axis + 1])
        if self.plan["repeat"] == "expand":
            repeated = g.op("Expand", column, g.dim_values(wide), shape=wide)
        elif self.plan["repeat"] == "tile":
            repeated = g.op("Tile", column, g.ints([1] * (axis + 1) + [times] + [1] * (len(shape) - axis - 1)), shape=wide)
        else:
            repeated = g.concat([column] * times, axis + 1, wide)
        return g.reshape(repeated, [*shape[:axis], self.heads, *shape[axis + 1 :]])

    # The products.

    def _spelled(self, x: str) -> str:
        g, plan = self.g, self.plan
        q, k, v = self._queries_and_keys(x)
        if "query_scale" in self.extras:
            q = extras.query_scale(g, q, "s")
        if "shared_rotary_key" in self.extras and not plan["cross"]:
            k = extras.shared_rotary_key(g, x, k, self.hidden, "s", plan["rotary"])
        if self.past is not None:
            k, v = self._cached(k, "key", self.width), self._cached(v, "value", self.value_width)
        k, v = self._repeat(k, self.width), self._repeat(v, self.value_width)
        factor = 1 / math.sqrt(self.width) if plan["scale"] != "odd" else 0.3
        if plan["scale"] == "query":
            q = g.commuted("Mul", q, g.const(factor))
        elif plan["scale"] == "both":
            q, k = g.commuted("Mul", q, g.const(math.sqrt(factor))), g.commuted("Mul", k, g.const(math.sqrt(factor)))
        rank = len(g.shapes[q])
        lead = g.shapes[q][:-2]
        scores_shape = [*lead, "s", self.keys]
        if plan["einsum"] and rank == 4:
            scores = g.op("Einsum", q, k, equation="bhqd,bhkd->bhqk", shape=scores_shape)
        else:
            swap = [*range(rank - 2), rank - 1, rank - 2]
            scores = g.op("MatMul", q, g.transpose(k, swap), shape=scores_shape)
        if plan["scale"] in ("mul", "odd"):
            scores = g.commuted("Mul", scores, g.const(factor))
        elif plan["scale"] == "div":
            scores = g.keep(scores, g.op("Div", scores, g.const(1 / factor)))
        if plan["softcap"]:
            cap = g.op("Tanh", g.op("Div", scores, g.const(5.0)))
            scores = g.keep_shape(g.op("Mul", cap, g.const(5.0)), scores_shape)
        if "clamped_scores" in self.extras:
            scores = extras.clamped_scores(g, scores)
        if "alibi" in self.extras:
            scores = extras.alibi(g, scores, self.heads, "s", self.keys, self.past)
        unmasked = scores
        scores = self._masked(scores, rank)
        probabilities = self._softmax(scores)
        if "difference" in self.extras:
            other = self._softmax(g.keep_shape(g.commuted("Mul", unmasked, g.const(0.4)), scores_shape))
            probabilities = g.op("Sub", probabilities, g.commuted("Mul", other, g.const(0.2)), shape=scores_shape)
        if plan["einsum"] and rank == 4:
            y = g.op("Einsum", probabilities, v, equation="bhqk,bhkd->bhqd", shape=[*lead, "s", self.value_width])
        else:
            y = g.op("MatMul", probabilities, v, shape=[*lead, "s", self.value_width])
        if self._may_see_no_key():
            y = self._poisoned(scores, y)
        if "value_norm" in self.extras:
            y = extras.value_norm(g, y, plan, self.value_width)
        if "head_gate" in self.extras:
            y = extras.head_gate(g, y, x, self.hidden, self.heads)
        return self._merged(y, x)

    def _may_see_no_key(self) -> bool:
        """Whether there may be such rows, and they are wanted to be told apart."""
        # An attention with a constant mask and such a row is left as it is: its NaN is that of the original. But the next attention may pass
        # over a key that is NaN and masked, where a sum with -inf is NaN.
        parts = set(self.plan["mask"]["parts"])
        return self.g.poison is not None and bool(parts & {"padding", "bool_input", "additive_input", "full_additive", "constant"})

    def _masked(self, scores: str, rank: int) -> str:
        g, plan = self.g, self.plan
        if not plan["mask"]["parts"]:
            return scores
        if rank == 4:
            return masks.Mask(g, plan["mask"], self.heads, "s", self.keys, self.past).apply(scores)
        mask = masks.Mask(g, plan["mask"], self.heads, "s", self.keys, self.past)
        shape = g.shapes[scores]
        mask.keep = g.squeeze(mask.keep, [0]) if mask.keep is not None else None
        mask.added = [g.squeeze(a, [0]) for a in mask.added]
        return g.keep_shape(mask.apply(scores), shape)

    def _softmax(self, scores: str) -> str:
        g, plan = self.g, self.plan
        island = plan["softmax"] == "island" and g.dtype in ("float16", "bfloat16")
        inner = g.cast(scores, g.wide) if island else scores
        axis = -1 if g.opset < 13 or g.chance(0.7) else len(g.shapes[scores]) - 1
        if "sink" in self.extras:
            wide = extras.with_sink(g, inner, self.heads, island)
            p = extras.without_sink(g, g.op("Softmax", wide, axis=axis), g.shapes[scores])
        else:
            p = g.keep(scores, g.op("Softmax", inner, axis=axis))
        if island:
            p = g.cast(p, g.main)
        if plan["mask"]["guard"] and plan["mask"]["parts"]:
            p = g.op("Where", g.op("IsNaN", p, dtype="bool"), g.const(0.0), p, dtype=g.main, shape=g.shapes[p])
        return p

    def _poisoned(self, scores: str, y: str) -> str:
        """Another value where a query may see no key: what depends on it, any value will do. `scores`: of all keys, or what is
        added to them, or which of them are kept; with one axis more than y where that has its heads side by side."""
        g = self.g
        spellings, produced = g.noise.getstate(), len(g.produced)
        kept = g.dtypes[scores] == "bool"
        if kept:
            scores = g.op("Cast", scores, to=TYPES[g.main], dtype=g.main, shape=g.shapes[scores])
        shape = g.shapes.get(scores)
        if g.exact and shape is not None:  # of no keys at all ONNX Runtime keeps the axis of a ReduceMax
            more = g.ints([0] * (2 * len(shape) - 1) + [1])
            scores = g.op("Pad", scores, more, g.const(0.0 if kept else -np.inf), shape=[*shape[:-1], None])
        most = g.reduce("ReduceMax", scores, [-1])
        if self.plan["spelling"] == "onnx" and self.plan["flat"]:
            most = g.squeeze(g.reduce("ReduceMax", most, [1]), [1])
        empty = g.op("Less", most, g.const(0.5 if kept else -1000.0), dtype="bool")
        # The value keeps its name: it may be an output itself.
        maker = next(node for node in g.nodes if y in node.output)
        place = list(maker.output).index(y)
        maker.output[place] = f"{y}_before"
        g.nodes.append(helper.make_node("Where", [empty, g.const(g.poison), f"{y}_before"], [y]))
        g.noise.setstate(spellings)  # what follows is spelled as in the original
        del g.produced[produced:]
        return y

    def _merged(self, y: str, x: str = "") -> str:
        """The stream again, through the output projection; x is what the attention read."""
        g = self.g
        inner = self.heads * self.value_width
        if self.layout == "bnsd":
            return activations.linear(g, y, self.value_width, self.width, "o_proj", self.plan["bias"])
        turned = g.transpose(y, {"bsh": [0, 2, 1, 3], "sbh": [2, 0, 1, 3], "sh": [1, 0, 2]}[self.layout])
        lead = {"bsh": ["b", "s"], "sbh": ["s", "b"], "sh": ["s"]}[self.layout]
        merged = g.reshape(turned, [*lead, inner])
        if "output_gate" in self.extras:
            merged = extras.output_gate(g, merged, x, self.hidden)
        return activations.linear(g, merged, inner, self.hidden, "o_proj", self.plan["bias"])

    # Operators of ONNX and com.microsoft.

    def _by_operator(self, x: str) -> str:
        if self.plan["spelling"] == "onnx":
            return self._onnx(x)
        if self.plan["spelling"] == "gqa":
            return self._group_query(x)
        return self._contrib(x)

    def _onnx(self, x: str) -> str:
        g, plan = self.g, self.plan
        q, k, v = self._project(x) if plan["flat"] else self._queries_and_keys(x)
        inputs = [q, k, v]
        parts = plan["mask"]["parts"]
        mask = masks.Mask(g, {**plan["mask"], "apply": "combined_add", "parts": [p for p in parts if p != "top_left"]}, self.heads, "s", self.keys,
                          self.past) if parts else None
        total: str | None = None
        if mask is not None:
            values = [*mask.biases, *mask.added]
            if mask.keep is not None and not values and not mask.plan["inverted"]:
                total = mask.keep
            elif values:
                total = values[0]
                for value in values[1:]:
                    total = g.commuted("Add", total, value)
        attributes: dict[str, Any] = {"scale": 0.3 if plan["scale"] == "odd" else None, "is_causal": 1 if "top_left" in parts else None,
                                      "softcap": 5.0 if plan["softcap"] else None}
        if plan["flat"]:
            attributes.update(q_num_heads=self.heads, kv_num_heads=self.kv)
        if total is not None or plan["cache"]:
            inputs.append(total or "")
        if plan["cache"]:
            name = g.scope.replace("/", "_")
            inputs += [g.input(f"past_key{name}", g.main, ["b", self.kv, "p", self.width], "past"),
                       g.input(f"past_value{name}", g.main, ["b", self.kv, "p", self.value_width], "past")]
            y, present_key, present_value = g.op("Attention", *inputs, outputs=3, **attributes)
            if not g.inner:
                g.outputs += [present_key, present_value]
        else:
            y = g.op("Attention", *inputs, **attributes)
        if total is not None and self._may_see_no_key():
            y = self._poisoned(total, y)
        if plan["flat"]:
            g.shapes[y] = ["b", "s", self.heads * self.value_width]
            return activations.linear(g, y, self.heads * self.value_width, self.hidden, "o_proj", plan["bias"])
        g.shapes[y] = ["b", self.heads, "s", self.value_width]
        return self._merged(y)

    def _contrib(self, x: str) -> str:
        """MultiHeadAttention and Attention of com.microsoft."""
        g, plan = self.g, self.plan
        parts = plan["mask"]["parts"]
        causal = {"unidirectional": 1} if "causal" in parts else {}
        scale = {"scale": 0.3} if plan["scale"] == "odd" else {}
        if plan["filter"] is not None:
            scale["mask_filter_value"] = plan["filter"]
        keep = ""
        if "padding" in parts:
            # int32 [b, total]
            mask = g.input("attention_mask" if self.keys == "s" else "attention_mask_total", "int64", ["b", self.keys], "keep")
            keep = g.op("Cast", mask, to=TYPES["int32"], dtype="int32", shape=["b", self.keys])
        bias = ""
        if "bias" in parts:
            bias = g.input(f"bias_s_{self.keys.replace('+', '_')}_{self.heads}", g.main, [1, self.heads, "s", self.keys], "bias")
        if plan["spelling"] == "attention":
            sizes = [self.hidden, self.hidden, self.heads * self.value_width]
            weight = g.weight("qkv.weight", [self.hidden, sum(sizes)], self.hidden**-0.5)
            past = ""
            if plan["cache"] and self.value_width == self.width:
                past = g.input(f"past{g.scope.replace('/', '_')}", g.main, [2, "b", self.heads, "p", self.width], "past")
            elif plan["cache"]:
                keep = bias = ""  # of the length with a past
            inputs = [x, weight, g.weight("qkv.bias", [sum(sizes)], 0.2), keep, past, bias]
            written = {"qkv_hidden_sizes": sizes} if self.value_width != self.width or g.chance(0.6) else {}
            # Without a past, ONNX Runtime leaves a present undefined whose values have another width.
            outputs = 2 if past or (plan["cache"] and g.chance(0.5) and self.value_width == self.width) else 1
            y = g.op("Attention", *_trimmed(inputs), outputs=outputs, domain="com.microsoft", num_heads=self.heads, **written, **causal, **scale)
            if outputs == 2:
                y, present = y
                g.outputs += [present] if not g.inner else []
            g.shapes[y] = ["b", "s", sizes[2]]
            return activations.linear(g, y, sizes[2], self.hidden, "o_proj", plan["bias"])
        q, k, v = self._project(x)
        inputs = [q, k, v, g.weight("qkv.bias", [self.hidden * 2 + self.heads * self.value_width], 0.2) if plan["bias"] else "", keep, bias]
        outputs = 1
        if plan["cache"]:
            name = g.scope.replace("/", "_")
            inputs += [g.input(f"past_key{name}", g.main, ["b", self.heads, "p", self.width], "past"),
                       g.input(f"past_value{name}", g.main, ["b", self.heads, "p", self.value_width], "past")]
            outputs = 3
        y = g.op("MultiHeadAttention", *_trimmed(inputs), outputs=outputs, domain="com.microsoft", num_heads=self.heads, **causal, **scale)
        if outputs == 3:
            if not g.inner:
                g.outputs += y[1:]
            y = y[0]
        g.shapes[y] = ["b", "s", self.heads * self.value_width]
        return activations.linear(g, y, self.heads * self.value_width, self.hidden, "o_proj", plan["bias"])

    def _group_query(self, x: str) -> str:
        """GroupQueryAttention of a prefill: no past, all rows of full length."""
        g, plan = self.g, self.plan
        plan["value_width"] = self.value_width = self.width
        q, k, v = self._project(x)
        last = g.op("Sub", g.dim_value("s"), g.ints([1]), dtype="int64")
        last = g.op("Cast", g.op("Expand", last, g.dim_value("b"), dtype="int64"), to=TYPES["int32"], dtype="int32")
        total = g.op("Cast", g.squeeze(g.dim_value("s"), [0]), to=TYPES["int32"], dtype="int32")
        inputs = [q, k, v, "", "", last, total]
        more: dict[str, Any] = {"scale": 0.3 if plan["scale"] == "odd" else None, "softcap": 5.0 if plan["softcap"] else None,
                                "local_window_size": plan["local_window"]}
        if plan["inner_rotary"] and self.width % 16 == 0:
            angles = np.outer(np.arange(160), 1.0 / 100 ** (np.arange(self.width // 2) / (self.width // 2)))
            inputs += [g.const(np.cos(angles)), g.const(np.sin(angles))]
            more.update(do_rotary=1, rotary_interleaved=int(plan["scale"] == "both"))
        y, *_ = g.op("GroupQueryAttention", *inputs, outputs=3, domain="com.microsoft", num_heads=self.heads, kv_num_heads=self.kv, **more)
        g.shapes[y] = ["b", "s", self.hidden]
        return activations.linear(g, y, self.hidden, self.hidden, "o_proj", plan["bias"])


def _trimmed(inputs: list[str]) -> list[str]:
    while inputs and not inputs[-1]:
        inputs = inputs[:-1]
    return inputs
