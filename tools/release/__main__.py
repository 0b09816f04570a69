"""Makes the files of a release:  scripts/release [--only TRIPLE ...] [--output FOLDER]

Sources are those of the commit that is checked out, never those of the work tree. Each file is the same bit by bit when it is
made again, on another machine and in another folder, too. With some of the targets only, the files that these give are made.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

from release import packages, python_package
from release.builds import TARGETS, Workshop, build
from release.inputs import InputError, fetch, install_zig

ROOT = Path(__file__).resolve().parents[2]


def said(text: str) -> None:
    """Says what is going on, on stderr."""
    print(text, file=sys.stderr, flush=True)


def of_git(*words: str) -> str:
    """Returns what git prints."""
    return subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip()


def checked_out(work: Path, commit: str) -> Path:
    """Returns a folder with the sources of the commit; files that are the same keep their times, so that little is built again."""
    tree, fresh = work / "tree", work / "tree.new"
    shutil.rmtree(fresh, ignore_errors=True)
    fresh.mkdir(parents=True)
    archive = subprocess.run(["git", "archive", commit], cwd=ROOT, capture_output=True, check=True).stdout
    subprocess.run(["tar", "-x", "-C", fresh], input=archive, check=True)
    for path in [path for path in fresh.rglob("*") if path.is_file()]:
        old = tree / path.relative_to(fresh)
        if old.is_file() and old.read_bytes() == path.read_bytes():
            status = old.stat()
            os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    shutil.rmtree(tree, ignore_errors=True)
    fresh.rename(tree)
    return tree


def main() -> None:
    """Builds, packs, and writes checksums."""
    parser = argparse.ArgumentParser(prog="scripts/release", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", choices=[target.triple for target in TARGETS], metavar="TRIPLE",
                        help=" ".join(target.triple for target in TARGETS))
    parser.add_argument("--output", type=Path, default=ROOT / "build" / "release" / "files")
    parser.add_argument("--work", type=Path, default=ROOT / "build" / "release", help="where sources and builds are kept")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    arguments = parser.parse_args()
    os.chdir(ROOT)
    work, output = arguments.work.resolve(), arguments.output.resolve()
    work.mkdir(parents=True, exist_ok=True)
    commit = of_git("rev-parse", "HEAD")
    epoch = int(of_git("log", "-1", "--format=%ct", commit))
    os.environ["SOURCE_DATE_EPOCH"] = str(epoch)
    start = time.monotonic()
    try:
        fetch(work)
        shop = Workshop(work, checked_out(work, commit), commit, install_zig(work), arguments.jobs)
    except InputError as error:
        sys.exit(f"scripts/release: {error}")
    # The processor of this machine first: its program writes man pages, its rule_compiler compiles the rules of all.
    wanted = [target for target in TARGETS if arguments.only is None or target.triple in arguments.only]
    native = next(target for target in TARGETS if target.processor == os.uname().machine and not target.static)
    if native not in wanted:
        build(shop, native, None)
    shutil.rmtree(output, ignore_errors=True)
    output.mkdir(parents=True)
    for target in sorted(wanted, key=lambda target: target != native):
        said(f"{target.triple}: {time.monotonic() - start:.0f} s")
        build(shop, target, None if target == native else shop.folder(native) / "rule_compiler")
        program = shop.folder(native) / "ascend-fuse"
        if target.static:
            packages.static_program(shop, target, program, output, epoch)
            continue
        python_package.wheel(shop, target, output, epoch)
        packages.library(shop, target, output, epoch)
        packages.debian_package(shop, target, program, output, epoch)
        packages.rpm_package(shop, target, program, output, epoch)
    python_package.source_distribution(shop.tree, commit, output, epoch)
    sums = "".join(f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n" for path in sorted(output.iterdir()))
    (output / "SHA256SUMS").write_text(sums)
    for path in sorted(output.iterdir()):
        print(f"{path.stat().st_size:>10} {path.name}")
    said(f"{output}: {time.monotonic() - start:.0f} s")


if __name__ == "__main__":
    main()
