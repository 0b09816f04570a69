"""What the optimized forms of a zoo model compute, against the original, in ONNX Runtime without its optimizations.

For each target two things are compared: the outputs of the whole expanded model, and every rewritten place by itself, fed
with what the original computes around it (ascend_fuse.regions). Targets share most of their places, so that:
  - a place is run once for each different way in which it is rewritten: a place that is, node for node and constant for
    constant, the one of a target before has that one's numbers (Regions.fingerprints);
  - models are run as a whole on four targets (WHOLE), every kind of node among them. A whole is no more than its places
    and nodes that are the original's, as test_files shows.
On the first two targets (FULL) all bindings of the manifest are run, on the others one: what differs between targets knows
no dims.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import onnx

from ascend_fuse.compared_regions import region_runner
from ascend_fuse.inputs import make_inputs
from ascend_fuse.regions import Regions, with_outputs
from ascend_fuse.session import plain_session
from check import blind_rows
from model_checks import read
from pipeline import Run, Runs

FULL = ("ascend910b", "ascend310p")  # The targets on which models run under all their bindings; the others: one.
WHOLE = (*FULL, "ascend910b-plugin", "ascend950-plugin")  # The targets on which models run as a whole.
BLIND = "no allowed key"  # The assumption about rows whose keys are all masked.


@dataclass
class Whole:
    """What the outputs of an expanded model came to, over all bindings it ran on."""

    error: float = 0.0
    cosine: float = 1.0
    excluded: int = 0
    wrong: list[str] = field(default_factory=list)


@dataclass
class Place:
    """What a rewritten place came to."""

    error: float = 0.0
    wrong: list[str] = field(default_factory=list)


@dataclass
class Candidate:
    """An optimized file, and what of it is to be run."""

    run: Run
    full: bool
    whole: bool
    blind: bool
    regions: Regions
    named: dict[str, str]  # outputs of its places: the rules and nodes, as docs/results.md lists them
    prints: dict[str, bytes]  # outputs of its places: fingerprints
    fresh: set[str]  # those that no candidate before has
    unnamed: list[str]


@dataclass
class Numbers:
    """What docs/results.md and test_numbers want to know of one target."""

    whole: Whole | None  # None: not run as a whole
    blind: bool
    regions: dict[str, float]
    wrong: list[str]

    def noted(self) -> dict[str, Any]:
        result: dict[str, Any] = {"blind": self.blind, "regions": self.regions}
        if self.whole is not None:
            result |= {"error": self.whole.error, "cosine": self.whole.cosine, "excluded": self.whole.excluded}
        return result


def visible(feeds: dict[str, np.ndarray], array: np.ndarray) -> np.ndarray:
    """Returns the index of an output's elements that do not come from a query without any key."""
    mask = feeds.get("attention_mask")
    if mask is None or array.ndim < 3 or mask.shape[1] < array.shape[-2] or mask.shape[0] != array.shape[0]:
        return np.ones(array.shape, bool)
    sees = ~blind_rows(mask, array.shape[-2])  # [batch, tokens]
    shape = (sees.shape[0], *[1] * (array.ndim - 3), sees.shape[1], 1)
    return np.broadcast_to(sees.reshape(shape), array.shape)


def compare(expected: np.ndarray, found: np.ndarray) -> tuple[float, float]:
    """Returns the largest error relative to the largest value, and the cosine."""
    a = expected.astype(np.float64).ravel()
    b = found.astype(np.float64).ravel()
    if not np.isfinite(b).all() or not np.isfinite(a).all():
        same = np.array_equal(a, b, equal_nan=True)
        return (0.0, 1.0) if same else (np.inf, 0.0)
    largest = np.abs(a).max(initial=0)
    error = float(np.abs(a - b).max(initial=0) / largest) if largest > 0 else float(np.abs(b).max(initial=0))
    norms = np.linalg.norm(a) * np.linalg.norm(b)
    return error, float(a @ b / norms) if norms > 0 else 1.0


def candidates_of(original: onnx.ModelProto, runs: Runs) -> dict[Path, Candidate]:
    """Returns every different optimized file, those of FULL targets first, then those of WHOLE ones."""
    result: dict[Path, Candidate] = {}
    seen: set[bytes] = set()
    for target in sorted(runs.targets, key=lambda name: (name not in FULL, name not in WHOLE)):
        run = runs.targets[target]
        if run.optimized in result:
            continue
        regions = Regions(original, read(run.expanded), read(run.optimized), run.report)
        prints = regions.fingerprints()
        fresh = {output for output, digest in prints.items() if digest not in seen}
        seen |= set(prints.values())
        named = {r.output: f"{'+'.join(r.rules)} -> {'+'.join(r.nodes)}" for r in regions.regions}
        unnamed = [f"{r.output} was rewritten, and is not a site of the report" for r in regions.regions
                   if not (r.kinds and r.nodes)]
        regions.restrict(fresh)
        sentences = [*run.assumptions, *(warning["message"] for warning in run.report["warnings"])]
        blind = any(BLIND in sentence for sentence in sentences)
        result[run.optimized] = Candidate(run, target in FULL, target in WHOLE, blind, regions, named, prints, fresh, unnamed)
    return result


def compare_whole(whole: Whole, candidate: Candidate, session: Any, names: list[str], feeds: dict[str, np.ndarray],
                  values: dict[str, np.ndarray], tolerance: float) -> None:
    if [output.name for output in session.get_outputs()] != names:
        whole.wrong.append("the outputs have other names")
        return
    for name, b in zip(names, session.run(None, feeds), strict=True):
        a = values[name]
        if (a.dtype, a.shape) != (b.dtype, b.shape):
            whole.wrong.append(f"{name}: {a.dtype}{a.shape} became {b.dtype}{b.shape}")
            continue
        if candidate.blind:
            keep = visible(feeds, a)
            whole.excluded += int(keep.size - keep.sum())
            a, b = a[keep], b[keep]
        error, cosine = compare(a, b)
        if not error <= tolerance or not cosine >= 0.99999:
            whole.wrong.append(f"{name}: relative error {error:.2e}, cosine {cosine:.7f}")
        whole.error, whole.cosine = max(whole.error, error), min(whole.cosine, cosine)


def compare_runs(entry: dict[str, Any], source: Path, runs: Runs) -> Iterator[tuple[str, Numbers]]:
    """Yields every target with its numbers."""
    tolerance = 1e-2 if entry["dtype"] == "float16" else 1e-4
    original = read(source)
    names = [output.name for output in original.graph.output]
    candidates = candidates_of(original, runs)
    probes = {name for candidate in candidates.values() for name in candidate.regions.probes}
    session = plain_session(with_outputs(original, sorted(probes)).SerializeToString(), threads=1)
    every_name = [output.name for output in session.get_outputs()]
    wholes: dict[Path, Whole] = {}
    sessions: dict[Path, Any] = {}
    places: dict[bytes, Place] = {}
    runners = {path: region_runner(candidate.regions, candidate.run.expanded)
               for path, candidate in candidates.items() if candidate.fresh}
    assert len(entry["bindings"]) >= 3
    for number, binding in enumerate(entry["bindings"]):
        feeds = make_inputs(entry, binding)
        values = {**feeds, **dict(zip(every_name, session.run(None, feeds), strict=True))}
        ran: set[Path] = set()
        for path, candidate in candidates.items():
            if number > 0 and not candidate.full:
                continue
            expanded = candidate.run.expanded
            if candidate.whole and expanded not in ran:
                ran.add(expanded)
                if expanded not in sessions:
                    sessions[expanded] = plain_session(expanded, threads=1)
                compare_whole(wholes.setdefault(expanded, Whole()), candidate, sessions[expanded], names, feeds, values,
                              tolerance)
            if not candidate.fresh:
                continue
            for region in runners[path](binding["name"], values, tolerance):
                place = places.setdefault(candidate.prints[region.output], Place())
                place.error = max(place.error, region.max_rel)
                if not region.ok:
                    place.wrong.append(f"{candidate.named[region.output]} at {region.output} ({region.module}),"
                                       f" {binding['name']}: {region.because}")
    for target, run in runs.targets.items():
        candidate = candidates[run.optimized]
        whole = wholes.get(run.expanded)
        regions: dict[str, float] = {}
        wrong = candidate.unnamed + (whole.wrong if whole is not None else [])
        for output, digest in candidate.prints.items():
            key = candidate.named[output]
            regions[key] = max(regions.get(key, 0.0), places[digest].error)
            wrong += places[digest].wrong
        yield target, Numbers(whole, candidate.blind, regions, wrong)
