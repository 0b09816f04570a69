"""The report of `ascend-fuse precision` as text: one screen, or with --verbose all of it."""

from __future__ import annotations

import collections
from collections.abc import Callable, Sequence
from typing import Any

from ascend_fuse.precision_records import ConstantFinding, PrecisionReport, Risk, Simulation, WeightCandidate

_MOST = 6  # lines of a section without --verbose


def text_of(report: PrecisionReport, verbose: bool = False) -> str:
    """Returns the text; it ends with the verdict and the line for atc."""
    overflow = "an overflow becomes the largest number" if report.saturates else "an overflow becomes infinite"
    lines = [report.model, f"target {report.target}: {overflow}", ""]
    lines += _types(report, verbose)
    lines += _section("constants that half types do not hold", _constants(report.constants, verbose), verbose)
    lines += _section("risks, from the file alone", [line for risk in report.risks for line in _risk(risk, verbose)], verbose, 3 * _MOST)
    lines += _section("what smaller weights save", _candidates(report.candidates, verbose), verbose)
    if report.runs.source:
        lines += _runs(report, verbose)
    lines += [f"note: {note}" for note in report.notes]
    lines.append(report.verdict)
    if report.keep:
        lines += ["", *_section("these stay float32", _aligned([(k.op, k.name, k.because) for k in report.keep]), verbose, 2 * _MOST)[:-1]]
    for file in report.files:
        what = f"--{file.option}, {_count(file.nodes, 'node')}" if file.nodes else f"nothing is in it, atc needs no --{file.option}"
        lines.append(f"wrote {file.path}: {what if file.ok else what + '; with these alone float16 is still wrong'}")
    lines += [f"note: {note}" for file in report.files for note in file.notes]
    if report.atc:
        lines += ["", *report.atc]
        if report.keep and not report.files:
            lines.append("(--keep-dtype keep.cfg writes that file)")
        if report.files:
            one = "one of these; " if len(report.atc) > 1 else ""
            lines.append(f"({one}--precision_mode_v2 may stand for --precision_mode: fp16 for force_fp16, mixed_float16 for allow_mix_precision)")
    return "\n".join(lines) + "\n"


def _section(title: str, rows: Sequence[str], verbose: bool, most: int = _MOST) -> list[str]:
    if not rows:
        return []
    shown = list(rows) if verbose else list(rows[:most])
    more = [f"  ... {len(rows) - len(shown)} more with --verbose"] if len(shown) < len(rows) else []
    return [title, *(f"  {row}" for row in shown), *more, ""]


def _aligned(rows: Sequence[tuple[str, ...]]) -> list[str]:
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]) - 1)] if rows else []
    return ["  ".join([*(cell.ljust(width) for cell, width in zip(row, widths)), row[-1]]).rstrip() for row in rows]


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"


def _types(report: PrecisionReport, verbose: bool) -> list[str]:
    total: collections.Counter[str] = collections.Counter()
    for row in report.types_by_operator:
        total.update(row.types)
    floats = {name: count for name, count in total.items() if "float" in name}
    lines = [f"values     {', '.join(f'{count} {name}' for name, count in floats.items()) or 'none of a float type'} of {sum(total.values())}"]
    casts = ", ".join(f"{c.count} {c.types}" for c in report.casts if "float" in c.types)
    lines.append(f"casts      {casts or 'none of floats'}")
    for island in report.islands if verbose else report.islands[:_MOST]:
        lines.append(f"island     {island.count} x {island.module or '(no module)'}: float32 {', '.join(island.operators)}"
                     f" between {island.casts_in} + {island.casts_out} casts")
    if verbose:
        lines += ["", *_section("types by operator", _aligned([(r.of, _of_types(r.types)) for r in report.types_by_operator]), True)[:-1]]
        lines += ["", *_section("types by module", _aligned([(r.of, _of_types(r.types)) for r in report.types_by_module]), True)[:-1]]
    return [*lines, ""]


def _of_types(types: dict[str, int]) -> str:
    return ", ".join(f"{count} {name}" for name, count in types.items())


def _constants(found: list[ConstantFinding], verbose: bool) -> list[str]:
    groups: dict[tuple[str, float, float, int], list[ConstantFinding]] = {}
    for f in found:
        groups.setdefault((f.effect, f.largest, f.smallest, f.count), []).append(f)
    rows = []
    for same in groups.values():
        names = list(dict.fromkeys(f.name for f in same))
        readers = list(dict.fromkeys(reader for f in same for reader in f.readers))
        rows.append((", ".join(dict.fromkeys(f.half for f in same)), _listed(names, verbose),
                     f"{same[0].because} (read by {_listed(readers, verbose)})"))
    return _aligned(rows)


def _listed(names: list[str], verbose: bool) -> str:
    return ", ".join(names) if verbose or len(names) < 3 else f"{names[0]} and {len(names) - 1} more"


def _risk(risk: Risk, verbose: bool) -> list[str]:
    places = risk.nodes if verbose or not risk.modules else risk.modules
    shown = places if verbose else places[:3]
    more = " ..." if len(shown) < len(places) else ""
    return [f"{risk.severity}  {risk.construct}  {len(risk.nodes)} x {', '.join(risk.ops)}  {', '.join(shown)}{more}", f"    {risk.because}",
            f"    way out: {risk.way_out}"]


def _candidates(found: list[WeightCandidate], verbose: bool) -> list[str]:
    if not found:
        return []
    total = sum(weight.bytes for weight in found)
    rows = []
    for title, saved in _SAVED.items():
        fitting = [weight for weight in found if saved(weight)]
        if fitting:
            rows.append(f"{title.ljust(9)} {_bytes(sum(map(saved, fitting)))} of {_bytes(total)}, in {_count(len(fitting), 'weight')} of {len(found)}")
    if verbose:
        rows += [f"{w.name}: {w.type}, {_bytes(w.bytes)}; int8 error {w.int8_error:.2g}" for w in found]
    return rows


_SAVED: dict[str, Callable[[WeightCandidate], int]] = {
    "float16": lambda w: w.saved_float16, "bfloat16": lambda w: w.saved_bfloat16, "int8": lambda w: w.saved_int8
}


def _bytes(number: float) -> str:
    for unit in ("B", "KB", "MB", "GB"):
        if number < 1000 or unit == "GB":
            return f"{number:.3g} {unit}" if number < 1000 else f"{number:.0f} {unit}"
        number /= 1000
    return ""


def _runs(report: PrecisionReport, verbose: bool) -> list[str]:
    source = _count(len(report.runs.cases), "generated input" if report.runs.source == "seeded" else "input")
    cases = report.runs.cases if verbose else report.runs.cases[:3]
    lines = [f"runs on {source}: {', '.join(cases)}{' ...' if len(cases) < len(report.runs.cases) else ''}", ""]
    rows = _aligned([(f.op, f.node, f.because) for f in report.ranges])
    lines += _section("values that leave float16, or vanish in it", rows, verbose)
    for simulation in report.simulations:
        lines += _simulation(simulation, bool(report.keep), verbose)
    return lines


def _simulation(simulation: Simulation, has_list: bool, verbose: bool) -> list[str]:
    worst = simulation.worst()
    lines = [f"{simulation.half.ljust(9)} {_error(worst)} at {worst.output} ({worst.case}); {simulation.tolerance:g} is allowed"]
    if has_list and simulation.outputs_with_list:
        after = simulation.worst(True)
        lines.append(f"  with the list {_error(after)} at {after.output} ({after.case})")
    if not simulation.modules or (simulation.ok and not verbose):
        return [*lines, ""]
    modules = sorted(simulation.modules, key=lambda m: (m.lost == 0, 0 if m.lost else -m.max_rel))
    rows = [(m.module or "(no module)", _size(m.max_rel, m.lost), _size(m.with_list, m.lost_with_list) if has_list else "", m.node)
            for m in modules]
    heading = ("module", "error", "with the list" if has_list else "", "begins at" if modules[0].lost else "largest at")
    return [*lines, *_section("error by module", _aligned([heading, *rows]), verbose, _MOST + 1)]


def _error(worst: Any) -> str:
    return f"{_count(worst.lost, 'number')} NaN or infinite" if worst.lost else f"largest error {worst.max_rel:.2g}"


def _size(max_rel: float, lost: int) -> str:
    return f"{lost} NaN or inf" if lost else f"{max_rel:.2g}"
