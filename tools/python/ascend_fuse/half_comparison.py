"""`verify --as-half`: an optimized model as it runs in float16 on the chip, compared with the original in float32."""

from __future__ import annotations

import dataclasses
import pathlib
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ascend_fuse import atc_precision
from ascend_fuse.comparison import Comparison, Result, care_mask, compare
from ascend_fuse.expanded import VerifyError
from ascend_fuse.half_numbers import FLOAT16
from ascend_fuse.half_run import Mode, Program, run
from ascend_fuse.half_search import TOLERANCES, Case, Search, padding_of
from ascend_fuse.precision_analysis import seeded_cases, simulate
from ascend_fuse.precision_model import opened
from ascend_fuse.precision_records import ModuleError

_MODULES = 8  # lines of the table


@dataclasses.dataclass
class HalfResult(Result):
    """What a comparison says, and where in the model the error is."""

    modules: list[ModuleError] = dataclasses.field(default_factory=list)
    kept: list[str] = dataclasses.field(default_factory=list)
    without_list: list[Comparison] = dataclasses.field(default_factory=list)

    def _region_lines(self) -> list[str]:
        modules = sorted(self.modules, key=lambda m: (m.lost == 0, 0 if m.lost else -m.max_rel))
        lines = ["error by module, of the optimized model against itself in float32"] if modules else []
        for module in modules[:_MODULES]:
            error = f"{module.lost} NaN or infinite" if module.lost else f"{module.max_rel:.2g}"
            after = f", with the list {module.lost_with_list} NaN or infinite" if module.lost_with_list else f", with the list {module.with_list:.2g}"
            lines.append(f"  {module.module or '(no module)'}: {error} at {module.node}{after if self.kept else ''}")
        if self.kept:
            worst = max(self.without_list, key=lambda c: c.max_rel)
            lines.append(f"the list keeps {len(self.kept)} nodes float32; without it max rel is {worst.max_rel:.3g} at {worst.output}")
        return lines


def verify_as_half(original: pathlib.Path, optimized: pathlib.Path, *, target: str = "ascend910b", keep_dtype: str = "", bindings: Any = None,
                   seed: int = 0, dims: Sequence[str] = (), tolerance: float | None = None, tool: Any = None,
                   rules: Sequence[str] = (), say: Callable[[str, float | None], None] = lambda _, __: None) -> HalfResult:
    """Runs the original in float32 and the optimized model in float16, node by node, and compares all outputs.

    keep_dtype  a list of ATC's --keep_dtype: these nodes of the optimized model stay float32.
    say         is told what is being done, and what part of it is over.
    What outputs are at padded tokens does not count.
    """
    chip = atc_precision.chip_of(target)
    tolerance = TOLERANCES["float16"] if tolerance is None else tolerance
    result = HalfResult(str(original), str(optimized), tolerance)
    say("the original in float32", 0.0)
    with opened(original, tool, rules) as before:
        cases = seeded_cases(Program(before), bindings, seed, dims)
    with opened(optimized, tool, rules) as after:
        program = Program(after)
        kept, unknown = atc_precision.read_keep_list(keep_dtype, after) if keep_dtype else ([], [])
        if unknown:
            raise VerifyError(f"{keep_dtype} names what is not in {optimized}: {', '.join(unknown[:5])}")
        for unit in kept:
            if why := atc_precision.why_not_float32(unit, chip):
                result.notes.append(f"{unit.op} {unit.name} is in the list and runs in float16 all the same: {why}")
        stays = {unit.index for unit in kept if not atc_precision.why_not_float32(unit, chip)}
        result.kept = [unit.name for unit in kept]
        mode = Mode(FLOAT16, frozenset(stays), atc_precision.saturates(chip))
        for number, case in enumerate(cases):
            say(f"float16, {case.name}", (number + 1) / (len(cases) + 2))
            result.comparisons += _compared(program, mode, case, tolerance)
            if stays:
                result.without_list += _compared(program, dataclasses.replace(mode, kept=frozenset()), case, tolerance)
        say("errors by module", (len(cases) + 1) / (len(cases) + 2))
        own = [Case(case.name, case.feeds, {}, {}) for case in cases]
        search = Search(program, own, FLOAT16, saturates=mode.saturates, tolerance=tolerance)
        result.modules = simulate(search, search.observe(), stays).modules
    result.notes.append(f"the optimized model ran in float16, as on {chip}; matrix products and kernels compute in float32 inside")
    return result


def _compared(program: Program, mode: Mode, case: Case, tolerance: float) -> list[Comparison]:
    half = run(program, [mode], case.feeds, {})[0]
    mask, queries = padding_of(program.model.expanded, case.feeds)
    found = []
    for name, expected in case.outputs.items():
        if name not in half:
            found.append(Comparison(case.name, name, because="the optimized model has no such output"))
            continue
        care = care_mask(name, np.shape(expected), mask, queries)
        found.append(compare(case.name, name, expected, half[name].astype(expected.dtype, copy=False), tolerance, care))
    return found
