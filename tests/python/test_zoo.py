"""Every zoo model through list, optimize, expand and ONNX Runtime.

What is measured on the way (errors per output, counts) is written to build/zoo-numbers/<id>.json, from which
scripts/accuracy makes docs/accuracy.md.
"""

from __future__ import annotations

import functools
import hashlib
import json
import os
import shutil
import tempfile
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from conftest import BUILD, run, run_ok

import fill
import gaps
from ascend_fuse import verify
from ascend_fuse.inputs import make_inputs
from ascend_fuse.session import plain_session
from check import blind_rows

KINDS = (
    "rms_norm", "layer_norm", "group_norm", "gelu", "silu", "hard_swish", "mish", "glu", "linear_activation",
    "rotary", "attention",
)
ENTRIES: dict[str, dict[str, Any]] = {entry["id"]: entry for entry in fill.load_manifest()["models"]}
GAPS: dict[tuple[str, str], tuple[int, int]] = {
    (gap["id"], gap["kind"]): (gap["found"], gap["expected"]) for gap in gaps.load()["gaps"]
}
# Known defects of the tool: (model, target, test) and why. The test fails if one of them is gone.
FAILURES: dict[tuple[str, str, str], str] = {
    (failure["id"], failure["target"], failure["test"]): failure["reason"] for failure in gaps.load()["failures"]
}
BLIND = "no allowed key"  # The assumption about rows whose keys are all masked.
NUMBERS = BUILD / "zoo-numbers"

# A target with the flags that choose it, the way each name appears in docs/accuracy.md.
TARGETS = {
    "ascend910b": ("--target", "ascend910b"),
    "ascend310p": ("--target", "ascend310p"),
    "ascend910_93": ("--target", "ascend910_93"),
    "ascend950": ("--target", "ascend950"),
    "ascend910b-cann2026.07": ("--target", "ascend910b", "--cann", "2026.07"),
    "ascend910b-plugin": ("--target", "ascend910b", "--plugin"),
    "ascend310p-plugin": ("--target", "ascend310p", "--plugin"),
    "ascend910_93-plugin": ("--target", "ascend910_93", "--plugin"),
    "ascend950-plugin": ("--target", "ascend950", "--plugin"),
}
FULL = ("ascend910b", "ascend310p")  # The targets on which models run under all their bindings; the others: one.


def of_models(*targets: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Parametrises a test by model and target; tests of one model run in one process, which keeps its results."""

    def parametrised(test: Callable[..., None]) -> Callable[..., None]:
        rows = []
        for model_id in ENTRIES:
            for target in targets:
                name = model_id if len(targets) == 1 else f"{model_id}-on-{target}"
                marks = [pytest.mark.xdist_group(model_id)]
                reason = FAILURES.get((model_id, target, test.__name__))
                if reason:
                    marks.append(pytest.mark.xfail(reason=reason, strict=True))
                rows.append(pytest.param(model_id, target, id=name, marks=marks))
        return pytest.mark.parametrize(("model_id", "target"), rows)(test)

    return parametrised


@dataclass
class Run:
    """A model optimized for a target."""

    source: Path
    optimized: Path
    digest: bytes  # Of the optimized model.
    report: dict[str, Any]
    folder: tempfile.TemporaryDirectory = field(repr=False)

    @property
    def assumptions(self) -> set[str]:
        return {sentence for site in self.report["sites"] for sentence in site["assumptions"]}


@pytest.fixture
def optimized(zoo: Path, model_id: str, target: str) -> Run:
    return optimize(zoo, model_id, target)


@functools.lru_cache(maxsize=len(TARGETS))
def optimize(zoo: Path, model_id: str, target: str) -> Run:
    """Runs `optimize` and returns where its output is and what it reported."""
    folder = tempfile.TemporaryDirectory(prefix="ascend-fuse-zoo-")
    source = zoo / f"{model_id}.onnx"
    output = Path(folder.name) / "optimized.onnx"
    result = run_ok("optimize", source, "-o", output, "--json", "-", "--quiet", *TARGETS[target])
    return Run(source, output, hashlib.sha256(output.read_bytes()).digest(), json.loads(result.out), folder)


@functools.lru_cache(maxsize=1)
def shown(model_id: str, test: str) -> dict[bytes, Any]:
    """What a test showed of the optimized models of one zoo model, by their digests: many targets share one."""
    return {}


@functools.lru_cache(maxsize=2)
def loaded(path: Path) -> onnx.ModelProto:
    return onnx.load(path)


@functools.lru_cache(maxsize=1)
def passes_checker(path: Path) -> bool:
    """True if onnx.checker takes the model."""
    try:
        onnx.checker.check_model(str(path), full_check=True)
    except (onnx.checker.ValidationError, onnx.shape_inference.InferenceError):
        return False
    return True


@functools.lru_cache(maxsize=1)
def original_outputs(zoo: Path, model_id: str) -> list[tuple[dict[str, Any], list[str], list[np.ndarray]]]:
    """Returns for every binding its inputs, and the names and values of the original model's outputs."""
    session = plain_session(zoo / f"{model_id}.onnx", threads=1)
    names = [output.name for output in session.get_outputs()]
    entry = ENTRIES[model_id]
    result = []
    for binding in entry["bindings"]:
        feeds = make_inputs(entry, binding)
        result.append((feeds, names, session.run(None, feeds)))
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


def note(model_id: str, target: str, **numbers: object) -> None:
    """Keeps numbers of a model and target for docs/accuracy.md."""
    NUMBERS.mkdir(parents=True, exist_ok=True)
    path = NUMBERS / f"{model_id}.{target}.json"
    known = json.loads(path.read_text()) if path.exists() else {}
    known.update(numbers)
    temporary = path.with_suffix(f".{os.getpid()}.tmp")
    temporary.write_text(json.dumps(known, indent=1, sort_keys=True))
    temporary.replace(path)


def expected_counts(model_id: str) -> dict[str, int]:
    """Returns what the configuration says, or what is found where gaps.json records a gap."""
    result = {}
    for kind in KINDS:
        expected = ENTRIES[model_id]["expected"][kind]
        found, recorded = GAPS.get((model_id, kind), (expected, expected))
        assert recorded == expected, f"gaps.json is out of date: {kind} of {model_id}"
        result[kind] = found
    return result


def test_gaps_are_of_part_2() -> None:
    for model_id, kind in GAPS:
        assert ENTRIES[model_id]["part"] == 2
        found, expected = GAPS[model_id, kind]
        assert found != expected, (model_id, kind)
    assert all(ENTRIES[model_id]["part"] == 2 for model_id, _, _ in FAILURES)


def check_counts(model_id: str, report: dict[str, Any]) -> None:
    sites = report["summary"]["sites"]
    assert {kind: sites[kind]["found"] for kind in KINDS} == expected_counts(model_id)
    listed = Counter((site["kind"], site["state"]) for site in report["sites"])
    for kind, counts in sites.items():
        assert counts["fused"] + counts["by_ge"] + counts["left"] == counts["found"], kind
        for state in ("fused", "by_ge", "left"):
            assert listed[kind, state] == counts[state], (kind, state)
    for site in report["sites"]:
        if site["state"] == "fused":
            assert site["emitted_op"], site
        else:
            assert site["because"], f"no reason for {site['kind']} at {site['name']}"


@of_models("ascend910b", "ascend310p-plugin")
def test_optimize_reports_what_list_promised(zoo: Path, optimized: Run, model_id: str, target: str) -> None:
    source = zoo / f"{model_id}.onnx"
    before = source.stat()
    listed = json.loads(run_ok("list", source, "--json", "-", *TARGETS[target]).out)
    assert (source.stat().st_mtime_ns, source.stat().st_size) == (before.st_mtime_ns, before.st_size)
    assert optimized.report["summary"]["sites"] == listed["summary"]["sites"]


@of_models(*TARGETS)
def test_optimize_finds_what_the_configuration_says(optimized: Run, model_id: str, target: str) -> None:
    check_counts(model_id, optimized.report)
    sites = optimized.report["summary"]["sites"]
    note(model_id, target, sites={kind: c for kind, c in sites.items() if c["found"]},
         nodes=optimized.report["summary"]["nodes"])


LLAMAS = [i for i, entry in ENTRIES.items() if entry["part"] == 1 and entry["architecture"] in ("llama", "qwen3")]


@pytest.mark.parametrize("model_id", [pytest.param(i, marks=pytest.mark.xdist_group(i)) for i in LLAMAS])
@pytest.mark.parametrize("target", ["ascend910b"])
def test_norms_rotary_and_attention_of_llama_are_fused(optimized: Run) -> None:
    for kind in ("rms_norm", "rotary", "attention"):
        counts = optimized.report["summary"]["sites"][kind]
        assert counts["fused"] == counts["found"] > 0, counts


@of_models(*TARGETS)
def test_expanded_output_computes_the_same(zoo: Path, optimized: Run, model_id: str, target: str) -> None:
    entry = ENTRIES[model_id]
    half = entry["dtype"] == "float16"
    known = shown(model_id, "numbers")
    if optimized.digest in known:  # The very same model, compared for another target.
        note(model_id, target, **known[optimized.digest])
        return
    expanded = optimized.optimized.with_name("expanded.onnx")
    run_ok("expand", optimized.optimized, "-o", expanded, "--quiet")
    # ONNX Runtime's optimizer puts operators of its own into ONNX's domain, which the checker refuses.
    if entry.get("after") != "ortopt" or passes_checker(zoo / f"{model_id}.onnx"):
        onnx.checker.check_model(str(expanded), full_check=True)
    session = plain_session(expanded, threads=1)
    blind = any(BLIND in sentence for sentence in optimized.assumptions)
    worst, least, excluded = 0.0, 1.0, 0
    regions: dict[str, float] = {}
    compare_regions = verify.region_comparer(
        optimized.source, loaded(optimized.source), expanded, onnx.load(optimized.optimized), optimized.report)
    outputs = original_outputs(zoo, model_id)
    assert len(outputs) >= 3
    # Of the other targets one binding: what differs between targets knows no dims.
    for feeds, names, expected in outputs if target in FULL else outputs[:1]:
        found = session.run(None, feeds)
        assert [output.name for output in session.get_outputs()] == names
        for name, a, b in zip(names, expected, found, strict=True):
            assert (a.dtype, a.shape) == (b.dtype, b.shape), name
            keep = visible(feeds, a) if blind else np.ones(a.shape, bool)
            excluded += int(keep.size - keep.sum())
            error, cosine = compare(a[keep], b[keep])
            assert error <= (1e-2 if half else 1e-4), f"{name}: relative error {error:.2e}"
            assert cosine >= 0.99999, f"{name}: cosine {cosine:.7f}"
            worst, least = max(worst, error), min(least, cosine)
        # Every rewritten place by itself, on what the original computes there.
        for region in compare_regions("", feeds, 1e-2 if half else 1e-4) if compare_regions else ():
            key = f"{'+'.join(region.rules)} -> {'+'.join(region.nodes)}"
            assert region.kinds and region.nodes, f"{region.output} was rewritten, and is no site of the report"
            assert region.ok, f"{key} at {region.output} ({region.module}): {region.because}"
            regions[key] = max(regions.get(key, 0.0), region.max_rel)
    fused = sum(counts["fused"] for counts in optimized.report["summary"]["sites"].values())
    assert bool(regions) == bool(fused)
    known[optimized.digest] = {
        "error": worst, "cosine": least, "blind": blind, "excluded": excluded, "regions": regions,
    }
    note(model_id, target, **known[optimized.digest])


@of_models(*TARGETS)
def test_a_second_run_changes_no_byte(optimized: Run, target: str) -> None:
    again = optimized.optimized.with_name("again.onnx")
    run_ok("optimize", optimized.optimized, "-o", again, "--quiet", *TARGETS[target])
    assert again.read_bytes() == optimized.optimized.read_bytes()


@of_models("ascend910b", "ascend310p", "ascend910b-cann2026.07")
def test_what_is_not_fused_stays_as_it_was(optimized: Run, model_id: str) -> None:
    before = loaded(optimized.source)
    after = onnx.load(optimized.optimized)
    explicit = optimized.report["target"]["style"] == "X"
    covered = {name for site in optimized.report["sites"] if site["state"] == "fused" for name in site["covers"]}

    # The last node of a fusion keeps the name of the last node it replaces.
    roots = {site["node"] for site in optimized.report["sites"] if site["state"] == "fused"}

    # ONNX Runtime's optimizer gives some nodes one name; such nodes cannot be told apart.
    named = Counter(node.name for node in before.graph.node)
    originals = {node.name: node for node in before.graph.node if named[node.name] == 1}
    assert len(originals) == len(before.graph.node) or ENTRIES[model_id].get("after") == "ortopt"
    kept = 0
    for node in after.graph.node:
        if node.name in roots or node.name not in originals:
            continue
        copy = onnx.NodeProto()
        copy.CopyFrom(node)
        if explicit and originals[node.name].domain in ("", "ai.onnx"):
            assert node.domain == "ai.onnx", node.name
            copy.ClearField("domain")
            if originals[node.name].HasField("domain"):
                copy.domain = originals[node.name].domain
        assert copy.SerializeToString() == originals[node.name].SerializeToString(), node.name
        kept += 1
    if optimized.report["target"]["style"]:
        assert kept > 0 or not before.graph.node
    # What is gone was covered by a fusion, or only served one.
    left = {node.name for node in after.graph.node}
    for site in optimized.report["sites"]:
        if site["state"] != "fused":
            missing = [name for name in site["covers"] if name not in left and name not in covered]
            assert not missing, f"{site['kind']} at {site['name']} was left, but {missing} are gone"

    for which in ("input", "output"):
        a = [value.SerializeToString() for value in getattr(before.graph, which)]
        b = [value.SerializeToString() for value in getattr(after.graph, which)]
        assert a == b, which
    weights = {tensor.name: tensor for tensor in before.graph.initializer}
    for tensor in after.graph.initializer:
        if tensor.name in weights:
            assert tensor.SerializeToString() == weights[tensor.name].SerializeToString(), tensor.name
    imports = {import_.domain or "ai.onnx": import_.version for import_ in after.opset_import}
    for import_ in before.opset_import:
        assert imports[import_.domain or "ai.onnx"] == import_.version


def test_a_model_without_a_site_is_written_back_as_it_is(tmp_path: Path) -> None:
    node = onnx.helper.make_node("Relu", ["x"], ["y"], name="relu")
    floats = [onnx.helper.make_tensor_value_info(n, onnx.TensorProto.FLOAT, ["n"]) for n in "xy"]
    graph = onnx.helper.make_graph([node], "g", [floats[0]], [floats[1]])
    source = tmp_path / "m.onnx"
    onnx.save(onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)]), source)
    result = run_ok("optimize", source, "-o", tmp_path / "o.onnx", cwd=tmp_path)
    assert (tmp_path / "o.onnx").read_bytes() == source.read_bytes()
    assert "No site of any kind was found" in result.out


def test_two_runs_over_the_same_input_give_the_same_bytes(zoo: Path, tmp_path: Path) -> None:
    source = zoo / "llama-sdpa-past-dy18-dynamic.onnx"
    copy = tmp_path / "elsewhere.onnx"
    shutil.copy(source, copy)
    run_ok("optimize", source, "-o", tmp_path / "a.onnx", "--quiet")
    run_ok("optimize", copy, "-o", tmp_path / "b.onnx", "--quiet")
    assert (tmp_path / "a.onnx").read_bytes() == (tmp_path / "b.onnx").read_bytes()


def test_found_does_not_depend_on_the_target(zoo: Path) -> None:
    source = zoo / "bert-sdpa-ts17-dynamic.onnx"
    found = set()
    for target in ("ascend310p", "ascend910b", "ascend910_93", "ascend950"):
        result = run("list", source, "--target", target, "--json", "-")
        sites = json.loads(result.out)["summary"]["sites"]
        found.add(tuple(sorted((kind, counts["found"]) for kind, counts in sites.items())))
    assert len(found) == 1
