"""The analysis of masks against ONNX Runtime on thousands of programs: every program of tests/python/mask_programs.py in
COUNT random spellings, as many with a quarter of their nodes replaced by others that compute the same
(tests/python/mask_rewrites.py), and as many with one thing changed.

    .venv/bin/python bench/masks.py [COUNT] [BUILD FOLDER]

prints each claim that is wrong, what was declined by program, and the share that was understood. Ends with 1 where a claim
is wrong."""

import sys
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests" / "python"))

import mask_oracle  # noqa: E402
import mask_programs  # noqa: E402


def main() -> int:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 50
    tool = mask_oracle.Tool(sys.argv[2] if len(sys.argv) > 2 else str(ROOT / "build"))
    found_of: Counter[str] = Counter()
    total = wrong = compared = 0
    declined: Counter[tuple[str, str, str]] = Counter()
    for name in mask_programs.PROGRAMS:
        for seed in range(count):
            total += 1
            for kind in ("spelling", "rewritten"):
                found, word, why = mask_oracle.check(tool, name, seed, rewrites=kind == "rewritten")
                found_of[kind] += found
                if not found:
                    declined[kind, name, word] += 1
                if why:
                    wrong += 1
                    print(f"WRONG {kind} {name} {seed}: {why}")
            why, could = mask_oracle.check_mutant(tool, name, seed)
            compared += could
            if why:
                wrong += 1
                print(f"WRONG changed {name} {seed}: {why}")
    tool.close()
    for (kind, name, word), times in declined.most_common():
        print(f"declined {kind} {name}: {times} times {word}")
    for kind, number in found_of.items():
        print(f"{kind}: {number} of {total} have the expected word ({100 * number / total:.1f} %)")
    print(f"{compared} of {total} changed programs were compared; {wrong} claims are wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
