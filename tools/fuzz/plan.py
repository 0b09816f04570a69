"""What a graph is made of: a plan is drawn from a seed as plain data, so that it can be stored, printed and reduced."""

from __future__ import annotations

import random
from typing import Any

from fuzz import activations, attention, extras, norms, quantised
from fuzz.attention import Attention
from fuzz.graph import Dim, Graph
from fuzz.wrap import wrapped

Plan = dict[str, Any]
GENERATOR = 6  # a seed means the same graph as long as this number stays


def choose(seed: int) -> Plan:
    """The plan of a seed."""
    rng = random.Random(f"plan/{seed}")
    dtype = rng.choices(["float", "float16", "bfloat16", "double"], [66, 20, 5, 9])[0]
    opset = rng.choice([11, 12, 13, 14, 14, 15, 16, 17, 17, 17, 18, 18, 19, 20, 21, 22, 23, 23, 24])
    if dtype == "bfloat16":
        opset = max(opset, 13)
    layout = rng.choices(["bsh", "sbh", "sh", "bnsd"], [55, 22, 10, 13])[0]
    heads, width = rng.choice([1, 2, 2, 3, 4]), rng.choice(attention.WIDTHS)
    while heads * width > 192:
        heads, width = rng.choice([1, 2, 2]), rng.choice(attention.WIDTHS)
    layers = [choose_layer(rng, opset, dtype, layout, heads, width) for _ in range(rng.choice([1, 1, 2, 2, 3]))]
    _quantise(random.Random(f"quantised/{seed}"), layers, opset, dtype)
    if seed >= extras.FIRST_SEED:
        extras.choose(random.Random(f"extras/{seed}"), layers, layout)
    same = rng.random() < 0.2  # the memory and the past have the sizes of the tokens
    tokens = rng.choice([1, 2, 3, 5, 8, 16, 16, 17, 32, 32, 64] + [128] * (heads * width <= 64))
    sizes = {"b": rng.choice([1, 2, 2, 2, 3]), "s": tokens, "m": tokens if same else rng.choice([1, 4, 7, 16]),
             "p": tokens if same else rng.choice([0, 1, 3, 16])}
    static = rng.random() < 0.25
    names = {"b": ["batch", "batch_size", "N"], "s": ["seq", "sequence_length"], "m": ["memory", "encoder_sequence_length"],
             "p": ["past", "past_sequence_length"]}
    dims = {key: {"name": rng.choice(names[key]), "size": size, "dynamic": not static and rng.random() < 0.85,
                  "aliases": 2 if rng.random() < 0.1 else 1} for key, size in sizes.items()}
    if any(d["size"] == 0 and not d["dynamic"] for d in dims.values()) and rng.random() < 0.7:
        dims["p"]["size"] = 3
    return {
        "seed": seed, "generator": GENERATOR, "opset": opset, "dtype": dtype, "layout": layout, "heads": heads, "width": width, "dims": dims,
        "layers": layers, "embedding": layout == "bsh" and rng.random() < 0.2, "final_norm": norms.choose_norm(rng, opset, dtype) if
        rng.random() < 0.5 else None, "taps": [rng.random() for _ in range(rng.choice([0, 0, 0, 1, 1, 2]))],
        "weights_as_inputs": rng.random() < 0.05, "constants_as_nodes": rng.choice([0.0, 0.0, 0.5, 1.0]), "tied": rng.random() < 0.1,
        "padding": rng.choice(["left", "right", "random", "none", "empty"]), "declare": rng.choice(["shapes", "shapes", "types"]),
        "second": {"b": rng.choice([1, 2, 3, 4]), "s": rng.choice([1, 1, 2, 6, 16, 32, 64]), "m": rng.choice([1, 5, 16]),
                   "p": rng.choice([0, 1, 4, 16])},
        "edge": rng.choice(["none", "none", "b", "s", "p", "m"]), "shared": random.Random(f"shared/{seed}").random() < 0.08,
        "pooled": random.Random(f"pooled/{seed}").choice(["none"] * 8 + ["mean", "first"]) if
        layout == "bsh" and seed >= extras.FIRST_SEED else "none",
    }


def _quantise(rng: random.Random, layers: list[Plan], opset: int, dtype: str) -> None:
    """Some graphs have quantised linears; drawn apart, so that all others are what they were."""
    if rng.random() >= 0.15:
        return
    for number, layer in enumerate(layers):
        layer["quantised"] = quantised.choose(rng, opset, dtype) if layer["body"] in ("mlp", "attention") else None
        if number == 0 and rng.random() < 0.5:  # activations are rounded where they are an input
            layer["placement"], layer["identity"], layer["wrap"] = rng.choice(["none", "post"]), False, "none"


def choose_layer(rng: random.Random, opset: int, dtype: str, layout: str, heads: int, width: int) -> Plan:
    kind = rng.choices(["attention", "mlp", "norm", "group_norm", "activation"], [45, 35, 8, 6, 6])[0]
    if kind == "attention":
        body = attention.choose_attention(rng, opset, dtype, layout, heads, width)
    elif kind == "mlp":
        body = activations.choose_mlp(rng, opset, dtype)
    elif kind == "activation":
        body = {"body": "activation", "activation": activations.choose_activation(rng, opset, dtype)}
    elif kind == "group_norm" and layout == "bsh":
        body = {"body": "group_norm", "norm": norms.choose_norm(rng, opset, dtype), "silu": rng.random() < 0.6,
                "groups": rng.choice([1, 2, 4])}
    else:
        body = {"body": "none"}
    return {
        **body, "placement": rng.choice(["pre", "pre", "pre", "post", "post", "none", "both"]),
        "norm_plan": norms.choose_norm(rng, opset, dtype), "post_plan": norms.choose_norm(rng, opset, dtype),
        "residual": rng.random() < 0.85, "swapped": rng.random() < 0.4, "sum_of_three": rng.random() < 0.1,
        "read_again": rng.random() < 0.15, "identity": rng.random() < 0.1,
        "wrap": rng.choices(["none", "if", "loop", "scan", "function"], [88, 5, 2, 2, 3])[0],
    }


def build(plan: Plan, exact: bool = False, poison: float | None = None) -> Graph:
    """The graph of a plan; raises whatever a plan that makes no graph raises."""
    dims = {key: Dim(d["name"], d["size"], d["dynamic"], d["aliases"]) for key, d in plan["dims"].items()}
    g = Graph(plan["seed"], plan["opset"], plan["dtype"], dims, exact, poison)
    g.weights_as_inputs, g.constants_as_nodes = plan["weights_as_inputs"], plan["constants_as_nodes"]
    g.share = plan.get("shared", False)
    heads, width = plan["heads"], plan["width"]
    hidden = heads * width
    shape = {"bsh": ["b", "s", hidden], "sbh": ["s", "b", hidden], "sh": ["s", hidden], "bnsd": ["b", heads, "s", width]}[plan["layout"]]
    table = None
    if plan["embedding"]:
        ids = g.input("input_ids", "int64", ["b", "s"], "ids")
        table = g.weight("embed.weight", [16, hidden])
        x = g.op("Gather", table, ids, shape=shape)
        g.dtypes[x] = g.main
    else:
        x = g.input("x", g.main, shape, "stream")
    cross = any(layer.get("cross") for layer in plan["layers"])
    memory_shape = {"bsh": ["b", "m", hidden], "sbh": ["m", "b", hidden], "bnsd": ["b", heads, "m", width]}.get(plan["layout"])
    memory = g.input("memory", g.main, memory_shape, "stream") if cross else None
    for number, layer in enumerate(plan["layers"]):
        g.noise = random.Random(f"{plan['seed']}/{layer.get('id', number)}")
        with g.within(f"layers.{layer.get('id', number)}"):
            x = wrapped(g, layer["wrap"], x, lambda inner, y, layer=layer: _layer(inner, y, layer, plan, memory))
            g.shapes[x] = shape
    g.noise = random.Random(f"{plan['seed']}/end")
    if plan["final_norm"] is not None:
        x = norms.norm(g, x, plan["final_norm"], shape[-1], "norm")
        g.shapes[x] = shape
    if table is not None and plan["tied"]:
        x = g.op("MatMul", x, g.transpose(table, [1, 0]), shape=[*shape[:-1], 16])
    if x in {i.name for i in g.inputs}:
        x = g.op("Identity", x, shape=shape)
    if plan.get("pooled", "none") != "none" and not (table is not None and plan["tied"]):
        g.outputs.append(extras.pooled(g, x, plan["pooled"]))
    g.outputs.insert(0, x)
    _tap(g, plan)
    return g


def _tap(g: Graph, plan: Plan) -> None:
    candidates = [v for v in g.produced if v not in g.outputs]
    for share in plan["taps"]:
        if candidates:
            chosen = candidates[int(share * len(candidates))]
            if chosen not in g.outputs:
                g.outputs.append(chosen)


def _layer(g: Graph, x: str, layer: Plan, plan: Plan, memory: str | None) -> str:
    shape = g.shapes[x]
    last = shape[-1]
    before = x
    if layer["placement"] in ("pre", "both"):
        x = norms.norm(g, x, layer["norm_plan"], last, "input_norm")
    if layer["identity"]:
        x = g.keep(x, g.op("Identity", x))
    normed = x
    g.quantised = layer.get("quantised")
    y = _body(g, x, layer, plan, memory, last)
    g.quantised = None
    g.shapes[y] = shape
    y = extras.around_body(g, layer.get("extras", []), x, y, last)
    before = extras.of_stream(g, layer.get("extras", []), before)
    if layer["residual"]:
        y = g.keep_shape(g.op("Add", *((before, y) if layer["swapped"] else (y, before))), shape)
    if layer["sum_of_three"]:
        y = g.keep_shape(g.commuted("Add", y, normed), shape)
    if layer["placement"] in ("post", "both"):
        total = y
        y = norms.norm(g, y, layer["post_plan"], last, "post_norm")
        g.shapes[y] = shape
        if layer["read_again"]:
            y = g.keep_shape(g.commuted("Add", y, total), shape)
    return g.op("Identity", y, shape=shape) if y == before else y


def _body(g: Graph, x: str, layer: Plan, plan: Plan, memory: str | None, last: int) -> str:
    if layer["body"] == "attention":
        return Attention(g, layer, plan["layout"], plan["heads"], plan["width"], memory).run(x)
    if layer["body"] == "mlp":
        return activations.mlp(g, x, layer, last)
    if layer["body"] == "activation":
        return activations.activation(g, x, layer["activation"])
    if layer["body"] == "group_norm" and last % layer["groups"] == 0:
        y = norms.group_norm(g, g.transpose(x, [0, 2, 1]), layer["norm"], last, layer["groups"])
        if layer["silu"]:
            y = g.keep(y, g.op("Mul", y, g.op("Sigmoid", y)))
        return g.transpose(y, [0, 2, 1])
    return x


def constructs(plan: Plan) -> list[str]:
    """Names of what the plan holds, for the table of coverage."""
    found = [f"layout {plan['layout']}", f"type {plan['dtype']}", f"opset {plan['opset']}"]
    found += ["embedding"] * plan["embedding"] + ["weights as inputs"] * plan["weights_as_inputs"] + ["taps"] * bool(plan["taps"])
    found += ["shared weights"] * plan.get("shared", False) + [f"pooled {plan['pooled']}"] * (plan.get("pooled", "none") != "none")
    found += [f"edge {plan['edge']}=0"] * (plan["edge"] != "none")
    for layer in plan["layers"]:
        found += [f"body {layer['body']}", f"placement {layer['placement']}", f"in {layer['wrap']}"]
        for key in ("norm_plan", "post_plan", "qk_norm"):
            used = {"norm_plan": ("pre", "both"), "post_plan": ("post", "both")}.get(key)
            if layer.get(key) and (used is None or layer["placement"] in used):
                found.append(f"norm {layer[key]['kind']} {layer[key]['spelling']}")
        if layer["body"] == "mlp":
            found.append(f"gate {layer['gate']} {layer['activation']['kind']}" if layer["gate"] != "none" else
                         f"activation {layer['activation']['kind']}")
        if layer.get("quantised"):
            found += [f"quantised {layer['quantised'][key]}" for key in ("weights", "activations") if layer["quantised"][key]]
        found += [f"extra {name}" for name in layer.get("extras", [])]
        if layer["body"] == "attention":
            found.append(f"attention {layer['spelling']}")
            found += [f"attention {word}" for word in ("cross", "cache", "softcap", "einsum") if layer[word]]
            found += ["attention grouped"] * (layer["kv_heads"] != plan["heads"]) + ["attention q = k"] * (layer["projection"] == "shared_qk")
            found.append("mask " + ("+".join(layer["mask"]["parts"]) or "none"))
            if layer["rotary"]:
                rope = layer["rotary"]
                found.append(f"rotary {rope['mode']} {rope['spelling']}{' partial' if rope['part'] != plan['width'] else ''}")
    return sorted(set(found))
