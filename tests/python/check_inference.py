#!/usr/bin/env python3
"""Compares what inference says about every value of the zoo models with what ONNX Runtime computes.

    python3 tests/python/check_inference.py --tool build/tests/infer_tool --zoo DIR [IDS...]

DIR holds the filled models (tools/zoo/fill.py --out DIR). Every intermediate becomes an output, the model runs
with all graph optimizations off under the bindings of the manifest, and type, rank, dims and elements are
compared. Symbols that inference made up are bound where they are first seen and must hold from there on. Values in
bodies are compared in every turn (body_values.py). Ends with the number of contradictions, the share of values with
a fully known shape, and a table of the others with reasons; fails on a contradiction, on a value without a reason,
and below 99.5 %.
"""

from __future__ import annotations

import argparse
import collections
import dataclasses
import fnmatch
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

REPOSITORY = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(REPOSITORY / "tools" / "zoo"))
import manifest_file  # noqa: E402

SYMBOL = re.compile(r"[A-Za-z_][A-Za-z0-9_.:'$]*")


# Why the dims of an operator's results may stay unknown. What follows from such a value is named after it.
REASONS = {
    "NonZero": "how many elements are not zero",
    "Unique": "how many elements differ",
    "Loop": "what every turn changes, or how often a condition lets the loop turn",
    "NonMaxSuppression": "how many boxes remain",
    "Compress": "how many elements are chosen",
}


class Bindings:
    """Values of symbols in one run; evaluates dims as inference prints them."""

    def __init__(self) -> None:
        self.values: dict[str, int] = {}
        self.cache: dict[str, Any] = {}

    def evaluate(self, text: str | int) -> int | None:
        """Returns the number, or None when a symbol is not bound."""
        if isinstance(text, int):
            return text
        if text in self.values:
            return self.values[text]
        names: dict[str, int] = {}
        missing = False

        def replace(match: re.Match[str]) -> str:
            nonlocal missing
            name = match.group(0)
            if name in ("Min", "Max", "broadcast", "floor"):
                return name
            if name not in self.values:
                missing = True
                return "0"
            key = f"v{len(names)}"
            names[key] = self.values[name]
            return key

        source = SYMBOL.sub(replace, text)
        if missing:
            return None
        source = source.replace("/", "//").replace("floor(", "(")
        names.update(Min=min, Max=max, broadcast=lambda a, b: b if a == 1 else a)
        return eval(source, {"__builtins__": {}}, names)  # noqa: S307 - text printed by our own tool

    def check(self, text: str | int, observed: int) -> bool:
        """True if the dim agrees; binds a single unbound symbol."""
        value = self.evaluate(text)
        if value is None:
            if isinstance(text, str) and SYMBOL.fullmatch(text):
                self.values[text] = observed
            return True
        return value == observed


@dataclasses.dataclass
class Run:
    """What one run computed: values of the main graph, and for each value of a body what each turn computed."""

    name: str
    values: dict[str, Any]
    turns: dict[str, tuple[Any, list[Any]]]  # name: (body, values)
    symbols: dict[str, int]


def observe(path: Path, feeds: list[tuple[str, dict[str, Any]]],
            tool: Path) -> tuple[list[dict[str, Any]], list[str], list[Run]]:
    """Returns the facts of the model, the contradictions that inference saw, and what ONNX Runtime computes of every
    value, those in bodies included, for each of the named feeds."""
    import onnx
    from ascend_fuse.session import plain_session
    from body_values import expose

    output = subprocess.run([tool, path], capture_output=True, text=True, check=False)
    if output.returncode != 0:
        return [], [f"infer_tool failed: {output.stderr[:300]}"], []
    facts = [json.loads(line) for line in output.stdout.splitlines()]
    model = onnx.load(path)
    inputs = {i.name for i in model.graph.input}
    known = {o.name for o in model.graph.output}
    names = [f["name"] for f in facts if not f["body"]]
    for name in names:
        if name not in known and name not in inputs:
            model.graph.output.append(onnx.ValueInfoProto(name=name))
            known.add(name)
    seen = expose(model, {f["name"]: f["type"] for f in facts if f["body"]})
    session = plain_session(model.SerializeToString(), threads=1)
    names = [name for name in names if name in known]
    runs = []
    for run_name, feed in feeds:
        results = session.run(names + [s.output for s in seen], feed)
        symbols = {}
        for value in model.graph.input:
            for dim, size in zip(value.type.tensor_type.shape.dim, feed[value.name].shape, strict=True):
                if dim.dim_param and SYMBOL.fullmatch(dim.dim_param):
                    symbols.setdefault(dim.dim_param, size)
        turns = {s.name: (s.body, list(result)) for s, result in zip(seen, results[len(names):], strict=True)}
        runs.append(Run(run_name, dict(zip(names, results, strict=False)) | feed, turns, symbols))
    return facts, output.stderr.splitlines(), runs


def check_observed(facts: list[dict[str, Any]], run: Run, checked: set[str],
                   totals: collections.Counter[str] | None = None) -> list[str]:
    """Compares every fact with what the run computed; adds the names of what was compared to `checked`."""
    problems: list[str] = []
    totals = collections.Counter() if totals is None else totals
    bound = Bindings()
    bound.values.update(run.symbols)
    for fact in facts:
        if not fact["body"]:
            checked.add(fact["name"])
            check_value(fact, run.values[fact["name"]], bound, f"{run.name}: {fact['name']} ({fact['op']})", problems,
                        totals)
    # What is made up in a body has another value in each of its turns.
    in_turn: dict[tuple[Any, int], Bindings] = {}
    for fact in facts:
        if not fact["body"] or fact["name"] not in run.turns:
            continue
        body, values = run.turns[fact["name"]]
        for turn, value in enumerate(values):
            if (body, turn) not in in_turn:
                in_turn[body, turn] = Bindings()
                in_turn[body, turn].values.update(bound.values)
            checked.add(fact["name"])
            check_value(fact, value, in_turn[body, turn],
                        f"{run.name}: {fact['name']} ({fact['op']}) in turn {turn} of {body[-1][0]}", problems, totals)
    return problems


def check_value(fact: dict[str, Any], value: Any, bound: Bindings, name: str, problems: list[str],
                totals: collections.Counter[str]) -> None:
    import numpy as np
    import onnx

    array = np.asarray(value)
    dtype = onnx.helper.np_dtype_to_tensor_dtype(array.dtype)
    if fact["type"] == 0:
        problems.append(f"{name}: type not known")
    elif fact["type"] != dtype:
        problems.append(f"{name}: type {fact['type']}, observed {dtype}")
    shape = fact["shape"]
    if shape is None:
        return
    if len(shape) != array.ndim:
        problems.append(f"{name}: shape {shape}, observed {array.shape}")
        return
    for dim, size in zip(shape, array.shape, strict=True):
        if dim is not None and not bound.check(dim, size):
            problems.append(f"{name}: shape {shape}, observed {array.shape}")
            return
    check_elements(fact, array, bound, name, problems, totals)


def check_model(path: Path, entry: dict[str, Any], tool: Path, totals: collections.Counter[str],
                vague: dict[str, list[str]]) -> list[str]:
    from ascend_fuse.inputs import make_inputs

    bindings = [(binding["name"], make_inputs(entry, binding)) for binding in entry["bindings"]]
    if len({tuple(v.shape for v in feed.values()) for _, feed in bindings}) < 3 and entry["dims"] == "dynamic":
        return ["fewer than three bindings of its symbols"]
    facts, problems, runs = observe(path, bindings, tool)
    for fact in facts:
        totals["values"] += 1
        totals["in bodies"] += fact["body"]
        totals["full"] += not fact["fresh"]
        if fact["fresh"]:
            vague.setdefault(fact["op"], []).append(f"{entry['id']}: {fact['name']} {fact['shape']}")
        totals["with elements"] += "elements" in fact
    checked: set[str] = set()
    for run in runs:
        problems += check_observed(facts, run, checked, totals)
    totals["not observed"] += len({f["name"] for f in facts} - checked)
    return problems


def check_elements(fact: dict[str, Any], array: Any, bound: Bindings, name: str, problems: list[str],
                   totals: collections.Counter[str]) -> None:
    import numpy as np

    if "splat" in fact and array.size:
        splat = float(fact["splat"])
        same = np.isnan(array.astype(np.float64)).all() if splat != splat else np.allclose(
            array.astype(np.float64), splat, rtol=1e-6 if array.dtype == np.float32 else 2e-3, atol=0)
        if not same:
            problems.append(f"{name}: splat {splat}, observed {array.ravel()[:4]}")
    if "elements" not in fact:
        return
    flat = array.ravel()
    elements = fact["elements"]
    if len(elements) != flat.size:
        problems.append(f"{name}: {len(elements)} elements, observed {flat.size}")
        return
    for element, seen in zip(elements, flat, strict=True):
        if element is None:
            continue
        totals["elements"] += 1
        if np.issubdtype(array.dtype, np.floating):
            tolerance = 1e-6 if array.dtype == np.float32 else 2e-3
            good = np.isclose(float(element), float(seen), rtol=tolerance, atol=1e-30, equal_nan=True)
        else:
            good = bound.check(element, int(seen))
        if not good:
            problems.append(f"{name}: element {element}, observed {seen}")
            return


def main() -> int:
    parser = argparse.ArgumentParser(description="Compare inference with ONNX Runtime.")
    parser.add_argument("--tool", type=Path, required=True)
    parser.add_argument("--zoo", type=Path, required=True, help="directory of filled models")
    parser.add_argument("--python", type=Path, default=REPOSITORY / "tools" / "python")
    parser.add_argument("--verbose", action="store_true", help="a line for every model")
    parser.add_argument("ids", nargs="*", metavar="IDS")
    arguments = parser.parse_args()
    sys.path.insert(0, str(arguments.python))
    totals: collections.Counter[str] = collections.Counter()
    vague: dict[str, list[str]] = {}
    failures = 0
    for entry in manifest_file.load()["models"]:
        if arguments.ids and not any(fnmatch.fnmatch(entry["id"], i) for i in arguments.ids):
            continue
        before = totals.copy()
        problems = check_model(arguments.zoo / f"{entry['id']}.onnx", entry, arguments.tool, totals, vague)
        totals["models"] += 1
        failures += len(problems)
        share = (totals["full"] - before["full"]) / max(1, totals["values"] - before["values"])
        if arguments.verbose or problems or share < 0.99:
            print(f"{entry['id']}: {100 * share:.2f} % known, {len(problems)} contradictions")
        for problem in problems[:5]:
            print(f"  {problem}")
    share = totals["full"] / max(1, totals["values"])
    print(f"{totals['models']} models, {totals['values']} values ({totals['in bodies']} in bodies), {100 * share:.2f} % "
          f"with a fully known shape, {totals['with elements']} with elements ({totals['elements']} compared), "
          f"{totals['not observed']} not observed, {failures} contradictions")
    unexplained = 0
    for op, values in sorted(vague.items(), key=lambda item: -len(item[1])):
        reason = REASONS.get(op)
        unexplained += 0 if reason else len(values)
        print(f"not fully known: {len(values)} of {op}: {reason or 'NO REASON GIVEN'}, for example {values[0]}")
    if share < 0.995:
        print("less than 99.5 % of the shapes are fully known")
    return 1 if failures or unexplained or share < 0.995 else 0


if __name__ == "__main__":
    sys.exit(main())
