"""What `check` finds in optimized exports, for every chip, release, stock and with the plugin: nothing that ATC refuses or
misreads, but for operators of which no exact other spelling is known. These are listed in tests/zoo/last_mile.txt."""

from __future__ import annotations

import importlib.machinery
import importlib.util
from pathlib import Path

import last_mile
import pytest
from conftest import ROOT
from test_zoo import ENTRIES

IDS = sorted(ENTRIES)
MOST = 0.01  # of the exports


def golden_lines() -> list[tuple[str, list[str]]]:
    """What is left, as golden() writes it, and the exports."""
    lines = [line.split(": ") for line in last_mile.GOLDEN.read_text().splitlines() if not line.startswith("#")]
    return [(what, models.split()) for what, models in lines]


def test_few_exports_are_left() -> None:
    left = {model for _, models in golden_lines() for model in models}
    assert left <= set(IDS)
    assert len(left) <= MOST * len(IDS), sorted(left)


# One export in ninety always, one in nine with the slow tests.
@pytest.mark.parametrize("model_id", [
    pytest.param(model_id, marks=[pytest.mark.zoo, *([] if i % 10 == 0 else [pytest.mark.slow])])
    for i, model_id in enumerate(IDS[::9])
])
def test_nothing_else_is_refused_or_misread(zoo: Path, model_id: str, tmp_path: Path) -> None:
    told = last_mile.ask(zoo / f"{model_id}.onnx", tmp_path)
    assert told.wrong == []
    assert all(set(both) == {"original", "optimized"} for both in told.found.values())
    assert len(told.found) == len(last_mile.configurations())
    found = last_mile.golden([{"model": model_id, "found": told.found}]).removeprefix(last_mile.HEAD)
    expected = [f"{what}: {model_id}" for what, models in golden_lines() if model_id in models]
    assert found.splitlines() == expected


def test_an_export_that_optimize_has_no_spelling_for_is_listed() -> None:
    found = {"ascend310p|8.1|stock": {"original": [], "optimized": [[True, "no_parser", "no-parser", "Loop", 2],
                                                                   [False, "refused", "slice-steps", "Slice", 1],
                                                                   [True, "ai_cpu", "on-ai-cpu", "Div", 1]]}}
    text = last_mile.golden([{"model": "m", "found": found}])
    assert text == last_mile.HEAD + "no-parser Loop ascend310p 8.1 stock: m\n"


def test_chips_and_releases_with_the_same_numbers_share_a_row() -> None:
    loader = importlib.machinery.SourceFileLoader("last_mile_script", str(ROOT / "scripts" / "last-mile"))
    script = importlib.util.module_from_spec(importlib.util.spec_from_loader("last_mile_script", loader))
    loader.exec_module(script)
    rows = {("a", "8.1"): [1], ("b", "8.1"): [1], ("a", "8.5"): [1], ("b", "8.5"): [1], ("a", "9.0"): [2], ("b", "9.0"): [1]}
    assert script.merged(rows) == "| a, b | 8.1, 8.5 | 1 |\n| a | 9.0 | 2 |\n| b | 9.0 | 1 |\n"
