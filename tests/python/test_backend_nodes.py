#!/usr/bin/env python3
"""What inference says about the backend test models that the onnx package ships, against their test data.

    python3 tests/python/test_backend_nodes.py [--verbose] [NAMES...]

Each model is inferred twice: as it is, and with the inputs of its test data as initializers, so that shapes that
depend on data are exercised. What the model declares of its outputs is destroyed first (no shape, a wrong type),
so that only the operators can tell. Everything that inference states must agree with the recorded outputs:
type, rank, dims, elements. Unknown is allowed where no operator could know; the table says where that is.
"""

from __future__ import annotations

import collections
import concurrent.futures
import fnmatch
import json
import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("ASCEND_FUSE_BUILD", ROOT / "build")).resolve()
TOOL = BUILD / "tests" / "infer_tool"
sys.path.insert(0, str(Path(__file__).resolve().parent))
from backend_tests import SUITES, suite  # noqa: E402
from check_inference import Bindings, check_elements  # noqa: E402

WRONG_TYPE = 15  # complex128: no test has it

# Operators that may leave a shape unknown even when all inputs are constants, and why.
MAY_BE_UNKNOWN = {
    "SequenceAt": "sequences carry no facts",
    "ConcatFromSequence": "sequences carry no facts",
    "OptionalGetElement": "optionals carry no facts",
    "If": "the branches differ",
    "Loop": "as long as the loop turns",
    "Scan": "opset 8 with its batch dim: the type alone",
    "Cast": "of a loop's values (Range as a function)",
    "CastLike": "of a loop's values (LinearAttention as a function)",
    "Reshape": "of a loop's values (LinearAttention as a function)",
    "Compress": "counts elements of data",
    "NonZero": "counts elements of data",
    "NonMaxSuppression": "counts boxes that survive",
    "Unique": "counts different elements",
    "StringSplit": "counts parts of strings",
    "StringNormalizer": "counts strings that are not stop words",
    "ImageDecoder": "the size is in the file",
}


@dataclass
class Outcome:
    """One model: what went wrong, what stayed unknown."""

    name: str
    skipped: str = ""
    problems: list[str] = field(default_factory=list)
    unknown: list[tuple[str, str, str]] = field(default_factory=list)  # (variant, operator, what)
    values: int = 0


def read_value(path: Path, declared: Any) -> Any:
    """The array of a test data file; None for a sequence or optional."""
    import onnx

    if declared.type.WhichOneof("value") != "tensor_type":
        return None
    tensor = onnx.TensorProto()
    tensor.ParseFromString(path.read_bytes())
    return tensor


def hide_outputs(model: Any) -> None:
    for output in model.graph.output:
        if output.type.WhichOneof("value") == "tensor_type":
            output.type.tensor_type.elem_type = WRONG_TYPE
            output.type.tensor_type.ClearField("shape")
    del model.graph.value_info[:]


def infer(model: Any, path: Path) -> tuple[dict[str, Any], str]:
    path.write_bytes(model.SerializeToString())
    done = subprocess.run([TOOL, path], capture_output=True, text=True, timeout=60, check=False)
    if done.returncode != 0:
        return {}, f"infer_tool ended with {done.returncode}: {done.stderr[:200]}"
    return {f["name"]: f for f in map(json.loads, done.stdout.splitlines())}, ""


def compare(facts: dict[str, Any], outputs: dict[str, Any], bound: Bindings, variant: str, outcome: Outcome) -> None:
    import numpy as np
    import onnx
    from onnx import numpy_helper

    for name, tensor in outputs.items():
        if tensor is None:
            continue
        fact = facts.get(name)
        if fact is None:
            continue  # an output that is an input or an initializer
        outcome.values += 1
        operator = fact["op"]
        if fact["type"] == WRONG_TYPE or fact["type"] == 0:
            outcome.unknown.append((variant, operator, "type"))
        elif fact["type"] != tensor.data_type:
            outcome.problems.append(f"{variant}: {name} ({operator}): type {fact['type']}, is {tensor.data_type}")
            continue
        shape = fact["shape"]
        if shape is None:
            outcome.unknown.append((variant, operator, "rank"))
            continue
        dims = list(tensor.dims)
        if len(shape) != len(dims):
            outcome.problems.append(f"{variant}: {name} ({operator}): shape {shape}, is {dims}")
            continue
        vague = False
        for dim, size in zip(shape, dims, strict=True):
            if dim is None or bound.evaluate(dim) is None:
                vague = True
            if dim is not None and not bound.check(dim, size):
                outcome.problems.append(f"{variant}: {name} ({operator}): shape {shape}, is {dims}")
                break
        if vague:
            outcome.unknown.append((variant, operator, "dims"))
        if ("elements" in fact or "splat" in fact) and tensor.data_type in (1, 2, 3, 4, 5, 6, 7, 9, 10, 11, 12, 13):
            array = numpy_helper.to_array(tensor)
            fact = dict(fact)
            if array.dtype == np.float64 or array.dtype == np.float32:
                # The recorded outputs of float32 are computed in float64 now and then.
                if "splat" in fact:
                    splat = float(fact.pop("splat"))
                    if not np.allclose(array, splat, rtol=1e-5, atol=1e-6, equal_nan=True):
                        outcome.problems.append(f"{variant}: {name} ({operator}): splat {splat}, is {array.ravel()[:4]}")
                elements = fact.pop("elements", None)
                if elements is not None and not np.allclose(np.array([float(e) for e in elements]), array.ravel(),
                                                            rtol=1e-5, atol=1e-6, equal_nan=True):
                    outcome.problems.append(f"{variant}: {name} ({operator}): elements {elements[:8]}, "
                                            f"are {array.ravel()[:8]}")
            check_elements(fact, array, bound, f"{variant}: {name} ({operator})", outcome.problems,
                           collections.Counter())
    del onnx


def check(directory: Path, work: Path) -> Outcome:
    import onnx

    outcome = Outcome(f"{directory.parent.name}/{directory.name}")
    path = directory / "model.onnx"
    data = directory / "test_data_set_0"
    try:
        model = onnx.load(path)
    except Exception as error:  # a broken test file is not ours
        outcome.skipped = f"onnx cannot read it: {type(error).__name__}"
        return outcome
    if any(n.domain not in ("", "ai.onnx") for n in model.graph.node) and not model.functions:
        outcome.skipped = "operators of domain " + next(n.domain for n in model.graph.node if n.domain)
        return outcome
    if not (data / "output_0.pb").exists():
        outcome.skipped = "no test data"
        return outcome
    initialized = {i.name for i in model.graph.initializer}
    fed = [i for i in model.graph.input if i.name not in initialized]
    inputs = {}
    for i, declared in enumerate(fed):
        file = data / f"input_{i}.pb"
        if file.exists():
            inputs[declared.name] = read_value(file, declared)
    outputs = {o.name: read_value(data / f"output_{i}.pb", o) for i, o in enumerate(model.graph.output)
               if (data / f"output_{i}.pb").exists()}
    if not any(t is not None for t in outputs.values()):
        outcome.skipped = "no output is a tensor (run for crashes only)"
    hide_outputs(model)
    scratch = work / f"{directory.parent.name}-{directory.name}.onnx"

    bound = Bindings()
    for declared in fed:
        tensor = inputs.get(declared.name)
        if tensor is None:
            continue
        for dim, size in zip(declared.type.tensor_type.shape.dim, tensor.dims, strict=False):
            if dim.dim_param:
                bound.values.setdefault(dim.dim_param, size)
    facts, error = infer(model, scratch)
    if error:
        outcome.problems.append(error)
    else:
        compare(facts, outputs, bound, "shapes", outcome)

    for name, tensor in inputs.items():
        if tensor is None:
            continue
        constant = onnx.TensorProto()
        constant.CopyFrom(tensor)
        constant.name = name
        model.graph.initializer.append(constant)
    kept = [i for i in model.graph.input if inputs.get(i.name) is None and i.name not in initialized]
    del model.graph.input[:]
    model.graph.input.extend(kept)
    model.ir_version = max(model.ir_version, 4)
    facts, error = infer(model, scratch)
    if error:
        outcome.problems.append(error)
    else:
        compare(facts, outputs, Bindings(), "data", outcome)
    scratch.unlink(missing_ok=True)
    return outcome


def directories(names: list[str]) -> list[Path]:
    found = []
    for name in SUITES:
        found += [d for d in sorted(suite(name).iterdir()) if (d / "model.onnx").exists()
                  and (not names or any(fnmatch.fnmatch(d.name, n) for n in names))]
    return found


def run(names: list[str], verbose: bool = False) -> int:
    """Prints the tables; returns the number of models with a contradiction or an unexplained unknown shape."""
    with tempfile.TemporaryDirectory() as work, concurrent.futures.ProcessPoolExecutor(2) as pool:
        found = directories(names)
        outcomes = list(pool.map(check, found, [Path(work)] * len(found), chunksize=16))
    failed = [o for o in outcomes if o.problems]
    skipped = collections.Counter(o.skipped for o in outcomes if o.skipped and not o.problems)
    ran = [o for o in outcomes if not o.skipped]
    values = sum(o.values for o in ran)
    print(f"{len(outcomes)} models: {len(ran)} run, {sum(skipped.values())} skipped, {len(failed)} failed; "
          f"{values} outputs compared")
    for reason, count in skipped.most_common():
        print(f"  skipped {count}: {reason}")
    for outcome in failed:
        for problem in outcome.problems[:3]:
            print(f"  FAILED {outcome.name}: {problem}")
    table: collections.Counter[tuple[str, str, str]] = collections.Counter()
    for outcome in ran:
        table.update(outcome.unknown)
        if verbose:
            for unknown in outcome.unknown:
                print(f"  unknown {outcome.name}: {unknown}")
    unexplained = 0
    print("not known, by operator (data: with constant inputs):")
    for (variant, operator, what), count in sorted(table.items(), key=lambda item: (-item[1], item[0])):
        why = MAY_BE_UNKNOWN.get(operator, "depends on the data of an input" if variant == "shapes" else "?")
        unexplained += why == "?"
        print(f"  {operator or '-'}: {what} of {count} outputs ({variant}): {why}")
    if unexplained:
        print(f"{unexplained} unexplained")
    return len(failed) + unexplained


@pytest.mark.slow
def test_backend_nodes() -> None:
    pytest.importorskip("onnx")
    if not TOOL.exists():
        pytest.skip("infer_tool is not built")
    assert run([]) == 0


if __name__ == "__main__":
    arguments = [a for a in sys.argv[1:] if a != "--verbose"]
    sys.exit(1 if run(arguments, "--verbose" in sys.argv) else 0)
