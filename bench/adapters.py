#!/usr/bin/env python3
"""What opset conversion and adapters cost of a run of `optimize`, in instructions (callgrind).

    ./scripts/build release ascend-fuse && .venv/bin/python bench/adapters.py [--build FOLDER] [EXPORTS...]

Prints a row for each export of the zoo that is named, or of those in bench/README.md: nodes, instructions of the whole
process, and the part of the passes `convert_opset` and `adapt` in it.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

import onnx
from instructions import annotated, of_pass, of_process

ROOT = Path(__file__).resolve().parents[1]
EXPORTS = ("clip-text-sdpa-ts14-dynamic", "clip-text-sdpa-ts17-dynamic", "qwen2-sdpa-past-dy18-dynamic", "clip-vision-sdpa-dy18-static",
           "gpt2-sdpa-nocache-dy23-dynamic", "unet-sdpa-dy18-dynamic")
PASSES = ("ConvertOpset", "Adapt")


def instructions(tool: Path, model: Path, folder: Path) -> tuple[int, int]:
    """Those of the run, and of the passes."""
    text = annotated(tool, model, folder / "o.onnx", "--force")
    return of_process(text), sum(of_pass(text, function) for function in PASSES)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("exports", nargs="*", default=EXPORTS)
    parser.add_argument("--build", type=Path, default=ROOT / "build", help="the folder of a release build")
    parser.add_argument("--zoo", type=Path, default=ROOT / "build" / "zoo", help="the folder of the exports")
    arguments = parser.parse_args()
    print("| export | nodes | instructions, millions | of them adapters |\n|---|---|---|---|")
    for name in arguments.exports:
        model = arguments.zoo / f"{name}.onnx"
        nodes = len(onnx.load(model, load_external_data=False).graph.node)
        with tempfile.TemporaryDirectory() as folder:
            whole, part = instructions(arguments.build / "ascend-fuse", model, Path(folder))
        print(f"| {name} | {nodes} | {whole / 1e6:.1f} | {100 * part / whole:.1f} % |", flush=True)


if __name__ == "__main__":
    main()
