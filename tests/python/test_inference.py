#!/usr/bin/env python3
"""Runs check_inference.py over the zoo; skips where onnx, onnxruntime or the zoo are missing."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]


def main() -> int:
    build = Path(os.environ.get("ASCEND_FUSE_BUILD", REPOSITORY / "build"))
    fill = REPOSITORY / "tools" / "zoo" / "fill.py"
    missing = [m for m in ("numpy", "onnx", "onnxruntime") if importlib.util.find_spec(m) is None]
    if missing or not fill.exists():
        print("skipped:", "no zoo" if not missing else "not installed: " + ", ".join(missing))
        return 0
    zoo = build / "zoo"
    subprocess.run([sys.executable, fill, "--out", zoo], check=True)
    check = Path(__file__).with_name("check_inference.py")
    return subprocess.run([sys.executable, check, "--tool", build / "tests" / "infer_tool", "--zoo", zoo],
                          check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
