"""Single operators at their edges (operator_edges.py), optimized and expanded: what ONNX Runtime computes stays what it was.

    python3 tests/python/test_operator_edges.py --cases 20000 --seed 1 [OPERATOR ...]

is the long run. A model that ONNX Runtime does not run, or not twice in the same way, is left out. Each one is written for a chip
and a release by its seed; what is written is expanded as ONNX defines it, and as that ATC reads it.
"""

from __future__ import annotations

import argparse
import collections
import os
import re
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import onnx
import onnx.checker
import onnx.reference
import pipeline
import pytest
from operator_edges import ROWS, Case, declare, difference, make

from ascend_fuse.session import plain_session

# Opsets that a release of ONNX Runtime does not promise, and has operators of.
os.environ["ALLOW_RELEASED_ONNX_OPSET_ONLY"] = "0"
KNOWN_TO_RUNTIME = 26
CHIPS = ("ascend310b", "ascend310p", "ascend910", "ascend910b", "ascend910_93", "ascend950")
RELEASES = ("8.1", "8.5", "9.0", "9.1", "9.2", "2026.07")
QUICK_SEEDS = 4
SLOW_SEEDS = 120


@dataclass
class Told:
    faults: list[str] = field(default_factory=list)
    counts: collections.Counter[str] = field(default_factory=collections.Counter)


def runs_as(model: bytes, feeds: dict[str, np.ndarray]) -> list[np.ndarray] | str:
    """What ONNX Runtime computes, or why it does not."""
    try:
        return [np.asarray(y) for y in plain_session(model, threads=1).run(None, feeds)]
    except Exception as error:
        return " ".join(str(error).split())[:200]


def evaluated(model: onnx.ModelProto, feeds: dict[str, np.ndarray]) -> list[np.ndarray] | str:
    """The same of onnx itself."""
    try:
        with np.errstate(all="ignore"):
            return [np.asarray(y) for y in onnx.reference.ReferenceEvaluator(model).run(None, feeds)]
    except Exception as error:
        return repr(error)


def computed(case: Case) -> list[np.ndarray] | str:
    """What the model computes: in ONNX Runtime, if need be at the newest opset that it knows; in onnx where that has another
    version of the operator."""
    if case.opset <= KNOWN_TO_RUNTIME:
        return runs_as(case.model.SerializeToString(), case.feeds)
    if onnx.defs.get_schema(case.op, case.opset).since_version > KNOWN_TO_RUNTIME:
        return evaluated(case.model, case.feeds)
    model = onnx.ModelProto.FromString(case.model.SerializeToString())
    model.opset_import[0].version = KNOWN_TO_RUNTIME
    return runs_as(model.SerializeToString(), case.feeds)


def expected_of(case: Case) -> list[np.ndarray] | None:
    """What the model computes, with its outputs declared; None where nothing runs it or the checker of onnx refuses it."""
    found = computed(case)
    if isinstance(found, str) or any(y.dtype.kind not in "fiub" for y in found):
        return None
    declare(case.model, found)
    try:
        onnx.checker.check_model(case.model, full_check=True)
    except Exception:
        return None
    return found


def targets_of(op: str, seed: int) -> dict[str, tuple[str, ...]]:
    random = np.random.default_rng([seed, len(op), 7])
    targets = {}
    for _ in range(2):
        chip, cann = CHIPS[int(random.integers(len(CHIPS)))], RELEASES[int(random.integers(len(RELEASES)))]
        plugin = ("--plugin",) if random.random() < 0.3 else ()
        targets["-".join((chip, cann, *(p[2:] for p in plugin)))] = (f"--target={chip}", f"--cann={cann}", *plugin, "--read")
    return targets


def check(op: str, seed: int, folder: Path, told: Told) -> None:
    case = make(op, seed)
    expected = expected_of(case)
    if expected is None:
        told.counts["not run"] += 1
        return
    source = folder / "m.onnx"
    source.write_bytes(case.model.SerializeToString())
    runs = pipeline.optimize(source, folder, targets_of(op, seed))
    where = f"{op} {seed} (opset {case.opset}, {case.kind})"
    told.faults += [f"{where}: {name}: {sentence}" for name, wrong in runs.wrong.items() for sentence in wrong]
    for name, made in runs.targets.items():
        if made.is_fatal:
            told.counts["refused"] += 1
            continue
        told.counts["written anew" if made.report["adapted"] else "as it was"] += 1
        # Where the file does not decide whether ATC reads it, the reading is the worst case.
        decided = not any("(possible: " in warning["message"] for warning in made.report["warnings"])
        if made.unread and decided:
            told.faults.append(f"{where}: {name}: not read, and no finding says so: {made.unread}")
        for word, path in (("expanded", made.expanded), *([("as ATC reads it", made.reading)] if made.reading and decided else [])):
            found = runs_as(path.read_bytes(), case.feeds)
            if isinstance(found, str) and "NOT_IMPLEMENTED" in found:  # of this type, at the opset that it was written for
                found = evaluated(onnx.load(path), case.feeds)
            if isinstance(found, str):
                told.faults.append(f"{where}: {name}: {word}: not run: {found}")
                continue
            for a, b in zip(found, expected, strict=True):
                if why := difference(a, b, case):
                    told.faults.append(f"{where}: {name}: {word}: {why}")


def check_many(op: str, seeds: range, folder: Path) -> Told:
    told = Told()
    for seed in seeds:
        check(op, seed, folder, told)
    return told


def test_every_operator_of_an_adapter_has_a_row() -> None:
    """Those that only have another name, hold no numbers, or bodies or sequences, are tested elsewhere; ONNX Runtime has no TensorScatter."""
    rules = "".join(path.read_text() for path in (pipeline.ROOT / "patterns" / "rules" / "adapt").glob("*.rule"))
    functions = (pipeline.ROOT / "passes").rglob("adapters.cc")
    rows = [op for path in functions for op in re.findall(r'^      \{"[\w-]+", "(\w+)"', path.read_text(), re.MULTILINE)]
    matched = re.findall(r"match \{\s*[\w, ]+ = (\w+)", rules)
    assert rows and matched
    assert {*rows, *matched} - set(ROWS) - {"Constant", "If", "TensorScatter"} == set()


@pytest.mark.parametrize("op", ROWS)
def test_a_few(op: str, tmp_path: Path) -> None:
    told = check_many(op, range(QUICK_SEEDS), tmp_path)
    assert not told.faults, "\n".join(told.faults[:20])


@pytest.mark.slow
@pytest.mark.parametrize("op", ROWS)
def test_many(op: str, tmp_path: Path) -> None:
    told = check_many(op, range(1000, 1000 + SLOW_SEEDS), tmp_path)
    assert not told.faults, "\n".join(told.faults[:20])
    assert told.counts["written anew"] + told.counts["as it was"] + told.counts["refused"] > SLOW_SEEDS / 4, told.counts


def main() -> None:
    flags = argparse.ArgumentParser(description=__doc__)
    flags.add_argument("--cases", type=int, default=20000)
    flags.add_argument("--seed", type=int, default=1)
    flags.add_argument("operators", nargs="*")
    options = flags.parse_args()
    chosen = options.operators or list(ROWS)
    each = -(-options.cases // len(chosen))
    first = options.seed * 1_000_000
    count = 0
    with tempfile.TemporaryDirectory() as folder:
        for op in chosen:
            told = check_many(op, range(first, first + each), Path(folder))
            count += len(told.faults)
            print(op, dict(told.counts), f"{len(told.faults)} faults", flush=True)
            for fault in told.faults[:10]:
                print("  " + fault, flush=True)
    print(f"{each * len(chosen)} cases, {count} faults")
    sys.stdout.flush()
    os._exit(1 if count else 0)  # without waiting for the tool


if __name__ == "__main__":
    main()
