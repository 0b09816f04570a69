"""Proof of an optimized model: the original and the expanded result, run side by side in ONNX Runtime.

    python3 -m ascend_fuse.verification original.onnx optimized.onnx --tool build/ascend-fuse

NPU nodes are turned back into standard operators by `ascend-fuse expand`, from the kernels'
documented formulas and not from the nodes that were matched. Both models run with every graph
optimization of ONNX Runtime off, on the same seeded inputs, under several bindings of the symbolic
dims. Outputs are compared by

    cosine    of the flattened tensors,
    max abs   max |a - b|,
    max rel   max |a - b| / max(max |a| over the tensor, 1e-30): relative to the largest value of
              the tensor, since single elements near 0 have no meaningful relative error,

where a is the original. Shapes, element types and the places of NaN and infinity have to be equal;
integers and booleans have to be equal in every element.

The same is done for every place that was rewritten, by itself (ascend_fuse.regions): it is fed with what the
original computes there, so that a mismatch points to one rewrite. Pass the fusion's own report (--report) to have the
regions called by its kinds and modules.

Exit codes: 0 every comparison is within tolerance, 1 an error, 3 a comparison is not.
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import json
import os
import pathlib
import subprocess
import sys
from typing import Any

# What is missing is said in main(), so that `import ascend_fuse.verification` fails with the module's own name.
try:
    import numpy as np
    import onnx
    import onnxruntime  # noqa: F401
except ImportError as error:  # pragma: no cover
    if __name__ != "__main__":
        raise
    print(
        f"verify needs the Python packages numpy, onnx and onnxruntime: {error}. "
        "Install them with: python3 -m pip install onnx onnxruntime",
        file=sys.stderr,
    )
    sys.exit(1)

from ascend_fuse import guess_inputs
from ascend_fuse.codes import say_if_codes
from ascend_fuse.compared_regions import region_comparer
from ascend_fuse.comparison import Comparison, Result, care_mask, compare, noise_of
from ascend_fuse.expanded import (CannotLoad, Expanded, Inlined, RefusedByAtc, VerifyError, find_tool, first_line, npu_nodes,
                                  open_session, read_graph)
from ascend_fuse.given_bindings import different, read_bindings, symbol_bindings
from ascend_fuse.progress import WORDS, ProgressLine
from ascend_fuse.session import run_elsewhere

_NO_KEY = "no allowed key"

# Set by the program where ONNX Runtime ended a first run of this module: inputs are tried in a process of their own.
ELSEWHERE_FIRST = "ASCEND_FUSE_ELSEWHERE_FIRST"

# How a note begins that says what ONNX Runtime did not run.
REFUSES = "the original model refuses"

# Operators that may give another result in every run; Dropout where it trains.
RANDOM = {"RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike", "Bernoulli", "Multinomial", "Dropout"}

# When --tolerance is not given: by the least precise float type in the original.
DEFAULT_TOLERANCES = {"float32": 1e-4, "float16": 1e-2, "bfloat16": 5e-2}


def least_precise(model) -> str:
    types = {t.data_type for t in model.graph.initializer}
    types |= {v.type.tensor_type.elem_type for v in (*model.graph.input, *model.graph.output)}
    types |= {a.i for n in model.graph.node if n.op_type == "Cast" for a in n.attribute if a.name == "to"}
    if onnx.TensorProto.BFLOAT16 in types:
        return "bfloat16"
    return "float16" if onnx.TensorProto.FLOAT16 in types else "float32"


def verify_models(
    original_path,
    optimized_path,
    *,
    tool=None,
    entry=None,
    bindings=None,
    seed=0,
    tolerance=None,
    report=None,
    rules=(),
    dims=(),
    regions=True,
    as_atc=None,
    say=lambda what, share: None,
) -> Result:
    """Compares two models; see the module's text.

    tool       the ascend-fuse program; needed when the optimized model has NPU nodes.
    entry      what the inputs mean (an entry of tests/zoo/manifest.json); guessed from the model when None.
    bindings   a list of bindings of that entry; its own, or guessed ones, when None.
    seed       added to the seed of every binding.
    tolerance  bound of max rel; by element type (DEFAULT_TOLERANCES) when None.
    report     the report of the fusion, a dict or the path of its JSON: names the don't-care rows and the
               regions. When None, the tool is asked what it assumes of the original model.
    rules      paths of files with reference rules, for nodes of your own.
    dims       what --dim bound when the model was optimized, "heads=8"; guessed bindings keep to it. Default: what the
               report says.
    regions    compare what was rewritten place by place, too.
    as_atc     flags that name a target (["--target", "ascend910b", "--cann", "8.1"]): the optimized model is taken as
               this ATC reads it, misreadings included, and not as ONNX defines it. Regions are not compared then.
    say        is told what is being done, and what part of it is over.
    """
    original_path, optimized_path = pathlib.Path(original_path), pathlib.Path(optimized_path)
    original = read_graph(original_path)
    optimized = read_graph(optimized_path)
    report = _read_report(report)
    dims = dims or (report or {}).get("target", {}).get("dims", ())
    guessed = entry is None
    if entry is None:
        entry = guess_inputs.guess_entry(original)
    may_adjust = False
    if bindings is None:
        bindings = entry.get("bindings")
        if bindings is None:
            bindings = guess_inputs.guess_bindings(entry)
            may_adjust = guessed
            if dims:
                bindings = different(guess_inputs.within(entry, b, dims) for b in bindings)
    if not bindings:
        raise VerifyError("no bindings were given, so nothing can be compared")
    if tolerance is None:
        tolerance = DEFAULT_TOLERANCES[least_precise(original)]
    result = Result(str(original_path), str(optimized_path), float(tolerance))
    if guessed:
        meanings = ", ".join(f"{s['name']}: {s['meaning']}" for s in entry["inputs"])
        result.notes.append(f"the meaning of the inputs was guessed ({meanings})")
    _compare_interfaces(original, optimized, dims, result)
    listed = report is None and npu_nodes(optimized.graph) > 0
    if listed:
        report = _listed(original_path, tool)
    dont_care = _dont_care_rows(report)
    if dont_care:
        result.notes.append("rows with no allowed key are don't-care, as the report of the fusion assumes")

    say("open the models", 0.0)
    session = open_session(original_path, "the original")
    regions = regions and as_atc is None
    if regions and original.functions and not find_tool(tool):
        result.notes.append("the regions were not compared: --tool must name the program that inlines local functions")
        regions = False
    with contextlib.ExitStack() as files:
        try:
            expanded_path = files.enter_context(Expanded(optimized_path, optimized, tool, result, rules, dims, as_atc))
            expanded_session = open_session(expanded_path, "the expanded model")
        except (RefusedByAtc, CannotLoad) as error:
            if as_atc is None:
                runs = (_run_original(session, original_path, entry, binding, original if may_adjust else None, dims, result)
                        for binding in bindings)
                if any(expected is not None for _, _, expected in runs):
                    raise
                raise _refuses_all(entry, result) from None
            result.comparisons.append(Comparison("(model)", "ATC", because=first_line(error)))
            return result
        inlined_path = files.enter_context(Inlined(original_path, original, tool, result, regions))
        compare_regions = None
        if regions:
            inlined = read_graph(inlined_path)
            compare_regions = region_comparer(inlined_path, inlined, expanded_path, optimized, report, listed)
        noise = noise_of(original)
        for number, binding in enumerate(bindings):
            binding = {**binding, "seed": int(binding.get("seed", 0)) + int(seed)}
            say(f"compare, {binding.get('name', 'binding')}", (number + 1) / (len(bindings) + 1))
            used, feeds, expected = _run_original(session, original_path, entry, binding, original if may_adjust else None, dims, result)
            if expected is None:
                continue
            failed = _compare_binding(expanded_session, entry, used, feeds, expected, session, dont_care, noise, result)
            if failed:
                _say_if_random(session, feeds, expected, original, failed)
            if compare_regions is not None:
                name = used.get("name", "binding")
                try:
                    result.regions += compare_regions(name, feeds, result.tolerance)
                except Exception as error:  # the outputs, compared above, have the say
                    result.notes.append(f"{name}: the regions were not compared: {first_line(error)}")
    # Other bindings, without padding before the first token, must have shown such an output to be equal.
    for comparison in result.undecided:
        if any(c.ok and c.output == comparison.output for c in result.comparisons):
            result.notes.append(
                f"{comparison.binding} {comparison.output}: not compared, it may be taken from a padded query"
            )
        else:
            result.comparisons.append(comparison)
    say_if_codes(original, result)
    if not result.comparisons:
        raise _refuses_all(entry, result)
    return result


def _refuses_all(entry, result: Result) -> VerifyError:
    example = json.dumps([dict.fromkeys(guess_inputs.symbols(entry), 1)])
    refusals = [note for note in result.notes if note.startswith(REFUSES)]
    others = [note for note in result.notes if not note.startswith(REFUSES)]
    more = [f"and {len(refusals) - 1} more"] if len(refusals) > 1 else []
    return VerifyError("the original model refused every binding, so nothing can be compared; give sizes that it takes with"
                       f" --bindings '{example}': " + "; ".join([*others, *refusals[:1], *more]))


def _signature(values) -> list[tuple[str, int, list[str]]]:
    result = []
    for value in values:
        tensor = value.type.tensor_type
        dims = [str(d.dim_value) if d.HasField("dim_value") else d.dim_param for d in tensor.shape.dim]
        result.append((value.name, tensor.elem_type, dims))
    return result


def _bound(before: list[str], after: list[str], numbers: dict[str, str], outputs: bool) -> list[str]:
    """Returns the dims of `before` as --fix writes them: a symbol that is bound to a number may be that number, and of an
    output, whose dims may depend on it, any symbol a number."""
    if not numbers or len(before) != len(after):
        return before
    return [b if a == b else a if numbers.get(b) == a or (outputs and a.isdigit() and not b.isdigit()) else b
            for b, a in zip(before, after)]


def _compare_interfaces(original, optimized, dims, result: Result) -> None:
    """Graph inputs and outputs never change, but for dims that --fix bound: a difference is an unequal comparison."""
    numbers = {name: size for name, _, size in (text.partition("=") for text in dims) if size.isdigit()}
    initializers = {t.name for t in original.graph.initializer}
    for word in ("input", "output"):
        before = [s for s in _signature(getattr(original.graph, word)) if s[0] not in initializers]
        after = [s for s in _signature(getattr(optimized.graph, word)) if s[0] not in initializers]
        if len(before) == len(after):
            before = [(name, kind, _bound(shape, written, numbers, word == "output"))
                      for (name, kind, shape), (_, _, written) in zip(before, after)]
        if before != after:
            because = f"{word}s were {before}, now {after}"
            result.comparisons.append(Comparison("(graph)", f"{word}s", because=because))


def _run_original(session, path, entry, binding, model, dims, result: Result):
    """Returns (binding, feeds, outputs); outputs is None when every variant was refused. Others than `binding`, within
    `dims`, are tried where `model`, the original in the file `path`, is given."""
    first_error = None
    candidates = iter((binding,))
    if model is not None:
        others = (guess_inputs.within(entry, b, dims) for b in guess_inputs.alternatives(entry, binding, model))
        candidates = itertools.chain(candidates, others)
    for candidate in candidates:
        feeds = guess_inputs.make_inputs(entry, candidate)
        try:
            if ELSEWHERE_FIRST in os.environ:
                run_elsewhere(path, feeds)
            outputs = session.run(None, feeds)
        except Exception as error:
            first_error = first_error or error
            continue
        if candidate is not binding:
            result.notes.append(
                f"the original refused binding {binding['name']}; {candidate['name']} was used"
            )
        return candidate, feeds, outputs
    sentence = f"{REFUSES} binding {binding.get('name', '')}: {first_line(first_error)}"
    if model is None:
        raise VerifyError(sentence)
    result.notes.append(sentence)
    return binding, None, None


def _compare_binding(
    expanded_session, entry, binding, feeds, expected, session, dont_care: bool, noise: dict[str, float], result: Result
) -> list[Comparison]:
    """Compares all outputs on one binding, and returns the comparisons of outputs that are not equal."""
    name = binding.get("name", "binding")
    names = [o.name for o in session.get_outputs()]
    accepted = {i.name for i in expanded_session.get_inputs()}
    try:
        actual = dict(
            zip(
                [o.name for o in expanded_session.get_outputs()],
                expanded_session.run(None, {k: v for k, v in feeds.items() if k in accepted}),
            )
        )
    except Exception as error:
        result.comparisons.append(
            Comparison(
                name,
                "(run)",
                because=f"the expanded model refuses what the original accepts: {first_line(error)}",
            )
        )
        return []
    mask, queries = _mask(entry, feeds)
    failed = []
    for output, a in zip(names, expected):
        if output not in actual:
            result.comparisons.append(
                Comparison(name, output, because="the optimized model has no such output")
            )
            continue
        care = care_mask(output, np.shape(a), mask, queries) if dont_care else None
        comparison = compare(name, output, a, actual[output], result.tolerance, care, noise.get(output, 0.0))
        # Without an axis of tokens nothing can be left out, and a padded query may have been pooled.
        pooled = dont_care and care is None and mask is not None and bool(np.any(mask[:, 0] == 0))
        if pooled and not comparison.ok:
            result.undecided.append(comparison)
        else:
            result.comparisons.append(comparison)
            if not comparison.ok:
                failed.append(comparison)
    return failed


def _say_if_random(session, feeds, expected, original, failed: list[Comparison]) -> None:
    """Says of outputs that are not equal whether the original agrees with itself: a model that was exported in training
    mode does not."""
    names = [o.name for o in session.get_outputs()]
    again = dict(zip(names, session.run(None, feeds)))
    before = dict(zip(names, expected))
    for comparison in failed:
        name = comparison.output
        if np.array_equal(before[name], again[name], equal_nan=before[name].dtype.kind == "f"):
            continue
        random = [n for n in original.graph.node if n.op_type in RANDOM]
        found = f" (it computes {random[0].op_type} at {random[0].name or random[0].output[0]})" if random else ""
        comparison.because = (
            f"the original itself gives another {name} in every run{found}: export it in inference mode, with"
            " module.eval()"
        )


def _mask(entry, feeds):
    """Returns the padding mask [B, S_kv] and the number of new tokens, or (None, 0)."""
    masks = [feeds[s["name"]] for s in entry["inputs"] if s["meaning"] == "attention_mask"]
    if len(masks) != 1 or masks[0].ndim != 2:
        return None, 0
    ids = [
        feeds[s["name"]]
        for s in entry["inputs"]
        if s["meaning"] in ("ids", "position_ids") and feeds[s["name"]].ndim == 2
    ]
    return masks[0] != 0, int(ids[0].shape[1]) if ids else int(masks[0].shape[1])


def _listed(original_path: pathlib.Path, tool):
    """Returns the report of `list` on the original, or None without the tool."""
    tool = find_tool(tool)
    if tool is None:
        return None
    try:
        run = subprocess.run(
            [str(tool), "list", str(original_path), "--json", "-"], capture_output=True, text=True, check=False
        )
    except OSError as error:
        raise VerifyError(f"{tool} cannot be started: {error}") from None
    return json.loads(run.stdout) if run.returncode == 0 and run.stdout.startswith("{") else None


def _read_report(report) -> dict[str, Any] | None:
    if report is None or isinstance(report, dict):
        return report
    try:
        return json.loads(pathlib.Path(report).read_text())
    except (OSError, ValueError) as error:
        raise VerifyError(f"the report {report} cannot be read: {error}") from None


def _dont_care_rows(report) -> bool:
    if report is None:
        return False
    sentences = [text for site in report.get("sites", []) for text in site.get("assumptions", [])]
    sentences += [warning["message"] for warning in report.get("warnings", [])]
    return any(_NO_KEY in text for text in sentences)


def _target_flags(options) -> list[str]:
    flags = ["--plugin"] if options.plugin else []
    for name in ("target", "cann", "precision_mode"):
        if getattr(options, name) is not None:
            flags += [f"--{name.replace('_', '-')}", getattr(options, name)]
    return flags


def main(arguments=None) -> int:
    parser = argparse.ArgumentParser(
        prog="ascend-fuse verify", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("original")
    parser.add_argument("optimized")
    parser.add_argument("--tool", help="the ascend-fuse program (default: the one on PATH)")
    parser.add_argument(
        "--bindings",
        default="auto",
        metavar="JSON",
        help=(
            'auto, or a list like [{"batch": 2, "seq": 5, "padding": "left"}], or a manifest entry; text or'
            " file"
        ),
    )
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--tolerance",
        type=float,
        default=None,
        help=f"bound of max rel; default by type: {DEFAULT_TOLERANCES}",
    )
    parser.add_argument("--json", metavar="FILE", help="write the result as JSON; - is stdout")
    parser.add_argument(
        "--report", metavar="FILE", help="the JSON report of the fusion: don't-care rows, names of regions"
    )
    parser.add_argument(
        "--rules", metavar="FILE", action="append", default=[], help="reference rules of your own nodes"
    )
    parser.add_argument(
        "--dim", metavar="NAME=RANGE", action="append", default=[], help="what --dim bound when the model was optimized"
    )
    parser.add_argument("--no-regions", action="store_true", help="compare the outputs of the models only")
    parser.add_argument(
        "--as-atc",
        action="store_true",
        help="take the optimized model as ATC of --target and --cann reads it, misreadings included",
    )
    for flag, meaning in (("--target", "the chip"), ("--cann", "the CANN version"), ("--precision-mode", "what atc is given")):
        parser.add_argument(flag, metavar="NAME", help=f"with --as-atc: {meaning}")
    parser.add_argument("--plugin", action="store_true", help="with --as-atc: the op plugin is installed")
    parser.add_argument("--as-half", action="store_true", help="run the optimized model in float16, as the chip does")
    parser.add_argument("--keep-dtype", metavar="FILE", default="", help="with --as-half: the nodes that stay float32")
    parser.add_argument("--progress", choices=WORDS, default="auto", help="on stderr, of what takes over a second")
    options = parser.parse_args(arguments)
    try:
        if options.as_half and options.as_atc:
            raise VerifyError("--as-half and --as-atc are two comparisons: give one of them")
        with ProgressLine(options.progress) as line:
            result = _as_half(options, line.tell) if options.as_half else _as_told(options, line.tell)
    except (VerifyError, guess_inputs.CannotGuess) as error:
        print(f"verify: {error}", file=sys.stderr)
        return 1
    return _print(result, options)


def _as_told(options, say) -> Result:
    """The comparison in the types of the models."""
    entry, bindings = read_bindings(options.bindings)
    if entry is None and bindings is not None:
        # The shapes are the user's, the meanings are guessed.
        bindings = symbol_bindings(
            bindings, guess_inputs.guess_entry(read_graph(pathlib.Path(options.original)))
        )
    return verify_models(
        options.original,
        options.optimized,
        tool=options.tool,
        entry=entry,
        bindings=bindings,
        seed=options.seed,
        tolerance=options.tolerance,
        report=options.report,
        rules=options.rules,
        dims=options.dim,
        regions=not options.no_regions,
        as_atc=_target_flags(options) if options.as_atc else None,
        say=say,
    )


def _as_half(options, say) -> Result:
    """The comparison in float16; see ascend_fuse.half_comparison."""
    from ascend_fuse.half_comparison import verify_as_half

    original, optimized = pathlib.Path(options.original), pathlib.Path(options.optimized)
    report = _read_report(options.report)
    dims = options.dim or (report or {}).get("target", {}).get("dims", ())
    bindings = None if options.bindings == "auto" else options.bindings
    return verify_as_half(original, optimized, target=options.target or "ascend910b", keep_dtype=options.keep_dtype, bindings=bindings,
                          seed=options.seed, dims=dims, tolerance=options.tolerance, tool=options.tool,
                          rules=options.rules, say=say)


def _print(result: Result, options) -> int:
    if options.json == "-":
        sys.stdout.write(result.to_json() + "\n")
    else:
        sys.stdout.write(result.to_text())
        if options.json:
            pathlib.Path(options.json).write_text(result.to_json() + "\n")
    return 0 if result.ok else 3


if __name__ == "__main__":
    sys.exit(main())
