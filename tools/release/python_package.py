"""The wheel of an architecture and the source distribution."""

from __future__ import annotations

import re
import subprocess
import tomllib
from pathlib import Path
from typing import Any

from release.archives import Entry, entry, write_tar, write_wheel
from release.builds import Target, Workshop
from release.notices import documents

NOT_IN_SDIST = ("tests/", "bench/", ".ci/", "docs/pictures/")


def version_of(tree: Path) -> str:
    """Returns the version, which CMakeLists.txt has."""
    found = re.search(r"project\(ascend_fuse VERSION ([0-9.]+)", (tree / "CMakeLists.txt").read_text())
    assert found
    return found[1]


def metadata(tree: Path) -> str:
    """Returns the core metadata of pyproject.toml."""
    project: dict[str, Any] = tomllib.loads((tree / "pyproject.toml").read_text())["project"]
    lines = ["Metadata-Version: 2.1", f"Name: {project['name']}", f"Version: {version_of(tree)}", f"Summary: {project['description']}",
             f"License: {project['license']}", f"Requires-Python: {project['requires-python']}"]
    for extra, packages in project["optional-dependencies"].items():
        lines.append(f"Provides-Extra: {extra}")
        lines += [f"Requires-Dist: {package}; extra == '{extra}'" for package in packages]
    lines += ["Description-Content-Type: text/markdown", "", (tree / project["readme"]).read_text()]
    return "\n".join(lines)


def package_files(tree: Path) -> dict[str, Entry]:
    """Returns the files of the package itself."""
    folder = tree / "tools" / "python" / "ascend_fuse"
    return {path.name: entry(path) for path in sorted([*folder.glob("*.py"), folder / "py.typed"])}


def wheel(shop: Workshop, target: Target, output: Path, epoch: int) -> Path:
    """Writes the wheel for every Python from 3.8 on."""
    version, folder = version_of(shop.tree), shop.folder(target)
    glibc = target.library.removeprefix("gnu.").replace(".", "_")
    tag = f"py3-none-manylinux_{glibc}_{target.processor}"
    information, data = f"ascend_fuse-{version}.dist-info", f"ascend_fuse-{version}.data"
    beside = documents(shop, target)
    entries = {f"ascend_fuse/{name}": what for name, what in package_files(shop.tree).items()}
    entries |= {
        "ascend_fuse/libascend_fuse.so": entry((folder / "libascend_fuse.so").resolve(), program=True),
        f"{data}/scripts/ascend-fuse": entry(folder / "ascend-fuse", program=True),
        f"{information}/METADATA": entry(metadata(shop.tree)),
        f"{information}/WHEEL": entry(f"Wheel-Version: 1.0\nGenerator: ascend-fuse {version}\nRoot-Is-Purelib: false\nTag: {tag}\n"),
        f"{information}/licenses/LICENSE": entry(beside["LICENSE"]),
        f"{information}/licenses/NOTICE": entry(beside["NOTICE"]),
        f"{information}/sboms/ascend-fuse.cdx.json": entry(beside["ascend-fuse.cdx.json"]),
    }
    return write_wheel(output / f"ascend_fuse-{version}-{tag}.whl", entries, information, epoch)


def source_distribution(tree: Path, commit: str, output: Path, epoch: int) -> Path:
    """Writes the sources of the commit, without tests."""
    version = version_of(tree)
    listed = subprocess.run(["git", "ls-tree", "-r", "-z", "--name-only", commit], capture_output=True, text=True, check=True).stdout
    names = [name for name in listed.split("\0") if name and not name.startswith(NOT_IN_SDIST)]
    entries = {name: entry(tree / name, program=bool((tree / name).stat().st_mode & 0o100)) for name in names}
    entries["PKG-INFO"] = entry(metadata(tree))
    return write_tar(output / f"ascend_fuse-{version}.tar.gz", f"ascend_fuse-{version}", entries, epoch)
