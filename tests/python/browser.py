"""Chromium without a window, driven over a pipe by the DevTools protocol: what a page says on the console, how long it takes to open,
what a script finds in it, and what is printed."""

from __future__ import annotations

import base64
import json
import os
import select
import shutil
import subprocess
import time
from pathlib import Path
from types import TracebackType
from typing import Any

PROGRAM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
SECONDS = 100  # for an answer: the machine may be busy


class Browser:
    """One page of one browser, which ends with the `with`."""

    def __init__(self, profile: Path) -> None:
        assert PROGRAM is not None
        self.errors: list[str] = []
        self._events: list[str] = []
        self._count = 0
        self._buffer = b""
        theirs_in, self._out = os.pipe()
        self._in, theirs_out = os.pipe()
        # The browser reads its descriptor 3 and writes its descriptor 4.
        words = [PROGRAM, "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={profile}", "--remote-debugging-pipe", "about:blank"]
        shell = f'exec "$@" 3<&{theirs_in} 4>&{theirs_out}'
        self._process = subprocess.Popen(["bash", "-c", shell, "browser", *words], pass_fds=(theirs_in, theirs_out), stderr=subprocess.DEVNULL)
        os.close(theirs_in)
        os.close(theirs_out)
        self._session = ""
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def __enter__(self) -> Browser:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._process.kill()
        self._process.wait()
        os.close(self._out)
        os.close(self._in)

    def call(self, method: str, **parameters: object) -> Any:
        self._count += 1
        message: dict[str, object] = {"id": self._count, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._out, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._read()
            if answer.get("id") == self._count:
                assert "error" not in answer, f"{method}: {answer['error']}"
                return answer["result"]

    def open(self, page: Path) -> dict[str, float]:
        """Milliseconds until the page is there (`ready`), loaded (`load`) and drawn first (`paint`)."""
        self.errors.clear()
        self._events.clear()
        self.call("Page.navigate", url=page.resolve().as_uri())
        while "Page.loadEventFired" not in self._events:
            self._read()
        return dict(self.find("""new Promise (done => requestAnimationFrame (() => setTimeout (() => {
            const times = performance.getEntriesByType ('navigation')[0], paint = performance.getEntriesByType ('paint')[0];
            done ({ready: times.domInteractive, load: times.loadEventEnd, paint: paint ? paint.startTime : 0});
        }, 0)))"""))

    def find(self, script: str) -> Any:
        """What a script gives."""
        answer = self.call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    def size(self, width: int, height: int = 900) -> None:
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 500)

    def media(self, name: str = "", scheme: str = "light") -> None:
        self.call("Emulation.setEmulatedMedia", media=name, features=[{"name": "prefers-color-scheme", "value": scheme}])

    def picture(self) -> bytes:
        return base64.b64decode(self.call("Page.captureScreenshot", format="png")["data"])

    def pdf(self) -> bytes:
        return base64.b64decode(self.call("Page.printToPDF", printBackground=True)["data"])

    def _read(self) -> Any:
        end = time.monotonic() + SECONDS
        while b"\0" not in self._buffer:
            assert select.select([self._in], [], [], max(0, end - time.monotonic()))[0], "Chromium does not answer"
            piece = os.read(self._in, 1 << 20)
            assert piece, "Chromium ended"
            self._buffer += piece
        line, self._buffer = self._buffer.split(b"\0", 1)
        message = json.loads(line)
        self._note(message)
        return message

    def _note(self, message: Any) -> None:
        method, told = message.get("method", ""), message.get("params", {})
        self._events.append(method)
        if method == "Runtime.exceptionThrown":
            self.errors.append(str(told["exceptionDetails"]))
        elif method == "Runtime.consoleAPICalled" and told["type"] in ("error", "warning", "assert"):
            self.errors.append(str(told["args"]))
        elif method == "Log.entryAdded" and told["entry"]["level"] in ("error", "warning"):
            self.errors.append(told["entry"]["text"])
        elif method == "Network.requestWillBeSent" and not told["request"]["url"].startswith("file:"):
            self.errors.append(f"asks for {told['request']['url']}")
