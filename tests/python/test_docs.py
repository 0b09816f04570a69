"""Every block of README.md and docs/ is run.

    ```console            lines after "$ " are commands, the rest is their output; "..." stands for anything,
                          also for whole lines
    ```rule mish.rule     written to that file, and loaded by `ascend-fuse rules --rules`; the name may be left out
    ```txtpb x.txtpb      written to that file
    ```onnxtxt x.onnxtxt  written to that file
    ```cpp                not run by itself: the build compiles the file that it names
    ```python             run by Python
    ```sh                 commands for a whole machine: the scripts they name must exist
    ```text               not run; written to the file that it names

A block whose name has a folder (tests/golden/x/y.rule) must be that file of the repository; it is written without the folder. One
whose name goes on with # (ir/infer/moves.cc#kOps) must stand in the file.
The blocks of one document run in order in one folder, which holds llama.onnx, an export of the zoo. Programs of the build and
of its tests are found by name.
"""

from __future__ import annotations

import importlib.machinery
import importlib.util
import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest
import results
from conftest import BUILD, ROOT

DOCUMENTS = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
KINDS = {"console", "rule", "txtpb", "onnxtxt", "python", "sh", "text", "cpp"}
BLOCK = re.compile(r"^```(\w*) *(\S*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\((?!https?:)([^)#]+)(?:#[^)]*)?\)")


@dataclass
class Block:
    kind: str
    name: str
    text: str
    line: int


def blocks_of(path: Path) -> list[Block]:
    text = path.read_text()
    return [Block(m[1], m[2], m[3], text[: m.start()].count("\n") + 1) for m in BLOCK.finditer(text)]


def pattern_of(expected: list[str]) -> str:
    """Returns a regular expression for an output in which "..." stands for anything."""
    parts = []
    for line in expected:
        if line.strip() == "...":
            parts.append(r"(?:.*\n)*?")
        else:
            parts.append(".*?".join(re.escape(piece) for piece in line.rstrip().split("...")) + r" *\n")
    return "".join(parts)


def run_console(block: Block, folder: Path, environment: dict[str, str]) -> None:
    steps: list[tuple[str, list[str]]] = []
    for line in block.text.splitlines():
        if line.startswith("$ "):
            steps.append((line[2:], []))
        else:
            assert steps, f"line {block.line}: output before the first command"
            steps[-1][1].append(line)
    for command, expected in steps:
        done = subprocess.run(["bash", "-c", command], cwd=folder, env=environment, text=True, timeout=120,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL)
        shown = done.stdout
        assert done.returncode == 0 or expected, f"line {block.line}: {command} ended with {done.returncode}: {shown}"
        assert re.fullmatch(pattern_of(expected), shown), f"line {block.line}: {command} printed\n{shown}"


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda p: str(p.relative_to(ROOT)))
def test_blocks(document: Path, zoo: Path, tmp_path: Path) -> None:
    shutil.copy(zoo / "llama-sdpa-past-ts17-dynamic.onnx", tmp_path / "llama.onnx")
    environment = dict(os.environ, LC_ALL="C")
    environment["PATH"] = f"{BUILD}:{BUILD / 'tests'}:{Path(sys.executable).parent}:{environment['PATH']}"
    for block in blocks_of(document):
        assert block.kind in KINDS, f"line {block.line}: a block of kind '{block.kind}'"
        if "#" in block.name:
            assert block.text in (ROOT / block.name.split("#")[0]).read_text(), f"line {block.line}: {block.name} has another text"
        elif "/" in block.name:
            assert (ROOT / block.name).read_text() == block.text, f"line {block.line}: {block.name} is not the same"
        if block.kind in ("rule", "txtpb", "onnxtxt") or (block.kind == "text" and block.name):
            path = tmp_path / (Path(block.name).name or f"line{block.line}.{block.kind}")
            path.write_text(block.text)
            if block.kind == "rule":
                done = subprocess.run([str(BUILD / "ascend-fuse"), "rules", "--rules", str(path)], capture_output=True,
                                      text=True)
                assert done.returncode == 0, f"line {block.line}: {done.stderr}"
        elif block.kind == "console":
            run_console(block, tmp_path, environment)
        elif block.kind == "python":
            done = subprocess.run([sys.executable, "-c", block.text], cwd=tmp_path, capture_output=True, text=True,
                                  timeout=120, env=dict(environment, PYTHONPATH=str(BUILD / "python")))
            assert done.returncode == 0, f"line {block.line}: {done.stderr}"
        elif block.kind == "sh":
            for script in re.findall(r"\./(\S+)|python3 (\S+\.py)", block.text):
                assert (ROOT / (script[0] or script[1])).is_file(), f"line {block.line}: there is no {script}"


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda p: str(p.relative_to(ROOT)))
def test_links(document: Path) -> None:
    for target in LINK.findall(BLOCK.sub("", document.read_text())):
        assert (document.parent / target).exists(), f"{document.name} links to {target}"


def test_every_document_is_in_the_index() -> None:
    index = LINK.findall((ROOT / "docs" / "README.md").read_text())
    missing = [path.name for path in (ROOT / "docs").glob("*.md") if path.name not in index and path.name != "README.md"]
    assert not missing, f"docs/README.md does not link to {missing}"


def test_citations_of_sources_lead_to_a_section() -> None:
    """A comment that cites a page, and 2.4 or W1 in it, finds a section or a row of that name there."""
    cited = re.compile(r"docs/sources/([\w-]+\.md),? (?:section )?(\d+(?:\.\d+)?|[A-Z]+\d+)\b")
    for top in ("ir", "patterns", "passes", "tools", "tests/unit", "tests/python", "docs"):
        for path in (ROOT / top).rglob("*"):
            if path.suffix not in (".cc", ".h", ".rule", ".txtpb", ".py", ".md"):
                continue
            for page, section in cited.findall(path.read_text()):
                text = (ROOT / "docs/sources" / page).read_text()
                assert re.search(rf"^#+ {re.escape(section)}\b|^\| {section}\b|\b{section} ", text, re.MULTILINE), f"{path}: {page} {section}"


@pytest.mark.parametrize(("flag", "document", "section"), [
    ("--functions", "rules.md", "Functions"),
    ("--passes", "passes.md", "The list"),
])
def test_a_table_is_the_one_that_the_program_prints(flag: str, document: str, section: str) -> None:
    """The section holds what `ascend-fuse rules` prints with the flag: paste it there after a change."""
    done = subprocess.run([str(BUILD / "ascend-fuse"), "rules", flag], capture_output=True, text=True, check=True)
    text = (ROOT / "docs" / document).read_text().split(f"\n## {section}\n")[1].split("\n## ")[0]
    assert [line for line in text.splitlines() if line.startswith("|")] == done.stdout.splitlines()


def test_the_table_of_kinds_and_chips_is_that_of_the_zoo() -> None:
    """The shares of docs/results.md, fused or by GE, for each chip."""
    table = results.kinds_by_chip()
    assert table in (ROOT / "README.md").read_text(), f"the table in README.md should be\n{table}"


def test_the_results_are_those_that_were_measured() -> None:
    assert results.PAGE.read_text() == results.page(), "python3 tools/zoo/results.py writes docs/results.md"
    assert {path.stem for path in results.FOLDER.iterdir()} == set(results.PARTS)


def test_the_picture_is_that_of_the_demo(zoo: Path) -> None:
    """scripts/picture draws it again."""
    loader = importlib.machinery.SourceFileLoader("picture", str(ROOT / "scripts" / "picture"))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("picture", loader))
    loader.exec_module(module)
    module.BUILD = BUILD
    assert module.picture(zoo / "llama-sdpa-past-ts17-dynamic.onnx") == (ROOT / "docs/pictures/decoder_layer.svg").read_text()
