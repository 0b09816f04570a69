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
original computes there, so that an error has an address. Pass the fusion's own report (--report) to have the
regions called by its kinds and modules.

Exit codes: 0 every comparison is within tolerance, 1 an error, 3 a comparison is not.
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import itertools
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
from typing import Any

# What is missing is said in main(), so that `import ascend_fuse.verification` fails with the module's own name.
try:
    import numpy as np
    import onnx
    import onnxruntime
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
from ascend_fuse.regions import Regions
from ascend_fuse.session import plain_session

_TINY = 1e-30
_NO_KEY = "no allowed key"

# Operators that may give another result in every run; Dropout where it trains.
RANDOM = {"RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike", "Bernoulli", "Multinomial", "Dropout"}

# When --tolerance is not given: by the least precise float type in the original.
DEFAULT_TOLERANCES = {"float32": 1e-4, "float16": 1e-2, "bfloat16": 5e-2}


class VerifyError(Exception):
    """Something that keeps the comparison from being made; a sentence."""


class CannotLoad(VerifyError):
    """ONNX Runtime does not take a model; a sentence."""


class RefusedByAtc(Exception):
    """ATC would not compile the model, or what it would compute is not known; a sentence."""


@dataclasses.dataclass
class Comparison:
    """One output under one binding."""

    binding: str
    output: str
    shape: list[int] = dataclasses.field(default_factory=list)
    dtype: str = ""
    cosine: float = 0.0
    max_abs: float = 0.0
    max_rel: float = 0.0
    excluded: int = 0  # padded positions
    compared: int = 0  # elements
    ok: bool = False
    because: str = ""


@dataclasses.dataclass
class RegionComparison(Comparison):
    """One rewritten place under one binding; `output` is the value that it gives."""

    kinds: list[str] = dataclasses.field(default_factory=list)
    rules: list[str] = dataclasses.field(default_factory=list)
    nodes: list[str] = dataclasses.field(default_factory=list)
    module: str = ""

    @property
    def group(self) -> str:
        return "+".join(self.kinds or ["rewritten"]) + (f" -> {'+'.join(self.nodes)}" if self.nodes else "")


@dataclasses.dataclass
class Result:
    original: str
    optimized: str
    tolerance: float
    comparisons: list[Comparison] = dataclasses.field(default_factory=list)
    notes: list[str] = dataclasses.field(default_factory=list)
    undecided: list[Comparison] = dataclasses.field(default_factory=list)
    regions: list[RegionComparison] = dataclasses.field(default_factory=list)
    max_rel_means: str = "max |a - b| / max(max |a| over the tensor, 1e-30), a being the original"

    @property
    def ok(self) -> bool:
        return bool(self.comparisons) and all(c.ok for c in (*self.comparisons, *self.regions))

    def to_json(self) -> str:
        return json.dumps({"ok": self.ok, **dataclasses.asdict(self)}, indent=1)

    def to_text(self) -> str:
        rows = [("binding", "output", "type and shape", "cosine", "max abs", "max rel", "")]
        for c in self.comparisons:
            shape = f"{c.dtype}{c.shape}"
            if c.because and not c.dtype:
                rows.append((c.binding, c.output, "", "", "", "", f"NOT EQUAL: {c.because}"))
                continue
            verdict = "ok" if c.ok else f"NOT EQUAL: {c.because}"
            if c.excluded:
                verdict += f" (excluded {c.excluded} padded positions)"
            rows.append(
                (
                    c.binding,
                    c.output,
                    shape,
                    f"{c.cosine:.9f}",
                    f"{c.max_abs:.3g}",
                    f"{c.max_rel:.3g}",
                    verdict,
                )
            )
        widths = [max(len(row[i]) for row in rows) for i in range(6)]
        lines = []
        for row in rows:
            left = [row[i].ljust(widths[i]) for i in range(3)]
            right = [row[i].rjust(widths[i]) for i in range(3, 6)]
            lines.append("  ".join(left + right + [row[6]]).rstrip())
        lines += self._region_lines()
        lines += [f"note: {note}" for note in self.notes]
        lines.append(f"max rel is {self.max_rel_means}")
        bad = sum(not c.ok for c in (*self.comparisons, *self.regions))
        count = len(self.comparisons) + len(self.regions)
        if not self.comparisons:
            lines.append("NOTHING WAS COMPARED")
        elif bad:
            lines.append(
                f"NOT EQUAL: {bad} of {count} comparisons are outside the tolerance of"
                f" {self.tolerance:g}"
            )
        else:
            lines.append(
                f"equal: {count} comparisons within the tolerance of {self.tolerance:g}"
            )
        return "\n".join(lines) + "\n"

    def _region_lines(self) -> list[str]:
        """One line a kind of region, with its worst; one for every region that is not equal."""
        groups: dict[str, list[RegionComparison]] = {}
        for region in self.regions:
            groups.setdefault(region.group, []).append(region)
        rows = []
        for group, members in groups.items():
            worst = max(members, key=lambda c: c.max_rel)
            places = len({c.output for c in members})
            rows.append((f"{places} x {group}", f"max rel {worst.max_rel:.3g}", f"at {worst.output}, {worst.binding}"))
        widths = [max((len(row[i]) for row in rows), default=0) for i in range(2)]
        lines = ["regions, fed with what the original computes"] if rows else []
        lines += [f"  {a.ljust(widths[0])}  {b.ljust(widths[1])}  {c}" for a, b, c in rows]
        for region in self.regions:
            if not region.ok:
                place = f" ({region.module})" if region.module else ""
                lines.append(f"  NOT EQUAL: {region.group} at {region.output}{place}, {region.binding}: {region.because}")
        return lines


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
    dims       what --dim bound when the model was optimized, "heads=8"; guessed bindings keep to it.
    regions    compare what was rewritten place by place, too.
    as_atc     flags that name a target (["--target", "ascend910b", "--cann", "8.1"]): the optimized model is taken as
               this ATC reads it, misreadings included, and not as ONNX defines it. Regions are not compared then.
    """
    original_path, optimized_path = pathlib.Path(original_path), pathlib.Path(optimized_path)
    original = _read_graph(original_path)
    optimized = _read_graph(optimized_path)
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
                bindings = _different(guess_inputs.within(entry, b, dims) for b in bindings)
    if not bindings:
        raise VerifyError("no bindings were given, so nothing can be compared")
    if tolerance is None:
        tolerance = DEFAULT_TOLERANCES[_least_precise(original)]
    result = Result(str(original_path), str(optimized_path), float(tolerance))
    if guessed:
        meanings = ", ".join(f"{s['name']}: {s['meaning']}" for s in entry["inputs"])
        result.notes.append(f"the meaning of the inputs was guessed ({meanings})")
    _compare_interfaces(original, optimized, result)
    if report is None and _npu_nodes(optimized.graph) > 0:
        report = _listed(original_path, tool)
    report = _read_report(report)
    dont_care = _dont_care_rows(report)
    if dont_care:
        result.notes.append("rows with no allowed key are don't-care, as the report of the fusion assumes")

    session = _session(original_path, "the original")
    regions = regions and as_atc is None
    if regions and original.functions and not find_tool(tool):
        result.notes.append("the regions were not compared: --tool must name the program that inlines local functions")
        regions = False
    with contextlib.ExitStack() as files:
        try:
            expanded_path = files.enter_context(_expanded(optimized_path, optimized, tool, result, rules, dims, as_atc))
            expanded_session = _session(expanded_path, "the expanded model")
        except (RefusedByAtc, CannotLoad) as error:
            if as_atc is None:
                raise
            result.comparisons.append(Comparison("(model)", "ATC", because=_first_line(error)))
            return result
        inlined_path = files.enter_context(_inlined(original_path, original, tool, result, regions))
        compare_regions = None
        if regions:
            inlined = _read_graph(inlined_path)
            compare_regions = region_comparer(inlined_path, inlined, expanded_path, optimized, report)
        for binding in bindings:
            binding = {**binding, "seed": int(binding.get("seed", 0)) + int(seed)}
            used, feeds, expected = _run_original(session, entry, binding, original if may_adjust else None, dims, result)
            if expected is None:
                continue
            failed = _compare_binding(expanded_session, entry, used, feeds, expected, session, dont_care, result)
            if failed:
                _say_if_random(session, feeds, expected, original, failed)
            if compare_regions is not None:
                name = used.get("name", "binding")
                try:
                    result.regions += compare_regions(name, feeds, result.tolerance)
                except Exception as error:  # the outputs, compared above, have the say
                    result.notes.append(f"{name}: the regions were not compared: {_first_line(error)}")
    # Other bindings, without padding before the first token, must have shown such an output to be equal.
    for comparison in result.undecided:
        if any(c.ok and c.output == comparison.output for c in result.comparisons):
            result.notes.append(
                f"{comparison.binding} {comparison.output}: not compared, it may be taken from a padded query"
            )
        else:
            result.comparisons.append(comparison)
    if not result.comparisons:
        example = json.dumps([dict.fromkeys(guess_inputs.symbols(entry), 1)])
        raise VerifyError(
            "the original model refused every binding; give sizes that it takes with"
            f" --bindings '{example}': " + "; ".join(result.notes)
        )
    return result


def _read_graph(path: pathlib.Path):
    try:
        return onnx.load(str(path), load_external_data=False)
    except FileNotFoundError:
        raise VerifyError(f"{path} does not exist") from None
    except Exception as error:
        raise VerifyError(f"{path} cannot be read as an ONNX model: {error}") from None


def _least_precise(model) -> str:
    types = {t.data_type for t in model.graph.initializer}
    types |= {v.type.tensor_type.elem_type for v in (*model.graph.input, *model.graph.output)}
    types |= {a.i for n in model.graph.node if n.op_type == "Cast" for a in n.attribute if a.name == "to"}
    if onnx.TensorProto.BFLOAT16 in types:
        return "bfloat16"
    return "float16" if onnx.TensorProto.FLOAT16 in types else "float32"


def _signature(values) -> list[tuple[str, int, list[str]]]:
    result = []
    for value in values:
        tensor = value.type.tensor_type
        dims = [str(d.dim_value) if d.HasField("dim_value") else d.dim_param for d in tensor.shape.dim]
        result.append((value.name, tensor.elem_type, dims))
    return result


def _compare_interfaces(original, optimized, result: Result) -> None:
    """Graph inputs and outputs never change: a difference is an unequal comparison."""
    initializers = {t.name for t in original.graph.initializer}
    for word in ("input", "output"):
        before = [s for s in _signature(getattr(original.graph, word)) if s[0] not in initializers]
        after = [s for s in _signature(getattr(optimized.graph, word)) if s[0] not in initializers]
        if before != after:
            because = f"{word}s were {before}, now {after}"
            result.comparisons.append(Comparison("(graph)", f"{word}s", because=because))


def _is_npu(node) -> bool:
    return node.domain == "npu" or node.op_type.startswith("NPU")


def _npu_nodes(graph) -> int:
    count = 0
    for node in graph.node:
        count += _is_npu(node)
        for attribute in node.attribute:
            if attribute.HasField("g"):
                count += _npu_nodes(attribute.g)
    return count


def _has_external_data(model) -> bool:
    return any(t.data_location == onnx.TensorProto.EXTERNAL for t in model.graph.initializer)


class _expanded:
    """The path of the optimized model without NPU nodes; temporary files are removed again."""

    def __init__(self, path: pathlib.Path, model, tool, result: Result, rules=(), dims=(), as_atc=None):
        self.path, self.model, self.tool, self.result = path, model, tool, result
        self.flags = [word for rule in rules for word in ("--rules", str(rule))]
        self.flags += [word for dim in dims for word in ("--dim", dim)]
        self.as_atc = as_atc is not None
        if self.as_atc:
            self.flags += ["--as-atc", *as_atc]
        self.folder: str | None = None
        self.file: pathlib.Path | None = None

    def __enter__(self) -> pathlib.Path:
        count = _npu_nodes(self.model.graph)
        if count == 0 and not self.as_atc:
            self.result.notes.append("the optimized model has no NPU nodes: it ran as it is")
            return self.path
        self._expand(count)
        left = _npu_nodes(_read_graph(self.file).graph)
        if left:
            self.__exit__()
            raise VerifyError(f"ascend-fuse expand left {left} NPU nodes in the model")
        self.result.notes.append(f"{count} NPU nodes were expanded to standard operators")
        if self.as_atc:
            self.result.notes.append("the optimized model ran as ATC reads it")
        return self.file

    def _expand(self, count: int) -> None:
        tool = find_tool(self.tool)
        if tool is None:
            raise VerifyError(
                f"{self.path} has {count} NPU nodes; --tool must name the ascend-fuse program that expands"
                " them"
            )
        if _has_external_data(self.model):  # found beside the model only
            self.file = self.path.with_name(f"{self.path.stem}.expanded-{os.getpid()}-{id(self)}.onnx")
        else:
            self.folder = tempfile.mkdtemp(prefix="ascend-fuse-")
            self.file = pathlib.Path(self.folder) / "expanded.onnx"
        try:
            run = subprocess.run(
                [str(tool), "expand", str(self.path), "-o", str(self.file), "--quiet", *self.flags],
                capture_output=True,
                text=True,
                check=False,
            )
        except OSError as error:
            self.__exit__()
            raise VerifyError(f"{tool} cannot be started: {error}") from None
        if self.as_atc and run.returncode == 3:
            self.__exit__()
            raise RefusedByAtc(run.stderr.strip().removeprefix("ascend-fuse: "))
        if run.returncode != 0 or not self.file.exists():
            self.__exit__()
            raise VerifyError(
                f"{tool} expand failed with exit code {run.returncode}:"
                f" {run.stderr.strip() or run.stdout.strip()}"
            )

    def __exit__(self, *_):
        if self.file is not None:
            self.file.unlink(missing_ok=True)
        if self.folder is not None:
            shutil.rmtree(self.folder, ignore_errors=True)


class _inlined(_expanded):
    """The path of the original without calls of local functions: its inner values are those of the optimized model."""

    def __init__(self, path: pathlib.Path, model, tool, result: Result, wanted: bool):
        super().__init__(path, model, tool, result)
        self.wanted = wanted and len(model.functions) > 0

    def __enter__(self) -> pathlib.Path:
        if not self.wanted:
            return self.path
        self._expand(0)
        return self.file


def _session(path, what: str):
    try:
        return plain_session(path)
    except Exception as error:
        raise CannotLoad(f"ONNX Runtime cannot load {what}: {error}") from None


def region_comparer(original_path, original, expanded_path, optimized, report):
    """Returns a function (name of the binding, feeds, tolerance) -> comparisons of all regions; None without any."""
    regions = Regions(original, _read_graph(pathlib.Path(expanded_path)), optimized, report)
    if not regions.regions:
        return None
    # Beside the model, where its external data is found.
    probed = _session_of_model(regions.probed_original(), original_path, "the original with inner values as outputs")
    compare_values = region_runner(regions, expanded_path)

    def compare_all(binding: str, feeds, tolerance: float) -> list[RegionComparison]:
        names = [o.name for o in probed.get_outputs()]
        return compare_values(binding, {**feeds, **dict(zip(names, probed.run(None, feeds)))}, tolerance)

    return compare_all


def region_runner(regions: Regions, expanded_path):
    """Returns a function (name of the binding, values of the original, tolerance) -> comparisons of the regions. The
    values are those of the original's inputs and of all `regions.probes`."""
    sessions: list[Any] = []

    def compare_values(binding: str, values, tolerance: float) -> list[RegionComparison]:
        if not sessions:
            model = regions.region_model(values)
            sessions.append(_session_of_model(model, expanded_path, "the regions"))
        session = sessions[0]
        found = session.run(None, {i.name: values[i.name] for i in session.get_inputs()})
        found = dict(zip([o.name for o in session.get_outputs()], found))
        comparisons = []
        for region, a, b, care in regions.compared(values, found):
            one = compare(binding, region.output, a, b, tolerance, care)
            named = {name: getattr(region, name) for name in ("kinds", "rules", "nodes", "module")}
            comparisons.append(RegionComparison(**vars(one), **named))
        return comparisons

    return compare_values


def _session_of_model(model, beside, what: str):
    """A session of a model in memory; external data is looked for in the folder of `beside`."""
    if not _has_external_data(model):
        return _session(model.SerializeToString(), what)
    path = pathlib.Path(beside).with_name(f"{pathlib.Path(beside).stem}.regions-{os.getpid()}.onnx")
    try:
        path.write_bytes(model.SerializeToString())
        return _session(path, what)
    finally:
        path.unlink(missing_ok=True)


def _different(bindings) -> list:
    """The bindings without those that have the shapes and the padding of one before."""
    found: dict[str, Any] = {}
    for binding in bindings:
        found.setdefault(json.dumps([binding["shapes"], binding["padding"]]), binding)
    return list(found.values())


def _run_original(session, entry, binding, model, dims, result: Result):
    """Returns (binding, feeds, outputs); outputs is None when every variant was refused. Others than `binding`, within
    `dims`, are tried where `model`, the original, is given."""
    first_error = None
    candidates = iter((binding,))
    if model is not None:
        others = (guess_inputs.within(entry, b, dims) for b in guess_inputs.alternatives(entry, binding, model))
        candidates = itertools.chain(candidates, others)
    for candidate in candidates:
        feeds = guess_inputs.make_inputs(entry, candidate)
        try:
            outputs = session.run(None, feeds)
        except Exception as error:
            first_error = first_error or error
            continue
        if candidate is not binding:
            result.notes.append(
                f"the original refused binding {binding['name']}; {candidate['name']} was used"
            )
        return candidate, feeds, outputs
    sentence = f"the original model refuses binding {binding.get('name', '')}: {_first_line(first_error)}"
    if model is None:
        raise VerifyError(sentence)
    result.notes.append(sentence)
    return binding, None, None


def _compare_binding(
    expanded_session, entry, binding, feeds, expected, session, dont_care: bool, result: Result
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
                because=f"the expanded model refuses what the original accepts: {_first_line(error)}",
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
        comparison = compare(name, output, a, actual[output], result.tolerance, care)
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


def compare(binding: str, output: str, a, b, tolerance: float, care=None) -> Comparison:
    """Compares two arrays; `care` is False where any value will do, and broadcasts to them."""
    a, b = np.asarray(a), np.asarray(b)
    result = Comparison(binding, output, list(a.shape), str(a.dtype))
    if a.shape != b.shape:
        result.because = f"shape {list(a.shape)} became {list(b.shape)}"
        return result
    if a.dtype != b.dtype:
        result.because = f"type {a.dtype} became {b.dtype}"
        return result
    if care is not None:
        result.excluded = int(care.size - np.count_nonzero(care))
        full = np.broadcast_to(care, a.shape)
        a, b = a[full], b[full]
    result.compared = int(a.size)
    if a.size == 0:
        result.cosine, result.ok = 1.0, result.excluded == 0
        result.because = "" if result.ok else "every position is padding, so nothing was compared"
        return result
    if not np.issubdtype(a.dtype, np.floating):
        different = int(np.count_nonzero(a != b))
        if np.issubdtype(a.dtype, np.number):
            result.max_abs = float(np.max(np.abs(a.astype(np.float64) - b.astype(np.float64))))
        result.max_rel = 1.0 if different else 0.0
        result.cosine = 1.0 if not different else 0.0
        result.ok = different == 0
        result.because = "" if result.ok else f"{different} of {a.size} elements differ"
        return result
    a, b = a.astype(np.float64).ravel(), b.astype(np.float64).ravel()
    finite = np.isfinite(a)
    if not np.array_equal(finite, np.isfinite(b)) or not np.array_equal(
        a[~finite], b[~finite], equal_nan=True
    ):
        result.max_abs = result.max_rel = float("inf")
        result.because = (
            f"NaN or infinity in other places: {int(np.count_nonzero(~finite))} before,"
            f" {int(np.count_nonzero(~np.isfinite(b)))} after"
        )
        return result
    a, b = a[finite], b[finite]
    norms = float(np.linalg.norm(a)) * float(np.linalg.norm(b))
    result.cosine = float(np.dot(a, b) / norms) if norms > 0 else float(not np.any(a) and not np.any(b))
    result.max_abs = float(np.max(np.abs(a - b))) if a.size else 0.0
    result.max_rel = result.max_abs / max(float(np.max(np.abs(a))) if a.size else 0.0, _TINY)
    result.ok = result.max_rel <= tolerance
    if not result.ok:
        result.because = f"max rel {result.max_rel:.3g} is more than {tolerance:g}"
    return result


def care_mask(output: str, shape: tuple[int, ...], mask, queries: int):
    """Returns which positions of an output matter when padded queries do not: None for all of them.

    An output over the new tokens ([B, S_q, ...], or scores [B, heads, S_q, S_kv]) loses the padded
    ones of the last S_q columns of the mask; keys and values ([B, heads, S_kv, head_dim]) lose all
    padded columns.
    """
    if mask is None or not shape or shape[0] != mask.shape[0]:
        return None
    rows, total = mask.shape
    lowered = output.lower()
    new = mask[:, total - queries :] if queries <= total else mask
    if len(shape) == 4 and shape[3] == total and shape[2] == queries and not _is_cache(lowered):
        keep = new.reshape(rows, 1, queries, 1)
    elif len(shape) == 4 and shape[2] == total and (_is_cache(lowered) or total != shape[1]):
        keep = mask.reshape(rows, 1, total, 1)
    elif len(shape) >= 2 and shape[1] == new.shape[1]:
        keep = new.reshape(rows, new.shape[1], *([1] * (len(shape) - 2)))
    else:
        return None
    return None if np.all(keep != 0) else keep != 0


def _is_cache(name: str) -> bool:
    return any(word in name for word in ("present", "past", "key", "value", "cache"))


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


def find_tool(tool: Any = None) -> str | None:
    """Returns the ascend-fuse program: the one that is named, the one of this Python environment, or the one in PATH."""
    beside = pathlib.Path(sys.executable).parent / "ascend-fuse"
    return str(tool) if tool else str(beside) if beside.is_file() else shutil.which("ascend-fuse")


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


def _first_line(error) -> str:
    return str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__


def _read_bindings(argument: str | None) -> tuple[Any, Any]:
    """Returns (entry, bindings) of --bindings: from a list, or from a manifest entry."""
    if argument in (None, "auto"):
        return None, None
    text = argument
    if not argument.lstrip().startswith(("[", "{")):
        try:
            text = pathlib.Path(argument).read_text()
        except OSError as error:
            raise VerifyError(f"the bindings {argument} cannot be read: {error}") from None
    try:
        data = json.loads(text)
    except ValueError as error:
        raise VerifyError(f"the bindings are not JSON: {error}") from None
    if isinstance(data, dict) and "inputs" in data:
        return data, data.get("bindings")
    return None, data if isinstance(data, list) else [data]


def _symbol_bindings(bindings, entry):
    """Bindings may give symbols ({"batch": 2, "seq": 5}) instead of shapes."""
    result = []
    for number, binding in enumerate(bindings):
        if "shapes" in binding:
            result.append(binding)
            continue
        symbols = {k: v for k, v in binding.items() if k not in ("name", "padding", "seed")}
        name = (
            binding.get("name") or ",".join(f"{k}={v}" for k, v in symbols.items()) or f"binding {number + 1}"
        )
        result.append(
            {
                "name": name,
                "shapes": guess_inputs.bind(entry, symbols),
                "padding": binding.get("padding", "none"),
                "seed": binding.get("seed", number + 1),
            }
        )
    return result


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
    options = parser.parse_args(arguments)
    try:
        entry, bindings = _read_bindings(options.bindings)
        if entry is None and bindings is not None:
            # The shapes are the user's, the meanings are guessed.
            bindings = _symbol_bindings(
                bindings, guess_inputs.guess_entry(_read_graph(pathlib.Path(options.original)))
            )
        result = verify_models(
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
        )
    except (VerifyError, guess_inputs.CannotGuess) as error:
        print(f"verify: {error}", file=sys.stderr)
        return 1
    if options.json == "-":
        sys.stdout.write(result.to_json() + "\n")
    else:
        sys.stdout.write(result.to_text())
        if options.json:
            pathlib.Path(options.json).write_text(result.to_json() + "\n")
    return 0 if result.ok else 3


if __name__ == "__main__":
    sys.exit(main())
