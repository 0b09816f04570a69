"""Rules run backwards: for every rule generated graphs that it must match, and graphs that differ from them in one
place, which must be refused or come out right in numbers.

tests/backwards/generator.h makes the graphs from the rule data; a new rule or alternative is tested without a line
here. What counts as right is ONNX Runtime without graph optimizations on the graph as generated, against
  - the graph after the recognisers, its standard operators written out by tests/python/standard_operators.py, and
  - the graph after optimize and expand.

Not part of the suite yet: some mutated graphs make ONNX Runtime itself abort, which ends the test process, and
unreached.json lags behind the newest rules. It runs where BACKWARDS_COUNT is set. One rule, another seed, more graphs:
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

import numpy
import onnx
import pytest

import standard_operators
from ascend_fuse.session import plain_session

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("ASCEND_FUSE_BUILD", ROOT / "build"))
TOOL = BUILD / "tests" / "backwards_tool"
TEXT_TOOL = BUILD / "tests" / "text_tool"
SEED = int(os.environ.get("BACKWARDS_SEED", "1"))
COUNT = int(os.environ.get("BACKWARDS_COUNT", "30"))
pytestmark = pytest.mark.skipif("BACKWARDS_COUNT" not in os.environ, reason="runs where BACKWARDS_COUNT is set")
MUTANTS = int(os.environ.get("BACKWARDS_MUTANTS", "12"))
RULES = sorted(
    (folder, name)
    for folder in ("library", "npu")
    for path in (ROOT / "patterns" / folder).glob("*.rule")
    for name in re.findall(r"^rule (\w+)", path.read_text(), re.MULTILINE)
)
# What cannot be reached, by rule, each with the reason. "*": no graph of the rule is matched; one that is fails the
# test, delete the entry then. "generator": what the generator lacks; numbers are compared, coverage is not asked for.
ALLOWED = json.loads((ROOT / "tests" / "backwards" / "unreached.json").read_text())
TOLERANCE = {numpy.dtype("float32"): 1e-4, numpy.dtype("float16"): 2e-2, numpy.dtype("float64"): 3e-5}


def records(stream):
    """The records of backwards_tool: a line of JSON, then the models."""
    while line := stream.readline():
        if line == b"\n":
            continue
        record = json.loads(line)
        record["models"] = [stream.read(size) for size in record["sizes"]]
        stream.read(1)
        yield record


def make_inputs(model: onnx.ModelProto, binding: dict, seed: int, scale: float) -> dict:
    random = numpy.random.default_rng(seed)
    weights = {tensor.name for tensor in model.graph.initializer}
    values = {}
    for value in model.graph.input:
        if value.name in weights:
            continue
        tensor = value.type.tensor_type
        dtype = onnx.helper.tensor_dtype_to_np_dtype(tensor.elem_type)
        shape = [binding[dim.dim_param] if dim.dim_param else dim.dim_value for dim in tensor.shape.dim]
        if dtype.kind in "biu":
            array = random.integers(0, 2, shape)
            if array.ndim > 0:  # every row of a mask has a key that is allowed and one that is not, if it can
                array[..., -1] = 0
                array[..., 0] = 1
            values[value.name] = array.astype(dtype)
        else:
            values[value.name] = (random.standard_normal(shape) * scale).astype(dtype)
    return values


def sensitivity(run, outputs, inputs) -> dict:
    """How much each output of the original moves when its inputs change in their last digits: what two right ways to
    compute it may differ by."""
    random = numpy.random.default_rng(0)
    base = run(outputs, inputs)
    worst = dict.fromkeys(outputs, 0.0)
    for _ in range(4):
        moved = {name: value if value.dtype.kind != "f" else
                 (value.astype(numpy.float64) * (1 + numpy.finfo(value.dtype).eps * random.choice([-2, 2], value.shape)))
                 .astype(value.dtype) for name, value in inputs.items()}
        for name, a, b in zip(outputs, base, run(outputs, moved)):
            if a.dtype.kind == "f" and a.shape == b.shape:
                a, b = a.astype(numpy.float64), b.astype(numpy.float64)
                both = numpy.isfinite(a) & numpy.isfinite(b)
                if numpy.array_equal(numpy.isfinite(a), numpy.isfinite(b)) and both.any():
                    worst[name] = max(worst[name], float(numpy.abs(a - b)[both].max()))
                elif both.any() or a.size:
                    worst[name] = numpy.inf
    return worst


def difference(expected, found, skip_zero_rows, allowed=0.0, coarse=False) -> str:
    """"" if the numbers agree. allowed: absolute, beside the relative tolerance."""
    if expected.shape != found.shape or expected.dtype != found.dtype:
        return f"{expected.dtype}{list(expected.shape)} became {found.dtype}{list(found.shape)}"
    if expected.dtype.kind != "f":
        return "" if numpy.array_equal(expected, found) else "other integers"
    tolerance = TOLERANCE[numpy.dtype("float16") if coarse else expected.dtype]
    a, b = expected.astype(numpy.float64), found.astype(numpy.float64)
    if skip_zero_rows and a.ndim > 0:
        keep = numpy.any(b != 0, axis=-1)
        a, b = a[keep], b[keep]
    if a.size == 0:
        return ""
    if expected.dtype == numpy.float16:  # the original may overflow where the kernel's float32 does not
        finite = numpy.isfinite(a)
        a, b = a[finite], b[finite]
        if a.size == 0:
            return ""
    if allowed == numpy.inf:
        return ""
    if not numpy.array_equal(numpy.isfinite(a), numpy.isfinite(b)):
        return "infinite or NaN in other places"
    a, b = a[numpy.isfinite(a)], b[numpy.isfinite(b)]
    if a.size == 0:
        return ""
    scale = max(float(numpy.abs(a).max()), 1e-6)
    error = max(0.0, float(numpy.abs(a - b).max()) - allowed) / scale
    return "" if error <= tolerance else f"relative error {error:.3g}"


class Checker:
    """Compares the models of records."""

    def __init__(self):
        self.checked = self.rejected = self.unknown = 0
        self.wrong, self.impossible = [], []

    def reject(self, record, error) -> None:
        """ONNX Runtime does not run the graph itself: nothing to compare with."""
        self.rejected += 1
        if not record["record"].startswith("mutant"):
            self.impossible.append(f"{record['name']}: {str(error)[:300]}")

    def check(self, record: dict) -> None:
        original, *others = record["models"]
        model = onnx.ModelProto.FromString(original)
        try:
            first = plain_session(original, threads=1)
        except Exception as error:  # noqa: BLE001  ONNX Runtime's own exceptions have no common type
            self.reject(record, error)
            return
        if record["error"].startswith("expand") and "bind the dim" in record["error"]:
            self.unknown += 1  # expand says that it needs a number for a dim
            return
        if record["error"]:
            self.wrong.append((record, record["error"]))
            return
        outputs = [output.name for output in model.graph.output]
        half = any(v.type.tensor_type.elem_type == onnx.TensorProto.FLOAT16 for v in model.graph.input) or any(
            t.data_type == onnx.TensorProto.FLOAT16 for t in model.graph.initializer)
        # A rounding to half precision anywhere may fall to the other side.
        rounded = half or any(a.name == "to" and a.i == onnx.TensorProto.FLOAT16
                              for node in model.graph.node for a in node.attribute)
        empty_rows = any(sentence.startswith("rows with no allowed key") for sentence in record["assumptions"])
        runs, reason = [], None
        for seed, binding in enumerate(record["bindings"]):
            for scale in (1.0,) if half else (1.0, 1e-3, 2.0):
                inputs = make_inputs(model, binding, seed, scale)
                try:
                    runs.append((binding, scale, inputs, first.run(outputs, inputs)))
                except Exception as error:  # noqa: BLE001
                    reason = error
        if not runs:
            self.reject(record, reason)
            return
        for what, data in zip(("recognised", "expanded"), others):
            if not data:
                continue
            other = onnx.ModelProto.FromString(data)
            if what == "recognised":
                standard_operators.write_out(other)
                if standard_operators.unknown(other):
                    self.unknown += 1
                    continue
            try:
                second = plain_session(other.SerializeToString(), threads=1)
                for binding, scale, inputs, expected in runs:
                    found = second.run(outputs, inputs)
                    for name, a, b in zip(outputs, expected, found):
                        if what == "recognised" and a.shape == b.shape and record["kind"] == "attention" and a.ndim > 0:
                            # Rows without any allowed key: what they are is said where the operator is lowered.
                            empty = numpy.all(~numpy.isfinite(b) | (b == 0), axis=-1)
                            if empty_rows:
                                empty |= numpy.all(a == 0, axis=-1)
                            a, b = a[~empty], b[~empty]
                        if record["record"] == "mutant" and a.dtype.kind == "f" and a.shape == b.shape:
                            finite = numpy.isfinite(a)  # a division by what is 0 here and nearly 0 there
                            if not finite.all():
                                a, b = a[finite], b[finite]
                        why = difference(a, b, empty_rows, coarse=rounded)
                        if why:
                            moves = sensitivity(first.run, outputs, inputs)
                            why = difference(a, b, empty_rows, 20 * moves[name], coarse=rounded)
                        if why:
                            raise AssertionError(f"{what} {name}, {binding}, inputs of {scale:g}: {why}")
            except Exception as error:  # noqa: BLE001
                if what == "recognised" and "No Op registered" in str(error):
                    self.unknown += 1  # an operator that is newer than the opset, and not among the formulas
                    continue
                if what == "recognised" and record["kind"] == "attention" and record["record"] == "mutant" and (
                        "became" in str(error) or "Reshape" in str(error)):
                    # A mask that enlarges the scores: the lowering refuses it, where the mask is looked at.
                    self.unknown += 1
                    continue
                self.wrong.append((record, f"{what}: {error}"))
                break
        self.checked += 1


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


@pytest.mark.parametrize(("folder", "rule"), RULES, ids=lambda value: value)
def test_rule(folder, rule):
    arguments = [TOOL, "run", "--rule", rule, "--seed", str(SEED), "--count", str(COUNT), "--mutants", str(MUTANTS)]
    process = subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    checker, summary, lost = Checker(), None, []
    for record in records(process.stdout):
        if record["record"] == "summary":
            summary = record
            continue
        if record["record"] in ("missed", "noise_lost"):
            lost.append(record)
        checker.check(record)
    errors = process.stderr.read().decode()
    if process.wait() != 0 or summary is None:
        traced = subprocess.run([*arguments, "--trace"], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, check=False)
        last = (traced.stderr.decode().splitlines() or ["nothing"])[-1]
        pytest.fail(f"exit code {process.returncode} {errors}; the last graph was: {last}")
    print({key: value for key, value in summary.items() if key not in ("sizes", "models", "record")})
    print("checked", checker.checked, "rejected by ONNX Runtime", checker.rejected, "not checked in part", checker.unknown)
    sentences = []
    for record, why in checker.wrong:
        sentences.append(f"{record['name']}: {why}; see {write_text(record, why)}")
    assert not sentences, f"{len(sentences)} wrong:\n" + "\n".join(sentences[:12])
    allowed = ALLOWED.get(rule, {})
    if "generator" in allowed:  # numbers were compared above; what is not generated yet is no reason to fail
        return
    generated = summary["matched"] + sum(summary["by_other"].values())
    assert len(checker.impossible) <= generated // 4, "ONNX Runtime rejects generated graphs:\n" + "\n".join(checker.impossible[:5])
    # Everything reached, but for what is known not to be.
    if "*" in allowed:
        assert summary["matched"] == 0, f"{rule} is reached now: delete its entry of unreached.json"
        return
    assert summary["matched"] > 0, f"no generated graph is matched: {summary['misses']} {summary['unbuilt']}"
    uncovered = {choice for choice in summary["uncovered"] if strip(choice) not in map(strip, allowed)}
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
