#!/usr/bin/env python3
"""Writes the attentions of docs/results.md: what becomes of the attentions of the zoo on each chip, why some are left, which masks are
written, and how many Transposes are left around those that are fused.

    python3 tools/zoo/fill.py
    python3 tools/zoo/attention_table.py [PATTERN ...]

Patterns choose models by id; what is found of these is printed. The program is taken from the folder that ASCEND_FUSE_BUILD names, else from build.
"""

from __future__ import annotations

import collections
import concurrent.futures
import fnmatch
import itertools
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, NamedTuple

import manifest_file
import masks
import onnx
import results
import transposes

ROOT = Path(__file__).resolve().parents[2]
TOOL = Path(os.environ.get("ASCEND_FUSE_BUILD", ROOT / "build")) / "ascend-fuse"
ZOO = Path(os.environ.get("ASCEND_FUSE_ZOO", ROOT / "build" / "zoo"))
LENGTH = 64  # what every dim but the batch is in a prefill
# The title of each column, its chip, and whether dims are given.
COLUMNS = (("910b", "ascend910b", False), ("310P", "ascend310p", False), ("310P, prefill", "ascend310p", True))
HEAD = """## Attentions

What becomes of the attentions of the [zoo](../tests/zoo/README.md) with the stock plugins of each chip.

"Prefill" is every export with symbolic dims that is not a decode step, with `--dim`: the batch is 1, all other dims of inputs
are 64, and the length of a mask over cache and new tokens is 128. The codes are those of [codes](codes.md).
"""


def prefill_dims(entry: dict[str, Any]) -> list[str]:
    """The flags that give each symbol of the inputs a number. One that is the sum of two others in every binding of the
    export, as the length of a mask over cache and new tokens, is their sum here too."""
    sizes: dict[str, int] = {}
    bound: dict[str, list[int]] = {}
    for spec in entry["inputs"]:
        for axis, dim in enumerate(spec["shape"]):
            if isinstance(dim, str) and dim.isidentifier():
                sizes.setdefault(dim, 1 if axis == 0 else LENGTH)
                bound.setdefault(dim, [binding["shapes"][spec["name"]][axis] for binding in entry["bindings"]])
    lengths = sorted(name for name, size in sizes.items() if size == LENGTH)
    for total, (one, other) in itertools.product(lengths, itertools.combinations(lengths, 2)):
        sums = [a + b for a, b in zip(bound[one], bound[other], strict=True)]
        if total not in (one, other) and bound[total] == sums:
            sizes[total] = 2 * LENGTH
    return [flag for name, size in sizes.items() for flag in ("--dim", f"{name}={size}")]


def is_prefill(entry: dict[str, Any]) -> bool:
    return entry["dims"] == "dynamic" and entry.get("mode") != "decode"


class Run(NamedTuple):
    """What `optimize` made of a model."""

    report: dict[str, Any]
    # Values that are given to kernels as masks of their own, no template.
    explicit: int
    # Transposes between the products before and after a fused attention and the attention.
    before: int
    behind: int


def read_written(path: Path) -> tuple[int, int, int]:
    """Explicit masks, Transposes before and behind of a written model."""
    model = onnx.load(path, load_external_data=False)
    explicit: set[str] = set()
    for node in model.graph.node:
        if node.op_type == "NPUScaledMaskedSoftmax":
            explicit.add(node.input[1])
        if node.op_type not in transposes.KERNELS:
            continue
        mode = next((attribute.i for attribute in node.attribute if attribute.name == "sparse_mode"), 0)
        if mode in (0, 1) and len(node.input) > 4 and node.input[4]:
            explicit.add(node.input[4])
    empty = {tensor.name for tensor in model.graph.initializer if 0 in tensor.dims}
    counts = transposes.counts_of(model)
    return len(explicit - empty), sum(count.before for count in counts), sum(count.after for count in counts)


def run_of(entry: dict[str, Any], chip: str, flags: list[str]) -> Run:
    """The outcome of `optimize`; what is written is thrown away."""
    with tempfile.TemporaryDirectory() as folder:
        command = [str(TOOL), "optimize", str(ZOO / f"{entry['id']}.onnx"), "--target", chip, "--json", "-", "--quiet", "--force"]
        done = subprocess.run([*command, "-o", f"{folder}/m.onnx", *flags], capture_output=True, text=True, check=True)
        return Run(json.loads(done.stdout), *read_written(Path(f"{folder}/m.onnx")))


def print_reasons(runs: dict[str, list[tuple[str, Run]]]) -> None:
    """One column for each chip: found, fused by node, left by code."""
    counts: dict[str, collections.Counter[str]] = {title: collections.Counter() for title, _, _ in COLUMNS}
    for title, outcomes in runs.items():
        for _, run in outcomes:
            for site in run.report["sites"]:
                if site["kind"] != "attention":
                    continue
                counts[title]["found"] += 1
                fused = site["state"] == "fused"
                node = site.get("emitted_op", "").removeprefix("npu.")
                counts[title]["fused" if fused else "left"] += 1
                counts[title][f"fused as {node}" if fused else f"left: {site['code']}"] += 1
    rows = {row for count in counts.values() for row in count}
    print("\n| | " + " | ".join(counts) + " |\n|---|" + "---:|" * len(counts))
    for row in sorted(rows, key=lambda name: (name != "found", name.startswith("left"), name)):
        print(f"| {row} | " + " | ".join(str(count[row]) for count in counts.values()) + " |")


def print_masks(runs: list[tuple[str, Run]], entries: dict[str, dict[str, Any]]) -> None:
    """What masks were found to be, beside what configurations say."""
    words: collections.Counter[str] = collections.Counter()
    equal = 0
    for name, run in runs:
        found = collections.Counter(site["mask"] for site in run.report["sites"] if site["kind"] == "attention")
        words += found
        equal += sum((found & masks.expected_masks(entries[name])).values())
    masked = sum(count for word, count in words.items() if word != "none")
    whole = masked - sum(count for word, count in words.items() if "explicit" in word)
    print(f"\n### Masks\n\nOf {masked} attentions with a mask {whole} are understood to the last clause "
          f"({100 * whole / masked:.1f} %). {equal} of {sum(words.values())} have the word that follows from "
          "configuration and mode of the export.\n")
    print("| mask | attentions |\n|---|---:|")
    for word, count in sorted(words.items(), key=lambda row: (-row[1], row[0])):
        print(f"| {word} | {count} |")


def print_architectures(runs: list[tuple[str, Run]], entries: dict[str, dict[str, Any]]) -> None:
    """Nodes, masks and Transposes of each architecture, on the first chip."""
    rows: dict[str, list[int]] = {}
    for name, run in runs:
        sites = [site for site in run.report["sites"] if site["kind"] == "attention"]
        nodes = run.report["summary"]["nodes"]
        fused = [site for site in sites if site["state"] == "fused"]
        kinds = {site["mask"] for site in fused if site["mask"] != "none"}
        numbers = [1, nodes["before"], nodes["after"], len(sites), len(fused), len(kinds), run.explicit, run.before, run.behind]
        row = rows.setdefault(entries[name]["architecture"], [0] * len(numbers))
        row[:] = [sum(pair) for pair in zip(row, numbers, strict=True)]
    print(f"\n### Architectures\n\nSums over the exports of an architecture with an attention, on {COLUMNS[0][0]}. Kinds of masks: "
          "different masks of an export, by what they mean; explicit: masks that are written as a tensor of their own, at most one "
          "for each mask that differs (two of a gemma3 decode step have one word). Transposes: as the next section counts them.\n")
    print("| architecture | exports | nodes before | after | after / before | attentions | fused | kinds of masks | explicit "
          "| Transposes before | after |\n|---|" + "---:|" * 10)
    for architecture, (count, before, after, *others) in sorted(rows.items()):
        print(f"| {architecture} | {count} | {before} | {after} | {after / before:.2f} | "
              + " | ".join(map(str, others)) + " |")


def main() -> None:
    patterns = sys.argv[1:] or ["*"]
    models = manifest_file.load()["models"]
    entries = {
        entry["id"]: entry
        for entry in models
        if entry["expected"].get("attention") and any(fnmatch.fnmatch(entry["id"], pattern) for pattern in patterns)
    }
    runs: dict[str, list[tuple[str, Run]]] = {}
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for title, chip, given in COLUMNS:
            chosen = [entry for entry in entries.values() if not given or is_prefill(entry)]
            done = pool.map(lambda entry: run_of(entry, chip, prefill_dims(entry) if given else []), chosen)
            runs[title] = list(zip((entry["id"] for entry in chosen), done, strict=True))
    with results.printed("attention", whole=patterns == ["*"]):
        print(HEAD, end="")
        print_reasons(runs)
        print_masks(runs[COLUMNS[0][0]], entries)
        print_architectures(runs[COLUMNS[0][0]], entries)


if __name__ == "__main__":
    main()
