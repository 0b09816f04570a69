"""The analysis of masks against ONNX Runtime on thousands of programs: every program of tests/python/mask_programs.py in
COUNT random spellings, and as many with one thing changed.

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
    understood = total = wrong = compared = mutants = 0
    declined: Counter[tuple[str, str]] = Counter()
    for name in mask_programs.PROGRAMS:
        for seed in range(count):
            found, word, why = mask_oracle.check(tool, name, seed)
            total += 1
            understood += found
            if not found:
                declined[name, word] += 1
            changed, could = mask_oracle.check_mutant(tool, name, seed)
            mutants += 1
            compared += could
            for kind, sentence in (("spelling", why), ("changed", changed)):
                if sentence:
                    wrong += 1
                    print(f"WRONG {kind} {name} {seed}: {sentence}")
    tool.close()
    for (name, word), times in declined.most_common():
        print(f"declined {name}: {times} times {word}")
    print(f"{understood} of {total} spellings have the expected word ({100 * understood / total:.1f} %)")
    print(f"{compared} of {mutants} changed programs were compared; {wrong} claims are wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
