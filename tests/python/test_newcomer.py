"""The steps of docs/newcomer.md that change the repository: taken on a copy of the files that they name, which is then compiled."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
from pathlib import Path

from conftest import BUILD, ROOT
from test_layering import INSIDE

PASS = ROOT / "tests" / "example_pass" / "layout_room" / "merge_transposes.cc"


def steps() -> list[str]:
    """The blocks of text of the section, in their order."""
    section = (ROOT / "docs" / "newcomer.md").read_text().split("## A pass in the layout room")[1]
    return re.findall(r"^```text\n(.*?)^```$", section, re.MULTILINE | re.DOTALL)


def compiler() -> list[str]:
    """How the build compiles the passes, without the file and what is written."""
    commands = json.loads((BUILD / "compile_commands.json").read_text())
    command = next(c for c in commands if "af_passes.dir" in c["command"] and c["file"].endswith(".cc"))
    words = shlex.split(command["command"])
    words = words[words.index(next(w for w in words if "ccache" not in w)) : words.index("-c")]
    while "-o" in words:
        del words[words.index("-o") : words.index("-o") + 2]
    return words


def after(path: Path, line: str, text: str) -> str:
    """The file with `text` after the statement that `line` ends."""
    before, found, rest = path.read_text().partition(line)
    assert found, f"{path}: there is no {line!r}"
    return before + found + "\n" + text.rstrip("\n") + rest


def test_a_pass_in_the_layout_room(tmp_path: Path) -> None:
    declaration, entry, row = steps()
    changed = {
        "passes/layout/merge_transposes.cc": PASS.read_text(),
        "passes/layout/passes.h": after(ROOT / "passes/layout/passes.h", "absl::Status ChooseOrders(Workspace& workspace);", declaration),
        "passes/optimize_passes.cc": after(ROOT / "passes/optimize_passes.cc", "ChooseOrders}),", entry),
    }
    for name, text in changed.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    flags = [f"-I{tmp_path}", "-fsyntax-only"]
    for name in changed:
        if name.endswith(".cc"):
            command = compiler()
            done = subprocess.run([command[0], *flags, *command[1:], str(tmp_path / name)], cwd=BUILD, capture_output=True, text=True)
            assert done.returncode == 0, f"{name}: {done.stderr}"
    assert [cell.strip() for cell in row.split("|")[2:4]] == re.findall(r'"([^"]*)"', entry)[1:], "the row is not that of the list"


def test_the_pass_includes_what_its_room_may() -> None:
    folders = {path.rsplit("/", 1)[0] for path in re.findall(r'#include "(passes/[^"]+)"', PASS.read_text())}
    assert folders <= INSIDE["passes"]["passes/layout"] | {"passes/layout"}
    page = (ROOT / "docs" / "passes.md").read_text()
    assert "| `layout` |" in page and "| `choose_orders` |" in page
    assert "| `merge_transposes` |" not in page, "it is ours now: docs/newcomer.md needs another example"
