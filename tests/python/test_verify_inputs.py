"""`verify` of models whose inputs say little: dims of -1, and sizes that end the process of ONNX Runtime."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

import numpy as np
import onnx
import onnx.parser
import pytest
from ascend_fuse import session
from conftest import run, run_ok


@pytest.fixture(autouse=True)
def python_on_the_path(monkeypatch: pytest.MonkeyPatch) -> None:
    """The program starts the Python of these tests, which has ONNX Runtime."""
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}:{os.environ['PATH']}")


def written(path: Path, text: str, unknown_dims: bool = False) -> Path:
    """Writes a model of ONNX's own text, with -1 for dims that have a name."""
    model = onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["" : 17]> {text}')
    if unknown_dims:
        for value in model.graph.input:
            for dim in value.type.tensor_type.shape.dim:
                if dim.HasField("dim_param"):
                    dim.dim_value = -1
    onnx.save(model, path)
    return path


def test_dims_of_minus_one_are_unknown(tmp_path: Path) -> None:
    """PaddlePaddle's exporter writes them. The pixels of an image are as many as a convolution needs."""
    model = written(tmp_path / "m.onnx", """
        image (float[n, 3, h, w] x) => (float[a, b, c, d] y) <float[4, 3, 8, 8] k = {%s}> {
          y = Conv <strides = [4, 4]> (x, k)
        }""" % ", ".join(["0.5"] * 768), unknown_dims=True)
    said = run_ok("verify", model, model).out
    assert "x: pixels" in said and "float32[2, 4, 15, 23]" in said


def test_the_original_is_named_where_it_cannot_run_and_the_other_cannot_be_loaded(tmp_path: Path) -> None:
    """A broken export may be loaded as long as nothing is known of its shapes; what was made of it knows them."""
    broken = written(tmp_path / "broken.onnx", """
        broken (float[batch, 4] x) => (float[a, b] y) <int64[1] one = {1}, int64[2] two = {2, 3}> {
          sizes = Mul (two, one)
          y = Reshape (x, sizes)
        }""")
    refused = written(tmp_path / "refused.onnx", """
        refused (float[batch, 4] x) => (float[a, b] y) <float[3] k = {1.0, 2.0, 3.0}> { y = Add (x, k) }""")
    adds = written(tmp_path / "adds.onnx", "adds (float[batch, 4] x) => (float[a, b] y) { y = Add (x, x) }")
    done = run("verify", broken, refused)
    assert done.code == 1 and "the original model refused every binding, so nothing can be compared" in done.err
    assert done.err.count("Input shape") == 1 and re.search(r"; and \d more$", done.err.strip())
    done = run("verify", adds, refused)
    assert done.code == 1 and "ONNX Runtime cannot load the expanded model" in done.err


def killed_python(folder: Path, unless: str) -> Path:
    """A folder for the path with a `python3` that a signal ends, as kernels of ONNX Runtime do that divide by a dim of 0."""
    folder.mkdir()
    (folder / "python3").write_text(f'#!/bin/sh\n{unless} && exec "{sys.executable}" "$@"\nkill -FPE $$\n')
    (folder / "python3").chmod(0o755)
    return folder


MODEL = "adds (float[batch, length] x) => (float[batch, length] y) { y = Add (x, x) }"
AGAIN = "ONNX Runtime was ended by signal 8; once more, with each input tried in a process of its own"


def test_inputs_are_tried_by_themselves_where_onnx_runtime_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = written(tmp_path / "m.onnx", MODEL)
    python = killed_python(tmp_path / "bin", unless='[ -n "$ASCEND_FUSE_ELSEWHERE_FIRST" ]')
    monkeypatch.setenv("PATH", f"{python}:{os.environ['PATH']}")
    done = run_ok("verify", model, model)
    assert AGAIN in done.err and "equal: " in done.out


def test_a_run_that_ends_twice_is_said_with_what_can_be_done(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = written(tmp_path / "m.onnx", MODEL)
    monkeypatch.setenv("PATH", f"{killed_python(tmp_path / 'bin', unless='false')}:{os.environ['PATH']}")
    done = run("verify", model, model)
    assert done.code == 1 and AGAIN in done.err
    assert "python3 was ended by signal 8, a fault of ONNX Runtime or of what else runs in it; --bindings gives other inputs" in done.err


def test_an_input_that_ends_its_process_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = written(tmp_path / "m.onnx", MODEL)
    feeds = {"x": np.ones((2, 3), np.float32)}
    session.run_elsewhere(model, feeds)
    monkeypatch.setattr(sys, "executable", str(killed_python(tmp_path / "bin", unless="false") / "python3"))
    with pytest.raises(session.EndedBySignal, match="signal 8"):
        session.run_elsewhere(model, feeds)


def test_elements_of_an_input_can_be_given(tmp_path: Path) -> None:
    """As Silero's detector has it: an input chooses the branch, and each branch takes one length."""
    model = written(tmp_path / "m.onnx", """
        detector (float[1, n] x, int64 rate, float[2] gain) => (float[a, b] y, float[2] g) <int64 expected = {16000}, int64[2] wide = {2, 256}, int64[2] slim = {2, 128}> {
          high = Equal (rate, expected)
          y = If (high) <then_branch = high () => (float[c, d] t) { t = Reshape (x, wide) },
                         else_branch = low () => (float[e, f] u) { u = Reshape (x, slim) }>
          g = Identity (gain)
        }""")
    assert "Input shape" in run("verify", model, model, "--bindings", '[{"n": 512}]').err
    said = run_ok("verify", model, model, "--bindings", '[{"n": 512, "rate": 16000, "gain": [0.5, 2]}]').out
    assert "float32[2, 256]" in said and "n=512,rate=16000,gain=[0.5, 2]" in said


@pytest.mark.parametrize("binding, sentence", [
    ('{"n": 4, "m": 3}', "the bindings have `m`, which is neither a dim nor an input of the model; dims: n; inputs: x, rate"),
    ('{"n": 4, "rate": 0.5}', "the bindings give 0.5 for `rate`, which is int64[]"),
    ('{"n": 4, "rate": [1, 2]}', "the bindings give [1, 2] for `rate`, which is int64[]"),
    ('{"n": 4, "x": "loud"}', 'the bindings give "loud" for `x`, which is float32[1, 4]'),
])
def test_bindings_that_cannot_be(tmp_path: Path, binding: str, sentence: str) -> None:
    model = written(tmp_path / "m.onnx", "m (float[1, n] x, int64 rate) => (float[1, n] y, int64 r) { y = Identity (x) r = Identity (rate) }")
    done = run("verify", model, model, "--bindings", f"[{binding}]")
    assert done.code == 1 and sentence in done.err


def test_small_results_of_a_sigmoid_are_as_exact_as_one_half(tmp_path: Path) -> None:
    """A detector that sees nothing says 1e-7: ONNX Runtime computes that from one half on, so the next float32 is another one by a half."""
    text = "detector (float[1, n] x) => (float[1, n] y) <float shift = {%s}> { low = Sub (x, shift) p = Sigmoid (low) y = Identity (p) }"
    model, other = written(tmp_path / "m.onnx", text % "18.0"), written(tmp_path / "o.onnx", text % "18.1")
    run_ok("verify", model, other, "--bindings", '[{"n": 64}]')
    far = written(tmp_path / "f.onnx", text % "12.0")
    assert run("verify", model, far, "--bindings", '[{"n": 64}]').code == 3
