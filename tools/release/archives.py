"""Archives whose bytes depend on nothing but what is in them: sorted, of one time, of no owner."""

from __future__ import annotations

import base64
import dataclasses
import gzip
import hashlib
import io
import tarfile
import time
import zipfile
from pathlib import Path

Content = "bytes | str | Path"


@dataclasses.dataclass(frozen=True)
class Entry:
    """A file of an archive, or a link to another one."""

    data: bytes = b""
    program: bool = False
    link: str = ""


def entry(content: bytes | str | Path, program: bool = False) -> Entry:
    """Returns the entry of a text, of bytes or of a file."""
    if isinstance(content, Path):
        content = content.read_bytes()
    return Entry(content.encode() if isinstance(content, str) else content, program)


def write_tar(path: Path, root: str, entries: dict[str, Entry], epoch: int) -> Path:
    """Writes a .tar.gz with everything in the folder `root`."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for name, what in sorted(entries.items()):
            info = tarfile.TarInfo(f"{root}/{name}")
            info.mtime, info.mode = epoch, 0o755 if what.program else 0o644
            if what.link:
                info.type, info.linkname, info.mode = tarfile.SYMTYPE, what.link, 0o777
                tar.addfile(info)
            else:
                info.size = len(what.data)
                tar.addfile(info, io.BytesIO(what.data))
    with path.open("wb") as file, gzip.GzipFile("", "wb", 9, file, epoch) as zipped:
        zipped.write(packed.getvalue())
    return path


def write_wheel(path: Path, entries: dict[str, Entry], information: str, epoch: int) -> Path:
    """Writes a wheel; `information` is its folder of metadata, whose RECORD this adds."""
    lines = []
    moment = time.gmtime(max(epoch, 315532800))[:6]  # a zip knows no time before 1980
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as wheel:

        def add(name: str, what: Entry) -> None:
            info = zipfile.ZipInfo(name, moment)
            info.compress_type = zipfile.ZIP_DEFLATED
            info.create_system = 3
            info.external_attr = (0o100755 if what.program else 0o100644) << 16
            wheel.writestr(info, what.data)

        for name, what in sorted(entries.items(), key=lambda item: (item[0].startswith(information), item[0])):
            add(name, what)
            digest = base64.urlsafe_b64encode(hashlib.sha256(what.data).digest()).rstrip(b"=").decode()
            lines.append(f"{name},sha256={digest},{len(what.data)}\n")
        add(f"{information}/RECORD", entry("".join(lines) + f"{information}/RECORD,,\n"))
    return path
