"""The backend tests of the onnx package as folders: a model, and data sets of inputs and outputs beside it.

From release 1.23 on the package holds the tests of single nodes as programs only, which are run once: what they make is kept in the
build folder.
"""

from __future__ import annotations

import fcntl
import functools
import shutil
import warnings
from pathlib import Path

import onnx
import onnx.backend.test
from conftest import BUILD
from onnx import numpy_helper

SHIPPED = Path(onnx.backend.test.__file__).resolve().parent / "data"
SUITES = ("node", "simple", "pytorch-operator", "pytorch-converted", "light")


def _write_value(path: Path, value: object, declared: onnx.ValueInfoProto) -> None:
    kind = declared.type.WhichOneof("value")
    make = {"sequence_type": numpy_helper.from_list, "optional_type": numpy_helper.from_optional, "map_type": numpy_helper.from_dict}
    proto = value if isinstance(value, onnx.TensorProto) else make.get(kind, numpy_helper.from_array)(value, declared.name)
    path.write_bytes(proto.SerializeToString())


def _write_nodes(folder: Path) -> None:
    import onnx.backend.test.case.node as nodes

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # divisions by zero are meant
        cases = nodes.collect_testcases(None)
    for case in cases:
        made = folder / case.name
        made.mkdir(parents=True)
        (made / "model.onnx").write_bytes(case.model.SerializeToString())
        for i, values in enumerate(case.data_sets):
            data = made / f"test_data_set_{i}"
            data.mkdir()
            for word, side, some in zip(("input", "output"), (case.model.graph.input, case.model.graph.output), values, strict=True):
                for j, (value, declared) in enumerate(zip(some, side, strict=False)):
                    _write_value(data / f"{word}_{j}.pb", value, declared)


@functools.cache
def suite(name: str) -> Path:
    """The folder of a suite."""
    if name != "node" or (SHIPPED / name).is_dir():
        return SHIPPED / name
    kept = BUILD / f"backend-{onnx.__version__}"
    kept.mkdir(parents=True, exist_ok=True)
    with open(kept / ".lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (kept / name).is_dir():
            shutil.rmtree(kept / "unfinished", ignore_errors=True)
            _write_nodes(kept / "unfinished")
            (kept / "unfinished").rename(kept / name)
    return kept / name
