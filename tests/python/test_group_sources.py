"""cmake/group_sources.py: sources that share names are kept apart, and the groups are few."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from conftest import ROOT

SCRIPT = ROOT / "cmake" / "group_sources.py"


def groups(root: Path, folder: Path, *sources: str) -> list[str]:
    done = subprocess.run([sys.executable, str(SCRIPT), str(root), str(folder), "lib", *(str(root / s) for s in sources)],
                          capture_output=True, text=True, check=True)
    return [Path(line).read_text() for line in done.stdout.splitlines()]


def private(body: str) -> str:
    return f"namespace x {{\nnamespace {{\n\n{body}\n\n}}  // namespace\n}}  // namespace x\n"


def write(root: Path, **sources: str) -> list[str]:
    for name, text in sources.items():
        (root / f"{name}.cc").write_text(text)
    return [f"{name}.cc" for name in sources]


def test_sources_without_common_names_are_one_group(tmp_path: Path) -> None:
    names = write(tmp_path, a=private("int Helper() { return 1; }"), b=private("int Other() { return 2; }"))
    assert groups(tmp_path, tmp_path / "out", *names) == ['#include "a.cc"\n#include "b.cc"\n']


def test_a_private_name_that_another_source_uses_gets_another_one(tmp_path: Path) -> None:
    names = write(tmp_path, a=private("struct Place {\n  int x;\n};"), b="namespace x {\nint Use(Place place);\n}\n",
                  c=private("absl::Status No(int why) { return {}; }"), d=private("bool No(int why) { return false; }"))
    found = groups(tmp_path, tmp_path / "out", *names)
    assert any('#define Place Place_0\n#include "a.cc"\n#undef Place\n' in group for group in found)
    assert any('#define No No_2\n#include "c.cc"\n#undef No\n' in group for group in found)


def test_words_of_comments_and_texts_do_not_count(tmp_path: Path) -> None:
    names = write(tmp_path, a=private("int Helper() { return 1; }"), b='// A Helper.\nconst char* text = "Helper";\n')
    assert len(groups(tmp_path, tmp_path / "out", *names)) == 1


def test_private_constants_get_names_of_their_own(tmp_path: Path) -> None:
    names = write(tmp_path, a=private("constexpr int kOps[] = {1};"), b=private("constexpr int kOps[] = {2};"))
    assert groups(tmp_path, tmp_path / "out", *names) == [
        '#define kOps kOps_0\n#include "a.cc"\n#undef kOps\n#define kOps kOps_1\n#include "b.cc"\n#undef kOps\n']


def test_the_sources_of_a_library_are_few_groups(tmp_path: Path) -> None:
    for library in ("ir", "patterns", "passes"):
        sources = sorted(str(path.relative_to(ROOT)) for path in (ROOT / library).rglob("*.cc"))
        assert len(groups(ROOT, tmp_path / library, *sources)) < len(sources) / 3, library


def test_a_private_name_is_found_behind_an_attribute(tmp_path: Path) -> None:
    names = write(tmp_path, a=private("[[noreturn]] void Broken() {}"), b=private("[[noreturn]] void Broken() {}"))
    assert groups(tmp_path, tmp_path / "out", *names) == [
        '#define Broken Broken_0\n#include "a.cc"\n#undef Broken\n#define Broken Broken_1\n#include "b.cc"\n#undef Broken\n']


def test_a_source_that_opens_a_namespace_is_kept_from_headers_with_its_names(tmp_path: Path) -> None:
    (tmp_path / "ir").mkdir()
    (tmp_path / "ir/inner.h").write_text("namespace x {\nnamespace inner {\n\nstruct Term {};\n\n}  // namespace inner\n}  // namespace x\n")
    (tmp_path / "ir/outer.h").write_text("namespace x {\n\nstruct Term {};\n\n}  // namespace x\n")
    opens = '#include "ir/inner.h"\nnamespace x {\nusing namespace inner;\n'
    names = write(tmp_path, a=opens + "int First(Term term);\n}\n", b=opens + "int Second(Term term);\n}\n", c=opens + "int Third();\n}\n",
                  d='#include "ir/outer.h"\nnamespace x {\nint Fourth(Term term);\n}\n')
    found = groups(tmp_path, tmp_path / "out", *names)
    assert len(found) == 2
    assert '"d.cc"' in next(group for group in found if '"a.cc"' not in group)
    assert '"b.cc"' in next(group for group in found if '"a.cc"' in group)
