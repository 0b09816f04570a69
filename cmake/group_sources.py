"""Groups C++ sources into files that include several of them, for a build from nothing in a third of the time.

    python3 cmake/group_sources.py ROOT FOLDER NAME SOURCE...

writes FOLDER/NAME_<number>.cc, each with sources of up to 2500 lines in all (ASCEND_FUSE_GROUP_LINES), and prints their paths. What a source keeps
to itself (an anonymous namespace, a `using`) gets another name in a group where it occurs in another source of it, too. Where that is not
possible, because a header has the name or it is that of a member as well, the sources are kept apart; and so is one that opens a namespace
(`using namespace`) from the headers that declare types of its names in another one. So no source has to be written with its neighbours in
mind. A group includes all headers first, which have their own names therefore. Paths in a group are relative to ROOT: the groups of two checkouts
are the same to ccache.
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
OTHER = re.compile(r"^(?:\[\[\w+\]\] )?(?!struct|class|enum|using|namespace|template|return)[A-Za-z_][\w:<>,&*\s\[\].()]*?\b(\w+)(?=\s*(?:\(|=|\{|;|\[))",
                   re.MULTILINE)
MACRO = re.compile(r"^#define (\w+)", re.MULTILINE)
INCLUDE = re.compile(r'^#include (?:"([^"\n]+)"|<[^>\n]+>)', re.MULTILINE)
OPENED = re.compile(r"^using namespace (\w+);", re.MULTILINE)
CONDITIONAL = re.compile(r"^#if.*?^#endif[^\n]*", re.DOTALL | re.MULTILINE)


@dataclasses.dataclass
class Source:
    path: str
    own: set[str]  # the names that it keeps to itself
    fixed: set[str]  # those of them that cannot have another name
    words: set[str]  # all its words
    types: set[tuple[str, str]]  # those that its headers declare, each after its namespace
    opened: set[tuple[str, str]]  # those of them that it uses without naming their namespace
    lines: int
    includes: list[str]


class Headers:
    """The headers of the project: their words, and the types that each and those that it includes declare."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.words: set[str] = set()
        for top in ("ir", "patterns", "passes", "tools"):
            for header in (root / top).rglob("*.h"):
                self.words |= set(WORD.findall(COMMENT_OR_TEXT.sub(" ", header.read_text())))

    @functools.cache
    def one(self, path: str) -> tuple[frozenset[str], frozenset[tuple[str, str]]]:
        """The headers that a file includes, and the types that it declares, each after its namespace."""
        text = (self.root / path).read_text()
        types = set()
        namespaces = [""]
        for line in text.splitlines():
            if opens := re.match(r"namespace ([\w:]*) ?\{$", line):
                namespaces.append(opens[1])
            elif line.startswith("}  // namespace") and len(namespaces) > 1:
                namespaces.pop()
            elif declares := TYPE.match(line):
                types.add((namespaces[-1], declares[1]))
        return frozenset(h for h in INCLUDE.findall(text) if h and (self.root / h).exists()), frozenset(types)

    def types(self, source: str) -> set[tuple[str, str]]:
        """The types of the headers of a source, and of those that these include."""
        seen: set[str] = set()
        types: set[tuple[str, str]] = set()
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
    fixed = set(MACRO.findall(bare))
    own = set(re.findall(r"^using (\w+) =", bare, re.MULTILINE))
    for hidden in HIDDEN.findall(bare):
        own |= set(TYPE.findall(hidden)) | set(OTHER.findall(hidden))
    # A macro of the name would change the members of others, too.
    members = set(re.findall(r"(?:\.|->|::)\s*(?:template )?([A-Za-z_]\w*)", bare))
    fixed |= own & (headers.words | members)
    includes = [match.group() for match in INCLUDE.finditer(CONDITIONAL.sub("", text))]
    words, types, spaces = set(WORD.findall(bare)), headers.types(path), set(OPENED.findall(bare))
    opened = {(space, name) for space, name in types if space in spaces and name in words}
    return Source(path, own | fixed, fixed, words, types, opened, text.count("\n"), includes)


def can_stand_before_or_after(source: Source, other: Source) -> bool:
    """Whether no name of a source means something else where the headers of the other one are included, too."""
    names = {name for _, name in other.types}
    if source.fixed & (other.words | names):
        return False
    return not any(name == used and space != opened for opened, used in source.opened if used in names for space, name in other.types)


def group(sources: list[Source]) -> list[list[Source]]:
    """First fit, in the order given: a source that changes moves few others."""
    groups: list[list[Source]] = []
    for source in sources:
        for members in groups:
            fits = sum(m.lines for m in members) + source.lines <= MOST_LINES
            if fits and all(can_stand_before_or_after(source, m) and can_stand_before_or_after(m, source) for m in members):
                members.append(source)
                break
        else:
            groups.append([source])
    return groups


def text_of(members: list[Source]) -> str:
    lines = list(dict.fromkeys(include for source in members for include in source.includes)) if len(members) > 1 else []
    for number, source in enumerate(members):
        shared = sorted(name for name in source.own - source.fixed if any(name in m.words for m in members if m is not source))
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
