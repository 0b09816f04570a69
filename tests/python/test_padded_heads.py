"""Heads of a size that the kernel does not take: zeros in the weights of the projections make them wider.

Each model is an attention with its projections, written in a form of its own: packed or separate projections, bias, Gemm,
transposed weights, grouped heads, wider values, masks, results that a product reads or something else. What is right is ONNX
Runtime on the model as it was, against the optimized model, expanded.
"""

from __future__ import annotations

import json
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import onnx
import pytest
from ascend_fuse.session import plain_session
from conftest import TOOL, run_ok
from node_list import NodeList
from onnx import TensorProto, helper, numpy_helper

K, S, B = 24, 32, 2


@dataclass
class Attention(NodeList):
    """What a model is like. `head` and `value` are the sizes of heads, `width` that of x."""

    head: int = 24
    value: int = 24
    heads: int = 2
    groups: int = 2
    linear: str = "matmul"  # matmul, bias, gemm, transpose, einsum
    packed: str = ""  # one product for query, key and value, cut by "split", "slice" or "gather" (of [3, B, N, S, D])
    masked: bool = False
    result: str = "product"  # what reads it: product, gemm, einsum, output, gate
    query: str = ""  # what is done to the query: norm, halves (a rotation), read (it is an output), scaled
    cached: bool = False  # a past is joined to the key, and both are an output
    given: bool = False  # the weight of the query is an input
    shared: bool = False  # a second attention of the same weights reads the result of the first one
    open_dims: bool = False
    width: int = K
    dtype: str = "float32"
    opset: int = 17
    outputs: list[str] = field(default_factory=list)
    inputs: dict[str, np.ndarray] = field(default_factory=dict)

    def constant(self, name: str, array: np.ndarray) -> str:
        self.weights.setdefault(name, array)
        return name

    def random(self, name: str, *shape: int) -> str:
        random = np.random.default_rng(sum(map(ord, name)))
        return self.constant(name, (random.standard_normal(shape) / shape[0]**0.5).astype(self.dtype))

    def rows(self, x: str, *dims: int) -> str:
        """x [B, S, n] as [B, S, *dims], B and S taken from x itself where they are open."""
        if not self.open_dims:
            return self.one("Reshape", x, self.ints(B, S, *dims))
        shape = self.one("Shape", x)
        parts = [self.one("Unsqueeze", self.one("Gather", shape, self.constant(f"at_{i}", np.array(i, np.int64))), self.ints(0))
                 for i in (0, 1)]
        return self.one("Reshape", x, self.one("Concat", *parts, *(self.ints(dim) for dim in dims), axis=0))

    def project(self, x: str, name: str, width: int) -> str:
        """x times a weight of this name, with its bias; [B, S, width]."""
        upright = self.linear in ("matmul", "bias", "einsum")
        weight = self.random(f"w_{name}", *((self.width, width) if upright else (width, self.width)))
        if self.given and name == "q":
            self.inputs[weight] = self.weights.pop(weight)
        bias = self.random(f"b_{name}", width) if self.linear in ("bias", "gemm") else ""
        if self.linear == "gemm":
            flat = self.one("Reshape", x, self.ints(-1, self.width))
            return self.one("Reshape", self.one("Gemm", flat, weight, bias, transB=1), self.ints(B, S, width))
        if self.linear == "einsum":
            return self.one("Einsum", x, weight, equation="bsk,kn->bsn")
        product = self.one("MatMul", x, self.one("Transpose", weight, perm=[1, 0]) if self.linear == "transpose" else weight)
        return self.one("Add", product, bias) if bias else product

    def operands(self, x: str) -> dict[str, str]:
        """Query, key and value as [B, N, S, D]."""
        counts = {"q": self.heads, "k": self.groups, "v": self.groups}
        sizes = {"q": self.head, "k": self.head, "v": self.value}
        widths = [counts[name] * sizes[name] for name in counts]
        if not self.packed:
            parts = {name: self.project(x, name, widths[i]) for i, name in enumerate(counts)}
        else:
            whole = self.project(x, "qkv", sum(widths))
            if self.packed == "gather":
                five = self.one("Transpose", self.rows(whole, 3, self.heads, self.head), perm=[2, 0, 3, 1, 4])
                return {name: self.one("Gather", five, self.constant(f"at_{i}", np.array(i, np.int64)), axis=0)
                        for i, name in enumerate(counts)}
            if self.packed == "split":
                parts = dict(zip(counts, self.op("Split", whole, self.ints(*widths), outputs=3, axis=-1)))
            else:
                ends = np.cumsum([0, *widths]).tolist()
                parts = {name: self.one("Slice", whole, self.ints(ends[i]), self.ints(ends[i + 1]), self.ints(2))
                         for i, name in enumerate(counts)}
        return {name: self.one("Transpose", self.rows(part, counts[name], sizes[name]), perm=[0, 2, 1, 3])
                for name, part in parts.items()}

    def changed(self, q: str) -> str:
        if self.query == "norm":
            scale, shift = self.random("gain", self.head), self.random("shift", self.head)
            return self.one("LayerNormalization", q, scale, shift, axis=-1)
        if self.query == "halves":
            low, high = self.op("Split", q, self.ints(self.head // 2, self.head // 2), outputs=2, axis=-1)
            turned = self.one("Concat", self.one("Neg", high), low, axis=-1)
            angles = np.arange(S)[:, None] / 100 ** (np.arange(self.head) % (self.head // 2) / self.head)
            cos = self.constant("cos", np.cos(angles)[None, None].astype(self.dtype))
            sin = self.constant("sin", np.sin(angles)[None, None].astype(self.dtype))
            return self.one("Add", self.one("Mul", q, cos), self.one("Mul", turned, sin))
        if self.query == "read":
            self.outputs.append(q)
        return self.one("Mul", q, self.random("gain", self.head)) if self.query == "scaled" else q

    def attend(self, x: str) -> str:
        """What the projection of softmax (q k^T / sqrt (D) + mask) v gives, or that itself."""
        parts = self.operands(x)
        q, k, v = self.changed(parts["q"]), parts["k"], parts["v"]
        if self.cached:
            self.inputs["past"] = np.ones((B, self.groups, S, self.head), self.dtype)
            k = self.one("Concat", "past", k, axis=2)
            v = self.one("Concat", v, v, axis=2)
            self.outputs.append(k)
        if self.groups != self.heads:
            n = self.heads // self.groups
            k, v = (self.one("Reshape", self.one("Expand", self.one("Unsqueeze", part, self.ints(2)),
                                                 self.ints(B, self.groups, n, S, size)), self.ints(B, self.heads, S, size))
                    for part, size in ((k, self.head), (v, self.value)))
        scores = self.one("MatMul", q, self.one("Transpose", k, perm=[0, 1, 3, 2]))
        scores = self.one("Mul", scores, self.constant("scale", np.array(self.head**-0.5, self.dtype)))
        if self.masked:
            self.inputs["keep"] = np.tril(np.ones((1, 1, S, S), bool), 3) & (np.arange(S) % 7 != 5)
            scores = self.one("Where", "keep", scores, self.constant("low", np.array(np.finfo(self.dtype).min, self.dtype)))
        result = self.one("MatMul", self.one("Softmax", scores, axis=-1), v)
        if self.result == "output":
            return result
        size = self.heads * self.value
        if self.result == "einsum":
            return self.one("Einsum", result, self.random("w_o", self.heads, self.value, self.width), equation="bnsd,ndm->bsm")
        flat = self.rows(self.one("Transpose", result, perm=[0, 2, 1, 3]), size)
        if self.result == "gate":
            flat = self.one("Mul", flat, self.one("Sigmoid", self.project(x, "g", size)))
        if self.result == "gemm":
            rows = self.one("Reshape", flat, self.ints(-1, size))
            return self.one("Reshape", self.one("Gemm", rows, self.random("w_o", self.width, size), transB=1),
                            self.ints(B, S, self.width))
        return self.one("MatMul", flat, self.random("w_o", size, self.width))

    def model(self) -> onnx.ModelProto:
        random = np.random.default_rng(7)
        self.inputs["x"] = random.standard_normal((B, S, self.width)).astype(self.dtype)
        result = self.attend("x")
        if self.shared:
            result = self.attend(result)
        self.outputs.insert(0, result)
        kind = helper.np_dtype_to_tensor_dtype(np.dtype(self.dtype))
        used = {name for node in self.nodes for name in node.input}
        open_shape = ["batch", "tokens", self.width] if self.open_dims else None
        graph = helper.make_graph(
            self.nodes, "g",
            [helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype),
                                           open_shape if name == "x" and open_shape else array.shape)
             for name, array in self.inputs.items()],
            [helper.make_tensor_value_info(name, kind, None) for name in self.outputs],
            [numpy_helper.from_array(array, name) for name, array in self.weights.items() if name in used],
        )
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", self.opset)], ir_version=8)
        return onnx.shape_inference.infer_shapes(model)


def optimized(tmp_path: Path, attention: Attention, *flags: str, external: bool = False) -> tuple[onnx.ModelProto, list[dict]]:
    """Optimizes, and compares the numbers; returns the model and its attentions."""
    source, output, expanded, again = (tmp_path / f"{name}.onnx" for name in ("source", "output", "expanded", "again"))
    onnx.save(attention.model(), source, save_as_external_data=external, location="source.data", size_threshold=1024)
    report = json.loads(run_ok("optimize", source, "-o", output, "--json", "-", "--quiet", *flags).out)
    run_ok("expand", output, "-o", expanded, "--quiet")
    run_ok("optimize", output, "-o", again, "--quiet", *flags)
    assert again.read_bytes() == output.read_bytes() or external
    onnx.checker.check_model(onnx.load(expanded), full_check=True)
    wanted, given = (plain_session(path, threads=1).run(None, attention.inputs) for path in (source, expanded))
    for a, b in zip(wanted, given, strict=True):
        error = np.abs(a.astype(np.float64) - b).max() / max(1, np.abs(a).max())
        assert error <= (4e-3 if attention.dtype == "float16" else 1e-6), error
    model = onnx.load(output, load_external_data=False)
    # The scale is that of the heads as they were.
    scales = [a.f for node in model.graph.node for a in node.attribute if a.name == "scale_value"]
    assert all(abs(scale - attention.head**-0.5) < (1e-6 if attention.dtype == "float32" else 1e-3) for scale in scales)
    return model, [site for site in report["sites"] if site["kind"] == "attention"]


def padded(model: onnx.ModelProto) -> set[str]:
    """The weights that were widened."""
    return {tensor.name.removesuffix("_padded") for tensor in model.graph.initializer if tensor.name.endswith("_padded")}


def assert_padded(model: onnx.ModelProto, sites: list[dict], *weights: str) -> None:
    assert {site["state"] for site in sites} == {"fused"}, [site["because"] for site in sites]
    assert {site["code"] for site in sites} == {"heads-padded"}
    assert padded(model) == set(weights)
    # Nothing is padded when the model runs, and what was widened is not there twice.
    ops = [node.op_type for node in model.graph.node]
    assert "Pad" not in ops
    assert not {tensor.name for tensor in model.graph.initializer} & set(weights)


@pytest.mark.parametrize("dtype", ["float32", "float16"])
@pytest.mark.parametrize("packed", ["", "split", "slice", "gather"], ids=["separate", "split", "slice", "gather"])
@pytest.mark.parametrize("linear", ["matmul", "bias", "gemm", "transpose", "einsum"])
def test_zeros_go_into_weights(tmp_path: Path, dtype: str, packed: str, linear: str) -> None:
    model, sites = optimized(tmp_path, Attention(linear=linear, packed=packed, dtype=dtype))
    names = ["qkv"] if packed else ["q", "k", "v"]
    biases = [f"b_{name}" for name in names] if linear in ("bias", "gemm") else []
    assert_padded(model, sites, "w_o", *(f"w_{name}" for name in names), *biases)
    assert "Slice" not in [node.op_type for node in model.graph.node] or packed == "slice"


@pytest.mark.parametrize("attention", [
    Attention(masked=True), Attention(result="gemm"), Attention(result="einsum"), Attention(heads=4, linear="bias"),
    Attention(heads=4, packed="split"), Attention(query="scaled"), Attention(open_dims=True), Attention(shared=True),
    Attention(open_dims=True, packed="split", linear="bias"), Attention(open_dims=True, packed="gather"),
    Attention(opset=11, packed=""),
], ids=["masked", "gemm", "einsum", "grouped", "grouped_packed", "scaled", "open", "shared", "open_split", "open_gather",
        "opset_11"])  # fmt: skip
def test_other_forms(tmp_path: Path, attention: Attention) -> None:
    model, sites = optimized(tmp_path, attention)
    names = ["w_qkv"] if attention.packed else ["w_q", "w_k", "w_v"]
    names += ["b_" + name[2:] for name in names] if attention.linear == "bias" else []
    assert_padded(model, sites, "w_o", *names, *(["gain"] if attention.query == "scaled" else []))


@pytest.mark.parametrize("packed", ["", "split"], ids=["separate", "packed"])
@pytest.mark.parametrize(("head", "value", "widened"), [(16, 32, {"q", "k"}), (32, 16, {"v", "o"}), (24, 40, {"q", "k", "v", "o"})])
def test_values_of_another_size(tmp_path: Path, packed: str, head: int, value: int, widened: set[str]) -> None:
    """What has the size already keeps its weight: query and key of narrow values, the output projection of wide ones."""
    model, sites = optimized(tmp_path, Attention(head=head, value=value, packed=packed))
    if packed:
        widened = widened - set("qkv") | {"qkv"}
    assert_padded(model, sites, *(f"w_{name}" for name in widened))


@pytest.mark.parametrize("result", ["output", "gate"])
def test_a_result_that_no_weight_reads_is_sliced(tmp_path: Path, result: str) -> None:
    model, sites = optimized(tmp_path, Attention(result=result))
    assert_padded(model, sites, "w_q", "w_k", "w_v")
    assert [node.op_type for node in model.graph.node].count("Slice") == 1
    assert "a Slice takes out of the result" in sites[0]["because"]


@pytest.mark.parametrize(("attention", "said"), [
    (Attention(query="norm"), "LayerNormalization"),
    (Attention(query="halves"), "Rotary"),
    (Attention(query="read"), "is an output of the graph"),
    (Attention(cached=True), "is an output of the graph"),
    (Attention(given=True), "w_q is an input"),
    (Attention(head=7, value=7), "more than 2 times"),
    (Attention(head=16, value=48), "more than 2 times"),
], ids=["norm", "rotary", "query_read", "cache", "weight_given", "narrow", "wide_values"])
def test_what_zeros_would_change_stays(tmp_path: Path, attention: Attention, said: str) -> None:
    model, sites = optimized(tmp_path, attention)
    assert not padded(model)
    assert {site["state"] for site in sites} == {"left"}
    assert all(said in site["because"] for site in sites), [site["because"] for site in sites]


@pytest.mark.parametrize("head", [16, 48, 80])
def test_heads_that_the_kernel_takes_stay(tmp_path: Path, head: int) -> None:
    model, sites = optimized(tmp_path, Attention(head=head, value=head))
    assert not padded(model)
    assert {(site["state"], site["code"]) for site in sites} == {("fused", "")}


def test_310p_takes_heads_as_they_are_without_a_mask(tmp_path: Path) -> None:
    model, sites = optimized(tmp_path, Attention(), "--target", "ascend310p")
    assert not padded(model)
    assert {site["state"] for site in sites} == {"fused"}


@pytest.mark.parametrize("linear", ["matmul", "gemm"])
def test_external_weights(tmp_path: Path, linear: str) -> None:
    model, sites = optimized(tmp_path, Attention(linear=linear), external=True)
    biases = ["b_q", "b_k", "b_v"] if linear == "gemm" else []
    assert_padded(model, sites, "w_q", "w_k", "w_v", "w_o", *biases)


@pytest.mark.parametrize("linear", ["matmul", "gemm"])
def test_large_weights_are_streamed(tmp_path: Path, linear: str) -> None:
    """Weights of 24 MB get zeros in a process that never holds one of them."""
    source, output = tmp_path / "source.onnx", tmp_path / "output.onnx"
    onnx.save(Attention(heads=128, groups=128, linear=linear, width=2048).model(), source)
    measured = "import resource, subprocess, sys; subprocess.run(sys.argv[1:], check=True); " \
               "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)"
    command = ["python3", "-c", measured, str(TOOL), "optimize", str(source), "-o", str(output), "--quiet"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert int(done.stdout.split()[-1]) * 1024 < 40 << 20, done.stdout
    assert {"w_q", "w_k", "w_v", "w_o"} <= padded(onnx.load(output, load_external_data=False))
