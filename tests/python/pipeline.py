"""Models optimized for many targets by one process (tests/pipeline_tool.cc), which keeps the rules it has read."""

from __future__ import annotations

import functools
import json
import os
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from conftest import BUILD

TOOL = BUILD / "tests" / "pipeline_tool"


@dataclass
class Run:
    """A model optimized for a target. Targets with the same bytes share the file, and so with the expansion."""

    optimized: Path
    expanded: Path
    report: dict[str, Any]

    @property
    def assumptions(self) -> set[str]:
        return {sentence for site in self.report["sites"] for sentence in site["assumptions"]}


@dataclass
class Runs:
    """What came of one model. wrong: for each target the sentences of pipeline_tool about what does not hold."""

    targets: dict[str, Run] = field(default_factory=dict)
    wrong: dict[str, list[str]] = field(default_factory=dict)


@functools.cache
def child() -> subprocess.Popen[str]:
    # Models of some megabytes, again and again: memory is kept instead of being given back and cleared.
    keep = {"MALLOC_MMAP_THRESHOLD_": "4000000000", "MALLOC_TRIM_THRESHOLD_": "4000000000"}
    return subprocess.Popen([str(TOOL)], env={**os.environ, **keep}, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def optimize(source: Path, folder: Path, targets: Mapping[str, Sequence[str]]) -> Runs:
    """Optimizes a model (.onnx or .onnxtxt) with the flags of each target; files are written to `folder`."""
    process = child()
    assert process.stdin is not None and process.stdout is not None
    requests = [" ".join([name, *flags]) for name, flags in targets.items()]
    process.stdin.write("\t".join([str(source), str(folder), *requests]) + "\n")
    process.stdin.flush()
    runs = Runs()
    for line in process.stdout:
        kind, *words = line.rstrip("\n").split("\t")
        if kind == "done":
            return runs
        if kind == "wrong":
            runs.wrong.setdefault(words[0], []).append(words[1])
            continue
        name, optimized, expanded = words
        report = json.loads((folder / f"{name}.json").read_text())
        runs.targets[name] = Run(folder / f"optimized-{optimized}.onnx", folder / f"expanded-{expanded}.onnx", report)
    child.cache_clear()
    raise AssertionError(f"pipeline_tool ended with {process.wait()} on {source}")
