"""Compares the graphs of rules run backwards in numbers, in a process of its own: some of them make ONNX Runtime end the
process that runs them, which is a finding about that graph and must not be the end of the tests.

Oracle is the caller's side. The child is this module as a program: it reads pickled records, and for each writes what it is
about to run ("original", "recognised", "expanded") and then its Verdict. It is started once and again after a crash.
"""

from __future__ import annotations

import json
import os
import pickle
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

import numpy
import onnx

from ascend_fuse import standard_operators

TOLERANCE = {numpy.dtype("float32"): 1e-4, numpy.dtype("float16"): 2e-2, numpy.dtype("float64"): 3e-5}


@dataclass
class Verdict:
    """What came of one record. rejected: why ONNX Runtime does not run the graph as generated; wrong: in what the
    rewritten one differs; unchecked: stages that no formula covers."""

    rejected: str = ""
    wrong: str = ""
    unchecked: list[str] = field(default_factory=list)


def records(stream: IO[bytes]) -> Iterator[dict]:
    """Yields the records that the program writes for `rules test --graphs`: a line of JSON, then the models."""
    while line := stream.readline():
        if line == b"\n":
            continue
        record = json.loads(line)
        record["models"] = [stream.read(size) for size in record["sizes"]]
        stream.read(1)
        yield record


class Oracle:
    """Verdicts from a child process, which is replaced when ONNX Runtime ends it."""

    def __init__(self) -> None:
        self.child = None
        self.crashes = 0

    def check(self, record: dict) -> Verdict:
        """Returns what came of one record, which has the bytes of its models under "models"."""
        if self.child is None:
            path = os.pathsep.join(filter(None, [str(Path(__file__).resolve().parents[1]), os.environ.get("PYTHONPATH")]))
            self.child = subprocess.Popen([sys.executable, "-m", "ascend_fuse.backwards_oracle"], stdin=subprocess.PIPE,
                                          stdout=subprocess.PIPE, env=dict(os.environ, PYTHONPATH=path))
        stage = "original"
        try:
            pickle.dump(record, self.child.stdin)
            self.child.stdin.flush()
            while isinstance(message := pickle.load(self.child.stdout), str):
                stage = message
            return message
        except (EOFError, BrokenPipeError, pickle.UnpicklingError):
            code = self.child.wait()
            self.child = None
            self.crashes += 1
            what = f"ONNX Runtime ended its process with {code} on the {stage} graph"
            return Verdict(rejected=what) if stage == "original" else Verdict(wrong=what)

    def close(self) -> None:
        """Ends the child."""
        if self.child is not None:
            self.child.stdin.close()
            self.child.stdout.close()
            self.child.wait()
            self.child = None


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


def rounded_elsewhere(model: onnx.ModelProto, outputs, inputs) -> dict:
    """How much each element of the outputs moves when every float value between the nodes of a model does in its last
    digit: what the order of right steps may make of it."""
    random = numpy.random.default_rng(0)
    produced = [name for node in model.graph.node for name in node.output if name]
    inside = onnx.ModelProto()
    inside.CopyFrom(model)
    del inside.graph.output[:]
    inside.graph.output.extend(onnx.ValueInfoProto(name=name) for name in produced)
    values = dict(zip(produced, session(inside).run(produced, inputs)))
    worst = {name: numpy.zeros(values[name].shape) for name in outputs if values[name].dtype.kind == "f"}
    for _ in range(8):
        moved = onnx.ModelProto()
        moved.CopyFrom(model)
        del moved.graph.node[:]
        for original in model.graph.node:
            node = moved.graph.node.add()
            node.CopyFrom(original)
            for i, name in enumerate(original.output):
                value = values.get(name)
                if name in outputs or getattr(value, "dtype", numpy.dtype(bool)).kind != "f":
                    continue
                noise = 1 + numpy.finfo(value.dtype).eps * random.choice([-1, 1], value.shape)
                moved.graph.initializer.append(onnx.numpy_helper.from_array(noise.astype(value.dtype), f"{name}~noise"))
                node.output[i] = f"{name}~exact"
                moved.graph.node.add(op_type="Mul", input=[f"{name}~exact", f"{name}~noise"], output=[name])
        found = dict(zip(outputs, session(moved).run(outputs, inputs)))
        for name, most in worst.items():
            apart = numpy.abs(values[name].astype(numpy.float64) - found[name].astype(numpy.float64))
            numpy.fmax(most, apart, out=most)
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


def is_half(model: onnx.ModelProto) -> bool:
    """Whether inputs or weights are in half precision."""
    half = onnx.TensorProto.FLOAT16
    return any(v.type.tensor_type.elem_type == half for v in model.graph.input) or any(
        t.data_type == half for t in model.graph.initializer)


def fits(output: onnx.ValueInfoProto, array, binding: dict) -> bool:
    """Whether an output has the shape that the graph declares, which ONNX Runtime does not ask for."""
    tensor = output.type.tensor_type
    if not tensor.HasField("shape"):
        return True
    declared = [binding.get(dim.dim_param) if dim.dim_param else dim.dim_value for dim in tensor.shape.dim]
    return len(declared) == array.ndim and all(d is None or d == n for d, n in zip(declared, array.shape))


def compare(what, record, outputs, expected, found, first, models, inputs, coarse) -> str:
    """In what one run of a rewritten graph differs from the same run of the original, "" if in nothing. models: both."""
    why = compare_runs(what, record, outputs, expected, found, first, inputs, coarse)
    if not why:
        return ""
    moves = [rounded_elsewhere(model, outputs, inputs) for model in models]
    nearer = []
    for name, a, b in zip(outputs, expected, found):
        if a.dtype.kind == "f" and a.shape == b.shape:
            most = numpy.maximum(*(move[name] for move in moves))
            if a.ndim > 0:  # a few samples: what moves one element of a row (another winner of a softmax) may move all
                most = numpy.broadcast_to(most.max(axis=-1, keepdims=True, initial=0.0), a.shape)
            apart = b.astype(numpy.float64) - a
            apart = numpy.sign(apart) * numpy.maximum(numpy.abs(apart) - 20 * most, 0)
            b = numpy.where(most > 0, a + apart, b).astype(b.dtype)
        nearer.append(b)
    return compare_runs(what, record, outputs, expected, nearer, first, inputs, coarse)


def compare_runs(what, record, outputs, expected, found, first, inputs, coarse) -> str:
    """The same by the sensitivity of the original alone."""
    empty_rows = any(sentence.startswith("rows with no allowed key") for sentence in record["assumptions"])
    for name, a, b in zip(outputs, expected, found):
        if what == "recognised" and a.shape == b.shape and record["kind"] == "attention" and a.ndim > 0:
            # Rows without any allowed key: what they are is said where the operator is lowered.
            empty = numpy.all(~numpy.isfinite(b) | (b == 0), axis=-1)
            if empty_rows:
                empty |= numpy.all(a == 0, axis=-1)
            a, b = a[~empty], b[~empty]
        if record["record"] == "mutant" and a.dtype.kind == "f" and a.shape == b.shape:
            finite = numpy.isfinite(a) & numpy.isfinite(b)  # a division by what is 0 here and nearly 0 there
            if 2 * finite.sum() >= a.size:
                a, b = numpy.where(finite, a, a.dtype.type(0)), numpy.where(finite, b, b.dtype.type(0))
        why = difference(a, b, empty_rows, coarse=coarse)
        if why:
            moves = sensitivity(first.run, outputs, inputs)
            why = difference(a, b, empty_rows, 20 * moves[name], coarse=coarse)
        if why:
            return f"{name}: {why}"
    return ""


def session(model: onnx.ModelProto):
    """A session of a model; operators that ONNX Runtime does not run on a CPU are written out."""
    from ascend_fuse.session import plain_session

    try:
        return plain_session(model.SerializeToString(), threads=1)
    except Exception as error:  # noqa: BLE001  ONNX Runtime's own exceptions have no common type
        if "NOT_IMPLEMENTED" not in str(error) and "in node ()" not in str(error):  # in the body of an operator
            raise
    written = onnx.ModelProto()
    written.CopyFrom(model)
    standard_operators.write_out(written, standard_operators.NOT_ON_CPU)
    return plain_session(written.SerializeToString(), threads=1)


def judge(record: dict, announce) -> Verdict:
    """Runs the models of a record; announce is told what runs next."""
    original, *others = record["models"]
    model = onnx.ModelProto.FromString(original)
    announce("original")
    try:
        first = session(model)
    except Exception as error:  # noqa: BLE001
        return Verdict(rejected=str(error))
    outputs = [output.name for output in model.graph.output]
    half = is_half(model)
    # A rounding to half precision anywhere may fall to the other side.
    rounded = half or any(a.name == "to" and a.i == onnx.TensorProto.FLOAT16
                          for node in model.graph.node for a in node.attribute)
    runs, reason = [], None
    for seed, binding in enumerate(record["bindings"]):
        for scale in (1.0,) if half else (1.0, 1e-3, 2.0):
            inputs = make_inputs(model, binding, seed, scale)
            try:
                expected = first.run(outputs, inputs)
            except Exception as error:  # noqa: BLE001
                reason = error
                continue
            if all(fits(output, array, binding) for output, array in zip(model.graph.output, expected)):
                runs.append((binding, scale, inputs, expected))
            else:
                reason = "an output has another shape than the graph declares"
    if not runs:
        return Verdict(rejected=str(reason))
    if record["error"].startswith("expand") and (
            "bind the dim" in record["error"] or (record["record"] == "mutant_error" and any(record["bindings"]))):
        # expand says that it needs a number for a dim, or that dims are equal, which an operator said that is gone.
        return Verdict(unchecked=["expanded"])
    if record["error"]:
        return Verdict(wrong=record["error"])
    verdict = Verdict()
    for what, data in zip(("recognised", "expanded"), others):
        if not data:
            continue
        other = onnx.ModelProto.FromString(data)
        if what == "recognised":
            standard_operators.write_out(other)
            if standard_operators.unknown(other):
                verdict.unchecked.append(what)
                continue
        announce(what)
        try:
            second = session(other)
            for binding, scale, inputs, expected in runs:
                found = second.run(outputs, inputs)
                why = compare(what, record, outputs, expected, found, first, (model, other), inputs, rounded)
                if why:
                    raise AssertionError(f"{what} {binding}, inputs of {scale:g}, {why}")
        except Exception as error:  # noqa: BLE001
            if what == "recognised" and "No Op registered" in str(error):
                verdict.unchecked.append(what)  # an operator that is newer than the opset, and not among the formulas
                continue
            if what == "recognised" and record["kind"] == "attention" and record["record"] == "mutant" and (
                    "became" in str(error) or "Reshape" in str(error)):
                # A mask that enlarges the scores: the lowering refuses it, where the mask is looked at.
                verdict.unchecked.append(what)
                continue
            verdict.wrong = f"{what}: {error}"
            break
    return verdict


def main() -> None:
    out = sys.stdout.buffer
    sys.stdout = sys.stderr  # what a library prints is not a message

    def send(message) -> None:
        pickle.dump(message, out)
        out.flush()

    while True:
        try:
            record = pickle.load(sys.stdin.buffer)
        except EOFError:
            return
        send(judge(record, send))


if __name__ == "__main__":
    from ascend_fuse import backwards_oracle  # by the name under which the other side knows Verdict

    backwards_oracle.main()
