"""Every command and flag as a user meets it. tests/python/test_command_line.py holds the sentences of wrong usage."""

from __future__ import annotations

import html.parser
import json
import re
import shutil
from pathlib import Path
from typing import Any

import onnx
import onnx.parser
import pytest
from conftest import MISH_RULE, ROOT, run, run_ok
from onnx import TensorProto, helper

LLAMA = "llama-sdpa-past-ts17-dynamic"
BERT = "bert-sdpa-ts17-dynamic"


def report_of(*arguments: object) -> dict[str, Any]:
    return json.loads(run_ok(*arguments, "--json", "-").out)


def counts_of(report: dict[str, Any], kind: str) -> dict[str, int]:
    return {name: n for name, n in report["summary"]["sites"][kind].items() if name != "commonest_reason"}


@pytest.fixture
def llama(zoo: Path) -> Path:
    return zoo / f"{LLAMA}.onnx"


@pytest.fixture
def bert(zoo: Path) -> Path:
    return zoo / f"{BERT}.onnx"


def test_the_report_has_the_names_that_scripts_rely_on(llama: Path) -> None:
    report = report_of("list", llama)
    assert set(report["summary"]) >= {"sites", "nodes"}
    assert set(report["summary"]["nodes"]) == {"before", "after"}
    for kind in ("rms_norm layer_norm group_norm add_norm gelu silu hard_swish mish glu linear_activation rotary "
                 "attention").split():
        counts = report["summary"]["sites"][kind]
        assert set(counts) >= {"found", "fused", "by_ge", "left"}
        assert all(isinstance(counts[state], int) for state in ("found", "fused", "by_ge", "left"))
    names = {"kind", "state", "module", "rule", "node", "covers", "precision", "mask", "assumptions", "because", "source"}
    for site in report["sites"]:
        assert set(site) >= names
        assert site["state"] in ("fused", "by_ge", "left")
        assert site["precision"] in ("exact", "reassociated", "approximate")
    assert {site["module"] for site in report["sites"] if site["kind"] == "attention"} == {
        "model.layers.0.self_attn", "model.layers.1.self_attn"}


def test_json_goes_to_a_file_and_text_to_stdout(llama: Path, tmp_path: Path) -> None:
    result = run_ok("optimize", llama, "-o", tmp_path / "o.onnx", "--json", tmp_path / "r.json")
    assert json.loads((tmp_path / "r.json").read_text())["summary"]["sites"]["attention"]["fused"] == 2
    assert re.search(r"^attention +2 +2 +0 +0$", result.out, re.MULTILINE)
    assert result.out.endswith(f"wrote {tmp_path / 'o.onnx'}\n")
    assert result.err == ""


def test_json_on_stdout_is_alone(llama: Path, tmp_path: Path) -> None:
    result = run_ok("optimize", llama, "-o", tmp_path / "o.onnx", "--json", "-")
    json.loads(result.out)
    assert "wrote" in result.err


def test_report_is_text_json_or_html_by_its_name(llama: Path, tmp_path: Path) -> None:
    for name in ("r.txt", "r.json", "r.html"):
        run_ok("list", llama, "--report", tmp_path / name, "--quiet")
    assert "rms_norm" in (tmp_path / "r.txt").read_text()
    assert json.loads((tmp_path / "r.json").read_text())["sites"]
    page = (tmp_path / "r.html").read_text()  # test_page.py reads it
    assert f"<title>{llama} for ascend910b</title>" in page
    assert "can be fused" in page and "NPUPromptFlashAttention" in page
    run("check", llama, "--report", tmp_path / "c.html", "--quiet")
    found = Page((tmp_path / "c.html").read_text())
    assert found.title == f"{llama} for ascend910b" and "constructs" not in found.tables
    assert any("because" in table[0] for table in found.tables.values())


class Page(html.parser.HTMLParser):
    """A page of a report, whose elements must be closed in order and fetch nothing: its title, and its tables by their headings."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.title = ""
        self.tables: dict[str, list[list[str]]] = {}
        self._open: list[str] = []
        self._heading = ""
        self.feed(text)
        assert text.startswith("<!DOCTYPE html>") and not self._open

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        assert tag != "script" and not {"src", "href", "onclick"} & {name for name, _ in attributes}
        if tag == "meta":
            return
        self._open.append(tag)
        if tag == "h2":
            self._heading = ""
        if tag == "tr":
            self.tables.setdefault(self._heading, []).append([])
        if tag in ("td", "th"):
            self.tables[self._heading][-1].append("")

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        if "title" in self._open:
            self.title += data
        elif "h2" in self._open:
            self._heading += data
        elif "td" in self._open or "th" in self._open:
            self.tables[self._heading][-1][-1] += data


def test_quiet_says_nothing(llama: Path, tmp_path: Path) -> None:
    for arguments in (("list", llama), ("optimize", llama, "-o", tmp_path / "o.onnx"),
                      ("expand", tmp_path / "o.onnx", "-o", tmp_path / "e.onnx")):
        result = run_ok(*arguments, "--quiet")
        assert (result.out, result.err) == ("", "")


def test_verbose_lists_every_site_and_pass(llama: Path) -> None:
    short = run_ok("list", llama).out
    long = run_ok("list", llama, "--verbose").out
    assert "model.layers.*.self_attn" in short
    assert "model.layers.0.self_attn" in long and "model.layers.1.self_attn" in long
    assert "covers " in long and re.search(r"^  recognise +\d", long, re.MULTILINE)


def test_default_output_is_beside_the_model(llama: Path, tmp_path: Path) -> None:
    (tmp_path / "m.onnx").write_bytes(llama.read_bytes())
    run_ok("optimize", tmp_path / "m.onnx", "--target", "ascend310p")
    run_ok("expand", tmp_path / "m.ascend310p.onnx")
    assert {p.name for p in tmp_path.iterdir()} == {"m.onnx", "m.ascend310p.onnx", "m.ascend310p.expanded.onnx"}


def test_require_that_is_met(llama: Path, tmp_path: Path) -> None:
    run_ok("optimize", llama, "-o", tmp_path / "o.onnx", "--require", "attention,rms_norm,rotary")
    assert (tmp_path / "o.onnx").exists()


@pytest.mark.parametrize(("kinds", "sentence"), [
    ("glu", "--require glu: 2 of 2 left: "),
    ("layer_norm", "--require layer_norm: no layer_norm was found"),
    ("attention,glu", "--require glu: 2 of 2 left: "),
])
def test_require_that_is_not_met_writes_nothing(llama: Path, tmp_path: Path, kinds: str, sentence: str) -> None:
    result = run("optimize", llama, "-o", tmp_path / "o.onnx", "--require", kinds)
    assert result.code == 3
    assert sentence in result.err and "not written" in result.err
    assert list(tmp_path.iterdir()) == []
    assert run("list", llama, "--require", kinds).code == 3


@pytest.mark.parametrize("arguments", [
    ("list",), ("optimize", "--limit", "0"), ("optimize", "--strict"), ("optimize", "--require", "glu"), ("print",)])
def test_the_model_that_is_read_is_never_touched(llama: Path, tmp_path: Path, arguments: tuple[str, ...]) -> None:
    model = tmp_path / "m.onnx"
    model.write_bytes(llama.read_bytes())
    model.chmod(0o444)
    before = model.stat()
    result = run(arguments[0], model, *arguments[1:])
    assert model.read_bytes() == llama.read_bytes()
    assert model.stat().st_mtime_ns == before.st_mtime_ns and model.stat().st_ino == before.st_ino
    beside = {path.name for path in tmp_path.iterdir()} - {"m.onnx"}
    assert bool(beside) == (arguments[0] == "optimize" and result.code == 0)


@pytest.mark.parametrize("name", ["attention", "rms_norm", "rotary"])
def test_skip_leaves_a_kind_alone(llama: Path, name: str) -> None:
    counts = {kind: counts_of(report_of("list", llama, "--skip", name), kind) for kind in ("attention", "rms_norm", "rotary")}
    assert counts[name]["fused"] == 0
    assert all(counts[kind]["fused"] > 0 for kind in counts if kind != name)


def test_skip_leaves_a_node_out(llama: Path) -> None:
    emitted = {site["emitted_op"] for site in report_of("list", llama)["sites"] if site["kind"] == "rotary"}
    assert emitted == {"npu.NPURotaryMul"}
    emitted = {site["emitted_op"] for site in report_of("list", llama, "--skip", "NPURotaryMul")["sites"] if site["kind"] == "rotary"}
    assert emitted == {"npu.NPURotaryPositionEmbedding"}


def test_skip_of_a_rule_that_does_not_exist(llama: Path) -> None:
    result = run("list", llama, "--skip", "atention")
    assert result.code in (1, 2)
    assert "--skip atention" in result.err and "attention" in result.err


def test_limit_0_changes_no_byte(llama: Path, tmp_path: Path) -> None:
    run_ok("optimize", llama, "-o", tmp_path / "o.onnx", "--limit", "0")
    assert (tmp_path / "o.onnx").read_bytes() == llama.read_bytes()


def test_limit_n_makes_at_most_n_nodes(llama: Path, tmp_path: Path) -> None:
    for limit in (1, 3):
        run_ok("optimize", llama, "-o", tmp_path / "o.onnx", "--limit", limit)
        emitted = [n for n in onnx.load(tmp_path / "o.onnx").graph.node if n.op_type.startswith("NPU")]
        assert len(emitted) <= limit


def mish_model(path: Path) -> Path:
    nodes = [helper.make_node("Softplus", ["x"], ["s"], name="softplus"), helper.make_node("Tanh", ["s"], ["t"], name="tanh"),
             helper.make_node("Mul", ["x", "t"], ["y"], name="mul")]
    values = [helper.make_tensor_value_info(name, TensorProto.FLOAT, ["n", 64]) for name in "xy"]
    model = helper.make_model(helper.make_graph(nodes, "g", [values[0]], [values[1]]),
                              opset_imports=[helper.make_opsetid("", 17)])
    onnx.save(model, path)
    return path


def test_a_users_rules_add_a_fusion(tmp_path: Path) -> None:
    (tmp_path / "mish.rule").write_text(MISH_RULE)
    model = mish_model(tmp_path / "m.onnx")
    report = report_of("optimize", model, "-o", tmp_path / "o.onnx", "--rules", tmp_path / "mish.rule")
    assert counts_of(report, "mish") == {"found": 1, "fused": 1, "by_ge": 0, "left": 0}
    assert report["sites"][0]["emitted_op"] == "npu.NPUMish"
    assert [node.op_type for node in onnx.load(tmp_path / "o.onnx").graph.node] == ["NPUMish"]
    rules = run_ok("rules", "--rules", tmp_path / "mish.rule").out
    assert "my_mish" in rules and "my_npu_mish" in rules and "y = x * tanh(softplus(x))" in rules


@pytest.mark.parametrize(("text", "place"), [
    (MISH_RULE.replace("Tanh (", "Tanhh ("), "3:21: unknown operator or definition 'Tanhh'"),
    (MISH_RULE.replace("(Softplus (x)))", "(Softplus (x)"), "3:40: expected ')', found '}'"),
    (MISH_RULE.replace("kind = mish", "kin = mish", 1), "2:15: unknown annotation 'kin'"),
    (MISH_RULE.replace("(y)\nmatch", "(z)\nmatch", 1), "2:6: no line of match computes the output 'z'"),
    (MISH_RULE.replace("emit  { y = npu.NPUMish (x) }", "emit  { y = npu.NPUMish (w) }"), "9:26: unknown name 'w'"),
], ids=["operator", "syntax", "annotation", "output", "name"])
def test_a_mistake_in_a_rule_is_named_with_its_place(bert: Path, tmp_path: Path, text: str, place: str) -> None:
    path = tmp_path / "mine.rule"
    path.write_text(text)
    for arguments in (("list", bert), ("rules",), ("optimize", bert, "-o", tmp_path / "o.onnx")):
        result = run(*arguments, "--rules", path)
        assert result.code in (1, 2)
        assert f"{path}:{place}" in result.err
    assert not (tmp_path / "o.onnx").exists()


def test_dim_decides_an_assumption(llama: Path) -> None:
    free = {a for site in report_of("list", llama)["sites"] for a in site["assumptions"]}
    assert any("`batch` is at most" in a for a in free)
    bound = ("--dim", "batch=1..8", "--dim", "seq=1..2048", "--dim", "past=0..4096")
    report = report_of("list", llama, *bound)
    assert not {a for site in report["sites"] for a in site["assumptions"] if "`batch`" in a or "`seq`" in a}
    assert counts_of(report, "attention")["fused"] == 2


def test_several_dims_after_one_flag(llama: Path, tmp_path: Path) -> None:
    bound = ("batch=1..8", "seq=1..2048", "past=0..4096")
    apart = report_of("list", llama, *(word for dim in bound for word in ("--dim", dim)))
    assert apart["target"]["dims"] and report_of("list", llama, "--dim", *bound)["target"] == apart["target"]
    assert report_of("list", "--dim", *bound, llama)["sites"] == apart["sites"]
    named = Path(shutil.copy(llama, tmp_path / "a=b.onnx"))
    assert report_of("list", "--dim", "batch=1..8", named)["target"]["dims"] == ["batch=1..8"]
    assert run("list", llama, "--dim", "batch=1..8", "seq=").code == 2


def test_dim_that_breaks_a_limit_is_a_refusal(llama: Path) -> None:
    report = report_of("list", llama, "--dim", "batch=5000", "--dim", "seq=8")
    assert counts_of(report, "rotary")["fused"] == 0
    assert all("5000" in site["because"] or "batch" in site["because"] for site in report["sites"] if site["kind"] == "rotary")


def test_dim_that_the_model_does_not_have(llama: Path) -> None:
    warnings = report_of("list", llama, "--dim", "sequence=128")["warnings"]
    assert any("--dim sequence: no input" in w["message"] and "seq, " in w["message"] for w in warnings), warnings
    assert not any("--dim" in w["message"] for w in report_of("list", llama, "--dim", "seq=128")["warnings"])


def test_strict_refuses_what_rests_on_an_assumption(llama: Path) -> None:
    report = report_of("list", llama, "--strict")
    assert all(not site["assumptions"] for site in report["sites"] if site["state"] == "fused")
    assert counts_of(report, "attention")["left"] == 2
    assert all(site["because"].startswith("--strict: ") for site in report["sites"] if site["kind"] == "attention")


@pytest.mark.parametrize(("style", "cann"), [("X", "8.1"), ("N", "2026.07")])
def test_style(llama: Path, tmp_path: Path, style: str, cann: str) -> None:
    report = report_of("optimize", llama, "-o", tmp_path / "o.onnx", "--style", style, "--cann", cann)
    assert report["target"]["style"] == style
    model = onnx.load(tmp_path / "o.onnx")
    domains = {node.domain for node in model.graph.node}
    assert domains == {"npu", "ai.onnx" if style == "X" else ""}
    assert {entry.domain: entry.version for entry in model.opset_import} == {"ai.onnx" if style == "X" else "": 17, "npu": 1}


def test_style_that_the_target_cannot_read(llama: Path, tmp_path: Path) -> None:
    result = run("optimize", llama, "-o", tmp_path / "o.onnx", "--style", "N")
    assert result.code in (1, 2)
    assert "E16005" in result.err
    result = run("optimize", llama, "-o", tmp_path / "o.onnx", "--style", "D")
    assert result.code in (1, 2)
    assert "NPUPromptFlashAttention has no name in the default domain at opset 17" in result.err
    assert list(tmp_path.iterdir()) == []


def test_unknown_target_lists_what_there_is(llama: Path) -> None:
    result = run("optimize", llama, "--target", "tpu")
    assert result.code == 2
    for chip in ("ascend310p", "ascend910_93", "ascend910b", "ascend950"):
        assert chip in result.err


@pytest.mark.parametrize("name", ["Ascend910B4", "Ascend310P3"])
def test_target_by_soc_version(llama: Path, name: str) -> None:
    assert report_of("list", llama, "--target", name)["target"]["chip"] == name.lower()[:10]


def test_precision_mode_that_keeps_types(llama: Path) -> None:
    report = report_of("list", llama, "--precision-mode", "must_keep_origin_dtype", "--dim", "seq=5")
    assert counts_of(report, "attention")["fused"] == 0
    assert all("float" in site["because"] for site in report["sites"] if site["kind"] == "attention")


def test_dump_writes_the_model_after_each_pass(llama: Path, tmp_path: Path) -> None:
    result = run("optimize", llama, "-o", tmp_path / "o.onnx", "--dump", tmp_path / "passes", "--quiet")
    assert result.code == 0, result.err
    assert len(list((tmp_path / "passes").iterdir())) >= 3


@pytest.mark.parametrize("model_id", [LLAMA, BERT, "gpt2-sdpa-nocache-dy18-dynamic", "t5-gated-sdpa-ts14-static"])
def test_print_is_text_that_onnx_parses(zoo: Path, tmp_path: Path, model_id: str) -> None:
    run_ok("optimize", zoo / f"{model_id}.onnx", "-o", tmp_path / "o.onnx", "--quiet")
    for path in (zoo / f"{model_id}.onnx", tmp_path / "o.onnx"):
        run_ok("print", path, "--max-elements", "-1", "-o", tmp_path / "m.txt")
        parsed = onnx.parser.parse_model((tmp_path / "m.txt").read_text())
        model = onnx.load(path)
        assert [(n.op_type, list(n.input), list(n.output)) for n in parsed.graph.node] == [
            (n.op_type, list(n.input), list(n.output)) for n in model.graph.node]


def test_print_elides_weights(llama: Path) -> None:
    text = run_ok("print", llama).out
    assert len(text) < 200_000
    assert '"model.embed_tokens.weight" = {...' in text


def test_expand_of_a_model_without_npu_nodes_changes_no_byte(bert: Path, tmp_path: Path) -> None:
    run_ok("expand", bert, "-o", tmp_path / "e.onnx", "--quiet")
    assert (tmp_path / "e.onnx").read_bytes() == bert.read_bytes()


def test_expand_of_an_unknown_npu_node_names_it(tmp_path: Path) -> None:
    model = mish_model(tmp_path / "m.onnx")
    (tmp_path / "mish.rule").write_text(MISH_RULE)
    run_ok("optimize", model, "-o", tmp_path / "o.onnx", "--rules", tmp_path / "mish.rule", "--quiet")
    result = run("expand", tmp_path / "o.onnx", "-o", tmp_path / "e.onnx")
    if result.code:
        assert "NPUMish" in result.err and not (tmp_path / "e.onnx").exists()


def test_rules_lists_every_rule_with_its_sentence() -> None:
    text = run_ok("rules").out
    written = {name for path in (ROOT / "patterns").rglob("*.rule")
               for name in re.findall(r"^rule (\w+)", path.read_text(), re.MULTILINE)}
    lines = text.splitlines()
    rows = {line.split()[0]: index for index, line in enumerate(lines) if re.match(r"^  \w", line)}
    assert set(rows) == written
    for name, index in rows.items():
        assert re.search(r"patterns/[\w/]+\.rule:\d+$", lines[index]), lines[index]
        assert index + 1 < len(lines) and lines[index + 1].startswith("      "), f"{name} has no sentence"


def test_zero_fusions_are_never_silent(tmp_path: Path) -> None:
    values = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [2]) for name in "xy"]
    graph = helper.make_graph([helper.make_node("Abs", ["x"], ["y"])], "g", [values[0]], [values[1]])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]), tmp_path / "m.onnx")
    assert "No site of any kind was found" in run_ok("list", tmp_path / "m.onnx").out


def test_help_names_every_command() -> None:
    text = run_ok("--help").out
    for command in ("optimize", "list", "expand", "verify", "print", "rules"):
        assert re.search(rf"^  {command} ", text, re.MULTILINE)
