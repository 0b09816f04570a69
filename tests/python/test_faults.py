"""Faults of the world: disks that fill up, signals, kills and memory that runs out, at every call of a run.

Whatever happens: the input keeps its bytes; the output has its old bytes or its new ones, never a part; nothing is left behind
unless the process was killed; an error is one sentence and exit code 1, never a signal. Through the program, Python and C.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx
import pytest
from conftest import BUILD, TOOL
from onnx import TensorProto, helper, numpy_helper

FAULTS = BUILD / "tests" / "libfaults.so"
pytestmark = pytest.mark.skipif(not FAULTS.exists(), reason="sanitizers replace the same functions")
OLD = b"what was there before"
MOST = 100_000  # calls of one run


@dataclass
class Place:
    """A folder with an input, and what a run over it needs."""

    folder: Path
    data: dict[str, bytes]

    @property
    def words(self) -> list[str]:
        return ["optimize", str(self.folder / "m.onnx"), "-o", str(self.folder / "out.onnx"), "--quiet"]

    def reset(self) -> None:
        for path in self.folder.iterdir():
            path.unlink()
        for name, data in self.data.items():
            (self.folder / name).write_bytes(data)
        (self.folder / "out.onnx").write_bytes(OLD)

    def files(self) -> dict[str, bytes]:
        return {path.name: path.read_bytes() for path in self.folder.iterdir()}


def norm_model(external: bool) -> dict[str, bytes]:
    """A layer norm, which is fused, and a weight of 8 KB."""
    weights = {"w": np.ones((64, 64), np.float16), "g": np.ones(64, np.float16), "b": np.zeros(64, np.float16)}
    nodes = [helper.make_node("MatMul", ["x", "w"], ["m"], name="m"),
             helper.make_node("LayerNormalization", ["m", "g", "b"], ["y"], name="n")]
    ports = [helper.make_tensor_value_info(name, TensorProto.FLOAT16, [4, 64]) for name in "xy"]
    graph = helper.make_graph(nodes, "g", ports[:1], ports[1:], [numpy_helper.from_array(w, name) for name, w in weights.items()])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    if not external:
        return {"m.onnx": model.SerializeToString()}
    tensor = model.graph.initializer[0]
    data = tensor.raw_data
    tensor.ClearField("raw_data")
    tensor.data_location = TensorProto.EXTERNAL
    for key, value in (("location", "m.data"), ("offset", "0"), ("length", str(len(data)))):
        tensor.external_data.add(key=key, value=value)
    return {"m.onnx": model.SerializeToString(), "m.data": data}


@pytest.fixture(params=[False, True], ids=["inline", "external"])
def place(tmp_path: Path, request: pytest.FixtureRequest) -> Place:
    folder = tmp_path / "model"
    folder.mkdir()
    return Place(folder, norm_model(request.param))


def faulty(words: list[str], fault: str, fired: Path) -> subprocess.CompletedProcess[str]:
    """Runs a command whose calls fail as `fault` says."""
    fired.unlink(missing_ok=True)
    environment = os.environ | {"LD_PRELOAD": str(FAULTS), "FAULTS": fault, "FAULTS_FIRED": str(fired)}
    return subprocess.run(words, env=environment, capture_output=True, text=True, timeout=60, errors="replace")


def good_output(place: Place) -> bytes:
    place.reset()
    assert subprocess.run([TOOL, *place.words], capture_output=True).returncode == 0
    return (place.folder / "out.onnx").read_bytes()


def check(done: subprocess.CompletedProcess[str], place: Place, good: bytes, fault: str) -> None:
    """What holds after every run that was not killed."""
    files = place.files()
    expected = place.data | {"out.onnx": good if done.returncode == 0 else OLD}
    assert {name: files.get(name) == data for name, data in expected.items()} == dict.fromkeys(expected, True), fault
    assert set(files) == set(expected), f"{fault}: {set(files) - set(expected)}"
    if done.returncode != 0:
        assert done.returncode == 1, f"{fault}: exit code {done.returncode}, {done.stderr}"
        assert done.stderr.startswith("ascend-fuse: ") and done.stderr.count("\n") == 1, f"{fault}: {done.stderr}"


def every(calls: str, how: str, steps: Iterator[int] | None = None) -> Iterator[str]:
    for number in steps or range(1, MOST):
        yield f"{calls}:{number}:{how}"


@pytest.mark.parametrize(("calls", "how"), [
    ("any", "EIO"), ("open", "EINTR"), ("read", "EINTR"), ("write", "EINTR"), ("close", "EINTR"), ("write", "ENOSPC"), ("write", "SHORT"), ("read", "SHORT"), ("fallocate", "ENOSPC"),
    ("open", "EACCES"), ("mmap", "ENOMEM"), ("rename", "EACCES"), ("close", "ENOSPC")])
def test_calls_that_fail(place: Place, tmp_path: Path, calls: str, how: str) -> None:
    good = good_output(place)
    fired = tmp_path / "fired"
    failed = 0
    for fault in every(calls, how):
        place.reset()
        done = faulty([TOOL, *place.words], fault, fired)
        check(done, place, good, fault)
        failed += done.returncode != 0
        if how in ("EINTR", "SHORT"):
            assert done.returncode == 0, f"{fault}: {done.stderr}"
        if not fired.exists():
            break
    assert fault != f"{calls}:1:{how}", "no such call"
    if how in ("ENOSPC", "EACCES") and calls != "close":
        assert failed > 0


def test_killed_at_every_call(place: Place, tmp_path: Path) -> None:
    good = good_output(place)
    fired = tmp_path / "fired"
    for fault in every("any", "KILL"):
        place.reset()
        done = faulty([TOOL, *place.words], fault, fired)
        if not fired.exists():
            break
        assert done.returncode == -9
        files = place.files()
        assert files.pop("out.onnx") in (OLD, good), fault
        # Nobody is left who could remove it: a file that no model has the name of.
        assert [name for name in files if name not in place.data and not name.startswith(".ascend-fuse-")] == [], fault
        assert {name: files[name] for name in place.data} == place.data, fault
    assert done.returncode == 0


def sampled(quick: int) -> Iterator[int]:
    """The first calls one by one, then ever larger steps."""
    number = 1
    while number < MOST:
        yield number
        number += max(1, number // quick)


@pytest.mark.parametrize("quick", [12, pytest.param(200, marks=pytest.mark.slow)])
@pytest.mark.parametrize("calls", ["memory", "new"])
def test_memory_that_runs_out(tmp_path: Path, calls: str, quick: int) -> None:
    folder = tmp_path / "model"
    folder.mkdir()
    place = Place(folder, norm_model(external=False))
    good = good_output(place)
    fired = tmp_path / "fired"
    failed = 0
    for fault in every(calls, "ENOMEM", sampled(quick)):
        place.reset()
        done = faulty([TOOL, *place.words], fault, fired)
        check(done, place, good, fault)
        failed += done.returncode
        if not fired.exists():
            break
    assert failed > 20


@pytest.mark.parametrize("command", ["list", "check", "expand", "print", "targets", "rules", "explain"])
def test_memory_of_other_commands(tmp_path: Path, command: str) -> None:
    folder = tmp_path / "model"
    folder.mkdir()
    place = Place(folder, norm_model(external=False))
    words = {"targets": ["targets", "ascend910b"], "rules": ["rules"], "explain": ["explain", "mask-per-head"]}.get(
        command, [command, str(folder / "m.onnx")])
    if command == "expand":
        words += ["-o", str(folder / "out.onnx")]
    fired = tmp_path / "fired"
    for fault in every("memory", "ENOMEM", sampled(3)):
        place.reset()
        done = faulty([TOOL, *words], fault, fired)
        if done.returncode != 0:
            check(done, place, b"", fault)
        if not fired.exists():
            break


def run_program(program: str, library: Path, folder: Path, calls: str, how: str) -> None:
    """Runs a program of Python over the library, in which such calls fail one after the other: some runs fail, and no file is left."""
    (folder / "m.onnx").write_bytes(norm_model(external=False)["m.onnx"])
    (folder / "out.onnx").write_bytes(OLD)
    words = [sys.executable, "-c", program, library, FAULTS, folder / "m.onnx", folder / "out.onnx", calls, how]
    done = subprocess.run([str(word) for word in words], env=os.environ | {"LD_PRELOAD": str(FAULTS)}, capture_output=True, text=True, timeout=100)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout.split()[0]) >= 1
    assert {path.name for path in folder.iterdir()} == {"m.onnx", "out.onnx"}


PYTHON = """
import ctypes, sys
sys.path.insert(0, sys.argv[1])
import ascend_fuse
faults = ctypes.CDLL(sys.argv[2])
source, output = sys.argv[3:5]
old, data = open(output, "rb").read(), open(source, "rb").read()
calls, how = sys.argv[5:7]
failed, number = 0, 1
ascend_fuse.optimize(source)  # what is read once is read
while True:
    faults.faults_arm(calls.encode(), ctypes.c_long(number), how.encode())
    try:
        ascend_fuse.optimize(source).save(output)
    except (ascend_fuse.AscendFuseError, MemoryError, OSError) as error:
        assert str(error) or isinstance(error, MemoryError), number
        failed += 1
        faults.faults_arm(b"", ctypes.c_long(0), b"EIO")
        assert open(output, "rb").read() == old, number
    fired = faults.faults_fired()
    faults.faults_arm(b"", ctypes.c_long(0), b"EIO")
    assert open(source, "rb").read() == data, number
    open(output, "wb").write(old)
    if not fired:
        break
    number += max(1, number // 12)
print(failed, number)
"""


# Not memory: Python and ctypes need some themselves.
@pytest.mark.parametrize(("calls", "how"), [("write", "ENOSPC"), ("write", "EIO"), ("rename", "EACCES")])
def test_python(tmp_path: Path, calls: str, how: str) -> None:
    run_program(PYTHON, BUILD / "python", tmp_path, calls, how)


C = """
import ctypes, sys
library, faults = ctypes.CDLL(sys.argv[1]), ctypes.CDLL(sys.argv[2])
source, output, calls, how = (word.encode() for word in sys.argv[3:7])
library.ascend_fuse_error.restype = ctypes.c_char_p
old = open(output, "rb").read()
failed, number = 0, 1

def run():
    model = ctypes.c_void_p()
    code = library.ascend_fuse_load(source, ctypes.byref(model))
    if calls == b"new":  # in passes, tables of Abseil cannot be taken apart after an allocation in them has failed
        faults.faults_disarm()
    code = code or library.ascend_fuse_optimize(model, None, None)
    code = code or library.ascend_fuse_save(model, output)
    said = library.ascend_fuse_error()
    library.ascend_fuse_model_free(model)
    return code, said

assert run()[0] == 0  # what is read once is read
open(output, "wb").write(old)
while True:
    faults.faults_arm(calls, ctypes.c_long(number), how)
    code, said = run()
    fired = faults.faults_fired()
    faults.faults_disarm()
    if code:
        failed += 1
        assert said, number
        assert open(output, "rb").read() == old, number
    open(output, "wb").write(old)
    if not fired:
        assert code == 0, said
        break
    number += max(1, number // 25)
print(failed, number)
"""


@pytest.mark.parametrize(("calls", "how"), [("new", "ENOMEM"), ("write", "ENOSPC"), ("any", "EIO")])
def test_c(tmp_path: Path, calls: str, how: str) -> None:
    run_program(C, BUILD / "libascend_fuse.so", tmp_path, calls, how)


def test_two_processes_that_write_one_path(tmp_path: Path) -> None:
    folder = tmp_path / "model"
    folder.mkdir()
    place = Place(folder, norm_model(external=False))
    good = good_output(place)
    for _ in range(5):
        runs = [subprocess.Popen([TOOL, *place.words]) for _ in range(4)]
        assert [run.wait() for run in runs] == [0] * 4
        assert place.files() == place.data | {"out.onnx": good}
