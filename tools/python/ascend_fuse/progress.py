"""How far a command is, on stderr, of what takes longer than a second: a bar on a terminal, lines in a log. The words are those of
the commands in C++ (tools/commands/progress.cc)."""

from __future__ import annotations

import sys
import threading
import time
from types import TracebackType
from typing import TextIO

WORDS = ("auto", "bar", "lines", "none")  # of --progress

_BAR_WIDTH = 24
_BAR_INTERVAL = 0.1  # seconds
_FIRST = 1.0  # second: what is shorter says nothing
_LONGEST_INTERVAL = 30.0  # of lines: a log of an hour stays short
_CLEAR = "\r\x1b[K"


class ProgressLine:
    """Says what is being done while the block of `with` runs. One step may take minutes within ONNX Runtime, so that a thread tells."""

    def __init__(self, how: str = "auto", to: TextIO | None = None) -> None:
        self._to = sys.stderr if to is None else to
        terminal = self._to.isatty()
        self._bar = how == "bar" or (how == "auto" and terminal)
        self._lines = how == "lines" or (how == "auto" and not terminal)
        self._what: tuple[str, float | None] = ("start", 0.0)
        self._start = time.monotonic()
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def tell(self, what: str, share: float | None = None) -> None:
        """What is done now, and what part of all is over, 0 to 1; None where that is not known."""
        self._what = (what, share)

    def __enter__(self) -> ProgressLine:
        if self._bar or self._lines:
            self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._end.set()
        if self._thread.is_alive():
            self._thread.join()

    def _run(self) -> None:
        wait, interval, drawn = _FIRST, 1.0, False
        while not self._end.wait(wait):
            print(self._drawn() if self._bar else self._line(), end="" if self._bar else "\n", file=self._to, flush=True)
            drawn = self._bar
            interval = min(interval * 2, _LONGEST_INTERVAL)
            wait = _BAR_INTERVAL if self._bar else interval
        if drawn:
            print(_CLEAR, end="", file=self._to, flush=True)

    def _line(self) -> str:
        what, share = self._what
        over = "" if share is None else f", {share * 100:.0f} %"
        return f"ascend-fuse: {what}{over}, {time.monotonic() - self._start:.0f} s"

    def _drawn(self) -> str:
        what, share = self._what
        full = int(min(max(share or 0.0, 0.0), 1.0) * _BAR_WIDTH)
        over = "    " if share is None else f"{share * 100:3.0f} %"
        return f"{_CLEAR}[{'=' * full}{' ' * (_BAR_WIDTH - full)}] {over}  {what[:60]}  {time.monotonic() - self._start:.0f} s"
