"""The package works in every Python from 3.8 on that is on this machine, with nothing installed: models, reports, passes, errors and
Control-C. What only later ones have is not written."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest
from conftest import BUILD, ROOT

VERSIONS = ("3.8", "3.9", "3.10", "3.11", "3.12", "3.13", "3.14")
PACKAGE = ROOT / "tools" / "python" / "ascend_fuse"
PROGRAM = """
import os, pathlib, signal, sys
import ascend_fuse

model = pathlib.Path(sys.argv[1])


def as_product(graph, rewriter):
    for node in graph.nodes("Pow"):
        x, exponent = node.inputs
        if exponent.splat == 2 and x.shape == node.outputs[0].shape:
            rewriter.replace([node.outputs[0]], "Mul", [x, x], name=node.name)


signal.signal(signal.SIGINT, signal.default_int_handler)  # also where a shell runs this in the background


def interrupt(graph, rewriter):
    os.kill(os.getpid(), signal.SIGINT)


result = ascend_fuse.optimize(model.read_bytes(), dims={"batch": (1, 8)}, passes=[ascend_fuse.Pass(as_product, after="infer")])
print(result.report.summary.sites["attention"].fused, {run.name: run.changes > 0 for run in result.report.passes}["as_product"])
assert result.report.to_text() and result.report.to_html() and ascend_fuse.check(model).to_text()
try:
    ascend_fuse.optimize(model, target="no_chip")
except ascend_fuse.NotFoundError as error:
    print("ascend910b" in str(error))
try:
    ascend_fuse.optimize(model, passes=[ascend_fuse.Pass(interrupt, after="number")])
except KeyboardInterrupt:
    print("interrupted")
"""


def interpreter(version: str) -> Path | None:
    """A Python of that version, of Debian or of pyenv."""
    places = [Path("/usr/bin"), Path("/usr/local/bin"), *sorted(Path.home().glob(f".pyenv/versions/{version}.*/bin"))]
    return next((place / f"python{version}" for place in places if (place / f"python{version}").is_file()), None)


@pytest.mark.parametrize("version", VERSIONS)
def test_one_package_serves(version: str, zoo: Path) -> None:
    python = interpreter(version)
    if python is None:
        pytest.skip(f"no Python {version} on this machine")
    done = subprocess.run([python, "-W", "error::DeprecationWarning", "-W", "error::SyntaxWarning", "-c", PROGRAM,
                           zoo / "llama-sdpa-past-ts17-dynamic.onnx"],
                          capture_output=True, text=True, env=dict(os.environ, PYTHONPATH=str(BUILD / "python")))
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == ["2 True", "True", "interrupted"]
    assert not done.stderr


# Of Python 3.9 and later. Annotations may have what they like: nobody evaluates them.
LATER = {
    "str.removeprefix, str.removesuffix": re.compile(r"\.remove(prefix|suffix)\("),
    "union of dicts": re.compile(r"\|= ?\{[^{}]*: |\| dict\(|dict\([^()]*\) \|"),
    "typing.TypeAlias": re.compile(r"\bTypeAlias\b"),
    "a type with brackets": re.compile(r"^\w+ = .*\b(?:list|dict|tuple|set|type)\[\w", re.MULTILINE),
    "match, strict zip": re.compile(r"^\s+match .*:$|strict=True", re.MULTILINE),
}


def test_nothing_of_later_pythons() -> None:
    found = [f"{path.name}: {what}: {match.group()}" for path in sorted(PACKAGE.glob("*.py")) for what, pattern in LATER.items()
             for match in pattern.finditer(path.read_text())]
    assert not found
