"""Attentions whose tokens stand before the batch, [S, B, E]: projections and what stands around them are computed with the batch
first where that leaves fewer Transposes.

Each model is one or two layers in a form of its own: who brings the tokens first and back, separate or packed projections, Gemm on
rows, heads folded into the batch, grouped heads, keys of another length, a mask, norms and a residual. What is right is ONNX Runtime
on the model as it was, against the optimized model, expanded.
"""

from __future__ import annotations

import json
import random
from dataclasses import dataclass, field, fields, replace
from pathlib import Path

import numpy as np
import onnx
import pytest
from ascend_fuse.session import plain_session
from conftest import run_ok
from node_list import NodeList
from onnx import TensorProto, helper, numpy_helper

D, N = 16, 4
E = N * D


@dataclass
class Layer(NodeList):
    """What a model is like. The defaults are torch.nn.MultiheadAttention with batch_first=True."""

    tokens_first: bool = False  # input and output are [S, B, E], and what stands between the attentions
    packed: str = "no"  # one product for query, key and value; "gather", "split" and "last" say how it is taken apart
    folded: bool = False  # heads are folded into the batch
    gemm: bool = True  # the result is projected as rows [S * B, E]
    bias: bool = True
    residual: bool = False
    norm: str = "no"  # "layer" or "rms", before the projections
    cross: bool = False  # keys and values are of another input, of another length
    masked: bool = False
    read: str = "no"  # what is read from outside too, as it is: "projected" values, or the result's "rows"
    layers: int = 1
    batch: int = 2
    dynamic: bool = True
    dtype: str = "float32"
    outputs: list[tuple[str, list[object]]] = field(default_factory=list)

    def number(self, value: int) -> str:
        self.weights[f"n_{value}"] = np.array(value, np.int64)
        return f"n_{value}"

    def weight(self, *dims: int) -> str:
        name = f"w_{len(self.weights)}"
        array = np.random.default_rng(len(self.weights)).standard_normal(dims) / max(dims[0], 4) ** 0.5
        self.weights[name] = array.astype(self.dtype)
        return name

    def linear(self, x: str, width: int) -> str:
        y = self.one("MatMul", x, self.weight(E, width))
        return self.one("Add", y, self.weight(width)) if self.bias else y

    def parts(self, x: str, count: int) -> list[str]:
        """One product of x [S, B, E], taken apart."""
        whole = self.linear(x, count * E)
        if self.packed == "last":
            return self.op("Split", whole, self.ints(*[E] * count), outputs=count, axis=-1)
        apart = self.one("Unsqueeze", self.one("Reshape", whole, self.ints(0, 0, count, E)), self.ints(0))
        first = self.one("Transpose", apart, perm=[3, 1, 2, 0, 4])
        if self.packed == "gather":
            squeezed = self.one("Squeeze", first, self.ints(-2))
            return [self.one("Gather", squeezed, self.number(i), axis=0) for i in range(count)]
        return [self.one("Squeeze", part, self.ints(0, -2))
                for part in self.op("Split", first, self.ints(*[1] * count), outputs=count, axis=0)]

    def heads(self, x: str) -> str:
        """[S, B, E] as [B, N, S, D]."""
        if not self.folded:
            return self.one("Transpose", self.one("Reshape", x, self.ints(0, 0, N, D)), perm=[1, 2, 0, 3])
        shape = self.one("Shape", x)
        tokens, batch = (self.one("Gather", shape, self.ints(i), axis=0) for i in (0, 1))
        folds = self.one("Concat", tokens, self.one("Mul", batch, self.ints(N)), self.ints(D), axis=0)
        turned = self.one("Transpose", self.one("Reshape", x, folds), perm=[1, 0, 2])
        return self.one("Reshape", turned, self.one("Concat", batch, self.ints(N), tokens, self.ints(D), axis=0))

    def attention(self, x: str, memory: str) -> str:
        """Of x [S, B, E] and memory [T, B, E]; [S, B, E]."""
        if self.packed == "no":
            q, k, v = (self.linear(source, E) for source in (x, memory, memory))
        elif self.cross:
            q, (k, v) = self.linear(x, E), self.parts(memory, 2)
        else:
            q, k, v = self.parts(x, 3)
        if self.read == "projected":
            self.outputs.append((v, ["T" if self.cross else "S", "B", E]))
        q, k, v = (self.heads(value) for value in (q, k, v))
        scores = self.one("MatMul", q, self.one("Transpose", k, perm=[0, 1, 3, 2]))
        self.weights["scale"] = np.array(D**-0.5, self.dtype)
        scores = self.one("Mul", scores, "scale")
        if self.masked:
            self.weights["low"] = np.array(np.finfo(self.dtype).min, self.dtype)
            scores = self.one("Where", self.one("Unsqueeze", "keep", self.ints(1, 2)), scores, "low")
        result = self.one("MatMul", self.one("Softmax", scores, axis=-1), v)
        rows = self.one("Transpose", result, perm=[2, 0, 1, 3])
        if not self.gemm:
            return self.linear(self.one("Reshape", rows, self.ints(0, 0, E)), E)
        flat = self.one("Gemm", self.one("Reshape", rows, self.ints(-1, E)), self.weight(E, E), self.weight(E))
        if self.read == "rows":
            self.outputs.append((flat, ["rows", E]))
        return self.one("Reshape", flat, self.one("Shape", x))

    def normed(self, x: str) -> str:
        if self.norm == "no":
            return x
        if self.norm == "layer":
            return self.one("LayerNormalization", x, self.weight(E), self.weight(E), axis=-1)
        self.weights |= {"two": np.array(2, self.dtype), "epsilon": np.array(1e-6, self.dtype)}
        mean = self.one("Add", self.one("ReduceMean", self.one("Pow", x, "two"), axes=[-1], keepdims=1), "epsilon")
        return self.one("Mul", self.one("Div", x, self.one("Sqrt", mean)), self.weight(E))

    def model(self) -> onnx.ModelProto:
        turned = {"perm": [1, 0, 2]}
        x = "x"
        for _ in range(self.layers):
            given = self.normed(x)
            if not self.tokens_first:
                given = self.one("Transpose", given, **turned)
            keys = given
            if self.cross:
                keys = "memory" if self.tokens_first else self.one("Transpose", "memory", **turned)
            y = self.attention(given, keys)
            if not self.tokens_first:
                y = self.one("Transpose", y, **turned)
            x = self.one("Add", x, y) if self.residual else y
        self.nodes.append(helper.make_node("Tanh", [x], ["y"]))
        dims = {"S": "S", "T": "T", "B": "B"} if self.dynamic else {"S": 5, "T": 7, "B": self.batch}
        dims |= {"rows": "rows" if self.dynamic else 5 * self.batch}
        kind = helper.np_dtype_to_tensor_dtype(np.dtype(self.dtype))
        order = ["S", "B"] if self.tokens_first else ["B", "S"]
        others = ["T", "B"] if self.tokens_first else ["B", "T"]
        used = {name for node in self.nodes for name in node.input}
        inputs = [("x", kind, [*order, E]), ("memory", kind, [*others, E]), ("keep", TensorProto.BOOL, ["B", "T" if self.cross else "S"])]
        graph = helper.make_graph(
            self.nodes, "g",
            [helper.make_tensor_value_info(name, type_, [dims.get(dim, dim) for dim in shape])
             for name, type_, shape in inputs if name in used],
            [helper.make_tensor_value_info(name, kind, [dims.get(dim, dim) for dim in shape])
             for name, shape in [("y", [*order, E]), *self.outputs]],
            [numpy_helper.from_array(array, name) for name, array in self.weights.items() if name in used],
        )
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def transposes(tmp_path: Path, layer: Layer, *flags: str) -> int:
    """Optimizes and compares in numbers; how many Transposes are left."""
    source, output, expanded, again = (tmp_path / f"{name}.onnx" for name in ("source", "output", "expanded", "again"))
    model = layer.model()
    onnx.checker.check_model(model)
    onnx.save(model, source)
    report = json.loads(run_ok("optimize", source, "-o", output, "--json", "-", "--quiet", *flags).out)
    assert [site["state"] for site in report["sites"] if site["kind"] == "attention"] == ["fused"] * layer.layers
    run_ok("expand", output, "-o", expanded, "--quiet")
    run_ok("optimize", output, "-o", again, "--quiet", *flags)
    assert again.read_bytes() == output.read_bytes()
    for batch in {layer.batch, 1, 3} if layer.dynamic else {layer.batch}:
        generator = np.random.default_rng(7)
        keep = generator.random((batch, 7 if layer.cross else 5)) < 0.7
        keep[:, 0] = True
        shapes = {"x": (batch, 5, E), "memory": (batch, 7, E)}
        feeds = {name: generator.standard_normal(shape).astype(layer.dtype) for name, shape in shapes.items()}
        if layer.tokens_first:
            feeds = {name: array.transpose(1, 0, 2) for name, array in feeds.items()}
        feeds |= {"keep": keep}
        feeds = {entry.name: feeds[entry.name] for entry in model.graph.input}
        wanted, given = (plain_session(path, threads=1).run(None, feeds) for path in (source, expanded))
        for before, after in zip(wanted, given, strict=True):
            assert before.shape == after.shape
            error = np.abs(before.astype(np.float64) - after).max() / max(1, np.abs(before).max())
            assert error <= (2e-2 if layer.dtype == "float16" else 1e-5), error
    return [node.op_type for node in onnx.load(output).graph.node].count("Transpose")


@pytest.mark.parametrize("packed", ["no", "gather", "split", "last"])
@pytest.mark.parametrize("folded", [False, True], ids=["heads", "folded"])
@pytest.mark.parametrize("gemm", [False, True], ids=["matmul", "gemm"])
@pytest.mark.parametrize("dynamic", [False, True], ids=["static", "dynamic"])
def test_no_transpose_is_left_where_the_batch_comes_first(
    tmp_path: Path, packed: str, folded: bool, gemm: bool, dynamic: bool
) -> None:
    layer = Layer(packed=packed, folded=folded, gemm=gemm, dynamic=dynamic, residual=True)
    assert transposes(tmp_path, layer) == 0


@pytest.mark.parametrize("layer", [
    Layer(cross=True), Layer(cross=True, packed="gather"), Layer(cross=True, masked=True, folded=True), Layer(masked=True),
    Layer(norm="layer", residual=True, layers=2), Layer(norm="rms", residual=True, layers=2), Layer(dtype="float16", packed="gather"),
    Layer(batch=1, dynamic=False), Layer(bias=False),
], ids=["cross", "cross_packed", "cross_masked", "masked", "layers", "rms_layers", "float16", "batch_of_one", "plain"])  # fmt: skip
def test_other_forms(tmp_path: Path, layer: Layer) -> None:
    assert transposes(tmp_path, layer) == 0


@pytest.mark.parametrize("packed", ["no", "gather"])
@pytest.mark.parametrize("norm", ["no", "layer", "rms"])
@pytest.mark.parametrize("layers", [1, 2])
def test_models_with_the_tokens_first_are_turned_once(tmp_path: Path, packed: str, norm: str, layers: int) -> None:
    """One Transpose before all layers, and one after them."""
    assert transposes(tmp_path, Layer(tokens_first=True, packed=packed, norm=norm, layers=layers, residual=True)) == 2


@pytest.mark.parametrize("read", ["projected", "rows"])
def test_what_is_read_elsewhere_is_turned_for_it_alone(tmp_path: Path, read: str) -> None:
    assert transposes(tmp_path, Layer(read=read)) == 1
    assert transposes(tmp_path, Layer(read=read, packed="gather")) == 1


def test_a_chip_with_one_layout_loses_nothing(tmp_path: Path) -> None:
    for layer in (Layer(dynamic=False), Layer(dynamic=False, packed="gather"), Layer(dynamic=False, tokens_first=True)):
        model = replace(layer, nodes=[], weights={}, outputs=[]).model()
        before = [node.op_type for node in model.graph.node].count("Transpose")
        assert transposes(tmp_path, layer, "--target", "ascend310p") < before


@pytest.mark.parametrize("seed", range(24))
def test_any_form(tmp_path: Path, seed: int) -> None:
    """Drawn at random: the numbers are right, and no more Transposes than the model has."""
    draw = random.Random(seed)
    choices = {"packed": ["no", "gather", "split", "last"], "norm": ["no", "layer", "rms"], "read": ["no", "projected", "rows"],
               "layers": [1, 2], "batch": [1, 2], "dtype": ["float32", "float16"]}  # fmt: skip
    chosen = {entry.name: draw.choice(choices.get(entry.name, [False, True])) for entry in fields(Layer)
              if entry.name not in ("nodes", "weights", "outputs")}
    if not chosen["gemm"] and chosen["read"] == "rows":
        chosen["read"] = "no"
    before = [node.op_type for node in Layer(**chosen).model().graph.node].count("Transpose")
    assert transposes(tmp_path, Layer(**chosen)) < before
