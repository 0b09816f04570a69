#!/usr/bin/env python3
"""Writes a part of docs/results.md: what is left of the nodes of the zoo.

    python3 tools/zoo/fill.py
    python3 tools/zoo/tidied.py [--chip CHIP] [PATTERN ...]

With patterns, which choose models by id, a line for each of these models is printed and nothing is written. The program is taken
from the folder that ASCEND_FUSE_BUILD names, else from build; the models from ASCEND_FUSE_ZOO, else from build/zoo. Counted are
nodes of all graphs, with those of functions where they are called, and without Constants: of the export, of what `optimize
--keep-rest` writes, and of what `optimize` writes.
"""

from __future__ import annotations

import argparse
import collections
import concurrent.futures
import fnmatch
import os
import subprocess
import tempfile
from pathlib import Path

import manifest_file
import onnx
import onnx.inliner
import results

ROOT = Path(__file__).resolve().parents[2]
TOOL = Path(os.environ.get("ASCEND_FUSE_BUILD", ROOT / "build")) / "ascend-fuse"
ZOO = Path(os.environ.get("ASCEND_FUSE_ZOO", ROOT / "build" / "zoo"))
HEAD = """## Nodes that are left

What is left of the nodes of the [zoo](../tests/zoo/README.md), by architecture: exported, fused (`--keep-rest`), and fused and tidied. Constants
do not count. Written by `tools/zoo/tidied.py`.

| models | exports | nodes | fused | tidied | left of all |
|---|---|---|---|---|---|
"""
Counts = tuple[int, int, int]


def nodes_of(graph: onnx.GraphProto) -> int:
    """Returns the nodes of a graph and of its bodies, without Constants."""
    bodies = sum(nodes_of(attribute.g) for node in graph.node for attribute in node.attribute if attribute.HasField("g"))
    return bodies + sum(node.op_type != "Constant" for node in graph.node)


def count(path: Path) -> int:
    """Returns the nodes of a model, those of functions where they are called."""
    model = onnx.load(path, load_external_data=False)
    return nodes_of((onnx.inliner.inline_local_functions(model) if model.functions else model).graph)


def measure(model: str, chip: str) -> Counts:
    """Returns nodes before, fused, and fused and tidied."""
    source = ZOO / f"{model}.onnx"
    counts = [count(source)]
    with tempfile.TemporaryDirectory() as folder:
        for flags in (["--keep-rest"], []):
            output = Path(folder) / "out.onnx"
            subprocess.run([TOOL, "optimize", source, "-o", output, "--quiet", "--force", "--target", chip, *flags], check=True)
            counts.append(count(output))
    return counts[0], counts[1], counts[2]


def row(name: str, exports: int, counts: Counts) -> str:
    before, fused, tidied = counts
    return f"| {name} | {exports} | {before} | {fused} | {tidied} | {tidied / max(before, 1):.3f} |"


def is_dynamic_decoder(entry: dict[str, object]) -> bool:
    """Whether it is a decoder with a cache and symbolic dims."""
    return entry["mode"] in ("past", "decode") and entry["dims"] != "static"


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--chip", default="ascend910b")
    parser.add_argument("patterns", nargs="*")
    arguments = parser.parse_args()
    chosen = [entry for entry in manifest_file.load()["models"]
              if not arguments.patterns or any(fnmatch.fnmatchcase(entry["id"], p) for p in arguments.patterns)]
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        counts = list(pool.map(lambda entry: measure(entry["id"], arguments.chip), chosen))
    groups: dict[str, list[Counts]] = collections.defaultdict(list)
    for entry, of_model in zip(chosen, counts, strict=True):
        groups[entry["id"] if arguments.patterns else entry["architecture"]].append(of_model)
        groups["all"].append(of_model)
        if is_dynamic_decoder(entry):
            groups["decoders with a cache and symbolic dims"].append(of_model)
    names = sorted(groups.keys() - {"all", "decoders with a cache and symbolic dims"}) + [
        name for name in ("decoders with a cache and symbolic dims", "all") if name in groups]
    rows = [row(name, len(groups[name]), tuple(map(sum, zip(*groups[name], strict=True)))) for name in names]  # type: ignore[arg-type]
    if arguments.patterns:
        print("\n".join(rows))
    else:
        results.put("tidied", HEAD + "\n".join(rows) + "\n")


if __name__ == "__main__":
    main()
