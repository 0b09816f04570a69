"""`--progress`: what is told on stderr of a run that takes over a second, and that nothing is told of a short one."""

from __future__ import annotations

import os
import pty
import re
import subprocess
import sys
from pathlib import Path

import onnx
import pytest
from conftest import TOOL, run, run_ok
from onnx import helper

NODES = 600_000
PATIENCE = 250  # seconds, on a busy machine


@pytest.fixture(scope="module")
def long(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A chain of so many nodes that a run takes longer than a second, on any machine."""
    path = tmp_path_factory.mktemp("long") / "long.onnx"
    nodes = [helper.make_node("Tanh" if i % 2 else "Erf", [f"v{i}"], [f"v{i + 1}"]) for i in range(NODES)]
    info = [helper.make_tensor_value_info(f"v{i}", onnx.TensorProto.FLOAT, [4]) for i in (0, NODES)]
    graph = helper.make_graph(nodes, "g", [info[0]], [info[1]])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    return path


def test_lines_in_a_log(long: Path) -> None:
    done = run("analyze", long, "--quiet", "--progress", "lines")
    assert done.err == "", "nothing is told where --quiet asks for errors only"
    done = run("analyze", long, "--progress", "lines", "--json", os.devnull)
    lines = done.err.splitlines()
    assert lines and all(re.fullmatch(r"ascend-fuse: [a-z_]+, \d+ %, \d+ s", line) for line in lines), done.err


def test_a_bar_on_a_terminal(long: Path) -> None:
    ours, theirs = pty.openpty()
    environment = {name: value for name, value in os.environ.items() if name != "ASCEND_FUSE_PROGRESS"}
    with subprocess.Popen([TOOL, "list", long], stdout=subprocess.DEVNULL, stderr=theirs, env=environment) as process:
        os.close(theirs)
        told = b""
        while True:
            try:
                piece = os.read(ours, 4096)
            except OSError:  # the other end is closed
                break
            if not piece:
                break
            told += piece
        process.wait(timeout=PATIENCE)
    os.close(ours)
    assert re.search(rb"\r\x1b\[K\[=* *\] +\d+ %  [a-z_]+  \d+ s", told), told[:200]
    assert told.endswith(b"\r\x1b[K"), "the bar is taken away"


def test_none(long: Path) -> None:
    assert run("list", long, "--progress", "none").err == ""


def test_a_short_run_says_nothing(tmp_path: Path) -> None:
    graph = helper.make_graph([helper.make_node("Relu", ["x"], ["y"])], "g", [helper.make_tensor_value_info("x", 1, [4])],
                              [helper.make_tensor_value_info("y", 1, [4])])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), tmp_path / "m.onnx")
    assert run_ok("list", tmp_path / "m.onnx", "--progress", "lines").err == ""
    assert run("list", tmp_path / "m.onnx", "--progress", "loud").code == 2


SLOW = """<ir_version: 8, opset_import: ["" : 17]>
g (float[4096, 4096] x) => (float[4096, 4096] y) { a = MatMul (x, x) b = Softmax (a) c = MatMul (b, x) d = Softmax (c) y = MatMul (d, x) }"""
LINE = re.compile(r"ascend-fuse: [^%]+, (\d+ %, )?\d+ s")


@pytest.mark.parametrize("command", ["verify", "precision"])
@pytest.mark.timeout(900)  # two long runs, on a busy machine
def test_commands_in_python_tell_too(command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")  # the Python that has the packages
    path = tmp_path / "slow.onnx"
    onnx.save(onnx.parser.parse_model(SLOW), path)
    words = [path, path] if command == "verify" else [path, "--seeded"]
    told = run(command, *words, "--progress", "lines", timeout=PATIENCE).err.splitlines()
    assert told and all(LINE.fullmatch(line) for line in told), told
    assert run(command, *words, "--progress", "none", timeout=PATIENCE).err == ""


def test_several_models_are_counted(long: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.onnx"
    other.write_bytes(long.read_bytes())
    words = ["optimize", long, other, "-o", f"{tmp_path}/out/", "-j", "1", "--progress", "lines"]
    told = run(*words, timeout=PATIENCE).err.splitlines()
    assert any(re.fullmatch(r"ascend-fuse: [01] of 2 models.*, \d+ %, \d+ s", line) for line in told), told
