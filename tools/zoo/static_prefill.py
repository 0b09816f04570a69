#!/usr/bin/env python3
"""Exports prefills with static dims, batch 1 and 64 tokens, and prints how many of their attentions are fused on 310P.

    python3 tools/zoo/static_prefill.py [PATTERN ...]

Every architecture of the zoo whose inputs have a length, without a cache, by both exporters, in the first of its attention
implementations. Patterns choose ids. Nothing is kept. The program is taken from the folder that ASCEND_FUSE_BUILD names, else from
build. Needs the packages of requirements.txt. Without patterns, docs/results.md has what it finds.
"""

from __future__ import annotations

import collections
import fnmatch
import json
import subprocess
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

import onnx
import torch

import results
from attention_table import TOOL
from export import ARCHITECTURES, fill_parameters, known_sizes, module_class, reason_of, run_exporter
from prefill import CHIP, COLUMNS, count_site, print_table
from variants import CROSS_DECODERS, DECODERS, OTHERS, Variant

SIZES = {"batch": 1, "seq": 64, "past": 64}
EXPORTERS = ("ts17", "dy18")


def variants() -> list[Variant]:
    """What is exported: decoders without a cache, and what has no such choice."""
    rows = {**dict.fromkeys(DECODERS, "nocache"), **dict.fromkeys([*CROSS_DECODERS, *OTHERS])}
    attention = {**DECODERS, **CROSS_DECODERS, **OTHERS}
    return [
        Variant(name, attention[name].split()[0], mode, exporter, "static")
        for name, mode in rows.items()
        for exporter in EXPORTERS
        if any(set(i.shape) & {"seq", "height"} for i in ARCHITECTURES[name].inputs(mode or ""))
    ]


def exported(variant: Variant) -> onnx.ModelProto:
    """The model of a variant with these sizes."""
    architecture = replace(ARCHITECTURES[variant.architecture], sizes=SIZES)
    known = known_sizes(SIZES)
    inputs = [replace(i, shape=tuple(known.get(d, d) for d in i.shape)) for i in architecture.inputs(variant.mode or "")]
    torch.manual_seed(0)
    module = module_class(variant.architecture, variant.mode or "")(architecture.make(variant.attention)).eval()
    fill_parameters(module)
    return run_exporter(variant, architecture, module, inputs)


def main() -> None:
    patterns = sys.argv[1:] or ["*"]
    chosen = [v for v in variants() if any(fnmatch.fnmatchcase(v.id, pattern) for pattern in patterns)]
    counts: dict[str, collections.Counter[str]] = {title: collections.Counter() for title, _ in COLUMNS}
    architectures = set()
    exports = 0
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.onnx"
        for variant in chosen:
            try:
                onnx.save(exported(variant), path)
            except Exception as error:  # an exporter's, of any kind
                print(f"{variant.id}: {reason_of(error)}", file=sys.stderr)
                continue
            sites = {}
            for title, flags in COLUMNS:
                command = [str(TOOL), "list", str(path), "--target", CHIP, "--json", "-", "--quiet", *flags]
                report = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
                sites[title] = [site for site in report["sites"] if site["kind"] == "attention"]
                for site in sites[title]:
                    count_site(site, counts[title])
                    if site["state"] != "fused":
                        print(f"{variant.id} {title}: {site['output']} {site['because']}", file=sys.stderr)
            if any(sites.values()):
                architectures.add(variant.architecture)
                exports += 1
    with results.printed("static-prefill", whole=patterns == ["*"]):
        print("## Attention in a prefill with static dims\n")
        print(f"{exports} exports of {len(architectures)} architectures without a cache, made for")
        print("this with a batch of 1 and 64 tokens, by both exporters, without `--dim`.\n")
        print_table(counts)


if __name__ == "__main__":
    main()
