"""Rules run backwards: graphs made from every rule of patterns/library, with every alternative, and their mutations.

tests/rules/rule_graphs_tool makes them, optimizes and expands them; here both models run in ONNX Runtime. A graph as
the rule has it must be found. Whatever was fused, mutated or not, must compute what it computed before.

RULE_GRAPHS=20000 in the environment makes so many graphs a seed; RULE_GRAPHS_SEED=5 takes other ones.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pytest
from conftest import BUILD

TOOL = BUILD / "tests" / "rule_graphs_tool"
COUNT = int(os.environ.get("RULE_GRAPHS", "1200"))
FIRST = int(os.environ.get("RULE_GRAPHS_SEED", "1"))

# Rules that no graph can be made of, and why: nothing may be missing here, and nothing more may be in it.
IMPOSSIBLE: dict[str, str] = {}
# Choices that a rule's pattern has and no graph shows, and why.
UNSEEN: dict[str, str] = {}

TYPES = {"tensor(float)": np.float32, "tensor(float16)": np.float16, "tensor(bool)": np.bool_, "tensor(int64)": np.int64}


def session_of(model: bytes) -> onnxruntime.InferenceSession:
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 4
    return onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])


def feeds_of(session: onnxruntime.InferenceSession, seed: int) -> dict[str, np.ndarray]:
    generator = np.random.default_rng(seed)
    feeds = {}
    for value in session.get_inputs():
        # A symbolic dim is called after its size: batch_3.
        shape = [d if isinstance(d, int) else int(d.rsplit("_", 1)[1]) for d in value.shape]
        dtype = TYPES[value.type]
        if dtype is np.bool_:  # a mask, true = attend: every query has a key
            feed = generator.random(shape) < 0.7
            feed[..., 0] = True
        elif dtype is np.int64:
            feed = generator.integers(0, 2, shape)
        else:
            feed = generator.normal(size=shape)
        feeds[value.name] = feed.astype(dtype)
    return feeds


def difference(a: np.ndarray, b: np.ndarray, blind: bool) -> str:
    """Returns what is wrong with b, or nothing; rows of zeros do not matter where the report assumes so."""
    if a.dtype != b.dtype or a.shape != b.shape:
        return f"{a.dtype}{a.shape} became {b.dtype}{b.shape}"
    if not np.issubdtype(a.dtype, np.floating):
        return "" if np.array_equal(a, b) else "other integers or booleans"
    half = a.dtype == np.float16
    a, b = a.astype(np.float64), b.astype(np.float64)
    if blind and a.ndim:
        rows = np.any(b != 0, axis=-1)
        a, b = a[rows], b[rows]
    # What overflows float16 on the way is infinite or not according to where the kernel is more precise.
    if half:
        fine = np.isfinite(a) & np.isfinite(b)
        a, b = a[fine], b[fine]
    finite = np.isfinite(a)
    if not np.array_equal(finite, np.isfinite(b)) or not np.array_equal(a[~finite], b[~finite], equal_nan=True):
        return "NaN or infinity elsewhere"
    a, b = a[finite], b[finite]
    if a.size == 0:
        return ""
    error = np.abs(a - b).max() / max(np.abs(a).max(), 1e-30)
    return "" if error <= (2e-2 if half else 4e-4) else f"relative error {error:.2e}"


@pytest.fixture(scope="module", params=range(FIRST, FIRST + 4))
def made(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, Any], bytes]:
    folder = tmp_path_factory.mktemp("rules")
    subprocess.run([str(TOOL), str(request.param), str(COUNT), str(folder)], check=True)
    return json.loads((folder / "cases.json").read_text()), (folder / "models").read_bytes()


def keep(case: dict[str, Any], models: bytes, why: str) -> str:
    """Writes the models of a case to build/rule-graphs and returns a sentence about it."""
    folder = BUILD / "rule-graphs"
    folder.mkdir(exist_ok=True)
    name = f"{case['rule']}-{case['original'][0]}"
    for which in ("original", "expanded"):
        if which in case:
            start, size = case[which]
            (folder / f"{name}.{which}.onnx").write_bytes(models[start : start + size])
    return f"{case['rule']} ({case['mutation'] or 'as it is'}, {case['target']}, {folder / name}): {why}"


@pytest.mark.xdist_group("rule_graphs")
def test_graphs_of_every_rule_are_found_and_right(made: tuple[dict[str, Any], bytes]) -> None:
    data, models = made
    wrong: list[str] = []
    counts: Counter[str] = Counter()
    seen: dict[str, set[str]] = {rule: set() for rule in data["rules"]}
    for number, case in enumerate(data["cases"]):
        if "impossible" in case:
            if case["rule"] not in IMPOSSIBLE:
                wrong.append(f"no graph of {case['rule']}: {case['impossible']}")
            continue
        if "refused" in case:  # the loader reads no such file
            assert case["mutation"], case
            continue
        start, size = case["original"]
        original = models[start : start + size]
        if "error" in case:
            wrong.append(keep(case, models, case["error"]))
            continue
        if not case["mutation"]:
            seen[case["rule"]] |= set(case["choices"])
            counts["made"] += 1
            if case["found"] == 0:
                wrong.append(keep(case, models, f"not found: {case['near']}"))
        if "expanded" not in case:
            counts["left"] += 1
            if case["mutation"]:
                continue
        try:
            session = session_of(original)
        except Exception as error:
            if not case["mutation"]:
                wrong.append(keep(case, models, f"ONNX Runtime refuses it: {error}"))
            counts["not a model"] += 1
            continue
        if "expanded" not in case:
            continue
        feeds = feeds_of(session, number)
        try:
            expected = session.run(None, feeds)
        except Exception as error:
            if not case["mutation"]:
                wrong.append(keep(case, models, f"ONNX Runtime cannot run it: {error}"))
            counts["does not run"] += 1
            continue
        start, size = case["expanded"]
        try:
            expanded = session_of(models[start : start + size])
            found = expanded.run(None, feeds)
        except Exception as error:
            wrong.append(keep(case, models, f"the expanded model does not run: {error}"))
            continue
        names = [output.name for output in session.get_outputs()]
        if [output.name for output in expanded.get_outputs()] != names:
            wrong.append(keep(case, models, "other outputs"))
            continue
        for name, a, b in zip(names, expected, found, strict=True):
            why = difference(a, b, case["blind"])
            if why:
                wrong.append(keep(case, models, f"{name}: {why} ({case['nodes']})"))
        counts["fused, mutated" if case["mutation"] else "fused"] += 1
    print(dict(counts))
    assert not wrong, f"{len(wrong)} of {len(data['cases'])}:\n" + "\n".join(wrong[:30])
    assert counts["fused"] > 0.3 * counts["made"] and counts["fused, mutated"] > 0
    unseen = {f"{rule} {choice}" for rule, choices in data["rules"].items() for choice in set(choices) - seen[rule]}
    missing = sorted(unseen - set(UNSEEN))
    assert not missing, f"choices that no graph shows: {missing}"


def test_what_is_left_out_is_still_there(made: tuple[dict[str, Any], bytes]) -> None:
    data, _ = made
    impossible = {case["rule"] for case in data["cases"] if "impossible" in case}
    assert impossible == set(IMPOSSIBLE)
    shown = {f"{case['rule']} {choice}" for case in data["cases"] for choice in case.get("choices", [])}
    assert not shown & set(UNSEEN)
