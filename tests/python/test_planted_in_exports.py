"""One edit to a node of an export that fuses: the report names that node, and what it found there. tests/python/test_planted_faults.py
does the same to graphs that are written by hand."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from conftest import run_ok
from onnx import helper, numpy_helper

LLAMA = "llama-sdpa-nocache-ts17-static"
BERT = "bert-eager-ts17-static"
GPT2 = "gpt2-eager-nocache-ts17-static"
GPTJ = "gptj-eager-nocache-ts17-static"
NEOX = "gpt-neox-eager-nocache-ts17-static"
T5 = "t5-gated-eager-ts17-static"
T5_RELU = "t5-relu-eager-ts17-static"
QWEN3 = "qwen3-eager-nocache-ts17-static"
GEMMA = "gemma-eager-nocache-ts17-static"
GEMMA2 = "gemma2-eager-nocache-ts17-static"
PHI3 = "phi3-eager-nocache-ts17-static"
SWIN = "swin-eager-ts17-static"
WHISPER = "whisper-encoder-eager-ts17-static"
ACTIVATIONS = "activations-eager-ts17-static"
OPT = "opt-eager-nocache-ts17-static"
ONE_OPERAND = {"Abs", "Erf", "Exp", "Identity", "Log", "Sigmoid", "Softsign", "Sqrt", "Tanh"}

# Which export; the node by the end of its name; what becomes of it (another operator, "swap" of its first two operands, "1=3.0" of
# operand 1, "axis=2" of an attribute); a word of what is found there.
FAULTS = [
    # Norms.
    (LLAMA, "layers.0/input_layernorm/Pow", "1=3.0", "planted = 3"),
    (LLAMA, "layers.0/input_layernorm/Pow", "Abs", "Abs"),
    (LLAMA, "layers.0/input_layernorm/ReduceMean", "ReduceMax", "ReduceMax"),
    (LLAMA, "layers.0/input_layernorm/Add", "Sub", "Sub"),
    (LLAMA, "layers.0/input_layernorm/Sqrt", "Exp", "Exp"),
    (LLAMA, "layers.0/input_layernorm/Mul", "Sub", "Sub"),
    (T5, "block.0/layer.0/layer_norm/Pow", "1=1.5", "planted = 1.5"),
    (T5, "block.0/layer.1/layer_norm/Sqrt", "Log", "Log"),
    (T5, "block.0/layer.0/layer_norm/Div", "Pow", "Pow"),
    (T5_RELU, "block.0/layer.1/layer_norm/ReduceMean", "ReduceMax", "ReduceMax"),
    (T5_RELU, "block.0/layer.1/layer_norm/Mul", "Sub", "Sub"),
    (QWEN3, "layers.0/self_attn/q_norm/Pow", "1=3.0", "planted = 3"),
    (QWEN3, "layers.0/self_attn/q_norm/ReduceMean", "ReduceMin", "ReduceMin"),
    (QWEN3, "layers.0/self_attn/k_norm/Sqrt", "Log", "Log"),
    (QWEN3, "layers.0/self_attn/k_norm/Add", "Sub", "Sub"),
    (GEMMA, "layers.0/input_layernorm/Div", "Pow", "Pow"),
    (GEMMA, "layers.0/input_layernorm/Mul", "Add", "Add"),
    # Rotations.
    (LLAMA, "layers.0/self_attn/Neg", "Identity", "no part is negated"),
    (LLAMA, "layers.0/self_attn/Neg", "Abs", "Abs"),
    (LLAMA, "layers.0/self_attn/Concat", "swap", "channel 0 stays in its place"),
    (LLAMA, "layers.0/self_attn/Concat", "axis=2", "axis"),
    (LLAMA, "layers.0/self_attn/Mul_1", "Div", "Div"),
    (LLAMA, "layers.0/self_attn/Mul", "Add", "Add"),
    (GEMMA2, "layers.0/self_attn/Concat", "swap", "channel 0 stays in its place"),
    (GEMMA2, "layers.0/self_attn/Concat_1", "swap", "channel 0 stays in its place"),
    (NEOX, "layers.0/attention/Neg", "Identity", "no part is negated"),
    (NEOX, "layers.0/attention/Concat", "swap", "stays in its place"),
    (NEOX, "layers.0/attention/Mul_4", "Div", "Div"),
    (NEOX, "layers.0/attention/Mul_3", "Sub", "Sub"),
    (PHI3, "layers.0/self_attn/Neg", "Abs", "Abs"),
    (PHI3, "layers.0/self_attn/Mul_1", "Div", "Div"),
    # Activations and gates.
    (BERT, "layer.0/intermediate/intermediate_act_fn/Div", "1=1.5", "planted = 1.5"),
    (BERT, "layer.0/intermediate/intermediate_act_fn/Erf", "Tanh", "Tanh"),
    (BERT, "layer.0/intermediate/intermediate_act_fn/Add", "1=2.0", "planted = 2"),
    (BERT, "layer.0/intermediate/intermediate_act_fn/Mul", "Add", "Add"),
    (GPT2, "h.0/mlp/act/Mul", "1=0.7", "planted = 0.7"),
    (GPT2, "h.0/mlp/act/Pow", "1=2.0", "planted = 2"),
    (GPT2, "h.0/mlp/act/Mul_1", "1=0.05", "planted = 0.05"),
    (GPT2, "h.0/mlp/act/Add", "Sub", "Sub"),
    (GPT2, "h.0/mlp/act/Mul_2", "1=0.7", "planted = 0.7"),
    (GPT2, "h.0/mlp/act/Tanh", "Sigmoid", "Sigmoid"),
    (GPT2, "h.0/mlp/act/Add_1", "1=2.0", "planted = 2"),
    (T5, "block.0/layer.1/DenseReluDense/act/Pow", "1=2.0", "planted = 2"),
    (T5, "block.0/layer.1/DenseReluDense/act/Tanh", "Erf", "Erf"),
    (GEMMA, "layers.0/mlp/act_fn/Mul_2", "0=0.05", "planted = 0.05"),
    (GEMMA, "layers.0/mlp/act_fn/Mul_3", "0=0.7", "planted = 0.7"),
    (GEMMA, "layers.0/mlp/act_fn/Tanh", "Sigmoid", "Sigmoid"),
    (GEMMA, "layers.0/mlp/act_fn/Add_1", "0=2.0", "planted = 2"),
    (GEMMA, "layers.0/mlp/act_fn/Mul_1", "Add", "Add"),
    (ACTIVATIONS, "blocks.2/blocks.2.2/Softplus", "Softsign", "Softsign"),
    (ACTIVATIONS, "blocks.3/blocks.3.2/Mul_2", "0=0.05", "planted = 0.05"),
    (ACTIVATIONS, "blocks.3/blocks.3.2/Add_1", "0=2.0", "planted = 2"),
    (ACTIVATIONS, "blocks.3/blocks.3.2/Mul_4", "Add", "Add"),
    # Attentions.
    (BERT, "layer.0/attention/self/Mul", "Sqrt", "Sqrt"),
    (BERT, "layer.0/attention/self/Mul", "Pow", "Pow"),
    (BERT, "layer.0/attention/self/Mul", "Max", "Max"),
    (BERT, "layer.0/attention/self/Softmax", "axis=1", "axis 1"),
    (GPT2, "h.0/attn/Mul", "Abs", "Abs"),
    (GPT2, "h.0/attn/Softmax", "axis=2", "axis 2"),
    (GPTJ, "h.0/attn/Div", "Pow", "Pow"),
    (NEOX, "layers.0/attention/Mul_7", "Pow", "Pow"),
    (NEOX, "layers.0/attention/Softmax", "axis=1", "axis 1"),
    (LLAMA, "layers.0/self_attn/Softmax", "axis=2", "axis 2"),
    (LLAMA, "layers.0/self_attn/Where_3", "1=[1.0]", "of the result of the softmax"),
    (PHI3, "layers.0/self_attn/Mul_6", "Exp", "Exp"),
    (PHI3, "layers.0/self_attn/Softmax", "axis=0", "axis 0"),
    (SWIN, "layers.0/blocks.1/attention/Mul_1", "Abs", "Abs"),
    (SWIN, "layers.0/blocks.1/attention/Softmax", "axis=1", "axis 1"),
    (WHISPER, "layers.0/self_attn/Softmax", "axis=2", "axis 2"),
    # Masks.
    (LLAMA, "layers.0/self_attn/Add_2", "Mul", "multiplied by"),
    (LLAMA, "layers.0/self_attn/Add_2", "Min", "Min"),
    (BERT, "layer.0/attention/self/Add", "Mul", "multiplied by /Where_1_output_0"),
    (BERT, "layer.0/attention/self/Add", "Max", "Max"),
    (GPT2, "h.0/attn/Add", "Mul", "multiplied by /transformer/Where_1_output_0"),
    (GPTJ, "h.0/attn/Add_2", "Mul", "multiplied by /transformer/Where_1_output_0"),
    (NEOX, "layers.0/attention/Add_3", "Mul", "multiplied by /gpt_neox/Where_1_output_0"),
    (T5, "block.0/layer.0/SelfAttention/Add_3", "Max", "Max"),
    (T5, "block.0/layer.0/SelfAttention/Add_2", "Mul", "multiplied by"),
    (GEMMA2, "layers.0/self_attn/Add_2", "Max", "Max"),
    (SWIN, "layers.0/blocks.1/attention/Add_1", "Mul", "multiplied by"),
]


# Linears with their activations: only this chip has a node for both.
LINEAR_FAULTS = [
    (OPT, "layers.0/fc1/Gemm", "alpha=2.0", "Gemm has a factor"),
    (OPT, "layers.0/fc1/Gemm", "beta=0.5", "Gemm has a factor"),
    (OPT, "layers.0/activation_fn/Relu", "Elu", "not this activation"),
    (T5_RELU, "block.0/layer.1/DenseReluDense/act/Relu", "Selu", "not this activation"),
]
LINEAR = ("--target", "ascend950", "--plugin")


def edit(model: onnx.ModelProto, node: onnx.NodeProto, change: str) -> None:
    what, _, value = change.partition("=")
    if change == "swap":
        node.input[0], node.input[1] = node.input[1], node.input[0]
    elif what.isdigit():
        model.graph.initializer.append(numpy_helper.from_array(np.array(json.loads(value), np.float32), "planted"))
        node.input[int(what)] = "planted"
    elif value:
        kept = [attribute for attribute in node.attribute if attribute.name != what]
        del node.attribute[:]
        node.attribute.extend([*kept, helper.make_attribute(what, json.loads(value))])
    else:
        node.op_type = change
        if change in ONE_OPERAND:
            del node.input[1:]


def listed(model: Path, flags: tuple[str, ...]) -> Any:
    return json.loads(run_ok("list", model, *flags, "--json", "-").out)


def told(report: Any) -> set[tuple[str, str]]:
    """Which nodes are named, and what is said of them: by near misses, and by sites that are left."""
    said = {(miss["stopped_by"], f"{miss['expected']} {miss['found']}") for miss in report["near_misses"]}
    return said | {(f"{site['node']} {site['because']}", site["because"]) for site in report["sites"] if site["state"] == "left"}


@cache
def told_before(model: Path, flags: tuple[str, ...]) -> set[tuple[str, str]]:
    return told(listed(model, flags))


@pytest.mark.parametrize(("export", "place", "change", "found", "flags"),
                         [(*fault, ()) for fault in FAULTS] + [(*fault, LINEAR) for fault in LINEAR_FAULTS])
def test_the_edited_node_is_named(export: str, place: str, change: str, found: str, flags: tuple[str, ...], zoo: Path, tmp_path: Path) -> None:
    path = zoo / f"{export}.onnx"
    if not path.exists():
        pytest.skip(f"the zoo has no {export}")
    model = onnx.load(path)
    (node,) = [node for node in model.graph.node if node.name.endswith(f"/{place}")]
    edit(model, node, change)
    onnx.save(model, tmp_path / "m.onnx")
    said = told(listed(tmp_path / "m.onnx", flags)) - told_before(path, flags)
    # What passes its operand on is not there: its reader is named.
    name = node.name if change != "Identity" else next(reader.name for reader in model.graph.node if node.output[0] in reader.input)
    assert any((name in where or name in words) and found in words for where, words in said), said


def test_there_are_faults_of_every_kind_in_many_exports() -> None:
    assert len(FAULTS) >= 60 and len({fault[0] for fault in FAULTS}) >= 10 and len(set(FAULTS)) == len(FAULTS)
