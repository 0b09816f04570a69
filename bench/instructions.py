#!/usr/bin/env python3
"""Instructions of `optimize`, pass by pass (callgrind), which other load does not change.

    ./scripts/build release && .venv/bin/python bench/instructions.py            # a table, beside the recorded numbers
    .venv/bin/python bench/instructions.py --record                              # writes bench/instructions.json anew

The model is the Llama of the README with 32 layers, for ascend910b. tests/python/test_instructions.py compares each pass with the
recorded number, so that one that got dearer is seen where it happens.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
RECORD = ROOT / "bench" / "instructions.json"
EXPORT = "llama-sdpa-past-ts17-dynamic"
LAYERS = 32
SMALL = 1_000_000  # passes below it are counted together, in `others`


def functions() -> dict[str, str]:
    """The function of each pass, from the list of passes."""
    text = (ROOT / "passes" / "optimize_passes.cc").read_text()
    found = dict(re.findall(r'\{"(\w+)",[^{}]*?,\s*(\w+)\}', text))
    if not {"infer", "recognise", "lower", "settle"} <= found.keys():
        sys.exit("bench/instructions.py: passes/optimize_passes.cc is not the list of passes it was")
    return found


def annotated(tool: Path, model: Path, out: Path, *flags: str) -> str:
    """What callgrind counted in a run of `optimize`: a line for each function, with what it calls."""
    with tempfile.TemporaryDirectory() as folder:
        counts = Path(folder) / "callgrind.out"
        subprocess.run(["valgrind", "--tool=callgrind", f"--callgrind-out-file={counts}", tool, "optimize", model, "-o", out, "--quiet", *flags],
                       check=True, capture_output=True)
        return subprocess.run(["callgrind_annotate", "--inclusive=yes", "--threshold=100", counts], check=True, capture_output=True,
                              text=True).stdout


def of_process(text: str) -> int:
    totals = re.search(r"([\d,]+) .*PROGRAM TOTALS", text)
    if totals is None:
        sys.exit("callgrind_annotate gave no totals")
    return int(totals[1].replace(",", ""))


def of_pass(text: str, function: str) -> int:
    part = re.search(rf"([\d,]+) \([^)]*\)\s+\S*ascend_fuse::(?:\(anonymous namespace\)::)?{function}\(ascend_fuse::Workspace&\)", text)
    return int(part[1].replace(",", "")) if part is not None else 0


def count(build: Path, export: Path) -> dict[str, int]:
    """Instructions of the whole process, of each pass, and of the passes that are small."""
    with tempfile.TemporaryDirectory() as name:
        deep = Path(name) / "deep.onnx"
        subprocess.run([build / "bench" / "matching_bench", export, "--layers", str(LAYERS), "--write", deep], check=True,
                       capture_output=True)
        text = annotated(build / "ascend-fuse", deep, Path(name) / "o.onnx", "--target", "ascend910b", "--weights", "reference")
    result = {"whole": of_process(text), "others": 0}
    for pass_name, function in functions().items():
        own = of_pass(text, function)
        result[pass_name if own >= SMALL else "others"] = own + (result["others"] if own < SMALL else 0)
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--build", type=Path, default=ROOT / "build", help="the folder of a release build")
    parser.add_argument("--record", action="store_true", help="write bench/instructions.json")
    arguments = parser.parse_args()
    subprocess.run([sys.executable, ROOT / "tools" / "zoo" / "fill.py", "--out", arguments.build / "zoo", EXPORT], check=True,
                   capture_output=True)
    now = count(arguments.build, arguments.build / "zoo" / f"{EXPORT}.onnx")
    before = json.loads(RECORD.read_text()) if RECORD.exists() else {}
    print("| pass | millions of instructions | recorded |\n|---|---|---|")
    for name, own in sorted(now.items(), key=lambda entry: -entry[1]):
        print(f"| {name} | {own / 1e6:.1f} | {before.get(name, 0) / 1e6:.1f} |")
    if arguments.record:
        RECORD.write_text(json.dumps(now, indent=1) + "\n")


if __name__ == "__main__":
    main()
