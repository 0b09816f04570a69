#!/usr/bin/env python3
"""Writes docs/results.md: a summary of what was measured on the zoo, then the parts that the measuring scripts wrote.

    python3 tools/zoo/results.py

A part is a file of tests/zoo/results. Each script that measures writes its own and then this page; PARTS names the scripts.
Tables with many rows are folded.
"""

from __future__ import annotations

import contextlib
import io
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "tests" / "zoo" / "results"
PAGE = ROOT / "docs" / "results.md"
# The parts in the order of the page, and what writes each.
PARTS = {
    "accuracy": "scripts/accuracy",
    "last-mile": "scripts/last-mile",
    "attention": "tools/zoo/attention_table.py",
    "layouts": "tools/zoo/transposes.py",
    "prefill": "tools/zoo/prefill.py",
    "static-prefill": "tools/zoo/static_prefill.py",
    "tidied": "tools/zoo/tidied.py",
}
MOST_ROWS = 15  # of a table that is not folded
CHIPS = {"ascend310p": "310P", "ascend910b": "910B (A2)", "ascend910_93": "A3", "ascend950": "950"}
SITES = "Sites, fused / by GE / left"
HEAD = """# Results on the zoo

What was measured on the exports of the [zoo](../tests/zoo/README.md), in ONNX Runtime and with the data of `patterns/targets`. No device
took part: [status](status.md) says what that proves. `tools/zoo/results.py` writes this page from `tests/zoo/results`; a test compares them.

"""
KINDS = """
Shares of the sites that become one node or that GE fuses by itself, with stock ATC; in parentheses with the [op plugin](plugin.md), where that
differs. Ascend 950 is CANN 2026.07, the others CANN 8.1.

"""


def part(name: str) -> str:
    return (FOLDER / f"{name}.md").read_text()


def rows_of(name: str, heading: str) -> list[list[str]]:
    """The cells of the first table after a heading, its head first."""
    text = part(name).split(f"# {heading}\n", 1)[1]
    lines = re.search(r"(?:^\|.*\n)+", text, re.MULTILINE)
    assert lines, f"{name}.md has no table after {heading}"
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[0].splitlines()]
    return [cells[0], *cells[2:]]


def kinds_by_chip() -> str:
    """The shares of each kind and chip, as README.md and the summary have them."""
    columns, *rows = rows_of("accuracy", SITES)

    def share(counts: str) -> str:
        fused, by_ge, left = map(int, counts.split("/"))
        return f"{100 * (fused + by_ge) // (fused + by_ge + left)} %"

    lines = ["| kind | " + " | ".join(CHIPS.values()) + " |", "|---|" + "---:|" * len(CHIPS)]
    for row in rows:
        cells = []
        for chip in CHIPS:
            stock, plugin = (share(row[columns.index(name)]) for name in (chip, f"{chip}-plugin"))
            cells.append(stock if stock == plugin else f"{stock} ({plugin})")
        lines.append(f"| `{row[0]}` | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def span(numbers: list[int]) -> str:
    least, most = min(numbers), max(numbers)
    return f"{least:,}" if least == most else f"{least:,} to {most:,}"


def summary() -> str:
    """The table that is read first: the question, the exports as they are, the optimized ones."""
    _, *models = rows_of("accuracy", "Models")
    worst = {dtype: max(float(row[3]) for row in models if row[1] == dtype) for dtype in ("float32", "float16")}
    _, *checked = rows_of("last-mile", "What `check` finds")
    exports = sum(map(int, checked[0][2:6]))
    _, *ran = rows_of("last-mile", "What comes out")
    some = sum(map(int, ran[0][2:5]))
    attention = {row[0]: row[1:] for row in rows_of("attention", "Attentions")}
    fused = " / ".join(attention["fused"])
    columns, *rows = rows_of("attention", "Architectures")
    total = {name: sum(int(row[columns.index(name)]) for row in rows) for name in ("nodes before", "after")}
    moved = rows_of("layouts", "Transposes around attention")[1:]
    share = {row[0]: row[1] for row in rows_of("static-prefill", "Attention in a prefill with static dims")}
    lines = [
        ("largest error of an output, float32 / float16", "", f"{worst['float32']:.1e} / {worst['float16']:.1e}"),
        (f"ATC rejects or misreads, of {exports} exports, by chip and release", span([int(r[2]) + int(r[3]) for r in checked]),
         span([int(r[6]) + int(r[7]) for r in checked])),
        (f"the outputs are equal as ATC reads the file, of {some} that were run", span([int(r[2]) for r in ran]),
         span([int(r[5]) for r in ran])),
        ("nodes of all exports with an attention, 910B", f"{total['nodes before']:,}", f"{total['after']:,}"),
        ("attentions, and those fused with stock ATC: 910B / 310P / 310P in a prefill with `--dim`",
         " / ".join(attention["found"]), fused),
        ("attentions of prefills with static dims, 310P", share["found"], share["fused"]),
        ("Transposes around fused attentions, 910B", f"{sum(int(r[-2]) for r in moved):,}", f"{sum(int(r[-1]) for r in moved):,}"),
    ]
    table = ["| on the zoo | as exported | after `optimize` |", "|---|---:|---:|", *(f"| {' | '.join(line)} |" for line in lines)]
    return "\n".join(table) + "\n" + KINDS + kinds_by_chip() + "\n"


def folded(text: str) -> str:
    """Tables of more than MOST_ROWS rows are folded."""

    def fold(match: re.Match[str]) -> str:
        count = match[0].count("\n") - 2
        return match[0] if count <= MOST_ROWS else f"<details><summary>{count} rows</summary>\n\n{match[0]}\n</details>\n"

    return re.sub(r"(?:^\|.*\n)+", fold, text, flags=re.MULTILINE)


def page() -> str:
    parts = [part(name).rstrip("\n") + f"\n\nWritten by `{script}`.\n" for name, script in PARTS.items()]
    return "\n".join([HEAD + summary(), *map(folded, parts)])


def write() -> None:
    PAGE.write_text(page())


def put(name: str, text: str) -> None:
    """Writes a part and the page."""
    (FOLDER / f"{name}.md").write_text(text)
    write()
    print(f"tests/zoo/results/{name}.md and docs/results.md are written")


@contextlib.contextmanager
def printed(name: str, whole: bool) -> Iterator[None]:
    """What is printed inside becomes the part; where only some models were measured, it goes to the terminal."""
    if not whole:
        yield
        return
    with contextlib.redirect_stdout(io.StringIO()) as text:
        yield
    put(name, text.getvalue())


if __name__ == "__main__":
    write()
