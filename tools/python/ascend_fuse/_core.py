"""Models, runs with text for options and JSON for reports, and what the library knows: what api.py and report.py are made of."""

from __future__ import annotations

import contextlib
import ctypes
from typing import Any, Callable, Generator, Iterator, List, Optional, Sequence, Tuple

from ascend_fuse import errors
from ascend_fuse._graph import Graph, Node, Rewriter, Value, graph_and_rewriter
from ascend_fuse._library import PassCallback, Progress, ProgressCallback, bytes_of, check, library, text_of

__all__ = ["Graph", "Model", "Node", "Rewriter", "Value", "version"]

version: str = text_of(library.version())

Pairs = Sequence[Tuple[str, str]]
Told = Optional[Callable[[str, int, int], object]]
PlacedPass = Tuple[str, str, str, Callable[[Graph, Rewriter], None]]


class Raised:
    """What Python raises inside of a run, on its way around the C++ in between: the first of all callbacks."""

    def __init__(self) -> None:
        self.error: BaseException | None = None

    def callback(self, work: Callable[[int], object]) -> Callable[[int], int]:
        """Returns a function for C: 0, or 1 when `work` raised now or before, which ends the run.

        It is the `send` of a generator, because a signal that came meanwhile is raised where a frame begins or goes on: in a
        function that is before its `try`, and ctypes would print the KeyboardInterrupt and go on.
        """

        def frame() -> Generator[int, int, None]:
            ends = 0
            while True:
                try:
                    at = yield ends
                    if self.error is None:
                        work(at)
                except GeneratorExit:
                    return
                except BaseException as error:  # noqa: BLE001
                    self.error = self.error or error
                ends = 0 if self.error is None else 1

        started = frame()
        next(started)
        return started.send

    def check(self, code: int) -> None:
        """Raises what was raised, or the error that a code stands for."""
        if self.error is not None:
            error, self.error = self.error, None
            raise error
        check(code)


class Options:
    """Options of a run in C, with the callbacks that they refer to."""

    def __init__(self, named: Pairs, rules: Pairs = (), raised: Raised | None = None, progress: Told = None,
                 passes: Sequence[PlacedPass] = ()) -> None:
        self.handle = library.options_new()
        if not self.handle:
            raise MemoryError
        for name, value in named:
            check(library.options_set(self.handle, bytes_of(name), bytes_of(value)))
        for name, text in rules:
            check(library.options_rules(self.handle, bytes_of(name), bytes_of(text)))
        if raised is None:
            return
        # Also where nobody asked for it: so Control-C is seen.
        self._told = ProgressCallback(raised.callback(_telling(progress)))
        library.options_progress(self.handle, self._told, None)
        self._passes = [PassCallback(raised.callback(_calling(function))) for _, _, _, function in passes]
        for (place, stage, name, _), callback in zip(passes, self._passes):
            check(library.options_pass(self.handle, bytes_of(place), bytes_of(stage), bytes_of(name), callback, None))

    def __del__(self) -> None:
        library.options_free(self.handle)


def _telling(progress: Told) -> Callable[[int], object]:
    def tell(at: int) -> None:
        if progress is not None:
            now = Progress.from_address(at)
            progress(text_of(now.pass_), now.number, now.count)

    return tell


def _calling(function: Callable[[Graph, Rewriter], None]) -> Callable[[int], object]:
    def call(at: int) -> None:
        with graph_and_rewriter(at) as (graph, rewriter):
            function(graph, rewriter)

    return call


def _given_text(call: Callable[..., int], *arguments: Any) -> str:
    """The text that a function gives by its last argument."""
    text = ctypes.c_char_p()
    check(call(*arguments, ctypes.byref(text)))
    return text_of(text.value)


class Model:
    """A loaded model; its weights stay in the file."""

    def __init__(self, call: Callable[..., int], *arguments: Any) -> None:
        self._handle: int | None = None
        self._busy = False
        self._broken = False
        handle = ctypes.c_void_p()
        check(call(*arguments, ctypes.byref(handle)))
        self._handle = handle.value

    def __del__(self) -> None:
        library.model_free(self._handle)

    @staticmethod
    def load(path: str) -> Model:
        """Returns the model of a file."""
        return Model(library.load, bytes_of(path))

    @staticmethod
    def from_bytes(data: bytes, path: str = "") -> Model:
        """Returns a model in memory; external data is looked for beside `path`."""
        return Model(library.load_bytes, data, len(data), bytes_of(path))

    @contextlib.contextmanager
    def _use(self) -> Iterator[None]:
        """What another thread does with the model meanwhile is refused: a model is for one at a time."""
        if self._broken:
            raise errors.RefusedError("a run over this model failed, so it cannot be used any more")
        if self._busy:
            raise errors.RefusedError("another thread works on this model")
        self._busy = True
        try:
            yield
        finally:
            self._busy = False

    def save(self, path: str, weights: str, copy_data: bool, progress: Told) -> None:
        """Writes the model."""
        with self._use():
            raised = Raised()
            options = Options([("weights", weights), ("copy-data", str(copy_data).lower())], (), raised, progress)
            raised.check(library.save_as(self._handle, bytes_of(path), options.handle))

    def to_bytes(self) -> bytes:
        """Returns the bytes that `save` would write."""
        with self._use():
            data, size = ctypes.c_void_p(), ctypes.c_size_t()
            check(library.save_bytes(self._handle, ctypes.byref(data), ctypes.byref(size)))
            return ctypes.string_at(data.value, size.value) if data.value else b""

    def text(self, most_elements: int) -> str:
        """Returns the model as ONNX text, with up to that many elements of a tensor."""
        with self._use():
            return _given_text(library.model_text, self._handle, most_elements)

    def run(self, command: str, options: Pairs, rules: Pairs, passes: Sequence[PlacedPass], progress: Told) -> str:
        """Runs optimize, list or check, and returns the report as JSON. A model that was checked, or whose run failed, is broken."""
        with self._use():
            raised = Raised()
            of_run = Options([*options, ("force", "true")], rules, raised, progress, passes)
            report = ctypes.c_void_p()
            code = getattr(library, command)(self._handle, of_run.handle, ctypes.byref(report))
            self._broken = command == "check" or (code != 0 and command != "list")
            try:
                raised.check(code)
                return text_of(library.report_json(report))
            finally:
                library.report_free(report)

    def analyze(self, options: Pairs, rules: Pairs, progress: Told) -> Tuple[str, str, str, str]:
        """Returns what a model computes and needs as JSON, as the text of one screen, as the whole text, and as a page."""
        with self._use():
            raised = Raised()
            of_run = Options(options, rules, raised, progress)
            report = ctypes.c_void_p()
            code = library.analyze(self._handle, of_run.handle, ctypes.byref(report))
            try:
                raised.check(code)
                whole, page = (_given_text(library.report_as, report, form) for form in (b"verbose-analyze", b"page-analyze"))
                return text_of(library.report_json(report)), text_of(library.report_text(report)), whole, page
            finally:
                library.report_free(report)

    def expand(self, options: Pairs, rules: Pairs, as_atc: bool, progress: Told) -> None:
        """Turns NPU nodes back to standard ONNX."""
        with self._use():
            raised = Raised()
            of_run = Options([*options, ("as-atc", str(as_atc).lower())], rules, raised, progress)
            code = library.expand(self._handle, of_run.handle)
            self._broken = code != 0
            raised.check(code)


@contextlib.contextmanager
def _report(json: str) -> Iterator[int]:
    report = ctypes.c_void_p()
    check(library.report_read(bytes_of(json), ctypes.byref(report)))
    try:
        yield report  # type: ignore[misc]
    finally:
        library.report_free(report)


def _report_as(json: str, form: str) -> str:
    with _report(json) as report:
        return _given_text(library.report_as, report, form.encode())


def report_text(json: str, verbose: bool, changed: bool) -> str:
    """Returns the text of a report of `optimize`, or of `list`."""
    return _report_as(json, ("verbose-" if verbose else "") + ("optimize" if changed else "list"))


def report_html(json: str, command: str, page: bool) -> str:
    """Returns the page of a report, or what is in the body of it."""
    return _report_as(json, f"{'page' if page else 'part'}-{command}")


def findings_text(json: str) -> str:
    """Returns the text of a report of `check`."""
    return _report_as(json, "check")


def why_not_written(json: str) -> List[str]:
    """Returns why ATC would refuse or misread the result."""
    return _report_as(json, "unwritten").splitlines()


def unmet(json: str, kinds: Sequence[str]) -> List[str]:
    """Returns a sentence for each of these kinds that was left or not found."""
    with _report(json) as report:
        return _given_text(library.report_unmet, report, bytes_of(",".join(kinds))).splitlines()


def is_fatal(certain: bool, effect: str) -> bool:
    """Returns whether ATC ends with an error, or makes another model, because of a finding."""
    return bool(library.is_fatal(certain, bytes_of(effect)))


def _described(subject: str, name: str = "", options: Options | None = None) -> str:
    return _given_text(library.describe, subject.encode(), bytes_of(name), options and options.handle)


def explain(code: str) -> str:
    """Returns what a code of a report means."""
    return _described("code", code)


def list_codes() -> str:
    """Returns all codes of reports."""
    return _described("codes")


def describe_target(options: Pairs, operator: str) -> str:
    """Returns what a chip accepts, or one operator of it."""
    return _described("target", operator, Options(options))


def describe_targets() -> str:
    """Returns a table of all chips."""
    return _described("targets")


def chips() -> List[str]:
    """Returns the names of all chips."""
    return _described("chips").splitlines()


def cann_versions() -> List[str]:
    """Returns the names of all releases of CANN."""
    return _described("cann").splitlines()


def stages() -> List[str]:
    """Returns the names of the passes of `optimize`, in their order (docs/passes.md)."""
    return _described("stages").splitlines()
