"""The checks of written models find what is wrong, each with the nearest graph that is right."""

from __future__ import annotations

import onnx
import pytest
from onnx import TensorProto, helper

from model_checks import check_expanded, check_written, order_problems


def model(nodes: list[tuple[str, list[str], str]], dims: int = 2, output: str = "y") -> onnx.ModelProto:
    values = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [dims]) for name in ("x", output)]
    made = [helper.make_node(op, reads, [name], name=f"n_{i}") for i, (op, reads, name) in enumerate(nodes)]
    graph = helper.make_graph(made, "g", [values[0]], [values[1]])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


GOOD = model([("Abs", ["x"], "a"), ("Neg", ["a"], "y")])


def test_a_good_model_passes() -> None:
    check_expanded(GOOD, GOOD)


@pytest.mark.parametrize(("nodes", "sentence"), [
    ([("Neg", ["a"], "y"), ("Abs", ["x"], "a")], "node 'n_0' (Neg) reads 'a' before it is defined"),
    ([("Add", ["x", "y"], "a"), ("Neg", ["a"], "y")], "node 'n_0' (Add) reads 'y' before it is defined"),
    ([("Abs", ["x"], "y"), ("Neg", ["x"], "y")], "node 'n_1' (Neg) defines 'y' again"),
    ([("Abs", ["x"], "x")], "node 'n_0' (Abs) defines 'x' again"),
    ([("Abs", ["x"], "a")], "nothing defines the output 'y'"),
], ids=["order", "cycle", "twice", "input", "output"])
def test_what_is_out_of_order_is_named(nodes: list[tuple[str, list[str], str]], sentence: str) -> None:
    assert any(sentence in problem for problem in order_problems(model(nodes)))


def test_a_body_reads_what_is_outside_and_before_it() -> None:
    def with_branch(reads: str) -> onnx.ModelProto:
        branch = helper.make_graph([helper.make_node("Neg", [reads], ["b"])], "then", [],
                                   [helper.make_tensor_value_info("b", TensorProto.FLOAT, [2])])
        result = model([("Abs", ["x"], "a"), ("Abs", ["a"], "c"), ("Abs", ["c"], "late")], output="late")
        result.graph.node.insert(2, helper.make_node("If", ["x"], ["y"], then_branch=branch, else_branch=branch))
        return result

    assert not order_problems(with_branch("a"))
    assert any("reads 'late' before it is defined" in problem for problem in order_problems(with_branch("late")))


@pytest.mark.parametrize("other", [model([("Abs", ["x"], "y")], dims=3), model([("Abs", ["x"], "z")], output="z")],
                         ids=["shape", "name"])
def test_a_changed_signature_is_told(other: onnx.ModelProto) -> None:
    with pytest.raises(AssertionError, match="the graph"):
        check_written(GOOD, other)


def test_nodes_of_one_name_are_told_unless_they_were_so() -> None:
    twice = onnx.ModelProto()
    twice.CopyFrom(GOOD)
    twice.graph.node[1].name = twice.graph.node[0].name
    check_written(twice, twice)
    with pytest.raises(AssertionError, match="several nodes are called 'n_0'"):
        check_written(GOOD, twice)


def test_the_checker_of_onnx_is_asked() -> None:
    unknown = model([("Abs", ["x"], "a"), ("NoSuchOperator", ["a"], "y")])
    with pytest.raises(onnx.checker.ValidationError):
        check_expanded(GOOD, unknown)
    check_expanded(unknown, unknown)  # the original was no better
