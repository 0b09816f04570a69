#!/usr/bin/env python3
"""Prints docs/layouts.md: how many Transposes stand around the fused attentions of the zoo.

    python3 tools/zoo/fill.py
    python3 tools/zoo/transposes.py [--chip CHIP] [--each] [PATTERN ...] > docs/layouts.md

Patterns choose models by id; --each prints one line a model instead of the table. The program is taken from the folder that
ASCEND_FUSE_BUILD names, else from build. Counted are the Transposes on the paths from the projections, inputs and earlier
attentions to query, key and value of the kernel, and from its result to the next product or output of the model. Tables of
rotary embeddings, masks and shapes are no part of a path.
"""

from __future__ import annotations

import argparse
import collections
import concurrent.futures
import dataclasses
import fnmatch
import json
import os
import subprocess
import tempfile
from pathlib import Path

import onnx

ROOT = Path(__file__).resolve().parents[2]
TOOL = Path(os.environ.get("ASCEND_FUSE_BUILD", ROOT / "build")) / "ascend-fuse"
ZOO = Path(os.environ.get("ASCEND_FUSE_ZOO", ROOT / "build" / "zoo"))
KERNELS = {"NPUPromptFlashAttention", "NPUPromptFlashAttentionDirect", "NPUFusedInferAttentionScore"}
# Where a path ends: what computes every element from others of it, and other kernels.
ENDS = KERNELS | {"MatMul", "Gemm", "Conv", "Softmax", "NPUScaledMaskedSoftmax", "Einsum", "Shape", "ArgMax", "Constant"}
# Nodes whose other inputs are tables, shapes, weights or indices.
FIRST_INPUT_ONLY = {"Reshape", "Expand", "Tile", "Slice", "Split", "Gather", "Unsqueeze", "Squeeze", "Pad", "Pow",
                    "NPURotaryMul", "NPURotaryPositionEmbedding", "NPURmsNorm", "NPURmsNormWithEpsilon",
                    "LayerNormalization", "NPULayerNormV4", "GatherND", "ScatterND"}  # fmt: skip


@dataclasses.dataclass
class Count:
    """What was counted around one attention."""

    node: str
    layout: str
    before: int  # Transposes before the kernel
    after: int  # and behind it


def followed(node: onnx.NodeProto) -> list[str]:
    """The inputs through which a path to a kernel goes on."""
    if node.op_type == "NPUApplyRotaryPosEmb":
        return list(node.input[:2])
    return list(node.input[:1] if node.op_type in FIRST_INPUT_ONLY else node.input)


def counts_of(model: onnx.ModelProto) -> list[Count]:
    """One entry for each kernel of attention in the main graph."""
    constant = {tensor.name for tensor in model.graph.initializer}
    producers = {name: node for node in model.graph.node for name in node.output}
    readers = collections.defaultdict(list)
    for node in model.graph.node:
        if not any(name and name not in constant for name in node.input):
            constant.update(node.output)
        for name in node.input:
            readers[name].append(node)
    found = []
    for node in model.graph.node:
        if node.op_type not in KERNELS:
            continue
        transposes: set[str] = set()
        todo, seen = list(node.input[:3]), set()
        while todo:
            name = todo.pop()
            producer = producers.get(name)
            if name in seen or name in constant or producer is None or producer.op_type in ENDS:
                continue
            seen.add(name)
            if producer.op_type == "Transpose":
                transposes.add(name)
            todo += followed(producer)
        before = len(transposes)
        transposes = set()
        todo, seen = list(node.output), set()
        while todo:
            name = todo.pop()
            for reader in readers[name]:
                if reader.op_type in ENDS or reader.output[0] in seen or name not in followed(reader):
                    continue
                seen.add(reader.output[0])
                if reader.op_type == "Transpose":
                    transposes.add(reader.output[0])
                if reader.op_type in ("Transpose", "Reshape", "Identity", "Cast", "Squeeze", "Unsqueeze"):
                    todo += list(reader.output)
        layout = next((a.s.decode() for a in node.attribute if a.name == "input_layout"), "")
        found.append(Count(node.name or node.output[0], layout, before, len(transposes)))
    return found


def run(model_id: str, chip: str, flags: list[str]) -> list[Count]:
    with tempfile.TemporaryDirectory() as folder:
        out = f"{folder}/m.onnx"
        command = [str(TOOL), "optimize", str(ZOO / f"{model_id}.onnx"), "--target", chip, "--quiet", "--force"]
        subprocess.run([*command, "-o", out, *flags], capture_output=True, text=True, check=True)
        return counts_of(onnx.load(out, load_external_data=False))


def cache_of(entry: dict) -> str:
    """"no cache" or "cache": whether keys and values of earlier tokens are inputs."""
    return "cache" if any(spec["name"].startswith("past") for spec in entry["inputs"]) else "no cache"


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--chip", default="ascend910b")
    parser.add_argument("--plugin", action="store_true")
    parser.add_argument("--each", action="store_true")
    parser.add_argument("patterns", nargs="*")
    args = parser.parse_args()
    models = json.loads((ROOT / "tests" / "zoo" / "manifest.json").read_text())["models"]
    entries = [
        entry
        for entry in models
        if entry["expected"].get("attention")
        and any(fnmatch.fnmatchcase(entry["id"], pattern) for pattern in args.patterns or ["*"])
    ]
    flags = ["--plugin"] if args.plugin else []
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        counts = list(pool.map(lambda entry: run(entry["id"], args.chip, flags), entries))
    table: dict[tuple[str, str], collections.Counter[str]] = {}
    for entry, found in zip(entries, counts, strict=True):
        key = (cache_of(entry), entry["dims"])
        row = table.setdefault(key, collections.Counter())
        for count in found:
            row.update({"attentions": 1, "before": count.before, "after": count.after, count.layout: 1})
            row[f"{count.before}+{count.after}"] += 1
            if args.each:
                print(f"{entry['id']} {count.layout} {count.before} {count.after} {count.node}")
    for key, row in sorted(table.items()):
        print(*key, dict(row.most_common()))


if __name__ == "__main__":
    main()
