"""What a file of records holds, as tables of Markdown: for docs/fuzzing.md."""

from __future__ import annotations

import collections
from pathlib import Path

from fuzz import runs


def markdown(path: Path) -> str:
    records = runs.read(path)
    examined = [r for r in records if "runs" in r]
    totals: collections.Counter[str] = collections.Counter()
    constructs: collections.Counter[str] = collections.Counter()
    emitted: collections.Counter[str] = collections.Counter()
    evaluated: collections.Counter[str] = collections.Counter()
    findings: dict[str, list[int]] = collections.defaultdict(list)
    for record in records:
        totals["seeds"] += 1
        totals["unusable"] += "unusable" in record
        totals["mistakes"] += "mistake" in record
        for kind in record.get("counts", {}):
            findings[kind].append(record["seed"])
    for record in examined:
        for key in ("runs", "comparisons", "bindings"):
            totals[key] += record[key]
        constructs.update(record["constructs"])
        emitted.update(record["nodes"])
        evaluated.update(record["evaluated"])
    clean = sum(not r["counts"] for r in examined)
    lines = ["| | |", "|---|---|", f"| seeds | {totals['seeds']} |", f"| graphs that ONNX Runtime runs | {len(examined)} |",
             f"| of them without a finding | {clean} |", f"| runs of `optimize` | {totals['runs']} |",
             f"| bindings | {totals['bindings']} |", f"| outputs compared | {totals['comparisons']} |",
             f"| mistakes of the fuzzer itself | {totals['mistakes']} |", "", "| finding | graphs | seeds |", "|---|---|---|"]
    for kind, seeds in sorted(findings.items(), key=lambda item: -len(item[1])):
        lines.append(f"| {kind} | {len(seeds)} | {', '.join(map(str, seeds[:8]))}{' ...' if len(seeds) > 8 else ''} |")
    lines += ["", "| node | written | evaluated in numpy |", "|---|---|---|"]
    lines += [f"| `{node}` | {count} | {evaluated[node]} |" for node, count in emitted.most_common()]
    lines += ["", "| construct | graphs |", "|---|---|"]
    lines += [f"| {kind} | {', '.join(named)} |" for kind, named in sorted(_by_kind(constructs).items())]
    return "\n".join(lines)


def _by_kind(constructs: collections.Counter[str]) -> dict[str, list[str]]:
    """"activation gelu" and "activation silu" in one row of activations; what has no kind of its own is "other"."""
    kinds: dict[str, list[str]] = collections.defaultdict(list)
    for name, count in sorted(constructs.items()):
        kind, _, rest = name.partition(" ")
        own = rest and kind not in ("shared", "weights")
        kinds[kind if own else "other"].append(f"{rest if own else name} {count}")
    return kinds
