#!/usr/bin/env python3
"""Prints docs/attention.md: what becomes of the attentions of the zoo on each chip, and why some are left.

    python3 tools/zoo/fill.py
    python3 tools/zoo/attention_table.py [PATTERN ...] > docs/attention.md

Patterns choose models by id. The program is taken from the folder that ASCEND_FUSE_BUILD names, else from build.
"""

from __future__ import annotations

import collections
import concurrent.futures
import fnmatch
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
TOOL = Path(os.environ.get("ASCEND_FUSE_BUILD", ROOT / "build")) / "ascend-fuse"
ZOO = Path(os.environ.get("ASCEND_FUSE_ZOO", ROOT / "build" / "zoo"))
LENGTH = 64  # what every dim but the batch is in a prefill
# The title of each column, its chip, and whether dims are given.
COLUMNS = (("910b", "ascend910b", False), ("310P", "ascend310p", False), ("310P, prefill", "ascend310p", True))
HEAD = """# Attentions of the zoo

What becomes of the attentions of the [zoo](../tests/zoo/README.md) with the stock plugins of each chip. Printed by
`tools/zoo/attention_table.py`.

"Prefill" is every export with symbolic dims that is no decode step, with `--dim`: the batch is 1, all other dims of inputs
are 64. The codes are those of [codes](codes.md).
"""


def prefill_dims(entry: dict[str, Any]) -> list[str]:
    """The flags that give each symbol of the inputs a number."""
    sizes: dict[str, int] = {}
    for spec in entry["inputs"]:
        for axis, dim in enumerate(spec["shape"]):
            if isinstance(dim, str) and dim.isidentifier():
                sizes.setdefault(dim, 1 if axis == 0 else LENGTH)
    return [flag for name, size in sizes.items() for flag in ("--dim", f"{name}={size}")]


def is_prefill(entry: dict[str, Any]) -> bool:
    return entry["dims"] == "dynamic" and entry.get("mode") != "decode"


def report_of(entry: dict[str, Any], chip: str, flags: list[str]) -> dict[str, Any]:
    """The report of `optimize`; what is written is thrown away."""
    with tempfile.TemporaryDirectory() as folder:
        command = [str(TOOL), "optimize", str(ZOO / f"{entry['id']}.onnx"), "--target", chip, "--json", "-", "--quiet"]
        done = subprocess.run([*command, "-o", f"{folder}/m.onnx", *flags], capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def print_reasons(reports: dict[str, list[tuple[str, dict[str, Any]]]]) -> None:
    """One column for each chip: found, fused by node, left by code."""
    counts: dict[str, collections.Counter[str]] = {title: collections.Counter() for title, _, _ in COLUMNS}
    for title, runs in reports.items():
        for _, report in runs:
            for site in report["sites"]:
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


def print_nodes(reports: list[tuple[str, dict[str, Any]]], entries: dict[str, dict[str, Any]]) -> None:
    """Nodes of each architecture before and after, on the first chip."""
    nodes: dict[str, list[int]] = {}
    for name, report in reports:
        sums = nodes.setdefault(entries[name]["architecture"], [0, 0, 0])
        sums[0] += 1
        sums[1] += report["summary"]["nodes"]["before"]
        sums[2] += report["summary"]["nodes"]["after"]
    print(f"\n## Nodes\n\nThe sum over the exports of an architecture with an attention, on {COLUMNS[0][0]}.\n")
    print("| architecture | exports | nodes before | after | after / before |\n|---|---:|---:|---:|---:|")
    for architecture, (exports, before, after) in sorted(nodes.items()):
        print(f"| {architecture} | {exports} | {before} | {after} | {after / before:.2f} |")


def main() -> None:
    patterns = sys.argv[1:] or ["*"]
    models = json.loads((ROOT / "tests" / "zoo" / "manifest.json").read_text())["models"]
    entries = {
        entry["id"]: entry
        for entry in models
        if entry["expected"].get("attention") and any(fnmatch.fnmatch(entry["id"], pattern) for pattern in patterns)
    }
    reports: dict[str, list[tuple[str, dict[str, Any]]]] = {}
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for title, chip, given in COLUMNS:
            chosen = [entry for entry in entries.values() if not given or is_prefill(entry)]
            runs = pool.map(lambda entry: report_of(entry, chip, prefill_dims(entry) if given else []), chosen)
            reports[title] = list(zip((entry["id"] for entry in chosen), runs, strict=True))
    print(HEAD, end="")
    print_reasons(reports)
    print_nodes(reports[COLUMNS[0][0]], entries)


if __name__ == "__main__":
    main()
