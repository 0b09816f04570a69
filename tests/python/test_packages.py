"""What is shipped: one version everywhere, the man page and completions, the Debian package, the wheel."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from conftest import BUILD, ROOT, run, run_ok

VERSION = re.search(r"project\(ascend_fuse VERSION ([0-9.]+)", (ROOT / "CMakeLists.txt").read_text())[1]
COMMANDS = re.findall(r"^  (\w+) ", run("--help").out.split("Subcommands:\n")[1], re.MULTILINE)
MODEL = "llama-sdpa-past-ts17-dynamic.onnx"


def flags_of(command: str) -> set[str]:
    return set(re.findall(r"^  (?:-\w,)?(--[a-z-]+)", run_ok(command, "--help").out, re.MULTILINE))


def test_there_is_one_version() -> None:
    assert re.fullmatch(rf"ascend-fuse {re.escape(VERSION)} \(([0-9a-f]{{7,40}}, )?\w* build, Linux \w+, (GNU|Clang) [\d.]+\)\n", run_ok("--version").out)
    assert re.search(r"^## ([0-9.]+)$", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)[1] == VERSION
    other = [path for path in (ROOT / "pyproject.toml", ROOT / "tools" / "ascend_fuse.cc") if VERSION in path.read_text()]
    assert not other, "the version is written in CMakeLists.txt and, for people, in CHANGELOG.md"


def test_the_man_page_has_every_command_and_flag() -> None:
    page = run_ok("man").out.replace("\\-", "-")
    assert page.startswith(".TH ASCEND-FUSE 1") and VERSION in page
    sections = dict(re.findall(r"^\.SS (\w+).*\n((?:(?!\.S[SH]).*\n)*)", page, re.MULTILINE))
    assert list(sections) == COMMANDS
    for command, text in sections.items():
        assert flags_of(command) <= set(re.findall(r"\\fB(--[a-z-]+)\\fR", text)), command
    assert not re.search(r"^'", page, re.MULTILINE)
    if shutil.which("groff"):
        done = subprocess.run(["groff", "-man", "-Tascii", "-ww"], input=run_ok("man").out, capture_output=True, text=True)
        assert done.returncode == 0 and not done.stderr


def complete(words: list[str]) -> set[str]:
    """What bash would offer for the last of the words."""
    program = 'source /dev/stdin; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _ascend_fuse; printf "%s\\n" "${COMPREPLY[@]}"'
    done = subprocess.run(["bash", "-c", program, "bash", *words], input=run_ok("completion", "bash").out, capture_output=True,
                          text=True)
    assert done.returncode == 0 and not done.stderr, done.stderr
    return set(done.stdout.split())


def test_completion_in_bash() -> None:
    assert complete(["ascend-fuse", ""]) >= set(COMMANDS)
    assert complete(["ascend-fuse", "op"]) == {"optimize"}
    for command in COMMANDS:
        assert complete(["ascend-fuse", command, "--"]) >= flags_of(command)
    chips = complete(["ascend-fuse", "optimize", "--target", "ascend9"])
    assert "ascend910b" in chips and all(chip.startswith("ascend9") for chip in chips)
    assert "ascend310p" in complete(["ascend-fuse", "optimize", "--target", ""])
    assert "README.md" in {Path(word).name for word in complete(["ascend-fuse", "print", f"{ROOT}/READ"])}


def test_completion_in_other_shells() -> None:
    fish = run_ok("completion", "fish").out
    for command in COMMANDS:
        assert f"-a {command} " in fish
        for flag in flags_of(command) - {"--help"}:
            assert re.search(rf"_from {command}'.* -l {flag[2:]}\b", fish), (command, flag)
    assert run_ok("completion", "zsh").out.startswith("#compdef ascend-fuse\n")
    assert run("completion", "csh").code == 2


@pytest.mark.slow
def test_the_debian_package(zoo: Path, tmp_path: Path) -> None:
    subprocess.run(["cpack", "--config", BUILD / "CPackConfig.cmake", "-B", tmp_path], check=True, capture_output=True, cwd=tmp_path)
    package = next(tmp_path.glob("*.deb"))
    fields = subprocess.run(["dpkg-deb", "-f", package], check=True, capture_output=True, text=True).stdout
    assert re.search(rf"^Version: {VERSION}", fields, re.MULTILINE) and "libprotobuf" in fields and "libabsl" in fields
    root = tmp_path / "root"
    subprocess.run(["dpkg-deb", "-x", package, root], check=True)
    for path in ("bin/ascend-fuse", "include/ascend_fuse.h", "include/ascend_fuse/passes/optimize.h", "share/man/man1/ascend-fuse.1",
                 "share/bash-completion/completions/ascend-fuse", "share/doc/ascend_fuse/LICENSE"):
        assert (root / "usr" / path).is_file(), path
    done = subprocess.run([root / "usr" / "bin" / "ascend-fuse", "optimize", zoo / MODEL, "-o", tmp_path / "out.onnx", "--quiet"])
    assert done.returncode == 0
    done = subprocess.run([root / "usr" / "bin" / "ascend-fuse", "verify", zoo / MODEL, tmp_path / "out.onnx"],
                          env=dict(os.environ, PATH=f"{Path(sys.executable).parent}:{os.environ['PATH']}"))
    assert done.returncode == 0


FROM_SOURCES = pytest.param("sources", marks=[pytest.mark.timeout(1800), pytest.mark.skipif(
    "ASCEND_FUSE_WHEEL" not in os.environ, reason="compiles everything again: scripts/test-pipelines does it")])


@pytest.mark.slow
@pytest.mark.parametrize("of", ["build", FROM_SOURCES])
def test_the_wheel(zoo: Path, tmp_path: Path, of: str) -> None:
    """A wheel in a fresh environment: the package, its types, the command line; under 10 MB."""
    options = [f"-Cbuild-dir={ROOT / 'build-wheel'}"]
    if of == "build":
        options = [f"-Cbuild-dir={tmp_path / 'wheel'}", f"-Ccmake.define.ASCEND_FUSE_BUILT={BUILD}"]
    subprocess.run([sys.executable, "-m", "pip", "wheel", ROOT, "--no-build-isolation", "--no-deps", "-q", "-w", tmp_path, *options],
                   check=True,
                   # Beside the build folder, whose objects the compiler's cache has then (scripts/build).
                   env=dict(os.environ, CMAKE_BUILD_PARALLEL_LEVEL="2", CCACHE_BASEDIR=str(ROOT), CCACHE_NOHASHDIR="1"))
    wheel = next(tmp_path.glob("*.whl"))
    assert wheel.name.startswith(f"ascend_fuse-{VERSION}-py3-none-")
    optimized = of == "sources" or "CMAKE_BUILD_TYPE:STRING=Release" in (BUILD / "CMakeCache.txt").read_text()
    assert wheel.stat().st_size < (10_000_000 if optimized else 20_000_000)
    names = zipfile.ZipFile(wheel).namelist()
    assert {"ascend_fuse/api.py", "ascend_fuse/py.typed", "ascend_fuse/libascend_fuse.so"} <= set(names)
    assert not [name for name in names if name.startswith(("tests", "include", "lib/"))]
    venv = tmp_path / "venv"
    subprocess.run([sys.executable, "-m", "venv", venv], check=True)
    subprocess.run([venv / "bin" / "pip", "install", "-q", "--no-deps", wheel], check=True)
    program = f"import ascend_fuse; r = ascend_fuse.optimize({str(zoo / MODEL)!r}); r.save({str(tmp_path / 'out.onnx')!r}); print(ascend_fuse.__version__)"
    done = subprocess.run([venv / "bin" / "python", "-c", program], capture_output=True, text=True, cwd=tmp_path)
    assert done.stdout.strip() == VERSION, done.stderr
    done = subprocess.run([venv / "bin" / "ascend-fuse", "optimize", zoo / MODEL, "-o", tmp_path / "by_program.onnx", "--quiet"])
    assert done.returncode == 0 and (tmp_path / "by_program.onnx").read_bytes() == (tmp_path / "out.onnx").read_bytes()
    # verify finds the package of its own environment; the environment has no ONNX Runtime, and that is what it says.
    done = subprocess.run([venv / "bin" / "ascend-fuse", "verify", zoo / MODEL, tmp_path / "out.onnx"], capture_output=True, text=True)
    assert done.returncode == 1 and "verify needs the Python packages numpy, onnx and onnxruntime" in done.stderr
