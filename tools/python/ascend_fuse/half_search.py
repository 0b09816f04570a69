"""Which nodes have to stay float32 so that a model in half precision computes what it computes in float32.

The float run says which values leave the range of the half type, or vanish in it. The nodes that give or read such values are
tried first; where they are not enough, those at which the error becomes large, and what computes their inputs; then all. What
is right is made smaller until no node can go (ddmin, first by places that layers share, then by nodes): every trial is a run.
Where no node adds much more error than it reads, rounding adds up over the depth of the model, and no list is searched for.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from ascend_fuse import guess_inputs
from ascend_fuse.comparison import care_mask
from ascend_fuse.half_numbers import HalfType, Range, range_of
from ascend_fuse.half_run import Arrays, Execution, Mode, Program, run
from ascend_fuse.precision_model import Unit
from ascend_fuse.reduce import smallest

TOLERANCES = {"float16": 1e-2, "bfloat16": 5e-2}  # of outputs, relative to the largest number: as verify has them
_STEPS_BACK = 5
_JUMP = 4.0  # how many times the error that it reads a unit gives, where it is to blame
_NOISE = 2.0**-11  # of one rounding to float16


@dataclasses.dataclass
class Difference:
    """How far a value of a half run is from that of the float run."""

    max_rel: float = 0.0  # relative to the largest finite number
    lost: int = 0  # finite before, NaN or infinite now

    @property
    def size(self) -> float:
        return float("inf") if self.lost else self.max_rel

    def merge(self, other: Difference) -> None:
        self.max_rel, self.lost = max(self.max_rel, other.max_rel), max(self.lost, other.lost)


def difference(a: np.ndarray, b: np.ndarray) -> Difference:
    """Compares a value with what a half run made of it. Of integers it is the share that differs."""
    if not isinstance(a, np.ndarray) or a.size == 0:
        return Difference()
    if a.shape != b.shape:
        return Difference(1.0, a.size)
    if a.dtype.kind != "f":
        return Difference(float(np.count_nonzero(a != b)) / a.size)
    finite = np.isfinite(a)
    both = finite & np.isfinite(b)
    lost = int(np.count_nonzero(finite) - np.count_nonzero(both))
    wrong = int(np.count_nonzero(~finite & ~((a == b) | (np.isnan(a) & np.isnan(b)))))
    if not both.any():
        return Difference(0.0, lost + wrong)
    largest = float(np.max(np.abs(a), where=finite, initial=0.0))
    apart = float(np.max(np.abs(np.subtract(a, b, where=both, out=np.zeros(a.shape, np.float32))), initial=0.0))
    return Difference(apart / max(largest, 1e-30) if apart else 0.0, lost + wrong)


@dataclasses.dataclass
class Case:
    """Inputs, and what the model in float32 makes of them."""

    name: str
    feeds: Arrays
    outputs: Arrays = dataclasses.field(default_factory=dict)
    fixed: Arrays = dataclasses.field(default_factory=dict)
    padding: np.ndarray | None = None  # [B, S_kv], False at padded tokens
    queries: int = 0  # new tokens, the last ones of S_kv

    def compare(self, name: str, half: np.ndarray) -> Difference:
        """Compares an output with what a half run made of it; padded positions do not count."""
        expected = self.outputs[name]
        care = care_mask(name, np.shape(expected), self.padding, self.queries)
        if care is None or np.shape(expected) != np.shape(half):
            return difference(expected, half)
        care = np.broadcast_to(care, expected.shape)
        return difference(expected[care], half[care])


def padding_of(model: Any, feeds: Arrays) -> tuple[np.ndarray | None, int]:
    """Returns the padding mask [B, S_kv] among the inputs and the number of new tokens, or (None, 0)."""
    try:
        meanings = {spec["name"]: spec["meaning"] for spec in guess_inputs.guess_entry(model)["inputs"]}
    except guess_inputs.CannotGuess:
        return None, 0
    masks = [feeds[name] for name, meaning in meanings.items() if meaning == "attention_mask"]
    if len(masks) != 1 or masks[0].ndim != 2:
        return None, 0
    ids = [feeds[name] for name, meaning in meanings.items() if meaning in ("ids", "position_ids") and feeds[name].ndim == 2]
    return masks[0] != 0, int(ids[0].shape[1]) if ids else int(masks[0].shape[1])


@dataclasses.dataclass
class Observed:
    """What runs showed of the values: ranges in float32, and differences in the half type."""

    ranges: dict[str, Range] = dataclasses.field(default_factory=dict)
    differences: dict[str, Difference] = dataclasses.field(default_factory=dict)
    inner: dict[int, float] = dataclasses.field(default_factory=dict)  # largest number inside of an NPU node, by its unit


class Search:
    """Runs of one model on some inputs."""

    def __init__(self, program: Program, cases: list[Case], half: HalfType, *, saturates: bool = False, tolerance: float | None = None,
                 may_stay: Callable[[Unit], bool] = lambda _: True, seconds: float = 300.0, say: Callable[[str, float | None], None] = lambda _, __: None) -> None:
        self.program, self.cases, self.half, self.saturates = program, cases, half, saturates
        self.tolerance = TOLERANCES[half.name] if tolerance is None else tolerance
        self._may_stay = may_stay
        self._seconds, self._end = seconds, time.monotonic() + seconds
        self._order = list(range(len(cases)))  # the case that failed last is tried first
        self._known: dict[frozenset[int], bool] = {}
        self.runs = 0
        self.in_time = True
        self.spread = False
        self._say = say
        self._kept_by_type = self._declared_halves()
        for case in cases:
            case.padding, case.queries = padding_of(program.model.expanded, case.feeds)
            if not case.outputs:
                case.outputs = run(program, [Mode()], case.feeds, case.fixed)[0]

    def _declared_halves(self) -> set[int]:
        model = self.program.model
        return {u.index for u in model.units if any(model.is_half(name) for name in (*u.inputs, *u.outputs))}

    def _tell(self, what: str) -> None:
        """A search ends when it is done, or at the latest when its time is over: that is the share that is told."""
        self._say(what, min(1.0, 1.0 - (self._end - time.monotonic()) / self._seconds) if self._seconds > 0 else None)

    def can_stay(self, unit: Unit) -> bool:
        """Whether a list can keep a unit float32: it is, and the chip has a kernel for it."""
        model = self.program.model
        floats = any(model.is_float(name) for name in (*unit.inputs, *unit.outputs))
        return floats and unit.op not in ("Cast", "If", "Loop", "Scan") and unit.index not in self._kept_by_type and self._may_stay(unit)

    def mode(self, kept: Iterable[int] = ()) -> Mode:
        return Mode(self.half, frozenset(kept), self.saturates)

    def right_with_clipped_constants(self) -> bool:
        """Whether no list is needed where constants beyond the range become its largest number."""
        mode = dataclasses.replace(self.mode(), clips_constants=True)
        for case in self.cases:
            half = run(self.program, [mode], case.feeds, case.fixed)[0]
            if any(case.compare(name, half[name]).size > self.tolerance for name in half):
                return False
        return True

    def observe(self, kept: Iterable[int] = ()) -> Observed:
        """Runs all cases in float32 and half side by side."""
        found = Observed()
        model = self.program.model

        def look(unit: Unit, name: str, executions: list[Execution]) -> None:
            value = executions[0].values[name]
            if not isinstance(value, np.ndarray) or value.dtype != np.float32 or value.size == 0:
                return
            if name not in model.edges:
                finite = np.abs(value[np.isfinite(value)])
                found.inner[unit.index] = max(found.inner.get(unit.index, 0.0), float(finite.max(initial=0.0)))
                return
            found.ranges.setdefault(name, Range()).merge(range_of(value, self.half))
            found.differences.setdefault(name, Difference()).merge(difference(value, executions[1].values[name]))

        for case in self.cases:
            for value in model.inputs:
                array = case.feeds[value.name]
                if model.is_float(value.name) and array.size:
                    found.ranges.setdefault(value.name, Range()).merge(range_of(array, self.half))
            self._tell(f"ranges and errors, {case.name}")
            run(self.program, [Mode(), self.mode(kept)], case.feeds, case.fixed, look)
        return found

    def outputs(self, kept: Iterable[int] = ()) -> dict[tuple[str, str], Difference]:
        """Returns the difference of every output, by case and name."""
        found: dict[tuple[str, str], Difference] = {}
        for case in self.cases:
            self.runs += 1
            half = run(self.program, [self.mode(kept)], case.feeds, case.fixed)[0]
            found.update({(case.name, name): case.compare(name, half[name]) for name in half})
        return found

    def right(self, kept: Iterable[int]) -> bool:
        """Whether all outputs are within the tolerance where these units stay float32."""
        key = frozenset(kept)
        if key not in self._known:
            self._known[key] = self._is_right(key)
        return self._known[key]

    def _is_right(self, kept: frozenset[int]) -> bool:
        for place, number in enumerate(self._order):
            case = self.cases[number]
            self.runs += 1
            self._tell(f"run {self.runs}, {len(kept)} nodes in float32, {case.name}")
            half = run(self.program, [self.mode(kept)], case.feeds, case.fixed)[0]
            if any(case.compare(name, half[name]).size > self.tolerance for name in half):
                self._order.insert(0, self._order.pop(place))
                return False
        return True

    def suspects(self, observed: Observed, lost_share: float, bad_constants: Iterable[str]) -> set[int]:
        """Returns the units that give or read what leaves the range of the half type or vanishes in it."""
        model = self.program.model
        bad = {name for name, r in observed.ranges.items() if r.over or r.lost_share > lost_share} | set(bad_constants)
        units = {unit.index for name in bad for unit in model.readers.get(name, ())}
        units |= {model.producers[name].index for name in bad if name in model.producers}
        return self._those_that_can(units)

    def _those_that_can(self, units: Iterable[int]) -> set[int]:
        return {index for index in units if self.can_stay(self.program.model.units[index])}

    def turning_points(self, observed: Observed) -> set[int]:
        """Returns the units whose results are wrong, and much more so than what they read."""
        found = set()
        for unit in self.program.model.units:
            own = max((observed.differences[n].size for n in unit.outputs if n in observed.differences), default=0.0)
            before = max((observed.differences[n].size for n in unit.inputs if n in observed.differences), default=0.0)
            if own > self.tolerance and own > _JUMP * max(before, _NOISE):
                found.add(unit.index)
        return found

    def find(self, observed: Observed, suspects: set[int]) -> set[int] | None:
        """Returns a list that none can be taken from, empty where half precision is right; None where no list makes it right, or
        where the error is `spread`."""
        if self.right(()):
            return set()
        self.spread = not suspects and not self.turning_points(observed)
        if self.spread:
            return None
        everything = self._those_that_can(unit.index for unit in self.program.model.units)
        for kept in self._guesses(suspects):
            if kept and self.right(kept):
                return self._smallest(kept, suspects)
        return self._smallest(everything, suspects) if self.right(everything) else None

    def _guesses(self, suspects: set[int]) -> Iterable[set[int]]:
        yield suspects
        model = self.program.model
        kept = set(suspects)
        for _ in range(2):
            fringe = self.turning_points(self.observe(kept))
            if not fringe:
                return
            for _ in range(_STEPS_BACK):
                kept = kept | self._those_that_can(fringe)
                yield kept
                fringe = {model.producers[n].index for i in fringe for n in model.units[i].inputs
                          if n in model.producers and model.is_float(n)}

    def _smallest(self, kept: set[int], suspects: set[int]) -> set[int]:
        """Makes a list smaller: by places that layers share, then by nodes. Of a place that is needed every suspect stays, so that
        layers with the same fault are treated alike."""
        groups: dict[tuple[str, str], list[int]] = {}
        for index in sorted(kept):
            groups.setdefault(self.program.model.units[index].pattern, []).append(index)
        chosen = [index for group in self._reduced(list(groups.values())) for index in group]
        sure = [index for index in chosen if index in suspects]
        free = [[index] for index in chosen if index not in suspects]
        if not free or self.right(sure):
            return set(sure) if self.right(sure) else set(chosen)
        return {*sure, *(index for group in self._reduced(free, sure) for index in group)}

    def _reduced(self, groups: list[list[int]], always: Iterable[int] = ()) -> list[list[int]]:
        def enough(numbers: list[int]) -> bool:
            kept = {*always, *(index for number in numbers for index in groups[number])}
            if time.monotonic() > self._end and frozenset(kept) not in self._known:
                self.in_time = False
                return False
            return self.right(kept)

        return [groups[number] for number in smallest(len(groups), enough)]


def share_text(count: int, of: int) -> str:
    """Returns "12 %" or "0.3 %"."""
    share = 100.0 * count / of if of else 0.0
    return f"{share:.0f} %" if share >= 10 else f"{share:.2g} %"


