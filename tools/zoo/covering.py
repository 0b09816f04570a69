#!/usr/bin/env python3
"""Chooses a few exports of the zoo that show everything the zoo shows.

    python3 tools/zoo/covering.py            writes tests/zoo/covering.txt
    python3 tools/zoo/covering.py --check    only tells whether the choice still covers everything

What an export shows are its exporter, opset, architecture and mode, its operators, and for every target what the program finds:
rules, states, emitted nodes, codes with the place that gives the reason, masks, forms that are adapted, warnings, near misses. The
choice is greedy: the export that shows most of what is still missing comes first, so that the first lines are the best small set.
Each line says what of the zoo the export adds. Quick tests take the first lines, as many as there are architectures. The others
stay: for one program of a mask they are the same again with other lengths, and the full tests run all of them.

ASCEND_FUSE_BUILD names the build folder; it is build/ if that is not set. Takes a minute or two.
"""

from __future__ import annotations

import concurrent.futures
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import onnx

sys.path.insert(0, str(Path(__file__).resolve().parent))
import fill  # noqa: E402

BUILD = Path(os.environ.get("ASCEND_FUSE_BUILD", fill.REPOSITORY / "build"))
FILE = fill.ZOO / "covering.txt"
HEAD = "# Exports that show everything the zoo shows, the best first, and what each adds. Written by tools/zoo/covering.py.\n"
TARGETS = [
    ["--target", chip, *flags]
    for chip, flags in (
        ("ascend310b", []), ("ascend310p", []), ("ascend310p", ["--plugin"]), ("ascend910b", []), ("ascend910b", ["--plugin"]),
        ("ascend910_93", []), ("ascend910_93", ["--plugin"]), ("ascend950", []), ("ascend950", ["--plugin"]),
    )
]  # fmt: skip
Feature = tuple[str, ...]


def of_entry(entry: dict[str, Any]) -> set[Feature]:
    """What the manifest says of an export."""
    made = (entry["exporter"], str(entry["opset"]))
    features = {("export", *made, entry["dims"]), ("export", *made, entry["dtype"]), ("export", entry["transformers"]),
                ("export", entry["architecture"]), ("export", *made, str(entry["mode"])), ("export", str(entry["attention"]))}
    return features | ({("export", *made, entry["after"])} if entry.get("after") else set())


def operators(graph: onnx.GraphProto) -> set[Feature]:
    found = set()
    for node in graph.node:
        found.add(("operator", node.domain, node.op_type))
        for attribute in node.attribute:
            if attribute.type == onnx.AttributeProto.GRAPH:
                found |= operators(attribute.g)
    return found


def of_report(target: str, report: dict[str, Any]) -> set[Feature]:
    """What the program says for one target."""
    features: set[Feature] = set()
    for site in report["sites"]:
        features.add(("rule", site["rule"], site["precision"]))
        features.add(("site", target, site["kind"], site["state"], site["emitted_op"]))
        features.add(("mask", site["mask"]))
        if site["code"]:
            features.add(("reason", target, site["kind"], site["state"], site["code"], site["source"].rpartition(":")[0]))
    features |= {("warning", target, warning["code"]) for warning in report["warnings"]}
    features |= {("form", target, record["code"], record["op"]) for record in report["adapted"]}
    features |= {("finding", target, finding["code"], finding["op"]) for finding in report["findings"]}
    return features | {("near miss", miss["rule"], miss["code"]) for miss in report["near_misses"]}


def features_of(entry: dict[str, Any]) -> set[Feature]:
    path = BUILD / "zoo" / f"{entry['id']}.onnx"
    features = of_entry(entry) | operators(onnx.load(path, load_external_data=False).graph)
    for target in TARGETS:
        command = [str(BUILD / "ascend-fuse"), "list", str(path), *target, "--json", "-", "--quiet"]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        features |= of_report(" ".join(target[1:]), json.loads(done.stdout))
    return features


def choose(shown: dict[str, set[Feature]]) -> dict[str, set[Feature]]:
    """Returns the chosen exports, the best first, with what each adds."""
    missing = set().union(*shown.values())
    chosen: dict[str, set[Feature]] = {}
    while missing:
        best = max(shown, key=lambda i: len(shown[i] & missing))  # of equal ones the first of the manifest
        chosen[best] = shown[best] & missing
        missing -= shown[best]
    return chosen


def chosen_ids() -> list[str]:
    """Returns the exports of the file, the best first."""
    return [line.partition(":")[0] for line in FILE.read_text().splitlines() if line and not line.startswith("#")]


def text_of(chosen: dict[str, set[Feature]]) -> str:
    lines = []
    for model_id, adds in chosen.items():
        told = sorted(" ".join(word for word in feature if word) for feature in adds)
        more = f" and {len(told) - 2} more" if len(told) > 2 else ""
        lines.append(f"{model_id}: {'; '.join(told[:2])}{more}\n")
    return HEAD + "".join(lines)


def main() -> int:
    entries = fill.load_manifest()["models"]
    fill.fill(BUILD / "zoo", [entry["id"] for entry in entries])
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        shown = dict(zip([entry["id"] for entry in entries], pool.map(features_of, entries)))
    everything = set().union(*shown.values())
    if "--check" in sys.argv[1:]:
        missing = everything - set().union(*(shown[model_id] for model_id in chosen_ids()))
        for feature in sorted(missing):
            print("not covered:", *feature)
        return 1 if missing else 0
    chosen = choose(shown)
    FILE.write_text(text_of(chosen))
    quick = len({entry["architecture"] for entry in entries})
    covered = set().union(*(shown[model_id] for model_id in list(chosen)[:quick]))
    print(f"{len(entries)} exports show {len(everything)} things; {len(chosen)} show all, the first {quick} of them {len(covered)}")
    first = {}
    for entry in entries:
        key = (entry["dims"] != "dynamic", entry["id"])
        first[entry["architecture"]] = min(first.get(entry["architecture"], key), key)
    plain = set().union(*(shown[model_id] for _, model_id in first.values()))
    print(f"the first export of each of {quick} architectures shows {len(plain)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
