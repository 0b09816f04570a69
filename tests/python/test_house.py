"""How the source is kept: no function over 80 lines, no class over 250, no file over 900, no copy of more than ten lines.

What does not keep to it yet is listed in tests/python/house_exceptions.json, each with its file; an entry that is no longer
needed fails the test, so that the list can only shrink; a class of the list may not grow either. The lines of a class are those
of its body and of its functions outside, the comments between them not counted. A C++ function may be longer if a comment before it
or in its first lines starts with `// Long because` and says why.
"""

from __future__ import annotations

import json
import re
import subprocess
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
EXCEPTIONS = json.loads(Path(__file__).with_name("house_exceptions.json").read_text())
MOST_LINES_OF_A_FUNCTION = 80
MOST_LINES_OF_A_CLASS = 250
MOST_LINES_OF_A_FILE = 900
COPIED = 11  # so many lines in a row that stand in two places are a copy
ENDINGS = (".cc", ".h", ".py", ".rule")
# Lines that no copy is made of: brackets, and what every file of a language opens with.
TRIVIAL = re.compile(r"^(\W*|#include .*|import .*|from .* import .*|using .*|namespace .*|break;|return (true|false|nullptr);|\} else \{)$")


def sources() -> list[Path]:
    """Every source file that git knows or would add."""
    listed = subprocess.run(["git", "ls-files", "--cached", "--others", "--exclude-standard"], cwd=ROOT, capture_output=True,
                            text=True, check=True).stdout
    paths = sorted({ROOT / name for name in listed.splitlines() if name.endswith(ENDINGS) or name.startswith("scripts/")})
    return [path for path in paths if path.is_file()]


def name(path: Path) -> str:
    return path.relative_to(ROOT).as_posix() if path.is_relative_to(ROOT) else path.name


def without_literals(line: str) -> str:
    """A line of C++ without comments and without what strings and characters hold."""
    line = re.sub(r'"(\\.|[^"\\])*"', '""', line)
    return re.sub(r"'(\\.|[^'\\])'", "''", line).split("//")[0]


def without_raw_strings(text: str) -> str:
    return re.sub(r'R"(\w*)\(.*?\)\1"', lambda raw: '""' + "\n" * raw.group().count("\n"), text, flags=re.DOTALL)


def blocks(text: str, kind_of: Callable[[str], str | None]) -> Iterator[tuple[str, int, int, int]]:
    """Yields every block between brackets whose statement `kind_of` names, and that lies in no other one: that name, the lines on which
    the statement and the bracket stand, and the last line."""
    lines = text.split("\n")
    depth: list[tuple[int, int, str | None]] = []  # of every open bracket
    head = 0  # the line on which the statement before the bracket begins
    for number, line in enumerate(map(without_literals, lines)):
        if line.startswith("#"):
            continue
        for column, c in enumerate(line):
            if c == "{":
                opening = " ".join(map(without_literals, lines[head:number])) + " " + line[:column]
                kind = None if any(outer for _, _, outer in depth) else kind_of(opening)
                first = next(i for i in range(head, number + 1) if without_literals(lines[i]).strip())
                depth.append((first, number, kind))
            elif c == "}" and depth:
                first, bracket, kind = depth.pop()
                if kind is not None:
                    yield kind, first, bracket, number
            if c in "{};" and not line[column + 1 :].strip():
                head = number + 1
    assert not depth, "brackets that do not close"


def long_functions(text: str) -> Iterator[tuple[str, int]]:
    """Yields the first line and the length of every C++ function that is too long and says nothing about it."""
    text = without_raw_strings(text)
    lines = text.split("\n")
    function = re.compile(r"\)\s*(const|override|noexcept|->[\w:<>* ]+|:.*)?\s*$")
    for _, start, _, end in blocks(text, lambda opening: "function" if function.search(opening) else None):
        if end - start + 1 > MOST_LINES_OF_A_FUNCTION:
            around = lines[max(0, start - 6) : start + 12]
            if not any(other.strip().startswith("// Long because") for other in around):
                yield " ".join(lines[start].split()), end - start + 1


CLASS = re.compile(r"(?:^|\s)(?:class|struct)\s+((?:\w+::)*\w+)[^;(){}]*$")
MEMBER = re.compile(r"(?:^|[\s*&])((?:\w+::)+)~?\w+\s*\([^;{}]*$")


def parts_of_classes(text: str) -> Iterator[tuple[str, int]]:
    """Yields name and length of every class, and of every function of a class that stands outside it."""
    def owner_of(opening: str) -> str | None:
        if "enum" in opening:
            return None
        if found := CLASS.search(opening):
            return found[1]
        found = MEMBER.search(opening)
        return found[1].removesuffix("::") if found else None

    for owner, _, bracket, end in blocks(without_raw_strings(text), owner_of):
        yield owner, end - bracket + 1


def lengths_of_classes(paths: list[Path]) -> dict[str, int]:
    """The lines of every class, by folder and name: classes of one folder have different names, or are told apart by their file."""
    inside: dict[tuple[str, str], dict[str, int]] = defaultdict(lambda: defaultdict(int))
    hidden: dict[tuple[str, str], int] = defaultdict(int)
    for path in paths:
        text = path.read_text()
        private = "\n".join(re.findall(r"^namespace \{$.*?^\}  // namespace$", text, re.DOTALL | re.MULTILINE))
        for owner, length in parts_of_classes(text):
            if re.search(rf"\b(?:class|struct) {owner.split('::')[0]}\b[^;]*\{{", private):
                hidden[name(path), owner] += length
            else:
                inside[name(path).rpartition("/")[0], owner][name(path)] += length
    found = {f"{folder}: {owner}": sum(lengths.values()) for (folder, owner), lengths in inside.items()}
    return found | {f"{path}: {owner}": length for (path, owner), length in hidden.items()}


def copies(paths: list[Path]) -> dict[tuple[str, str], list[tuple[int, int]]]:
    """Returns for pairs of files (or one file and itself) where copies begin in both."""
    places: dict[tuple[str, ...], list[tuple[str, int]]] = defaultdict(list)
    for path in paths:
        kept = []
        for number, line in enumerate(path.read_text().splitlines(), 1):
            plain = " ".join(line.split())
            if plain and not TRIVIAL.match(plain) and not plain.startswith(("//", "# ")):
                kept.append((number, plain))
        for i in range(len(kept) - COPIED + 1):
            window = kept[i : i + COPIED]
            places[tuple(line for _, line in window)].append((name(path), window[0][0]))
    found: dict[tuple[str, str], list[tuple[int, int]]] = defaultdict(list)
    for same in places.values():
        for i, (a, line_a) in enumerate(same):
            for b, line_b in same[i + 1 :]:
                if a != b or abs(line_a - line_b) >= COPIED:
                    found[a, b].append((line_a, line_b))
    return found


def compare(found: dict[str, str], allowed: dict[str, str], what: str) -> None:
    new = [f"{key}: {value}" for key, value in sorted(found.items()) if key not in allowed]
    assert not new, f"{what}:\n" + "\n".join(new)
    gone = sorted(set(allowed) - set(found))
    assert not gone, f"these are right now, delete them from house_exceptions.json: {gone}"


def test_no_function_is_too_long() -> None:
    found = {}
    for path in sources():
        if path.suffix in (".cc", ".h"):
            for head, length in long_functions(path.read_text()):
                found[f"{name(path)}: {head}"] = f"{length} lines"
    compare(found, EXCEPTIONS["functions"], f"functions of more than {MOST_LINES_OF_A_FUNCTION} lines")


def test_no_class_is_too_long() -> None:
    lengths = lengths_of_classes([path for path in sources() if path.suffix in (".cc", ".h")])
    found = {key: length for key, length in lengths.items() if length > MOST_LINES_OF_A_CLASS}
    allowed = EXCEPTIONS["classes"]
    compare({key: f"{length} lines" for key, length in found.items()}, allowed, f"classes of more than {MOST_LINES_OF_A_CLASS} lines")
    grown = [f"{key}: {length} lines, and {allowed[key]} are allowed" for key, length in found.items() if length > allowed[key]]
    assert not grown, "these classes may only shrink:\n" + "\n".join(grown)


def test_no_file_is_too_long() -> None:
    lengths = {name(path): path.read_text().count("\n") for path in sources()}
    found = {path: f"{length} lines" for path, length in lengths.items() if length > MOST_LINES_OF_A_FILE}
    compare(found, EXCEPTIONS["files"], f"files of more than {MOST_LINES_OF_A_FILE} lines")


# What ASSIGN_OR_RETURN and RETURN_IF_ERROR of ir/status_macros.h say in a word.
HANDED_ON = re.compile(r"\b(\w+) = [^;]*;\n\s*if \(!\1\.ok\(\)\) (?:\{\s*)?return (?:std::move\()?\1\)?(?:\.status\(\))?;")


def test_errors_are_handed_on_in_a_word() -> None:
    found = []
    for path in sources():
        if not name(path).startswith(("ir/", "patterns/", "passes/", "tools/")):
            continue
        text = path.read_text()
        for match in HANDED_ON.finditer(text):
            # What is used besides its value stays a StatusOr.
            if not re.search(rf"\b{match[1]}(?:\.ok\(|\.status\(|[,)])", text[match.end() : match.end() + 400]):
                found.append(f"{name(path)}:{text.count(chr(10), 0, match.start()) + 1}: {match[1]}")
    assert not found, "ASSIGN_OR_RETURN and RETURN_IF_ERROR are for this:\n" + "\n".join(found)


def test_nothing_is_copied() -> None:
    found = {f"{a} ~ {b}": f"lines {lines[0][0]} and {lines[0][1]}, {len(lines)} runs of {COPIED} lines"
             for (a, b), lines in copies(sources()).items()}
    compare(found, EXCEPTIONS["copies"], f"copies of {COPIED} lines or more")


def test_the_detectors_detect(tmp_path: Path) -> None:
    body = "\n".join(f"  call_{i} (x);" for i in range(130))
    assert [head for head, _ in long_functions(f"int F(int x) {{\n{body}\n}}\n")] == ["int F(int x) {"]
    assert not list(long_functions(f"// Long because it is a table.\nint F(int x) {{\n{body}\n}}\n"))
    assert not list(long_functions(f"struct S {{\n{body.replace('(x)', '')}\n}};\n"))
    (tmp_path / "a.h").write_text(f"class A {{\n{body}\n  struct B {{\n  int c;\n}};\n}};\nenum class E {{\n  kOne,\n}};\n")
    (tmp_path / "a.cc").write_text(f"int A::F(int x) const {{\n{body}\n}}\nint G() {{\n{body}\n}}\n")
    assert list(lengths_of_classes([tmp_path / "a.h", tmp_path / "a.cc"]).values()) == [135 + 132]
    lines = [f"  call_{i} (x);" for i in range(COPIED)]
    for count in (COPIED - 1, COPIED):
        paths = [tmp_path / "a.cc", tmp_path / "b.cc"]
        for path in paths:
            path.write_text("\n".join(lines[:count]) + "\n")
        assert bool(copies(paths)) == (count == COPIED)
