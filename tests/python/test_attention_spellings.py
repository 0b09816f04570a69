"""Attentions in generated spellings: layouts of the operands, heads folded or repeated, scales, masks and softmax in all
combinations. Each must be found and fused, and must be right in numbers.

What is right is ONNX Runtime without graph optimizations on the graph as generated, against the graph after optimize and
expand. Every fourth graph is made wrong in one place: there the numbers must be right all the same, whatever was found.
A run is seeded; ATTENTION_SEED and ATTENTION_COUNT choose another one.
"""

import os
import random

import numpy
import onnx
import onnx.parser
import pytest
from ascend_fuse.session import plain_session

import pipeline
from test_golden_numeric import compare

SEED = int(os.environ.get("ATTENTION_SEED", "1"))
COUNT = int(os.environ.get("ATTENTION_COUNT", "48"))
B, H, S, T, D = 2, 4, 5, 7, 16
LOW = -3.4028235e38


class Spelling:
    """One graph, written line by line. Values are names; `shapes` are dims in numbers or "B"."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.lines, self.constants, self.inputs = [], [], []
        self.type = self.random.choice(["float", "float", "float16"])
        self.batch = self.random.choice(["B", str(B)])
        self.count = 0
        self.wrong = ""  # what makes it another function

    def chance(self, percent):
        return self.random.randrange(100) < percent

    def name(self, stem):
        self.count += 1
        return f"{stem}_{self.count}"

    def op(self, text, *inputs):
        out = self.name("v")
        self.lines.append(f"  {out} = {text} ({', '.join(inputs)})")
        return out

    def number(self, value):
        out = self.name("c")
        if self.type == "float16":  # written as its bits
            value = numpy.float16(value).view(numpy.uint16)
        self.constants.append(f"{self.type} {out} = {{{value}}}")
        return out

    def ints(self, *values):
        out = self.name("i")
        self.constants.append(f"int64[{len(values)}] {out} = {{{', '.join(map(str, values))}}}")
        return out

    def input(self, stem, *dims, kind=None):
        self.inputs.append(f"{kind or self.type}[{', '.join(map(str, dims))}] {stem}")
        return stem

    def reshape(self, x, *dims):
        """`B` and what it is multiplied with is -1."""
        return self.op("Reshape", x, self.ints(*dims))

    def transpose(self, x, *perm):
        return self.op(f"Transpose <perm = [{', '.join(map(str, perm))}]>", x)

    def scaled(self, x, percent=30):
        if not self.chance(percent):
            return x
        value = self.random.choice([0.5, 0.25, 2])
        return self.op(self.random.choice(["Mul", "Div"]), x, self.number(value))

    def operand(self, stem, heads, length):
        """[B, heads, length, D] from one of the layouts of linears and caches."""
        layout = self.random.choice(["heads", "rows", "linear", "sequence first"])
        if layout == "heads":
            return self.scaled(self.input(stem, self.batch, heads, length, D))
        if layout == "rows":
            return self.transpose(self.scaled(self.input(stem, self.batch, length, heads, D)), 0, 2, 1, 3)
        if layout == "linear":
            x = self.scaled(self.input(stem, self.batch, length, heads * D))
            return self.scaled(self.transpose(self.reshape(x, -1, length, heads, D), 0, 2, 1, 3))
        x = self.reshape(self.input(stem, length, self.batch, heads * D), length, -1, heads, D)
        return self.transpose(self.scaled(x), 1, 2, 0, 3)

    def repeated(self, x, groups, length):
        """Each of the heads of keys as often as the query needs it."""
        if groups == H or (groups == 1 and not self.folded and self.chance(50)):
            return x
        u = self.op("Unsqueeze", x, self.ints(2))
        e = self.op("Expand", u, self.ints(1, groups, H // groups, length, D))
        return self.reshape(e, -1, H, length, D)

    def fold(self, x, *dims):
        return self.reshape(x, -1, *dims) if self.folded else x

    def masked(self, scores):
        for _ in range(self.random.choice([0, 1, 1, 2])):
            rows = self.random.choice([1, S])
            four = not self.folded
            leading = [self.random.choice(["1", self.batch]), 1] if four else [1]
            keep = self.input(self.name("keep"), *leading, rows, T, kind="bool")
            low = self.number(-65504 if self.type == "float16" else LOW)
            form = self.random.choice(["add", "where", "drop", "sub"])
            if form == "add":
                scores = self.op("Add", scores, self.op("Where", keep, self.number(0), low))
            elif form == "where":
                scores = self.op("Where", keep, scores, low)
            elif form == "drop":
                scores = self.op("Where", self.op("Not", keep), low, scores)
            else:
                ones = self.op(f"Cast <to = {10 if self.type == 'float16' else 1}>", self.op("Not", keep))
                scores = self.op("Sub", scores, self.op("Mul", ones, self.number(30000)))
            if self.chance(20):
                scores = self.op("Max", scores, low)
        return scores

    def weights(self, x, rank):
        form = self.random.choice(["operator", "operator", "formula", "logarithm"])
        if form == "operator":
            return self.op(f"Softmax <axis = {self.random.choice([-1, rank - 1])}>", x)
        if form == "logarithm":
            return self.op("Exp", self.op("LogSoftmax <axis = -1>", x))
        e = self.op("Exp", self.op("Sub", x, self.op("ReduceMax <axes = [-1]>", x)))
        return self.op("Div", e, self.op("ReduceSum", e, self.ints(-1)))

    def products(self, q, k, v):
        rank = 3 if self.folded else 4
        kt = self.transpose(k, *range(rank - 2), rank - 1, rank - 2)
        scores = self.op("MatMul", self.scaled(q), self.scaled(kt))
        scores = self.op(self.random.choice(["Mul", "Div"]), scores, self.number(4))
        if self.wrong == "scores":
            scores = self.op("Mul", scores, self.input("factor", H if not self.folded else 1, 1, 1))
        if self.chance(20):
            scores = self.op("Add", scores, self.number(0.0001))
        scores = self.masked(scores)
        if self.wrong == "scale after":
            scores = self.op("Mul", scores, self.number(0.5))
        p = self.weights(scores, rank)
        if self.wrong == "weights":
            p = self.op("Mul", p, self.input("factor", 1, S, 1))
        if self.chance(30):
            p = self.op("Where", self.op("IsNaN", p), self.number(0), p)
        if rank == 4 and self.chance(20) and self.groups == H:
            return self.op('Einsum <equation = "bhst,bhtd->bshd">', p, v)
        if self.chance(20):
            back = (*range(rank - 2), rank - 1, rank - 2)
            return self.transpose(self.op("MatMul", self.transpose(v, *back), self.transpose(p, *back)), *back)
        return self.op("MatMul", p, v)

    def model(self, wrong):
        self.wrong = self.random.choice(["scores", "weights", "scale after", "shared"]) if wrong else ""
        self.folded = self.chance(40)
        self.groups = self.random.choice([H, H, 2, 1])
        q = self.fold(self.operand("q", H, S), S, D)
        k = self.fold(self.repeated(self.operand("k", self.groups, T), self.groups, T), T, D)
        v = self.fold(self.repeated(self.operand("v", self.groups, T), self.groups, T), T, D)
        y = self.products(q, k, v)
        extra = ""
        if self.wrong == "shared":
            extra = f", {self.type}[x1, x2, x3, x4] also" if not self.folded else f", {self.type}[x1, x2, x3] also"
            self.lines.append(f"  also = Identity ({self.softmax_input()})")
        if self.folded and self.chance(60):
            y = self.reshape(y, -1, H, S, D)
        rank = 4 if not self.folded or "Reshape" in self.lines[-1] else 3
        self.lines.append(f"  y = Identity ({y})")
        dims = ", ".join(f"y{i}" for i in range(rank))
        return (f'<ir_version: 8, opset_import: ["" : 17]>\nattention ({", ".join(self.inputs)}) => '
                f"({self.type}[{dims}] y{extra})\n<{', '.join(self.constants)}>\n{{\n" + "\n".join(self.lines) + "\n}\n")

    def softmax_input(self):
        """The product of query and key."""
        return next(line.split()[0] for line in self.lines if "MatMul" in line)


def feeds(model, seed):
    rng = numpy.random.default_rng(seed)
    made = {}
    for value in model.graph.input:
        tensor = value.type.tensor_type
        shape = [B if dim.dim_param else dim.dim_value for dim in tensor.shape.dim]
        dtype = onnx.helper.tensor_dtype_to_np_dtype(tensor.elem_type)
        if dtype == bool:
            made[value.name] = rng.integers(0, 2, shape).astype(bool)
            made[value.name][..., 0] = True  # every row keeps a key
        else:
            made[value.name] = rng.standard_normal(shape).astype(dtype)
    return made


@pytest.mark.parametrize("seed", range(SEED * 1000, SEED * 1000 + COUNT))
def test_spelling(seed, tmp_path):
    wrong = seed % 4 == 3
    text = Spelling(seed).model(wrong)
    path = tmp_path / "attention.onnx"
    model = onnx.parser.parse_model(text)
    onnx.save(model, path)
    runs = pipeline.optimize(path, tmp_path, {"run": []})
    assert not runs.wrong, f"{runs.wrong}\n{text}"
    made = runs.targets["run"]
    if not wrong:
        attention = made.report["summary"]["sites"]["attention"]
        assert (attention["found"], attention["fused"]) == (1, 1), f"{attention}\n{made.report['near_misses']}\n{text}"
    names = [output.name for output in model.graph.output]
    inputs = feeds(model, seed)
    expected = plain_session(model.SerializeToString(), threads=1).run(names, inputs)
    found = plain_session(made.expanded.read_bytes(), threads=1).run(names, inputs)
    for name, a, b in zip(names, expected, found):
        try:
            compare(name, a, b, False)
        except AssertionError as error:
            raise AssertionError(f"{error}\n{text}") from error
