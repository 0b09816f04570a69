#!/usr/bin/env python3
"""Computes `expected` of every model in the manifest anew, from its configuration.

    python3 tools/zoo/expected.py     after a change of what is counted; exports nothing

Needs what exporting needs, since configurations are objects of transformers.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
import architectures  # noqa: E402
import more_architectures  # noqa: E402
import manifest_file  # noqa: E402
from fill import ZOO, load_manifest  # noqa: E402


def main() -> int:
    manifest = load_manifest()
    known = {**more_architectures.ARCHITECTURES, **architectures.ARCHITECTURES}
    changed = 0
    for entry in manifest["models"]:
        if entry["part"] == 3:  # of other frameworks: their exporters say it (frameworks/)
            continue
        architecture = known[entry["architecture"]]
        expected = architecture.expected(architecture.make(entry["attention"]))
        changed += entry["expected"] != expected
        entry["expected"] = expected
    (ZOO / "manifest.json").write_text(manifest_file.render(manifest))
    print(f"{changed} of {len(manifest['models'])} entries changed")
    return 0


if __name__ == "__main__":
    sys.exit(main())
