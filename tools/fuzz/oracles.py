"""Examines one graph: runs the original, then every result of `optimize` by three oracles that share no code.

expand     ONNX Runtime on what `expand` writes
as_atc     ONNX Runtime on what `expand --as-atc` writes: standard nodes as that ATC reads them
numpy      the written graph itself, its Ascend nodes in numpy
"""

from __future__ import annotations

import collections
import dataclasses
import hashlib
import re
import tempfile
from pathlib import Path
from typing import Any, Callable

import numpy as np
import onnx
from onnx import TensorProto, helper

import ascend_fuse
from ascend_fuse.session import plain_session
from fuzz import compare, inputs, twins
from fuzz.configuration import Configuration
from fuzz.graph import ARRAYS
from fuzz.npu_numpy import ContractError
from fuzz.plan import Plan, build
from fuzz.written import Written, all_nodes, is_npu, retyped


@dataclasses.dataclass
class Finding:
    """Something that must not be."""

    kind: str  # the oracle or the property
    configuration: str
    sentence: str
    binding: str = ""


# What stands where a query may see no key, in runs that show what depends on it. Kernels give 0 there, of which a norm whose
# epsilon is lost in the type makes NaN.
POISONS = (3.0, -5.0, 0.25, 40.0, -0.7, 0.0)
# Runs that tell what cancels to 0 from what is 0: about half of them give 0 for the mean of one row that a norm centred.
SHAKES = 8


class Unusable(Exception):
    """A plan whose original makes no model, or one that nothing runs."""


def first_line(error: BaseException) -> str:
    text = str(error).strip()
    return f"{type(error).__name__}: {text.splitlines()[0][:400] if text else ''}"


# Kinds that a pass of GE takes in nodes of the model, and not with Ascend nodes, which a second run does not look at.
OF_GE = ("layer_norm", "gelu", "silu", "glu")


def _keeps_an_empty_axis(sentence: str, model: bytes) -> bool:
    """Of an empty tensor, ReduceSum and ReduceMax of ONNX Runtime keep the length of the axis that they reduce where it is counted
    from the end, and what follows fails or has that length."""
    shapes = re.fullmatch(r".*shape \[(.*)\] became \[(.*)\]", sentence)
    before, after = (re.findall(r"\d+", shapes[i]) if shapes else [] for i in (1, 2))
    longer = "0" in before and len(before) == len(after) and all(a in (b, "1") for a, b in zip(before, after, strict=True))
    of_lengths = longer or "broadcast an axis" in sentence or "attempting to re-use buffer" in sentence
    return of_lengths and (b"ReduceSum" in model or b"ReduceMax" in model)


def refusal(error: BaseException) -> str:
    """The codes of what ATC refuses."""
    return " ".join(sorted(set(re.findall(r"\[([a-z0-9-]+)\]", str(error))))) or str(error)[:100]


def passes_checker(model: onnx.ModelProto) -> bool:
    try:
        onnx.checker.check_model(model)
    except onnx.checker.ValidationError:
        return False
    return True


class Runner:
    """A model in ONNX Runtime, as it stands or in another float type where it lacks kernels for its own."""

    def __init__(self, model: onnx.ModelProto, retype: tuple[int, int] | None):
        self.retype = retype
        self.model = retyped(model, *retype) if retype else model
        self.bytes = self.model.SerializeToString()
        self.session = plain_session(self.bytes, 1)

    def __call__(self, feeds: dict[str, Any]) -> dict[str, Any]:
        names = [o.name for o in self.session.get_outputs()]
        given = cast_feeds(feeds, self.retype)
        try:
            return dict(zip(names, self.session.run(None, given)))
        except Exception as error:
            # With a dim of 0, ONNX Runtime may give two tensors one buffer whose shapes differ: not a fault of the model.
            if "re-use buffer" not in str(error):
                raise
            self.session = plain_session(self.bytes, 1, reuse=False)
            return dict(zip(names, self.session.run(None, given)))


def cast_feeds(feeds: dict[str, Any], retype: tuple[int, int] | None) -> dict[str, Any]:
    if retype is None:
        return feeds
    source, target = ({TensorProto.BFLOAT16: ARRAYS["bfloat16"], TensorProto.DOUBLE: np.float64}[retype[0]], np.float32)
    return {k: v.astype(target) if v.dtype == source else v for k, v in feeds.items()}


def round_values(graph: onnx.GraphProto, to: int, is_wanted: Callable[[onnx.NodeProto, str], bool]) -> None:
    """Rounds values of float that nodes give to another type, and makes them float again."""
    nodes: list[onnx.NodeProto] = []
    for node in graph.node:
        nodes.append(node)
        for i, value in enumerate(node.output):
            if not value or not is_wanted(node, value):
                continue
            node.output[i] = f"{value}_before"
            nodes.append(helper.make_node("Cast", [f"{value}_before"], [f"{value}_rounded"], to=to))
            nodes.append(helper.make_node("Cast", [f"{value}_rounded"], [value], to=TensorProto.FLOAT))
    del graph.node[:]
    graph.node.extend(nodes)


class Subject:
    """The original of a plan: its model, inputs, and outputs under every binding."""

    def __init__(self, plan: Plan):
        self.plan = plan
        self.dtype = plan["dtype"]
        self.retype: tuple[int, int] | None = None
        try:
            self.graph = build(plan)
            self.model = inputs.declare(self.graph, plan)
            self.exact_graph = build(plan, exact=True)
            assert self.exact_graph.outputs == self.graph.outputs, "the exact graph is not the same graph"
        except (KeyError, IndexError, ValueError, TypeError) as error:
            raise Unusable(first_line(error)) from error
        self.bytes = self.model.SerializeToString()
        self.checked = passes_checker(self.model)
        self.runner = self._runner()
        self.exact = self._exact_runner()
        self.bindings = inputs.bindings(self.graph, plan)
        self.feeds: dict[str, dict[str, Any]] = {}
        self.originals: dict[str, dict[str, Any] | None] = {}
        self.references: dict[str, dict[str, Any]] = {}
        self.cares: dict[str, dict[str, Any]] = {}
        self.each_rounded: dict[str, dict[str, Any]] = {}
        self.each_halved: dict[str, dict[str, Any]] = {}
        self.each_shaken: dict[str, dict[str, Any]] = {}
        for name, sizes in self.bindings.items():
            self._prepare(name, sizes)
        if not self.feeds:
            raise Unusable("no binding runs")

    def _runner(self) -> Runner:
        if self.dtype == "bfloat16":
            self.retype = (TensorProto.BFLOAT16, TensorProto.FLOAT)
        try:
            if self.retype:
                return Runner(self.model, self.retype)
            return Runner(self.model, None)
        except Exception as error:
            if self.dtype == "double" and self.retype is None:
                self.retype = (TensorProto.DOUBLE, TensorProto.FLOAT)
                return self._runner()
            raise Unusable(first_line(error)) from error

    def _exact_runner(self) -> Runner | None:
        try:
            return Runner(self.exact_graph.model(), None)
        except Exception:
            return None

    def _prepare(self, name: str, sizes: dict[str, int]) -> None:
        feeds = inputs.make(self.graph, self.plan, sizes)
        try:
            original = self.runner(feeds)
            exact = self.exact({k: inputs.widened(v) for k, v in feeds.items()}) if self.exact else None
        except Exception:
            return  # this binding is not one of the original
        self.feeds[name] = feeds
        self.originals[name] = original
        self.references[name] = exact if exact is not None else original  # type: ignore[assignment]

    def rounded(self, name: str) -> dict[str, Any]:
        """The original, each value of it rounded to its type as ONNX says: of float16, of which it has few kernels, ONNX Runtime rounds
        nothing between two kernels of float32 unless the value is an output, and bfloat16 runs in float32 here."""
        if name not in self.each_rounded:
            model = onnx.ModelProto.FromString(self.bytes)
            feeds = self.feeds[name]
            if self.dtype == "bfloat16":
                typed = onnx.shape_inference.infer_shapes(model).graph
                narrow = {v.name for v in [*typed.value_info, *typed.output] if v.type.tensor_type.elem_type == TensorProto.BFLOAT16}
                model, feeds = retyped(model, *self.retype), cast_feeds(feeds, self.retype)
                round_values(model.graph, TensorProto.BFLOAT16, lambda node, value: value in narrow)
                self.each_rounded[name] = Runner(model, None)(feeds)
            else:
                known = {v.name for v in model.graph.output}
                values = [v for node in model.graph.node if node.op_type != "Constant" for v in node.output if v and v not in known]
                model.graph.output.extend(onnx.ValueInfoProto(name=v) for v in values)
                self.each_rounded[name] = Runner(model, self.retype)(feeds)
        return self.each_rounded[name]

    def halved(self, name: str) -> dict[str, Any]:
        """The original, what its quantised linears give rounded to float16."""
        if name not in self.each_halved:
            model = onnx.ModelProto.FromString(self.bytes)
            products = ("MatMul", "Gemm", "MatMulNBits", "Mul")
            round_values(model.graph, TensorProto.FLOAT16, lambda node, value: ".quantised/" in node.name and node.op_type in products)
            self.each_halved[name] = Runner(model, None)(self.feeds[name])
        return self.each_halved[name]

    def shaken(self, name: str) -> dict[str, Any]:
        """The exact graph of inputs that are a little other, by output the largest of some runs: of numbers that cancel to 0, such as the
        mean of one row that a norm centred, more than 0 is left in one of them. A product with zeros stays 0."""
        if name not in self.each_shaken:
            runner = self.exact or self.runner
            feeds = {k: inputs.widened(v) if self.exact else v for k, v in self.feeds[name].items()}
            runs = [runner({k: shaken(v, turn) for k, v in feeds.items()}) for turn in range(SHAKES)]
            self.each_shaken[name] = {o: max((run[o] for run in runs), key=lambda v: np.max(np.abs(v), initial=0)) for o in self.graph.outputs}
        return self.each_shaken[name]

    def care(self, name: str) -> dict[str, Any]:
        """Where an output does not depend on rows without a key: runs of the original that differ in nothing else."""
        if name not in self.cares:
            exact = self.exact is not None
            feeds = {k: inputs.widened(v) for k, v in self.feeds[name].items()} if exact else self.feeds[name]
            # The graph itself is one of them: what it makes NaN of such rows spreads further than any number.
            runs = [[np.asarray(self.references[name][o]) for o in self.graph.outputs]]
            for poison in POISONS:
                poisoned = build(self.plan, exact=exact, poison=poison)
                results = Runner(poisoned.model(), None)(feeds)
                runs.append([np.asarray(results[o]) for o in poisoned.outputs])
            # What depends on such a row differs in some of them; one may be equal by chance, after a ReLU for example.
            self.cares[name] = {}
            for output, first, *others in zip(self.graph.outputs, *runs):
                same = [(first == other) | ((first != first) & (other != other)) for other in others]
                self.cares[name][output] = np.logical_and.reduce(same)
        return self.cares[name]


def shaken(value: Any, turn: int) -> Any:
    """Each element times another number next to 1; what is no floating point stays."""
    value = np.asarray(value)
    if value.dtype.kind != "f":
        return value
    return (value * (1 + 2.0**-20 * np.cos(turn + np.arange(value.size)).reshape(value.shape))).astype(value.dtype)


@dataclasses.dataclass
class Examined:
    """What became of one graph under all configurations."""

    findings: list[Finding] = dataclasses.field(default_factory=list)
    nodes: collections.Counter[str] = dataclasses.field(default_factory=collections.Counter)  # emitted, by type
    evaluated: collections.Counter[str] = dataclasses.field(default_factory=collections.Counter)  # compared in numpy
    refusals: collections.Counter[str] = dataclasses.field(default_factory=collections.Counter)
    runs: int = 0
    comparisons: int = 0
    nearest: float = 0.0  # the largest share of a bound that was used


def attribute_of(node: onnx.NodeProto, name: str, default: int) -> int:
    """An attribute of a node that is a whole number."""
    return next((a.i for a in node.attribute if a.name == name), default)


class Examiner:
    """Runs configurations of one subject; what two of them write alike is compared once."""

    def __init__(self, subject: Subject):
        self.subject = subject
        self.result = Examined()
        self.seen: dict[bytes, list[tuple[str, str, str]]] = {}

    def examine(self, configuration: Configuration) -> None:
        self.configuration = configuration
        self.refused = False  # ATC refuses the result, which was said
        self.result.runs += 1
        written = self._optimize()
        if written is None:
            return
        out, report = written
        self.dont_care = any("no allowed key" in text for site in report.sites for text in site.assumptions) or any(
            "no allowed key" in warning.message for warning in report.warnings)
        try:
            model = onnx.load_model_from_string(out)
        except Exception as error:
            self._find("corrupt", first_line(error))
            return
        # What QuantBatchMatMul gives is float16, in a model of float32 too (docs/quantised.md): then its unit is what results are
        # compared by.
        halves = any(node.op_type in ("QuantBatchMatMul", "NPUQuantBatchMatMul") and attribute_of(node, "dtype", 1) == 1
                     for node in all_nodes(model.graph.node))
        self.unit = "halves" if halves and self.subject.dtype == "float" else self.subject.dtype
        self.result.nodes.update(node.op_type for node in all_nodes(model.graph.node) if is_npu(node))
        self._interface(model)
        self._loads(out)
        self._again(out, report)
        self._numbers("numpy", out, lambda: self._numpy(model))
        self._numbers("expand", out, lambda: self._expanded(out, False))
        if not self.refused:  # else it is another computation, which was said
            self._numbers("as_atc", out, lambda: self._expanded(out, True))

    def _find(self, kind: str, sentence: str, binding: str = "") -> None:
        self.result.findings.append(Finding(kind, str(self.configuration), sentence, binding))

    def _optimize(self) -> tuple[bytes, Any] | None:
        options = self.configuration.options()
        with tempfile.TemporaryDirectory(prefix="ascend-fuse-fuzz-") as folder:
            given: Any = self.subject.bytes
            if self.configuration.weights:
                given = Path(folder) / "model.onnx"
                given.write_bytes(self.subject.bytes)
            try:
                try:
                    result = ascend_fuse.optimize(given, **options)
                except ascend_fuse.NotReadByAtc as error:
                    self.result.refusals[refusal(error)] += 1
                    self.refused = True
                    if ": npu.NPU" in str(error) or "(npu.NPU" in str(error) or "empty-input-in-branch" in str(error):
                        self._find("own node refused", str(error)[:300])
                    result = ascend_fuse.optimize(given, **options, force=True)
            except ascend_fuse.AscendFuseError as error:
                self._find("refused", first_line(error))
                return None
            if not self.configuration.weights:
                return result.to_bytes(), result.report
            saved = Path(folder) / "out.onnx"
            result.save(saved, weights=self.configuration.weights)
            try:
                return onnx.load(str(saved)).SerializeToString(), result.report
            except Exception as error:
                self._find("saved", first_line(error))
                return result.to_bytes(), result.report

    def _interface(self, model: onnx.ModelProto) -> None:
        """Names, types and shapes of inputs and outputs stay."""
        for before, after, what in ((self.subject.model.graph.input, model.graph.input, "input"),
                                    (self.subject.model.graph.output, model.graph.output, "output")):
            if [v.name for v in before] != [v.name for v in after]:
                self._find("interface", f"{what}s {[v.name for v in before]} became {[v.name for v in after]}")
                continue
            for a, b in zip(before, after):
                fixed = bool(self.configuration.fix)
                if a.type.tensor_type.elem_type != b.type.tensor_type.elem_type or (not fixed and a.type != b.type and a.type.tensor_type.HasField("shape")):
                    self._find("interface", f"the type of {what} {a.name} changed")

    def _loads(self, out: bytes) -> None:
        try:
            ascend_fuse.check(out, **self.configuration.for_check())
        except ascend_fuse.AscendFuseError as error:
            self._find("check", first_line(error))

    def _again(self, out: bytes, report: Any) -> None:
        try:
            second = ascend_fuse.optimize(out, **self.configuration.options(again=True), force=True)
        except ascend_fuse.AscendFuseError as error:
            self._find("again", first_line(error))
            return
        for kind in OF_GE:  # what GE is said to take has to stand in the file
            said, there = (len(r.of(kind, "by_ge")) for r in (report, second.report))
            if there < said and there < twins.distinct(self.subject.model, (site.node for site in report.of(kind, "by_ge"))):
                self._find("ge", f"{said} {kind} are said to be GE's, and {there} are in the file")
        again = second.to_bytes()
        if again != out:
            before, after = (sorted(n.op_type for n in all_nodes(onnx.load_model_from_string(b).graph.node)) for b in (out, again))
            gone = collections.Counter(before) - collections.Counter(after)
            new = collections.Counter(after) - collections.Counter(before)
            self._find("again", f"a second run changes it: {dict(gone)} became {dict(new)}")

    def _expanded(self, out: bytes, as_atc: bool) -> Any:
        text = ascend_fuse.expand(out, as_atc=as_atc, **self.configuration.for_expand()).to_bytes()
        key = hashlib.sha256(text).digest()
        if key in self.seen:
            return key
        model = onnx.load_model_from_string(text)
        if not as_atc and self.subject.checked:
            onnx.checker.check_model(model)
        return key, Runner(model, self.subject.retype)

    def _numpy(self, model: onnx.ModelProto) -> Any:
        retype = self.subject.retype
        written = Written(retyped(model, *retype) if retype else model)

        def run(feeds: dict[str, Any]) -> dict[str, Any]:
            results = written.run(cast_feeds(feeds, retype))
            self.result.evaluated.update(written.used)
            written.used.clear()
            return results

        run.bytes = model.SerializeToString()  # type: ignore[attr-defined]
        return hashlib.sha256(b"numpy" + run.bytes).digest(), run  # type: ignore[attr-defined]

    def _numbers(self, kind: str, out: bytes, make: Any) -> None:
        if kind == "numpy":
            key = hashlib.sha256(b"numpy" + out).digest()
            if key in self.seen:
                return
            self.seen[key] = []
        try:
            made = make()
        except ascend_fuse.AscendFuseError as error:
            self._find(kind, first_line(error))
            return
        except Exception as error:
            if not self._lacks_a_kernel(error):
                self._find(kind, first_line(error))
            return
        if isinstance(made, bytes):
            for earlier, sentence, binding in self.seen[made]:
                if kind != earlier:
                    continue
                self._find(kind, sentence, binding)
            return
        key, run = made
        self.seen[key] = []
        for binding in self.subject.feeds:
            if not self.configuration.allows(self.subject.bindings[binding], self.subject.graph.dims):
                continue
            try:
                results = run(self.subject.feeds[binding])
            except ContractError as error:
                self._report(key, "contract", str(error), binding)
                continue
            except Exception as error:
                # A dim of 0 that ends with an error is told apart from numbers that are wrong. Before opset 14 no Reshape can
                # say a computed 0.
                if self._lacks_a_kernel(error):
                    continue
                if binding == "edge" and self.subject.plan["opset"] < 14 and "Reshape" in str(error):
                    self.result.refusals["empty Reshape before opset 14"] += 1
                    continue
                if binding == "edge" and _keeps_an_empty_axis(str(error), getattr(run, "bytes", b"")):
                    self.result.refusals["a reduction of an empty tensor in ONNX Runtime"] += 1
                    continue
                self._report(key, "empty" if binding == "edge" else kind, first_line(error), binding)
                continue
            self._compare(key, kind, binding, results, getattr(run, "bytes", b""))

    def _lacks_a_kernel(self, error: Exception) -> bool:
        """Of doubles: the result may have another opset than the original, and ONNX Runtime fewer kernels there."""
        if self.subject.dtype != "double" or "NOT_IMPLEMENTED" not in str(error):
            return False
        self.result.refusals["no kernel of double in ONNX Runtime"] += 1
        return True

    def _report(self, key: bytes, kind: str, sentence: str, binding: str) -> None:
        self.seen[key].append((kind, sentence, binding))
        self._find(kind, sentence, binding)

    def _compare(self, key: bytes, kind: str, binding: str, results: dict[str, Any], model: bytes) -> None:
        subject = self.subject
        originals, references = subject.originals[binding], subject.references[binding]
        for output in subject.graph.outputs:
            if output not in results:
                self._report(key, kind, f"no output {output}", binding)
                continue
            original = originals[output] if originals is not None else None
            self.result.comparisons += 1
            sentence, used = compare.difference(results[output], original, references[output], self.unit)
            rounded = {"float16": subject.rounded, "bfloat16": subject.rounded, "halves": subject.halved}.get(self.unit)
            if sentence and rounded is not None and original is not None:
                original = rounded(binding)[output]
                sentence, used = compare.difference(results[output], original, references[output], self.unit)
            if sentence and not np.any(references[output]):
                sentence, used = compare.difference(results[output], original, subject.shaken(binding)[output], self.unit)
            if sentence and self.dont_care:
                sentence, used = compare.difference(results[output], original, references[output], self.unit, subject.care(binding)[output])
            if sentence and binding == "edge" and _keeps_an_empty_axis(sentence, model):
                self.result.refusals["a reduction of an empty tensor in ONNX Runtime"] += 1
            elif sentence:
                self._report(key, kind, f"{output}: {sentence}", binding)
            else:
                self.result.nearest = max(self.result.nearest, used)
