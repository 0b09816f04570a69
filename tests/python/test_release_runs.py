"""The files of a release, run: the wheel in every Python of this machine, and all of them for both processors in roots of Debian's oldest
release, by qemu-user. scripts/test-release runs this; it takes minutes, so other runs of the tests leave it out."""

from __future__ import annotations

import dataclasses
import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest
from conftest import BUILD, ROOT
from release_files import covering_choice, made, processor_of, unpack
from test_all_pythons import PROGRAM, VERSIONS, interpreter

sys.path.insert(0, str(ROOT / "tools"))
from release import debian  # noqa: E402

pytestmark = [pytest.mark.skipif("ASCEND_FUSE_RELEASE_WHOLE" not in os.environ, reason="scripts/test-release runs it"),
              pytest.mark.timeout(900)]  # emulated, ONNX Runtime takes minutes
WORK = Path(os.environ.get("ASCEND_FUSE_RELEASE_WORK", BUILD / "release")).resolve()
MODELS = ("llama-sdpa-past-ts17-dynamic.onnx",)
SAID = ["2 True", "True", "interrupted"]  # what PROGRAM prints
OF_THIS_MACHINE = rf".*_{os.uname().machine}\.whl"
CLEAN = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}


def output(words: list[object], **variables: str) -> str:
    """What a command prints on stdout; it must end with 0."""
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True, env=CLEAN | variables, timeout=600)
    assert done.returncode == 0, f"{words}: {done.stdout}{done.stderr}"
    return done.stdout


# --- on this machine ---


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("wheel", made(OF_THIS_MACHINE))
def test_the_wheel_in_every_python(wheel: Path, version: str, zoo: Path, tmp_path: Path) -> None:
    python = interpreter(version)
    if python is None:
        pytest.skip(f"no Python {version} on this machine")
    venv = tmp_path / "venv"
    made_venv = subprocess.run([python, "-m", "venv", venv], capture_output=True, text=True)
    if made_venv.returncode:
        pytest.skip(f"this Python {version} makes no environments")
    output([venv / "bin" / "pip", "install", "-q", "--disable-pip-version-check", "--no-index", wheel])
    assert output([venv / "bin" / "python", "-c", PROGRAM, zoo / MODELS[0]]).splitlines() == SAID
    output([venv / "bin" / "ascend-fuse", "optimize", zoo / MODELS[0], "-o", tmp_path / "out.onnx", "--quiet"])
    assert (tmp_path / "out.onnx").read_bytes() == by_the_build(zoo / MODELS[0], tmp_path)


NEWCOMER = """
python3 -m venv venv
venv/bin/pip install -q --disable-pip-version-check --no-index "$1"
venv/bin/ascend-fuse optimize "$2" -o out.onnx --require attention --quiet
venv/bin/ascend-fuse rules new my_rule
venv/bin/ascend-fuse rules --check my_rule.rule
venv/bin/python -c "$3" "$2"
"""


@pytest.mark.parametrize("wheel", made(OF_THIS_MACHINE))
def test_a_newcomer_takes_less_than_20_seconds(wheel: Path, zoo: Path, tmp_path: Path) -> None:
    """With the wheel alone: installed, a model optimized, a rule and a pass written and run."""
    start = time.monotonic()
    done = subprocess.run(["sh", "-ec", NEWCOMER, "sh", wheel, zoo / MODELS[0], PROGRAM], cwd=tmp_path, env=CLEAN, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    taken = time.monotonic() - start
    print(f"\na newcomer: {taken:.1f} s")
    assert taken < 20


# --- in roots of Debian, for both processors ---


@dataclasses.dataclass(frozen=True)
class Release:
    """Of Debian, with its Python. NumPy needs libstdc++, and we do not."""

    name: str
    python: str

    @property
    def packages(self) -> list[str]:
        return [f"python{self.python}-venv", "libstdc++6"]


OLDEST = Release(debian.OLDEST, "3.9")  # glibc 2.31
NEWEST = Release(debian.NEWEST, "3.14")


@dataclasses.dataclass(frozen=True)
class Root:
    """A release for a processor."""

    release: Release
    processor: str
    folder: Path

    def words(self, program: object, *arguments: object) -> list[object]:
        """The words of a command that runs a program in it."""
        return [f"qemu-{self.processor}-static", "-L", self.folder, program, *arguments]

    def python(self, *arguments: object) -> list[object]:
        """The same of its Python."""
        return self.words(self.folder / "usr" / "bin" / f"python{self.release.python}", *arguments)

    @staticmethod
    def script(path: Path, words: list[object]) -> Path:
        """A program that this machine starts, and which runs the words and its own arguments."""
        path.parent.mkdir(exist_ok=True)
        path.write_text("#!/bin/sh\nexec " + " ".join(f"'{word}'" for word in words) + ' "$@"\n')
        path.chmod(0o755)
        return path


def root_for(path: Path, release: Release = OLDEST) -> Root:
    """The root for a file that we release, made once."""
    processor = processor_of(path)
    if shutil.which(f"qemu-{processor}-static") is None:
        pytest.skip("qemu-user-static is not installed")
    folder = WORK / "roots" / f"{release.name}-{processor}"
    return Root(release, processor, debian.root(folder, processor, release.packages, release.name))


def by_the_build(model: Path, folder: Path) -> bytes:
    """What the program of this build writes, which another compiler made."""
    subprocess.run([BUILD / "ascend-fuse", "optimize", model, "-o", folder / "by_the_build.onnx", "--quiet", "--force"], check=True)
    return (folder / "by_the_build.onnx").read_bytes()


def install(root: Root, wheel: Path, folder: Path) -> Path:
    """Installs a wheel by the pip of the root."""
    wheels = sorted((root.folder / "usr" / "share" / "python-wheels").glob("*.whl"))
    pip = next(path for path in wheels if path.name.startswith("pip-"))
    output(root.python(pip / "pip", "install", "-q", "--no-index", "--target", folder, wheel), PYTHONPATH=":".join(map(str, wheels)))
    return folder


@pytest.mark.parametrize("wheel", made(r".*\.whl"))
def test_the_wheel_in_debian(wheel: Path, zoo: Path, tmp_path: Path) -> None:
    root = root_for(wheel)
    site = install(root, wheel, tmp_path / "site")
    assert output(root.python("-c", PROGRAM, zoo / MODELS[0]), PYTHONPATH=str(site)).splitlines() == SAID
    for model in covering_choice():
        output(root.words(site / "bin" / "ascend-fuse", "optimize", zoo / model, "-o", tmp_path / "out.onnx", "--quiet", "--force"))
        assert (tmp_path / "out.onnx").read_bytes() == by_the_build(zoo / model, tmp_path), model


@pytest.mark.parametrize("wheel", made(r".*\.whl"))
def test_the_wheel_in_the_newest_python(wheel: Path, zoo: Path, tmp_path: Path) -> None:
    root = root_for(wheel, NEWEST)
    site = install(root, wheel, tmp_path / "site")
    said = output(root.python("-c", PROGRAM + "print(sys.version_info[:2])", zoo / MODELS[0]), PYTHONPATH=str(site))
    assert said.splitlines() == [*SAID, "(3, 14)"]


@pytest.mark.parametrize("wheel", made(r".*\.whl"))
def test_verify_in_debian(wheel: Path, zoo: Path, tmp_path: Path) -> None:
    """With onnxruntime of PyPI for that processor: the program finds Python on the path, and Python starts the program, which this
    machine can start itself only where it is of its own processor. NumPy needs more of a processor than we do."""
    root = root_for(wheel)
    site = WORK / "roots" / f"{root.processor}-site"
    if not site.is_dir():
        names = [f"--platform=manylinux_2_{minor}_{root.processor}" for minor in (28, 27, 17)] + [f"--platform=manylinux2014_{root.processor}"]
        output([sys.executable, "-m", "pip", "install", "-q", "--disable-pip-version-check", "--target", site, *names, "--python-version=3.9",
                "--implementation=cp", "--only-binary=:all:", "numpy", "onnx", "onnxruntime"])
    ours = install(root, wheel, tmp_path / "site")
    output(root.words(ours / "bin" / "ascend-fuse", "optimize", zoo / MODELS[0], "-o", tmp_path / "out.onnx", "--quiet"))
    program = root.words(ours / "bin" / "ascend-fuse")
    models = (zoo / MODELS[0], tmp_path / "out.onnx")
    ways = [root.python("-m", "ascend_fuse.verification", *models, "--tool", root.script(tmp_path / "bin" / "ascend-fuse", program))]
    if root.processor == os.uname().machine:
        root.script(tmp_path / "bin" / "python3", root.python())
        ways.append([*program, "verify", *models])
    for words in ways:
        said = output(words, QEMU_CPU="max", PYTHONPATH=f"{ours}:{site}", PATH=f"{tmp_path / 'bin'}:{os.environ['PATH']}")
        assert re.search(r"^equal: [1-9]\d* comparisons within the tolerance", said, re.MULTILINE), said


@pytest.mark.parametrize("path", made(r".*\.(deb|rpm)"))
def test_packages_in_debian(path: Path, zoo: Path, tmp_path: Path) -> None:
    root = root_for(path)
    below = unpack(path, tmp_path / "unpacked") / "usr"
    output(root.words(below / "bin" / "ascend-fuse", "optimize", zoo / MODELS[0], "-o", tmp_path / "out.onnx", "--quiet"))
    assert (tmp_path / "out.onnx").read_bytes() == by_the_build(zoo / MODELS[0], tmp_path)
    said = output(root.python("-c", PROGRAM, zoo / MODELS[0]), PYTHONPATH=str(below / "share" / "ascend-fuse" / "python"))
    assert said.splitlines() == SAID


@pytest.mark.parametrize("path", made(r"libascend_fuse-.*\.tar\.gz"))
def test_the_example_in_c(path: Path, zoo: Path, tmp_path: Path) -> None:
    root = root_for(path)
    zig = next(WORK.glob("zig/lib/python3*/site-packages/ziglang/zig"), None)
    if zig is None:
        pytest.skip("no zig, which compiles for both processors")
    (below,) = unpack(path, tmp_path / "unpacked").iterdir()
    program = tmp_path / "example_c"
    cache = {f"ZIG_{kind}_CACHE_DIR": str(WORK / "zig-cache") for kind in ("GLOBAL", "LOCAL")}
    output([zig, "cc", "-target", f"{root.processor}-linux-gnu.2.28", "-std=c99", "-Wall", "-Werror", f"-I{below}/include",
            below / "share" / "doc" / "ascend-fuse" / "example.c", f"-L{below}/lib", "-lascend_fuse", "-o", program], **cache)
    said = output(root.words(program, zoo / MODELS[0], tmp_path / "out.onnx"), LD_LIBRARY_PATH=str(below / "lib"))
    assert re.match(r"version [\d.]+\n", said) and (tmp_path / "out.onnx").stat().st_size > 0


@pytest.mark.parametrize("path", made(r"ascend-fuse-.*-linux-.*\.tar\.gz"))
def test_the_static_program_without_python(path: Path, zoo: Path, tmp_path: Path) -> None:
    """It says what `verify` needs. There is no root: it needs no file of one."""
    emulator = shutil.which(f"qemu-{processor_of(path)}-static")
    if emulator is None:
        pytest.skip("qemu-user-static is not installed")
    program = next(unpack(path, tmp_path).rglob("bin/ascend-fuse"))
    done = subprocess.run([emulator, program, "verify", zoo / MODELS[0], zoo / MODELS[0]], capture_output=True, text=True,
                          env={"PATH": str(tmp_path)})
    assert done.returncode != 0 and "python3" in done.stderr, done.stderr
