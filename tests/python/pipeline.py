"""Models optimized for many targets by one process (tests/pipeline_tool.cc), which keeps the rules it has read."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import converse
from conftest import BUILD, ROOT

TOOL = BUILD / "tests" / "pipeline_tool"
# Effects of findings with which ATC compiles the model as ONNX defines it.
NO_FAULT = ("ai_cpu", "host", "slow", "precision")


@dataclass
class Run:
    """A model optimized for a target. Targets with the same bytes share the file, and so with the expansion."""

    optimized: Path
    expanded: Path
    report: dict[str, Any]
    reading: Path | None = None  # with --read: what that ATC makes of it
    unread: str = ""             # or why it makes nothing of it

    @property
    def is_fatal(self) -> bool:
        """Whether ATC refuses or misreads what `optimize` made, which it therefore does not write without --force."""
        return any(f["certain"] and f["effect"] not in NO_FAULT for f in self.report["findings"])

    @property
    def assumptions(self) -> set[str]:
        return {sentence for site in self.report["sites"] for sentence in site["assumptions"]}


@dataclass
class Runs:
    """What came of one model. wrong: for each target the sentences of pipeline_tool about what does not hold."""

    targets: dict[str, Run] = field(default_factory=dict)
    wrong: dict[str, list[str]] = field(default_factory=dict)


def optimize(source: Path, folder: Path, targets: Mapping[str, Sequence[str]]) -> Runs:
    """Optimizes a model (.onnx or .onnxtxt) with the flags of each target; files are written to `folder`."""
    runs = Runs()
    for kind, *words in converse.ask(TOOL, source, folder, targets):
        if kind == "wrong":
            runs.wrong.setdefault(words[0], []).append(words[1])
            continue
        if kind == "read":
            runs.targets[words[0]].reading = folder / f"reading-{words[1]}.onnx"
            continue
        if kind == "unread":
            runs.targets[words[0]].unread = words[1]
            continue
        name, optimized, expanded = words
        report = json.loads((folder / f"{name}.json").read_text())
        runs.targets[name] = Run(folder / f"optimized-{optimized}.onnx", folder / f"expanded-{expanded}.onnx", report)
    return runs
