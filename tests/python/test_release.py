"""The files of a release: archives that are the same each time, and, where scripts/release has made files, what is in them and what
they need."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from conftest import BUILD, ROOT
from release_files import FILES, MADE, covering_choice, made, processor_of, unpack

sys.path.insert(0, str(ROOT / "tools"))
from release import archives, inputs, packages, python_package  # noqa: E402
from release.builds import TARGETS  # noqa: E402

MACHINES = {"x86_64": 62, "aarch64": 183}  # e_machine of ELF
# What a Linux with glibc has: nothing of C++, nothing of others.
OF_GLIBC = {"libc.so.6", "libm.so.6", "libpthread.so.0", "libdl.so.2", "librt.so.1", "ld-linux-x86-64.so.2", "ld-linux-aarch64.so.1"}


# --- what needs no build ---


def test_archives_are_the_same_each_time(tmp_path: Path) -> None:
    entries = {"b/program": archives.entry(b"\x7fELF", program=True), "a.txt": archives.entry("text"), "link": archives.Entry(link="a.txt")}
    one = archives.write_tar(tmp_path / "1.tar.gz", "root", entries, 1_700_000_000)
    two = archives.write_tar(tmp_path / "2.tar.gz", "root", dict(reversed(entries.items())), 1_700_000_000)
    assert one.read_bytes() == two.read_bytes()
    with tarfile.open(one) as tar:
        assert [(i.name, i.mode, i.mtime, i.uid) for i in tar] == [
            ("root/a.txt", 0o644, 1_700_000_000, 0), ("root/b/program", 0o755, 1_700_000_000, 0), ("root/link", 0o777, 1_700_000_000, 0)]
    del entries["link"]
    wheels = [archives.write_wheel(tmp_path / f"{i}.whl", entries, "x.dist-info", 1_700_000_000).read_bytes() for i in range(2)]
    assert wheels[0] == wheels[1]
    with zipfile.ZipFile(tmp_path / "0.whl") as wheel:
        assert wheel.namelist()[-1] == "x.dist-info/RECORD"
        assert wheel.read("x.dist-info/RECORD").decode().splitlines()[-1] == "x.dist-info/RECORD,,"


def test_metadata_is_that_of_the_project() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    lines = python_package.metadata(ROOT).splitlines()
    assert f"Version: {python_package.version_of(ROOT)}" in lines and f"Requires-Python: {project['requires-python']}" in lines
    assert "Requires-Dist: onnxruntime; extra == 'verify'" in lines
    files = python_package.package_files(ROOT)
    assert {"__init__.py", "_core.py", "py.typed"} <= set(files)


def test_every_input_has_a_checksum() -> None:
    for source in inputs.SOURCES:
        assert sum(name.endswith(".dsc") for name in source.files) == 1
        assert all(re.fullmatch("[0-9a-f]{64}", checksum) for checksum in source.files.values())
        assert source.version in next(name for name in source.files if name.endswith(".dsc"))
    assert re.search(r"--hash=sha256:[0-9a-f]{64}", inputs.ZIG)


def test_a_wrong_input_is_refused(tmp_path: Path) -> None:
    (tmp_path / "archives").mkdir()
    for source in inputs.SOURCES:
        for name in source.files:
            (tmp_path / "archives" / name).write_text("not what was pinned")
    with pytest.raises(inputs.InputError, match="is not the file that was pinned: sha256"):
        inputs.fetch(tmp_path)


def test_a_package_is_laid_out_with_one_time(tmp_path: Path) -> None:
    packages.lay_out(tmp_path / "root", {"usr/bin/x": archives.entry(b"1", program=True), "usr/y": archives.Entry(link="bin/x")}, 1_700_000_000)
    paths = [tmp_path / "root", *(tmp_path / "root").rglob("*")]
    assert {int(path.lstat().st_mtime) for path in paths} == {1_700_000_000}
    assert (tmp_path / "root/usr/bin/x").stat().st_mode & 0o777 == 0o755 and os.readlink(tmp_path / "root/usr/y") == "bin/x"


# --- what was made ---


@pytest.fixture
def unpacked(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """The content of a file of the release."""
    path: Path = request.param
    unpack(path, tmp_path)
    (tmp_path / ".name").write_text(path.name)
    return tmp_path


def binaries(folder: Path) -> Iterator[Path]:
    for path in folder.rglob("*"):
        if path.is_file() and not path.is_symlink() and path.read_bytes()[:4] == b"\x7fELF":
            yield path


def dynamic(path: Path) -> tuple[set[str], set[tuple[int, ...]]]:
    """The libraries that a binary needs, and the versions of glibc that its symbols are of."""
    header = subprocess.run(["readelf", "-dW", path], capture_output=True, text=True, check=True).stdout
    symbols = subprocess.run(["readelf", "-VW", path], capture_output=True, text=True, check=True).stdout
    versions = {tuple(map(int, version.split("."))) for version in re.findall(r"GLIBC_(\d[\d.]*)", symbols)}
    return set(re.findall(r"\(NEEDED\).*\[(.*)\]", header)), versions


BINARY = r".*\.(whl|deb|rpm)|(lib)?ascend[_-]fuse-.*linux.*\.tar\.gz"


@pytest.mark.parametrize("unpacked", made(BINARY), indirect=True)
def test_what_binaries_need(unpacked: Path) -> None:
    name = (unpacked / ".name").read_text()
    machine = MACHINES[processor_of(Path(name))]
    static = name.startswith("ascend-fuse-") and name.endswith(".tar.gz")
    found = list(binaries(unpacked))
    assert found
    for path in found:
        needed, versions = dynamic(path)
        assert int.from_bytes(path.read_bytes()[18:20], "little") == machine
        assert not needed if static else needed <= OF_GLIBC, path
        assert max(versions, default=(0,)) <= (2, 28), path
        assert not re.search(rb"/(root|home|tmp|work)/[\w./-]{8,}", path.read_bytes()), path
    text = "".join(path.read_text() for path in unpacked.rglob("NOTICE"))
    assert all(word in text for word in ("protobuf", "abseil", "fmtlib", "cli11", "LLVM", *(["musl"] if static else [])))
    listed = json.loads(next(unpacked.rglob("ascend-fuse.cdx.json")).read_text())
    assert {"protobuf", "abseil-cpp", "fmt", "cli11", "libcxx"} <= {component["name"] for component in listed["components"]}


@pytest.mark.parametrize("path", made(r".*\.whl"))
def test_the_platform_of_a_wheel(path: Path) -> None:
    assert re.fullmatch(r"ascend_fuse-[\d.]+-py3-none-manylinux_2_28_(x86_64|aarch64)\.whl", path.name)
    assert path.stat().st_size < 10_000_000
    tool = shutil.which("auditwheel")
    if tool is None:
        pytest.skip("auditwheel is not installed")
    done = subprocess.run([tool, "show", path], capture_output=True, text=True)
    assert re.search(r'"manylinux_2_(\d+)_', done.stdout) and int(re.search(r'"manylinux_2_(\d+)_', done.stdout)[1]) <= 28, done.stdout + done.stderr


@pytest.mark.parametrize("path", made(r"libascend_fuse-.*\.tar\.gz"))
def test_the_library_shows_the_interface_in_c(path: Path, tmp_path: Path) -> None:
    shutil.unpack_archive(path, tmp_path, filter="data")
    header = re.sub(r"/\*.*?\*/", "", next(tmp_path.rglob("ascend_fuse.h")).read_text(), flags=re.DOTALL)
    printed = subprocess.run(["readelf", "--dyn-syms", "-W", next(tmp_path.rglob("libascend_fuse.so.*.*.*"))], capture_output=True, text=True,
                             check=True).stdout
    shown = {line.split()[7].partition("@")[0] for line in printed.splitlines() if re.search(r"(GLOBAL|WEAK) +DEFAULT +\d+ ", line)}
    assert shown == set(re.findall(r"\b(ascend_fuse_\w+)\(", header)) - {"ascend_fuse_progress"}


@pytest.mark.skipif(not MADE, reason="scripts/release has not made files")
def test_checksums() -> None:
    sums = dict(line.split()[::-1] for line in (FILES / "SHA256SUMS").read_text().splitlines())
    assert sums == {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in MADE if path.name != "SHA256SUMS"}


def runner(path: Path) -> list[str] | None:
    """What runs a program on this machine."""
    machine = processor_of(path)
    if machine == os.uname().machine:
        return []
    emulator = shutil.which(f"qemu-{machine}-static")
    return emulator and [emulator]


CHOICE = ("llama-sdpa-past-ts17-dynamic.onnx",)


@pytest.mark.parametrize("path", made(r"ascend-fuse-.*-linux-.*\.tar\.gz"))
def test_static_programs_write_the_same_bytes(path: Path, zoo: Path, tmp_path: Path) -> None:
    """As the program of this build, which another compiler made for one processor."""
    run = runner(path)
    if run is None:
        pytest.skip("no qemu-user")
    shutil.unpack_archive(path, tmp_path, filter="data")
    program = next(tmp_path.rglob("bin/ascend-fuse"))
    said = subprocess.run([*run, program, "--version"], capture_output=True, text=True, check=True).stdout
    assert re.fullmatch(r"ascend-fuse [\d.]+ \([0-9a-f]{12}, Release build, Linux \w+, Clang [\d.]+\)\n", said)
    for name in covering_choice() if "ASCEND_FUSE_RELEASE_WHOLE" in os.environ else CHOICE:
        for command, output in ((*run, program), "there.onnx"), ((BUILD / "ascend-fuse",), "here.onnx"):
            subprocess.run([*command, "optimize", zoo / name, "-o", tmp_path / output, "--quiet", "--force"], check=True)
        assert (tmp_path / "there.onnx").read_bytes() == (tmp_path / "here.onnx").read_bytes(), name


def test_targets_are_of_both_processors() -> None:
    assert [target.triple for target in TARGETS] == ["x86_64-linux-gnu.2.28", "aarch64-linux-gnu.2.28", "x86_64-linux-musl", "aarch64-linux-musl"]
