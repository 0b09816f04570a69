"""Every inferred type, rank, dim and element of the zoo against what ONNX Runtime computes (check_inference.py)."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]


def test_inference_agrees_with_onnx_runtime_on_the_zoo(zoo: Path):
    build = Path(os.environ.get("ASCEND_FUSE_BUILD", REPOSITORY / "build"))
    check = Path(__file__).with_name("check_inference.py")
    run = subprocess.run(
        [sys.executable, check, "--tool", build / "tests" / "infer_tool", "--zoo", zoo],
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stdout[-4000:] + run.stderr[-2000:]
