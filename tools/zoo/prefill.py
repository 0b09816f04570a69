#!/usr/bin/env python3
"""Writes a part of docs/results.md: how many attentions of prefill exports are fused where the user says what the dims are.

    python3 tools/zoo/fill.py
    python3 tools/zoo/prefill.py [PATTERN ...]

A prefill is an export that is not a decode step: of those with symbolic dims the batch is 1 and all other dims of inputs are 64
(--dim); the length of a mask over cache and new tokens is 128. Patterns choose models by id; what is found of these is printed. The program is taken from the folder that ASCEND_FUSE_BUILD names, else from build.
"""

from __future__ import annotations

import collections
import concurrent.futures
import fnmatch
import json
import os
import sys
from typing import Any

import manifest_file
import results
from attention_table import ROOT, is_prefill, prefill_dims, run_of

# The title of each column, and the flags besides --dim.
COLUMNS = (("stock", ()), ("with our op plugin", ("--plugin",)))
CHIP = "ascend310p"


def count_site(site: dict[str, Any], count: collections.Counter[str]) -> None:
    """Adds an attention to the rows that print_table prints."""
    fused = site["state"] == "fused"
    count["found"] += 1
    count["fused"] += fused
    count[site["emitted_op"].removeprefix("npu.") if fused else f"left: {site['code']}"] += 1


def print_table(counts: dict[str, collections.Counter[str]]) -> None:
    """One column for each of COLUMNS: found, fused by node, left by code, and the share of what is fused."""
    rows = sorted({row for count in counts.values() for row in count},
                  key=lambda row: (row not in ("found", "fused"), row.startswith("left"), row != "found", row))
    print("| | " + " | ".join(counts) + " |\n|---|" + "---:|" * len(counts))
    for row in rows:
        print(f"| {row} | " + " | ".join(str(count[row]) for count in counts.values()) + " |")
    shares = [f"{count['fused'] / count['found']:.0%}" for count in counts.values()]
    print("| share | " + " | ".join(shares) + " |")


def main() -> None:
    patterns = sys.argv[1:] or ["*"]
    models = manifest_file.load()["models"]
    chosen = [
        entry
        for entry in models
        if entry["expected"].get("attention") and is_prefill(entry)
        and any(fnmatch.fnmatchcase(entry["id"], pattern) for pattern in patterns)
    ]
    counts: dict[str, collections.Counter[str]] = {title: collections.Counter() for title, _ in COLUMNS}
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for title, flags in COLUMNS:
            for run in pool.map(lambda e, more=flags: run_of(e, CHIP, [*prefill_dims(e), *more]), chosen):
                for site in run.report["sites"]:
                    if site["kind"] == "attention":
                        count_site(site, counts[title])
    with results.printed("prefill", whole=patterns == ["*"]):
        print(f"## Attention in a prefill with `--dim`, on {CHIP}\n")
        print("Exports of the [zoo](../tests/zoo/README.md) with symbolic dims that are not a decode")
        print("step, with `--dim`: the batch is 1, all other dims of inputs are 64, and the length of a mask over cache and new tokens")
        print("is 128.\n")
        print_table(counts)


if __name__ == "__main__":
    main()
