#!/usr/bin/env python3
"""Rebuilds the full zoo models from what is committed under tests/zoo.

    python3 tools/zoo/fill.py [--out DIR] [IDS...]

writes DIR/<id>.onnx (default build/zoo) for every model of the manifest or for the given ids, and
skips what is up to date. An id may be a shell pattern such as 'llama-*-ts17-*'. `load_model` gives
one full model without writing a file. Only numpy and onnx are needed.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import fnmatch
import hashlib
import json
import lzma
import os
import sys
from pathlib import Path
from typing import Any

import onnx

sys.path.insert(0, str(Path(__file__).resolve().parent))
import manifest_file  # noqa: E402
import weights  # noqa: E402

REPOSITORY = Path(__file__).resolve().parents[2]
ZOO = REPOSITORY / "tests" / "zoo"
STAMPS = ".stamps.json"


def load_manifest() -> dict[str, Any]:
    """Returns the manifest: `models` is a list of entries, one per model."""
    return manifest_file.load()


def packed_path(model_id: str) -> Path:
    """Returns where the small form of a model is committed."""
    return ZOO / "models" / f"{model_id}.onnx.xz"


def load_model(model_id: str) -> onnx.ModelProto:
    """Returns the full model with its weights filled in."""
    return weights.restore(onnx.load_from_string(lzma.decompress(packed_path(model_id).read_bytes())))


def select(patterns: list[str]) -> list[str]:
    """Returns the ids of the manifest that match one of the shell patterns, or all without patterns."""
    ids = [entry["id"] for entry in load_manifest()["models"]]
    for pattern in patterns:
        if not fnmatch.filter(ids, pattern):
            raise SystemExit(f"fill.py: no model matches '{pattern}'")
    return [i for i in ids if not patterns or any(fnmatch.fnmatchcase(i, p) for p in patterns)]


def fill(out: Path, ids: list[str]) -> int:
    """Brings out/<id>.onnx up to date for every id and returns how many files were written."""
    out.mkdir(parents=True, exist_ok=True)
    stamps_file = out / STAMPS
    stamps: dict[str, str] = json.loads(stamps_file.read_text()) if stamps_file.exists() else {}
    wanted = {i: _stamp(i) for i in ids}
    stale = [i for i in ids if stamps.get(i) != wanted[i] or not (out / f"{i}.onnx").exists()]
    if not stale:
        return 0
    with concurrent.futures.ProcessPoolExecutor(min(os.cpu_count() or 1, len(stale))) as pool:
        list(pool.map(_write_model, stale, [out] * len(stale), chunksize=4))
    stamps.update({i: wanted[i] for i in stale})
    replace_file(stamps_file, json.dumps(stamps, indent=0, sort_keys=True).encode())
    return len(stale)


def _stamp(model_id: str) -> str:
    """Identifies what a filled file depends on: its small form and the code that fills it."""
    digest = hashlib.sha256(packed_path(model_id).read_bytes())
    digest.update(Path(weights.__file__).read_bytes())
    return digest.hexdigest()


def _write_model(model_id: str, out: Path) -> None:
    replace_file(out / f"{model_id}.onnx", load_model(model_id).SerializeToString())


def replace_file(path: Path, data: bytes) -> None:
    """Writes a file so that a concurrent reader sees either the old or the new contents."""
    temporary = path.with_name(f"{path.name}.{os.getpid()}.tmp")
    temporary.write_bytes(data)
    os.replace(temporary, path)


def main() -> int:
    parser = argparse.ArgumentParser(description="Rebuild the full zoo models from tests/zoo.")
    parser.add_argument("--out", type=Path, default=REPOSITORY / "build" / "zoo")
    parser.add_argument("ids", nargs="*", metavar="IDS", help="ids or shell patterns; default: all")
    arguments = parser.parse_args()
    ids = select(arguments.ids)
    written = fill(arguments.out, ids)
    print(f"{len(ids)} models in {arguments.out}, {written} written")
    return 0


if __name__ == "__main__":
    sys.exit(main())
