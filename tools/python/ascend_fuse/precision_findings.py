"""What the file alone says about half precision: types, casts, float32 islands, constants, and weights that could be smaller."""

from __future__ import annotations

import collections
from collections.abc import Iterable

import numpy as np

from ascend_fuse.half_numbers import BFLOAT16, FLOAT16, HalfType, Range, range_of
from ascend_fuse.half_search import share_text
from ascend_fuse.precision_model import FLOATS, PrecisionModel, Unit, type_name
from ascend_fuse.precision_records import CastCount, ConstantFinding, Island, TypeCount, WeightCandidate

SMALL = 1024  # elements of the largest constant that is not a weight
_FEW = 16  # elements of a constant of which each one counts
_PRODUCTS = {"MatMul": 1, "Gemm": 1, "Conv": 1}  # the operand that may be int8
_SAMPLED = 1 << 20  # elements of a weight that int8 is tried on
_INT8_ERROR = 0.02
_MOVES = frozenset("Reshape Transpose Squeeze Unsqueeze Identity Flatten Expand Slice Concat Split Tile Gather".split())


def types_by_operator(model: PrecisionModel) -> list[TypeCount]:
    """Counts the results of every operator by type, those with most of them first."""
    return _counted((unit.op, type_name(model.types.get(name, 0))) for unit in model.units for name in unit.outputs)


def types_by_module(model: PrecisionModel) -> list[TypeCount]:
    """Counts the float results of every module by type; layers are counted together."""
    return _counted((unit.pattern[0] or "(no module)", type_name(model.types[name])) for unit in model.units for name in unit.outputs
                    if model.types.get(name, 0) in FLOATS)


def _counted(pairs: Iterable[tuple[str, str]]) -> list[TypeCount]:
    counts: dict[str, collections.Counter[str]] = {}
    for of, type_ in pairs:
        counts.setdefault(of, collections.Counter())[type_] += 1
    return [TypeCount(of, dict(count.most_common())) for of, count in sorted(counts.items(), key=lambda c: -sum(c[1].values()))]


def casts(model: PrecisionModel) -> list[CastCount]:
    """Groups the casts by their two types."""
    groups: dict[str, list[str]] = {}
    for unit in model.units:
        if unit.op == "Cast":
            types = " -> ".join(type_name(model.types.get(name, 0)) for name in (unit.inputs[0], unit.outputs[0]))
            groups.setdefault(types, []).append(unit.name)
    return [CastCount(types, len(names), names) for types, names in sorted(groups.items(), key=lambda g: -len(g[1]))]


def islands(model: PrecisionModel) -> list[Island]:
    """Returns the connected float32 parts of a model most of whose float values are of a half type."""
    floats = collections.Counter(type_name(model.types[n]) for u in model.units for n in u.outputs if model.is_float(n))
    if floats["float32"] >= floats["float16"] + floats["bfloat16"]:
        return []
    inside = {u.index for u in model.units if u.op != "Cast" and any(type_name(model.types.get(n, 0)) == "float32" for n in u.outputs)}
    places = [part for part in _connected(model, inside) if part]
    groups: dict[tuple[str, tuple[str, ...]], list[list[Unit]]] = {}
    for part in places:
        units = [model.units[index] for index in sorted(part)]
        key = (units[0].pattern[0], tuple(dict.fromkeys(unit.op for unit in units)))
        groups.setdefault(key, []).append(units)
    result = []
    for (module, operators), parts in groups.items():
        units = [unit for part in parts for unit in part]
        entering = {n for u in units for n in u.inputs if n in model.producers and model.producers[n].op == "Cast" and _from_half(model, n)}
        leaving = {r.index for u in units for n in u.outputs for r in model.readers.get(n, ()) if r.op == "Cast" and model.is_half(r.outputs[0])}
        result.append(Island(module, len(parts), list(operators), len(entering), len(leaving), [unit.name for unit in units]))
    return sorted(result, key=lambda island: -len(island.nodes))


def _from_half(model: PrecisionModel, name: str) -> bool:
    return model.is_half(model.producers[name].inputs[0])


def _connected(model: PrecisionModel, inside: set[int]) -> list[set[int]]:
    left, parts = set(inside), []
    for start in sorted(inside):
        part, waiting = set(), [start]
        while waiting:
            index = waiting.pop()
            if index not in left:
                continue
            left.discard(index)
            part.add(index)
            unit = model.units[index]
            waiting += [r.index for n in unit.outputs if model.is_float(n) for r in model.readers.get(n, ()) if r.index in left]
            waiting += [model.producers[n].index for n in unit.inputs if n in model.producers and model.producers[n].index in left]
        parts.append(part)
    return parts


def constants(model: PrecisionModel, lost_share: float, weights: bool) -> list[ConstantFinding]:
    """Returns the constants that float16 or bfloat16 does not hold. Weights are read piece by piece, where `weights` is set."""
    found = []
    for name in model.constants:
        readers = model.readers.get(name, [])
        if not readers or not model.is_float(name) or (not weights and np.prod(model.constants.shape(name)) > SMALL):
            continue
        array = model.constants.array(name)
        if array.size == 0:
            continue
        own = model.types[name]
        in_half = range_of(array, FLOAT16)
        ranges = [(FLOAT16, in_half)]
        if in_half.largest >= BFLOAT16.infinite_from or 0 < in_half.smallest < BFLOAT16.smallest_normal or type_name(own) == "bfloat16":
            ranges.append((BFLOAT16, range_of(array, BFLOAT16)))
        for half, r in ranges:
            if type_name(own) in ("float16", "bfloat16") and half.name != type_name(own):
                continue  # it is not converted
            for effect, count, because in _effects(half, r, lost_share):
                found.append(ConstantFinding(name, type_name(own), half.name, effect, count, r.count, r.largest, r.smallest,
                                             [unit.name for unit in readers], because))
    return found


def _effects(half: HalfType, r: Range, lost_share: float) -> list[tuple[str, int, str]]:
    effects = []
    of = f"{r.count} numbers" if r.count > 1 else "number"
    if r.nan:
        effects.append(("nan", r.nan, f"{r.nan} of its {of} are NaN"))
    if r.over:
        which = "it" if r.count == 1 else f"{r.over} of its {of}, up to {r.largest:.4g},"
        ends = f"{half.largest:g}" if half is FLOAT16 else f"{half.largest:.5g}"
        effects.append(("overflows", r.over, f"{which} becomes infinite: {half.name} ends at {ends}"
                        if r.count == 1 else f"{which} become infinite: {half.name} ends at {ends}"))
    if r.to_zero and (r.count <= _FEW or r.lost_share > lost_share):
        which = f"{r.smallest:.4g} becomes 0" if r.count == 1 else f"{share_text(r.to_zero, r.count)} of its {of} become 0"
        effects.append(("vanishes", r.to_zero, f"{which}: the smallest number of {half.name} is {half.zero_up_to * 2:.3g}"))
    return effects


def weight_candidates(model: PrecisionModel, lost_share: float, bfloat16: bool) -> list[WeightCandidate]:
    """Returns the weights with the bytes that smaller types save, the largest first."""
    found = []
    for name in model.constants:
        readers = model.readers.get(name, [])
        if not readers or model.types[name] not in FLOATS or np.prod(model.constants.shape(name)) <= SMALL:
            continue
        array = model.constants.array(name)
        stored = type_name(model.types[name])
        size = array.size * (2 if stored in ("float16", "bfloat16") else array.itemsize)
        r = range_of(array)
        fits = not r.over and not r.nan and r.to_zero <= lost_share * r.count
        of_half = size - 2 * array.size
        axis = _output_axis(readers, name, array.ndim)
        error = _int8_error(array, axis) if axis is not None else 1.0
        fits_int8 = axis is not None and not r.nan and error <= _INT8_ERROR
        found.append(WeightCandidate(
            name, readers[0].module, readers[0].op, stored, size, of_half if fits else 0,
            of_half if bfloat16 and stored != "float16" and not r.nan else 0,
            size - array.size - 2 * array.shape[axis] if fits_int8 and axis is not None else 0, error))
    return sorted(found, key=lambda weight: -weight.bytes)


def _output_axis(readers: list[Unit], name: str, rank: int) -> int | None:
    """The axis of the output channels where every reader multiplies by the weight."""
    axes = set()
    for unit in readers:
        operand = _PRODUCTS.get(unit.op)
        if operand is None or len(unit.inputs) <= operand or unit.inputs[operand] != name or rank < 2:
            return None
        transposed = any(a.name == "transB" and a.i for a in unit.node.attribute)
        axes.add(0 if unit.op == "Conv" or transposed else rank - 1)
    return axes.pop() if len(axes) == 1 else None


def _int8_error(array: np.ndarray, axis: int) -> float:
    """The error of the weight with one scale for each output channel, on a sample of channels."""
    channels = array.shape[axis]
    step = max(1, -(-array.size // _SAMPLED))
    rows = np.moveaxis(array, axis, 0)[::step].astype(np.float64).reshape(-(-channels // step), -1)
    scale = np.max(np.abs(rows), axis=1, keepdims=True) / 127
    scale[scale == 0] = 1
    error = np.linalg.norm(rows - np.round(rows / scale) * scale)
    norm = np.linalg.norm(rows)
    return float(error / norm) if norm else 0.0
