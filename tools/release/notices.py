"""What is inside of a file that is given away: NOTICE with the licences in full, and the list for machines (CycloneDX)."""

from __future__ import annotations

import json
from pathlib import Path

from release.builds import Target, Workshop
from release.inputs import SOURCES, ZIG_VERSION

HEAD = """ascend-fuse
Licence: Apache 2.0 (LICENSE). This file has parts of the works below, each under its own licence.
proto/onnx.proto, from which messages are generated, is of the ONNX project, under Apache 2.0 as well.
"""


def notice(shop: Workshop, target: Target) -> str:
    """Returns the text of NOTICE for what is built for a target."""
    of_zig = shop.zig.parent / "lib"
    works = [(f"{source.folder} {source.version.partition('-')[0]}", shop.work / source.folder / source.licence) for source in SOURCES]
    works.append((f"libc++, libc++abi and libunwind of LLVM, as zig {ZIG_VERSION} has them", of_zig / "libcxx" / "LICENSE.TXT"))
    if target.static:
        works.append((f"musl, as zig {ZIG_VERSION} has it", of_zig / "libc" / "musl" / "COPYRIGHT"))
    texts = [HEAD]
    for title, path in works:
        texts.append(f"\n{'=' * 80}\n{title}\n{'=' * 80}\n\n{path.read_text(encoding='utf-8', errors='replace').strip()}\n")
    return "".join(texts)


def components(shop: Workshop, target: Target) -> str:
    """Returns the list of what is inside: that of CMake, and what the compiler brought."""
    made = json.loads((shop.folder(target) / "sbom" / "ascend-fuse.cdx.json").read_text())
    names = [("libcxx", "Apache-2.0 WITH LLVM-exception")] + ([("musl", "MIT")] if target.static else [])
    for name, licence in names:
        made["components"].append({"type": "library", "bom-ref": name, "name": name, "version": f"zig-{ZIG_VERSION}",
                                   "purl": f"pkg:pypi/ziglang@{ZIG_VERSION}", "licenses": [{"expression": licence}]})
    return json.dumps(made, indent=2) + "\n"


def documents(shop: Workshop, target: Target) -> dict[str, Path | str]:
    """Returns what stands beside every program: licences, notices, the list, and what changed."""
    return {"LICENSE": shop.tree / "LICENSE", "NOTICE": notice(shop, target), "ascend-fuse.cdx.json": components(shop, target),
            "README.md": shop.tree / "README.md", "CHANGELOG.md": shop.tree / "CHANGELOG.md"}
