"""What the tests of the op plugin and of the zoo share: its nodes in a model, and the names that it registers."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator

import onnx
from conftest import ROOT
from onnx import AttributeProto, NodeProto

PLUGIN = ROOT / "plugin"
REGISTERED = re.compile(r'OriginOpType\(ascend_fuse_plugin::Keys\("(\w+)", (\d+), (\d+)\)\)')


@functools.cache
def registered_keys() -> frozenset[str]:
    keys = set()
    for node, first, last in REGISTERED.findall((PLUGIN / "parsers.cc").read_text()):
        keys |= {f"ai.onnx::{opset}::{node}" for opset in range(int(first), int(last) + 1)}
        keys.add(f"npu::1::{node}")
    return frozenset(keys)


@functools.cache
def node_names() -> frozenset[str]:
    """Of all nodes."""
    return frozenset(key.rpartition("::")[2] for key in registered_keys() if key.startswith("npu::"))


def key_of(node: NodeProto, opset: int) -> str:
    return f"npu::1::{node.op_type}" if node.domain == "npu" else f"ai.onnx::{opset}::{node.op_type}"


def all_nodes(graph: onnx.GraphProto) -> Iterator[NodeProto]:
    for node in graph.node:
        yield node
        for attribute in node.attribute:
            if attribute.type == AttributeProto.GRAPH:
                yield from all_nodes(attribute.g)


def plugin_nodes(model: onnx.ModelProto) -> Iterator[tuple[NodeProto, str]]:
    opset = next(entry.version for entry in model.opset_import if entry.domain in ("", "ai.onnx"))
    for node in all_nodes(model.graph):
        if node.op_type in node_names():
            yield node, key_of(node, opset)
