"""The files that scripts/release has made, for the tests that look at them and for those that run them."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import zipfile
from pathlib import Path

import covering
import pytest
from conftest import BUILD

FILES = Path(os.environ.get("ASCEND_FUSE_RELEASE", BUILD / "release" / "files"))
MADE = sorted(FILES.iterdir()) if FILES.is_dir() else []
NONE = pytest.param(None, id="none", marks=pytest.mark.skip(reason="scripts/release has not made it"))


def made(pattern: str) -> list[object]:
    """The files with such a name, as parameters of a test, which is skipped where there are none."""
    return [pytest.param(path, id=path.name) for path in MADE if re.fullmatch(pattern, path.name)] or [NONE]


def covering_choice() -> list[str]:
    """Names of models of the zoo that cover what the tool does: tests/zoo/covering.txt."""
    return [f"{model}.onnx" for model in covering.chosen_ids()]


def processor_of(path: Path) -> str:
    """The processor that a file is for, as `uname -m` calls it."""
    return "aarch64" if re.search("aarch64|arm64", path.name) else "x86_64"


def unpack(path: Path, folder: Path) -> Path:
    """Unpacks a file of the release, and returns the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    if path.suffix == ".whl":
        with zipfile.ZipFile(path) as wheel:
            wheel.extractall(folder)
    elif path.suffix == ".deb":
        subprocess.run(["dpkg-deb", "-x", path, folder], check=True)
    elif path.suffix == ".rpm":
        archive = subprocess.run(["rpm2archive", "-"], stdin=path.open("rb"), capture_output=True, check=True).stdout
        subprocess.run(["tar", "-xz", "-C", folder], input=archive, check=True)
    else:
        shutil.unpack_archive(path, folder, filter="data")
    return folder
