"""The functions of the package: each takes a model as a path, as bytes, or as an object of onnx, onnx_ir or torch.onnx."""

from __future__ import annotations

import contextlib
import json
import operator
import os
from pathlib import Path
from typing import Any, Callable, Iterable, Iterator, Mapping, Sequence, Tuple, Union

from ascend_fuse import _core, errors
from ascend_fuse.analysis import Analysis
from ascend_fuse.passes import Pass
from ascend_fuse.report import Report

# A path, bytes, an onnx.ModelProto, an onnx_ir.Model or a torch.onnx.ONNXProgram. The types of those packages are not named:
# none of them is needed by who does not use it.
ModelLike = Any
# Told the name of the pass (or "save"), how far it is, and of how much.
Progress = Callable[[str, int, int], object]
Dims = Mapping[str, Union[int, Tuple[int, int], Tuple[int, int, int]]]
Rules = Sequence[Union[str, "os.PathLike[str]"]]

_MOST_BYTES = 2**31 - 1


class Expanded:
    """A model that came out of a run. The weights of a model given by path are still in that file."""

    def __init__(self, loaded: _Loaded) -> None:
        self._loaded = loaded

    @property
    def model(self) -> Any:
        """The model as the kind of object that was given; a path gives an onnx.ModelProto, with external data left where
        it is."""
        return self._loaded.again(self._loaded.core.to_bytes())

    def to_bytes(self) -> bytes:
        """Returns the model as the bytes of a file."""
        return self._loaded.core.to_bytes()

    def save(
        self, path: str | os.PathLike[str], *, weights: str = "copy", copy_data: bool = False,
        progress: Progress | bool | None = None,
    ) -> None:
        """Writes the model; the path may be the one that it came from. Nothing is left behind by an error or by Control-C.

        weights    "copy": where the input has them, from file to file; "reference": only the graph is written, and weights are
                   read from the input's files; else the name of a file beside the model for all of them.
        copy_data  copies data files that the folder of `path` does not have.
        """
        with _progress(progress) as told:
            self._loaded.core.save(os.fspath(path), weights, copy_data, told)

    def to_text(self, most_elements: int = 16) -> str:
        """Returns the model as ONNX text; longer constants are elided, -1 elides none."""
        return self._loaded.core.text(most_elements)


class Result(Expanded):
    """An optimized model and the report of how it came about."""

    def __init__(self, loaded: _Loaded, report: Report) -> None:
        super().__init__(loaded)
        self.report = report

    def __repr__(self) -> str:
        return f"<Result {self.report.in_short()}>"

    def _repr_html_(self) -> str:
        return self.report._repr_html_()


def optimize(
    model: ModelLike,
    *,
    target: str = "ascend910b",
    cann: str = "8.1",
    plugin: bool = False,
    precision_mode: str = "force_fp16",
    style: str = "",
    rules: Rules = (),
    passes: Iterable[Pass] = (),
    dims: Dims | None = None,
    assume: Mapping[str, str] | None = None,
    strict: bool = False,
    skip: Sequence[str] = (),
    limit: int | None = None,
    fix: Mapping[str, int] | None = None,
    prefer: Sequence[str] = (),
    keep_rest: bool = False,
    tidy: Sequence[str] = (),
    quantised: str = "exact",
    force: bool = False,
    require: Sequence[str] = (),
    base_dir: str | os.PathLike[str] | None = None,
    progress: Progress | bool | None = None,
) -> Result:
    """Fuses what the target can run fused. The model that is given is not changed.

    target, cann, plugin, precision_mode, style, strict, skip, limit: as the flags of `ascend-fuse optimize`.
    rules      files of rules, or their text (which has a line break).
    passes     passes of your own, in Python.
    dims       what a symbolic dim can be: {"batch": 4, "seq": (1, 2048), "past": (0, 4096, 16)}, the last one in
               multiples of 16.
    assume     what an input holds: {"attention_mask": "left-padded"}.
    fix        as dims with one number, which is written into the model: {"batch": 1}.
    prefer     nodes to emit although they were measured slower.
    keep_rest  leaves what is not fused as it is, byte for byte.
    tidy       kinds of tidying of what is not fused; all, unless some are named.
    quantised  what quantised operators become: "exact", what ONNX Runtime computes, "fast", with all kernels of integers,
               "per-token", the same and quantised by rows what the model quantises by its range, or "float", without rounding
               activations.
    force      returns the model also where ATC refuses or misreads it; else NotReadByAtc, which has the report.
    require    kinds of which nothing may be left; else RequirementNotMet, which has the report.
    base_dir   where the external data of a model in memory lies.
    progress   a function (pass, number, count), or True for a bar of tqdm where that is installed.
    """
    options = _options(target, cann, plugin, precision_mode, style, dims, assume, strict, skip, limit, fix, prefer, keep_rest,
                       tidy, quantised)
    loaded = _load(model, base_dir)
    report = _run(loaded, "optimize", options, rules, passes, progress)
    _check_required(report, require)
    if report.fatal and not force:
        why = "; ".join(_core.why_not_written(report.to_json()))
        raise errors.NotReadByAtc(
            f"ATC of CANN {report.target.cann} refuses or misreads the model ({why}); force=True returns it all the same", report)
    return Result(loaded, report)


def list_opportunities(
    model: ModelLike,
    *,
    rules: Rules = (),
    passes: Iterable[Pass] = (),
    dims: Dims | None = None,
    assume: Mapping[str, str] | None = None,
    target: str = "ascend910b",
    cann: str = "8.1",
    plugin: bool = False,
    precision_mode: str = "force_fp16",
    style: str = "",
    strict: bool = False,
    skip: Sequence[str] = (),
    fix: Mapping[str, int] | None = None,
    prefer: Sequence[str] = (),
    keep_rest: bool = False,
    tidy: Sequence[str] = (),
    quantised: str = "exact",
    base_dir: str | os.PathLike[str] | None = None,
    progress: Progress | bool | None = None,
) -> Report:
    """Returns the report of what `optimize` would do; nothing is changed or written."""
    options = _options(target, cann, plugin, precision_mode, style, dims, assume, strict, skip, None, fix, prefer, keep_rest, tidy,
                       quantised)
    return _run(_load(model, base_dir), "list", options, rules, passes, progress)


def analyze(
    model: ModelLike,
    *,
    rules: Rules = (),
    dims: Dims | None = None,
    assume: Mapping[str, str] | None = None,
    target: str = "ascend910b",
    cann: str = "8.1",
    plugin: bool = False,
    precision_mode: str = "force_fp16",
    fix: Mapping[str, int] | None = None,
    base_dir: str | os.PathLike[str] | None = None,
    progress: Progress | bool | None = None,
) -> Analysis:
    """Returns what the model computes, moves and needs, as it is and as `optimize` would write it, and what to do next."""
    options = _options(target, cann, plugin, precision_mode, "", dims, assume, False, (), None, fix)
    with _progress(progress) as told:
        return Analysis.from_texts(*_load(model, base_dir).core.analyze(options, _rules(rules), told))


def check(
    model: ModelLike,
    *,
    target: str = "ascend910b",
    cann: str = "8.1",
    plugin: bool = False,
    precision_mode: str = "force_fp16",
    dims: Dims | None = None,
    fix: Mapping[str, int] | None = None,
    base_dir: str | os.PathLike[str] | None = None,
    progress: Progress | bool | None = None,
) -> Report:
    """Returns what ATC refuses, reads as something else or runs slowly in the model as it is: `findings`, and `fatal`."""
    options = _options(target, cann, plugin, precision_mode, "", dims, None, False, (), None, fix)
    return _run(_load(model, base_dir), "check", options, (), (), progress)


def expand(
    model: ModelLike,
    *,
    rules: Rules = (),
    dims: Dims | None = None,
    as_atc: bool = False,
    target: str = "ascend910b",
    cann: str = "8.1",
    plugin: bool = False,
    precision_mode: str = "force_fp16",
    base_dir: str | os.PathLike[str] | None = None,
    progress: Progress | bool | None = None,
) -> Expanded:
    """Turns NPU nodes back into standard ONNX. With `as_atc`, standard operators are taken as ATC of the target reads them."""
    options = _options(target, cann, plugin, precision_mode, "", dims, None, False, (), None)
    loaded = _load(model, base_dir)
    with _progress(progress) as told:
        loaded.core.expand(options, _rules(rules), as_atc, told)
    return Expanded(loaded)


def verify(original: ModelLike, optimized: ModelLike, **options: Any) -> Any:
    """Runs both models in ONNX Runtime and compares all outputs and every rewritten place by itself.

    Returns an ascend_fuse.verification.Result: `.ok`, `.to_text ()`, `.comparisons`, `.regions`. `optimized` may be what
    `optimize` returned, whose report is used then. Options are those of ascend_fuse.verification.verify_models. Needs numpy,
    onnx and onnxruntime.
    """
    import tempfile

    from ascend_fuse import verification

    with tempfile.TemporaryDirectory(prefix="ascend-fuse-") as folder:
        if isinstance(optimized, Result):
            options.setdefault("report", json.loads(optimized.report.to_json()))
        paths = [_as_path(model, Path(folder) / name) for model, name in ((original, "original"), (optimized, "optimized"))]
        return verification.verify_models(*paths, **options)


def precision(model: ModelLike, **options: Any) -> Any:
    """Says what float16 does to a model: types, constants and risks; with inputs also ranges, and which nodes have to stay float32.

    Returns an ascend_fuse.precision_records.PrecisionReport: `.ok`, `.keep`, `.risks`, `.to_text ()`, `.to_json ()`. Options are those
    of ascend_fuse.precision_analysis.analyse: data="feeds.npz", seeded=True, keep_dtype="keep.cfg". Needs numpy, onnx and onnxruntime.
    """
    import tempfile

    from ascend_fuse import precision_analysis

    with tempfile.TemporaryDirectory(prefix="ascend-fuse-") as folder:
        return precision_analysis.analyse(_as_path(model, Path(folder) / "model"), **options)


def explain(code: str | None = None) -> str:
    """Returns what a code of a report means and what can be done about it; without a code, all of them with their titles."""
    return _core.list_codes() if code is None else _core.explain(code)


def chips() -> list[str]:
    """Returns the chips there is data of."""
    return _core.chips()


def targets(chip: str | None = None, operator: str = "", *, cann: str = "8.1", plugin: bool = False) -> str:
    """Returns the chips and CANN versions there are; or what is known of a chip, or of an operator on it."""
    if chip is None:
        return _core.describe_targets()
    return _core.describe_target([("target", chip), ("cann", cann), ("plugin", str(plugin).lower())], operator)


class _Loaded:
    """A model in the library, and how it becomes again what it was."""

    def __init__(self, core: _core.Model, again: Callable[[bytes], Any]) -> None:
        self.core, self.again = core, again


def _load(model: ModelLike, base_dir: str | os.PathLike[str] | None = None) -> _Loaded:
    if isinstance(model, Expanded):
        return _Loaded(_core.Model.from_bytes(model.to_bytes(), _beside(base_dir)), model._loaded.again)
    if isinstance(model, (str, os.PathLike)):
        return _Loaded(_core.Model.load(os.fspath(model)), _to_proto)
    if isinstance(model, (bytes, bytearray, memoryview)):
        return _Loaded(_core.Model.from_bytes(bytes(model), _beside(base_dir)), lambda data: data)
    kind = f"{type(model).__module__.split('.')[0]}.{type(model).__name__}"
    if kind.startswith("torch.") and hasattr(model, "model"):  # an ONNXProgram holds an onnx_ir.Model
        return _load_program(model, base_dir)
    if kind == "onnx_ir.Model":
        return _load_ir(model, base_dir)
    if hasattr(model, "SerializeToString"):
        return _Loaded(_core.Model.from_bytes(_serialized(model), _beside(base_dir)), _to_proto)
    raise TypeError(f"a model is a path, bytes, an onnx.ModelProto, an onnx_ir.Model or a torch.onnx.ONNXProgram, not {kind}")


def _beside(base_dir: str | os.PathLike[str] | None) -> str:
    return "" if base_dir is None else os.path.join(os.fspath(base_dir), "model.onnx")


def _to_proto(data: bytes) -> Any:
    import onnx

    return onnx.load_model_from_string(data)


def _serialized(proto: Any) -> bytes:
    size = proto.ByteSize()
    if size > _MOST_BYTES:
        raise errors.RefusedError(
            f"the model has {size} bytes, and a protobuf message at most {_MOST_BYTES}: save it with external data and give its path"
        )
    return bytes(proto.SerializeToString())


def _load_ir(model: Any, base_dir: str | os.PathLike[str] | None) -> _Loaded:
    data, folder, again = from_ir(model, base_dir)
    return _Loaded(_core.Model.from_bytes(data, _beside(folder)), again)


def from_ir(model: Any, base_dir: str | os.PathLike[str] | None = None) -> tuple[bytes, str | None, Callable[[bytes], Any]]:
    """Returns the bytes of an onnx_ir.Model, the folder of its external data, and how bytes become such a model again."""
    import onnx_ir as ir

    folders = {os.fspath(value.const_value.base_dir) for value in model.graph.initializers.values()
               if isinstance(value.const_value, ir.ExternalTensor)}
    if base_dir is None and len(folders) > 1:
        raise errors.RefusedError(f"external data in several folders ({', '.join(sorted(folders))}): save the model first")
    folder = os.fspath(base_dir) if base_dir is not None else next(iter(folders), None)

    def again(data: bytes) -> Any:
        result = ir.from_proto(_to_proto(data))
        if folder is not None:
            ir.external_data.set_base_dir(result.graph, folder)
        return result

    return _serialized(ir.to_proto(model)), folder, again


def _load_program(program: Any, base_dir: str | os.PathLike[str] | None) -> _Loaded:
    loaded = _load_ir(program.model, base_dir)
    to_ir = loaded.again

    def again(data: bytes) -> Any:
        import copy

        result = copy.copy(program)
        result.model = to_ir(data)
        return result

    return _Loaded(loaded.core, again)


def _as_path(model: ModelLike, folder: Path) -> Path:
    if isinstance(model, (str, os.PathLike)):
        return Path(model)
    folder.mkdir()
    (model if isinstance(model, Expanded) else Expanded(_load(model))).save(folder / "model.onnx")
    return folder / "model.onnx"


def _options(
    target: str, cann: str, plugin: bool, precision_mode: str, style: str, dims: Dims | None, assume: Mapping[str, str] | None,
    strict: bool, skip: Sequence[str], limit: int | None, fix: Mapping[str, int] | None = None, prefer: Sequence[str] = (),
    keep_rest: bool = False, tidy: Sequence[str] = (), quantised: str = "exact",
) -> list[tuple[str, str]]:
    named = [("target", target), ("cann", cann), ("plugin", str(plugin).lower()), ("precision-mode", precision_mode),
             ("style", style), ("strict", str(strict).lower())]
    named += [("dim", _dim(name, size)) for name, size in (dims or {}).items()]
    named += [("assume", f"{name}={word}") for name, word in (assume or {}).items()]
    named += [("skip", name) for name in ((skip,) if isinstance(skip, str) else skip)]
    named += [("prefer", name) for name in ((prefer,) if isinstance(prefer, str) else prefer)]
    named += [("keep-rest", str(keep_rest).lower())]
    named += [("tidy", word) for word in ((tidy,) if isinstance(tidy, str) else tidy)]
    named += [("quantised", quantised)]
    named += [("fix", f"{name}={size}") for name, size in (fix or {}).items()]
    return named if limit is None else [*named, ("limit", str(limit))]


def _dim(name: str, size: Any) -> str:
    """NAME=RANGE of the command line; numbers may be numpy's, and a text is the name of a dim that is the same."""
    if isinstance(size, str):
        return f"{name}={size}"
    if hasattr(size, "__index__"):
        return f"{name}={operator.index(size)}"
    if not isinstance(size, (tuple, list)) or len(size) not in (2, 3):
        raise TypeError(f"dims: {name} is a number, (low, high), (low, high, step) or a name, not {size!r}")
    low, high, *step = map(operator.index, size)
    return f"{name}={low}..{high}" + (f":{step[0]}" if step else "")


def _rules(rules: Rules) -> list[tuple[str, str]]:
    """Path and text of each: what has a line break is a text, everything else a path."""
    texts = []
    for number, rule in enumerate((rules,) if isinstance(rules, (str, os.PathLike)) else rules, 1):
        if isinstance(rule, str) and "\n" in rule:
            texts.append((f"rule {number}", rule))
            continue
        try:
            texts.append((os.fspath(rule), Path(rule).read_text()))
        except (OSError, UnicodeDecodeError) as error:
            raise errors.NotFoundError(f"{rule} cannot be read: {error}") from None
    return texts


def _run(
    loaded: _Loaded, command: str, options: list[tuple[str, str]], rules: Rules, passes: Iterable[Pass],
    progress: Progress | bool | None,
) -> Report:
    with _progress(progress) as told:
        text = loaded.core.run(command, options, _rules(rules), [one.placed() for one in passes], told)
    return Report.from_json(text, command)


def _check_required(report: Report, require: Sequence[str]) -> None:
    unmet = _core.unmet(report.to_json(), (require,) if isinstance(require, str) else require) if require else []
    if unmet:
        raise errors.RequirementNotMet("; ".join(unmet), report)


@contextlib.contextmanager
def _progress(progress: Progress | bool | None) -> Iterator[Progress | None]:
    """A function to be told, from what the user gave."""
    if progress is None or progress is False:
        yield None
        return
    if progress is not True:
        yield progress
        return
    try:
        from tqdm.auto import tqdm  # type: ignore[import-untyped, unused-ignore]
    except ImportError:
        yield None
        return
    with tqdm(leave=False, delay=0.3) as bar:  # nothing is shown of what is over at once

        def told(name: str, number: int, count: int) -> None:
            bar.total = count
            if name == "save":
                bar.unit, bar.unit_scale = "B", True
            bar.set_description(name, refresh=False)
            bar.update(number - bar.n)

        yield told
