"""What is shipped says what it is made of, and nothing of the machine that made it."""

from __future__ import annotations

import json
import re
import subprocess

import pytest
from conftest import BUILD, ROOT, TOOL

LIBRARIES = {"protobuf": "libprotobuf", "abseil-cpp": "libabsl_", "fmt": "libfmt"}


def components() -> dict[str, str]:
    made = json.loads((BUILD / "sbom" / "ascend-fuse.cdx.json").read_text())
    assert made["bomFormat"] == "CycloneDX" and made["specVersion"] == "1.5"
    assert made["metadata"]["component"]["version"] == re.search(r"project\(ascend_fuse VERSION ([0-9.]+)", (ROOT / "CMakeLists.txt").read_text())[1]
    assert all(component["licenses"] for component in made["components"])
    return {component["name"]: component["version"] for component in made["components"]}


def test_versions_are_those_of_the_machine() -> None:
    """As the packages that the libraries were installed from say."""
    found = components()
    assert set(found) >= {*LIBRARIES, "cli11", "onnx.proto"}
    for name, package in {"protobuf": "libprotobuf-dev", "abseil-cpp": "libabsl-dev", "fmt": "libfmt-dev", "cli11": "libcli11-dev"}.items():
        done = subprocess.run(["dpkg-query", "-W", "-f=${Version}", package], capture_output=True, text=True)
        if done.returncode == 0:
            assert done.stdout.startswith(found[name]), (name, found[name], done.stdout)


def test_every_linked_library_is_named() -> None:
    """What the shared library needs at run time is in the list, or belongs to the compiler and the C library."""
    library = BUILD / "libascend_fuse.so"
    if not library.exists():
        pytest.skip("not built")
    needed = re.findall(r"NEEDED\s+(\S+)", subprocess.run(["objdump", "-p", library], capture_output=True, text=True, check=True).stdout)
    of_system = ("libstdc++", "libgcc", "libc.so", "libm.so", "ld-linux", "libasan", "libubsan", "libtsan")
    named = [prefix for name, prefix in LIBRARIES.items() if name in components()]
    assert [name for name in needed if not name.startswith((*of_system, *named))] == []


def test_no_path_of_this_machine() -> None:
    """scripts/test-reproducible compares two whole builds; this is what would make them differ."""
    if "CMAKE_BUILD_TYPE:STRING=Release" not in (BUILD / "CMakeCache.txt").read_text():
        pytest.skip("debug information has paths")
    for path in (TOOL, BUILD / "libascend_fuse.so"):
        if path.exists():
            data = path.resolve().read_bytes()
            assert str(ROOT).encode() not in data and str(BUILD).encode() not in data, path
