"""Every code that is given anywhere is in the catalogue, every code of the catalogue is given somewhere, and `explain`
says what it means."""

from __future__ import annotations

import re
from pathlib import Path

from conftest import ROOT, run, run_ok

# A string that is nothing but lower-case words with hyphens between them. In these folders that is a code.
LITERAL = re.compile(r'"([a-z]+(?:-[a-z]+)+)"')
CODE_FOLDERS = ("passes", "patterns")
CATALOGUE = ROOT / "patterns" / "codes.txtpb"


def catalogued() -> set[str]:
    found = re.findall(r'^ +code: "([^"]+)"', CATALOGUE.read_text(), re.MULTILINE)
    assert len(found) == len(set(found)) > 60
    return set(found)


def without_comments(path: Path) -> str:
    return re.sub(r"//[^\n]*", "", path.read_text())


def given() -> dict[str, str]:
    """Returns every code with a file that gives it."""
    codes: dict[str, str] = {}
    for folder in CODE_FOLDERS:
        for path in sorted((ROOT / folder).rglob("*")):
            if path.name == "option_names.cc":
                continue  # words with hyphens are names of flags there
            if path.suffix in (".cc", ".h"):
                text = without_comments(path)
                found = LITERAL.findall(text) + re.findall(r'Warn\(\{"([a-z-]+)"', text)
            elif path.suffix == ".txtpb" and path.parent.name == "targets":
                found = re.findall(r'^ +code: "([^"]+)"', path.read_text(), re.MULTILINE)
            elif path.suffix == ".rule":
                found = re.findall(r'never \("[^"]*", "([^"]+)"\)', path.read_text())
            else:
                continue
            codes.update(dict.fromkeys(found, str(path.relative_to(ROOT))))
    return codes


def test_every_code_that_is_given_is_explained() -> None:
    known = catalogued()
    missing = {code: path for code, path in given().items() if code not in known}
    assert not missing, f"not in {CATALOGUE.name}: {missing}"


def test_every_code_that_is_explained_is_given() -> None:
    assert sorted(catalogued() - set(given())) == []


def test_every_adapter_fixes_a_form_of_some_target() -> None:
    rules = "".join(path.read_text() for path in (ROOT / "patterns" / "rules" / "adapt").glob("*.rule"))
    fixed = set(re.findall(r"<fixes = ([a-z-]+)>", rules))
    fixed |= set(re.findall(r'^ +\{"([a-z-]+)", "[A-Z]', (ROOT / "passes" / "legalise" / "adapters.cc").read_text(), re.MULTILINE))
    rows = "".join(path.read_text() for path in (ROOT / "patterns" / "targets").glob("*.txtpb"))
    assert len(fixed) > 20
    assert sorted(fixed - set(re.findall(r'^ +code: "([^"]+)"', rows, re.MULTILINE))) == []


def test_every_never_of_the_library_has_a_code() -> None:
    for path in (ROOT / "patterns" / "rules").rglob("*.rule"):
        text = re.sub(r"^ *#.*", "", path.read_text(), flags=re.MULTILINE)
        assert len(re.findall(r"\bnever \(", text)) == len(re.findall(r'never \("[^"]*", "[^"]+"\)', text)), path


def test_explain_prints_a_code_and_its_way_out() -> None:
    out = run_ok("explain", "mask-per-head").out
    assert out.startswith("mask-per-head: The mask differs from head to head\n")
    assert "\nway out\n" in out
    for code in catalogued():
        assert run_ok("explain", code).out.startswith(f"{code}: ")


def test_explain_alone_lists_all_codes() -> None:
    listed = re.findall(r"^  ([a-z-]+) +[A-Z-]", run_ok("explain").out, re.MULTILINE)
    assert set(listed) == catalogued()


def test_an_unknown_code_is_answered_with_the_nearest_or_the_list(tmp_path: Path) -> None:
    result = run("explain", "mask-per-heads")
    assert result.code == 2
    assert result.err == "ascend-fuse: mask-per-heads is not a code of a report; did you mean mask-per-head?\n"
    result = run("explain", "zzzzzzzz")
    assert result.code == 2
    assert result.err.startswith("ascend-fuse: zzzzzzzz is not a code of a report\n") and "by-parser" in result.err
    (tmp_path / "m.onnx").touch()
    result = run("explain", tmp_path / "m.onnx")
    assert result.code == 2 and result.err == "ascend-fuse: explain takes a code of a report, or MODEL --rule NAME --at NODE\n"


def test_the_document_is_what_the_program_prints() -> None:
    assert run_ok("explain", "--markdown").out == (ROOT / "docs" / "codes.md").read_text()
