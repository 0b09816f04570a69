"""The page of an analysis: complete in itself, small, readable without a mouse or eyes, and the same each time."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import shutil
import subprocess
from html.parser import HTMLParser
from pathlib import Path

import onnx
import pytest
from conftest import BUILD, run_ok
from onnx import helper

# Elements that have no end.
VOID = {"meta", "input", "br", "link", "img"}
# What Chromium is told to do on the page, and what it then finds there.
DRIVER = """
const wait = [], table = document.querySelector('#operators').parentNode.querySelector('table');
const column = () => Array.from(table.tBodies[0].rows, row => Number(row.cells[5].dataset.v));
const heading = table.tHead.rows[0].cells[5];
heading.querySelector('button').click();
wait.push(heading.getAttribute('aria-sort') + ' ' + column().every((v, i, all) => i === 0 || all[i - 1] >= v));
heading.querySelector('button').click();
wait.push(heading.getAttribute('aria-sort') + ' ' + column().every((v, i, all) => i === 0 || all[i - 1] <= v));
search.value = 'rms_norm layers.1.';
search.dispatchEvent(new Event('input'));
const shown = Array.from(document.querySelectorAll('main tbody tr:not([hidden])'), row => row.textContent);
wait.push('found ' + (shown.length > 0 && shown.every(text => text.includes('rms_norm') && text.includes('layers.1.'))));
wait.push('told ' + /^\\d+ of \\d+ rows$/.test(told.textContent));
search.value = '';
search.dispatchEvent(new Event('input'));
document.querySelector('#unfold').click();
wait.push('open ' + Array.from(document.querySelectorAll('details.fold')).every(fold => fold.open));
document.title = wait.join(', ');
"""


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
    run_ok("analyze", decoder, "--report", path, "--quiet")
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
    run_ok("analyze", decoder, "--report", tmp_path / "again.html", "--quiet")
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


def test_a_browser_sorts_searches_and_unfolds(page: str, tmp_path: Path) -> None:
    browser = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if browser is None:
        pytest.skip("there is no Chromium")
    driven = re.sub(r'<meta http-equiv="Content-Security-Policy"[^>]*>', "", page)
    driven = driven.replace("</body>", f"<script>{DRIVER}</script></body>")
    (tmp_path / "driven.html").write_text(driven)
    words = [browser, "--headless", "--no-sandbox", "--disable-gpu", "--virtual-time-budget=5000", f"--user-data-dir={tmp_path / 'profile'}",
             "--dump-dom", f"file://{tmp_path / 'driven.html'}"]
    done = subprocess.run(words, capture_output=True, text=True, timeout=110, check=True)
    title = re.search("<title>(.*?)</title>", done.stdout)
    assert title is not None and title[1] == "descending true, ascending true, found true, told true, open true"
