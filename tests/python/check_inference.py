#!/usr/bin/env python3
"""Compares what inference says about every value of the zoo models with what ONNX Runtime computes.

    python3 tests/python/check_inference.py --tool build/tests/infer_tool --zoo DIR [IDS...]

DIR holds the filled models (tools/zoo/fill.py --out DIR). Every intermediate becomes an output, the model runs
with all graph optimizations off under the bindings of the manifest, and type, rank, dims and elements are
compared. Symbols that inference made up are bound where they are first seen and must hold from there on. Ends
with the number of contradictions and the share of values with a fully known shape.
"""

from __future__ import annotations

import argparse
import collections
import fnmatch
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

REPOSITORY = Path(__file__).resolve().parents[2]
SYMBOL = re.compile(r"[A-Za-z_][A-Za-z0-9_.:'$]*")


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


def check_model(path: Path, entry: dict[str, Any], tool: Path, totals: collections.Counter[str],
                vague: collections.Counter[str]) -> list[str]:
    import numpy as np
    import onnx
    import onnxruntime

    from ascend_fuse.inputs import make_inputs

    output = subprocess.run([tool, path], capture_output=True, text=True, check=False)
    if output.returncode != 0:
        return [f"infer_tool failed: {output.stderr[:300]}"]
    problems = [line for line in output.stderr.splitlines()]
    facts = [json.loads(line) for line in output.stdout.splitlines()]
    model = onnx.load(path)
    known = {o.name for o in model.graph.output}
    inputs = {i.name for i in model.graph.input}
    for fact in facts:
        if fact["name"] not in known and fact["name"] not in inputs:
            model.graph.output.append(onnx.ValueInfoProto(name=fact["name"]))
            known.add(fact["name"])
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = 1
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    names = [f["name"] for f in facts if f["name"] in known]
    for fact in facts:
        totals["values"] += 1
        totals["full"] += not fact["fresh"]
        if fact["fresh"]:
            vague[f"{fact['op']}"] += 1
        totals["with elements"] += "elements" in fact
    for binding in entry["bindings"]:
        feeds = make_inputs(entry, binding)
        observed = dict(zip(names, session.run(names, feeds), strict=True)) | feeds
        bound = Bindings()
        # Symbols of the inputs first.
        for value in model.graph.input:
            for dim, size in zip(value.type.tensor_type.shape.dim, feeds[value.name].shape, strict=True):
                if dim.dim_param and SYMBOL.fullmatch(dim.dim_param):
                    bound.values.setdefault(dim.dim_param, size)
        for fact in facts:
            array = np.asarray(observed[fact["name"]])
            name = f"{binding['name']}: {fact['name']} ({fact['op']})"
            dtype = onnx.helper.np_dtype_to_tensor_dtype(array.dtype)
            if fact["type"] not in (0, dtype):
                problems.append(f"{name}: type {fact['type']}, observed {dtype}")
            if fact["type"] == 0:
                problems.append(f"{name}: type not known")
            shape = fact["shape"]
            if shape is None:
                continue
            if len(shape) != array.ndim:
                problems.append(f"{name}: shape {shape}, observed {array.shape}")
                continue
            for dim, size in zip(shape, array.shape, strict=True):
                if dim is not None and not bound.check(dim, size):
                    problems.append(f"{name}: shape {shape}, observed {array.shape}")
                    break
            check_elements(fact, array, bound, name, problems, totals)
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
    parser.add_argument("--manifest", type=Path, default=REPOSITORY / "tests" / "zoo" / "manifest.json")
    parser.add_argument("--python", type=Path, default=REPOSITORY / "tools" / "python")
    parser.add_argument("--verbose", action="store_true", help="a line for every model")
    parser.add_argument("ids", nargs="*", metavar="IDS")
    arguments = parser.parse_args()
    sys.path.insert(0, str(arguments.python))
    totals: collections.Counter[str] = collections.Counter()
    vague: collections.Counter[str] = collections.Counter()
    failures = 0
    for entry in json.loads(arguments.manifest.read_text())["models"]:
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
    print(f"{totals['models']} models, {totals['values']} values, {100 * share:.2f} % with a fully known shape, "
          f"{totals['with elements']} with elements, {failures} contradictions")
    if vague:
        print("not fully known, by operator:", ", ".join(f"{k} {v}" for k, v in vague.most_common(12)))
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
