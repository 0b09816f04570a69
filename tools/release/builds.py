"""The program and the library of one architecture, compiled by zig: against glibc 2.28, or static with musl."""

from __future__ import annotations

import dataclasses
import hashlib
import os
import subprocess
import sys
from pathlib import Path

from release.debian import ARCHITECTURES
from release.inputs import ZIG_VERSION

# Objects in sections of their own, so that the linker leaves out what is not used. Paths in them are relative to the build folder, as
# ccache gives them to the compiler: the same with and without it. What is linked is always stripped, also what CMake tries: zig would
# compile its libc++ a second time for programs with debug information. A product and a sum are rounded one after the other on every
# processor: aarch64 could do both at once, and constants that we compute would differ.
COMPILER = """#!/bin/sh
export ZIG_GLOBAL_CACHE_DIR={cache} ZIG_LOCAL_CACHE_DIR={cache}
case " $* " in *" -c "*) ;; *) set -- "$@" -s ;; esac
exec {zig} {language} -target {triple} -ffunction-sections -fdata-sections -ffp-contract=off -ffile-prefix-map={work}/=../../ -ffile-prefix-map={folder}/= "$@"
"""
CALL = hashlib.sha256(COMPILER.encode()).hexdigest()[:12]  # how the compiler is called, for ccache, which does not look into the script
TOOL = """#!/bin/sh
exec {zig} {name} "$@"
"""


@dataclasses.dataclass(frozen=True)
class Target:
    """A processor and a C library."""

    processor: str  # as in the names of wheels and packages of RPM
    debian: str  # the same in Debian
    library: str  # gnu.2.28 or musl

    @property
    def triple(self) -> str:
        """Returns the target as zig calls it."""
        return f"{self.processor}-linux-{self.library}"

    @property
    def static(self) -> bool:
        """Returns whether programs of it need no library at all."""
        return self.library == "musl"


TARGETS = [Target(processor, debian, library) for library in ("gnu.2.28", "musl") for processor, debian in ARCHITECTURES.items()]


@dataclasses.dataclass(frozen=True)
class Workshop:
    """The folders of a release in the making."""

    work: Path  # with the sources of others, and the build folders
    tree: Path  # in it: the sources of this project, of one commit
    commit: str
    zig: Path
    jobs: int

    def folder(self, target: Target) -> Path:
        """Returns the build folder of a target."""
        return self.work / "build" / target.triple


def write_compilers(shop: Workshop) -> Path:
    """Returns the folder with compilers whose names say what they compile for, as CMake and ccache want them."""
    folder = shop.work / "compilers"
    folder.mkdir(exist_ok=True)
    texts = {name: TOOL.format(zig=shop.zig, name=name) for name in ("ar", "ranlib")}
    for target in TARGETS:
        for language in ("cc", "c++"):
            texts[f"{target.triple}-{language}"] = COMPILER.format(cache=shop.work / "zig-cache", zig=shop.zig, language=language,
                                                                   triple=target.triple, work=shop.work, folder=shop.folder(target))
    for name, text in texts.items():
        path = folder / name
        if not path.is_file() or path.read_text() != text:
            path.write_text(text)
            path.chmod(0o755)
    return folder


def build(shop: Workshop, target: Target, rule_compiler: Path | None) -> Path:
    """Returns the build folder with `ascend-fuse` and, unless static, the library. `rule_compiler` is one that runs here."""
    folder = shop.folder(target)
    goals = ["ascend-fuse"] if target.static else ["ascend_fuse", "ascend-fuse"]
    environment = dict(os.environ, CCACHE_COMPILERTYPE="clang", CCACHE_COMPILERCHECK=f"string:zig-{ZIG_VERSION}-{target.triple}-{CALL}",
                       CCACHE_NOHASHDIR="1", CCACHE_BASEDIR=str(shop.work), ASCEND_FUSE_GROUP_LINES="9000")
    options = {
        "CMAKE_TOOLCHAIN_FILE": shop.tree / "cmake/release/zig.cmake",
        "CMAKE_PROJECT_TOP_LEVEL_INCLUDES": shop.tree / "cmake/release/dependencies.cmake",
        "ASCEND_FUSE_SOURCES": shop.work, "ASCEND_FUSE_COMPILERS": write_compilers(shop), "ASCEND_FUSE_TARGET": target.triple,
        "ASCEND_FUSE_PORTABLE": "ON", "ASCEND_FUSE_GROUPS": "ON", "ASCEND_FUSE_TESTS": "OFF", "ASCEND_FUSE_BENCH": "OFF",
        "ASCEND_FUSE_PYTHON": "OFF", "ASCEND_FUSE_COMMIT": shop.commit[:12], "ASCEND_FUSE_RULE_COMPILER": rule_compiler or "", "CMAKE_BUILD_TYPE": "Release",
        "CMAKE_C_FLAGS_RELEASE": "-O2 -DNDEBUG", "CMAKE_CXX_FLAGS_RELEASE": "-O2 -DNDEBUG",
        "CMAKE_EXE_LINKER_FLAGS": "-Wl,--gc-sections" + (" -static" if target.static else ""),
        "CMAKE_SHARED_LINKER_FLAGS": "-Wl,--gc-sections",
    }
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "release.log").open("a") as log:
        for command in (["cmake", "-S", shop.tree, "-B", folder, "-G", "Ninja", *(f"-D{name}={value}" for name, value in options.items())],
                        ["ninja", "-C", folder, f"-j{shop.jobs}", *goals]):
            done = subprocess.run([*map(str, command)], env=environment, stdout=log, stderr=subprocess.STDOUT)
            if done.returncode:
                sys.exit(f"{target.triple}: {command[0]} failed; the end of {folder / 'release.log'}:\n"
                         + "\n".join((folder / "release.log").read_text().splitlines()[-20:]))
    return folder
