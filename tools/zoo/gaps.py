#!/usr/bin/env python3
"""Records where the tool finds other counts in the second part of the zoo than the configurations say.

    python3 tools/zoo/gaps.py            rewrites `gaps` of tests/zoo/gaps.json
    python3 tools/zoo/gaps.py --check    only tells whether it is up to date

`failures` of that file is written by hand: a test, a model and a target on which the tool is known to
be wrong, and why. ASCEND_FUSE_BUILD names the build folder; it is build/ if that is not set.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))
import fill  # noqa: E402

BUILD = Path(os.environ.get("ASCEND_FUSE_BUILD", fill.REPOSITORY / "build"))
FILE = fill.ZOO / "gaps.json"


def load() -> dict[str, Any]:
    """Returns the recorded gaps and known failures."""
    return json.loads(FILE.read_text()) if FILE.exists() else {"gaps": [], "failures": []}


def gaps_of(entry: dict[str, Any]) -> list[dict[str, Any]]:
    """Returns every kind whose number of sites differs from the expected one."""
    command = [str(BUILD / "ascend-fuse"), "list", str(BUILD / "zoo" / f"{entry['id']}.onnx"), "--json", "-"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    if done.returncode != 0:
        raise SystemExit(f"gaps.py: list of {entry['id']} ends with {done.returncode}: {done.stderr.strip()}")
    sites = json.loads(done.stdout)["summary"]["sites"]
    return [
        {"id": entry["id"], "kind": kind, "found": sites[kind]["found"], "expected": number}
        for kind, number in entry["expected"].items()
        if sites[kind]["found"] != number
    ]


def main() -> int:
    entries = [e for e in fill.load_manifest()["models"] if e["part"] == 2]
    fill.fill(BUILD / "zoo", [e["id"] for e in entries])
    known = load()
    found = [gap for entry in entries for gap in gaps_of(entry)]
    if "--check" in sys.argv[1:]:
        return 0 if found == known["gaps"] else 1
    lists = {"gaps": found, "failures": known["failures"]}
    rows = {key: ",\n".join(f"  {json.dumps(row)}" for row in value) for key, value in lists.items()}
    text = ",\n".join(f' "{key}": [' + (f"\n{value}\n ]" if value else "]") for key, value in rows.items())
    FILE.write_text("{\n" + text + "\n}\n")
    print(f"{len(entries)} models, {len(found)} gaps in {len({gap['id'] for gap in found})} models")
    return 0


if __name__ == "__main__":
    sys.exit(main())
