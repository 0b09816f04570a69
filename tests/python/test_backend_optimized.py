"""Every backend test of the onnx package, optimized for every chip: the recorded outputs come out again.

What `optimize` writes is expanded to standard operators, passes the checker of onnx and runs in ONNX Runtime, or where that has no
kernel, in onnx itself. Where ATC would refuse or misread it, which `optimize` says with exit code 4, nothing is written and nothing
is compared. Left out is what ONNX Runtime computes otherwise in the model as it is.
"""

from __future__ import annotations

import collections
import functools
import os
from pathlib import Path

import numpy as np
import onnx
import onnx.checker
import onnx.defs
import onnx.reference
import pipeline
import pytest
from backend_tests import SUITES, suite
from onnx import numpy_helper

from ascend_fuse.session import plain_session

# Opsets that a release of ONNX Runtime does not promise, and has operators of.
os.environ["ALLOW_RELEASED_ONNX_OPSET_ONLY"] = "0"
TARGETS = {
    "ascend310b": ("--target=ascend310b", "--cann=9.1"),
    "ascend310p": ("--target=ascend310p",),
    "ascend910": ("--target=ascend910", "--cann=8.5"),
    "ascend910b": ("--target=ascend910b",),
    "ascend910_93": ("--target=ascend910_93", "--cann=9.2", "--plugin"),
    "ascend950": ("--target=ascend950", "--cann=2026.07", "--plugin"),
}
SHARDS = 16  # so that the workers of a run are done at about the same time
SAMPLE = 64  # of --quick: every so many models
# Random numbers, or what ONNX leaves to who computes it.
LEFT_OUT = ("bernoulli", "dropout", "randomnormal", "randomuniform", "multinomial")


@functools.cache
def folders() -> tuple[Path, ...]:
    found = [d for name in SUITES for d in sorted(suite(name).iterdir())]
    return tuple(d for d in found if (d / "model.onnx").exists() and not any(word in d.name for word in LEFT_OUT))


def value(path: Path, kind: onnx.TypeProto) -> object:
    """The recorded value: an array, a list of arrays, or None."""
    content = path.read_bytes()
    if kind.HasField("sequence_type"):
        return numpy_helper.to_list(onnx.SequenceProto.FromString(content))
    if kind.HasField("optional_type"):
        return numpy_helper.to_optional(onnx.OptionalProto.FromString(content))
    return numpy_helper.to_array(onnx.TensorProto.FromString(content))


def runs_as(model: bytes, feeds: dict[str, object]) -> list[object] | None:
    """What ONNX Runtime computes, or onnx itself; None where neither runs it."""
    try:
        return plain_session(model, threads=1).run(None, feeds)
    except Exception:
        pass
    try:
        with np.errstate(all="ignore"):
            return list(onnx.reference.ReferenceEvaluator(onnx.ModelProto.FromString(model)).run(None, feeds))
    except Exception:
        return None


def is_model(model: bytes) -> bool:
    try:
        onnx.checker.check_model(model, full_check=True)
    except Exception:
        return False
    return True


def same(found: object, expected: object) -> bool:
    if isinstance(expected, list):
        return isinstance(found, list) and len(found) == len(expected) and all(map(same, found, expected))
    if expected is None or found is None:
        return found is expected
    a, b = np.asarray(found), np.asarray(expected)
    if a.dtype != b.dtype or a.shape != b.shape:
        return False
    if a.dtype.kind not in "fc" and a.dtype.name != "bfloat16":
        return bool(np.array_equal(a, b))
    loose = 1e-2 if a.dtype.itemsize <= 2 else 1e-4
    return bool(np.allclose(a.astype(np.complex128), b.astype(np.complex128), rtol=loose, atol=loose, equal_nan=True))


def check(folder: Path, work: Path) -> tuple[list[str], str]:
    """What is wrong with the models made of the test, and what became of it in a word."""
    content = (folder / "model.onnx").read_bytes()
    model = onnx.ModelProto.FromString(content)
    data = folder / "test_data_set_0"
    constants = {tensor.name for tensor in model.graph.initializer}
    feeds: dict[str, object] = {}
    try:
        for i, declared in enumerate(v for v in model.graph.input if v.name not in constants):
            feeds[declared.name] = value(data / f"input_{i}.pb", declared.type)
        recorded = [value(data / f"output_{i}.pb", v.type) for i, v in enumerate(model.graph.output)]
    except Exception:
        return [], "not read"
    computed = runs_as(content, feeds)
    if computed is not None and not all(map(same, computed, recorded)):
        return [], "computed otherwise"
    valid = is_model(content)
    runs = pipeline.optimize(folder / "model.onnx", work, TARGETS)
    faults = [f"{folder.name}: {name}: {sentence}" for name, told in runs.wrong.items() for sentence in told]
    written = {name: made for name, made in runs.targets.items() if not made.is_fatal}
    for path in {made.expanded for made in written.values()}:
        names = [name for name, made in written.items() if made.expanded == path]
        found = runs_as(path.read_bytes(), feeds)
        if valid and not is_model(path.read_bytes()):
            faults.append(f"{folder.name}: {names}: the checker of onnx refuses what was written")
        elif found is None and computed is not None:
            faults.append(f"{folder.name}: {names}: nothing runs what was written")
        elif found is not None and not all(map(same, found, recorded)):
            faults.append(f"{folder.name}: {names}: other numbers")
    faults += [f"{folder.name}: {name}: refused without a sentence" for name, made in runs.targets.items()
               if not all(f["because"] for f in made.report["findings"])]
    return faults, "written" if written else "refused"


def check_all(some: tuple[Path, ...], work: Path) -> collections.Counter[str]:
    counts: collections.Counter[str] = collections.Counter()
    faults: list[str] = []
    for folder in some:
        wrong, word = check(folder, work)
        faults += wrong
        counts[word] += 1
    assert not faults, f"{len(faults)} faults\n" + "\n".join(faults[:40])
    return counts


def test_there_are_tests() -> None:
    assert len(folders()) > 1800
    newest = max(o.version for d in folders() for o in onnx.load(d / "model.onnx").opset_import if o.domain == "")
    assert newest == onnx.defs.onnx_opset_version()


def test_a_sample(tmp_path: Path) -> None:
    assert check_all(folders()[::SAMPLE], tmp_path)["written"] > 10


@pytest.mark.slow
@pytest.mark.parametrize("shard", range(SHARDS))
def test_every_one(shard: int, tmp_path: Path) -> None:
    counts = check_all(folders()[shard::SHARDS], tmp_path)
    assert counts["written"] + counts["refused"] > counts.total() * 0.7, counts


if __name__ == "__main__":
    import sys
    import tempfile

    with tempfile.TemporaryDirectory() as scratch:
        chosen = tuple(d for d in folders() if len(sys.argv) < 2 or any(word in d.name for word in sys.argv[1:]))
        print(check_all(chosen, Path(scratch)))
    os._exit(0)
