"""No pass takes more instructions than recorded in bench/instructions.json: bench/instructions.py says how they are counted."""

from __future__ import annotations

import importlib.util
import json
import shutil
from pathlib import Path

import pytest

from conftest import BUILD, ROOT

# Not by its name: bench has modules that are called as others of the tests.
_spec = importlib.util.spec_from_file_location("bench_instructions", ROOT / "bench" / "instructions.py")
instructions = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(instructions)

# A twentieth more is seen. Of a small pass the hash tables, whose order is another one in each process, are more than that.
DEARER = 1.05
NOISE = 200_000


def dearer(now: dict[str, int], before: dict[str, int]) -> list[str]:
    return [f"{name}: {before.get(name, 0) / 1e6:.2f} -> {own / 1e6:.2f} million instructions" for name, own in now.items()
            if own > before.get(name, 0) * DEARER + NOISE]


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("valgrind") is None, reason="needs valgrind")
def test_no_pass_got_dearer(zoo: Path) -> None:
    now = instructions.count(BUILD, zoo / f"{instructions.EXPORT}.onnx")
    before = json.loads(instructions.RECORD.read_text())
    assert not dearer(now, before), "where that is what was wanted: .venv/bin/python bench/instructions.py --record"


def test_what_got_dearer_is_named() -> None:
    before = {"whole": 100_000_000, "lower": 20_000_000, "others": 100_000}
    assert dearer({"whole": 104_000_000, "lower": 20_500_000, "others": 200_000}, before) == []
    assert [line.split(":")[0] for line in dearer({"whole": 106_000_000, "lower": 22_000_000, "recognise": 3_000_000}, before)] == \
        ["whole", "lower", "recognise"]
