"""The Python package: every public function over every kind of model, passes and progress in Python, what it raises, how long
an import and a call take, and that types and documentation are complete."""

from __future__ import annotations

import dataclasses
import gc
import inspect
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import onnx
import onnx_ir
import pytest
from conftest import BUILD, ROOT, TOOL, run, run_ok

import ascend_fuse
from ascend_fuse import report as report_records

MODEL = "llama-sdpa-past-ts17-dynamic.onnx"
SMALL = """
<ir_version: 8, opset_import: ["" : 17]>
small (float[batch, 8] x) => (float[batch, 8] y)
<float two = {2}, float half = {0.5}>
{
  [double] d = Mul (two, x)
  [gate] g = Sigmoid (d)
  [swish] s = Mul (d, g)
  [halve] y = Mul (s, half)
}
"""
MISH = """
rule my_mish <kind = mish> (x) => (y)
match { y = Mul (x, Sinh (x)) }
emit  { y = ascend_fuse.Mish (x) }

rule my_npu_mish <kind = mish> (x) => (y)
match { y = ascend_fuse.Mish (x) }
emit  { y = npu.NPUMish (x) }
"""


@pytest.fixture(scope="module")
def llama(zoo: Path) -> Path:
    return zoo / MODEL


@pytest.fixture(scope="module")
def by_program(llama: Path, tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """What the program makes of it."""
    path = tmp_path_factory.mktemp("by_program") / "out.onnx"
    run_ok("optimize", llama, "-o", path, "--quiet")
    return path.read_bytes()


@pytest.fixture
def small() -> onnx.ModelProto:
    return onnx.parser.parse_model(SMALL)


def ops(model: onnx.ModelProto) -> list[str]:
    return [node.op_type for node in model.graph.node]


# --- the functions, and kinds of models ---


def test_a_path_and_the_program_agree(llama: Path, by_program: bytes, tmp_path: Path) -> None:
    before = llama.read_bytes()
    result = ascend_fuse.optimize(llama)
    assert result.to_bytes() == by_program
    result.save(tmp_path / "out.onnx")
    assert (tmp_path / "out.onnx").read_bytes() == by_program
    assert isinstance(result.model, onnx.ModelProto) and llama.read_bytes() == before
    assert result.report.summary.sites["attention"] == report_records.KindCount(found=2, fused=2)
    assert {site.emitted_op for site in result.report.of("attention", "fused")} == {"npu.NPUPromptFlashAttention"}


def test_bytes_give_bytes(llama: Path, by_program: bytes) -> None:
    given = llama.read_bytes()
    result = ascend_fuse.optimize(given)
    assert result.model == by_program == result.to_bytes()
    assert given == llama.read_bytes()


def test_an_onnx_model_gives_one(llama: Path, by_program: bytes) -> None:
    given = onnx.load(llama)
    copy = given.SerializeToString()
    result = ascend_fuse.optimize(given)
    assert isinstance(result.model, onnx.ModelProto)
    assert result.model == onnx.load_model_from_string(by_program)
    assert given.SerializeToString() == copy


def test_an_onnx_ir_model_gives_one(llama: Path, by_program: bytes) -> None:
    result = ascend_fuse.optimize(onnx_ir.load(llama))
    assert isinstance(result.model, onnx_ir.Model)
    kinds = [node.op_type for node in result.model.graph]
    assert kinds == ops(onnx.load_model_from_string(by_program))


def test_external_data_stays_where_it_is(llama: Path, tmp_path: Path) -> None:
    onnx.save_model(onnx.load(llama), tmp_path / "m.onnx", save_as_external_data=True, location="m.data", size_threshold=64)
    data = (tmp_path / "m.data").read_bytes()
    result = ascend_fuse.optimize(tmp_path / "m.onnx")
    result.save(tmp_path / "out.onnx")
    by_ir = ascend_fuse.optimize(onnx_ir.load(tmp_path / "m.onnx"))
    tensors = [v.const_value for v in by_ir.model.graph.initializers.values() if isinstance(v.const_value, onnx_ir.ExternalTensor)]
    assert tensors and all(np.isfinite(t.numpy()).all() for t in tensors if t.dtype == onnx_ir.DataType.FLOAT)
    assert ascend_fuse.verify(tmp_path / "m.onnx", tmp_path / "out.onnx", tool=TOOL).ok
    assert (tmp_path / "m.data").read_bytes() == data
    without = onnx.load(tmp_path / "m.onnx", load_external_data=False)
    assert ascend_fuse.optimize(without, base_dir=tmp_path).report.summary.sites["attention"].fused == 2


def test_weights_may_stay_in_the_input(llama: Path, tmp_path: Path) -> None:
    model = Path(shutil.copy(llama, tmp_path / "m.onnx"))
    result = ascend_fuse.optimize(model)
    result.save(tmp_path / "reference.onnx", weights="reference")
    result.save(tmp_path / "one.onnx", weights="one.data")
    assert (tmp_path / "one.data").is_file()
    assert (tmp_path / "reference.onnx").stat().st_size < len(result.to_bytes())
    arrays = [[onnx.numpy_helper.to_array(tensor).tobytes() for tensor in onnx.load(tmp_path / name).graph.initializer]
              for name in ("reference.onnx", "one.onnx")]
    assert arrays[0] == arrays[1] == [onnx.numpy_helper.to_array(tensor).tobytes() for tensor in result.model.graph.initializer]


def test_other_things_are_no_models() -> None:
    with pytest.raises(TypeError, match="a model is a path, bytes, an onnx.ModelProto"):
        ascend_fuse.optimize(5)


def test_list_changes_nothing_and_says_the_same(llama: Path) -> None:
    listed = ascend_fuse.list_opportunities(llama)
    assert listed.sites == ascend_fuse.optimize(llama).report.sites
    assert "can be fused" in listed.to_text()


def test_check(llama: Path, by_program: bytes) -> None:
    found = ascend_fuse.check(llama)
    assert found.findings and all(ascend_fuse.explain(finding.code) for finding in found.findings)
    assert found.to_text() and not ascend_fuse.check(by_program).fatal
    top_k = onnx.parser.parse_model('<ir_version: 8, opset_import: ["": 17]> g (float[4] x) => (float[N] y) { y = NonZeroed (x) }')
    assert [finding.effect for finding in ascend_fuse.check(top_k).fatal] == ["no_parser"]


def test_expand_and_verify(llama: Path, by_program: bytes) -> None:
    expanded = ascend_fuse.expand(by_program)
    assert not [node for node in onnx.load_model_from_string(expanded.model).graph.node if node.domain]
    verified = ascend_fuse.verify(llama, ascend_fuse.optimize(llama), tool=TOOL)
    assert verified.ok and verified.regions
    assert "PromptFlashAttention" in expanded.to_text() or "Softmax" in expanded.to_text()


def test_explain_and_targets() -> None:
    assert "way out" in ascend_fuse.explain("scale-is-zero")
    assert "scale-is-zero" in ascend_fuse.explain()
    with pytest.raises(ascend_fuse.NotFoundError, match="did you mean scale-is-zero"):
        ascend_fuse.explain("scale-is-zer")
    assert "ascend910b" in ascend_fuse.chips() and "ascend910b" in ascend_fuse.targets()
    assert "NPURmsNorm" in ascend_fuse.targets("ascend910b") and "NPURmsNorm" in ascend_fuse.targets("ascend910b", "NPURmsNorm")
    with pytest.raises(ascend_fuse.NotFoundError):
        ascend_fuse.targets("no_chip")


# --- options ---


def test_options_mean_what_flags_mean(llama: Path, tmp_path: Path) -> None:
    path = tmp_path / "out.onnx"
    run_ok("optimize", llama, "-o", path, "--quiet", "--target", "ascend310p", "--dim", "batch=1..4", "--skip", "rotary,rms_norm")
    result = ascend_fuse.optimize(llama, target="ascend310p", dims={"batch": (1, 4)}, skip=["rotary", "rms_norm"])
    assert result.to_bytes() == path.read_bytes()
    assert not ascend_fuse.optimize(llama, limit=0).report.of("rms_norm", "fused")
    assert ascend_fuse.optimize(llama, dims={"batch": 2}, strict=True).report.of("rotary", "fused")
    assert ascend_fuse.optimize(llama, assume={"attention_mask": "ones"}).report.sites


@pytest.mark.parametrize(("options", "error", "message"), [
    ({"target": "no_chip"}, ascend_fuse.NotFoundError, "ascend910b"),
    ({"skip": ["no_rule"]}, ascend_fuse.InvalidError, "no kind, rule or node is called that"),
    ({"dims": {"batch": (4, 1)}}, ascend_fuse.InvalidError, "expected name=N"),
    ({"rules": ["no such.rule"]}, ascend_fuse.NotFoundError, "cannot be read"),
    ({"rules": ["rule broken\n"]}, ascend_fuse.InvalidError, "rule 1:"),
    ({"require": ["no_kind"]}, ascend_fuse.InvalidError, "the kinds are"),
    ({"assume": {"x": "round"}}, ascend_fuse.InvalidError, "expected INPUT="),
])
def test_wrong_options_raise_a_sentence(llama: Path, options: dict[str, object], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        ascend_fuse.optimize(llama, **options)


def test_wrong_models_raise_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(ascend_fuse.NotFoundError, match=r"no\.onnx"):
        ascend_fuse.optimize(tmp_path / "no.onnx")
    with pytest.raises(ascend_fuse.InvalidError):
        ascend_fuse.optimize(b"this is not a model")
    with pytest.raises(ascend_fuse.InvalidError):
        ascend_fuse.optimize(b"")


def test_require(llama: Path) -> None:
    assert ascend_fuse.optimize(llama, require=["attention", "rotary"]).report
    with pytest.raises(ascend_fuse.RequirementNotMet, match="--require glu: 2 of 2 left: stock ATC") as raised:
        ascend_fuse.optimize(llama, require="glu")
    assert isinstance(raised.value.report, ascend_fuse.Report)
    with pytest.raises(ascend_fuse.RequirementNotMet, match="no mish was found"):
        ascend_fuse.optimize(llama, require=["mish"])


def test_rules_by_text_and_by_path(tmp_path: Path) -> None:
    model = onnx.parser.parse_model(
        '<ir_version: 8, opset_import: ["": 17]> g (float[2, 8] x) => (float[2, 8] y) { s = Sinh (x) y = Mul (x, s) }')
    assert not ascend_fuse.list_opportunities(model).sites
    (tmp_path / "mish.rule").write_text(MISH)
    for rule in (MISH, tmp_path / "mish.rule"):
        assert [site.kind for site in ascend_fuse.list_opportunities(model, rules=[rule]).sites] == ["mish"]


# --- passes in Python ---


def double_as_add(graph: ascend_fuse.Graph, rewriter: ascend_fuse.Rewriter) -> None:
    """Mul (x, 2) as Add (x, x)."""
    for mul in graph.nodes("Mul"):
        for i, x in enumerate(mul.inputs):
            if mul.site is None and mul.inputs[1 - i].splat == 2 and x.shape == mul.outputs[0].shape:
                rewriter.replace([mul.outputs[0]], "Add", [x, x], name=mul.name)
                break


def test_a_pass_rewrites(small: onnx.ModelProto) -> None:
    result = ascend_fuse.optimize(small, passes=[ascend_fuse.Pass(double_as_add, after="recognise")])
    assert ops(result.model) == ["Add", "Sigmoid", "Mul", "Mul"]
    assert result.model.graph.node[0].name == "double" and [i.name for i in result.model.graph.initializer] == ["half"]
    assert {run.name: run.changes for run in result.report.passes}["double_as_add"] > 0
    assert ops(small) == ["Mul", "Sigmoid", "Mul", "Mul"]


@pytest.mark.parametrize("stage", ["inline", "infer", "recognise", "lower", "restore", "keep_calls"])
def test_a_pass_may_stand_anywhere(small: onnx.ModelProto, stage: str) -> None:
    def insert(graph: ascend_fuse.Graph, rewriter: ascend_fuse.Rewriter) -> None:
        y = graph.outputs[0]
        half = rewriter.constant(np.float32(4).tobytes(), "float", [], "four")
        mul = y.producer
        kept = rewriter.insert("Neg", [mul.inputs[0]], name="minus")
        rewriter.replace([y], "Mul", [kept.outputs[0], half])

    before = ascend_fuse.Pass(insert, before=stage)
    model = ascend_fuse.optimize(small, passes=[before]).model
    assert "Neg" in ops(model)
    onnx.checker.check_model(model)
    assert "insert" in {run.name for run in ascend_fuse.list_opportunities(small, passes=[before]).passes}


def test_what_a_pass_sees(small: onnx.ModelProto) -> None:
    seen: dict[str, object] = {}

    def look(graph: ascend_fuse.Graph, rewriter: ascend_fuse.Rewriter) -> None:
        mul = graph.nodes("Mul")[0]
        two, x = mul.inputs
        seen.update(name=mul.name, domain=mul.domain, opset=graph.opset, dtype=x.dtype, shape=x.shape, elements=two.elements,
                    constant=two.is_constant, input=x.is_input, output=graph.outputs[0].is_output,
                    consumers=[node.op_type for node in mul.outputs[0].consumers], same=x == graph.inputs[0],
                    producer=mul.outputs[0].producer == mul, alive=mul.alive, text=repr(mul), value=repr(x), count=len(graph.nodes()))
        assert x != two and len({x, graph.inputs[0]}) == 1

    ascend_fuse.list_opportunities(small, passes=[ascend_fuse.Pass(look, after="number")])
    assert seen == {
        "name": "double", "domain": "", "opset": 17, "dtype": "float", "shape": ("batch", 8), "elements": [2.0],
        "constant": True, "input": True, "output": True, "consumers": ["Sigmoid", "Mul"], "same": True, "producer": True,
        "alive": True, "text": "<Node d = Mul (two, x)>", "value": "<Value x: float[batch, 8]>", "count": 4}


def test_a_pass_that_breaks_the_graph_is_found(small: onnx.ModelProto) -> None:
    def make_cycle(graph: ascend_fuse.Graph, rewriter: ascend_fuse.Rewriter) -> None:
        rewriter.set_input(graph.nodes()[0], 0, graph.outputs[0])

    def replace_cycle(graph: ascend_fuse.Graph, rewriter: ascend_fuse.Rewriter) -> None:
        rewriter.replace([graph.nodes()[0].outputs[0]], "Relu", [graph.outputs[0]])

    for broken in (make_cycle, replace_cycle):
        with pytest.raises(ascend_fuse.BrokenGraphError, match=f"after the pass {broken.__name__}: .*cycle"):
            ascend_fuse.optimize(small, passes=[ascend_fuse.Pass(broken, after="number")])


def test_wrong_changes_are_refused(small: onnx.ModelProto) -> None:
    def wrong(graph: ascend_fuse.Graph, rewriter: ascend_fuse.Rewriter) -> None:
        x, node = graph.inputs[0], graph.nodes()[0]
        for call in (
            lambda: rewriter.replace([x], "Relu", [x]),
            lambda: rewriter.replace([], "Relu", [x]),
            lambda: rewriter.replace([node.outputs[0], node.outputs[0]], "Split", [x]),
            lambda: rewriter.insert("", [x]),
            lambda: rewriter.insert("Relu", [x], outputs=0),
            lambda: rewriter.set_input(node, 7, x),
            lambda: rewriter.constant(b"123", "float", [1]),
            lambda: rewriter.constant(b"", "string", []),
            lambda: rewriter.constant(b"", "float", [-1]),
            lambda: rewriter.insert("Relu", [x], {"alpha": {}}),
        ):
            with pytest.raises((ValueError, IndexError, TypeError)):
                call()

    result = ascend_fuse.optimize(small, passes=[ascend_fuse.Pass(wrong, after="number")])
    assert ops(result.model) == ["Mul", "Sigmoid", "Mul", "Mul"]


def test_what_a_pass_keeps_is_dead_afterwards(small: onnx.ModelProto) -> None:
    kept: list[object] = []
    ascend_fuse.optimize(small, passes=[ascend_fuse.Pass(lambda graph, rewriter: kept.extend((graph, rewriter, graph.nodes()[0], graph.inputs[0])),
                                                         after="number", name="keep")])
    gc.collect()
    graph, rewriter, node, value = kept
    for use in (lambda: graph.nodes(), lambda: node.name, lambda: value.shape, lambda: rewriter.insert("Relu", [])):
        with pytest.raises(RuntimeError, match="the pass has ended"):
            use()
    assert repr(node) and repr(value) and node == node and hash(value)


def test_what_a_pass_raises_is_raised(small: onnx.ModelProto) -> None:
    def fail(graph: ascend_fuse.Graph, rewriter: ascend_fuse.Rewriter) -> None:
        raise LookupError("nothing here")

    with pytest.raises(LookupError, match="nothing here"):
        ascend_fuse.optimize(small, passes=[ascend_fuse.Pass(fail, after="number")])
    with pytest.raises(ascend_fuse.InvalidError, match="unknown stage .*; stages are inline"):
        ascend_fuse.optimize(small, passes=[ascend_fuse.Pass(fail, after="nowhere")])
    with pytest.raises(ValueError, match="either before or after"):
        ascend_fuse.Pass(fail)


# --- progress, interrupts, threads ---


def test_progress_is_told(llama: Path, tmp_path: Path) -> None:
    told: list[tuple[str, int, int]] = []
    result = ascend_fuse.optimize(llama, progress=lambda *at: told.append(at))
    assert list(dict.fromkeys(name for name, _, _ in told)) == ascend_fuse.stages()
    assert told[-1][1] < told[-1][2]
    result.save(tmp_path / "out.onnx", progress=lambda *at: told.append(at))
    assert told[-1] == ("save", (tmp_path / "out.onnx").stat().st_size, (tmp_path / "out.onnx").stat().st_size)
    assert ascend_fuse.optimize(llama, progress=True).report.sites  # without tqdm too


def test_progress_that_raises_ends_the_run(llama: Path, tmp_path: Path) -> None:
    def stop(name: str, number: int, count: int) -> None:
        if name in ("lower", "save"):
            raise StopIteration(name)

    with pytest.raises(StopIteration, match="lower"):
        ascend_fuse.optimize(llama, progress=stop)
    with pytest.raises(StopIteration, match="save"):
        ascend_fuse.optimize(llama).save(tmp_path / "out.onnx", progress=stop)
    assert not list(tmp_path.iterdir())


@pytest.mark.usefixtures("control_c")
def test_control_c_ends_a_run(small: onnx.ModelProto) -> None:
    def interrupt(graph: ascend_fuse.Graph, rewriter: ascend_fuse.Rewriter) -> None:
        os.kill(os.getpid(), signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        ascend_fuse.optimize(small, passes=[ascend_fuse.Pass(interrupt, after="number")])


@pytest.mark.usefixtures("control_c")
def test_control_c_within_a_pass_ends_a_run(llama: Path) -> None:
    """A signal that comes while C++ works is seen before the run is over."""
    threading.Timer(0.3, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
    with pytest.raises(KeyboardInterrupt):
        for _ in range(1000):
            ascend_fuse.list_opportunities(llama)


def test_two_models_in_two_threads(llama: Path, by_program: bytes) -> None:
    results: list[bytes] = []
    threads = [threading.Thread(target=lambda: results.append(ascend_fuse.optimize(llama).to_bytes())) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [by_program] * 3


def test_the_lock_of_the_interpreter_is_free_meanwhile(llama: Path) -> None:
    """Another thread goes on between two times that a run of the same length asks for signals."""
    turns = 0
    done = threading.Event()

    def count() -> None:
        nonlocal turns
        while not done.is_set():
            turns += 1
            time.sleep(0)

    old = sys.getswitchinterval()
    sys.setswitchinterval(10)  # no thread gives the lock away by itself
    try:
        counter = threading.Thread(target=count)
        counter.start()
        for _ in range(10):  # a busy machine gives the other thread few turns
            ascend_fuse.list_opportunities(llama)
        done.set()
        counter.join()
    finally:
        sys.setswitchinterval(old)
    assert turns > 10


def test_a_model_is_for_one_thread_at_a_time(small: onnx.ModelProto) -> None:
    result = ascend_fuse.optimize(small)

    def save_itself(name: str, number: int, count: int) -> None:
        with pytest.raises(ascend_fuse.RefusedError, match="another thread works on this model"):
            result.to_bytes()

    from ascend_fuse import api

    api._run(result._loaded, "list", [], (), (), save_itself)


# --- the report ---


def test_a_result_is_shown_in_one_line(llama: Path) -> None:
    result = ascend_fuse.optimize(llama)
    assert repr(result) == f"<Result {llama} for ascend910b: 11 of 17 sites fused, nodes 612 -> 74>"
    assert repr(result.report).startswith("<Report of optimize, ") and str(result.report) == result.report.to_text()
    assert repr(ascend_fuse.check(llama)).endswith(" findings, 0 fatal>")


def test_records_are_those_of_the_message() -> None:
    """Every message of proto/report.proto is a record with the same names."""
    text = re.sub(r"//.*", "", (ROOT / "proto" / "report.proto").read_text())
    names = {"Pass": "PassRun"}
    for name, body in [*re.findall(r"  message (\w+) \{(.*?)\n  \}", text, re.DOTALL), ("Report", re.sub(r"  message .*?\n  \}", "", text.split("message Report {")[1], flags=re.DOTALL))]:
        fields = set(re.findall(r"(\w+) = \d+;", body))
        record = getattr(report_records, names.get(name, name))
        assert {field.name for field in dataclasses.fields(record)} - {"json", "command"} == fields, name


def test_dims_of_another_form_are_refused_with_a_sentence(llama: Path) -> None:
    dims = {"batch": np.int64(2), "seq": [1, np.int32(8)]}
    assert ascend_fuse.optimize(llama, dims=dims, strict=True).report.of("rotary", "fused")
    for wrong in ((1,), 2.5):
        with pytest.raises(TypeError, match=r"batch is a number, \(low, high\), \(low, high, step\) or a name, not"):
            ascend_fuse.optimize(llama, dims={"batch": wrong})
    assert ascend_fuse.optimize(llama, dims={"batch": "rows"}).report.warnings[0].code == "dim-unknown"


def test_fix_is_an_option_wherever_the_program_has_it(llama: Path) -> None:
    assert not ascend_fuse.list_opportunities(llama, fix={"batch": 1}, prefer="NPUSwiGlu").of("rotary", "left")
    assert ascend_fuse.check(llama, fix={"batch": 1}).findings == ascend_fuse.check(llama, dims={"batch": 1}).findings


def test_a_report_is_what_the_program_writes(llama: Path) -> None:
    by_program = json.loads(run_ok("list", llama, "--json", "-").out)
    listed = ascend_fuse.list_opportunities(llama)
    ours = json.loads(listed.to_json())
    for report in (by_program, ours):
        report["passes"] = [run["name"] for run in report["passes"]]
    assert ours == by_program
    again = ascend_fuse.Report.from_json(listed.to_json(), "list")
    assert again == listed
    assert len(listed.to_text(verbose=True)) > len(listed.to_text())


def test_a_report_in_a_notebook(llama: Path, tmp_path: Path) -> None:
    result = ascend_fuse.optimize(llama)
    shown = result._repr_html_()
    assert shown in result.report.to_html() and not shown.startswith("<!DOCTYPE")
    assert "NPUPromptFlashAttention" in shown and "stock ATC has no ONNX parser for SwiGlu" in shown
    found = ascend_fuse.check(llama)._repr_html_()
    assert ">operator</th>" in found and ">kind</th>" not in found
    run("check", llama, "--report", tmp_path / "r.html", "--quiet")  # 4: it finds what ATC refuses
    assert (tmp_path / "r.html").read_text() == ascend_fuse.check(llama).to_html()
    named = json.dumps({"schema": 1, "model": "<i>&\x1b"})
    assert "<h1>&lt;i&gt;&amp;\\x1b</h1>" in ascend_fuse.Report.from_json(named)._repr_html_()


# --- types, documentation, cost ---


@pytest.mark.slow
def test_types(tmp_path: Path) -> None:
    """mypy --strict of the package, and of a program that uses it."""
    user = tmp_path / "user.py"
    user.write_text('''
import ascend_fuse


def look(graph: ascend_fuse.Graph, rewriter: ascend_fuse.Rewriter) -> None:
    for node in graph.nodes("Mul"):
        value = node.inputs[0]
        if value is not None and value.shape is not None:
            reveal_type(value.shape)


result = ascend_fuse.optimize("m.onnx", dims={"batch": 4, "seq": (1, 8)}, passes=[ascend_fuse.Pass(look, after="infer")])
reveal_type(result.report.sites[0].because)
count: int = result.report.summary.sites["attention"].fused
''')
    package = ROOT / "tools" / "python" / "ascend_fuse"
    sources = [package / name for name in ("__init__.py", "_core.py", "_graph.py", "_library.py", "api.py", "errors.py", "passes.py", "report.py")]
    done = subprocess.run([sys.executable, "-m", "mypy", "--strict", "--follow-imports=silent", "--cache-dir", tmp_path / "cache", *sources, user],
                          capture_output=True, text=True, env=dict(os.environ, MYPYPATH=str(package.parent)))
    assert "Success" in done.stdout, done.stdout + done.stderr
    assert done.stdout.count('Revealed type is "str"') == 1 or done.stdout.count('"builtins.str"') == 1, done.stdout


def says(of: object) -> bool:
    """Whether something has a text of its own."""
    return bool((inspect.getdoc(of) or "").strip())


def test_everything_public_is_documented() -> None:
    bare = []
    for name in ascend_fuse.__all__:
        of = getattr(ascend_fuse, name)
        if isinstance(of, str) or name == "ModelLike":
            continue
        if not says(of):
            bare.append(name)
        if inspect.isclass(of):
            bare += [f"{name}.{member}" for member, value in vars(of).items() if not member.startswith("_") and not says(value)
                     and (callable(value) or isinstance(value, property))]
    assert not bare
    documented = (ROOT / "docs" / "python.md").read_text()
    assert not [name for name in ascend_fuse.__all__ if name not in documented]


def test_importing_brings_nothing_heavy() -> None:
    """bench/python_package.py has the time."""
    program = "import sys, ascend_fuse; ascend_fuse.optimize; print(*sorted({name.split('.')[0] for name in sys.modules}))"
    printed = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True,
                             env=dict(os.environ, PYTHONPATH=str(BUILD / "python"))).stdout.split()
    assert "ascend_fuse" in printed and not {"numpy", "onnx", "onnxruntime", "onnx_ir", "torch", "tqdm"} & set(printed)


def test_a_call_does_little_in_python(small: onnx.ModelProto) -> None:
    """Counted, for times depend on what else the machine does: a small model is through in a thousand calls of functions."""
    data = small.SerializeToString()
    ascend_fuse.optimize(data)
    calls = 0

    def count(frame: object, event: str, argument: object) -> None:
        nonlocal calls
        calls += event == "call"

    sys.setprofile(count)
    try:
        ascend_fuse.optimize(data)
    finally:
        sys.setprofile(None)
    assert 10 < calls < 3000
