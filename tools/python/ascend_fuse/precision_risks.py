"""Constructs that half precision can break, found in the graph and its constants, without a run."""

from __future__ import annotations

from typing import Callable, Iterator, Tuple

import numpy as np
from onnx import numpy_helper

from ascend_fuse.half_numbers import FLOAT16
from ascend_fuse.precision_model import PrecisionModel, Unit
from ascend_fuse.precision_records import Risk

_SMALL = 1024
_PASSES_ON = frozenset("Cast Identity Reshape Transpose Unsqueeze Squeeze Expand Flatten".split())
_MEANS = frozenset("ReduceMean ReduceSum GlobalAveragePool".split())
_LONG_SUM = 1024
_DIVIDES = frozenset("Sqrt Rsqrt Div Log Reciprocal".split())

Found = Iterator[Tuple[str, str, Unit, str, str]]  # construct, severity, unit, because, way out


class _Graph:
    """Questions about what computes a value."""

    def __init__(self, model: PrecisionModel) -> None:
        self.model = model

    def producer(self, name: str) -> Unit | None:
        """What computes a value, looking through nodes that only move it."""
        unit = self.model.producers.get(name)
        while unit is not None and unit.op in _PASSES_ON:
            unit = self.model.producers.get(unit.inputs[0])
        return unit

    def readers(self, unit: Unit) -> list[Unit]:
        """What reads the results of a unit, looking through nodes that only move them."""
        found, waiting = [], list(unit.outputs)
        while waiting:
            for reader in self.model.readers.get(waiting.pop(), ()):
                if reader.op in _PASSES_ON:
                    waiting += reader.outputs
                else:
                    found.append(reader)
        return found

    def array(self, name: str) -> np.ndarray | None:
        """The elements of a small constant, or of one that ConstantOfShape fills."""
        unit = self.producer(name)
        if unit is not None and unit.op == "ConstantOfShape":
            return next((numpy_helper.to_array(a.t) for a in unit.node.attribute if a.name == "value"), np.zeros(1, np.float32))
        if name not in self.model.constants or not 0 < np.prod(self.model.constants.shape(name)) <= _SMALL:
            return None
        return self.model.constants.array(name)

    def number(self, name: str) -> float | None:
        """The one number that a small constant holds everywhere."""
        array = self.array(name)
        if array is None or array.dtype.kind not in "fiu":
            return None
        numbers = np.unique(array)
        return float(numbers[0]) if numbers.size == 1 else None

    def is_square(self, unit: Unit | None) -> bool:
        if unit is None:
            return False
        return unit.op == "Mul" and len(set(unit.inputs)) == 1 or (unit.op == "Pow" and self.number(unit.inputs[1]) == 2)


def _square_sums(graph: _Graph, unit: Unit) -> Found:
    of = graph.producer(unit.inputs[0]) if unit.inputs else None
    if (unit.op in _MEANS and graph.is_square(of)) or unit.op in ("ReduceSumSquare", "ReduceL2"):
        at = of if of is not None and graph.is_square(of) else unit
        yield ("square_sum", "possible", at,
               f"numbers above 255 have squares beyond 65504, and {unit.op} adds them up",
               "a fused norm computes them in float32; else keep the nodes from the square to the root in float32")


def _logits(graph: _Graph, unit: Unit) -> Found:
    if unit.op not in ("Softmax", "LogSoftmax"):
        return
    yield ("softmax", "possible", unit,
           "float16 holds logits above 1024 in steps of 1 and more, and probabilities below 6e-8 as 0",
           "fused attention; or keep Softmax and what computes its logits in float32")
    scale: Unit | None = graph.producer(unit.inputs[0])
    while scale is not None and scale.op in ("Add", "Where"):
        scale = next((p for p in map(graph.producer, scale.inputs) if p is not None and p.op in ("Mul", "Div", "Add", "MatMul")), None)
    if scale is None or scale.op not in ("Mul", "Div"):
        return
    factor = next((n for n in map(graph.number, scale.inputs) if n is not None), None)
    product = next((p for p in map(graph.producer, scale.inputs) if p is not None and p.op == "MatMul"), None)
    if product is not None and factor is not None and (factor < 1 if scale.op == "Mul" else factor > 1):
        times = 1 / factor if scale.op == "Mul" else factor
        yield ("logits", "possible", product, f"the scores are scaled after the product: before it they are {times:.4g} times as large",
               "scale the query before the product, as fused attention does")


def _large_constants(graph: _Graph, unit: Unit) -> Found:
    for name in unit.inputs:
        found = graph.array(name)
        if found is None or unit.op in _PASSES_ON or not graph.model.is_float(name):
            continue
        array = np.asarray(found, np.float32)
        large = array[(np.abs(array) >= FLOAT16.infinite_from) & np.isfinite(array)]
        if large.size == 0:
            continue
        number = float(large[np.argmax(np.abs(large))])
        if number < 0 and unit.op == "Mul":
            yield ("mask", "certain", unit, f"{number:.4g} becomes -infinity, and 0 * infinity is NaN",
                   "write -65504 in its place; or keep this node in float32")
        elif number < 0 and unit.op in ("Where", "Add", "Sub", "Max", "Min"):
            yield ("mask", "certain", unit, f"{number:.4g} becomes -infinity: a row of which everything is masked is NaN after Softmax",
                   "write -65504 in its place; or keep the nodes from here to Softmax in float32")
        else:
            yield ("constant", "certain", unit, f"{number:.4g} becomes infinite: float16 ends at 65504",
                   "keep this node and what reads it in float32")


def _epsilons(graph: _Graph, unit: Unit) -> Found:
    if unit.op not in ("Add", "Max", "Clip"):
        return
    number = next((n for n in map(graph.number, unit.inputs) if n is not None and n > 0), None)
    if number is None or number >= FLOAT16.smallest_normal:
        return
    if not any(reader.op in _DIVIDES or (reader.op == "Pow" and (graph.number(reader.inputs[1]) or 0) < 0) for reader in graph.readers(unit)):
        return
    effect = "becomes 0" if number <= FLOAT16.zero_up_to else "is below the smallest normal number"
    yield ("epsilon", "certain" if number <= FLOAT16.zero_up_to else "possible", unit,
           f"{number:.4g} {effect} in float16, so that what it guards can be 0",
           "keep the nodes from here to the root or the quotient in float32; a fused norm adds it in float32")


def _exponentials(graph: _Graph, unit: Unit) -> Found:
    if unit.op == "Exp":
        of = graph.producer(unit.inputs[0])
        shifted = of is not None and (of.op == "Neg" or (of.op == "Sub" and any(
            p is not None and p.op == "ReduceMax" for p in map(graph.producer, of.inputs[1:]))))
        if not shifted:
            yield ("exp", "possible", unit, "Exp of more than 11.09 is beyond 65504", "subtract the maximum first; or keep it in float32")
    elif unit.op in ("Sinh", "Cosh"):
        yield ("exp", "possible", unit, f"{unit.op} of more than 11.78 is beyond 65504", "keep it in float32")
    elif unit.op == "Pow":
        power = graph.number(unit.inputs[1])
        if power is not None and power > 2:
            yield ("power", "possible", unit, f"{65504 ** (1 / power):.3g} to the {power:g} is beyond 65504",
                   "a fused Gelu computes it in float32; or keep it in float32")


def _accumulations(graph: _Graph, unit: Unit) -> Found:
    if unit.op == "CumSum":
        yield ("accumulation", "possible", unit, "a running sum above 2048 loses what is added in steps of 1, and ends at 65504",
               "keep it in float32")
    elif unit.op == "ReduceProd":
        yield ("accumulation", "possible", unit, "a product leaves float16 after few factors", "keep it in float32")
    elif unit.op == "ReduceSum" and not graph.is_square(graph.producer(unit.inputs[0])):
        if graph.model.is_float(unit.inputs[0]):
            yield ("accumulation", "possible", unit, "a sum of many numbers can be beyond 65504; the kernel adds in float32, its result is float16",
                   "keep it in float32, or use a mean")


def _angles(graph: _Graph, unit: Unit) -> Found:
    if unit.op in ("Sin", "Cos") and graph.producer(unit.inputs[0]) is not None:
        yield ("angle", "possible", unit, "float16 holds an angle of 1000 in steps of 0.5: the positions of a rotary embedding past 1000 are wrong",
               "keep this node and what computes its angle in float32, or make the table a constant")


_LOOKS: tuple[Callable[[_Graph, Unit], Found], ...] = (
    _large_constants, _epsilons, _square_sums, _logits, _exponentials, _accumulations, _angles)


def risks(model: PrecisionModel) -> list[Risk]:
    """Returns the risks, one for each construct, with their nodes. Certain ones come first."""
    graph = _Graph(model)
    groups: dict[tuple[str, ...], Risk] = {}
    for unit in model.units:
        if not any(model.is_float(name) for name in (*unit.inputs, *unit.outputs)):
            continue
        for look in _LOOKS:
            for construct, severity, at, because, way_out in look(graph, unit):
                risk = groups.setdefault((construct, severity, because), Risk(construct, severity, [], [], [], because, way_out))
                if at.name not in risk.nodes:
                    risk.nodes.append(at.name)
                if at.op not in risk.ops:
                    risk.ops.append(at.op)
                if at.pattern[0] not in ("", *risk.modules):
                    risk.modules.append(at.pattern[0])
    return sorted(groups.values(), key=lambda risk: (risk.severity != "certain", -len(risk.nodes)))
