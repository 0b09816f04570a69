"""The library as others use it: installed, found by CMake and pkg-config, and the examples built against what was installed
and nothing else."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from conftest import BUILD, ROOT

MODEL = "llama-sdpa-past-ts17-dynamic.onnx"
VERSION = re.search(r"project\(ascend_fuse VERSION ([0-9.]+)", (ROOT / "CMakeLists.txt").read_text())[1]
C_HEADER = ROOT / "tools" / "c" / "ascend_fuse.h"


def command(*words: object, environment: dict[str, str] | None = None, cwd: Path | None = None) -> str:
    """Runs a command that must end with 0, and returns what it printed."""
    done = subprocess.run([*map(str, words)], capture_output=True, text=True, env=environment, cwd=cwd, timeout=280)
    assert done.returncode == 0, f"{words}: {done.stdout}{done.stderr}"
    return done.stdout


@pytest.fixture(scope="module")
def prefix(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An installation."""
    folder = tmp_path_factory.mktemp("installed")
    command("cmake", "--install", BUILD, "--prefix", folder)
    return folder


@pytest.fixture
def model(zoo: Path, tmp_path: Path) -> Path:
    return Path(shutil.copy(zoo / MODEL, tmp_path / "llama.onnx"))


@pytest.fixture(scope="module")
def environment(prefix: Path) -> dict[str, str]:
    libraries = next(prefix.glob("lib*/**/libascend_fuse.so")).parent
    return dict(os.environ, LD_LIBRARY_PATH=str(libraries), PKG_CONFIG_PATH=str(libraries / "pkgconfig"))


@pytest.mark.xdist_group("library")
def test_the_example_in_cpp(prefix: Path, environment: dict[str, str], model: Path, tmp_path: Path) -> None:
    source = shutil.copytree(ROOT / "examples" / "cpp", tmp_path / "project")
    command("cmake", "-S", source, "-B", tmp_path / "b", "-G", "Ninja", f"-DCMAKE_PREFIX_PATH={prefix}", "-DCMAKE_CXX_FLAGS=-Wall -Wextra -Werror")
    command("cmake", "--build", tmp_path / "b")
    printed = command(tmp_path / "b" / "example", model, environment=environment).splitlines()
    assert printed[0] == f"version {VERSION}"
    assert "can fuse attention: 2 of 2" in printed and "fused attention: 2 of 2" in printed
    assert printed.index("can fuse attention: 2 of 2") < printed.index("fused attention: 2 of 2")
    before, after = (int(re.search(rf"{name}: (\d+) nodes", "\n".join(printed))[1]) for name in ("before_recognise", "after_lower"))
    assert after < before
    assert printed[-3:] == ["told of progress: yes", "cancelled in the pass lower", "threads done: 2"]
    assert (tmp_path / "llama.onnx.first").read_bytes() == (tmp_path / "llama.onnx.second").read_bytes()


@pytest.mark.xdist_group("library")
def test_the_example_in_c(prefix: Path, environment: dict[str, str], model: Path, tmp_path: Path) -> None:
    flags = command("pkg-config", "--cflags", "--libs", "ascend_fuse", environment=environment).split()
    command("cc", "-std=c99", "-pedantic", "-Wall", "-Wextra", "-Werror", ROOT / "examples" / "c" / "example.c", *flags, "-o",
            tmp_path / "example_c", environment=environment)
    printed = command(tmp_path / "example_c", model, tmp_path / "out.onnx", environment=environment).splitlines()
    assert printed == [
        f"version {VERSION}",
        "a wrong value: code 1: --dim batch: expected name=N, name=low..high, name=low..high:step or name=other, for example --dim seq=16..2048:16",
        "a missing file: code 2: there is no such file.onnx: cannot open the model: No such file or directory",
        "listed, with a text",
        "a pass replaced 5 Pow",
        "optimized, attention is fused",
        "progress was told",
        "cancelled: code 4: cancelled in the pass recognise",
        "saved after that: code 3: a run over this model failed, or checked it: it is to be dropped",
    ]
    by_program = tmp_path / "by_program.onnx"
    command(prefix / "bin" / "ascend-fuse", "optimize", model, "-o", by_program, "--quiet", "--dim", "batch=1..8")
    assert (tmp_path / "out.onnx").read_bytes() == by_program.read_bytes()


@pytest.mark.xdist_group("library")
def test_every_installed_header_stands_alone(prefix: Path, environment: dict[str, str], tmp_path: Path) -> None:
    """One source of all public headers, in an order in which none can rest on another: each is included first by one file."""
    root = prefix / "include" / "ascend_fuse"
    headers = sorted(path.relative_to(root).as_posix() for path in root.rglob("*.h"))
    assert "passes/optimize.h" in headers and "ir/onnx/save.h" in headers
    flags = command("pkg-config", "--cflags", "ascend_fuse_cxx", environment=environment).split()
    source = tmp_path / "all.cc"
    source.write_text("".join(f'#include "{header}"\n' for header in reversed(headers)))
    command("c++", "-std=c++20", "-fsyntax-only", "-Wall", "-Wextra", "-Werror", *flags, source)
    generated = [header for header in headers if ".pb.h" in (root / header).read_text() or "fmt/" in (root / header).read_text()]
    assert not generated


@pytest.mark.xdist_group("library")
def test_another_abseil_is_refused_with_a_sentence(prefix: Path, environment: dict[str, str], tmp_path: Path) -> None:
    flags = command("pkg-config", "--cflags", "ascend_fuse_cxx", environment=environment).split()
    (tmp_path / "absl" / "base").mkdir(parents=True)
    (tmp_path / "absl" / "base" / "config.h").write_text("#define ABSL_LTS_RELEASE_VERSION 20990101\n")
    (tmp_path / "a.cc").write_text('#include "ascend_fuse_version.h"\n')
    done = subprocess.run(["c++", "-std=c++20", "-fsyntax-only", "-I", tmp_path, *flags, tmp_path / "a.cc"], capture_output=True,
                          text=True)
    assert done.returncode != 0 and "built with another release of Abseil" in done.stderr


def test_the_library_shows_what_is_its_own(prefix: Path, environment: dict[str, str]) -> None:
    library = next(prefix.glob("lib*/**/libascend_fuse.so"))
    symbols = [line.split(maxsplit=2)[2] for line in command("nm", "-DC", "--defined-only", library).splitlines()]
    functions = set(re.findall(r"\b(ascend_fuse_\w+)\(", re.sub(r"/\*.*?\*/", "", C_HEADER.read_text(), flags=re.DOTALL)))
    assert len(functions) > 10
    assert functions == {symbol for symbol in symbols if re.fullmatch(r"ascend_fuse_\w+", symbol)}
    others = [s for s in symbols if not s.startswith("ascend_fuse") and " for ascend_fuse::" not in s]
    assert not others
    assert any(s.startswith("ascend_fuse::Optimize(") for s in symbols)


# The headers that are doors, as cmake/library.cmake lists them, and the one of C.
DOORS = ["tools/c/ascend_fuse.h", *re.findall(r"[\w/]+\.h", re.search(r"public_headers\(PUBLIC_HEADERS ([^)]+)\)",
                                                                     (ROOT / "cmake" / "library.cmake").read_text())[1])]


@pytest.mark.parametrize("header", DOORS)
def test_everything_at_the_doors_is_documented(header: str) -> None:
    """A declaration at the left margin, a function or a type, has a comment, or stands below one with its like."""
    bare = []
    described = False
    for line in (ROOT / header).read_text().splitlines():
        declares = re.match(r"[a-z].*\(|(struct|class|enum|using|typedef|inline constexpr) ", line)
        if line.startswith(("//", "/*", " *")):
            described = True
        elif not line.strip() or line.startswith(("#", "namespace", "extern", "}")):
            described = False
        elif declares and not described and not re.search(r"  ?//|/\*|^(struct|class) \w+;", line):
            bare.append(line)
    assert not bare
