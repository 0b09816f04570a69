"""Rotations by pairs on a chip that turns halves only: the order of the channels is written into the weights of the projections.

Each model is an attention with its projections, written in a form of its own: packed or separate projections, bias, Gemm,
transposed weights, a part of the head that is not turned, grouped heads, a cache. What is right is ONNX Runtime on the model
as it was, against the optimized model, expanded.
"""

from __future__ import annotations

import json
import subprocess
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import onnx
import pytest
from ascend_fuse.session import plain_session
from conftest import TOOL, run_ok
from node_list import NodeList
from onnx import TensorProto, helper, numpy_helper

K, D, S, B = 24, 64, 32, 2


@dataclass
class Attention(NodeList):
    """What a model is like. `rotary`: "pairs" turns pairs, "apart" takes pairs apart and turns halves."""

    rotary: str = "pairs"
    heads: int = 2
    groups: int = 2
    rest: int = 0  # channels of a head, before those that are turned, that are not
    linear: str = "matmul"  # matmul, bias, gemm, transpose
    packed: bool = False  # one product for query, key and value
    cached: bool = False  # the rotated key is an output
    key_read: bool = False  # what the key is projected to is an output
    shared: bool = False  # query and key have one weight
    only_query: bool = False  # the key is turned by halves
    gained: bool = False  # the channels of a head are multiplied before they are turned, as by a norm of heads
    width: int = K  # of x
    dtype: str = "float32"
    outputs: list[tuple[str, list[int]]] = field(default_factory=list)

    def project(self, name: str, width: int) -> str:
        """x times a weight of this name, with its bias; [B, S, width]."""
        random = np.random.default_rng(len(self.weights))
        upright = self.linear in ("matmul", "bias")
        weight = "w_q" if self.shared and name == "k" else f"w_{name}"
        array = random.standard_normal((self.width, width) if upright else (width, self.width)) / self.width**0.5
        self.weights.setdefault(weight, array.astype(self.dtype))
        if self.linear in ("bias", "gemm"):
            self.weights[f"b_{name}"] = random.standard_normal(width).astype(self.dtype)
        if self.linear == "gemm":
            flat = self.one("Reshape", "x", self.ints(-1, self.width))
            product = self.one("Gemm", flat, weight, f"b_{name}", transB=1)
            return self.one("Reshape", product, self.ints(B, S, width))
        product = self.one("MatMul", "x", self.one("Transpose", weight, perm=[1, 0]) if self.linear == "transpose" else weight)
        return self.one("Add", product, f"b_{name}") if self.linear == "bias" else product

    def turn(self, x: str, how: str) -> str:
        """The rotation of x [B, N, S, D]."""
        zero, half, width, last = self.ints(0), self.ints(D // 2), self.ints(D), self.ints(-1)
        if how == "apart":
            pairs = self.one("Reshape", x, self.ints(0, 0, 0, D // 2, 2))
            x = self.one("Reshape", self.one("Transpose", pairs, perm=[0, 1, 2, 4, 3]), self.ints(0, 0, 0, D))
        if how == "pairs":
            even = self.one("Slice", x, zero, width, last, self.ints(2))
            odd = self.one("Slice", x, self.ints(1), width, last, self.ints(2))
            parts = [self.one("Unsqueeze", self.one("Neg", odd), last), self.one("Unsqueeze", even, last)]
            turned = self.one("Reshape", self.one("Concat", *parts, axis=-1), self.ints(0, 0, 0, D))
        else:
            low, high = self.one("Slice", x, zero, half, last), self.one("Slice", x, half, width, last)
            turned = self.one("Concat", self.one("Neg", high), low, axis=-1)
        tables = ("cos_pairs", "sin_pairs") if how == "pairs" else ("cos", "sin")
        return self.one("Add", self.one("Mul", x, tables[0]), self.one("Mul", turned, tables[1]))

    def rotated(self, x: str, how: str) -> str:
        """x [B, N, S, rest + D] with its last D channels turned."""
        if self.rest == 0:
            return self.turn(x, how)
        self.weights["i_parts"] = np.array([self.rest, D], np.int64)
        kept, turned = self.op("Split", x, "i_parts", outputs=2, axis=-1)
        return self.one("Concat", kept, self.turn(turned, how), axis=-1)

    def model(self) -> onnx.ModelProto:
        """softmax (q k^T / sqrt (D) + mask) v."""
        size = D + self.rest
        counts = {"q": self.heads, "k": self.groups, "v": self.groups}
        if self.packed:
            self.weights["i_packed"] = np.array([n * size for n in counts.values()], np.int64)
            whole = self.project("qkv", sum(counts.values()) * size)
            given = dict(zip(counts, self.op("Split", whole, "i_packed", outputs=3, axis=-1)))
        else:
            given = {name: self.project(name, n * size) for name, n in counts.items()}
        if self.key_read:
            self.outputs.append((given["k"], [B, S, self.groups * size]))
        heads = {name: self.one("Transpose", self.one("Reshape", given[name], self.ints(B, S, n, size)), perm=[0, 2, 1, 3])
                 for name, n in counts.items()}
        if self.gained:
            self.weights["gain"] = np.linspace(0.5, 1.5, size).astype(self.dtype)
            heads |= {name: self.one("Mul", heads[name], "gain") for name in "qk"}
        q = self.rotated(heads["q"], self.rotary)
        k = self.rotated(heads["k"], "half" if self.only_query else self.rotary)
        v = heads["v"]
        if self.cached:
            self.outputs.append((k, [B, self.groups, S, size]))
        if self.groups != self.heads:
            n = self.heads // self.groups
            k, v = (self.one("Reshape", self.one("Expand", self.one("Unsqueeze", x, self.ints(2)),
                                                 self.ints(B, self.groups, n, S, size)), self.ints(B, self.heads, S, size))
                    for x in (k, v))
        scores = self.one("MatMul", q, self.one("Transpose", k, perm=[0, 1, 3, 2]))
        self.weights |= {"scale": np.array(size**-0.5, self.dtype), "low": np.array(np.finfo(self.dtype).min, self.dtype)}
        masked = self.one("Where", "keep", self.one("Mul", scores, "scale"), "low")
        self.nodes.append(helper.make_node("MatMul", [self.one("Softmax", masked, axis=-1), v], ["y"]))
        self.outputs.append(("y", [B, self.heads, S, size]))
        angles = np.arange(S)[:, None] / 10000 ** (np.arange(D // 2) / (D // 2))
        for name, function in (("cos", np.cos), ("sin", np.sin)):
            table = function(angles).astype(self.dtype)[None, None]
            self.weights[name] = np.concatenate([table, table], -1)
            self.weights[f"{name}_pairs"] = np.repeat(table, 2, -1)
        kind = helper.np_dtype_to_tensor_dtype(np.dtype(self.dtype))
        used = {name for node in self.nodes for name in node.input}
        graph = helper.make_graph(
            self.nodes, "g",
            [helper.make_tensor_value_info("x", kind, [B, S, self.width]),
             helper.make_tensor_value_info("keep", TensorProto.BOOL, [1, 1, S, S])],
            [helper.make_tensor_value_info(name, kind, dims) for name, dims in self.outputs],
            [numpy_helper.from_array(array, name) for name, array in self.weights.items() if name in used],
        )
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def optimized(tmp_path: Path, attention: Attention, external: bool = False, *flags: str) -> tuple[list[str], list[dict], float]:
    """Optimizes for 310P; returns the operators, the rotary sites, and the largest error beside the largest number."""
    source, output, expanded = (tmp_path / f"{name}.onnx" for name in ("source", "output", "expanded"))
    model = attention.model()
    onnx.save(model, source, save_as_external_data=external, location="source.data", size_threshold=1024)
    report = json.loads(run_ok("optimize", source, "-o", output, "--target", "ascend310p", "--json", "-", "--quiet", *flags).out)
    run_ok("expand", output, "-o", expanded, "--quiet")
    again = tmp_path / "again.onnx"
    run_ok("optimize", output, "-o", again, "--target", "ascend310p", "--quiet", *flags)
    assert again.read_bytes() == output.read_bytes() or external
    random = np.random.default_rng(7)
    feeds = {"x": random.standard_normal((B, S, K)).astype(attention.dtype),
             "keep": np.tril(np.ones((S, S), bool))[None, None]}
    wanted, given = (plain_session(path, threads=1).run(None, feeds) for path in (source, expanded))
    error = max(np.abs(a.astype(np.float64) - b).max() / max(1, np.abs(a).max()) for a, b in zip(wanted, given, strict=True))
    ops = [node.op_type for node in onnx.load(output, load_external_data=False).graph.node]
    sites = [site for site in report["sites"] if site["kind"] == "rotary"]
    assert {site["state"] for site in sites} == {"fused"}
    return ops, sites, float(error)


TABLES = 2  # that are taken apart for all rotations of a model


def orders(ops: list[str]) -> int:
    """All Transposes: beside those of the heads, one for every value that is taken apart or joined when the model runs."""
    return ops.count("Transpose")


@pytest.mark.parametrize("dtype", ["float32", "float16"])
@pytest.mark.parametrize("rotary", ["pairs", "apart"])
@pytest.mark.parametrize("linear", ["matmul", "bias", "gemm", "transpose"])
@pytest.mark.parametrize("packed", [False, True], ids=["separate", "packed"])
def test_orders_go_into_weights(tmp_path: Path, dtype: str, rotary: str, linear: str, packed: bool) -> None:
    plain = Attention(rotary="half", linear=linear, packed=packed, dtype=dtype)
    ops, _, _ = optimized(tmp_path, plain)
    attention = Attention(rotary=rotary, linear=linear, packed=packed, dtype=dtype)
    folded, sites, error = optimized(tmp_path, attention)
    assert error <= (2e-2 if dtype == "float16" else 1e-5)
    assert not any(site["because"] for site in sites)
    # Nothing is left of the order but that of the tables.
    assert orders(folded) - orders(ops) == (TABLES if rotary == "pairs" else 0)


@pytest.mark.parametrize("attention", [
    Attention(rest=64), Attention(rest=64, packed=True), Attention(rest=64, rotary="apart", packed=True, linear="bias"),
    Attention(heads=4, groups=2), Attention(heads=4, groups=1, packed=True, linear="gemm"),
], ids=["partial", "partial_packed", "partial_apart", "grouped", "one_group"])  # fmt: skip
def test_parts_of_heads_and_groups(tmp_path: Path, attention: Attention) -> None:
    like = Attention("half", attention.heads, attention.groups, attention.rest, attention.linear, attention.packed)
    ops, _, _ = optimized(tmp_path, like)
    folded, sites, error = optimized(tmp_path, attention)
    assert error <= 1e-5
    assert not any(site["because"] for site in sites)
    assert orders(folded) - orders(ops) == (TABLES if attention.rotary == "pairs" else 0)


def test_external_weights_are_reordered_in_ranges(tmp_path: Path) -> None:
    for linear in ("matmul", "gemm"):
        _, sites, error = optimized(tmp_path, Attention(linear=linear), external=True)
        assert error <= 1e-5
        assert not any(site["because"] for site in sites)


@pytest.mark.parametrize(("attention", "said", "left"), [
    # The cache holds the rotated key as it was; what stands in front of the kernels goes into the weights all the same.
    (Attention(cached=True), "is an output of the graph", 2),
    (Attention(only_query=True), "the other of query and key", 1),
    # In front of one kernel or both, and nothing after them.
    (Attention(key_read=True), "is an output of the graph", 1),
    (Attention(shared=True), "has 2 readers", None),  # one value for both, taken apart once
    (Attention(gained=True), "Mul computes it", 2),
], ids=["cache", "only_query", "projection_read", "shared_weight", "gain_between"])
def test_what_is_seen_from_outside_stays(tmp_path: Path, attention: Attention, said: str, left: int | None) -> None:
    ops, _, _ = optimized(tmp_path, replace(Attention(rotary="half"), cached=attention.cached))
    kept, sites, error = optimized(tmp_path, attention)
    assert error <= 1e-5
    assert any(said in site["because"] for site in sites), [site["because"] for site in sites]
    assert left is None or orders(kept) - orders(ops) == TABLES + left


@pytest.mark.parametrize("linear", ["matmul", "gemm"])
def test_large_weights_are_streamed(tmp_path: Path, linear: str) -> None:
    """Two weights of 32 MB are reordered in a process that never holds one of them."""
    source, output = tmp_path / "source.onnx", tmp_path / "output.onnx"
    onnx.save(Attention(heads=64, groups=64, linear=linear, width=2048).model(), source)
    measured = "import resource, subprocess, sys; subprocess.run(sys.argv[1:], check=True); " \
               "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)"
    flags = ["--target", "ascend310p", "--quiet"]
    command = ["python3", "-c", measured, str(TOOL), "optimize", str(source), "-o", str(output), *flags]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert int(done.stdout.split()[-1]) * 1024 < 40 << 20, done.stdout
    names = [tensor.name for tensor in onnx.load(output, load_external_data=False).graph.initializer]
    assert {"w_q_ordered", "w_k_ordered"} <= set(names)
    assert not {"w_q", "w_k"} & set(names)
