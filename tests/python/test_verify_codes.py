"""`verify` of models that round activations to codes: a result that is one code away is told as that, with a bound that fits."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from ascend_fuse.codes import Codes, say_if_codes
from ascend_fuse.comparison import Comparison, RegionComparison, Result
from ascend_fuse.verification import verify_models


def rounded(path: Path, shift: float, factor: float = 1.0, scale: float = 0.02, computed: bool = True) -> Path:
    """y = (x + shift) * factor in codes of int8, or in none."""
    constants = {"shift": np.float32(shift), "factor": np.float32(factor), "scale": np.float32(scale), "zero": np.int8(0)}
    nodes = [helper.make_node("Add", ["x", "shift"], ["moved"]), helper.make_node("Mul", ["moved", "factor"], ["scaled"])]
    codes = [helper.make_node("QuantizeLinear", ["scaled", "scale", "zero"], ["codes"], name="to_codes"),
             helper.make_node("DequantizeLinear", ["codes", "scale", "zero"], ["y"])]
    nodes += codes if computed else [helper.make_node("Identity", ["scaled"], ["y"])]
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [4, 64])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, [4, 64])
    graph = helper.make_graph(nodes, "rounded", [x], [y], [numpy_helper.from_array(np.asarray(v), k) for k, v in constants.items()])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    return path


def test_one_code_away_is_told_with_a_bound_that_fits(tmp_path: Path) -> None:
    original, other = rounded(tmp_path / "a.onnx", 0), rounded(tmp_path / "b.onnx", 1e-3)
    result = verify_models(original, other, regions=False)
    assert not result.ok
    [note] = [note for note in result.notes if "codes" in note]
    assert note.startswith("the original rounds activations to codes (QuantizeLinear at to_codes, 1 in all): ")
    assert note.endswith("--tolerance 0.01 is a fair bound for such models")
    assert verify_models(original, other, regions=False, tolerance=1e-2).ok


@pytest.mark.parametrize("a, b", [
    ({"shift": 0}, {"shift": 0.1}),  # many codes away
    ({"shift": 0, "computed": False}, {"shift": 1e-2, "computed": False}),  # no codes at all
    ({"shift": 0}, {"shift": 0}),  # equal
])
def test_no_word_of_codes_elsewhere(tmp_path: Path, a: dict, b: dict) -> None:
    result = verify_models(rounded(tmp_path / "a.onnx", **a), rounded(tmp_path / "b.onnx", **b), regions=False)
    assert not any("codes" in note for note in result.notes)
    assert result.ok == (a == b)


def of_region(output: str, max_abs: float, max_rel: float) -> RegionComparison:
    return RegionComparison("b2", output, max_abs=max_abs, max_rel=max_rel, compared=256)


def biased(path: Path) -> onnx.ModelProto:
    """z = reshape(y + bias), y in codes of 0.02."""
    model = onnx.load(rounded(path, 0))
    model.graph.initializer.extend([numpy_helper.from_array(np.full(64, 0.5, np.float32), "bias"), numpy_helper.from_array(np.array([256]), "flat")])
    model.graph.node.extend([helper.make_node("Add", ["y", "bias"], ["sum"]), helper.make_node("Reshape", ["sum", "flat"], ["z"]),
                             helper.make_node("Mul", ["z", "z"], ["square"])])
    return model


def test_a_place_that_is_one_code_away(tmp_path: Path) -> None:
    """A sum of codes that are few on the inputs of a run: one code is a fifth of the largest value."""
    model = biased(tmp_path / "a.onnx")
    assert Codes(model).one_code("z") == pytest.approx(0.02) and Codes(model).one_code("square") is None and Codes(model).one_code("x") is None
    result = Result("a", "b", 1e-4, regions=[of_region("y", 2e-3, 8e-3), of_region("z", 0.02 + 1e-6, 0.19)])
    say_if_codes(model, result)
    [note] = result.notes
    assert "No place differs by more than one code, which is up to 0.19 of the largest value (at z: " in note
    assert "--tolerance 0.01 --no-regions compares the outputs alone" in note


@pytest.mark.parametrize("far", [of_region("z", 0.04, 0.19), of_region("square", 0.02, 0.19), of_region("y", 0.02, 0.19)])
def test_more_than_one_code_is_not_told_as_one(tmp_path: Path, far: RegionComparison) -> None:
    result = Result("a", "b", 1e-4, regions=[far])
    say_if_codes(biased(tmp_path / "a.onnx"), result)
    assert bool(result.notes) == (far.output == "y")


def test_an_output_that_is_far_away_is_not_told_as_one_code(tmp_path: Path) -> None:
    result = Result("a", "b", 1e-4, comparisons=[Comparison("b2", "z", max_abs=0.02, max_rel=0.19, compared=256)])
    say_if_codes(biased(tmp_path / "a.onnx"), result)
    assert not result.notes
