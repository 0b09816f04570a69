"""What many targets make of an export, as it is and after `optimize` (tests/last_mile_tool.cc), and the list of operators
that no chip, or not every one, can be given: for scripts/last-mile and test_last_mile.py."""

from __future__ import annotations

import collections
import os
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import converse

ROOT = Path(__file__).resolve().parents[2]
TOOL = Path(os.environ.get("ASCEND_FUSE_BUILD", ROOT / "build")) / "tests" / "last_mile_tool"
GOLDEN = ROOT / "tests" / "zoo" / "last_mile.txt"
CHIPS = ("ascend310p", "ascend310b", "ascend910", "ascend910b", "ascend910_93", "ascend950")
RELEASES = ("8.1", "8.5", "9.0", "9.1", "9.2", "2026.07")
# Words of FindingRecord: ATC accepts these and computes something else ...
MISREAD = frozenset(("misread", "loses_type"))
# ... and with these it ends with an error.
FATAL = MISREAD | {"refused", "no_parser", "no_kernel"}
HEAD = """# Exports in which ATC refuses or misreads an operator after `optimize` because no exact other spelling is known: the code of the
# finding, the operator, the chips and releases (all where none is named), the exports. Written by scripts/last-mile.
"""


@dataclass
class Told:
    """What last_mile_tool says of an export. A configuration is chip|release|stock, or chip|release|plugin."""

    # By configuration, then original or optimized: certain, effect, code, operator, count.
    found: dict[str, dict[str, list[list[Any]]]] = field(default_factory=dict)
    # Configuration, which, number of the reading (None: refused), why.
    read: list[tuple[str, str, int | None, str]] = field(default_factory=list)
    wrong: list[list[str]] = field(default_factory=list)  # configuration, sentence


def configurations(read: Collection[str] = ()) -> dict[str, list[str]]:
    """Flags by configuration; those of the releases in `read` are read as ATC does, too."""
    flags = {}
    for chip in CHIPS:
        for cann in RELEASES:
            base = [f"--target={chip}", f"--cann={cann}"]
            flags[f"{chip}|{cann}|stock"] = [*base, *(["--read"] if cann in read else [])]
            flags[f"{chip}|{cann}|plugin"] = [*base, "--plugin"]
    return flags


def ask(source: Path, folder: Path, read: Collection[str] = ()) -> Told:
    """What becomes of an export in every configuration. Readings are written to `folder`, as reading-N.onnx."""
    told = Told()
    for kind, *words in converse.ask(TOOL, source, folder, configurations(read)):
        if kind == "wrong":
            told.wrong.append(words)
        elif kind == "found":
            config, which, certain, effect, code, op, count = words
            told.found[config][which].append([certain == "1", effect, code, op, int(count)])
        elif kind == "read":
            told.read.append((words[0], words[1], int(words[2]), ""))
        elif kind == "unread":
            told.read.append((words[0], words[1], None, words[2]))
        elif kind == "model":
            told.found.setdefault(words[0], {})[words[1]] = []
    return told


def left_in(found: dict[str, dict[str, list[list[Any]]]]) -> dict[tuple[str, str], set[str]]:
    """Code and operator of what is surely refused or misread in optimized files: the configurations."""
    left: dict[tuple[str, str], set[str]] = collections.defaultdict(set)
    for config, both in found.items():
        for certain, effect, code, op, _ in both.get("optimized", []):
            if certain and effect in FATAL:
                left[code, op].add(config)
    return left


def named(configs: Collection[str]) -> str:
    """Configurations as words: chips, releases, and whether the plugin changes it."""
    parts = [config.split("|") for config in configs]

    def words(place: int, every: Collection[str]) -> str:
        some = {part[place] for part in parts}
        return "all" if some >= set(every) else "+".join(word for word in every if word in some)

    return " ".join((words(0, CHIPS), words(1, RELEASES), words(2, ("stock", "plugin"))))


def golden(records: Iterable[dict[str, Any]]) -> str:
    """A line for each code, operator and configurations: the exports."""
    exports: dict[tuple[str, str, str], list[str]] = collections.defaultdict(list)
    for record in records:
        for (code, op), configs in left_in(record["found"]).items():
            exports[code, op, named(configs)].append(record["model"])
    return HEAD + "".join(f"{code} {op} {configs}: {' '.join(sorted(models))}\n"
                          for (code, op, configs), models in sorted(exports.items()))


def left_table(records: list[dict[str, Any]]) -> str:
    """The same with counts, for the document."""
    left: dict[tuple[str, str, str], set[str]] = collections.defaultdict(set)
    opened: dict[tuple[str, str], set[str]] = collections.defaultdict(set)
    for record in records:
        for (code, op), configs in left_in(record["found"]).items():
            left[code, op, named(configs)].add(record["model"])
        for both in record["found"].values():
            for certain, effect, code, op, _ in both.get("optimized", []):
                if not certain and effect in FATAL and not op.startswith("npu."):
                    opened[code, op].add(record["model"])
    models = set().union(*left.values()) if left else set()
    text = f"\nRefused or misread after `optimize` in {len(models)} of {len(records)} exports because no other spelling is known"
    text += ":\n\n| code | operator | chips, releases, stock or plugin | exports |\n|---|---|---|---|\n" if left else ".\n"
    for (code, op, configs), some in sorted(left.items(), key=lambda item: (-len(item[1]), item[0])):
        text += f"| `{code}` | {op} | {configs} | {len(some)} |\n"
    if opened:
        text += "\nOpen after `optimize`, on one chip and release at least:\n\n| code | operator | exports |\n|---|---|---|\n"
        for (code, op), some in sorted(opened.items(), key=lambda item: (-len(item[1]), item[0])):
            text += f"| `{code}` | {op} | {len(some)} |\n"
    return text
