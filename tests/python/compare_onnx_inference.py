#!/usr/bin/env python3
"""The share of values of the zoo with a fully known shape: ours beside that of onnx.shape_inference.

    python3 tests/python/compare_onnx_inference.py [--tool build/tests/infer_tool] [--zoo build/zoo] [IDS...]

Both see the model without its value_info. A shape is fully known when every dim is a number or an expression of
symbols of the graph's inputs; a symbol that inference made up does not count. onnx runs with data propagation.
Prints a table by exporter and kind of dims. Not a test.
"""

from __future__ import annotations

import argparse
import collections
import fnmatch
import json
import subprocess
import sys
import tempfile
from pathlib import Path

import onnx
from onnx import shape_inference

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools" / "zoo"))
import manifest_file  # noqa: E402


def onnx_known(model: onnx.ModelProto, names: set[str]) -> int:
    inputs = {d.dim_param for i in model.graph.input for d in i.type.tensor_type.shape.dim if d.dim_param}
    inferred = shape_inference.infer_shapes(model, data_prop=True)
    known = set()
    for value in [*inferred.graph.value_info, *inferred.graph.output]:
        tensor = value.type.tensor_type
        if value.name in names and tensor.HasField("shape") and all(
                d.HasField("dim_value") or d.dim_param in inputs for d in tensor.shape.dim):
            known.add(value.name)
    return len(known)


def main() -> None:
    parser = argparse.ArgumentParser(description="Shares of known shapes, ours beside onnx.shape_inference.")
    parser.add_argument("--tool", type=Path, default=ROOT / "build" / "tests" / "infer_tool")
    parser.add_argument("--zoo", type=Path, default=ROOT / "build" / "zoo", help="directory of filled models")
    parser.add_argument("ids", nargs="*", metavar="IDS")
    arguments = parser.parse_args()
    models = manifest_file.load()["models"]
    rows: dict[tuple[str, str], collections.Counter[str]] = collections.defaultdict(collections.Counter)
    with tempfile.TemporaryDirectory() as work:
        path = Path(work) / "model.onnx"
        for entry in models:
            if arguments.ids and not any(fnmatch.fnmatch(entry["id"], i) for i in arguments.ids):
                continue
            model = onnx.load(arguments.zoo / f"{entry['id']}.onnx")
            del model.graph.value_info[:]
            for output in model.graph.output:
                output.type.tensor_type.ClearField("shape")
            path.write_bytes(model.SerializeToString())
            names = {o for n in model.graph.node for o in n.output if o}
            lines = subprocess.run([arguments.tool, path], capture_output=True, text=True, check=True).stdout
            facts = [json.loads(line) for line in lines.splitlines()]
            row = rows[entry["exporter"], entry["dims"]]
            row["models"] += 1
            row["values"] += len(names)
            row["ours"] += sum(not f["fresh"] for f in facts if f["name"] in names)
            row["onnx"] += onnx_known(model, names)
    print("| exporter | dims | models | values | ours, % | onnx, % |\n|---|---|---|---|---|---|")
    total: collections.Counter[str] = collections.Counter()
    for (exporter, dims), row in sorted(rows.items()):
        total.update(row)
        print(f"| {exporter} | {dims} | {row['models']} | {row['values']} | {100 * row['ours'] / row['values']:.1f} "
              f"| {100 * row['onnx'] / row['values']:.1f} |")
    if total["values"]:
        print(f"| all | | {total['models']} | {total['values']} | {100 * total['ours'] / total['values']:.1f} "
              f"| {100 * total['onnx'] / total['values']:.1f} |")


if __name__ == "__main__":
    main()
