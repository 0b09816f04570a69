"""Inferred types, shapes and elements against ONNX Runtime, on every zoo model: see check_inference.py."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import quick_models

import fill

REPOSITORY = Path(__file__).resolve().parents[2]
SHARDS = 8


@pytest.mark.parametrize("shard", range(SHARDS))
def test_inference_agrees_with_onnx_runtime_on_the_zoo(zoo: Path, shard: int, request: pytest.FixtureRequest) -> None:
    build = Path(os.environ.get("ASCEND_FUSE_BUILD", REPOSITORY / "build"))
    check = Path(__file__).with_name("check_inference.py")
    ids = sorted(quick_models()) if request.config.getoption("--quick") else fill.select([])
    run = subprocess.run(
        [sys.executable, check, "--tool", build / "tests" / "infer_tool", "--zoo", zoo, *ids[shard::SHARDS]],
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stdout[-4000:] + run.stderr[-2000:]
