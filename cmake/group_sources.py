"""Groups C++ sources into files that include several of them, for a build from nothing in a third of the time.

    python3 cmake/group_sources.py ROOT FOLDER NAME SOURCE...

writes FOLDER/NAME_<number>.cc, each with sources of up to 2500 lines in all (ASCEND_FUSE_GROUP_LINES), and prints their paths. Sources that may
not share a file are kept apart: a name that one of them keeps to itself (an anonymous namespace, a `using`) occurs
in no other one of its group. Private constants (kOps) have the same names so often that they get another name in a group instead.
So no source has to be written with its neighbours in mind. Paths in a group are relative to ROOT: the groups of two
checkouts are the same to ccache.
"""

from __future__ import annotations

import dataclasses
import functools
import os
import re
import sys
from pathlib import Path

MOST_LINES = int(os.environ.get("ASCEND_FUSE_GROUP_LINES", "2500"))
WORD = re.compile(r"[A-Za-z_]\w*")
COMMENT_OR_TEXT = re.compile(r'//(?! namespace$)[^\n]*|/\*.*?\*/|R"(\w*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*"|^#include[^\n]*', re.DOTALL | re.MULTILINE)
HIDDEN = re.compile(r"^namespace \{$(.*?)^\}  // namespace$", re.DOTALL | re.MULTILINE)
# What stands at the beginning of a line of a namespace declares something: the name before (, =, {, ; or [ or a base.
TYPE = re.compile(r"^(?:template <[^\n]*>\s*)?(?:struct|class|enum class|enum|using|namespace) (\w+)", re.MULTILINE)
OTHER = re.compile(r"^(?!struct|class|enum|using|namespace|template|return)[A-Za-z_][\w:<>,&*\s\[\].()]*?\b(\w+)(?=\s*(?:\(|=|\{|;|\[))",
                   re.MULTILINE)
MACRO = re.compile(r"^#define (\w+)", re.MULTILINE)
INCLUDE = re.compile(r'^#include "([^"\n]+)"', re.MULTILINE)
CONSTANT = re.compile(r"k[A-Z]\w*")


@dataclasses.dataclass
class Source:
    path: str
    own: set[str]  # the names that it keeps to itself
    words: set[str]  # all its words
    types: set[str]  # those that its headers declare
    lines: int
    constants: set[str]  # those of `own` that can get another name


class Headers:
    """The headers of the project: the types that each and those that it includes declare."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.constants: set[str] = set()
        for top in ("ir", "patterns", "passes", "tools"):
            for header in (root / top).rglob("*.h"):
                self.constants |= set(CONSTANT.findall(header.read_text()))

    @functools.cache
    def one(self, path: str) -> tuple[frozenset[str], frozenset[str]]:
        """The headers that a file includes, and the types that it declares."""
        text = (self.root / path).read_text()
        types = frozenset(TYPE.findall(COMMENT_OR_TEXT.sub(" ", text)))
        return frozenset(h for h in INCLUDE.findall(text) if (self.root / h).exists()), types

    def types(self, source: str) -> set[str]:
        """The types of the headers of a source, and of those that these include."""
        seen: set[str] = set()
        types: set[str] = set()
        waiting = set(self.one(source)[0])
        while waiting:
            header = waiting.pop()
            seen.add(header)
            includes, declared = self.one(header)
            types |= declared
            waiting |= includes - seen
        return types


def read(root: Path, path: str, headers: Headers) -> Source:
    text = (root / path).read_text()
    bare = COMMENT_OR_TEXT.sub(" ", text)
    own = set(MACRO.findall(bare))
    own |= set(re.findall(r"^using (\w+) =", bare, re.MULTILINE))
    constants: set[str] = set()
    for hidden in HIDDEN.findall(bare):
        own |= set(TYPE.findall(hidden))
        names = set(OTHER.findall(hidden))
        constants |= {n for n in names if CONSTANT.fullmatch(n) and n not in headers.constants}
        own |= names
    constants -= set(MACRO.findall(bare))
    return Source(path, own - constants, set(WORD.findall(bare)), headers.types(path), text.count("\n"), constants)


def group(sources: list[Source]) -> list[list[Source]]:
    """First fit, in the order given: a source that changes moves few others."""
    groups: list[list[Source]] = []
    for source in sources:
        for members in groups:
            fits = sum(m.lines for m in members) + source.lines <= MOST_LINES
            if fits and not any(source.own & (m.words | m.types) or m.own & (source.words | source.types) for m in members):
                members.append(source)
                break
        else:
            groups.append([source])
    return groups


def text_of(members: list[Source]) -> str:
    lines = []
    for number, source in enumerate(members):
        shared = sorted(c for c in source.constants if any(c in m.words for m in members if m is not source))
        lines += [f"#define {name} {name}_{number}" for name in shared]
        lines += [f'#include "{source.path}"']
        lines += [f"#undef {name}" for name in shared]
    return "\n".join(lines) + "\n"


def main() -> None:
    root, folder, name = Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3]
    headers = Headers(root)
    sources = [read(root, str(Path(s).relative_to(root)), headers) for s in sys.argv[4:]]
    folder.mkdir(parents=True, exist_ok=True)
    for number, members in enumerate(group(sources)):
        path = folder / f"{name}_{number}.cc"
        text = text_of(members)
        if not path.exists() or path.read_text() != text:
            path.write_text(text)
        print(path)


if __name__ == "__main__":
    main()
