"""`ascend-fuse analyze`: counts against formulas written out here, memory against a schedule of our own, the JSON against its schema,
and sentences that name what was changed in a model."""

from __future__ import annotations

import csv
import html
import importlib.util
import io
import json
import shlex
import shutil
import sys
from functools import cache
from pathlib import Path
from typing import Any

import onnx
import pytest
from conftest import ROOT, run, run_ok
from onnx import helper, shape_inference

VIEWS = {"Reshape", "Squeeze", "Unsqueeze", "Flatten", "Identity", "Dropout"}
# Exports with numbers for dims whose products are linears and attentions only.
TRANSFORMERS = ["bert-eager", "distilbert-eager", "roberta-eager", "vit-eager", "dinov2-eager", "clip-text-eager",
                "gpt2-eager-nocache", "llama-eager-nocache", "mistral-eager-nocache", "qwen2-eager-nocache", "opt-eager-nocache",
                "phi3-eager-nocache", "gemma-eager-nocache"]

# Multiply-accumulates of MatMul, Gemm and Conv by a public counter, onnx-tool 1.0.1 of PyPI (Model (path).graph.shape_infer (), profile ()).
# It counts the sum with a bias as one of them, so that it has up to 0.3 % more.
COUNTED = {
    "bert-eager": 2319360, "distilbert-eager": 2319360, "roberta-eager": 2319360, "vit-eager": 8887828, "dinov2-eager": 14455808,
    "clip-text-eager": 2335744, "gpt2-eager-nocache": 4144640, "llama-eager-nocache": 7260160, "mistral-eager-nocache": 7260160,
    "qwen2-eager-nocache": 7260160, "opt-eager-nocache": 2489600, "phi3-eager-nocache": 7260160, "gemma-eager-nocache": 2647040,
    "convnext-eager": 2869248, "swin-eager": 82739200, "vae-eager": 14280640, "unet-eager": 82091072,
}


def analyze(model: Path, *flags: object) -> Any:
    return json.loads(run_ok("analyze", model, *flags, "--json", "-").out)


def save(text: str, weights: dict[str, list[int]], path: Path) -> None:
    """Writes a graph in ONNX text, with weights of zeros."""
    model = onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["" : 17]> {text}')
    for name, dims in weights.items():
        model.graph.initializer.append(helper.make_tensor(name, onnx.TensorProto.FLOAT, dims, bytes(4 * product(dims)), raw=True))
    onnx.save(model, path)


def inferred(path: Path) -> onnx.ModelProto:
    model: onnx.ModelProto = shape_inference.infer_shapes(onnx.load(path), data_prop=True)
    return model


def shapes_of(graph: onnx.GraphProto) -> dict[str, tuple[int, list[int]]]:
    """Element type and dims of every value whose shape is a list of numbers."""
    found = {tensor.name: (tensor.data_type, list(tensor.dims)) for tensor in graph.initializer}
    for info in (*graph.input, *graph.output, *graph.value_info):
        dims = info.type.tensor_type.shape.dim
        if info.type.tensor_type.HasField("shape") and all(dim.HasField("dim_value") for dim in dims):
            found[info.name] = (info.type.tensor_type.elem_type, [dim.dim_value for dim in dims])
    return found


def product(dims: list[int]) -> int:
    total = 1
    for dim in dims:
        total *= dim
    return total


def static(zoo: Path, name: str) -> Path:
    path = next(iter(sorted(zoo.glob(f"{name}-dy18-static.onnx"))), None)
    if path is None:
        pytest.skip(f"the zoo has no {name}-dy18-static")
    return path


@pytest.mark.parametrize("name", TRANSFORMERS)
def test_products_are_those_of_the_architecture(zoo: Path, name: str) -> None:
    """2 * rows * elements of each linear's weight, and 2 * heads * queries * keys * (channels of keys + channels of values) of each
    attention: nothing else in these models is a product of matrices, but the patches of images, which are a Conv."""
    path = static(zoo, name)
    graph = inferred(path).graph
    shapes, weights = shapes_of(graph), {tensor.name for tensor in graph.initializer}
    transposed = {node.output[0]: node.input[0] for node in graph.node if node.op_type in ("Transpose", "Cast") and node.input[0] in weights}
    expected = 0
    for node in graph.node:
        if node.op_type in ("MatMul", "Gemm"):
            weight = transposed.get(node.input[1], node.input[1])
            out = shapes[node.output[0]][1]
            if weight in weights:
                rows = product(out[:-1])
                expected += 2 * rows * product(shapes[weight][1])
                expected += product(out) if node.op_type == "Gemm" and len(node.input) > 2 else 0
            else:
                expected += 2 * product(out) * shapes[node.input[0]][1][-1]
        elif node.op_type == "Conv":
            expected += 2 * product(shapes[node.output[0]][1]) * product(shapes[node.input[1]][1][1:])
            expected += product(shapes[node.output[0]][1]) if len(node.input) > 2 else 0
    products = [op for op in analyze(path)["operators"] if op["kind"] == "matrix"]
    assert sum(op["flops_before"]["value"] for op in products) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("name", COUNTED)
def test_products_are_those_of_a_public_counter(zoo: Path, name: str) -> None:
    products = [op for op in analyze(static(zoo, name))["operators"] if op["kind"] == "matrix"]
    assert sum(op["flops_before"]["value"] for op in products) == pytest.approx(2 * COUNTED[name], rel=0.003)


def needed_nodes(graph: onnx.GraphProto) -> list[onnx.NodeProto]:
    needed = {info.name for info in graph.output}
    nodes = []
    for node in reversed(graph.node):
        if any(name in needed for name in node.output):
            nodes.append(node)
            needed.update(node.input)
    return nodes[::-1]


def constants_of(graph: onnx.GraphProto) -> set[str]:
    """What depends on no input, and shapes."""
    constant = {tensor.name for tensor in graph.initializer} | {""}
    for node in graph.node:
        if node.op_type in ("Shape", "Size") or all(name in constant for name in node.input):
            constant.update(node.output)
    return constant


# Of their first operand they read what they write.
PICKS = {"Gather", "Slice", "Split", "GatherElements", "GatherND"}


@pytest.mark.parametrize("name", TRANSFORMERS)
def test_bytes_are_those_of_operands_and_results(zoo: Path, name: str) -> None:
    """Each operand once and each result, in its type, of every node that is not a view and depends on an input."""
    path = static(zoo, name)
    graph = inferred(path).graph
    shapes, constant = shapes_of(graph), constants_of(graph)

    def size(value: str) -> int:
        kind, dims = shapes[value]
        return product(dims) * helper.tensor_dtype_to_np_dtype(kind).itemsize

    expected = 0
    for node in needed_nodes(graph):
        if node.op_type in VIEWS or all(value in constant for value in node.output if value):
            continue
        read = dict.fromkeys(value for value in node.input if value)
        written = sum(size(value) for value in node.output if value)
        picked = [node.input[0]] if node.op_type in PICKS else []
        expected += written + sum(written if value in picked else size(value) for value in read)
    assert analyze(path)["before"]["bytes"]["value"] == pytest.approx(expected, rel=1e-9)


def test_every_count_of_a_small_model_by_hand(tmp_path: Path) -> None:
    """softmax (x w + b): 2 * 3 * 4 * 8 of the product, 24 of the sum, 5 * 24 of the softmax; and what each reads and writes."""
    save("g (float[3, 4] x) => (float[3, 8] y) { p = MatMul (x, w) s = Add (p, b) y = Softmax (s) }", {"w": [4, 8], "b": [8]},
         tmp_path / "m.onnx")
    analysis = analyze(tmp_path / "m.onnx")
    flops = {op["name"]: op["flops_before"]["value"] for op in analysis["operators"]}
    moved = {op["name"]: op["bytes_before"]["value"] for op in analysis["operators"]}
    assert flops == {"MatMul": 192, "Add": 24, "Softmax": 120}
    assert moved == {"MatMul": 4 * (12 + 32 + 24), "Add": 4 * (24 + 8 + 24), "Softmax": 4 * 48}
    assert analysis["before"]["flops"]["value"] == 336
    assert analysis["memory"]["weights"] == 4 * 40
    assert analysis["memory"]["weights_half"] == 2 * 40
    assert analysis["memory"]["before"]["peak"]["value"] == 4 * (12 + 24 + 24)  # x to the end, p and s
    assert analysis["before"]["kernels"] == 3


def test_counts_are_functions_of_the_dims(tmp_path: Path) -> None:
    save("g (float[batch, seq, 4] x) => (float[batch, seq, 8] y) { y = MatMul (x, w) }", {"w": [4, 8]}, tmp_path / "m.onnx")
    open_dims = analyze(tmp_path / "m.onnx")
    assert open_dims["before"]["flops"] == {"formula": "64*batch*seq", "value": 64 * 128}
    assert {dim["name"]: (dim["value"], dim["origin"]) for dim in open_dims["dims"]} == {"batch": (1, "default"), "seq": (128, "default")}
    ranged = analyze(tmp_path / "m.onnx", "--dim", "seq=1..512", "--dim", "batch=1..4")
    assert ranged["before"]["flops"]["value"] == 64 * 4 * 512
    assert "batch" in ranged["before"]["flops"]["formula"]
    assert analyze(tmp_path / "m.onnx", "--dim", "seq=512", "--dim", "batch=4")["before"]["flops"]["value"] == 64 * 4 * 512


def peak_by_schedule(path: Path) -> float:
    """The peak of activations, step by step: what is computed, still read, or an input or output. Constants and views take nothing."""
    model = inferred(path)
    graph = model.graph
    shapes = shapes_of(graph)
    constant = {tensor.name for tensor in graph.initializer}
    for node in graph.node:
        if node.op_type != "Shape" and all(name in constant or not name for name in node.input):
            constant.update(node.output)
        elif node.op_type in ("Shape", "Size"):
            constant.update(node.output)
    buffer = {}

    def of(name: str) -> str:
        return buffer.get(name, name)

    for node in graph.node:
        if node.op_type in VIEWS:
            buffer[node.output[0]] = of(node.input[0])
    needed: set[str] = {info.name for info in graph.output}
    nodes = []
    for node in reversed(graph.node):
        if any(name in needed for name in node.output):
            nodes.append(node)
            needed.update(node.input)
    nodes.reverse()
    last = {}
    for step, node in enumerate(nodes):
        for name in (*node.input, *node.output):
            last[of(name)] = step
    for info in (*graph.input, *graph.output):
        last[of(info.name)] = len(nodes)

    def size(name: str) -> float:
        kind, dims = shapes.get(name, (1, [0]))
        return product(dims) * helper.tensor_dtype_to_np_dtype(kind).itemsize

    live = {info.name: size(info.name) for info in graph.input if info.name not in constant}
    peak = 0.0
    for step, node in enumerate(nodes):
        for name in node.output:
            if name and of(name) == name and name not in constant:
                live[name] = size(name)
        peak = max(peak, sum(live.values()))
        live = {name: bytes_of for name, bytes_of in live.items() if last.get(name, step) > step}
    return peak


@pytest.mark.parametrize("name", ["bert-eager", "vit-eager", "convnext-eager", "llama-eager-nocache", "swin-eager", "vae-eager", "gpt2-eager-nocache",
                                  "phi3-eager-nocache", "gemma-eager-nocache", "clip-text-eager", "dinov2-eager", "unet-eager"])
def test_the_peak_of_activations_is_that_of_a_schedule(zoo: Path, name: str) -> None:
    path = static(zoo, name)
    assert analyze(path)["memory"]["before"]["peak"]["value"] == pytest.approx(peak_by_schedule(path), rel=0.05)


def test_shared_weights_count_once(tmp_path: Path) -> None:
    save("g (int64[2] i) => (float[2, 9] y) { e = Gather (table, i) t = Transpose <perm = [1, 0]> (table) y = MatMul (e, t) }",
         {"table": [9, 4]}, tmp_path / "m.onnx")
    assert analyze(tmp_path / "m.onnx")["memory"]["weights"] == 4 * 36


def test_caches_are_found(zoo: Path) -> None:
    memory = analyze(zoo / "llama-sdpa-past-ts17-dynamic.onnx")["memory"]
    assert len(memory["caches"]) == 4  # keys and values of two layers
    assert "past" in memory["cache"]["formula"] and "batch" in memory["cache"]["formula"]


def test_the_text_answers_on_one_screen(zoo: Path) -> None:
    text = run_ok("analyze", zoo / "llama-sdpa-past-ts17-dynamic.onnx").out
    assert len(text.splitlines()) < 75
    for heading in ("what takes the time", "what is left", "what is fused", "memory:", "migration:", "next"):
        assert f"\n{heading}" in text, heading
    assert "no measurement" in text
    assert len(run_ok("analyze", zoo / "llama-sdpa-past-ts17-dynamic.onnx", "--verbose").out) > len(text)


def test_tables(zoo: Path) -> None:
    model = zoo / "llama-sdpa-past-ts17-dynamic.onnx"
    operators = list(csv.DictReader(io.StringIO(run_ok("analyze", model, "--operators-csv", "-").out)))
    analysis = analyze(model)
    assert [row["op"] for row in operators] == [op["name"] for op in analysis["operators"]]
    sites = list(csv.DictReader(io.StringIO(run_ok("analyze", model, "--sites-csv", "-").out)))
    assert [row["kind"] for row in sites] == [site["kind"] for site in analysis["report"]["sites"]]


def test_near_misses_of_all_layers_are_one(tmp_path: Path) -> None:
    """A norm of two layers in which the square became a cube: said once, with the node and the constant."""
    lines = []
    for layer, (x, y) in enumerate([("x", "h"), ("h", "y")]):
        lines.append(f"c{layer} = Pow (x{layer}, three) m{layer} = ReduceMean <axes = [-1], keepdims = 1> (c{layer}) "
                     f"v{layer} = Add (m{layer}, eps) r{layer} = Sqrt (v{layer}) {y} = Div (x{layer}, r{layer})".replace(f"x{layer}", x))
    model = onnx.parser.parse_model(
        f'<ir_version: 8, opset_import: ["" : 17]> g (float[4, 64] x) => (float[4, 64] y) <float three = {{3}}, float eps = {{0.01}}> {{ {" ".join(lines)} }}')
    for node in model.graph.node:
        layer = 0 if node.output[0].endswith("0") or node.output[0] == "h" else 1
        node.name = f"/model/layers.{layer}/norm/{node.op_type}"
    onnx.save(model, tmp_path / "m.onnx")
    misses = [row for row in analyze(tmp_path / "m.onnx")["opportunities"] if row["kind"] == "near_miss"]
    assert [row["count"] for row in misses] == [2]
    assert "expected the constant 2, found three = 3" in misses[0]["because"]


# A net without names of modules: factors and summands of channels after convolutions, and a norm in which the square became a cube.
CONVOLUTIONS = """g (float[1, 64, 56, 56] x, float[4, 64] r) => (float[1, 64, 56, 56] y, float[4, 64] n)
<float three = {3}, float eps = {0.01}> {
  [a] a = Conv (x, w) [a1] a1 = Mul (a, f) [a2] a2 = Add (a1, f) [a3] a3 = Relu (a2)
  [b] b = Conv (a3, w) [b1] b1 = Mul (columns, b) [b2] b2 = Relu (b1)
  [c] c = Conv (b2, w) [c1] c1 = Mul (c, f) [c2] c2 = Sigmoid (c) [y] y = Sub (c1, c2)
  [p] p = Pow (r, three) [m] m = ReduceMean <axes = [-1], keepdims = 1> (p) [v] v = Add (m, eps) [s] s = Sqrt (v) [n] n = Div (r, s)
}"""
CONVOLUTION_WEIGHTS = {"w": [64, 64, 1, 1], "f": [1, 64, 1, 1], "columns": [56]}


def test_factors_of_channels_are_told(tmp_path: Path) -> None:
    """Of a Conv that nothing else reads, and along its channels."""
    save(CONVOLUTIONS, CONVOLUTION_WEIGHTS, tmp_path / "m.onnx")
    analysis = analyze(tmp_path / "m.onnx")
    affines = [row for row in analysis["opportunities"] if row["kind"] == "affine"]
    assert sorted(node for row in affines for node in row["nodes"]) == ["a1", "a2"]
    assert all(row["gain"] > 0 and "of the Conv before it" in row["because"] for row in affines)
    advice = next(step for step in analysis["next"] if step["action"].startswith("fold 2 factors"))
    run_ok(*shlex.split(advice["command"])[1:], "-o", tmp_path / "o.onnx")
    assert [node.op_type for node in onnx.load(tmp_path / "o.onnx").graph.node if node.op_type in ("Mul", "Add")] == ["Mul", "Mul", "Add"]
    assert not [row for row in analyze(tmp_path / "o.onnx")["opportunities"] if row["kind"] == "affine"]


def test_a_near_miss_is_at_most_what_is_around_it(tmp_path: Path) -> None:
    """Where no node has a module, all of them were counted for it."""
    save(CONVOLUTIONS, CONVOLUTION_WEIGHTS, tmp_path / "m.onnx")
    analysis = analyze(tmp_path / "m.onnx")
    misses = [row for row in analysis["opportunities"] if row["kind"] == "near_miss"]
    assert [(row["count"], row["at_most"], row["kernels_saved"]) for row in misses] == [(1, True, 5)]


def test_one_way_out_is_one_step(tmp_path: Path) -> None:
    """A branch and a loop: one step, which says that there is another reason."""
    save("""g (bool c, float[4] x) => (float[4] y, float[4] z) <int64 n = {3}, bool yes = {1}> {
      [y] y = If (c) <then_branch = t () => (float[4] a) { a = Relu (x) }, else_branch = e () => (float[4] b) { b = Neg (x) }>
      [z] z = Loop (n, c, x) <body = l (int64 i, bool k, float[4] was) => (bool on, float[4] now) { on = Not (k) now = Exp (was) }>
    }""", {}, tmp_path / "m.onnx")
    analysis = analyze(tmp_path / "m.onnx")
    reasons = [reason for reason in analysis["complexity"]["reasons"] if reason["code"] == "control-flow"]
    assert [reason["level"] for reason in reasons] == ["high", "high"]
    steps = [step for step in analysis["next"] if step["action"] == "unroll it, or export without it"]
    assert [step["because"].endswith("; and 1 more like it") for step in steps] == [True]


def test_nothing_gained_is_said(tmp_path: Path) -> None:
    save("g (float[4, 64] x) => (float[4, 64] y) { [y] y = Relu (x) }", {}, tmp_path / "m.onnx")
    step = next(step for step in analyze(tmp_path / "m.onnx")["next"] if step["action"] == "optimize")
    assert step["because"] == "by the cost model it is as fast as before"


def test_weights_of_constant_nodes_are_weights(tmp_path: Path) -> None:
    """Paddle's exporter writes all of them so."""
    save(CONVOLUTIONS, CONVOLUTION_WEIGHTS, tmp_path / "m.onnx")
    model = onnx.load(tmp_path / "m.onnx")
    for tensor in model.graph.initializer:
        model.graph.node.insert(0, helper.make_node("Constant", [], [tensor.name], name=f"constant_{tensor.name}", value=tensor))
    del model.graph.initializer[:]
    onnx.save(model, tmp_path / "c.onnx")
    memory, constants = (analyze(tmp_path / name)["memory"] for name in ("m.onnx", "c.onnx"))
    assert constants["weights"] == memory["weights"] - 8 == 4 * (64 * 64 + 64 + 56)  # not eps and three
    assert constants["weights_int8"] < constants["weights_half"] < constants["weights"]


def test_what_the_plugin_takes_is_said(zoo: Path) -> None:
    analysis = analyze(zoo / "llama-sdpa-past-ts17-dynamic.onnx")
    gates = [row for row in analysis["opportunities"] if row["kind"] == "glu"]
    assert [row["state"] for row in gates] == ["left"]
    assert gates[0]["way"].startswith("--plugin")
    with_plugin = analyze(zoo / "llama-sdpa-past-ts17-dynamic.onnx", "--plugin")
    assert {row["state"] for row in with_plugin["opportunities"] if row["kind"] == "glu"} == {"fused"}


def test_what_wins_most_is_told(zoo: Path) -> None:
    """Two IsNaN on the AI CPU take most of the time as it is: that another form is faster is a row, and rows together are the ratio."""
    analysis = analyze(zoo / "gpt2-sdpa-past-dy18-dynamic-fp16.onnx", "--target", "ascend310p")
    first = analysis["opportunities"][0]
    assert (first["kind"], first["state"], first["count"]) == ("rewritten", "fused", 2)
    assert "IsNaN ran on the AI CPU" in first["because"] and first["gain"] > 0.5
    won = sum(row["gain"] for row in analysis["opportunities"] if row["state"] == "fused")
    assert won == pytest.approx(1 - 1 / analysis["ratio"]["middle"], abs=0.05)
    text = run_ok("analyze", zoo / "gpt2-sdpa-past-dy18-dynamic-fp16.onnx", "--target", "ascend310p").out
    assert "operators in a faster form" in text and "IsNaN ran on the AI CPU" in text


def test_commands_are_words_of_a_shell(tmp_path: Path) -> None:
    model = tmp_path / "my model.onnx"
    save("g (float[3, 4] x) => (float[3, 8] y) { y = MatMul (x, w) }", {"w": [4, 8]}, model)
    commands = [step["command"] for step in analyze(model)["next"] if step["command"]]
    assert commands and all(str(model) in shlex.split(command) or str(model.with_suffix(".ascend910b.onnx")) in shlex.split(command)
                            for command in commands), commands
    assert any(command.startswith("ascend-fuse precision") for command in commands)


def test_support_says_unit_kernel_and_dims(zoo: Path) -> None:
    """The cube computes products, the vector units the rest; a kernel that takes numbers only is named, with the way out."""
    rows = {row["op"]: row for row in analyze(zoo / "llama-sdpa-past-ts17-dynamic.onnx")["support"] if row["engine"] == "ai_core"}
    assert rows["MatMul"]["unit"] == "cube" and rows["Softmax"]["unit"] == "vector"
    assert rows["npu.NPUPromptFlashAttention"]["unit"] == "both"
    assert rows["Softmax"]["kernel"] == "SoftmaxV2" and rows["Softmax"]["shapes"] == "dynamic"
    assert "ops-info.json" in rows["Softmax"]["source"]
    assert all(row["shapes"] in ("", "dynamic", "static") and (not row["shapes"] or row["kernel"]) for row in rows.values())


def test_a_kernel_for_numbers_only_is_named(tmp_path: Path) -> None:
    save("g (float[batch, 4, 8, 8] x) => (float[batch, 4, 8, 8] y) { y = InstanceNormalization (x, w, b) }", {"w": [4], "b": [4]},
         tmp_path / "m.onnx")
    (row,) = [row for row in analyze(tmp_path / "m.onnx")["support"] if row["op"] == "InstanceNormalization" and not row["after"]]
    assert row["shapes"] == "static" and "numbers for all dims" in row["because"] and "--fix" in row["way_out"]


def test_speed_of_nodes_is_what_was_measured_or_predicted(zoo: Path) -> None:
    """The figures are those of the rows of the cost model."""
    gains = {gain["node"]: gain for gain in analyze(zoo / "llama-sdpa-past-ts17-dynamic.onnx", "--plugin")["report"]["gains"]}
    assert gains["NPURmsNorm"]["evidence"] == "measured"
    assert "4.40 times as fast was measured, 4.29 predicted" in gains["NPURmsNorm"]["because"]
    assert gains["NPUSwiGlu"]["evidence"] == "likely"
    assert "no measurement was found; the cost model predicts" in gains["NPUSwiGlu"]["because"]


def test_the_report_in_the_form_of_ge(zoo: Path, tmp_path: Path) -> None:
    """fusion_result.json: counts are strings, and agree with the report."""
    path = tmp_path / "fusion_result.json"
    report = json.loads(run_ok("list", zoo / "llama-sdpa-past-ts17-dynamic.onnx", "--fusion-result", path, "--json", "-").out)
    passes = json.loads(path.read_text())["session_and_graph_id_0_0"]["graph_fusion"]
    assert sum(int(times["match_times"]) for times in passes.values()) == len(report["sites"])
    assert sum(int(times["effect_times"]) for times in passes.values()) == sum(site["state"] == "fused" for site in report["sites"])
    assert all(set(times) == {"match_times", "effect_times"} for times in passes.values())


def test_an_optimized_model_is_analysed_too(zoo: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.onnx"
    run_ok("optimize", zoo / "llama-sdpa-past-ts17-dynamic.onnx", "-o", out)
    before, again = analyze(zoo / "llama-sdpa-past-ts17-dynamic.onnx"), analyze(out)
    assert again["before"]["flops"]["value"] == before["after"]["flops"]["value"]
    assert again["ratio"]["middle"] == pytest.approx(1, abs=0.02)
    assert before["ratio"]["low"] > 1


def test_the_package_gives_records(zoo: Path, tmp_path: Path) -> None:
    ascend_fuse = pytest.importorskip("ascend_fuse")
    analysis = ascend_fuse.analyze(zoo / "llama-sdpa-past-ts17-dynamic.onnx", dims={"batch": 2})
    assert {(dim.name, dim.value) for dim in analysis.dims if dim.origin == "dim"} == {("batch", 2)}
    assert analysis.before.flops.value > 0 and analysis.report.target.chip == "ascend910b"
    assert json.loads(analysis.to_json())["schema"] == analysis.schema == 1
    assert analysis.to_text().startswith(analysis.report.model)
    assert len(analysis.to_text(verbose=True)) > len(analysis.to_text())
    run_ok("analyze", zoo / "llama-sdpa-past-ts17-dynamic.onnx", "--dim", "batch=2", "--report", tmp_path / "a.html", "--quiet")
    assert analysis.to_html() == (tmp_path / "a.html").read_text()
    frame = analysis._repr_html_()
    assert frame.startswith('<iframe srcdoc="') and "<script" not in frame and html.escape(analysis.to_html()) in frame
    again = ascend_fuse.Analysis.from_json(analysis.to_json())
    assert again.operators == analysis.operators and again.report.sites == analysis.report.sites


def test_parts_are_frames(zoo: Path) -> None:
    pytest.importorskip("pandas")
    ascend_fuse = pytest.importorskip("ascend_fuse")
    analysis = ascend_fuse.analyze(zoo / "llama-sdpa-past-ts17-dynamic.onnx")
    for part in ("operators", "modules", "opportunities", "support", "heaviest", "host", "sites"):
        frame = analysis.frame(part)
        assert len(frame) == len(analysis.report.sites if part == "sites" else getattr(analysis, part))
    operators = analysis.frame("operators")
    assert operators["flops_before"].sum() == pytest.approx(analysis.before.flops.value)


def schema_faults(value: Any, schema: dict[str, Any], root: dict[str, Any], at: str = "") -> list[str]:
    """What a value breaks of a schema made of objects, arrays and plain types."""
    if "$ref" in schema:
        return schema_faults(value, root["$defs"][schema["$ref"].rsplit("/", 1)[1]], root, at)
    kinds = {"object": dict, "array": list, "string": str, "boolean": bool, "number": (int, float), "integer": int}
    if not isinstance(value, kinds[schema["type"]]):
        return [f"{at}: {value!r} is not of type {schema['type']}"]
    if schema["type"] == "array":
        return [fault for i, item in enumerate(value) for fault in schema_faults(item, schema["items"], root, f"{at}[{i}]")]
    if schema["type"] != "object":
        return []
    properties = schema.get("properties", {})
    more = schema.get("additionalProperties")
    faults = [f"{at}: no {name}" for name in schema.get("required", []) if name not in value]
    for name, item in value.items():
        if name in properties or more is not None:
            faults += schema_faults(item, properties.get(name, more), root, f"{at}.{name}")
        else:
            faults.append(f"{at}: {name} is not in the schema")
    return faults


@cache
def schema_module() -> Any:
    spec = importlib.util.spec_from_file_location("json_schema", ROOT / "tools" / "schema" / "json_schema.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["json_schema"] = module
    spec.loader.exec_module(module)
    return module


def test_the_json_keeps_its_schema(zoo: Path) -> None:
    schema = json.loads((ROOT / "tools/schema/analysis.schema.json").read_text())
    analysis = analyze(zoo / "llama-sdpa-past-ts17-dynamic.onnx")
    assert analysis["schema"] == 1
    assert schema_faults(analysis, schema, schema) == []


@pytest.mark.skipif(shutil.which("protoc") is None, reason="protoc is not there")
def test_the_schemas_are_those_of_the_messages() -> None:
    for name, text in schema_module().schemas().items():
        assert (ROOT / "tools" / "schema" / name).read_text() == text, f"python3 tools/schema/json_schema.py writes {name}"


def test_wrong_usage() -> None:
    assert run("analyze").code == 2
    assert run("analyze", "missing.onnx").code == 1
    assert run("analyze", "missing.onnx", "--target", "ascend42").code == 2
