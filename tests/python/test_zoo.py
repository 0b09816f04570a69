"""Every zoo model for every target: what is found and fused, what the written file looks like, and what it computes.

A model is optimized for all targets by one process, once (pipeline.py); that listing tells the same, that the written file
loads, that a second run changes nothing and that it expands is looked at there. How the numbers are compared, and which
comparison stands for which targets, is told in zoo_numbers.py. All of it is written to build/zoo-numbers/, from which
scripts/accuracy makes a part of docs/results.md.

    BLESS=1 .venv/bin/python -m pytest -c tests/pytest.ini -n 2 tests/python/test_zoo.py -k sites

writes tests/zoo/counts.txt anew: how many sites of each kind are fused, left to GE, and left. Its diff is then what there
is to review. --quick (scripts/test --quick) takes the covering choice (tools/zoo/covering.py).
"""

from __future__ import annotations

import fcntl
import functools
import json
import os
import shutil
import tempfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import onnx
import pytest
from conftest import BUILD, ROOT, run, run_ok

import fill
import masks
import model_checks
import op_plugin
import pipeline
import transposes
import zoo_numbers

KINDS = (
    "rms_norm", "layer_norm", "group_norm", "gelu", "silu", "hard_swish", "mish", "glu", "linear_activation",
    "rotary", "attention",
)
COUNTED = (*KINDS[:3], "add_norm", *KINDS[3:])  # in the order of reports and of counts.txt
ENTRIES: dict[str, dict[str, Any]] = {entry["id"]: entry for entry in fill.load_manifest()["models"]}
NUMBERS = BUILD / "zoo-numbers"
COUNTS = ROOT / "tests" / "zoo" / "counts.txt"

# A target with the flags that choose it, the way each name appears in docs/results.md. CANN 8.1 knows no ascend950.
TARGETS = {
    "ascend910b": ("--target=ascend910b",),
    "ascend310p": ("--target=ascend310p",),
    "ascend910_93": ("--target=ascend910_93",),
    "ascend950": ("--target=ascend950", "--cann=2026.07"),
    "ascend910b-cann2026.07": ("--target=ascend910b", "--cann=2026.07"),
    "ascend910b-plugin": ("--target=ascend910b", "--plugin"),
    "ascend310p-plugin": ("--target=ascend310p", "--plugin"),
    "ascend910_93-plugin": ("--target=ascend910_93", "--plugin"),
    "ascend950-plugin": ("--target=ascend950", "--cann=2026.07", "--plugin"),
}
# The targets of counts.txt and their names there.
COUNTS_OF = {name: name.replace("-plugin", "+plugin") for name in sorted(TARGETS, key=lambda n: ("plugin" in n, n))
             if "-cann" not in name}

of_models = pytest.mark.parametrize(
    "model_id", [pytest.param(i, marks=[pytest.mark.xdist_group(i), pytest.mark.zoo]) for i in ENTRIES])


@functools.lru_cache(maxsize=1)
def folder_of(model_id: str) -> tempfile.TemporaryDirectory:
    return tempfile.TemporaryDirectory(prefix="ascend-fuse-zoo-")


@functools.lru_cache(maxsize=1)
def runs_of(source: Path, model_id: str) -> pipeline.Runs:
    return pipeline.optimize(source, Path(folder_of(model_id).name), TARGETS)


@pytest.fixture
def source(zoo: Path, model_id: str) -> Path:
    return zoo / f"{model_id}.onnx"


@pytest.fixture
def runs(source: Path, model_id: str) -> pipeline.Runs:
    return runs_of(source, model_id)


class Verdicts:
    """What each target's check of a model came to, where all targets are looked at before the test ends."""

    def __init__(self) -> None:
        self.wrong: dict[str, str] = {}

    def __call__(self, target: str) -> Verdicts:
        self.target = target
        return self

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: object) -> bool:
        if error is None or not isinstance(error, Exception):
            return False
        self.wrong[self.target] = str(error)
        return True

    def tell(self) -> None:
        assert not self.wrong, "\n".join(f"{target}: {why}" for target, why in self.wrong.items())


def note(model_id: str, numbers: dict[str, dict[str, object]]) -> None:
    """Keeps numbers of a model, by target, for docs/results.md."""
    NUMBERS.mkdir(parents=True, exist_ok=True)
    path = NUMBERS / f"{model_id}.json"
    known = json.loads(path.read_text()) if path.exists() else {}
    for target in TARGETS:
        known[target] = known.get(target, {}) | numbers.get(target, {})
    fill.replace_file(path, json.dumps(known, indent=1, sort_keys=True).encode())


def check_counts(model_id: str, report: dict[str, Any]) -> None:
    sites = report["summary"]["sites"]
    assert {kind: sites[kind]["found"] for kind in KINDS} == {kind: ENTRIES[model_id]["expected"][kind] for kind in KINDS}
    listed = Counter((site["kind"], site["state"]) for site in report["sites"])
    for kind, counts in sites.items():
        assert counts["fused"] + counts["by_ge"] + counts["left"] == counts["found"], kind
        for state in ("fused", "by_ge", "left"):
            assert listed[kind, state] == counts[state], (kind, state)
    for site in report["sites"]:
        if site["state"] == "fused":
            assert site["emitted_op"], site
        else:
            assert site["because"], f"no reason for {site['kind']} at {site['node']}"
            assert site["source"], f"{site['kind']} at {site['node']}: who says so? {site['because']}"


def reviewed_counts(text: str) -> dict[str, str]:
    """Returns what the text of counts.txt says of each model."""
    entries: dict[str, list[str]] = {}
    for line in text.splitlines():
        if line and not line.startswith((" ", "#")):
            current = entries.setdefault(line, [])
        elif line.startswith(" "):
            current.append(line)
    return {model: "\n".join(lines) for model, lines in entries.items()}


@functools.cache
def all_reviewed_counts() -> dict[str, str]:
    return reviewed_counts(COUNTS.read_text())


def counts_text(runs: pipeline.Runs) -> str:
    """Returns one line for each different outcome, with the targets that have it: fused / by GE / left."""
    outcomes: dict[str, list[str]] = {}
    for target, name in COUNTS_OF.items():
        sites = runs.targets[target].report["summary"]["sites"]
        words = [f"{kind} {c['fused']}/{c['by_ge']}/{c['left']}" for kind in COUNTED if (c := sites[kind])["found"]]
        outcomes.setdefault(", ".join(words) or "nothing", []).append(name)
    return "\n".join(f"  {' '.join(names)}: {outcome}" for outcome, names in outcomes.items())


def bless_counts(model_id: str, text: str) -> None:
    with open(BUILD / "counts.lock", "w") as lock:  # other workers write, too
        fcntl.flock(lock, fcntl.LOCK_EX)
        known = reviewed_counts(COUNTS.read_text()) if COUNTS.exists() else {}
        known[model_id] = text
        head = "# Sites fused / by GE / left, per model and target. Written by tests/python/test_zoo.py.\n"
        fill.replace_file(COUNTS, (head + "".join(f"{i}\n{known[i]}\n" for i in sorted(known) if i in ENTRIES)).encode())


def test_every_model_has_reviewed_counts() -> None:
    assert set(reviewed_counts(COUNTS.read_text())) == set(ENTRIES), "counts.txt is not of this zoo: bless"


@of_models
def test_sites(runs: pipeline.Runs, model_id: str) -> None:
    verdicts = Verdicts()
    numbers: dict[str, dict[str, object]] = {}
    for target in TARGETS:
        with verdicts(target):
            assert target not in runs.wrong, " ".join(runs.wrong[target])
            report = runs.targets[target].report
            check_counts(model_id, report)
            sites = report["summary"]["sites"]
            numbers[target] = {"sites": {kind: c for kind, c in sites.items() if c["found"]},
                               "nodes": report["summary"]["nodes"]}
    (NUMBERS / f"{model_id}.json").unlink(missing_ok=True)  # of a run before
    note(model_id, numbers)
    verdicts.tell()
    assert not runs.wrong.get("-"), runs.wrong
    assert len({tuple(sorted((k, c["found"]) for k, c in r.report["summary"]["sites"].items()))
                for r in runs.targets.values()}) == 1, "what is found depends on the target"
    if os.environ.get("BLESS"):
        bless_counts(model_id, counts_text(runs))
        return
    assert counts_text(runs) == all_reviewed_counts()[model_id]


LLAMAS = [i for i, entry in ENTRIES.items() if entry["part"] == 1 and entry["architecture"] in ("llama", "qwen3")]


@pytest.mark.parametrize("model_id", [pytest.param(i, marks=[pytest.mark.xdist_group(i), pytest.mark.zoo]) for i in LLAMAS])
def test_norms_rotary_and_attention_of_llama_are_fused(runs: pipeline.Runs) -> None:
    for kind in ("rms_norm", "rotary", "attention"):
        counts = runs.targets["ascend910b"].report["summary"]["sites"][kind]
        assert counts["fused"] == counts["found"] > 0, counts


@of_models
def test_masks(runs: pipeline.Runs, model_id: str) -> None:
    """Each attention has the word that configuration and mode of the export say, but for what is known to be declined."""
    if not ENTRIES[model_id]["expected"].get("attention"):
        return
    found = Counter(site["mask"] for site in runs.targets["ascend910b"].report["sites"] if site["kind"] == "attention")
    assert found == masks.DECLINED.get(model_id, masks.expected_masks(ENTRIES[model_id]))


@of_models
def test_transposes_around_attention(runs: pipeline.Runs, model_id: str) -> None:
    """No more than reviewed: tools/zoo/transposes.py counts them anew."""
    if not ENTRIES[model_id]["expected"].get("attention"):
        return
    found = transposes.counts_of(onnx.load(runs.targets["ascend910b"].optimized, load_external_data=False))
    reviewed = transposes.reviewed()[model_id]
    assert sum(count.before + count.after for count in found) <= transposes.total_of(reviewed), (found, reviewed)


@of_models
def test_nodes_of_the_plugin_are_registered(runs: pipeline.Runs) -> None:
    """Under the names that the emission style makes, as the generated plugin registers them."""
    registered = op_plugin.registered_keys()
    for target, run in runs.targets.items():
        model = onnx.load(run.optimized, load_external_data=False)
        for node, key in op_plugin.plugin_nodes(model):
            assert target.endswith("-plugin"), f"{node.op_type} for {target}"
            assert key in registered, f"{key} for {target}"


@of_models
def test_files(source: Path, runs: pipeline.Runs, model_id: str) -> None:
    """What is written is in order and passes onnx.checker when expanded, and with --keep-rest what is not fused stays as it was."""
    verdicts = Verdicts()
    before = model_checks.read(source)
    looked_at: set[Path] = set()
    for target, made in runs.targets.items():
        with verdicts(target):
            for path, check in ((made.optimized, model_checks.check_written), (made.expanded, model_checks.check_expanded)):
                if path not in looked_at:
                    check(before, model_checks.read(path))
                looked_at.add(path)
    folder = Path(folder_of(model_id).name) / "kept"
    folder.mkdir()
    kept = pipeline.optimize(source, folder, {name: [*flags, "--keep-rest"] for name, flags in TARGETS.items()})
    for target, made in kept.targets.items():
        with verdicts(f"{target}, --keep-rest"):
            check_what_stays(before, model_checks.read(made.optimized), made.report, model_id)
    verdicts.tell()


def may_be_converted(before: onnx.ModelProto, after: onnx.ModelProto,
                     report: dict[str, Any]) -> Callable[[onnx.NodeProto], bool]:
    """Whether a node of the original may have another form than before: an adapter took it, or the new opset has another version."""
    adapted = {name for record in report["adapted"] for name in record["nodes"]}
    old, new = ({import_.domain or "ai.onnx": import_.version for import_ in model.opset_import}["ai.onnx"]
                for model in (before, after))
    told = any(warning["code"] == "opset-converted" for warning in report["warnings"])
    assert (old != new) == told, f"opset {old} became {new}"

    def version(op: str, opset: int) -> int:
        try:
            return onnx.defs.get_schema(op, opset).since_version
        except onnx.defs.SchemaError:  # none at that opset
            return 0

    def label(node: onnx.NodeProto) -> str:
        return node.name or node.output[0]

    made_by = {name: label(node) for node in before.graph.node for name in node.output}

    def converted(node: onnx.NodeProto) -> bool:
        # A Squeeze is taken together with the Shape that it reads.
        names = {label(node)} | ({made_by.get(node.input[0], "")} if node.op_type == "Squeeze" else set())
        return bool(names & adapted) or (old != new and version(node.op_type, old) != version(node.op_type, new))

    return converted


# Products and the repeats of keys that they read, of an attention that is left.
REPEATS = {"MatMul", "Transpose", "Reshape", "Expand", "Unsqueeze"}


def check_what_stays(before: onnx.ModelProto, after: onnx.ModelProto, report: dict[str, Any], model_id: str) -> None:
    converted = may_be_converted(before, after, report)
    explicit = report["target"]["style"] == "X"
    covered = {name for site in report["sites"] if site["state"] == "fused" for name in site["covers"]}

    # The last node of a fusion keeps the name of the last node it replaces.
    roots = {site["node"] for site in report["sites"] if site["state"] == "fused"}

    # ONNX Runtime's optimizer gives some nodes one name; such nodes cannot be told apart.
    named = Counter(node.name for node in before.graph.node)
    originals = {node.name: node for node in before.graph.node if named[node.name] == 1}
    assert len(originals) == len(before.graph.node) or ENTRIES[model_id].get("after") == "ortopt"
    kept = 0
    for node in after.graph.node:
        ours = node.domain == "npu" or node.op_type.startswith("NPU")
        if ours or node.name in roots or node.name not in originals:
            continue
        if converted(originals[node.name]):
            continue
        # A projection whose weight has the channels in a rotation's order, and what reads its shape.
        if any(name.endswith("_ordered") for name in (*node.output, *node.input)):
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
    if report["target"]["style"]:
        assert kept > 0 or not before.graph.node
    # What is gone was covered by a fusion, or only served one.
    left = {node.name for node in after.graph.node}
    for site in report["sites"]:
        if site["state"] != "fused":
            missing = [name for name in site["covers"] if name not in left and name not in covered
                       and not (name in originals and converted(originals[name]))]
            if "are not repeated: queries of heads that share them" in site["because"]:
                missing = [name for name in missing if originals[name].op_type not in REPEATS]
            assert not missing, f"{site['kind']} at {site['node']} was left, but {missing} are gone"

    weights = {tensor.name: tensor for tensor in before.graph.initializer}
    for tensor in after.graph.initializer:
        if tensor.name in weights:
            assert tensor.SerializeToString() == weights[tensor.name].SerializeToString(), tensor.name
    imports = {import_.domain or "ai.onnx": import_.version for import_ in after.opset_import}
    for import_ in before.opset_import:
        domain = import_.domain or "ai.onnx"
        if domain not in imports:  # no node needs it
            assert all(node.domain != import_.domain for node in after.graph.node), domain
            continue
        assert imports[domain] == import_.version or domain == "ai.onnx"


@of_models
def test_numbers(source: Path, runs: pipeline.Runs, model_id: str) -> None:
    """The expanded model computes what the original computes, as a whole and in every rewritten place."""
    verdicts = Verdicts()
    noted = {}
    for target, numbers in zoo_numbers.compare_runs(ENTRIES[model_id], source, runs):
        noted[target] = numbers.noted()
        with verdicts(target):
            assert not numbers.wrong, "; ".join(numbers.wrong[:5])
            fused = sum(c["fused"] for c in runs.targets[target].report["summary"]["sites"].values())
            assert any(not key.startswith("adapted ") for key in numbers.regions) == bool(fused)
    note(model_id, noted)
    verdicts.tell()


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
