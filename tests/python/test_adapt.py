"""Opset conversion and adapters on the node tests of the onnx package: each test model is optimized for targets that make the
tool convert it, and both give what the test data say, in ONNX Runtime without graph optimizations.

A node test is a model of one operator with inputs and outputs. Those whose opset the tool changes, or whose form it writes
anew, must stay what they are; the others must stay to the byte.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnx.helper
import onnx.numpy_helper
import pytest
from ascend_fuse.session import plain_session
from onnx.backend.test.loader import load_model_tests

import pipeline

# The operators that opset conversion or an adapter writes anew, and some that stay as they are.
OPERATORS = (
    "add averagepool batchnorm cast castlike center clip constant conv cumsum dropout einsum elu equal expand flatten gather "
    "gathernd gelu gemm globalaveragepool group hardsigmoid hardswish identity if instancenorm isinf isnan layer leakyrelu "
    "logsoftmax lppool maxpool mean mish mod pad pow prelu reduce relu reshape resize rms rotary round scatter scatternd shape sin size "
    "softmax softplus split squeeze sum swish thresholdedrelu topk transpose trilu unsqueeze where"
).split()
# Of the last one no kernel is known: what ATC has no parser for becomes its definition there.
TARGETS = {"8.1": ("--target=ascend910b", "--cann=8.1"), "2026.07": ("--target=ascend950", "--cann=2026.07"),
           "310b": ("--target=ascend310b", "--cann=9.1")}


def operator_of(name: str) -> str:
    return name.removeprefix("test_").split("_")[0]


CASES = [case for case in load_model_tests(kind="node")
         if operator_of(case.name).startswith(tuple(OPERATORS)) and "_expanded" not in case.name and "_sequence" not in case.name]


def test_there_are_cases() -> None:
    assert len(CASES) > 300


def read_inputs(folder: Path, model: onnx.ModelProto) -> dict[str, np.ndarray] | None:
    feeds = {}
    for i, value in enumerate(model.graph.input):
        path = folder / f"input_{i}.pb"
        if not value.type.HasField("tensor_type") or not path.exists():
            return None
        feeds[value.name] = onnx.numpy_helper.to_array(onnx.TensorProto.FromString(path.read_bytes()))
    return feeds


def outputs_of(model: bytes, feeds: dict[str, np.ndarray]) -> list[np.ndarray] | None:
    """What ONNX Runtime computes; None where it cannot run the model."""
    try:
        return plain_session(model, threads=1).run(None, feeds)
    except Exception:  # noqa: BLE001: it raises many types
        return None


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_numbers_stay(case: object, tmp_path: Path) -> None:
    source = Path(case.model_dir) / "model.onnx"
    model = onnx.load(source)
    runs = pipeline.optimize(source, tmp_path, TARGETS)
    assert not runs.wrong, runs.wrong
    changed = {name: run for name, run in runs.targets.items() if run.expanded.read_bytes() != source.read_bytes()}
    feeds = read_inputs(Path(case.model_dir) / "test_data_set_0", model)
    if not changed or feeds is None:
        return
    expected = outputs_of(source.read_bytes(), feeds)
    if expected is None:
        pytest.skip("ONNX Runtime cannot run the model of the test")
    for name, run in changed.items():
        found = outputs_of(run.expanded.read_bytes(), feeds)
        assert found is not None, f"{name}: ONNX Runtime cannot run what was written"
        for a, b in zip(expected, found):
            assert np.asarray(a).dtype == np.asarray(b).dtype and np.shape(a) == np.shape(b), name
            np.testing.assert_allclose(b, a, rtol=2e-3 if np.asarray(a).dtype == np.float16 else 1e-5, atol=1e-5, err_msg=name)
