"""`reduce`: the smallest part of a model that still shows a fault."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from pathlib import Path

import onnx
import pytest
from ascend_fuse.reduce import Reducer, reduce, smallest
from conftest import TOOL
from onnx import TensorProto, helper

MODEL = "llama-sdpa-past-ts17-dynamic"


# What the command runs in: the Python that has onnx.
ENVIRONMENT = dict(os.environ, PATH=f"{Path(sys.executable).parent}:{os.environ['PATH']}")


def operators(model: onnx.ModelProto) -> list[str]:
    return [node.op_type for node in model.graph.node]


@pytest.mark.parametrize("seed", range(20))
def test_nothing_more_can_go(seed: int) -> None:
    """Whatever a fault needs, that is what is left."""
    generator = random.Random(seed)
    needed = set(generator.sample(range(100), generator.randint(1, 6)))
    assert smallest(100, lambda kept: needed <= set(kept)) == sorted(needed)


def test_a_part_runs_by_itself() -> None:
    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, [2, 3]) for name in "xy")
    nodes = [helper.make_node(op, [a], [b]) for op, a, b in (("Abs", "x", "a"), ("Neg", "a", "b"), ("Exp", "b", "y"))]
    model = helper.make_model(helper.make_graph(nodes, "g", [x], [y]), opset_imports=[helper.make_opsetid("", 17)])
    part = Reducer(model).part([1])
    onnx.checker.check_model(part, full_check=True)
    assert [v.name for v in part.graph.input] == ["a"] and [v.name for v in part.graph.output] == ["b"]
    # What lies between two parts is an output of one and an input of the other.
    part = Reducer(model).part([0, 2])
    assert [v.name for v in part.graph.input] == ["x", "b"] and [v.name for v in part.graph.output] == ["a", "y"]
    assert reduce(model, lambda m: "Neg" in operators(m)).graph.node == [nodes[1]]
    assert reduce(model, lambda m: "Tan" in operators(m)) is None


def test_the_norm_of_a_decoder(tmp_path: Path, zoo: Path) -> None:
    """A whole export is reduced to the nodes of one norm: what the command finds is still found in them."""
    source, small = zoo / f"{MODEL}.onnx", tmp_path / "small.onnx"
    check = f"{TOOL} optimize {{}} -o {tmp_path}/o.onnx --require rms_norm --quiet"
    command = [TOOL, "reduce", source, "--check", check, "-o", small]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=ENVIRONMENT)
    assert done.returncode == 0, done.stderr
    left = onnx.load(str(small))
    assert {"Pow", "ReduceMean", "Sqrt"} <= set(operators(left)) and len(left.graph.node) <= 12
    assert str(len(left.graph.node)) in done.stdout


def test_a_command_that_finds_no_fault(tmp_path: Path, zoo: Path) -> None:
    source, small = zoo / f"{MODEL}.onnx", tmp_path / "small.onnx"
    for check, code, sentence in (("false", 3, "does not end with 0"), ("/no/such/command", 1, "cannot be run")):
        command = [TOOL, "reduce", source, "--check", check, "-o", small]
        done = subprocess.run(command, capture_output=True, text=True, check=False, env=ENVIRONMENT)
        assert done.returncode == code and sentence in done.stderr and not small.exists()
