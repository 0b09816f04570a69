"""float16 and bfloat16: rounding to them, and what they do not hold of the numbers of an array."""

from __future__ import annotations

import dataclasses

import numpy as np

_CHUNK = 1 << 22  # elements that are looked at together, so that weights of any size need little memory


@dataclasses.dataclass(frozen=True)
class HalfType:
    """A type of 16 bits."""

    name: str
    largest: float
    infinite_from: float  # numbers from here on become infinite
    smallest_normal: float
    zero_up_to: float  # numbers up to here become 0

    def rounded(self, array: np.ndarray) -> np.ndarray:
        """Returns float32 numbers, each the nearest one of this type; ties go to even."""
        array = np.asarray(array, dtype=np.float32)
        if self.name == "float16":
            with np.errstate(over="ignore"):
                return array.astype(np.float16).astype(np.float32)
        bits = np.ascontiguousarray(array).view(np.uint32)
        up = bits + (((bits >> 16) & 1) + np.uint32(0x7FFF))
        result = (up & np.uint32(0xFFFF0000)).view(np.float32).reshape(array.shape)
        return np.where(np.isnan(array), array, result)


FLOAT16 = HalfType("float16", 65504.0, 65520.0, 2.0**-14, 2.0**-25)
BFLOAT16 = HalfType("bfloat16", 3.3895313892515355e38, 3.39617752923046e38, 2.0**-126, 2.0**-134)


def saturated(array: np.ndarray, half: HalfType) -> np.ndarray:
    """Returns what chips that have only the saturation mode make of numbers they computed: the largest number for an
    infinite one, 0 for NaN (CANN 9.1, aclrtFloatOverflowMode)."""
    return np.asarray(np.nan_to_num(array, nan=0.0, posinf=half.largest, neginf=-half.largest))  # of a scalar it makes no array


@dataclasses.dataclass
class Range:
    """The numbers of one tensor, in one run or in several."""

    count: int = 0
    largest: float = 0.0  # of the finite ones, without sign
    smallest: float = 0.0  # of those that are not 0, without sign; 0 where there is none
    over: int = 0  # finite, and infinite in the half type
    to_zero: int = 0  # not 0, and 0 in the half type
    subnormal: int = 0  # not 0, and below the smallest normal number of the half type
    infinite: int = 0
    nan: int = 0

    @property
    def lost_share(self) -> float:
        """The share of the numbers that become 0 or subnormal."""
        return (self.to_zero + self.subnormal) / self.count if self.count else 0.0

    def merge(self, other: Range) -> None:
        """Adds what another run found of the same tensor."""
        smallest = [r.smallest for r in (self, other) if r.smallest > 0]
        self.largest = max(self.largest, other.largest)
        self.smallest = min(smallest, default=0.0)
        for name in ("count", "over", "to_zero", "subnormal", "infinite", "nan"):
            setattr(self, name, getattr(self, name) + getattr(other, name))


def range_of(array: np.ndarray, half: HalfType = FLOAT16) -> Range:
    """Returns the range of a float array of any size, which may be a file's."""
    found = Range()
    flat = array.reshape(-1)
    for start in range(0, flat.size, _CHUNK):
        found.merge(_range_of_part(np.abs(flat[start : start + _CHUNK].astype(np.float32, copy=False)), half))
    return found


def _range_of_part(part: np.ndarray, half: HalfType) -> Range:
    largest = float(part.max())
    found = Range(part.size, largest)
    if not np.isfinite(largest):
        finite = np.isfinite(part)
        found.nan = int(np.count_nonzero(np.isnan(part)))
        found.infinite = int(part.size - np.count_nonzero(finite)) - found.nan
        part = part[finite]
        found.largest = float(part.max()) if part.size else 0.0
    if found.largest >= half.infinite_from:
        found.over = int(np.count_nonzero(part >= half.infinite_from))
    small = part[part < half.smallest_normal]
    small = small[small > 0]
    if small.size:
        found.smallest = float(small.min())
        found.to_zero = int(np.count_nonzero(small <= half.zero_up_to))
        found.subnormal = int(small.size) - found.to_zero
    elif part.size:
        found.smallest = float(np.min(part, where=part > 0, initial=np.inf))
        if not np.isfinite(found.smallest):
            found.smallest = 0.0
    return found
