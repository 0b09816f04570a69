"""docs/command-line.md is what the commands say of themselves with --help.

    python3 tests/python/test_command_page.py     writes it again, after a change of a command or a flag
"""

from __future__ import annotations

import re

from conftest import ROOT, run_ok

PAGE = ROOT / "docs" / "command-line.md"
HEAD = """# The command line

All commands and their flags, as `--help` prints them. `ascend-fuse man` writes the same as a man page, `ascend-fuse completion bash` (zsh, fish) the
completion for a shell. This page is written by `tests/python/test_command_page.py`.

`ascend-fuse --version` names the version, the commit of a release and the build. `--config FILE` and variables of the environment:
[every day](daily.md#options-in-a-file).

| exit code | meaning | what to do |
|---|---|---|
"""


def sections(text: str) -> dict[str, list[tuple[str, str]]]:
    """The rows of each section of a help text: name and description. Long names have their description in the next line."""
    rows: dict[str, list[tuple[str, str]]] = {}
    current: list[tuple[str, str]] = []
    for line in text.splitlines():
        if re.fullmatch(r"[A-Z]\w+:", line):
            current = rows.setdefault(line[:-1], [])
        elif row := re.fullmatch(r"  (\S.*?)(?:  +(\S.*))?", line):
            name, separator, rest = row[1].partition(" REQUIRED ")  # a long name has one blank after it
            current.append((f"{name} REQUIRED", rest) if separator else (row[1], row[2] or ""))
        elif line.startswith("   ") and current:
            name, description = current[-1]
            current[-1] = (name, f"{description} {line.strip()}".strip())
    return rows


def cell(text: str) -> str:
    return text.replace("|", "\\|")


def part(*command: str) -> str:
    text = run_ok(*command, "--help").out
    description = text.split("\nUsage:")[0].strip()
    rows = sections(text)
    lines = [f"## {' '.join(('ascend-fuse', *command))}", "", f"{description[:1].upper()}{description[1:]}.", ""]
    arguments = rows.get("Positionals", []) + [row for row in rows.get("Options", []) if not row[0].startswith("-h,")]
    if arguments:
        lines += ["| argument | |", "|---|---|", *(f"| `{cell(name)}` | {cell(what)} |" for name, what in arguments), ""]
    return "\n".join(lines) + "\n" + "".join(part(*command, name) for name, _ in rows.get("Subcommands", []))


def exit_codes() -> str:
    rows = re.findall(r"^(\d)  (.*)\n   (.*)$", run_ok("--explain-exit").out, re.MULTILINE)
    return "".join(f"| {code} | {cell(meaning)} | {cell(what)} |\n" for code, meaning, what in rows)


def page() -> str:
    rows = sections(run_ok("--help").out)
    commands = [name for name, _ in rows["Subcommands"]]
    return HEAD + exit_codes() + "\n" + "".join(part(name) for name in commands).rstrip() + "\n"


def test_the_page_is_what_the_commands_say() -> None:
    assert PAGE.read_text() == page(), "python3 tests/python/test_command_page.py writes it again"


if __name__ == "__main__":
    PAGE.write_text(page())
