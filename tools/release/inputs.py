"""What a release is made of, by checksum: the source packages of Debian 12 for protobuf, Abseil, fmt and CLI11, and zig as the
compiler of everything. Nothing of the machine's gets into a file, but what its protoc of the same protobuf writes."""

from __future__ import annotations

import dataclasses
import hashlib
import shutil
import subprocess
import sys
from pathlib import Path

from release.debian import apt_environment, mirror, run


@dataclasses.dataclass(frozen=True)
class Source:
    """A source package of Debian: its files by checksum, and the licence inside of the folder that it is unpacked to."""

    folder: str
    package: str
    version: str
    licence: str
    files: dict[str, str]
    dropped: str = ""  # a patch of Debian's that is not wanted


SOURCES = (
    Source("protobuf", "protobuf", "3.21.12-3+deb12u1", "LICENSE", {
        "protobuf_3.21.12-3+deb12u1.dsc": "22e31f6dfc06d85a9054bf19603a412698c0d2f760a754650cd2385ea303cee0",
        "protobuf_3.21.12-3+deb12u1.debian.tar.xz": "49cdad49801545cb797355af19fbd6b3627084c6549f629512faaa4e25dd5647",
        "protobuf_3.21.12.orig.tar.gz": "930c2c3b5ecc6c9c12615cf5ad93f1cd6e12d0aba862b572e076259970ac3a53"}),
    Source("abseil", "abseil", "20220623.1-1+deb12u2", "LICENSE", {
        "abseil_20220623.1-1+deb12u2.dsc": "ba731eaced569332fa4ce802a7ff2615ae57ac25beaf2d02f634ef908f2e62c2",
        "abseil_20220623.1-1+deb12u2.debian.tar.xz": "e08490fc7b6f3beca1925953b0c4fb92df2de5e2a01295e4641e2a3d4e528eeb",
        "abseil_20220623.1.orig.tar.gz": "abfe2897f3a30edaa74bc34365afe3c2a3cd012091a97dc7e008f7016adcd5fe"},
        dropped="latomic.diff"),  # for armel; zig's linker does not know its flags
    Source("fmtlib", "fmtlib", "9.1.0+ds1-2", "LICENSE.rst", {
        "fmtlib_9.1.0+ds1-2.dsc": "1c8982464f1281f5b7d42ca24e058d80d71db7c381b278cc22cbdb40c534f0c5",
        "fmtlib_9.1.0+ds1-2.debian.tar.xz": "aead535c0b3d7a02a89f6e004ac62d1e15bdbf8d34c36cd37038dcc7d37bc9e3",
        "fmtlib_9.1.0+ds1.orig.tar.gz": "84ce1c2d0be3a9863935137969dcec6970125caac032f82474640bfc81463583"}),
    Source("cli11", "cli11", "2.1.2+ds-1", "LICENSE", {
        "cli11_2.1.2+ds-1.dsc": "bb685eff351ca4fb77cf194f5ffb80e47f96989fc200f21241eb9eb320cfbc9c",
        "cli11_2.1.2+ds-1.debian.tar.xz": "5fe18c0752d45508e6fa7e213dd3d826e71ce7600a5ce96c4c4cca7cf7d7fec7",
        "cli11_2.1.2+ds.orig.tar.xz": "8143d20b688e98ccce8e24562d3b68e5f47c12e896c42c7ca8553dbde5bed55d"}),
)
ZIG_VERSION = "0.15.2"
ZIG = f"""ziglang=={ZIG_VERSION} --hash=sha256:806316453d1ede7174ed3fefb8e5348154629089c3bb5fe812dfd0e172fac130
"""
# Debian's sources: main, and its updates, where fixed versions come from.
SUITES = ("bookworm", "bookworm-updates", "bookworm-proposed-updates")


class InputError(Exception):
    """A source that is missing, or is not the one that was pinned."""


def fetch(work: Path) -> None:
    """Unpacks the sources in `work`; what is missing is downloaded by apt-get, with lists of its own."""
    archives = work / "archives"
    archives.mkdir(parents=True, exist_ok=True)
    missing = [source for source in SOURCES if not all((archives / name).is_file() for name in source.files)]
    if missing:
        _download(work / "apt", archives, missing)
    for source in SOURCES:
        for name, wanted in source.files.items():
            found = hashlib.sha256((archives / name).read_bytes()).hexdigest()
            if found != wanted:
                raise InputError(f"{archives / name} is not the file that was pinned: sha256 {found} instead of {wanted}")
    for source in SOURCES:
        stamp = work / source.folder / ".unpacked"
        if not stamp.is_file() or stamp.read_text() != f"{source.version} {source.dropped}":
            shutil.rmtree(work / source.folder, ignore_errors=True)
            description = next(name for name in source.files if name.endswith(".dsc"))
            run("dpkg-source", "--no-check", "--no-copy", "-x", archives / description, work / source.folder)
            if source.dropped:
                run("patch", "-s", "-R", "-p1", "-i", f"debian/patches/{source.dropped}", cwd=work / source.folder)
            stamp.write_text(f"{source.version} {source.dropped}")


def _download(folder: Path, archives: Path, missing: list[Source]) -> None:
    environment = apt_environment(folder, [f"deb-src {mirror()} {suite} main" for suite in SUITES])
    for source in missing:
        try:
            run("apt-get", "-q", "source", "--download-only", f"{source.package}={source.version}", cwd=archives, environment=environment)
        except subprocess.CalledProcessError:
            raise InputError(f"{source.package} {source.version} is not there any more: put its files in {archives}, or pin the next "
                             "version in tools/release/inputs.py") from None


def install_zig(work: Path) -> Path:
    """Returns zig, installed by pip with its checksum in an environment of its own."""
    folder = work / "zig"
    found = list(folder.glob("lib/python3*/site-packages/ziglang/zig"))
    if not found:
        run(sys.executable, "-m", "venv", folder)
        (folder / "requirements.txt").write_text(ZIG)
        run(folder / "bin" / "pip", "install", "-q", "--require-hashes", "--only-binary", ":all:", "-r", folder / "requirements.txt")
        found = list(folder.glob("lib/python3*/site-packages/ziglang/zig"))
    return found[0]
