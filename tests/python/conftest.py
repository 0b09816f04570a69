"""What the Python tests share: the binary, the filled zoo, and a way to run commands.

ASCEND_FUSE_BUILD names the build folder; it is build/ if that is not set.
"""

from __future__ import annotations

import fcntl
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("ASCEND_FUSE_BUILD", ROOT / "build")).resolve()
TOOL = BUILD / "ascend-fuse"
# The package with its module in C++, as the build puts it together.
sys.path[:0] = [str(ROOT / "tools" / "zoo"), str(BUILD / "python"), str(ROOT / "tools" / "python"), str(Path(__file__).resolve().parent)]

import covering  # noqa: E402
import fill  # noqa: E402

# With these set pytest writes the whole difference of two files that should be equal: minutes for a megabyte, past the limit
# of time of a test, which ends its whole process.
for variable in ("CI", "BUILD_NUMBER"):
    os.environ.pop(variable, None)
# On a busy machine any run takes over a second: what tests read on stderr must not depend on that.
os.environ.setdefault("ASCEND_FUSE_PROGRESS", "none")


# A rule file of a user that fuses nothing built in.
MISH_RULE = """\
# y = x * tanh(softplus(x))
rule my_mish <kind = mish> (x) => (y)
match { y = Mul (x, Tanh (Softplus (x))) }
emit  { y = ascend_fuse.Mish (x) }

# The node that computes it.
rule my_npu_mish <kind = mish> (x) => (y)
match { y = ascend_fuse.Mish (x) }
emit  { y = npu.NPUMish (x) }
"""


@dataclass
class Result:
    """What a command did: its exit code (negative: ended by that signal) and what it wrote."""

    code: int
    out: str
    err: str


def run(*arguments: object, cwd: Path | None = None, timeout: float = 60, stdin: str | None = None) -> Result:
    """Runs ascend-fuse with the arguments."""
    words = [str(TOOL), *map(str, arguments)]
    done = subprocess.run(words, cwd=cwd, timeout=timeout, capture_output=True, input=stdin, text=True, errors="replace")
    return Result(done.returncode, done.stdout, done.stderr)


def run_ok(*arguments: object, cwd: Path | None = None) -> Result:
    """Runs ascend-fuse and requires that it ends with 0."""
    result = run(*arguments, cwd=cwd)
    assert result.code == 0, f"exit code {result.code}: {result.err}"
    return result


@pytest.fixture
def control_c() -> Iterator[None]:
    """Control-C as in a terminal. Tests that nohup, `&` or a CI runner started have it ignored, and what they start inherits that."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--quick", action="store_true", 
                     help="of the zoo the covering choice (tests/zoo/covering.txt), and no test that is marked slow")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    # All tests of a model one after the other: they share what came of it.
    order = {entry["id"]: number for number, entry in enumerate(fill.load_manifest()["models"], 1)}
    items.sort(key=lambda item: order[item.callspec.params["model_id"]] if item.get_closest_marker("zoo") else 0)
    if not config.getoption("--quick"):
        return
    kept = quick_models()
    left_out = [item for item in items if item.get_closest_marker("slow") or
                (item.get_closest_marker("zoo") and item.callspec.params["model_id"] not in kept)]
    config.hook.pytest_deselected(items=left_out)
    dropped = set(map(id, left_out))
    items[:] = [item for item in items if id(item) not in dropped]


def quick_models() -> set[str]:
    """The first lines of the covering choice, as many as there are architectures: tools/zoo/covering.py."""
    return set(covering.chosen_ids()[: len({entry["architecture"] for entry in fill.load_manifest()["models"]})])


@pytest.fixture(scope="session")
def zoo() -> Path:
    """The folder of the filled zoo models, filled once whatever the number of workers."""
    out = BUILD / "zoo"
    out.mkdir(parents=True, exist_ok=True)
    with open(out / ".lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        fill.fill(out, fill.select([]))
    return out
