"""What Debian's mirrors have, fetched by apt-get with lists of its own: sources, and roots of another processor or of an older glibc."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}
# The oldest release that mirrors still have: glibc 2.31, Python 3.9.
OLDEST = "bullseye"
# The one with the newest Python: 3.14.
NEWEST = "testing"


def mirror() -> str:
    """Returns the mirror that this machine has its packages from."""
    places = [Path("/etc/apt/sources.list"), *sorted(Path("/etc/apt/sources.list.d").glob("*"))]
    words = " ".join(path.read_text() for path in places if path.is_file()).split()
    return next((word for word in words if word.startswith(("http://", "https://")) and word.rstrip("/").endswith("/debian")),
                "http://deb.debian.org/debian")


def apt_environment(folder: Path, lines: list[str], architecture: str = "") -> dict[str, str]:
    """Returns the environment in which apt-get knows these sources only, has its lists in `folder`, and they are fresh."""
    for part in ("lists/partial", "cache/archives/partial"):
        (folder / part).mkdir(parents=True, exist_ok=True)
    (folder / "sources.list").write_text("".join(f"{line}\n" for line in lines))
    text = (f'Dir::State::lists "{folder}/lists";\nDir::Cache "{folder}/cache";\nDir::Etc::sourcelist "{folder}/sources.list";\n'
            'Dir::Etc::sourceparts "-";\nAPT::Sandbox::User "root";\n')
    if architecture:  # of a machine that has nothing yet
        (folder / "status").touch()
        text += (f'APT::Architecture "{architecture}";\nAPT::Architectures {{ "{architecture}"; }};\nDir::State::status "{folder}/status";\n'
                 'APT::Install-Recommends "false";\n')
    (folder / "apt.conf").write_text(text)
    environment = dict(os.environ, APT_CONFIG=str(folder / "apt.conf"))
    run("apt-get", "-q", "update", environment=environment)
    return environment


def root(folder: Path, processor: str, packages: list[str], release: str = OLDEST) -> Path:
    """Returns a folder with the packages of a release and all that they need, unpacked and not configured: qemu-user runs programs in it (-L)."""
    made, finished = folder / "root", folder / "finished"
    if not finished.is_file() or finished.read_text().split() != packages:
        architecture = ARCHITECTURES[processor]
        environment = apt_environment(folder, [f"deb [arch={architecture}] {mirror()} {release} main"], architecture)
        run("apt-get", "-q", "-y", "--download-only", "install", *packages, environment=environment)
        shutil.rmtree(made, ignore_errors=True)
        for package in sorted((folder / "cache" / "archives").glob("*.deb")):
            run("dpkg-deb", "-x", package, made)
        for name in ("bin", "sbin", "lib", "lib64"):  # below /usr as on newer systems, or qemu-user finds libraries of this machine first
            if (made / name).is_dir() and not (made / name).is_symlink():
                shutil.copytree(made / name, made / "usr" / name, symlinks=True, dirs_exist_ok=True)
                shutil.rmtree(made / name)
            if not (made / name).exists():  # in newer releases another package brings the links
                (made / name).symlink_to(f"usr/{name}")
        for link in [path for path in made.rglob("*") if path.is_symlink() and os.readlink(path).startswith("/")]:
            there = os.path.relpath(made / os.readlink(link)[1:], link.parent)  # inside of the root, not in that of this machine
            link.unlink()
            link.symlink_to(there)
        finished.write_text(" ".join(packages))
    return made


def run(*words: object, cwd: Path | None = None, environment: dict[str, str] | None = None) -> None:
    """Runs a command, whose output goes to stderr."""
    subprocess.run([*map(str, words)], cwd=cwd, env=environment, check=True, stdout=sys.stderr)
