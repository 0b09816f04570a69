"""The build with the oldest CMake that the project names: Debian 12's. A newer one hid that its messages were not found."""

from __future__ import annotations

import json
import os
import re
import subprocess
from pathlib import Path

import pytest
from conftest import ROOT

CMAKE = ROOT / ".venv" / "bin" / "cmake"


def minimum(path: str) -> str:
    return re.search(r"^cmake_minimum_required\(VERSION ([\d.]+)\)$", (ROOT / path).read_text(), re.MULTILINE)[1]


def test_one_oldest_version_is_named() -> None:
    oldest = minimum("CMakeLists.txt")
    assert oldest == minimum("cmake/release/dependencies.cmake")
    presets = json.loads((ROOT / "CMakePresets.json").read_text())["cmakeMinimumRequired"]
    assert oldest == f"{presets['major']}.{presets['minor']}"
    assert f"needs CMake {oldest}," in (ROOT / "docs" / "install.md").read_text()
    assert f"cmake=={oldest}.0\n" in (ROOT / "tests" / "requirements.txt").read_text()


@pytest.mark.slow
def test_the_oldest_version_configures_and_makes_the_messages(tmp_path: Path) -> None:
    version = subprocess.run([CMAKE, "--version"], capture_output=True, text=True, check=True).stdout
    assert version.startswith(f"cmake version {minimum('CMakeLists.txt')}.")
    # ccache: objects of the build that is tested serve this one.
    environment = dict(os.environ, CCACHE_BASEDIR=str(ROOT), CCACHE_NOHASHDIR="1")
    for command in ([CMAKE, "--preset", "release", "-B", tmp_path / "build"],
                    ["ninja", "-C", tmp_path / "build", "-j", "1", "af_proto", "af_strict_onnx"]):
        done = subprocess.run([*map(str, command)], cwd=ROOT, env=environment, capture_output=True, text=True, timeout=280)
        assert done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"
