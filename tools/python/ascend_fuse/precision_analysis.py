"""What half precision does to a model, and which nodes have to stay float32: the command `ascend-fuse precision`.

    python3 -m ascend_fuse.precision_analysis m.onnx --tool build/ascend-fuse --data feeds.npz --keep-dtype keep.cfg

The file alone says types, casts, constants and risks. With inputs the model runs in float32, and the range of every value is
taken; then it runs as a precision mode would run it on the chip, and the smallest list of nodes is searched for with which it is
right. docs/precision.md says what is simulated.

Exit codes: 0 done, 1 an error, 3 float16 is wrong, and no list makes it right.
"""

from __future__ import annotations

import argparse
import os
import pathlib
import sys
from collections.abc import Callable
from typing import Any, Mapping, Sequence, Union

try:
    import numpy as np
    import onnxruntime  # noqa: F401
except ImportError as missing:  # pragma: no cover
    if __name__ != "__main__":
        raise
    print(f"precision needs the Python packages numpy, onnx and onnxruntime: {missing}. Install them with: python3 -m pip install onnx"
          " onnxruntime", file=sys.stderr)
    sys.exit(1)

from ascend_fuse import atc_precision, guess_inputs, precision_findings
from ascend_fuse.expanded import VerifyError, first_line
from ascend_fuse.given_bindings import different, read_bindings, symbol_bindings
from ascend_fuse.half_numbers import BFLOAT16, FLOAT16
from ascend_fuse.half_run import Mode, Program, run
from ascend_fuse.half_search import Case, Difference, Observed, Search, share_text
from ascend_fuse.precision_model import PrecisionModel, Unit, opened, type_name
from ascend_fuse.precision_records import (KeptNode, ModuleError, OutputError, PrecisionReport, RangeFinding, Simulation,
                                           WrittenFile)
from ascend_fuse.precision_risks import risks
from ascend_fuse.progress import WORDS, ProgressLine

LOST_SHARE = 0.1  # of the numbers of a value: more of them 0 or subnormal is a finding

Data = Union[str, "os.PathLike[str]", Mapping[str, Any], Sequence[Mapping[str, Any]]]


def analyse(path: str | pathlib.Path, *, data: Data | None = None, seeded: bool = False, bindings: Any = None, seed: int = 0,
            dims: Sequence[str] = (), target: str = "ascend910b", tolerance: float | None = None, lost_share: float = LOST_SHARE,
            weights: bool = True, keep_dtype: str = "", modify_mixlist: str = "", customize_dtypes: str = "", seconds: float = 300.0,
            tool: Any = None, rules: Sequence[str] = (), say: Callable[[str, float | None], None] = lambda _, __: None) -> PrecisionReport:
    """Returns what half precision does to the model on `path`.

    data        an .npz file with an array for every input, a folder of such files, a dict of arrays, or a list of dicts: the model is
                run on them.
    seeded      run it on generated inputs, as `verify` does. Asked for by itself where a file for ATC is to be written.
    bindings    with seeded: what symbolic dims are, as `verify` takes it; dims: what --dim bounds.
    target      the chip: whether overflows become infinite, and what has float32 kernels.
    tolerance   how far an output may be from float32, relative to its largest number; default 1e-2 in float16.
    lost_share  a value is a finding when more of its numbers become 0 or subnormal.
    weights     read constants of more than 1024 elements, too.
    keep_dtype, modify_mixlist, customize_dtypes   files for ATC to write.
    seconds     after which the list is not made any smaller.
    tool        the ascend-fuse program; needed for NPU nodes and local functions. rules: reference rules of your own nodes.
    say         is told what is being done, and what part of the time that it may take is over, where that is known.
    """
    path = pathlib.Path(path)
    chip = atc_precision.chip_of(target)
    say("constants", 0.0)
    with opened(path, tool, rules) as model:
        report = PrecisionReport(model=str(path), target=chip, saturates=atc_precision.saturates(chip), nodes=len(model.units))
        report.types_by_operator = precision_findings.types_by_operator(model)
        report.types_by_module = precision_findings.types_by_module(model)
        report.casts = precision_findings.casts(model)
        report.islands = precision_findings.islands(model)
        report.constants = precision_findings.constants(model, lost_share, weights)
        report.risks = risks(model)
        if weights:
            report.candidates = precision_findings.weight_candidates(model, lost_share, atc_precision.has_bfloat16(chip))
        if data is None and not seeded and not (keep_dtype or modify_mixlist or customize_dtypes):
            report.verdict = "nothing was run: --data FILE or --seeded shows which of the risks are real"
            return report
        program = Program(model)
        say("inputs", 0.0)
        cases = read_data(data, model) if data is not None else seeded_cases(program, bindings, seed, dims)
        report.runs.source = "data" if data is not None else "seeded"
        report.runs.cases = [case.name for case in cases]
        search = Search(program, cases, FLOAT16, saturates=report.saturates, tolerance=tolerance, seconds=seconds, say=say,
                        may_stay=lambda unit: not atc_precision.why_not_float32(unit, chip))
        kept = _run(report, search, lost_share)
        if report.ok:
            _write(report, search, kept, keep_dtype, modify_mixlist, customize_dtypes)
    return report


def _write(report: PrecisionReport, search: Search, kept: list[Unit], keep_dtype: str, modify_mixlist: str, customize_dtypes: str) -> None:
    """Writes the files for ATC that are named, and says what a run with each of them gives."""
    model = search.program.model
    files = [atc_precision.keep_dtype_file(keep_dtype, kept)] if keep_dtype else []
    files += [atc_precision.mixlist_file(modify_mixlist, kept, model)] if modify_mixlist else []
    files += [atc_precision.customize_dtypes_file(customize_dtypes, kept, model)] if customize_dtypes else []
    for file in files:
        right = search.right({unit.index for unit in file.keeps})
        report.files.append(WrittenFile(file.option, file.path, len(file.keeps), right, file.text, file.atc_line(report.model),
                                        file.atc_line(report.model, True), file.notes))
        file.write()
    if not kept:
        report.atc = [atc_precision.atc_line(report.model)]
    else:
        report.atc = [f.atc_line(report.model) for f in files or [atc_precision.keep_dtype_file("keep.cfg", kept)]]


def _run(report: PrecisionReport, search: Search, lost_share: float) -> list[Unit]:
    """Fills in what runs show, and returns the units that have to stay float32."""
    model = search.program.model
    observed = search.observe()
    report.ranges = range_findings(model, observed, lost_share)
    bad = [finding.name for finding in report.constants if finding.half == "float16"]
    found = search.find(observed, search.suspects(observed, lost_share, bad))
    kept = [model.units[index] for index in sorted(found or ())]
    report.runs.trials, report.runs.complete = search.runs, search.in_time
    report.keep = [KeptNode(u.name, u.op, atc_precision.ge_operator(u), u.module, _why_kept(u, model, observed, report)) for u in kept]
    report.simulations = [simulate(search, observed, found or set())]
    in_file = {type_name(model.types.get(name, 0)) for unit in model.units for name in unit.outputs}
    if atc_precision.has_bfloat16(report.target) and "float16" not in in_file:
        report.simulations.append(_in_bfloat16(search))
    report.notes += _notes(model, observed, report, search)
    report.verdict = _verdict(report, found, search.spread)
    return kept


def _in_bfloat16(of: Search) -> Simulation:
    search = Search(of.program, of.cases, BFLOAT16, saturates=of.saturates)
    outputs = _errors(search.outputs(), search.tolerance)
    return Simulation("bfloat16", search.tolerance, all(o.ok for o in outputs), outputs)


def simulate(search: Search, observed: Observed, kept: set[int]) -> Simulation:
    """Returns the errors of outputs and modules, without and with the list."""
    outputs = _errors(search.outputs(), search.tolerance)
    result = Simulation(search.half.name, search.tolerance, all(o.ok for o in outputs), outputs)
    after = search.observe(kept) if kept else observed
    result.outputs_with_list = _errors(search.outputs(kept), search.tolerance) if kept else outputs
    result.ok_with_list = all(o.ok for o in result.outputs_with_list)
    modules: dict[str, ModuleError] = {}
    for unit in search.program.model.units:
        for name in unit.outputs:
            if name in observed.differences:
                one, other = observed.differences[name], after.differences.get(name, Difference())
                module = modules.setdefault(unit.module, ModuleError(unit.module, 0.0, 0, unit.name, 0.0, 0))
                if not module.lost and (one.lost or one.max_rel > module.max_rel):
                    module.node = unit.name
                module.max_rel, module.lost = max(module.max_rel, one.max_rel), max(module.lost, one.lost)
                module.with_list = max(module.with_list, other.max_rel)
                module.lost_with_list = max(module.lost_with_list, other.lost)
    result.modules = list(modules.values())
    return result


def _errors(found: dict[tuple[str, str], Difference], tolerance: float) -> list[OutputError]:
    return [OutputError(case, name, d.max_rel, d.lost, d.size <= tolerance) for (case, name), d in found.items()]


def range_findings(model: PrecisionModel, observed: Observed, lost_share: float) -> list[RangeFinding]:
    """Returns the values that leave the range of float16, or of which more than a share vanishes."""
    found = []
    for name, r in observed.ranges.items():
        if not r.over and r.lost_share <= lost_share:
            continue
        unit = model.producers.get(name)
        if r.over:
            because = f"it reaches {r.largest:.4g}: {share_text(r.over, r.count)} of its numbers are beyond 65504"
        else:
            because = (f"{share_text(r.to_zero, r.count)} of its numbers become 0 and {share_text(r.subnormal, r.count)} subnormal;"
                       f" the largest is {r.largest:.4g}")
        found.append(RangeFinding(unit.name if unit else "(input)", unit.op if unit else "", unit.module if unit else "", name, r.count,
                                  r.largest, r.smallest, r.over, r.to_zero, r.subnormal, r.infinite, r.nan, because))
    return sorted(found, key=lambda f: f.over == 0)


def _why_kept(unit: Unit, model: PrecisionModel, observed: Observed, report: PrecisionReport) -> str:
    constants = {finding.name: finding for finding in report.constants if finding.half == "float16"}
    for name in unit.outputs:
        if name in observed.ranges and observed.ranges[name].over:
            return f"its result reaches {observed.ranges[name].largest:.4g}, and float16 ends at 65504"
    for name in unit.inputs:
        if name in constants:
            return f"it reads the constant {name}: {constants[name].because}"
        if name in observed.ranges and observed.ranges[name].over:
            return f"it reads numbers up to {observed.ranges[name].largest:.4g}, and float16 ends at 65504"
    for name in (*unit.outputs, *unit.inputs):
        r = observed.ranges.get(name)
        if r is not None and r.to_zero + r.subnormal > 0:
            what = "its result has" if name in unit.outputs else "it reads"
            return f"{what} numbers down to {r.smallest:.4g}, which float16 holds as 0 or with few digits"
    numbers = [observed.ranges[name].largest for name in unit.outputs if name in observed.ranges]
    return f"float16 rounds what it gives (up to {max(numbers, default=0.0):.4g}) too coarsely for what follows"


def _notes(model: PrecisionModel, observed: Observed, report: PrecisionReport, search: Search) -> list[str]:
    notes = []
    if model.functions:
        notes.append("the model has local functions, which ATC does not read: names are those of the file that optimize writes")
    halves = sum(1 for unit in model.units if any(model.is_half(name) for name in unit.outputs))
    if halves and not report.simulations[0].ok:
        notes.append(f"{halves} nodes are of a half type in the file: a list keeps the type that the file has, and does not make them float32")
    for index, largest in observed.inner.items():
        if largest >= FLOAT16.infinite_from and "Attention" in model.units[index].op:
            notes.append(f"inside of {model.units[index].op} {model.units[index].name} scores reach {largest:.4g}: with inner_precise = 1 the"
                         " kernel has them in float16")
    padded = sum(1 for case in search.cases if case.padding is not None and not case.padding.all())
    if padded:
        notes.append(f"{padded} of the inputs have padded tokens: what outputs are there does not count")
    if not report.simulations[0].ok and search.right_with_clipped_constants():
        notes.append("float16 is right without a list if constants beyond 65504 become 65504: the graph engine's own conversion does that"
                     " (hicann/ge:base/common/fp16_t/fp16_t.cc), and whether ATC uses it for all of these was not tried")
    if not search.in_time:
        notes.append("time ran out before the list was as small as it could be; --seconds N allows more")
    stuck = [u for u in model.units if atc_precision.why_not_float32(u, report.target) and any(
        n in observed.ranges and observed.ranges[n].over for n in u.outputs)]
    notes += [f"{u.op} {u.name} leaves float16 and cannot stay float32: {atc_precision.why_not_float32(u, report.target)}" for u in stuck[:5]]
    return notes


def _verdict(report: PrecisionReport, found: set[int] | None, spread: bool) -> str:
    simulation = report.simulations[0]
    inputs = f"{len(report.runs.cases)} input{'s' if len(report.runs.cases) != 1 else ''}"
    if simulation.ok:
        return (f"float16 is right on {inputs} without a list: the largest error is {simulation.worst().max_rel:.2g}, and"
                f" {simulation.tolerance:g} is allowed")
    worst = simulation.worst()
    wrong = f"{worst.lost} numbers of {worst.output} become NaN or infinite" if worst.lost else f"{worst.output} is off by {worst.max_rel:.2g}"
    if spread:
        return (f"float16 is off by {worst.max_rel:.2g}, and {simulation.tolerance:g} is allowed: rounding adds up over {report.nodes} nodes, and no"
                " few of them cause it; see whether a larger --tolerance will do")
    if found is None:
        return f"float16 is wrong ({wrong}), and no list of nodes makes it right"
    return (f"float16 is wrong ({wrong}); with {len(found)} of {report.nodes} nodes in float32 it is right: the largest error is"
            f" {simulation.worst(True).max_rel:.2g}")


def read_data(data: Data, model: PrecisionModel) -> list[Case]:
    """Returns the inputs in an .npz file, in all of a folder, or in dicts."""
    if isinstance(data, Mapping):
        return [_case("data", data, model)]
    if not isinstance(data, (str, os.PathLike)):
        return [_case(f"data {number}", arrays, model) for number, arrays in enumerate(data)]
    path = pathlib.Path(data)
    files = sorted(path.glob("*.npz")) if path.is_dir() else [path]
    if not files:
        raise VerifyError(f"{path} has no .npz file")
    cases = []
    for file in files:
        try:
            with np.load(file) as arrays:
                feeds = {name: arrays[name] for name in arrays.files}
        except (OSError, ValueError) as error:
            raise VerifyError(f"{file} cannot be read as .npz: {first_line(error)}") from None
        cases.append(_case(file.name, feeds, model))
    return cases


def _case(name: str, arrays: Mapping[str, Any], model: PrecisionModel) -> Case:
    feeds = {}
    for value in model.inputs:
        if value.name not in arrays:
            raise VerifyError(f"{name} has no array for the input {value.name}; it has {', '.join(arrays) or 'none'}")
        feeds[value.name] = np.asarray(arrays[value.name])
        found, wanted = feeds[value.name].dtype, type_name(value.type.tensor_type.elem_type)
        if found.name != wanted and not (wanted == "bfloat16" and found.kind == "f"):
            raise VerifyError(f"{name}: {value.name} is {found.name}, and the model takes {wanted}")
    return Case(name, feeds)


def seeded_cases(program: Program, given: Any, seed: int, dims: Sequence[str]) -> list[Case]:
    """Returns the inputs that verify makes, those that the model takes."""
    model = program.model.expanded
    entry, bindings = read_bindings(given) if isinstance(given, str) or given is None else (None, list(given))
    guessed = entry is None
    if entry is None:
        entry = guess_inputs.guess_entry(model)
    may_adjust = False
    if bindings is None:
        bindings = entry.get("bindings") or guess_inputs.guess_bindings(entry)
        may_adjust = guessed
        if dims:
            bindings = different(guess_inputs.within(entry, binding, dims) for binding in bindings)
    elif guessed:
        bindings = symbol_bindings(bindings, entry)
    cases, refused = [], ""
    for binding in bindings:
        binding = {**binding, "seed": int(binding.get("seed", 0)) + seed}
        others = (guess_inputs.within(entry, b, dims) for b in guess_inputs.alternatives(entry, binding, model)) if may_adjust else ()
        for candidate in (binding, *others):
            case = Case(candidate.get("name", "binding"), guess_inputs.make_inputs(entry, candidate))
            try:
                case.outputs = run(program, [Mode()], case.feeds, case.fixed)[0]
            except VerifyError as error:
                refused = refused or first_line(error)
                continue
            cases.append(case)
            break
    if not cases:
        raise VerifyError(f"the model takes no generated inputs ({refused}): give some with --data FILE")
    return cases


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="ascend-fuse precision", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("--tool", help="the ascend-fuse program (default: the one on PATH)")
    parser.add_argument("--target", default="ascend910b")
    parser.add_argument("--data", metavar="FILE")
    parser.add_argument("--seeded", action="store_true")
    parser.add_argument("--bindings", metavar="JSON")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--dim", metavar="NAME=RANGE", action="append", default=[])
    parser.add_argument("--tolerance", type=float)
    parser.add_argument("--lost-share", type=float, default=LOST_SHARE)
    parser.add_argument("--no-weights", action="store_true")
    parser.add_argument("--seconds", type=float, default=300.0)
    for flag in ("--keep-dtype", "--modify-mixlist", "--customize-dtypes", "--json"):
        parser.add_argument(flag, metavar="FILE", default="")
    parser.add_argument("--rules", metavar="FILE", action="append", default=[])
    parser.add_argument("--verbose", action="store_true")
    parser.add_argument("--progress", choices=WORDS, default="auto")
    options = parser.parse_args(arguments)
    try:
        with ProgressLine(options.progress) as line:
            report = analyse(options.model, data=options.data, seeded=options.seeded, bindings=options.bindings, seed=options.seed,
                             dims=options.dim, target=options.target, tolerance=options.tolerance, lost_share=options.lost_share,
                             weights=not options.no_weights, keep_dtype=options.keep_dtype, modify_mixlist=options.modify_mixlist,
                             customize_dtypes=options.customize_dtypes, seconds=options.seconds, tool=options.tool, rules=options.rules,
                             say=line.tell)
        if options.json and options.json != "-":
            pathlib.Path(options.json).write_text(report.to_json() + "\n")
    except (VerifyError, guess_inputs.CannotGuess, OSError) as error:
        print(f"precision: {error}", file=sys.stderr)
        return 1
    sys.stdout.write(report.to_json() + "\n" if options.json == "-" else report.to_text(options.verbose))
    return 0 if report.ok else 3


if __name__ == "__main__":
    sys.exit(main())
