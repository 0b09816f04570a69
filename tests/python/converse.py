"""Requests to programs that answer one a line (tests/support/requests.h), each of which is started once."""

from __future__ import annotations

import functools
import os
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path


@functools.cache
def child(tool: Path) -> subprocess.Popen[str]:
    # Models of some megabytes, again and again: memory is kept instead of being given back and cleared.
    keep = {"MALLOC_MMAP_THRESHOLD_": "4000000000", "MALLOC_TRIM_THRESHOLD_": "4000000000"}
    return subprocess.Popen([str(tool)], env={**os.environ, **keep}, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def ask(tool: Path, source: Path, folder: Path, targets: Mapping[str, Sequence[str]]) -> Iterator[list[str]]:
    """The fields of each line that the tool answers about a model and targets, each a name with flags."""
    process = child(tool)
    assert process.stdin is not None and process.stdout is not None
    requests = [" ".join([name, *flags]) for name, flags in targets.items()]
    process.stdin.write("\t".join([str(source), str(folder), *requests]) + "\n")
    process.stdin.flush()
    for line in process.stdout:
        fields = line.rstrip("\n").split("\t")
        if fields[0] == "done":
            return
        yield fields
    child.cache_clear()
    raise AssertionError(f"{tool.name} ended with {process.wait()} on {source}")
