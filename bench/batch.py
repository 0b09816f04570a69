#!/usr/bin/env python3
"""Many models in one run: `optimize FOLDER -j 1`, `-j 2` and a process for each model, in turn.

    bench/batch.py FOLDER [--rounds 5]

Prints models a second, and the CPU time and wall time of each against those of -j 1 in the same round: medians.
"""

from __future__ import annotations

import argparse
import os
import resource
import shutil
import statistics
import subprocess
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
TOOL = Path(os.environ.get("ASCEND_FUSE_BUILD", ROOT / "build")) / "ascend-fuse"


def one_by_one(models: list[Path], out: str) -> None:
    for model in models:
        output = f"{out}/{model.stem}"
        subprocess.run([TOOL, "optimize", model, "-o", f"{output}.onnx", "--json", f"{output}.json", "--quiet"], check=True)


def measured(work: object) -> tuple[float, float]:
    """CPU seconds of the processes that `work` starts, and wall seconds."""
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    work()  # type: ignore[operator]
    wall, after = time.monotonic() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, wall


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    models = sorted(options.folder.glob("*.onnx"))
    seconds: dict[str, list[tuple[float, float]]] = {}
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(options.rounds):
            for name, jobs in (("-j 1", "1"), ("-j 2", "2"), ("a process each", "")):
                out = f"{folder}/out"
                shutil.rmtree(out, ignore_errors=True)
                os.mkdir(out)
                several = [TOOL, "optimize", options.folder, "-o", out, "--quiet", "-j", jobs]
                seconds.setdefault(name, []).append(measured(
                    (lambda c=several: subprocess.run(c, check=True)) if jobs else (lambda o=out: one_by_one(models, o))))
    for name, rounds in seconds.items():
        cpu, wall = (statistics.median(mine[i] / first[i] for mine, first in zip(rounds, seconds["-j 1"])) for i in (0, 1))
        best = len(models) / min(wall for _, wall in rounds)
        print(f"{name:15} {best:6.0f} models/s at best, CPU {cpu:.2f} x, wall {wall:.2f} x of -j 1")


if __name__ == "__main__":
    main()
