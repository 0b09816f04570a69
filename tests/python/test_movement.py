"""What every operator that moves elements does to positions, as it is decoded, against ONNX Runtime on random nodes: with
numbers and with symbols as dims, and with known elements. What computes must not be taken for a movement."""

from __future__ import annotations

import json
import random
import re
import subprocess
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from check_inference import Bindings
from conftest import BUILD, ROOT
from onnx import TensorProto, helper, numpy_helper

TOOL = BUILD / "tests" / "infer_tool"
ROUNDS = 60
NOT_OF_INTEGERS = {"DepthToSpace", "SpaceToDepth"}  # in ONNX Runtime


@dataclass
class Case:
    """One node: `data` are the operands that move, `parameters` by input name are constants; the order is that of `inputs`."""

    op: str
    data: list[tuple[int, ...]]
    parameters: dict[str, np.ndarray] = field(default_factory=dict)
    attributes: dict[str, Any] = field(default_factory=dict)
    order: list[str] = field(default_factory=list)  # names of inputs: x0, x1 ... and those of parameters
    outputs: int = 1
    keep: tuple[int, ...] = ()  # axes of x0 whose dims must stay numbers
    opset: int = 18


Maker = Callable[[random.Random], Case]
MAKERS: dict[str, Maker] = {}


def maker(function: Maker) -> Maker:
    MAKERS[function.__name__] = function
    return function


def shape(rng: random.Random, low: int = 1, high: int = 4, most: int = 4) -> tuple[int, ...]:
    return tuple(rng.randint(1, most) for _ in range(rng.randint(low, high)))


def ints(*numbers: int) -> np.ndarray:
    return np.array(numbers, dtype=np.int64)


@maker
def Identity(rng: random.Random) -> Case:
    return Case("Identity", [shape(rng)])


@maker
def Reshape(rng: random.Random) -> Case:
    dims = shape(rng)
    count = int(np.prod(dims))
    choices = [(-1,), (count,), (1, -1), (0, -1), (*dims, 1), (dims[0], -1)]
    return Case("Reshape", [dims], {"shape": ints(*rng.choice(choices))})


@maker
def Flatten(rng: random.Random) -> Case:
    dims = shape(rng)
    return Case("Flatten", [dims], attributes={"axis": rng.randint(-len(dims), len(dims))})


@maker
def Squeeze(rng: random.Random) -> Case:
    dims = list(shape(rng, 2, 4))
    axis = rng.randrange(len(dims))
    dims[axis] = 1
    return Case("Squeeze", [tuple(dims)], {"axes": ints(rng.choice([axis, axis - len(dims)]))}, keep=(axis,))


@maker
def Unsqueeze(rng: random.Random) -> Case:
    dims = shape(rng, 1, 3)
    axes = rng.sample(range(len(dims) + 2), 2)
    return Case("Unsqueeze", [dims], {"axes": ints(*[axis - rng.choice([0, len(dims) + 2]) for axis in axes])})


@maker
def Transpose(rng: random.Random) -> Case:
    dims = shape(rng)
    perm = rng.sample(range(len(dims)), len(dims))
    return Case("Transpose", [dims], attributes=rng.choice([{}, {"perm": perm}]))


@maker
def DepthToSpace(rng: random.Random) -> Case:
    block = rng.randint(1, 3)
    dims = (rng.randint(1, 2), block * block * rng.randint(1, 2), rng.randint(1, 3), rng.randint(1, 3))
    return Case("DepthToSpace", [dims], attributes={"blocksize": block, **rng.choice([{}, {"mode": "DCR"}, {"mode": "CRD"}])},
                keep=(1,))


@maker
def SpaceToDepth(rng: random.Random) -> Case:
    block = rng.randint(1, 3)
    dims = (rng.randint(1, 2), rng.randint(1, 3), block * rng.randint(1, 3), block * rng.randint(1, 3))
    return Case("SpaceToDepth", [dims], attributes={"blocksize": block}, keep=(2, 3))


@maker
def Slice(rng: random.Random) -> Case:
    dims = shape(rng, most=6)
    axes = rng.sample(range(len(dims)), rng.randint(1, len(dims)))
    bounds = [-(2**63), -(2**31), -7, -3, -2, -1, 0, 1, 2, 3, 5, 2**31 - 1, 2**63 - 1]
    parameters = {"starts": ints(*[rng.choice(bounds) for _ in axes]), "ends": ints(*[rng.choice(bounds) for _ in axes]),
                  "axes": ints(*[axis - rng.choice([0, len(dims)]) for axis in axes])}
    if rng.random() < 0.5:
        parameters["steps"] = ints(*[rng.choice([1, 2, 3, -1, -2]) for _ in axes])
        # Backwards to the largest number: nothing by the definition and by numpy, everything in ONNX Runtime.
        backwards = (parameters["steps"] < 0) & (parameters["ends"] >= 2**31 - 1)
        parameters["ends"][backwards] = 1
    return Case("Slice", [dims], parameters)


@maker
def Split(rng: random.Random) -> Case:
    dims = list(shape(rng))
    axis = rng.randrange(len(dims))
    parts = [rng.randint(0, 3) for _ in range(rng.randint(1, 3))]
    dims[axis] = max(1, sum(parts))
    parts[-1] += dims[axis] - sum(parts)
    return Case("Split", [tuple(dims)], {"split": ints(*parts)}, {"axis": axis - rng.choice([0, len(dims)])}, outputs=len(parts))


@maker
def Gather(rng: random.Random) -> Case:
    dims = shape(rng, most=6)
    axis = rng.randrange(len(dims))
    size = dims[axis]
    some = [rng.randint(-size, size - 1) for _ in range(rng.randint(1, 4))]
    indices = rng.choice([np.array(some[0]), ints(*some), ints(*range(size)), ints(*range(size))[::-1], ints(*some).reshape(1, -1),
                          ints(*range(0, size, 2))])
    return Case("Gather", [dims], {"indices": np.ascontiguousarray(indices)}, {"axis": axis - rng.choice([0, len(dims)])})


@maker
def GatherElements(rng: random.Random) -> Case:
    dims = shape(rng)
    axis = rng.randrange(len(dims))
    of = tuple(rng.randint(1, dim) for dim in dims)
    indices = np.array([rng.randint(-dims[axis], dims[axis] - 1) for _ in range(int(np.prod(of)))], dtype=np.int64).reshape(of)
    return Case("GatherElements", [dims], {"indices": indices}, {"axis": axis}, keep=tuple(range(len(dims))))


@maker
def GatherND(rng: random.Random) -> Case:
    dims = shape(rng, 2, 4)
    batch = rng.randint(0, 1)
    width = rng.randint(1, len(dims) - batch)
    of = (*dims[:batch], rng.randint(1, 3))
    rows = [[rng.randint(-dims[batch + i], dims[batch + i] - 1) for i in range(width)] for _ in range(int(np.prod(of)))]
    if batch == 0 and width == 1 and rng.random() < 0.5:
        rows = [[i] for i in range(dims[0])]
        of = (dims[0],)
    indices = np.array(rows, dtype=np.int64).reshape(*of, width)
    return Case("GatherND", [dims], {"indices": indices}, {"batch_dims": batch}, keep=tuple(range(batch)))


@maker
def Concat(rng: random.Random) -> Case:
    dims = list(shape(rng))
    axis = rng.randrange(len(dims))
    data = [tuple(rng.randint(1, 3) if i == axis else dim for i, dim in enumerate(dims)) for _ in range(rng.randint(1, 3))]
    return Case("Concat", data, attributes={"axis": axis - rng.choice([0, len(dims)])}, order=[f"x{i}" for i in range(len(data))])


@maker
def Expand(rng: random.Random) -> Case:
    dims = tuple(rng.choice([1, 2, 3]) for _ in range(rng.randint(1, 3)))
    to = [dim if dim > 1 else rng.choice([1, 4]) for dim in dims]
    return Case("Expand", [dims], {"shape": ints(*[rng.randint(1, 2) for _ in range(rng.randint(0, 1))], *to)},
                keep=tuple(i for i, dim in enumerate(dims) if dim == 1))


@maker
def Tile(rng: random.Random) -> Case:
    dims = shape(rng, 1, 3)
    return Case("Tile", [dims], {"repeats": ints(*[rng.randint(1, 3) for _ in dims])})


@maker
def Pad(rng: random.Random) -> Case:
    dims = shape(rng, most=5)
    pads = [rng.choice([0, 0, 1, 2, -1]) for _ in range(2 * len(dims))]
    for i, dim in enumerate(dims):  # something is left
        if dim + pads[i] + pads[i + len(dims)] < 1 or dim + min(0, pads[i]) + min(0, pads[i + len(dims)]) < 1:
            pads[i] = pads[i + len(dims)] = 0
    parameters = {"pads": ints(*pads)}
    if rng.random() < 0.5:
        parameters["value"] = np.array(-7, dtype=np.float32)
    return Case("Pad", [dims], parameters)


@maker
def CenterCropPad(rng: random.Random) -> Case:
    dims = shape(rng, most=6)
    axes = rng.sample(range(len(dims)), rng.randint(1, len(dims)))
    return Case("CenterCropPad", [dims], {"shape": ints(*[rng.randint(1, 8) for _ in axes])}, {"axes": axes}, keep=tuple(axes))


@maker
def ScatterND(rng: random.Random) -> Case:
    dims = shape(rng, most=5)
    count = rng.randint(1, dims[0])
    start = rng.randint(0, dims[0] - count)
    rows = list(range(start, start + count))
    if rng.random() < 0.3:
        rows = rows[::-1]
    return Case("ScatterND", [dims, (count, *dims[1:])], {"indices": ints(*rows).reshape(-1, 1)}, order=["x0", "indices", "x1"],
                keep=(0,))


@maker
def ScatterElements(rng: random.Random) -> Case:
    size = rng.randint(2, 4)
    return Case("ScatterElements", [(size,), (1,)], {"indices": ints(rng.randrange(size))}, order=["x0", "indices", "x1"])


def build(case: Case, rng: random.Random, symbolic: bool, known: bool) -> tuple[onnx.ModelProto, dict[str, np.ndarray], Bindings]:
    """The model, what to feed it, and what its symbols are. `known`: the data are constants."""
    order = case.order or ["x0", *case.parameters]
    bound = Bindings()
    inputs, initializers, feeds, base = [], [], {}, 1
    for i, dims in enumerate(case.data):
        type_ = np.int64 if known and case.op not in NOT_OF_INTEGERS else np.float32
        array = np.arange(base, base + int(np.prod(dims)), dtype=type_).reshape(dims)
        base += array.size
        if known:
            initializers.append(numpy_helper.from_array(array, f"x{i}"))
            continue
        names: list[str | int] = list(dims)
        for axis, dim in enumerate(dims):
            if symbolic and axis not in case.keep and rng.random() < 0.7:
                # Equal sizes of Concat's and Scatter's operands have one name.
                name = f"d{axis}_{dim}" if len(case.data) > 1 else f"d{axis}"
                names[axis] = name
                bound.values[name] = dim
        inputs.append(helper.make_tensor_value_info(f"x{i}", TensorProto.FLOAT, names))
        feeds[f"x{i}"] = array
    for name, array in case.parameters.items():
        fill = array.astype(np.int64) if known and name == "value" else array
        initializers.append(numpy_helper.from_array(np.asarray(fill), name))
    if case.op == "Pad" and "value" in case.parameters:
        order = ["x0", "pads", "value"]
    if case.op == "Slice":
        order = ["x0", "starts", "ends", "axes", *(["steps"] if "steps" in case.parameters else [])]
    outputs = [f"y{i}" for i in range(case.outputs)]
    node = helper.make_node(case.op, order, outputs, **case.attributes)
    kind = TensorProto.INT64 if known and case.op not in NOT_OF_INTEGERS else TensorProto.FLOAT
    graph = helper.make_graph([node], "one_node", inputs, [helper.make_tensor_value_info(o, kind, None) for o in outputs],
                              initializers)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", case.opset)], ir_version=8)
    return model, feeds, bound


def decoded(model: onnx.ModelProto, folder: Path) -> dict[str, dict[str, Any]]:
    path = folder / "model.onnx"
    onnx.save(model, path)
    done = subprocess.run([str(TOOL), str(path), "--movements"], capture_output=True, text=True, check=True)
    return {fact["name"]: fact for fact in map(json.loads, done.stdout.splitlines())}


def run(model: onnx.ModelProto, feeds: dict[str, np.ndarray]) -> list[np.ndarray]:
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 4
    return onnxruntime.InferenceSession(model.SerializeToString(), options, ["CPUExecutionProvider"]).run(None, feeds)


class NotKnownError(Exception):
    """The movement leaves it open."""


def number(bound: Bindings, dim: int | str | None) -> int:
    value = bound.evaluate(dim) if dim is not None else None
    if value is None:
        raise NotKnownError
    return value


def moved(movement: dict[str, Any], operands: list[np.ndarray], dims: tuple[int, ...], bound: Bindings) -> np.ndarray:
    """The result that the movement describes."""
    if movement["kind"] == "keeps_order":
        return operands[movement["parts"][0]["operand"]].reshape(dims)
    places = tuple(number(bound, d) for d in movement["places"]) or dims
    result = np.full(places, np.nan)
    if movement["kind"] == "pads":
        at = movement["fill_operand"]
        result[...] = operands[at] if at else movement["fill"]
    for part in movement["parts"]:
        if not part["known"]:
            raise NotKnownError
        operand = operands[part["operand"]]
        view = operand.reshape([number(bound, d) for d in part["view"]]) if part["view"] else operand
        windows = {w[0]: (number(bound, w[1]), number(bound, w[2]), w[3]) for w in part["windows"]}
        counts = [windows[axis][1] if axis in windows else dim for axis, dim in enumerate(places)]
        for place in np.ndindex(*counts):
            to = tuple(windows[a][0] + windows[a][2] * p if a in windows else p for a, p in enumerate(place))
            if all(0 <= t < dim for t, dim in zip(to, places, strict=True)):
                result[to] = view[source(part, place, view.shape, operands, bound)]
    return result.reshape(dims)


def source(part: dict[str, Any], place: tuple[int, ...], dims: tuple[int, ...], operands: list[np.ndarray],
           bound: Bindings) -> tuple[int, ...]:
    at = []
    for (kind, axis, step, start, operand, component), extent in zip(part["axes"], dims, strict=True):
        if kind == "place":
            if step == 0:
                raise NotKnownError
            at.append(number(bound, start) + step * place[axis])
        elif kind == "fixed":
            at.append(number(bound, start))
        elif kind == "broadcast":
            at.append(0 if extent == 1 else place[axis])
        elif kind == "wrapped":
            at.append(place[axis] % extent)
        else:
            table = operands[operand]
            read = table.ndim - (component >= 0)
            index = int(table[(*place[axis : axis + read], *([component] if component >= 0 else []))])
            at.append(index + extent if index < 0 else index)
        assert 0 <= at[-1] < extent, f"beyond the operand: {kind} gives {at[-1]} of {extent}"
    return tuple(at)


def compare(case: Case, rng: random.Random, symbolic: bool, known: bool, folder: Path) -> int:
    """How many outputs were described."""
    model, feeds, bound = build(case, rng, symbolic, known)
    results = run(model, feeds)
    facts = decoded(model, folder)
    values = {i.name: numpy_helper.to_array(i) for i in model.graph.initializer} | feeds
    operands = [values[name] for name in model.graph.node[0].input]
    described = 0
    for i, result in enumerate(results):
        fact = facts[f"y{i}"]
        assert [bound.evaluate(d) for d in fact["shape"]] in (list(result.shape), [*result.shape]) or symbolic, case
        movement = fact.get("movement")
        assert movement is not None, f"{case.op} is no movement: {case}"
        if known and result.size <= 1024 and result.size:
            assert fact.get("elements") == result.flatten().tolist() or case.op == "ScatterElements", f"{case}: {fact}"
        try:
            np.testing.assert_array_equal(moved(movement, operands, result.shape, bound), result, err_msg=str(case))
        except NotKnownError:
            continue
        described += 1
    return described


@pytest.mark.parametrize("op", sorted(MAKERS))
def test_positions_are_those_of_onnx_runtime(op: str, tmp_path: Path) -> None:
    rng = random.Random(op)
    described = {"numbers": 0, "symbols": 0, "elements": 0}
    for round_ in range(ROUNDS):
        way = list(described)[round_ % 3]
        case = MAKERS[op](rng)
        described[way] += compare(case, rng, way == "symbols", way == "elements", tmp_path) > 0
    rounds = ROUNDS // 3
    if op == "ScatterElements":  # which rows are written is not said
        assert described["numbers"] == 0
    else:
        assert described["numbers"] == rounds and described["elements"] == rounds, described
        assert described["symbols"] >= (rounds // 3 if op == "Slice" else rounds * 2 // 3), described


def test_every_operator_that_moves_has_a_case() -> None:
    table = (ROOT / "ir" / "infer" / "moves.cc").read_text().split("constexpr Entry kOps[] = {")[1]
    operators = set(re.findall(r'\{"", "(\w+)", \w+\}', table))
    # Scatter is ScatterElements by an older name, and TensorScatter is too new for the ONNX Runtime of the tests.
    assert operators - {"Scatter", "TensorScatter"} == set(MAKERS)


NOT_MOVED = [
    ("Relu", [], {}),
    ("Neg", [], {}),
    ("Cast", [], {"to": TensorProto.DOUBLE}),
    ("Softmax", [], {}),
    ("ReduceSum", [], {}),
    ("Shape", [], {}),
    ("CumSum", [("axis", np.array(0, dtype=np.int64))], {}),
    ("Trilu", [], {}),
    ("ScatterND", [("indices", ints(1).reshape(1, 1)), ("updates", np.ones((1, 3), np.float32))], {"reduction": "add"}),
]


@pytest.mark.parametrize(("op", "constants", "attributes"), NOT_MOVED, ids=[case[0] for case in NOT_MOVED])
def test_what_computes_moves_nothing(op: str, constants: list[tuple[str, np.ndarray]], attributes: dict[str, Any],
                                     tmp_path: Path) -> None:
    node = helper.make_node(op, ["x", *[name for name, _ in constants]], ["y"], **attributes)
    graph = helper.make_graph([node], "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, [2, 3])],
                              [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
                              [numpy_helper.from_array(array, name) for name, array in constants])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)
    assert "movement" not in decoded(model, tmp_path)["y"]


def unknown(node: onnx.NodeProto, tmp_path: Path, *inputs: tuple[str, int, Any]) -> dict[str, Any]:
    graph = helper.make_graph([node], "g", [helper.make_tensor_value_info(*i) for i in inputs],
                              [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)
    return decoded(model, tmp_path)["y"]["movement"]


def test_what_only_a_run_knows_is_not_said(tmp_path: Path) -> None:
    x = ("x", TensorProto.FLOAT, ["A", 8])
    one = [1]
    sliced = unknown(helper.make_node("Slice", ["x", "s", "e"], ["y"]), tmp_path, x, ("s", TensorProto.INT64, one),
                     ("e", TensorProto.INT64, one))
    assert sliced["parts"][0]["axes"][0] == ["place", 0, 1, None, 0, -1], "where it starts is not known"
    assert sliced["parts"][0]["axes"][1] == ["place", 1, 1, 0, 0, -1], "the other axis is whole"
    along = unknown(helper.make_node("Slice", ["x", "s", "e", "a"], ["y"]), tmp_path, x, ("s", TensorProto.INT64, one),
                    ("e", TensorProto.INT64, one), ("a", TensorProto.INT64, one))
    assert not along["parts"][0]["known"], "an axis that a run chooses"
    gathered = unknown(helper.make_node("Gather", ["x", "i"], ["y"], axis=1), tmp_path, x, ("i", TensorProto.INT64, ["N"]))
    assert gathered["parts"][0]["axes"][1] == ["read", 1, 1, None, 1, -1], "what is read, and where"
    reflected = unknown(helper.make_node("Pad", ["x", "p"], ["y"], mode="reflect"), tmp_path, x, ("p", TensorProto.INT64, [4]))
    assert reflected["kind"] == "picks" and not reflected["parts"][0]["known"]
    written = unknown(helper.make_node("ScatterND", ["x", "i", "u"], ["y"]), tmp_path, x, ("i", TensorProto.INT64, [2, 1]),
                      ("u", TensorProto.FLOAT, [2, 8]))
    assert written["parts"][0]["known"] and not written["parts"][1]["known"]
