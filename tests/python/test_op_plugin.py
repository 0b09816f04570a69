"""The op plugin (plugin/): compiled against small headers that declare ATC's interface, and asked to read nodes.

tests/plugin/driver.cc stands for ATC. What it hands to a parser is written here as ATC writes it: hicann/ge
parser/common/convert/message2operator.cc and pb2json.cc.
"""

from __future__ import annotations

import fcntl
import importlib.machinery
import importlib.util
import json
import os
import re
import struct
import subprocess
from pathlib import Path
from typing import Any

import onnx
import op_plugin
import pipeline
import pytest
from conftest import ROOT, run, run_ok
from onnx import AttributeProto, NodeProto, helper
from op_plugin import PLUGIN, key_of, node_names, plugin_nodes

HEADERS = ROOT / "tests" / "plugin" / "include"
DRIVER = ROOT / "tests" / "plugin" / "driver.cc"
SOURCES = ["attributes.cc", "node.cc", "parsers.cc"]
WARNINGS = ["-Wall", "-Wextra", "-Wpedantic", "-Wshadow", "-Wconversion", "-Werror"]

# node: GE operator, what is set of it with its type, outputs that there are
NODES = {
    "NPUSwiGlu": ("SwiGlu", {"dim": "int64"}),
    "NPUGeGluV2": ("GeGluV2", {"dim": "int64", "approximate": "int64", "activate_left": "bool"}),
    "NPUSwish": ("Swish", {"scale": "float"}),
    "NPURmsNormWithEpsilon": ("RmsNorm", {"epsilon": "float"}),
    "NPUAddRmsNormWithEpsilon": ("AddRmsNorm", {"epsilon": "float"}),
    "NPUAddRmsNormQuant": ("AddRmsNormQuant", {"epsilon": "float", "div_mode": "bool"}),
    "NPUAddRmsNormDynamicQuant": ("AddRmsNormDynamicQuant", {"epsilon": "float"}),
    "NPULayerNormV4": ("LayerNormV4", {"epsilon": "float"}),
    "NPUAddLayerNorm": ("AddLayerNorm", {"epsilon": "float", "additional_output": "bool"}),
    "NPUApplyRotaryPosEmb": ("ApplyRotaryPosEmb", {"layout": "int64"}),
    "NPUFusedMatMul": ("FusedMatMul", {"fused_op_type": "text"}),
    "NPUGelu": ("Gelu", {}),
    "NPUGroupNorm": ("GroupNormSilu", {"num_groups": "int64", "eps": "float", "activate_silu": "bool"}),
    "NPUPromptFlashAttentionDirect": ("PromptFlashAttention", {
        "num_heads": "int64", "input_layout": "text", "scale_value": "float", "pre_tokens": "int64",
        "next_tokens": "int64", "num_key_value_heads": "int64", "sparse_mode": "int64", "inner_precise": "int64"}),
    "NPUFusedInferAttentionScore": ("FusedInferAttentionScore", {
        "num_heads": "int64", "scale": "float", "input_layout": "text", "num_key_value_heads": "int64",
        "pre_tokens": "int64", "next_tokens": "int64", "sparse_mode": "int64", "inner_precise": "int64"}),
    "NPUInterleaveRope": ("InterleaveRope", {}),
    "NPUQuantBatchMatMul": ("QuantBatchMatmulV3", {"dtype": "int64", "transpose_x1": "bool", "transpose_x2": "bool"}),
    "NPUWeightQuantBatchMatmulTurned": ("WeightQuantBatchMatmulV2", {"transpose_weight": "bool"}),
}


def compile_driver(folder: Path, standard: int, abi: int, plugin: Path = PLUGIN) -> Path:
    """The library with one setting, in a driver with the other one: what passes between them must not depend on it."""
    library, driver = folder / "libplugin.so", folder / "driver"
    include = ["-I", str(HEADERS), "-I", str(plugin)]
    subprocess.run(
        ["g++", f"-std=c++{standard}", f"-D_GLIBCXX_USE_CXX11_ABI={abi}", *WARNINGS, "-fPIC", "-shared", "-fvisibility=hidden",
         *include, *(str(plugin / name) for name in SOURCES), "-o", str(library)], check=True)  # fmt: skip
    subprocess.run(
        ["g++", "-std=c++17", f"-D_GLIBCXX_USE_CXX11_ABI={1 - abi}", *WARNINGS, *include, str(DRIVER), "-rdynamic",
         "-Wl,--no-as-needed", str(library), f"-Wl,-rpath,{folder}", "-o", str(driver)], check=True)  # fmt: skip
    return driver


SETTINGS = [(11, 0), *(pytest.param(setting, marks=pytest.mark.slow) for setting in [(11, 1), (17, 0), (17, 1)])]


def compiled(factory: pytest.TempPathFactory, standard: int, abi: int) -> Path:
    """The folder of the library and the driver, which all processes of a run share."""
    shared = factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        shared = shared.parent
    folder = shared / f"plugin-{standard}-{abi}"
    with (shared / f"{folder.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / "done").exists():
            folder.mkdir()
            compile_driver(folder, standard, abi)
            (folder / "done").touch()
    return folder


@pytest.fixture(scope="module", params=SETTINGS, ids=lambda p: f"c++{p[0]}-abi{p[1]}")
def driver(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compiled(tmp_path_factory, *request.param) / "driver"


@pytest.fixture(scope="module")
def one_driver(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compiled(tmp_path_factory, 11, 0) / "driver"


def attribute_text(attribute: AttributeProto, new: bool) -> dict[str, Any]:
    """An attribute as ATC writes it. Old releases leave 0 and "" out, and lose a float that takes more than nine letters."""
    text: dict[str, Any] = {"name": attribute.name, "type": attribute.type}
    if attribute.type == AttributeProto.FLOAT and (new or attribute.f != 0):
        f = f"{attribute.f:g}"
        text["f"] = f if len(f) < 10 else attribute.f if new else ""
    if attribute.type == AttributeProto.INT and (new or attribute.i != 0):
        text["i"] = attribute.i
    if attribute.type == AttributeProto.STRING and (new or attribute.s):
        text["s"] = attribute.s.decode()
    if attribute.type == AttributeProto.FLOATS:
        text["floats"] = list(attribute.floats)
    return text


def ask(driver: Path, node: NodeProto, *, new: bool = True, key: str | None = None) -> list[str]:
    """["made", GE operator, what was set ...], or ["refused", the sentence], or ["unregistered"]."""
    attributes = [attribute_text(attribute, new) for attribute in node.attribute]
    text = json.dumps({"attribute": attributes}) if attributes else "-"
    names = [",".join(name.replace(",", "_") for name in list_) for list_ in (node.input, node.output)]
    line = "\t".join([key or key_of(node, 17), node.name, *names, text])
    done = subprocess.run([str(driver)], input=line + "\n", capture_output=True, text=True, check=True)
    lines = done.stdout.splitlines()
    answer = lines[-1].split("\t")
    return answer if answer[0] != "refused" else ["refused", "\n".join(lines[:-1])]


def as_float32(value: float) -> float:
    return struct.unpack("f", struct.pack("f", value))[0]


def check_made(node: NodeProto, answer: list[str]) -> None:
    """Type, and every attribute with its type: the value of the node, where it gives one and GE has it."""
    operator, types = NODES[node.op_type]
    assert answer[:2] == ["made", operator], answer
    made = dict(text.split(" = ", 1) for text in answer[2:] if " = " in text)
    assert {name: value.split(" ", 1)[0] for name, value in made.items()} == types
    for attribute in node.attribute:
        value = helper.get_attribute_value(attribute)
        value = value[0] if attribute.type == AttributeProto.FLOATS else value
        said = made[attribute.name].split(" ", 1)[1]
        if isinstance(value, bytes):
            assert said == value.decode()
        elif isinstance(value, float):
            assert as_float32(float(said)) == as_float32(value), (node, said)
        else:
            assert int(said) == value


def test_the_folder_is_what_the_generator_writes(tmp_path: Path) -> None:
    run_ok("plugin", "-o", tmp_path / "p")
    written = {path.name: path for path in (tmp_path / "p").iterdir()}
    assert set(written) == {path.name for path in PLUGIN.iterdir()}
    for name, path in written.items():
        assert path.read_text() == (PLUGIN / name).read_text(), f"ascend-fuse plugin -o plugin writes {name} anew"
        assert path.stat().st_mode & 0o111 == (PLUGIN / name).stat().st_mode & 0o111


@pytest.mark.slow
def test_chosen_nodes(tmp_path: Path) -> None:
    run_ok("plugin", "-o", tmp_path / "p", "--nodes", "NPUSwiGlu,NPUSwish")
    driver = compile_driver(tmp_path, 11, 1, tmp_path / "p")
    listed = subprocess.run([str(driver), "list"], capture_output=True, text=True, check=True).stdout
    assert set(re.findall(r"::(\w+)\t", listed)) == {"NPUSwiGlu", "NPUSwish"}
    run_ok("plugin", "-o", tmp_path / "q", "--cann", "8.1")
    source = (tmp_path / "q" / "parsers.cc").read_text()
    assert "NPUSwiGlu" in source
    assert "NPUFusedMatMul" not in source
    wrong = run("plugin", "-o", tmp_path / "r", "--nodes", "NPUSwigLu")
    assert wrong.code == 2
    assert "--nodes NPUSwigLu: the plugin has no such node; there are NPUSwiGlu, " in wrong.err
    assert "--cann 7: there are" in run("plugin", "-o", tmp_path / "r", "--cann", "7").err
    assert not (tmp_path / "r").exists()


def test_all_nodes_are_looked_at() -> None:
    assert node_names() == set(NODES)


def test_what_is_registered(driver: Path) -> None:
    listed = subprocess.run([str(driver), "list"], capture_output=True, text=True, check=True).stdout
    found = dict(line.split("\t", 1) for line in listed.splitlines())
    expected = {}
    for node, (operator, _) in NODES.items():
        for key in ("npu::1", *(f"ai.onnx::{opset}" for opset in range(11, 19))):
            expected[f"{key}::{node}"] = f"{operator}\t1"
    assert found == expected


@pytest.mark.slow
def test_no_symbol_of_atc_depends_on_the_abi(tmp_path_factory: pytest.TempPathFactory) -> None:
    symbols = []
    for standard, abi in ((11, 0), (17, 1)):
        command = ["nm", "-D", "--undefined-only", str(compiled(tmp_path_factory, standard, abi) / "libplugin.so")]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        symbols.append({word for word in done.stdout.split() if re.match(r"_ZNK?(2ge|4domi)", word)})
    assert symbols[0] == symbols[1]
    assert len(symbols[0]) > 10


def goldens() -> list[Path]:
    return sorted(path for path in (ROOT / "tests" / "golden" / "plugin").glob("*.onnxtxt") if "-> NPU" in path.read_text())


@pytest.mark.parametrize("golden", goldens(), ids=lambda path: path.stem)
def test_nodes_of_goldens(golden: Path, one_driver: Path, tmp_path: Path) -> None:
    flags = re.search(r"^# RUN: (.*)$", golden.read_text(), re.MULTILINE)
    assert flags is not None
    runs = pipeline.optimize(golden, tmp_path, {"golden": flags[1].split()})
    for node, key in plugin_nodes(onnx.load(runs.targets["golden"].optimized)):
        for new in (False, True):
            check_made(node, ask(one_driver, node, new=new, key=key))


ZOO = ["llama-sdpa-past-dy18-dynamic", "diffusers-unet-sdpa-ts17-dynamic", "bert-sdpa-ts17-dynamic"]


@pytest.mark.parametrize("style", ["X", "N"])
@pytest.mark.parametrize("target", ["ascend310p", "ascend910b", "ascend910_93", "ascend950"])
@pytest.mark.parametrize("model_id", ZOO)
def test_nodes_of_exports(model_id: str, target: str, style: str, one_driver: Path, zoo: Path, tmp_path: Path) -> None:
    flags = ["--target", target, "--plugin", "--style", style, *(["--cann", "2026.07"] if style == "N" else [])]
    run_ok("optimize", zoo / f"{model_id}.onnx", *flags, "-o", tmp_path / "m.onnx")
    found = {}
    for node, key in plugin_nodes(onnx.load(tmp_path / "m.onnx", load_external_data=False)):
        found[key, str(node.attribute), len(node.input)] = node, key
    assert found
    for node, key in found.values():
        check_made(node, ask(one_driver, node, key=key))


# Every node that is made, as it stands in a model that `optimize` made: of the zoo, or of a golden where no model of the zoo
# has it (InterleaveRope is for latent attention; 310P takes a mask of multiples of 128 only).
LLAMA, PHI3 = "llama-sdpa-past-dy18-dynamic", "phi3-sdpa-past-ts17-dynamic"
UNET, BERT, OPT = "diffusers-unet-sdpa-ts17-dynamic", "bert-sdpa-ts17-dynamic", "opt-sdpa-nocache-ts17-dynamic"
FROM = {
    "NPUSwiGlu": (LLAMA, "ascend910b"),
    "NPUGeGluV2": (UNET, "ascend910b"),
    "NPUSwish": (UNET, "ascend310p"),
    "NPURmsNormWithEpsilon": (PHI3, "ascend910_93"),
    "NPUAddRmsNormWithEpsilon": (PHI3, "ascend310p"),
    "NPUAddRmsNormQuant": "plugin/norm_quantised_910b",
    "NPUAddRmsNormDynamicQuant": "plugin/norm_quantised_rows_910b",
    "NPULayerNormV4": (BERT, "ascend950"),
    "NPUAddLayerNorm": (BERT, "ascend310p"),
    "NPUApplyRotaryPosEmb": "rotary/pair_plugin",
    "NPUFusedMatMul": (OPT, "ascend950"),
    "NPUGelu": ("gpt2-sdpa-past-ts17-dynamic", "ascend910b"),
    "NPUGroupNorm": (UNET, "ascend910b"),
    "NPUPromptFlashAttentionDirect": "plugin/attention_masked_310p",
    "NPUFusedInferAttentionScore": (LLAMA, "ascend950"),
    "NPUInterleaveRope": "plugin/interleave_rope_910b",
    "NPUQuantBatchMatMul": "plugin/quant_matmul_opset_18_910b",
    "NPUWeightQuantBatchMatmulTurned": "plugin/weight_turned_310p",
}


def test_every_node_comes_from_somewhere() -> None:
    assert set(FROM) == set(NODES)


@pytest.mark.parametrize("op_type", FROM)
def test_a_node_of_a_model(op_type: str, one_driver: Path, zoo: Path, tmp_path: Path) -> None:
    place = FROM[op_type]
    if isinstance(place, str):
        golden = ROOT / "tests" / "golden" / f"{place}.onnxtxt"
        flags = re.search(r"^# RUN: (.*)$", golden.read_text(), re.MULTILINE)
        assert flags is not None
        model = onnx.load(pipeline.optimize(golden, tmp_path, {"x": flags[1].split()}).targets["x"].optimized)
    else:
        run_ok("optimize", zoo / f"{place[0]}.onnx", "--target", place[1], "--plugin", "-o", tmp_path / "m.onnx")
        model = onnx.load(tmp_path / "m.onnx", load_external_data=False)
    found = [(node, key) for node, key in plugin_nodes(model) if node.op_type == op_type]
    assert found
    for node, key in found:
        for new in (False, True):
            check_made(node, ask(one_driver, node, new=new, key=key))


def node_of(op_type: str, inputs: int = 1, outputs: int = 1, **attributes: Any) -> NodeProto:
    names = [f"x{i}" for i in range(inputs)], [f"y{i}" for i in range(outputs)]
    return helper.make_node(op_type, *names, domain="npu", name="node", **attributes)


REFUSED = {
    "no attribute that must be given": (
        node_of("NPUPromptFlashAttentionDirect", 3, input_layout="BNSD"), "the attribute num_heads is not given"),
    "an attribute of another type": (
        node_of("NPUSwiGlu", dim=-1.0), "the attribute dim is not of type INT"),
    "a list for a number": (
        node_of("NPUSwiGlu", dim=[-1]), "the attribute dim is not of type INT"),
    "a whole number for a fraction": (
        node_of("NPURmsNormWithEpsilon", 2, 2, epsilon=1), "the attribute epsilon is not of type FLOAT"),
    "two numbers for one": (
        node_of("NPURmsNormWithEpsilon", 2, 2, epsilon=[1e-5, 1e-6]), "the attribute epsilon is not of type FLOAT"),
    "no number": (
        node_of("NPURmsNormWithEpsilon", 2, 2, epsilon=float("inf")), "ATC does not hand over the value of the attribute epsilon"),
    "a word that is not known": (
        node_of("NPUFusedMatMul", 2, fused_op_type="tanh"),
        "the attribute fused_op_type is 'tanh', and this version knows '', 'relu', 'gelu_erf'"),
    "a word with a quote": (
        node_of("NPUFusedMatMul", 2, fused_op_type='relu"'), "this version knows '', 'relu'"),
    "a number that is not known": (
        node_of("NPUGeGluV2", 1, 2, approximate=2), "the attribute approximate is 2, and this version knows 0, 1"),
    "too many inputs": (
        node_of("NPUSwiGlu", 2), "it has 2 inputs, and this version knows 1: a newer version of the plugin may know more"),
    "too few inputs": (
        node_of("NPURmsNormWithEpsilon", 1), "the input gamma is not given"),
    "too many outputs": (
        node_of("NPUSwiGlu", 1, 2), "it has 2 outputs, and this version knows 1"),
    "no tables": (
        node_of("NPUInterleaveRope", 1), "the input cos is not given"),
    "an attribute of a newer version": (
        node_of("NPUSwiGlu", dim=-1, swish_limit=7.0),
        "the attribute swish_limit is not known: the model was written for a newer version of the plugin"),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_what_a_parser_refuses(case: str, driver: Path) -> None:
    node, sentence = REFUSED[case]
    word, said = ask(driver, node)
    assert word == "refused"
    assert said.startswith(f"[ERROR] ascend-fuse op plugin, version 3: node 'node' ({node.op_type}): ")
    assert sentence in said
    assert len(said.splitlines()) == 1


def test_an_empty_input_is_none(one_driver: Path) -> None:
    node = helper.make_node("NPURmsNormWithEpsilon", ["x", ""], ["y"], domain="npu", name="node")
    assert "the input gamma is not given" in ask(one_driver, node)[1]
    node = helper.make_node("NPULayerNormV4", ["x", "n", "g", ""], ["y"], domain="npu", name="node")
    check_made(node, ask(one_driver, node))


def test_a_node_that_is_not_registered(one_driver: Path) -> None:
    assert ask(one_driver, node_of("NPUOfVersion99")) == ["unregistered"]


@pytest.mark.parametrize("text", ["", "{", "[]]", '{"attribute": 3}', '[{"name": "dim"}]', '[{"type": 2}]', "[" * 100, "null"])
def test_text_that_is_none(text: str, one_driver: Path) -> None:
    line = f"npu::1::NPUSwiGlu\tnode\tx\ty\t{text}\n"
    done = subprocess.run([str(one_driver)], input=line, capture_output=True, text=True, check=True)
    assert done.stdout.endswith("its attributes cannot be read as ATC hands them over\nrefused\n")


def test_the_lists_of_a_kernel_stand_in_their_places(one_driver: Path) -> None:
    """key and value, at the places 1 and 2 of the kernel's inputs: registered at the end, others would be taken for them."""
    node = node_of("NPUFusedInferAttentionScore", 3, num_heads=8, input_layout="BNSD", scale=0.125)
    answer = ask(one_driver, node)
    check_made(node, answer)
    assert [word for word in answer if word.startswith("dynamic")] == ["dynamic key 1 at 1", "dynamic value 1 at 2"]


def test_what_a_parser_sets_by_itself(one_driver: Path) -> None:
    assert "activate_silu = bool 0" in ask(one_driver, node_of("NPUGroupNorm", 3, num_groups=4))


def test_a_float_that_six_digits_do_not_hold(one_driver: Path) -> None:
    """ATC writes a FLOAT with six digits, and old releases lose it where that takes more than nine letters."""
    node = node_of("NPURmsNormWithEpsilon", 2, epsilon=1.1920929e-07)
    assert "ATC does not hand over the value of the attribute epsilon" in ask(one_driver, node, new=False)[1]
    node = node_of("NPURmsNormWithEpsilon", 2, epsilon=[1.1920929e-07])
    check_made(node, ask(one_driver, node, new=False))


@pytest.mark.slow
def test_installed_and_removed(tmp_path: Path) -> None:
    """The script and CMakeLists.txt, with our headers in place of a toolkit."""
    toolkit, vendors = tmp_path / "cann", tmp_path / "cann" / "opp" / "vendors"
    vendors.mkdir(parents=True)
    (toolkit / "include").symlink_to(HEADERS)
    (vendors / "config.ini").write_text("load_priority=customize\n")
    environment = {"PATH": "/usr/bin:/bin", "ASCEND_HOME_PATH": str(toolkit)}

    def install(*words: str) -> str:
        done = subprocess.run([str(PLUGIN / "install.sh"), *words], env=environment, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return done.stdout

    library = vendors / "ascend_fuse" / "framework" / "onnx" / "libascend_fuse_onnx_plugin.so"
    for _ in range(2):
        assert "installed version 3\n" in install()
        assert (vendors / "config.ini").read_text() == "load_priority=ascend_fuse,customize\n"
    assert b"ascend-fuse op plugin, version 3" in library.read_bytes()
    install("--remove")
    assert not (vendors / "ascend_fuse").exists()
    assert (vendors / "config.ini").read_text() == "load_priority=customize\n"
    own = tmp_path / "own"
    assert f"ASCEND_CUSTOM_OPP_PATH={own}" in install(str(own))
    assert (own / "framework" / "onnx" / library.name).exists()
    assert (vendors / "config.ini").read_text() == "load_priority=customize\n"
    install("--remove", str(own))
    assert not own.exists()


def test_installing_without_a_toolkit() -> None:
    done = subprocess.run([str(PLUGIN / "install.sh")], env={"PATH": "/usr/bin:/bin"}, capture_output=True, text=True)
    assert done.returncode == 1
    assert "ASCEND_HOME_PATH is not set" in done.stderr


def test_the_table_of_shares() -> None:
    loader = importlib.machinery.SourceFileLoader("plugin_shares", str(ROOT / "scripts" / "plugin-shares"))
    shares = importlib.util.module_from_spec(importlib.util.spec_from_loader("plugin_shares", loader))
    loader.exec_module(shares)
    counts = "a\n  x y: glu 0/1/2, gelu 3/0/0\n  x+plugin y+plugin: glu 2/1/0, gelu 3/0/0\nb\n  x x+plugin: nothing\n"
    lines = shares.table(counts).splitlines()
    assert lines[0] == "| kind | sites | x | y |"
    assert "| glu | 3 | 33 % → 100 % | 33 % → 100 % |" in lines
    assert "| gelu | 3 | 100 % | 100 % |" in lines
    assert "<!-- shares -->\n| kind | sites |" in (ROOT / "docs" / "plugin.md").read_text()
