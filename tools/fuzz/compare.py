"""When two outputs are the same: bounds that follow from the type, and from what rounding does to the original itself.

The reference is the graph in float64. The original's own distance from it is what rounding does there; the optimized
model may be some times as far, for it rounds in other places, and never has to be nearer than the unit of its type
times the largest value allows.
"""

from __future__ import annotations

from typing import Any

import numpy as np

# Of the largest value of a tensor. Sums of a few hundred terms, twenty operators in a row. "halves": a model of float32 in which a
# kernel of integers writes float16.
FLOORS = {"float": 2e-5, "double": 2e-5, "float16": 8e-3, "bfloat16": 3e-2, "halves": 8e-3}
# Below this a number of float64 is what is left of numbers that cancel, such as the mean of what a norm centred: it has no size of its
# own, and what cancelled has that of the floor. The values of the graphs that are made here are about 1. Of zeros that are none of
# this, such as products with a weight of zeros, nothing is excused.
CANCELLED = 1e-12
TIMES = 24.0  # how much farther from the reference than the original is


def difference(new: Any, original: Any, reference: Any, dtype: str, care: Any | None = None) -> tuple[str, float]:
    """Returns a sentence, "" if there is none, and how much of the bound was used.

    original may be None where ONNX Runtime does not run the original's type; `care` is False where any value will do. What stays
    of a tensor may be nothing but zeros: those of a GELU whose Erf, which the exact graph has in float32, was -1 are as much left
    over as numbers that cancel.
    """
    target = reference if original is None else original
    new, target = np.asarray(new), np.asarray(target)
    if new.shape != target.shape:
        return f"shape {list(target.shape)} became {list(new.shape)}", np.inf
    if original is not None and new.dtype != target.dtype:
        return f"type {target.dtype} became {new.dtype}", np.inf
    left_over = False
    if care is not None:
        full = np.broadcast_to(care, target.shape)
        left_over = bool(np.any(reference)) and not np.any(np.asarray(reference)[full])
        new, target = new[full], target[full]
        reference = np.asarray(reference)[full]
        original = None if original is None else np.asarray(original)[full]
    if target.size == 0:
        return "", 0.0
    if new.dtype.kind not in "fV":
        count = int(np.count_nonzero(new != target))
        return (f"{count} of {target.size} elements differ", np.inf) if count else ("", 0.0)
    a, b, exact = (np.asarray(v).astype(np.float64) for v in (target, new, reference))
    return _distance(a, b, exact, original is not None, dtype, left_over)


def _distance(a: Any, b: Any, exact: Any, measured: bool, dtype: str, left_over: bool) -> tuple[str, float]:
    # A number beyond the type's range is infinite in one of them and large in the other: neither is an error of the rewriting.
    limit = {"float16": 3e4, "halves": 3e4}.get(dtype, 1e38)
    finite = np.isfinite(a) & np.isfinite(exact) & (np.abs(np.where(np.isfinite(exact), exact, 0)) < limit)
    odd = ~np.isfinite(a) & ~np.isfinite(exact)
    if not np.array_equal(np.isnan(a[odd]), np.isnan(b[odd])) or not np.isfinite(b[finite]).all():
        return (f"NaN or infinity in other places: {int(np.count_nonzero(~np.isfinite(a)))} before,"
                f" {int(np.count_nonzero(~np.isfinite(b)))} after"), np.inf
    if not finite.any():
        return "", 0.0
    scale = float(np.max(np.abs(exact[finite])))
    own = float(np.max(np.abs(a[finite] - exact[finite]))) if measured else 0.0
    far = float(np.max(np.abs(b[finite] - exact[finite])))
    left_over = left_over or 0 < scale < CANCELLED
    bound = max(FLOORS[dtype] * (1.0 / 8 if left_over else scale), TIMES * own, 1e-30)
    if far <= bound:
        return "", far / bound
    return f"max |new - exact| {far:.3g} is more than {bound:.3g} (the original's {own:.3g}, largest value {scale:.3g})", far / bound
