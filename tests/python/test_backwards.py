"""Rules run backwards: for every rule generated graphs that it must match, and graphs that differ from them in one
place, which must be refused or come out right in numbers.

tools/backwards/generator.h makes the graphs from the rule data; a new rule or alternative is tested without a line
here. What counts as right is ONNX Runtime without graph optimizations on the graph as generated, against
  - the graph after the recognisers, its standard operators written out by ascend_fuse.standard_operators, and
  - the graph after optimize and expand.
It runs in a process of its own (ascend_fuse.backwards_oracle), because some of the changed graphs make it end its process: such a
graph counts as rejected, unless the graph as generated ran and the rewritten one does not.

A run is seeded and small. One rule, another seed, more graphs:
    BACKWARDS_SEED=7 BACKWARDS_COUNT=300 pytest -c tests/pytest.ini tests/python/test_backwards.py -k rms_norm
A failure names its graph and writes it as ONNX text to build/backwards/, ready to become a golden test.
"""

from __future__ import annotations

import json
import os
import pathlib
import re
import subprocess
import warnings

import onnx
import pytest

import model_checks
from ascend_fuse.backwards_oracle import Oracle, records

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("ASCEND_FUSE_BUILD", ROOT / "build"))
TOOL = BUILD / "tests" / "backwards_tool"
TEXT_TOOL = BUILD / "tests" / "text_tool"
SEED = int(os.environ.get("BACKWARDS_SEED", "1"))
COUNT = int(os.environ.get("BACKWARDS_COUNT", "6"))  # matched graphs of a rule, more where alternatives want them
MUTANTS = int(os.environ.get("BACKWARDS_MUTANTS", "5"))  # of each
RULES = sorted(
    (folder, name)
    for folder in ("library", "npu")
    for path in (ROOT / "patterns" / "rules" / folder).glob("*.rule")
    for name in re.findall(r"^rule (\w+)", path.read_text(), re.MULTILINE)
)
# Alternatives that cannot be reached, by rule, each with the reason. "*": no graph of the rule is matched; one that is
# fails the test, delete the entry then. "rejected": what is built for it is not a valid model. What such a rule recognises is
# not asked of the rules after it either.
ALLOWED = json.loads((ROOT / "tests" / "backwards" / "unreached.json").read_text())
NEVER = {rule for rule, choices in ALLOWED.items() if {"*", "rejected"} & set(choices)}


def write_text(record: dict, why: str) -> pathlib.Path:
    """The graph as ONNX text with what it shows."""
    folder = BUILD / "backwards"
    folder.mkdir(exist_ok=True)
    stem = re.sub(r"\W+", "_", record["name"])[:120]
    (folder / f"{stem}.onnx").write_bytes(record["models"][0])
    text = subprocess.run([TEXT_TOOL, "show", folder / f"{stem}.onnx"], capture_output=True, text=True, check=False).stdout
    path = folder / f"{stem}.onnxtxt"
    path.write_text(f"# {record['name']} on {record['target']}: {why}\n" +
                    "".join(f"# site {site}\n" for site in record["sites"]) + text)
    return path


def disorder(record: dict) -> str:
    """What is wrong with the form of the rewritten graphs, "" if nothing: see model_checks."""
    original, *rewritten = (onnx.ModelProto.FromString(data) if data else None for data in record["models"])
    for what, model in zip(("recognised", "expanded"), rewritten):
        if model is not None and not record["error"]:
            problems = model_checks.order_problems(model) + model_checks.signature_problems(original, model)
            if problems:
                return f"{what}: {problems[0]}"
    return ""


@pytest.fixture(scope="module")
def oracle():
    oracle = Oracle()
    yield oracle
    oracle.close()


# The quick run takes every sixteenth rule: all of them are half of its time.
@pytest.mark.parametrize(("folder", "rule"), [
    pytest.param(*names, marks=[pytest.mark.slow] if number % 16 else []) for number, names in enumerate(RULES)
], ids=lambda value: value)
def test_rule(folder, rule, oracle):
    arguments = [TOOL, "run", "--rule", rule, "--seed", str(SEED), "--count", str(COUNT), "--mutants", str(MUTANTS)]
    for choice in ALLOWED.get(rule, {}):
        arguments += ["--unreached", choice]
    process = subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    summary, lost, wrong, impossible = None, [], [], []
    checked = rejected = unchecked = 0
    for record in records(process.stdout):
        if record["record"] == "summary":
            summary = record
            continue
        if record["record"] in ("missed", "noise_lost"):
            lost.append(record)
        verdict = oracle.check(record)
        checked += 1
        unchecked += bool(verdict.unchecked)
        why = verdict.wrong or ("" if verdict.rejected else disorder(record))
        if why:
            wrong.append((record, why))
        if verdict.rejected:  # nothing to compare with
            rejected += 1
            if not record["record"].startswith("mutant"):
                impossible.append(f"{record['name']}: {verdict.rejected[:300]}")
    errors = process.stderr.read().decode()
    if process.wait() != 0 or summary is None:
        traced = subprocess.run([*arguments, "--trace"], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, check=False)
        last = (traced.stderr.decode().splitlines() or ["nothing"])[-1]
        pytest.fail(f"exit code {process.returncode} {errors}; the last graph was: {last}")
    print({key: value for key, value in summary.items() if key not in ("sizes", "models", "record")})
    print("checked", checked, "rejected by ONNX Runtime", rejected, "not checked in part", unchecked)
    sentences = [f"{record['name']}: {why}; see {write_text(record, why)}" for record, why in wrong]
    assert not sentences, f"{len(sentences)} wrong:\n" + "\n".join(sentences[:12])
    allowed = ALLOWED.get(rule, {})
    if "*" in allowed:
        by_chance = 0.05 * summary["built"]
        assert summary["matched"] <= by_chance, f"{rule} is reached now: delete its entry of unreached.json"
        return
    generated = summary["matched"] + sum(summary["by_other"].values())
    if "rejected" in allowed:
        assert len(impossible) > generated // 4, f"{rule} is valid now: delete its entry of unreached.json"
        return
    assert len(impossible) <= generated // 4, "ONNX Runtime rejects generated graphs:\n" + "\n".join(impossible[:5])
    # Everything reached, but for what is known not to be.
    assert summary["matched"] > 0, f"no generated graph is matched: {summary['misses']} {summary['unbuilt']}"
    uncovered = {choice for choice in summary["uncovered"] if strip(choice) not in map(strip, allowed)
                 and choice.rpartition(": as ")[2] not in NEVER}
    assert not uncovered, "alternatives without a graph that the rule matches:\n" + "\n".join(sorted(uncovered))
    stale = [choice for choice in allowed if strip(choice) not in map(strip, summary["uncovered"])]
    if stale and SEED == 1:
        warnings.warn(f"unreached.json: {rule} reaches {stale}", stacklevel=1)
    for record in lost:
        print("not matched:", record["name"], write_text(record, "not matched"))
    if folder == "library":
        assert summary["missed"] == 0, f"generated graphs that the rule does not match: {summary['misses']}"


def strip(choice: str) -> str:
    """A choice without line and column, which move with every edit."""
    return re.sub(r"@[\w.]+:\d+:\d+| \(line \d+\)", "", choice)


def test_list_of_unreached():
    names = {rule for _, rule in RULES}
    assert set(ALLOWED) <= names, "unreached.json names rules that do not exist"
