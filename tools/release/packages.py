"""Programs and libraries to unpack, Debian packages and RPMs, of what was built."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

from release.archives import Entry, entry, write_tar
from release.builds import Target, Workshop
from release.notices import documents
from release.python_package import package_files, version_of

SUMMARY = "exported ONNX in, the same model with Ascend NPU nodes out"
DESCRIPTION = """Finds norms, activations, rotary embeddings and attention in exported ONNX
models, and writes the fused nodes that the compiler of Ascend chips takes."""
COMPLETIONS = {"bash": "share/bash-completion/completions/ascend-fuse", "zsh": "share/zsh/vendor-completions/_ascend-fuse",
               "fish": "share/fish/vendor_completions.d/ascend-fuse.fish"}


def static_program(shop: Workshop, target: Target, native: Path, output: Path, epoch: int) -> Path:
    """Writes the program that needs no library, with its man page, completions and, for verify and reduce, its Python."""
    name = f"ascend-fuse-{version_of(shop.tree)}-linux-{target.processor}"
    entries = {"bin/ascend-fuse": entry(shop.folder(target) / "ascend-fuse", program=True)} | written_by(native)
    entries |= {f"share/ascend-fuse/python/ascend_fuse/{file}": what for file, what in package_files(shop.tree).items()}
    entries |= {f"share/doc/ascend-fuse/{file}": entry(content) for file, content in documents(shop, target).items()}
    return write_tar(output / f"{name}.tar.gz", name, entries, epoch)


def library(shop: Workshop, target: Target, output: Path, epoch: int) -> Path:
    """Writes the shared library with its header."""
    version = version_of(shop.tree)
    name = f"libascend_fuse-{version}-{target.triple.replace('gnu.', 'glibc')}"
    entries = library_files(shop, target, "lib")
    entries |= {f"share/doc/ascend-fuse/{file}": entry(content) for file, content in documents(shop, target).items()}
    entries["share/doc/ascend-fuse/example.c"] = entry(shop.tree / "examples" / "c" / "example.c")
    return write_tar(output / f"{name}.tar.gz", name, entries, epoch)


def library_files(shop: Workshop, target: Target, folder: str) -> dict[str, Entry]:
    """Returns the library under its names, its header, and what pkg-config reads."""
    version = version_of(shop.tree)
    short = ".".join(version.split(".")[:2])
    text = (f"prefix=${{pcfiledir}}/{'/'.join(['..'] * (folder.count('/') + 2))}\nName: ascend_fuse\nDescription: {SUMMARY}\n"
            f"Version: {version}\nLibs: -L${{prefix}}/{folder} -lascend_fuse\nCflags: -I${{prefix}}/include\n")
    return {
        f"{folder}/libascend_fuse.so.{version}": entry((shop.folder(target) / "libascend_fuse.so").resolve()),
        f"{folder}/libascend_fuse.so.{short}": Entry(link=f"libascend_fuse.so.{version}"),
        f"{folder}/libascend_fuse.so": Entry(link=f"libascend_fuse.so.{short}"),
        f"{folder}/pkgconfig/ascend_fuse.pc": entry(text),
        "include/ascend_fuse.h": entry(shop.tree / "tools" / "c" / "ascend_fuse.h"),
    }


def written_by(native: Path) -> dict[str, Entry]:
    """Returns the man page and the completions, as a program that runs here writes them."""

    def said(*words: str) -> Entry:
        return entry(subprocess.run([native, *words], capture_output=True, check=True).stdout)

    return {"share/man/man1/ascend-fuse.1": said("man")} | {path: said("completion", shell) for shell, path in COMPLETIONS.items()}


def installed(shop: Workshop, target: Target, native: Path, folder: str) -> dict[str, Entry]:
    """Returns what a package of a distribution puts below /usr; its library is in `folder`."""
    entries = {"bin/ascend-fuse": entry(shop.folder(target) / "ascend-fuse", program=True)} | written_by(native)
    entries |= library_files(shop, target, folder)
    entries |= {f"share/ascend-fuse/python/ascend_fuse/{file}": what for file, what in package_files(shop.tree).items()}
    up = "../" * 4
    entries["share/ascend-fuse/python/ascend_fuse/libascend_fuse.so"] = Entry(
        link=f"{up}{folder}/libascend_fuse.so.{'.'.join(version_of(shop.tree).split('.')[:2])}")
    return entries | {f"share/doc/ascend-fuse/{file}": entry(content) for file, content in documents(shop, target).items()}


def lay_out(root: Path, entries: dict[str, Entry], epoch: int) -> None:
    """Writes the files of a package below `root`, of one time."""
    shutil.rmtree(root, ignore_errors=True)
    for name, what in entries.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if what.link:
            path.symlink_to(what.link)
        else:
            path.write_bytes(what.data)
            path.chmod(0o755 if what.program else 0o644)
    for path in [root, *root.rglob("*")]:
        os.utime(path, (epoch, epoch), follow_symlinks=False)
        if path.is_dir() and not path.is_symlink():
            path.chmod(0o755)


def debian_package(shop: Workshop, target: Target, native: Path, output: Path, epoch: int) -> Path:
    """Writes a Debian package for Debian 10, Ubuntu 20.04 and later: what it needs is glibc 2.28."""
    version = version_of(shop.tree)
    entries = installed(shop, target, native, f"lib/{target.processor}-linux-gnu")
    root = shop.work / "packages" / f"debian-{target.debian}"
    size = sum(len(what.data) for what in entries.values()) // 1024 + 1
    control = (f"Package: ascend-fuse\nVersion: {version}\nArchitecture: {target.debian}\nSection: science\nPriority: optional\n"
               "Maintainer: the authors of ascend-fuse <ascend-fuse@example.org>\n"
               f"Installed-Size: {size}\nDepends: libc6 (>= 2.28)\nSuggests: python3\nDescription: {SUMMARY}\n "
               + DESCRIPTION.replace("\n", "\n ") + "\n")
    lay_out(root, {f"usr/{name}": what for name, what in entries.items()} | {"DEBIAN/control": entry(control)}, epoch)
    path = output / f"ascend-fuse_{version}_{target.debian}.deb"
    subprocess.run(["dpkg-deb", "--root-owner-group", "-Zxz", "--build", root, path], check=True, stdout=subprocess.DEVNULL,
                   env=dict(os.environ, SOURCE_DATE_EPOCH=str(epoch)))
    return path


SPEC = """Name: ascend-fuse
Version: {version}
Release: 1
Summary: {summary}
License: Apache-2.0
AutoReqProv: no
Requires: glibc >= 2.28
Provides: libascend_fuse.so.{short}()(64bit)

%description
{description}

%install
cp -a %{{_topdir}}/files/. %{{buildroot}}

%files
{files}
"""
# The same bytes each time: the times of the sources, no name of the machine; nothing of the host's tools works on the files.
MACROS = {"_buildhost": "localhost", "use_source_date_epoch_as_buildtime": "1", "clamp_mtime_to_source_date_epoch": "1",
          "__os_install_post": "%{nil}", "debug_package": "%{nil}", "_build_id_links": "none", "_binary_payload": "w9.gzdio",
          "_prefix": "/usr"}


def rpm_package(shop: Workshop, target: Target, native: Path, output: Path, epoch: int) -> Path:
    """Writes an RPM for openEuler 20.03 and later."""
    version = version_of(shop.tree)
    entries = {f"usr/{name}": what for name, what in installed(shop, target, native, "lib64").items()}
    work = shop.work / "packages" / f"rpm-{target.processor}"
    shutil.rmtree(work, ignore_errors=True)
    lay_out(work / "files", entries, epoch)
    for name in ("BUILD", "RPMS", "SOURCES", "SPECS"):
        (work / name).mkdir()
    spec = work / "SPECS" / "ascend-fuse.spec"
    spec.write_text(SPEC.format(version=version, short=".".join(version.split(".")[:2]), summary=SUMMARY, description=DESCRIPTION,
                                files="\n".join(f"%attr(-, root, root) /{name}" for name in sorted(entries))))
    defined = [word for name, value in MACROS.items() for word in ("--define", f"{name} {value}")]
    subprocess.run(["rpmbuild", "-bb", "--quiet", "--target", f"{target.processor}-linux", "--buildroot", work / "root",
                    "--define", f"_topdir {work}", *defined, spec], check=True, stdout=subprocess.DEVNULL,
                   env=dict(os.environ, SOURCE_DATE_EPOCH=str(epoch)))
    made = next((work / "RPMS").rglob("*.rpm"))
    return Path(shutil.copy(made, output / f"ascend-fuse-{version}-1.{target.processor}.rpm"))
