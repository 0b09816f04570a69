#!/usr/bin/env python3
"""What the Python package and its wheel cost: the wheel's size, an import, what Python adds to a call, and a model of 20 GB whose
weights stay where they are. Times are of the processor, the least of many rounds, since the machine is noisy; each stands beside
the same quantity of something that everybody has.

    .venv/bin/python bench/python_package.py [--wheel FILE] [--build FOLDER]
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Callable

ROOT = Path(__file__).resolve().parents[1]
SMALL = """<ir_version: 8, opset_import: ["" : 17]>
small (float[batch, 8] x) => (float[batch, 8] y) <float two = {2}, float half = {0.5}>
{ d = Mul (two, x)  g = Sigmoid (d)  s = Mul (d, g)  y = Mul (s, half) }"""
# A linear whose weights lie after 20 GB of nothing.
LARGE = """<ir_version: 8, opset_import: ["" : 17]>
large (float[batch, 8] x) => (float[batch, 8] y) <float[8, 8] w = {1}> { m = MatMul (x, w)  g = Sigmoid (m)  y = Mul (m, g) }"""


def least(rounds: int, once: Callable[[], object]) -> float:
    """Milliseconds of the processor."""
    times = []
    for _ in range(rounds):
        start = time.process_time()
        once()
        times.append(time.process_time() - start)
    return min(times) * 1000


def import_milliseconds(module: str, environment: dict[str, str], rounds: int = 15) -> float:
    """What an import takes in a fresh process of Python."""
    program = f"import time; start = time.process_time(); import {module}; print(time.process_time() - start)"
    return min(float(subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, env=environment).stdout)
               for _ in range(rounds)) * 1000


def by_reference(tool: Path) -> tuple[float, int]:
    """Seconds of the processor and KB of memory that `optimize --weights reference` takes for a model of 20 GB."""
    import onnx
    import onnx.parser

    with tempfile.TemporaryDirectory() as folder:
        model = onnx.parser.parse_model(LARGE)
        weight = model.graph.initializer[0]
        weight.CopyFrom(onnx.helper.make_tensor(weight.name, weight.data_type, weight.dims, bytes(256), raw=True))
        onnx.save(model, f"{folder}/m.onnx", save_as_external_data=True, location="w.bin", size_threshold=0)
        model = onnx.load(f"{folder}/m.onnx", load_external_data=False)
        for entry in model.graph.initializer[0].external_data:
            if entry.key == "offset":
                entry.value = str(20 << 30)
        onnx.save(model, f"{folder}/m.onnx")
        os.truncate(f"{folder}/w.bin", (20 << 30) + 256)
        command = [str(tool), "optimize", f"{folder}/m.onnx", "-o", f"{folder}/out.onnx", "--weights", "reference", "--quiet"]
        program = (f"import resource, subprocess; subprocess.run({command!r}, check=True); "
                   "used = resource.getrusage(resource.RUSAGE_CHILDREN); print(used.ru_utime + used.ru_stime, used.ru_maxrss)")
        rounds = [subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout.split() for _ in range(5)]
    return min(float(seconds) for seconds, _ in rounds), max(int(memory) for _, memory in rounds)


def main() -> None:
    """Prints one line for each."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--wheel", type=Path)
    parser.add_argument("--build", type=Path, default=ROOT / "build")
    arguments = parser.parse_args()
    sys.path.insert(0, str(arguments.build / "python"))
    environment = dict(os.environ, PYTHONPATH=str(arguments.build / "python"))
    if arguments.wheel:
        print(f"wheel: {arguments.wheel.stat().st_size / 1e6:.1f} MB")
    ours, numpy = (import_milliseconds(name, environment) for name in ("ascend_fuse; ascend_fuse.optimize", "numpy"))
    print(f"import: {ours:.0f} ms; numpy {numpy:.0f} ms")

    import onnx.parser

    import ascend_fuse
    from ascend_fuse import _core

    data = onnx.parser.parse_model(SMALL).SerializeToString()
    whole = least(200, lambda: ascend_fuse.optimize(data))
    report = ascend_fuse.optimize(data).report.to_json()

    class Ran:
        """A model whose runs take no time: what is left is Python's."""

        from_bytes = classmethod(lambda of, data, path: of())
        run = lambda self, *arguments: report  # noqa: E731

    original, _core.Model = _core.Model, Ran  # type: ignore[misc, assignment]
    python = least(200, lambda: ascend_fuse.optimize(data))
    _core.Model = original  # type: ignore[misc]
    print(f"a call over a model of 4 nodes: {whole:.2f} ms, {python:.2f} ms of it in Python")
    seconds, memory = by_reference(arguments.build / "ascend-fuse")
    print(f"20 GB by reference: {seconds:.2f} s, {memory / 1024:.0f} MB")


if __name__ == "__main__":
    main()
