"""How many sites of each kind are fused, left to GE, and left: per model and target, against tests/zoo/counts.txt.

    BLESS=1 .venv/bin/python -m pytest -c tests/pytest.ini -n 2 tests/python/test_zoo_counts.py

writes the file anew; its diff is then what there is to review. That every site that is left says why, and who says
so, that the sums are right, and that `found` is one number for all targets, is not a matter of blessing.
"""

from __future__ import annotations

import fcntl
import os
import subprocess
from pathlib import Path

import pytest
from conftest import BUILD, ROOT

import fill

COUNTS = ROOT / "tests" / "zoo" / "counts.txt"
TOOL = BUILD / "tests" / "zoo_counts_tool"
SHARDS = 4


def entries_of(text: str) -> dict[str, str]:
    """Returns what the text says of each model."""
    entries: dict[str, list[str]] = {}
    for line in text.splitlines():
        if line and not line.startswith((" ", "#")):
            current = entries.setdefault(line, [])
        elif line.startswith(" "):
            current.append(line)
    return {model: "\n".join(lines) for model, lines in entries.items()}


@pytest.mark.parametrize("shard", range(SHARDS))
def test_counts_are_those_that_were_reviewed(zoo: Path, shard: int) -> None:
    models = sorted(entry["id"] for entry in fill.load_manifest()["models"])
    mine = models[shard::SHARDS]
    done = subprocess.run([str(TOOL), str(zoo), *mine], capture_output=True, text=True, check=False)
    if os.environ.get("BLESS"):
        with open(BUILD / "counts.lock", "w") as lock:  # other shards write, too
            fcntl.flock(lock, fcntl.LOCK_EX)
            known = entries_of(COUNTS.read_text()) if COUNTS.exists() else {}
            known.update(entries_of(done.stdout))
            text = "# Sites fused / by GE / left, per model and target. Written by tests/python/test_zoo_counts.py.\n"
            COUNTS.write_text(text + "".join(f"{model}\n{known[model]}\n" for model in models if model in known))
    assert done.returncode == 0, done.stderr
    if os.environ.get("BLESS"):
        return
    found = entries_of(done.stdout)
    expected = entries_of(COUNTS.read_text())
    assert set(expected) == set(models), "models without counts, or counts without a model: bless"
    differences = [
        f"{model}\n- {expected[model]}\n+ {found[model]}" for model in mine if found[model] != expected[model]
    ]
    assert not differences, "\n".join(differences)
