"""Values for the inputs of a graph, by what they mean, and the bindings of its dims."""

from __future__ import annotations

import zlib
from typing import Any

import numpy as np
import onnx

from fuzz.graph import ARRAYS, FLOATS, Graph
from fuzz.plan import Plan


def bindings(g: Graph, plan: Plan) -> dict[str, dict[str, int]]:
    """Sizes of all dims: as the plan has them, others for dims that are dynamic, and one of them 0."""
    first = {key: dim.size for key, dim in g.dims.items()}
    result = {"first": first}
    second = {key: plan["second"][key] if dim.dynamic else dim.size for key, dim in g.dims.items()}
    if second != first:
        result["second"] = second
    edge = plan["edge"]
    if edge != "none" and g.dims[edge].dynamic:
        result["edge"] = {**second, edge: 0}
    return result


def whole_attentions(plan: Plan) -> bool:
    """Whether the graph holds an attention that is one operator."""
    return any(layer["spelling"] != "spelled" for layer in plan["layers"] if layer["body"] == "attention")


def evaluate(dim: Any, sizes: dict[str, int]) -> int:
    """The number that a dim of a shape is."""
    if isinstance(dim, int):
        return dim
    product = 1
    for factor in str(dim).split("*"):
        product *= sum(int(term) if term.isdigit() else sizes[term] for term in factor.split("+"))
    return product


def widened(value: Any) -> Any:
    """An input of the graph in float64."""
    return value.astype(np.float64) if value.dtype.kind in "fV" else value


def make(g: Graph, plan: Plan, sizes: dict[str, int]) -> dict[str, Any]:
    """Values for all inputs, seeded by their names."""
    feeds = {}
    for one in g.inputs:
        rng = np.random.default_rng([plan["seed"], zlib.crc32(one.name.encode()), *sizes.values()])
        shape = tuple(evaluate(d, sizes) for d in one.shape)
        feeds[one.name] = _values(g, plan, one, shape, rng, sizes)
    return feeds


def _values(g: Graph, plan: Plan, one: Any, shape: tuple[int, ...], rng: np.random.Generator, sizes: dict[str, int]) -> Any:
    array = ARRAYS[one.dtype]
    if one.meaning == "weight":
        return g.fixed_values[one.name]
    if one.meaning == "ids":
        return rng.integers(0, 16, shape).astype(array)
    if one.meaning == "positions":
        start = sizes["p"] if any(i.meaning == "past" for i in g.inputs) else 0
        return np.broadcast_to(np.arange(shape[1]) + start, shape).astype(array)
    if one.meaning == "keep":
        return _keep(plan, shape, rng).astype(array)
    if one.meaning == "additive":
        keep = _keep(plan, shape, rng)
        fill = {"float16": -65504.0}.get(one.dtype, -1e9) if plan["seed"] % 2 else -1e4
        return np.where(keep, 0.0, fill).astype(array)
    scale = 0.5 if one.meaning in ("bias", "past") else 1.0
    return (rng.standard_normal(shape) * scale).astype(array)


def padding(plan: Plan) -> str:
    """The padding of masks: rows of nothing only where the reference knows which they are."""
    return "right" if whole_attentions(plan) and plan["padding"] in ("left", "empty", "random") else plan["padding"]


def _keep(plan: Plan, shape: tuple[int, ...], rng: np.random.Generator) -> Any:
    how = padding(plan)
    if not np.prod(shape):
        return np.zeros(shape, bool)
    width = shape[-1]
    if len(shape) == 4 and shape[2] > 1:
        keep = rng.random(shape) < 0.7
        keep[..., 0] = True
        return keep
    rows = int(np.prod(shape[:-1]))
    keep = np.ones((rows, width), bool)
    for row in range(rows):
        count = int(rng.integers(0, width)) if rows == 1 or row else 0
        if how == "left":
            keep[row, :count] = False
        elif how == "right":
            keep[row, width - count :] = False
        elif how == "random":
            keep[row] = rng.random(width) < 0.7
            keep[row, 0] = True
        elif how == "empty" and row == rows - 1:
            keep[row] = False
    return keep.reshape(shape)


def declare(g: Graph, plan: Plan) -> onnx.ModelProto:
    """The model; its outputs with the shapes that ONNX infers, where the plan says so."""
    model = g.model()
    if plan["declare"] == "types":
        return model
    try:
        inferred = onnx.shape_inference.infer_shapes(model, data_prop=True)
    except Exception:
        return model
    for output, found in zip(model.graph.output, inferred.graph.output):
        if found.type.tensor_type.HasField("shape") and found.type.tensor_type.elem_type == output.type.tensor_type.elem_type:
            output.type.CopyFrom(found.type)
    return model


def is_float(dtype: str) -> bool:
    return dtype in FLOATS
