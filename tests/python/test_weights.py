"""Where the weights of a written model are: copied, left in the input's files, or all in one file (--weights, --copy-data).
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import ascend_fuse
import numpy as np
import onnx
import pytest
from ascend_fuse.session import plain_session
from conftest import TOOL, run, run_ok
from onnx import TensorProto, helper, numpy_helper
from onnx.external_data_helper import convert_model_to_external_data

WIDTH = 64


def norm_model() -> onnx.ModelProto:
    """Returns y = rms_norm (x) W, with W (16 KB) and gamma as initializers."""
    random = np.random.default_rng(0)
    weights = {
        "w": random.standard_normal((WIDTH, WIDTH)).astype(np.float32),
        "gamma": random.standard_normal(WIDTH).astype(np.float32),
        "two": np.array(2, np.float32),
        "eps": np.array(1e-6, np.float32),
    }
    nodes = [
        helper.make_node("Pow", ["x", "two"], ["sq"]),
        helper.make_node("ReduceMean", ["sq"], ["mean"], axes=[-1]),
        helper.make_node("Add", ["mean", "eps"], ["sum"]),
        helper.make_node("Sqrt", ["sum"], ["root"]),
        helper.make_node("Div", ["x", "root"], ["n"]),
        helper.make_node("Mul", ["n", "gamma"], ["scaled"]),
        helper.make_node("MatMul", ["scaled", "w"], ["y"]),
    ]
    return helper.make_model(
        helper.make_graph(
            nodes,
            "g",
            [helper.make_tensor_value_info("x", TensorProto.FLOAT, [2, 3, WIDTH])],
            [helper.make_tensor_value_info("y", TensorProto.FLOAT, [2, 3, WIDTH])],
            [numpy_helper.from_array(array, name) for name, array in weights.items()],
        ),
        opset_imports=[helper.make_opsetid("", 17)],
        ir_version=8,
    )


def save(path: Path, data: str = "") -> Path:
    """Writes the model; `data`: with its weights in that file."""
    model = norm_model()
    if data:
        convert_model_to_external_data(model, location=data, size_threshold=1024)
    path.parent.mkdir(parents=True, exist_ok=True)
    onnx.save(model, str(path))
    return path


def outputs(path: Path) -> np.ndarray:
    x = np.random.default_rng(1).standard_normal((2, 3, WIDTH)).astype(np.float32)
    return plain_session(path, threads=1).run(None, {"x": x})[0]


def places(path: Path) -> dict[str, str]:
    """Returns the locations of the initializers that are external."""
    model = onnx.load(str(path), load_external_data=False)
    external = [t for t in model.graph.initializer if t.data_location == TensorProto.EXTERNAL]
    return {t.name: {e.key: e.value for e in t.external_data}["location"] for t in external}


def check(original: Path, written: Path) -> None:
    """The written model has the NPU node, and computes what the original does wherever its weights are."""
    assert "NPURmsNorm" in {node.op_type for node in onnx.load(str(written), load_external_data=False).graph.node}
    expanded = written.with_name("expanded.onnx")
    run_ok("expand", written, "-o", expanded)
    onnx.checker.check_model(str(expanded))
    np.testing.assert_allclose(outputs(expanded), outputs(original), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("data", ["", "weights.bin"])
@pytest.mark.parametrize("weights", ["copy", "reference", "all.bin", "sub/all.bin"])
def test_outputs_are_equal_wherever_the_weights_are(tmp_path: Path, data: str, weights: str) -> None:
    source = save(tmp_path / "m.onnx", data)
    before = source.read_bytes()
    (tmp_path / "sub").mkdir()
    written = tmp_path / "out.onnx"
    result = run_ok("optimize", source, "-o", written, "--weights", weights)
    assert source.read_bytes() == before
    expected = {"copy": data, "reference": data or "m.onnx"}.get(weights, weights)
    assert places(written) == ({"w": expected} if expected else {})
    assert ("keep that" in result.out) == (weights == "reference")
    check(source, written)


def test_a_reference_leads_into_a_directory_beneath(tmp_path: Path) -> None:
    for data in ("", "data/weights.bin"):
        (tmp_path / "in" / "data").mkdir(parents=True, exist_ok=True)
        source = save(tmp_path / "in" / "m.onnx", data)
        written = tmp_path / "out.onnx"
        run_ok("optimize", source, "-o", written, "--weights", "reference")
        assert places(written) == {"w": f"in/{data or 'm.onnx'}"}
        check(source, written)


@pytest.mark.parametrize("data", ["", "weights.bin"])
def test_a_reference_that_no_reader_follows_is_refused(tmp_path: Path, data: str) -> None:
    source = save(tmp_path / "in" / "m.onnx", data)
    (tmp_path / "out").mkdir()
    written = tmp_path / "out" / "m.onnx"
    result = run("optimize", source, "-o", written, "--weights", "reference")
    assert result.code == 1 and "no reader of ONNX follows a way out" in result.err
    assert list(written.parent.iterdir()) == []


@pytest.mark.parametrize("link", [os.symlink, os.link])
def test_a_reference_to_a_link_is_refused(tmp_path: Path, link) -> None:
    source = save(tmp_path / "m.onnx")
    link(source, tmp_path / "other.onnx")
    written = tmp_path / "out.onnx"
    result = run("optimize", tmp_path / "other.onnx", "-o", written, "--weights", "reference")
    assert result.code == 1 and "a link or has a second name" in result.err
    assert not written.exists()


def test_the_input_is_never_overwritten(tmp_path: Path) -> None:
    source = save(tmp_path / "m.onnx")
    before = source.read_bytes()
    for arguments in (["-o", source, "--weights", "reference"], ["-o", tmp_path / "out.onnx", "--weights", "m.onnx"]):
        result = run("optimize", source, *arguments)
        assert result.code == 1 and "Choose another name" in result.err
        assert source.read_bytes() == before
    source = save(tmp_path / "n.onnx", "n.bin")
    before = (tmp_path / "n.bin").read_bytes()
    result = run("optimize", source, "-o", tmp_path / "out.onnx", "--weights", "n.bin")
    assert result.code == 1 and "Choose another name" in result.err
    assert (tmp_path / "n.bin").read_bytes() == before


@pytest.mark.parametrize("file", ["../w.bin", "/tmp/w.bin", "out.onnx"])
def test_names_that_the_weights_cannot_have(tmp_path: Path, file: str) -> None:
    source = save(tmp_path / "m.onnx")
    result = run("optimize", source, "-o", tmp_path / "out.onnx", "--weights", file)
    assert result.code == 1 and ("beside the output or beneath it" in result.err or "cannot have one name" in result.err)
    assert not (tmp_path / "out.onnx").exists()


def test_data_files_are_copied_when_asked(tmp_path: Path) -> None:
    source = save(tmp_path / "in" / "m.onnx", "weights.bin")
    (tmp_path / "out").mkdir()
    written = tmp_path / "out" / "m.onnx"
    result = run("optimize", source, "-o", written)
    assert result.code == 1 and "--copy-data" in result.err and "--weights FILE" in result.err
    run_ok("optimize", source, "-o", written, "--copy-data")
    assert sorted(p.name for p in written.parent.iterdir()) == ["m.onnx", "weights.bin"]
    check(source, written)
    run_ok("optimize", source, "-o", written, "--copy-data")  # it is there
    (written.parent / "weights.bin").write_bytes(b"another file")
    result = run("optimize", source, "-o", written, "--copy-data")
    assert result.code == 1 and "there is another file" in result.err
    assert (written.parent / "weights.bin").read_bytes() == b"another file"


def test_copying_that_is_ended_leaves_nothing(tmp_path: Path) -> None:
    source = save(tmp_path / "in" / "m.onnx", "weights.bin")
    (tmp_path / "out").mkdir()
    result = ascend_fuse.optimize(source)
    told: list[tuple[str, int, int]] = []

    def stop_at(times: int) -> Callable[[str, int, int], None]:
        def stop(*at: Any) -> None:
            told.append(at)
            if len(told) == times:
                raise KeyboardInterrupt

        return stop

    result.save(tmp_path / "out" / "m.onnx", copy_data=True, progress=stop_at(-1))
    size = (tmp_path / "out" / "weights.bin").stat().st_size
    assert ("save", size, size) in told, "the data file is told of too"
    times = len(told)
    for path in (tmp_path / "out").iterdir():
        path.unlink()
    for when in range(1, times + 1):  # while the data file is copied, and while the model is written
        told.clear()
        with pytest.raises(KeyboardInterrupt):
            result.save(tmp_path / "out" / "m.onnx", copy_data=True, progress=stop_at(when))
        assert not list((tmp_path / "out").iterdir()), when


def interrupted_while_writing(folder: Path, **how: Any) -> int:
    """The exit code of a run that gets a Control-C while it copies a data file."""
    source = save(folder / "in" / "m.onnx", "weights.bin")
    os.truncate(folder / "in" / "weights.bin", 2 << 30)  # time enough for a signal
    (folder / "out").mkdir()
    command = [str(TOOL), "optimize", str(source), "-o", str(folder / "out" / "m.onnx"), "--copy-data", "--quiet"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, **how) as process:
        while not list((folder / "out").iterdir()) and process.poll() is None:
            time.sleep(0.001)
        process.send_signal(signal.SIGINT)
        process.wait(60)
    return process.returncode


@pytest.mark.usefixtures("control_c")
def test_control_c_while_writing_leaves_nothing(tmp_path: Path) -> None:
    assert interrupted_while_writing(tmp_path) == -signal.SIGINT
    assert not list((tmp_path / "out").iterdir())


def test_who_starts_with_control_c_ignored_goes_on(tmp_path: Path) -> None:
    """As every program does that nohup starts."""
    code = interrupted_while_writing(tmp_path, preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_IGN))
    assert code == 0
    assert {p.name for p in (tmp_path / "out").iterdir()} == {"m.onnx", "weights.bin"}
    assert (tmp_path / "out" / "weights.bin").stat().st_size == 2 << 30


def test_one_file_from_another_directory_needs_no_data_file_there(tmp_path: Path) -> None:
    source = save(tmp_path / "in" / "m.onnx", "weights.bin")
    (tmp_path / "out").mkdir()
    written = tmp_path / "out" / "m.onnx"
    run_ok("optimize", source, "-o", written, "--weights", "all.bin")
    assert sorted(p.name for p in written.parent.iterdir()) == ["all.bin", "m.onnx"]
    check(source, written)


def test_a_model_of_20_gb_needs_no_memory(tmp_path: Path) -> None:
    source = save(tmp_path / "m.onnx", "weights.bin")
    model = onnx.load(str(source), load_external_data=False)
    [weight] = [t for t in model.graph.initializer if t.name == "w"]
    large = 20 << 30
    next(e for e in weight.external_data if e.key == "offset").value = str(large)
    onnx.save(model, str(source))
    content = (tmp_path / "weights.bin").read_bytes()
    with (tmp_path / "weights.bin").open("wb") as file:  # sparse
        file.seek(large)
        file.write(content)
    written = tmp_path / "out.onnx"
    # In a process of its own, as what the tests hold would count too.
    command = [str(TOOL), "optimize", str(source), "-o", str(written), "--weights", "reference", "--quiet"]
    script = (f"import resource, subprocess; subprocess.run({command!r}, check=True); "
              "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)")
    memory = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout
    assert int(memory) < 64 << 10  # KB
    assert written.stat().st_size < 1 << 20


def test_weights_in_constant_nodes_are_counted(tmp_path: Path) -> None:
    """Paddle's exporter writes all of them so."""
    weight = np.random.default_rng(3).standard_normal((256, 512)).astype(np.float32)
    nodes = [helper.make_node("Constant", [], ["w"], value=numpy_helper.from_array(weight)), helper.make_node("MatMul", ["x", "w"], ["y"])]
    graph = helper.make_graph(nodes, "g", [helper.make_tensor_value_info("x", 1, ["n", 256])], [helper.make_tensor_value_info("y", 1, ["n", 512])])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 12)], ir_version=7), tmp_path / "m.onnx")
    run_ok("optimize", tmp_path / "m.onnx", "-o", tmp_path / "o.onnx", "--json", tmp_path / "r.json")
    assert json.loads((tmp_path / "r.json").read_text())["summary"]["weights"]["before"] == weight.nbytes
