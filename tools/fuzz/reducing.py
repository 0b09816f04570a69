"""Makes a finding small: first the plan (layers, parts of layers, options), then the graph, node by node."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import onnx

from ascend_fuse.reduce import reduce as reduce_nodes
from fuzz import configuration, inputs, oracles
from fuzz import plan as plans
from fuzz.configuration import Configuration
from fuzz.plan import Plan

# What a plan is made simpler by: a key and the value that is tried, of the plan and of its layers.
SIMPLER: list[tuple[str, Any]] = [("taps", []), ("shared", False), ("final_norm", None), ("weights_as_inputs", False), ("constants_as_nodes", 0.0),
                                  ("embedding", False), ("edge", "none"), ("padding", "none"), ("heads", 1), ("opset", 17), ("pooled", "none")]
SIMPLER_LAYER: list[tuple[str, Any]] = [
    ("placement", "none"), ("wrap", "none"), ("residual", False), ("sum_of_three", False), ("identity", False), ("read_again", False),
    ("rotary", None), ("qk_norm", None), ("bias", False), ("cache", False), ("kv_heads", 1), ("einsum", False), ("softcap", False),
    ("projection", "separate"), ("scale", "mul"), ("softmax", "plain"), ("rotary_before_transpose", False), ("gate", "none"), ("factor", 1),
    ("spelling", "matmul"), ("silu", False), ("present", False), ("quantised", None), ("extras", [])]


def findings(plan: Plan, configurations: list[Configuration]) -> list[oracles.Finding]:
    """The findings of a plan; none where it makes no graph."""
    try:
        examiner = oracles.Examiner(oracles.Subject(plan))
        for one in configurations:
            examiner.examine(one)
    except Exception:
        return []
    return examiner.result.findings


def simpler(plan: Plan) -> Iterator[Plan]:
    """Plans with one thing less."""
    for number in range(len(plan["layers"])):
        if len(plan["layers"]) > 1:
            smaller = copy.deepcopy(plan)
            del smaller["layers"][number]
            yield smaller
    for key, value in SIMPLER:
        if plan[key] != value:
            yield {**copy.deepcopy(plan), key: value}
    for key, dim in plan["dims"].items():
        for change in ({"aliases": 1}, {"dynamic": False}):
            smaller = copy.deepcopy(plan)
            smaller["dims"][key].update(change)
            if smaller != plan:
                yield smaller
    for number, layer in enumerate(plan["layers"]):
        tries = [(k, v) for k, v in SIMPLER_LAYER if k in layer and layer[k] != v and (k != "spelling" or layer["body"] == "mlp")]
        for key, value in tries:
            smaller = copy.deepcopy(plan)
            smaller["layers"][number][key] = value
            yield smaller
        for part in layer.get("mask", {}).get("parts", []):
            smaller = copy.deepcopy(plan)
            smaller["layers"][number]["mask"]["parts"].remove(part)
            yield smaller


def reduce_plan(plan: Plan, is_faulty: Callable[[Plan], bool]) -> Plan:
    """A plan of which nothing more can go."""
    for number, layer in enumerate(plan["layers"]):
        layer.setdefault("id", number)  # weights and spellings stay when a layer before it goes
    while True:
        smaller = next((one for one in simpler(plan) if is_faulty(one)), None)
        if smaller is None:
            return plan
        plan = smaller  # with one thing less, so that this ends


def reduce_configuration(plan: Plan, kind: str, one: Configuration) -> Configuration:
    """The same without the flags that it does not need."""
    plain = Configuration(one.target, one.plugin)
    for field in ("weights", "style", "prefer", "assume", "fix", "dims", "precision_mode", "strict", "cann"):
        tried = copy.deepcopy(one)
        setattr(tried, field, getattr(plain, field))
        if any(f.kind == kind for f in findings(plan, [tried])):
            one = tried
    return one


def main(seed: int, kind: str | None, output: Path) -> int:
    plan = plans.choose(seed)
    subject = oracles.Subject(plan)
    every = configuration.choose(seed, subject.graph, inputs.padding(plan))
    found = [f for f in findings(plan, every) if kind is None or f.kind == kind]
    if not found:
        print(f"seed {seed} has no such finding")
        return 3
    kind = found[0].kind
    chosen = next(one for one in every if str(one) == found[0].configuration)
    chosen = reduce_configuration(plan, kind, chosen)
    plan = reduce_plan(plan, lambda smaller: any(f.kind == kind for f in findings(smaller, [chosen])))
    chosen = reduce_configuration(plan, kind, chosen)
    last = next(f for f in findings(plan, [chosen]) if f.kind == kind)
    model = oracles.Subject(plan).model
    if kind in ("refused", "again", "check", "own node refused", "corrupt"):
        model = reduce_nodes(model, lambda part: _shows(part, kind, chosen)) or model
    onnx.save(model, str(output))
    print(f"seed {seed}: {kind} with {chosen}\n  {last.sentence}\n  {last.binding}\n{len(model.graph.node)} nodes in {output}")
    return 0


class _Bare(oracles.Subject):
    """A model without a plan, for findings that need no numbers."""

    def __init__(self, model: onnx.ModelProto):
        self.model, self.bytes, self.checked = model, model.SerializeToString(), False
        self.feeds, self.retype = {}, None


def _shows(model: onnx.ModelProto, kind: str, one: Configuration) -> bool:
    examiner = oracles.Examiner(_Bare(model))
    try:
        examiner.examine(one)
    except Exception:
        return False
    return any(f.kind == kind for f in examiner.result.findings)
