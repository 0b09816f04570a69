"""Gate and up projections merged into one: what is written, where it is written, and what it costs.

A merged weight is never in memory: it is a list of ranges of the input's files, streamed when the model is saved.
"""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import numpy as np
import onnx
import pytest
from ascend_fuse.session import plain_session
from conftest import BUILD, run_ok
from onnx import TensorProto, helper, numpy_helper
from onnx.external_data_helper import load_external_data_for_model

ROOT, CUBE = 0.7978845608028654, 0.044715


def constants(dtype: np.dtype) -> list[onnx.TensorProto]:
    numbers = {"half": 0.5, "one": 1.0, "three": 3.0, "cube": CUBE, "root": ROOT}
    return [numpy_helper.from_array(np.array(number, dtype), name) for name, number in numbers.items()]


def gated(form: str, dtype: str, k: int, n: int, silu: bool = False) -> tuple[onnx.ModelProto, dict[str, np.ndarray]]:
    """Returns act(x Wg + bg) * (x Wu + bu), written in one of the forms of exporters, and its weights."""
    random = np.random.default_rng(0)
    kind = np.dtype(dtype)
    shape = (k, n) if form in ("matmul", "bias") else (n, k)
    weights = {name: (random.standard_normal(shape) / k**0.5).astype(kind) for name in ("wg", "wu")}
    if form in ("bias", "gemm"):
        weights |= {name: random.standard_normal(n).astype(kind) for name in ("bg", "bu")}
    nodes = []
    for side in "gu":
        weight = f"w{side}"
        if form == "gemm":
            nodes.append(helper.make_node("Gemm", ["x", weight, f"b{side}"], [side], transB=1))
            continue
        if form == "transpose":
            nodes.append(helper.make_node("Transpose", [weight], [f"t{side}"], perm=[1, 0]))
            weight = f"t{side}"
        nodes.append(helper.make_node("MatMul", ["x", weight], [f"m{side}" if form == "bias" else side]))
        if form == "bias":
            nodes.append(helper.make_node("Add", [f"m{side}", f"b{side}"], [side]))
    if silu:
        nodes += [helper.make_node("Sigmoid", ["g"], ["s"]), helper.make_node("Mul", ["g", "s"], ["act"])]
    else:
        nodes += [
            helper.make_node("Pow", ["g", "three"], ["g3"]),
            helper.make_node("Mul", ["g3", "cube"], ["c"]),
            helper.make_node("Add", ["g", "c"], ["i"]),
            helper.make_node("Mul", ["i", "root"], ["r"]),
            helper.make_node("Tanh", ["r"], ["t"]),
            helper.make_node("Add", ["t", "one"], ["p"]),
            helper.make_node("Mul", ["g", "p"], ["q"]),
            helper.make_node("Mul", ["q", "half"], ["act"]),
        ]
    nodes.append(helper.make_node("Mul", ["act", "u"], ["y"]))
    element = helper.np_dtype_to_tensor_dtype(kind)
    dims = ["rows"] if form == "gemm" else ["batch", "rows"]
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info("x", element, [*dims, k])],
        [helper.make_tensor_value_info("y", element, [*dims, n])],
        [numpy_helper.from_array(array, name) for name, array in weights.items()] + ([] if silu else constants(kind)),
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), weights


def outputs(path: Path, x: np.ndarray) -> np.ndarray:
    return plain_session(path, threads=1).run(None, {"x": x})[0]


def merged_of(model: onnx.ModelProto) -> dict[int, np.ndarray]:
    """Returns the merged weight and bias by their number of dims."""
    merged = [t for t in model.graph.initializer if "merged" in t.name]
    assert not {t.name for t in model.graph.initializer} & {"wg", "wu", "bg", "bu"}
    return {len(t.dims): numpy_helper.to_array(t) for t in merged}


@pytest.mark.parametrize("form", ["matmul", "bias", "gemm", "transpose"])
@pytest.mark.parametrize("dtype", ["float32", "float16"])
@pytest.mark.parametrize("silu", [False, True], ids=["geglu", "swiglu"])
def test_the_merged_weight_is_the_two_in_the_order_of_the_kernel(
    tmp_path: Path, form: str, dtype: str, silu: bool
) -> None:
    model, weights = gated(form, dtype, k=96, n=130, silu=silu)
    source, output, expanded = (tmp_path / f"{name}.onnx" for name in ("source", "output", "expanded"))
    onnx.save(model, source)
    report = json.loads(run_ok("optimize", source, "-o", output, "--plugin", "--json", "-", "--quiet").out)
    [site] = report["sites"]
    assert (site["kind"], site["state"], site["emitted_op"]) == ("glu", "fused", "npu.NPUSwiGlu" if silu else "npu.NPUGeglu")
    optimized = onnx.load(output)
    ops = [node.op_type for node in optimized.graph.node]
    assert ops.count("MatMul") + ops.count("Gemm") == 1
    # SwiGlu activates the first half, Geglu the second.
    first, second = ("g", "u") if silu else ("u", "g")
    merged = merged_of(optimized)
    axis = 0 if form in ("gemm", "transpose") else 1
    assert np.array_equal(merged[2], np.concatenate([weights[f"w{first}"], weights[f"w{second}"]], axis))
    if "bg" in weights:
        assert np.array_equal(merged[1], np.concatenate([weights[f"b{first}"], weights[f"b{second}"]]))
    # The old weights are gone: the file does not grow.
    assert output.stat().st_size < source.stat().st_size + 200
    run_ok("expand", output, "-o", expanded, "--quiet")
    onnx.checker.check_model(str(expanded), full_check=True)
    shape = (5, 96) if form == "gemm" else (2, 5, 96)
    x = np.random.default_rng(1).standard_normal(shape).astype(dtype)
    a, b = outputs(source, x).astype(np.float64), outputs(expanded, x).astype(np.float64)
    assert np.abs(a - b).max() <= (1e-2 if dtype == "float16" else 1e-5) * max(1, np.abs(a).max())
    again = tmp_path / "again.onnx"
    run_ok("optimize", output, "-o", again, "--plugin", "--quiet")
    assert again.read_bytes() == output.read_bytes()


def test_external_weights_are_merged_into_a_file_beside_the_output(tmp_path: Path) -> None:
    model, weights = gated("matmul", "float32", k=96, n=130)
    x = np.random.default_rng(1).standard_normal((2, 5, 96)).astype(np.float32)
    source, output, expanded = (tmp_path / f"{name}.onnx" for name in ("source", "output", "expanded"))
    onnx.save(model, source, save_as_external_data=True, location="source.data", size_threshold=1024)
    before = (tmp_path / "source.data").read_bytes()
    expected = outputs(source, x)
    run_ok("optimize", source, "-o", output, "--quiet")
    data = tmp_path / "output.onnx.merged.data"
    assert data.stat().st_size == 2 * weights["wg"].nbytes
    assert (tmp_path / "source.data").read_bytes() == before
    assert output.stat().st_size < 4096
    optimized = onnx.load(output, load_external_data=False)
    load_external_data_for_model(optimized, str(tmp_path))
    assert np.array_equal(merged_of(optimized)[2], np.concatenate([weights["wu"], weights["wg"]], 1))
    run_ok("expand", output, "-o", expanded, "--quiet")
    assert np.abs(outputs(expanded, x) - expected).max() <= 1e-5
    # Once more, and onto itself: nothing to merge, nothing changed.
    bytes_before = output.read_bytes(), data.read_bytes()
    run_ok("optimize", output, "-o", output, "--quiet")
    assert (output.read_bytes(), data.read_bytes()) == bytes_before
    assert sorted(p.name for p in tmp_path.iterdir()) == [
        "expanded.onnx", "output.onnx", "output.onnx.merged.data", "source.data", "source.onnx",
    ]  # fmt: skip


def test_the_output_may_take_the_place_of_the_input(tmp_path: Path) -> None:
    model, weights = gated("matmul", "float32", k=96, n=130)
    path = tmp_path / "model.onnx"
    onnx.save(model, path)
    run_ok("optimize", path, "-o", path, "--quiet")
    assert np.array_equal(merged_of(onnx.load(path))[2], np.concatenate([weights["wu"], weights["wg"]], 1))


def test_list_changes_nothing_and_leaves_no_merged_weight(tmp_path: Path) -> None:
    model, _ = gated("matmul", "float32", k=96, n=130)
    path = tmp_path / "model.onnx"
    onnx.save(model, path)
    before = path.read_bytes()
    report = json.loads(run_ok("list", path, "--json", "-").out)
    assert report["summary"]["sites"]["glu"]["fused"] == 1
    assert path.read_bytes() == before and [p.name for p in tmp_path.iterdir()] == ["model.onnx"]


def test_large_weights_are_streamed(tmp_path: Path) -> None:
    """Two weights of 32 MB are merged in a process that never holds one of them."""
    model, _ = gated("matmul", "float32", k=2048, n=4096)
    source, output = tmp_path / "source.onnx", tmp_path / "output.onnx"
    onnx.save(model, source)
    measured = "import resource, subprocess, sys; subprocess.run(sys.argv[1:], check=True); " \
               "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)"
    command = ["python3", "-c", measured, str(BUILD / "ascend-fuse"), "optimize", str(source), "-o", str(output), "--quiet"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    peak = int(done.stdout.split()[-1]) * 1024
    assert peak < 32 << 20, peak
    assert onnx.load(output, load_external_data=False).graph.initializer
