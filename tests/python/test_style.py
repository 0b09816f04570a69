"""The words of documents, messages, comments and data are those of docs/style.md, spelled right; C++ is formatted by clang-format."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
HERE = Path(__file__).resolve().parent
EXCEPTIONS = [line for line in (HERE / "style_exceptions.txt").read_text().splitlines() if line and not line.startswith("#")]
LITERAL = re.compile(r'"((?:\\.|[^"\\\n])*)"')
FENCED = re.compile(r"^```.*?^```$|`[^`\n]+`", re.MULTILINE | re.DOTALL)


def word_list() -> dict[str, re.Pattern[str]]:
    """The left column of the first table of docs/style.md; X stands for a word."""
    rows = re.findall(r"^\| ([^|]+?) \| [^|]+ \|[^|]*\|$", (ROOT / "docs/style.md").read_text(), re.MULTILINE)
    words = [row for row in rows if row not in ("instead of", "word", "rejects", "misreads", "supports")]
    patterns = {}
    for word in words[: words.index("hitherto") + 1]:
        # "there is no such file" is plain, and so is "is no longer".
        text = re.escape(word).replace(r"\ ", r"\s+")
        if word.endswith(" X"):
            text = rf"(?<!there )(?<!There )(?<!there){text[:-1]}(?!(?:more|longer|less|faster|slower|better|other|need|reason|such)\b)[a-zA-Z]"
        patterns[word] = re.compile(rf"(?<![-_`\w]){text}(?![-_])" if word[0].isalpha() else text)
    return patterns


def documents() -> list[Path]:
    found = [ROOT / "README.md", ROOT / "CHANGELOG.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md")),
             *sorted((ROOT / "plugin").glob("*.md"))]
    return [path for path in found if path != ROOT / "docs/style.md"]


def sources() -> list[Path]:
    folders = ("ir", "patterns", "passes", "tools", "plugin")
    kinds = (".cc", ".h", ".txtpb", ".rule")
    python = sorted((ROOT / "tools/python/ascend_fuse").glob("*.py"))
    return [p for folder in folders for p in sorted((ROOT / folder).rglob("*")) if p.suffix in kinds] + python


def words_of(path: Path) -> list[tuple[int, str]]:
    """Lines of a document without code, or the string literals of a source, with their line."""
    text = path.read_text()
    if path.suffix == ".md":
        text = FENCED.sub(lambda m: re.sub(r"[^\n]", " ", m[0]), text)
        return list(enumerate(text.splitlines(), 1))
    return [(number, m[1]) for number, line in enumerate(text.splitlines(), 1) for m in LITERAL.finditer(line)]


def commented() -> list[Path]:
    """Files whose comments are read, those of tests and tools too."""
    folders = ("ir", "proto", "patterns", "passes", "tools", "plugin", "tests", "bench", "examples", "scripts")
    kinds = (".cc", ".h", ".py", ".rule", ".txtpb", ".proto", "")
    listed = subprocess.run(["git", "ls-files", "--cached", "--others", "--exclude-standard", *folders], cwd=ROOT,
                            capture_output=True, text=True, check=True).stdout.splitlines()
    return [path for path in map(ROOT.joinpath, listed) if path.suffix in kinds and path.is_file() and "tests/golden" not in str(path)
            and path != HERE / "style_exceptions.txt"]


def comments_of(path: Path) -> list[tuple[int, str]]:
    mark = re.compile(r"//.*" if path.suffix in (".cc", ".h", ".proto") else r"(?:^|\s)#.*")
    return [(number, m[0]) for number, line in enumerate(path.read_text().splitlines(), 1) if (m := mark.search(line))]


def assert_words(patterns: dict[str, re.Pattern[str]], texts: Iterable[tuple[Path, list[tuple[int, str]]]]) -> None:
    found = []
    for path, lines in texts:
        for line, text in lines:
            for word, pattern in patterns.items():
                for match in pattern.finditer(text):
                    around = text[max(0, match.start() - 30): match.end() + 30]
                    if not any(exception in around for exception in EXCEPTIONS):
                        found.append(f"{path.relative_to(ROOT)}:{line}: '{word}' in: {around.strip()}")
    assert not found, "docs/style.md says what to write instead:\n" + "\n".join(found)


def test_words_of_comments() -> None:
    # "where there is none" needs no other word where it ends a sentence.
    patterns = word_list() | {"is none": re.compile(r"(?<!there )(?<!There )\bis none\b")}
    assert_words(patterns, ((path, comments_of(path)) for path in commented()))


def test_words() -> None:
    patterns = word_list()
    assert len(patterns) > 10
    assert_words(patterns, ((path, words_of(path)) for path in documents() + sources()))


@pytest.mark.parametrize(("text", "word"), [
    ("a Cast behind the indices", "behind"), ("x is no scalar", "is no X"), ("the parts are no halves", "are no X"),
    ("left for want of a node", "for want of")])
def test_a_word_of_the_list_is_found(text: str, word: str) -> None:
    assert word_list()[word].search(text)


@pytest.mark.parametrize("text", ["there is no such file", "scale-behind-mask", "it is no longer read", "masked_behind_cap (q)"])
def test_other_words_are_not(text: str) -> None:
    assert not any(pattern.search(text) for pattern in word_list().values())


def test_spelling() -> None:
    """codespell knows mistakes, not words: names need no list, but for a few that look like mistakes."""
    pytest.importorskip("codespell_lib", reason="scripts/setup installs codespell")
    paths = [*map(str, documents()), str(ROOT / "docs/style.md"), *map(str, sources())]
    done = subprocess.run([sys.executable, "-m", "codespell_lib", "--ignore-words", str(HERE / "style_words.txt"), *paths],
                          capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_format() -> None:
    """C++ is as clang-format writes it: `.venv/bin/clang-format -i FILE` mends what this names."""
    program = Path(sys.executable).with_name("clang-format")
    if not program.exists():
        pytest.skip("scripts/setup installs clang-format")
    paths = [p for folder in ("ir", "patterns", "passes", "tools", "plugin", "tests", "bench", "examples")
             for p in sorted((ROOT / folder).rglob("*")) if p.suffix in (".cc", ".h") and "/build/" not in str(p)]
    assert len(paths) > 300
    done = subprocess.run([program, "--dry-run", "--ferror-limit=1", *map(str, paths)], capture_output=True, text=True, cwd=ROOT)
    wrong = sorted({line.split(":")[0] for line in done.stderr.splitlines() if "clang-format-violations" in line})
    assert not wrong, "\n".join(wrong)
