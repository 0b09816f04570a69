"""The page of an analysis: complete in itself, small, readable without a mouse or eyes, and the same each time."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import re
import shutil
import struct
import subprocess
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path

import onnx
import pytest
from browser import PROGRAM, Browser
from conftest import BUILD, ROOT, run_ok
from onnx import helper

# Elements that have no end.
VOID = {"meta", "input", "br", "link", "img"}
# Every table that can be sorted by a number, by its caption: "true" where a click sorts it downwards and a second one upwards.
SORT = """
Array.from (document.querySelectorAll ('table'), table => {
  const heads = Array.from (table.tHead.rows[0].cells), column = heads.findIndex (cell => cell.querySelector ('button') && cell.className === 'number');
  if (column < 0) return true;
  const values = () => Array.from (table.tBodies[0].rows, row => Number (row.cells[column].dataset.v));
  const button = heads[column].querySelector ('button');
  button.click ();
  const down = heads[column].getAttribute ('aria-sort') === 'descending' && values ().every ((v, i, all) => i === 0 || all[i - 1] >= v);
  button.click ();
  const up = heads[column].getAttribute ('aria-sort') === 'ascending' && values ().every ((v, i, all) => i === 0 || all[i - 1] <= v);
  return down && up ? true : table.caption.textContent;
})"""
SEARCH = """
(() => {
  const box = document.querySelector ('#search');
  box.value = 'rms_norm layers.1.';
  box.dispatchEvent (new Event ('input'));
  const rows = Array.from (document.querySelectorAll ('main tbody tr:not([hidden])'), row => row.textContent);
  const said = document.querySelector ('#told').textContent;
  box.value = '';
  box.dispatchEvent (new Event ('input'));
  const again = document.querySelectorAll ('main tbody tr:not([hidden])').length, all = document.querySelectorAll ('main tbody tr').length;
  return [rows.length, rows.filter (text => text.includes ('rms_norm') && text.includes ('layers.1.')).length, said, again === all];
})()"""
# Folds that a click on their summary does not open and close, and those that the button for all leaves closed.
FOLDS = """
(() => {
  const folds = Array.from (document.querySelectorAll ('details'));
  const stuck = folds.filter (fold => {
    const before = fold.open;
    fold.querySelector ('summary').click ();
    const between = fold.open;
    fold.querySelector ('summary').click ();
    return between === before || fold.open !== before;
  });
  document.querySelector ('#unfold').click ();
  return [folds.length, stuck.length, Array.from (document.querySelectorAll ('details.fold')).filter (fold => !fold.open).length];
})()"""
# What is cut off or hidden on paper.
HIDDEN = """
Array.from (document.querySelectorAll ('details > :not(summary)')).filter (part => part.getBoundingClientRect ().height === 0).length"""


class Page(HTMLParser):
    """Elements with their attributes; those that are opened are closed, in their order."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.feed(text)
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID and "/" not in (self.get_starttag_text() or "")[-2:]:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open and self.open.pop() == tag

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))


@pytest.fixture(scope="module")
def decoder(zoo: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A decoder of 32 layers."""
    bench = BUILD / "bench" / "matching_bench"
    if not bench.exists():
        pytest.skip("matching_bench is not built")
    path = tmp_path_factory.mktemp("deep") / "deep.onnx"
    subprocess.run([bench, zoo / "llama-sdpa-past-ts17-dynamic.onnx", "--layers", "32", "--write", path], check=True, capture_output=True)
    return path


@pytest.fixture(scope="module")
def page(decoder: Path) -> str:
    path = decoder.with_suffix(".html")
    run_ok("analyze", decoder.name, "--report", path, "--quiet", cwd=decoder.parent)
    return path.read_text()


def test_a_deep_decoder_has_a_small_page_with_every_site(decoder: Path, page: str) -> None:
    analysis = json.loads(run_ok("analyze", decoder, "--json", "-").out)
    assert len(page) < 1_000_000
    assert f"every site ({len(analysis['report']['sites'])})" in page
    for side in ("before", "after"):
        assert str(analysis[side]["kernels"]) in page and str(analysis[side]["nodes"]) in page
    assert f"{analysis['ratio']['middle']:.2f} times" in page and "A cost model says so, no measurement" in page
    first_screen = page[page.index('id="story"'):page.index('id="totals"')]
    left = [row for row in analysis["opportunities"] if row["state"] == "left"]
    assert left and all(row["because"] in first_screen for row in left[:5])
    commands = [step["command"].split()[1] for step in analysis["next"] if step["command"]]
    assert commands and all(f"<span>{word}</span>" in first_screen for word in commands)
    for site in analysis["report"]["sites"]:
        assert site["node"] in page and site["because"] in page
    assert page.count("<svg") > 5  # the curve of memory, and sites before and after


def test_a_page_is_complete_in_itself_and_the_same_each_time(decoder: Path, page: str, tmp_path: Path) -> None:
    run_ok("analyze", decoder.name, "--report", tmp_path / "again.html", "--quiet", cwd=decoder.parent)
    assert (tmp_path / "again.html").read_text() == page
    elements = Page(page).elements
    for tag, attributes in elements:
        assert tag not in {"link", "img", "iframe", "object", "embed", "base", "form"}
        assert not {"src", "action", "data", "srcset"} & set(attributes)
        assert not any(name.startswith("on") for name in attributes)
        assert (attributes.get("href") or "#").startswith("#")
    assert "url(" not in page and "@import" not in page and "://" not in page
    (script,) = re.findall(r"<script>(.*?)</script>", page, re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert f"script-src 'sha256-{digest}'" in page, f"PageScriptHash () of passes/analyze/page_look.cc is {digest}"


def test_a_page_is_read_without_eyes_or_mouse(page: str) -> None:
    elements = Page(page).elements
    tags = [tag for tag, _ in elements]
    assert tags.count("h1") == 1 and tags.count("main") == 1 and tags.count("nav") == 1
    assert tags.count("caption") == tags.count("table") > 8
    assert all(attributes.get("scope") in ("row", "col") for tag, attributes in elements if tag == "th")
    assert all(attributes.get("role") == "img" and attributes.get("aria-label") for tag, attributes in elements if tag == "svg")
    ids = [attributes["id"] for _, attributes in elements if "id" in attributes]
    assert len(ids) == len(set(ids))
    targets = {(attributes.get("href") or "")[1:] for tag, attributes in elements if tag == "a"}
    assert targets <= set(ids)
    assert "prefers-color-scheme: dark" in page and "@media print" in page


def test_optimize_and_list_write_the_page_of_their_run(zoo: Path, tmp_path: Path) -> None:
    model = zoo / "llama-eager-nocache-dy18-static.onnx"
    if not model.exists():
        pytest.skip("the zoo is not there")
    run_ok("optimize", model, "-o", tmp_path / "plain.onnx", "--quiet")
    run_ok("optimize", model, "-o", tmp_path / "with.onnx", "--report", tmp_path / "r.html", "--quiet")
    assert (tmp_path / "plain.onnx").read_bytes() == (tmp_path / "with.onnx").read_bytes()
    run_ok("list", model, "--report", tmp_path / "l.html", "--quiet")
    of_run = (tmp_path / "r.html").read_text()
    assert "can be fused" not in of_run
    assert "<b>optimize</b>" not in of_run, "that was done"
    assert f"<span>{tmp_path / 'with.onnx'}</span>" in of_run, "verify is told where the file was written"
    assert "<b>optimize</b>" in (tmp_path / "l.html").read_text()
    assert "can be fused" in (tmp_path / "l.html").read_text()
    run_ok("analyze", model, "--report", tmp_path / "a.json", "--quiet")
    assert json.loads((tmp_path / "a.json").read_text())["schema"] == 1


def test_names_of_a_model_have_no_meaning(tmp_path: Path) -> None:
    name = '</td><script>x()</script><img src=x onerror="x()">\x1b[2J'
    nodes = [helper.make_node("MatMul", ["x", "w"], ["h"], name=name), helper.make_node("Sigmoid", ["h"], [name], name=name + "s"),
             helper.make_node("Mul", ["h", name], ["y"], name=name + "m")]
    info = [helper.make_tensor_value_info(n, onnx.TensorProto.FLOAT, [4, name]) for n in "xy"]
    weight = helper.make_tensor("w", onnx.TensorProto.FLOAT, [8, 8], bytes(256), raw=True)
    graph = helper.make_graph(nodes, "g", [info[0]], [info[1]], [weight])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), tmp_path / "m.onnx")
    run_ok("analyze", tmp_path / "m.onnx", "--report", tmp_path / "m.html", "--quiet")
    text = (tmp_path / "m.html").read_text()
    assert text.count("<script") == 1 and "<img" not in text and "\x1b" not in text
    assert "&lt;script&gt;x()" in text
    Page(text)


@pytest.fixture(scope="module")
def in_browser(decoder: Path, page: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    if PROGRAM is None:
        pytest.skip("there is no Chromium")
    assert page
    with Browser(tmp_path_factory.mktemp("profile")) as browser:
        browser.size(1280)
        browser.open(decoder.with_suffix(".html"))
        yield browser


def test_a_browser_opens_it_in_a_second_and_says_nothing(decoder: Path, in_browser: Browser) -> None:
    """The best of five, because a machine that tests is a busy one. Nothing on the console, no script that is stopped, nothing fetched."""
    times = []
    for _ in range(5):
        times.append(in_browser.open(decoder.with_suffix(".html"))["load"])
        assert in_browser.errors == []
    assert min(times) < 1000, times


def test_a_browser_sorts_every_table_and_searches(in_browser: Browser) -> None:
    sorts = in_browser.find(SORT)
    assert len(sorts) > 8 and all(well is True for well in sorts), sorts
    rows, right, said, all_again = in_browser.find(SEARCH)
    assert rows == right > 0 and re.fullmatch(r"\d+ of \d+ rows", said) and all_again
    assert in_browser.errors == []


def test_every_fold_opens(in_browser: Browser) -> None:
    folds, stuck, closed = in_browser.find(FOLDS)
    assert folds > 20 and stuck == closed == 0


@pytest.mark.parametrize(("width", "height"), [(1280, 840), (390, 1400)])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_first_screen_is_drawn(width: int, height: int, scheme: str, in_browser: Browser, tmp_path: Path) -> None:
    """BLESS=1 writes the pictures of docs/pictures, which are to be looked at: fonts are those of the machine."""
    in_browser.size(width, height)
    in_browser.media(scheme=scheme)
    picture = tmp_path / "screen.png"
    picture.write_bytes(in_browser.picture())
    paper = in_browser.find("getComputedStyle (document.body).backgroundColor")
    in_browser.media()
    in_browser.size(1280)
    assert struct.unpack(">II", picture.read_bytes()[16:24]) == (width, height)
    assert (sum(map(int, re.findall(r"\d+", paper)[:3])) > 3 * 128) == (scheme == "light"), paper
    if "BLESS" in os.environ:
        subprocess.run(["pngquant", "--force", "--output", ROOT / "docs" / "pictures" / f"page-{width}-{scheme}.png", "32", picture], check=True)


@pytest.mark.parametrize("width", [1280, 390])
def test_nothing_lies_beside_the_screen(width: int, in_browser: Browser) -> None:
    in_browser.size(width)
    assert in_browser.find("document.documentElement.scrollWidth") <= width
    in_browser.size(1280)


def test_it_is_printed_whole(decoder: Path, in_browser: Browser, tmp_path: Path) -> None:
    in_browser.open(decoder.with_suffix(".html"))
    in_browser.media("print")
    assert in_browser.find(HIDDEN) == 0
    in_browser.media()
    pdf = tmp_path / "page.pdf"
    pdf.write_bytes(in_browser.pdf())
    assert pdf.read_bytes().startswith(b"%PDF")
    if shutil.which("pdftotext") is None:
        return
    text = subprocess.run(["pdftotext", "-layout", pdf, "-"], check=True, capture_output=True, text=True).stdout
    for words in ("What takes the time", "What is left, and why", "What to do next", "Every site", "model.layers.31.self_attn"):
        assert words.lower() in text.lower(), words
