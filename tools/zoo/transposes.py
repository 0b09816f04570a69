#!/usr/bin/env python3
"""Counts the Transposes around the fused attentions of the zoo: writes tests/zoo/transposes.txt and a part of docs/results.md.

    python3 tools/zoo/fill.py
    python3 tools/zoo/transposes.py
    python3 tools/zoo/transposes.py [--chip CHIP] [--plugin] PATTERN ...

With patterns, which choose models by id, the lines of these models are printed and nothing is written. The program is taken
from the folder that ASCEND_FUSE_BUILD names, else from build. Counted are the Transposes on the paths from the projections, inputs and earlier
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
import re
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import manifest_file
import onnx
import results

ROOT = Path(__file__).resolve().parents[2]
TOOL = Path(os.environ.get("ASCEND_FUSE_BUILD", ROOT / "build")) / "ascend-fuse"
ZOO = Path(os.environ.get("ASCEND_FUSE_ZOO", ROOT / "build" / "zoo"))
REVIEWED = ROOT / "tests" / "zoo" / "transposes.txt"
HEAD = """## Transposes around attention

What the pass `choose_orders` leaves of Transposes around the fused attentions of the [zoo](../tests/zoo/README.md) on 910b,
with the stock plugins: those on the paths from projections, inputs and earlier attentions to query, key and value, and from
the result to the next product or output. `tests/zoo/transposes.txt` has each model, and a test
that none has more.
"""
TAIL = """
Without a cache hardly any is left: a few in exports that split heads in another order than kernels read them. Models with their tokens first, [S, B, E], as those of `torch.nn.MultiheadAttention` and the pooling head
of siglip, have the projections between their own Transposes computed with the batch first, so that these go too. With a
cache the heads stand before the tokens, as the cache has them, and what is projected is brought there.
"""
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
    after: int  # and after it


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


def line_of(counts: list[Count]) -> str:
    """What transposes.txt says of a model: of each attention its layout, Transposes before it + after it."""
    return ", ".join(f"{count.layout} {count.before}+{count.after}" for count in counts) or "none"


def reviewed() -> dict[str, str]:
    """The lines of transposes.txt by model."""
    lines = [line for line in REVIEWED.read_text().splitlines() if not line.startswith("#")]
    return dict(line.split(": ", 1) for line in lines)


def total_of(line: str) -> int:
    """All Transposes that a line of transposes.txt counts."""
    return sum(int(number) for number in re.findall(r"\b(\d+)\b", line))


def cache_of(entry: dict[str, Any]) -> str:
    """Whether keys and values of earlier tokens are inputs."""
    return "with a cache" if any(spec["name"].startswith("past") for spec in entry["inputs"]) else "without a cache"


def print_table(entries: list[dict[str, Any]], found: list[list[Count]]) -> None:
    table: dict[tuple[str, str], collections.Counter[str]] = {}
    for entry, counts in zip(entries, found, strict=True):
        row = table.setdefault((cache_of(entry), entry["dims"]), collections.Counter())
        for count in counts:
            row.update({"attentions": 1, "before": count.before, "after": count.after, count.layout: 1})
            row["none"] += count.before + count.after == 0
    print(HEAD)
    columns = ("attentions", "BSH", "BSND", "BNSD_BSND", "BNSD", "none", "before", "after")
    print("| exports | dims | attentions | BSH | BSND | BNSD_BSND | BNSD | without any Transpose | Transposes before | after |")
    print("|---|---|" + "---:|" * len(columns))
    for key, row in sorted(table.items()):
        print("| " + " | ".join([*key, *(str(row[column]) for column in columns)]) + " |")
    print(TAIL, end="")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--chip", default="ascend910b")
    parser.add_argument("--plugin", action="store_true")
    parser.add_argument("patterns", nargs="*")
    args = parser.parse_args()
    models = manifest_file.load()["models"]
    entries = [
        entry
        for entry in models
        if entry["expected"].get("attention")
        and any(fnmatch.fnmatchcase(entry["id"], pattern) for pattern in args.patterns or ["*"])
    ]
    flags = ["--plugin"] if args.plugin else []
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        found = list(pool.map(lambda entry: run(entry["id"], args.chip, flags), entries))
    lines = sorted(f"{entry['id']}: {line_of(counts)}\n" for entry, counts in zip(entries, found, strict=True))
    if args.patterns:
        print("".join(lines), end="")
        return
    REVIEWED.write_text("# Layout of each fused attention on 910b, Transposes before + after. Written by tools/zoo/transposes.py.\n" + "".join(lines))
    with results.printed("layouts", whole=not args.plugin):
        print_table(entries, found)


if __name__ == "__main__":
    main()
