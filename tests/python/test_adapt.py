"""The node tests of the onnx package, written at other opsets and for ATC: the recorded outputs come out again.

Of every operator of ONNX the tests that the package ships are taken at each opset of 11 to 24 at which they mean what was
recorded. `ConvertNode` (passes/legalise/convert_node.h) writes them at later opsets and at 17 and what follows, where there is another version of the
operator, or says why it cannot; `optimize` writes them for several targets, with inputs as they are and with those that count (axes, pads,
indices) as constants, which adapters ask for.
"""

from __future__ import annotations

import collections
import functools
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import converse
import numpy as np
import onnx
import onnx.defs
import onnx.reference
import onnxruntime
import pipeline
import pytest
from backend_tests import suite
from conftest import BUILD
from onnx import numpy_helper

CONVERT_NODE = BUILD / "tests" / "convert_node_tool"
FIRST, LAST = 11, 24
ALWAYS = 17  # the opset that models are converted to
# Releases that read different forms, and chips without any node of ours.
TARGETS = {f"{cann}-{chip}": (f"--target={chip}", f"--cann={cann}")
           for cann, chip in (("8.1", "ascend910b"), ("9.1", "ascend310b"), ("2026.07", "ascend950"))}
# What is random gives nothing twice; of the last one onnx's own checker refuses the definition at most opsets.
LEFT_OUT = {"Bernoulli", "Dropout", "RandomNormalLike", "MeanVarianceNormalization"}


@dataclass(frozen=True)
class Recorded:
    """A test of the package: one node, its inputs and its outputs."""

    name: str
    model: bytes
    feeds: tuple[tuple[str, np.ndarray], ...]
    outputs: tuple[np.ndarray, ...]


def tensor(path: Path) -> np.ndarray | None:
    """The recorded value; None where it is not a tensor."""
    value = onnx.TensorProto()
    try:
        value.ParseFromString(path.read_bytes())
        return numpy_helper.to_array(value)
    except Exception:
        return None


def read(folder: Path) -> Recorded | None:
    """None for tests that are not one node of ai.onnx over tensors."""
    model = onnx.load(folder / "model.onnx")
    data = folder / "test_data_set_0"
    values = [*model.graph.input, *model.graph.output]
    if len(model.graph.node) != 1 or [o.domain for o in model.opset_import] != [""] or model.functions:
        return None
    if any(v.type.WhichOneof("value") != "tensor_type" for v in values):
        return None
    feeds = [tensor(data / f"input_{i}.pb") for i in range(len(model.graph.input))]
    outputs = [tensor(data / f"output_{i}.pb") for i in range(len(model.graph.output))]
    if any(array is None or array.dtype.kind not in "fiub" for array in [*feeds, *outputs]):
        return None
    names = [v.name for v in model.graph.input]
    return Recorded(folder.name, model.SerializeToString(), tuple(zip(names, feeds, strict=True)), tuple(outputs))


@functools.cache
def recorded() -> dict[str, list[Path]]:
    """The folders of the package's tests by operator."""
    found = collections.defaultdict(list)
    for folder in sorted(suite("node").iterdir()):
        model = onnx.load(folder / "model.onnx", load_external_data=False)
        if len(model.graph.node) == 1 and model.graph.node[0].domain in ("", "ai.onnx"):
            found[model.graph.node[0].op_type].append(folder)
    return dict(found)


def recorded_of(op: str) -> Iterator[Recorded]:
    for folder in recorded()[op]:
        test = read(folder)
        if test is not None:
            yield test


def opsets_of(op: str) -> list[int]:
    """Opsets that differ in the version of the operator, and the one that models are converted to."""
    versions = {s.since_version for s in onnx.defs.get_all_schemas_with_history() if s.name == op and s.domain == ""}
    opsets = {max(v, FIRST) for v in versions if v <= LAST}
    return sorted(opsets | {ALWAYS} if min(versions) <= ALWAYS else opsets)


def at(model: onnx.ModelProto, opset: int) -> onnx.ModelProto:
    other = onnx.ModelProto()
    other.CopyFrom(model)
    other.opset_import[0].version = opset
    other.ir_version = max(other.ir_version, 10) if opset > 20 else 8
    return other


def is_model(model: onnx.ModelProto) -> bool:
    try:
        onnx.checker.check_model(model, full_check=True)
    except Exception:
        return False
    return True


NEWEST_IR = 11  # onnxruntime loads no file of the newest IR, and no model here needs one


def outputs_of(model: onnx.ModelProto, feeds: dict[str, np.ndarray]) -> list[np.ndarray] | None:
    """What ONNX Runtime computes, or where it has no kernel, onnx itself; None where neither runs it."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = 1
    model.ir_version = min(model.ir_version, NEWEST_IR)
    try:
        return onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"]).run(None, feeds)
    except Exception:
        pass
    try:
        return [np.asarray(y) for y in onnx.reference.ReferenceEvaluator(model).run(None, feeds)]
    except Exception:
        return None


def same(found: list[np.ndarray], expected: tuple[np.ndarray, ...]) -> bool:
    for a, b in zip(found, expected, strict=True):
        if a.dtype != b.dtype or a.shape != b.shape:
            return False
        loose = 2e-3 if a.dtype.itemsize == 2 else 1e-4
        if not np.allclose(a.astype(np.float64), b.astype(np.float64), rtol=loose, atol=loose, equal_nan=True):
            return False
    return True


def with_constants(test: Recorded) -> Recorded | None:
    """The same with inputs after the first one that count something, and short vectors, as constants; None where there is none."""
    model = onnx.load_from_string(test.model)
    counts = {name: array for name, array in test.feeds[1:]
              if (array.dtype.kind in "iub" and array.size <= 64) or (array.ndim < 2 and array.size <= 8)}
    if not counts:
        return None
    model.graph.initializer.extend(numpy_helper.from_array(array, name) for name, array in counts.items())
    kept = [value for value in model.graph.input if value.name not in counts]
    del model.graph.input[:]
    model.graph.input.extend(kept)
    feeds = tuple((name, array) for name, array in test.feeds if name not in counts)
    return Recorded(f"{test.name} with constants", model.SerializeToString(), feeds, test.outputs)


def variants(test: Recorded) -> list[Recorded]:
    constant = with_constants(test)
    return [test] if constant is None else [test, constant]


def valid_at(test: Recorded, opset: int) -> onnx.ModelProto | None:
    """The test at the opset, where it means there what was recorded."""
    model = at(onnx.load_from_string(test.model), opset)
    found = outputs_of(model, dict(test.feeds)) if is_model(model) else None
    return model if found is not None and same(found, test.outputs) else None


def models_of(op: str, folder: Path, brief: bool) -> Iterator[tuple[Recorded, int]]:
    """Writes each test of the operator as m.onnx at each opset where it means what was recorded; the first that does, if brief."""
    for test in recorded_of(op):
        done = False
        for variant in variants(test)[-1:] if brief else variants(test):
            for opset in opsets_of(op):
                model = valid_at(variant, opset)
                if model is None:
                    continue
                onnx.save(model, folder / "m.onnx")
                yield variant, opset
                done = True
        if brief and done:
            return


def converted(op: str, folder: Path, brief: bool) -> collections.Counter[str]:
    """Counts what became of the pairs; fails where another number comes out."""
    counts: collections.Counter[str] = collections.Counter()
    faults = []
    for variant, opset in models_of(op, folder, brief):
        others = {str(to): () for to in opsets_of(op) if to > opset or ALWAYS <= to < opset}
        for kind, to, what in converse.ask(CONVERT_NODE, folder / "m.onnx", folder, others):
            if kind == "kept":
                counts["kept"] += 1
                continue
            written = onnx.load(folder / f"converted-{what}.onnx")
            found = outputs_of(written, dict(variant.feeds)) if is_model(written) else None
            if not is_model(written):
                faults.append(f"{variant.name}: {opset} to {to}: no model of that opset")
            elif found is not None and not same(found, variant.outputs):
                faults.append(f"{variant.name}: {opset} to {to}: other numbers")
            counts["written" if found is not None else "written, and nothing runs it"] += 1
    assert not faults, "\n".join(faults)
    return counts


def adapted(op: str, folder: Path, brief: bool) -> collections.Counter[str]:
    """Counts the models, and the codes of the forms that were written anew; fails where another number comes out."""
    counts: collections.Counter[str] = collections.Counter()
    faults = []
    for variant, opset in models_of(op, folder, brief):
        counts["models"] += 1
        runs = pipeline.optimize(folder / "m.onnx", folder, TARGETS)
        faults += [f"{variant.name}: opset {opset}: {name}: {sentence}" for name, told in runs.wrong.items() for sentence in told]
        seen: set[Path] = set()
        for name, made in runs.targets.items():
            for record in made.report["adapted"]:
                counts[record["code"]] += 1
            if made.expanded in seen:
                continue
            seen.add(made.expanded)
            written = onnx.load(made.expanded)
            found = outputs_of(written, dict(variant.feeds)) if is_model(written) else None
            if found is None:
                faults.append(f"{variant.name}: opset {opset}: {name}: what is written does not run")
            elif not same(found, variant.outputs):
                faults.append(f"{variant.name}: opset {opset}: {name}: other numbers")
    assert not faults, "\n".join(faults)
    return counts


OPERATORS = [op for op in recorded() if op not in LEFT_OUT]
# Of these one test in --quick: operators whose versions differ most, and those of adapters.
QUICK = ("ArgMax", "Einsum", "GatherND", "Hardmax", "OneHot", "Pad", "ReduceMean", "Resize", "ScatterND", "Softmax", "Split",
         "Squeeze")


def test_there_are_tests() -> None:
    assert len(OPERATORS) > 150 and set(QUICK) <= set(OPERATORS)
    assert sum(len(recorded()[op]) for op in OPERATORS) > 1000


@pytest.mark.parametrize("op", QUICK)
def test_one_of_each(op: str, tmp_path: Path) -> None:
    assert converted(op, tmp_path, brief=True) + adapted(op, tmp_path, brief=True)


@pytest.mark.slow
@pytest.mark.parametrize("op", OPERATORS)
def test_at_other_opsets(op: str, tmp_path: Path) -> None:
    converted(op, tmp_path, brief=False)


@pytest.mark.slow
@pytest.mark.parametrize("op", OPERATORS)
def test_written_for_atc(op: str, tmp_path: Path) -> None:
    adapted(op, tmp_path, brief=False)
