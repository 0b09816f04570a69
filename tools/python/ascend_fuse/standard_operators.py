"""What the recognisers' operators compute, in operators that ONNX Runtime has at every opset: formulas of the ONNX
operator documents (RMSNormalization, Swish, Gelu, Attention, RotaryEmbedding) and, for the private domain
ascend_fuse, of docs/rules.md and the comments of patterns/rules/library.

Written for tests: the graph after recognition is compared in numbers whether or not a chip takes the operators.
"""

from __future__ import annotations

import numpy
import onnx
from onnx import helper, numpy_helper

STANDARD = {"RMSNormalization", "Gelu", "Swish", "LayerNormalization"}


class Body:
    """The nodes that replace one node; everything is computed in float32."""

    def __init__(self, node, types):
        self.node, self.types, self.nodes, self.count = node, types, [], 0
        self.prefix = (node.output[0] or node.name) + "__"
        self.attributes = {a.name: helper.get_attribute_value(a) for a in node.attribute}

    def op(self, op_type, *inputs, output=None, **attributes):
        self.count += 1
        output = output or f"{self.prefix}{self.count}"
        self.nodes.append(helper.make_node(op_type, list(inputs), [output], **attributes))
        return output

    def constant(self, value, dtype=numpy.float32):
        return self.op("Constant", value=numpy_helper.from_array(numpy.asarray(value, dtype)))

    def wide(self, index):
        return self.op("Cast", self.node.input[index], to=onnx.TensorProto.FLOAT)

    def has(self, index):
        return len(self.node.input) > index and self.node.input[index] != ""

    def finish(self, value):
        # Like the operator's type constraint: the result has the first input's type.
        self.op("CastLike", value, self.node.input[0], output=self.node.output[0])


def gelu(b, x, approximate):
    half = b.op("Mul", x, b.constant(0.5))
    if approximate == "tanh":
        cube = b.op("Mul", b.op("Mul", x, x), x)
        inner = b.op("Mul", b.op("Add", x, b.op("Mul", cube, b.constant(0.044715))), b.constant(numpy.sqrt(2 / numpy.pi)))
        outer = b.op("Tanh", inner)
    else:
        outer = b.op("Erf", b.op("Div", x, b.constant(numpy.sqrt(2))))
    return b.op("Mul", half, b.op("Add", outer, b.constant(1)))


def swish(b, x, alpha=1.0):
    return b.op("Mul", x, b.op("Sigmoid", b.op("Mul", x, b.constant(alpha))))


def mean(b, x):
    """Over the axes from the attribute `axis` on, which stay as 1."""
    axis = b.attributes.get("axis", -1)
    shape = b.op("Shape", x)
    rank = b.op("Squeeze", b.op("Shape", shape))
    axes = (b.constant(list(range(axis, 0)), numpy.int64) if axis < 0 else
            b.op("Range", b.constant(axis, numpy.int64), rank, b.constant(1, numpy.int64)))
    sizes = b.op("Slice", shape, b.constant([axis], numpy.int64), b.constant([1 << 30], numpy.int64))
    return b.op("Div", b.op("ReduceSum", x, axes, keepdims=1), b.op("Cast", b.op("ReduceProd", sizes), to=onnx.TensorProto.FLOAT))


def rms_normalization(b):
    x = b.wide(0)
    mean_of_squares = mean(b, b.op("Mul", x, x))
    root = b.op("Sqrt", b.op("Add", mean_of_squares, b.constant(b.attributes.get("epsilon", 1e-5))))
    y = b.op("Mul", b.op("Div", x, root), b.wide(1))
    # Of the value that it stands for; elsewhere the result has the type of the scale (RMSNormalization: Y is of V).
    declared = b.types.get(b.node.output[0], onnx.TensorProto.UNDEFINED)
    if declared:
        b.op("Cast", y, to=declared, output=b.node.output[0])
    else:
        b.op("CastLike", y, b.node.input[1], output=b.node.output[0])


def layer_normalization(b):
    x = b.wide(0)
    centred = b.op("Sub", x, mean(b, x))
    variance = mean(b, b.op("Mul", centred, centred))
    root = b.op("Sqrt", b.op("Add", variance, b.constant(b.attributes.get("epsilon", 1e-5))))
    y = b.op("Mul", b.op("Div", centred, root), b.wide(1))
    b.finish(b.op("Add", y, b.wide(2)) if b.has(2) else y)


GATES = {
    "silu": swish,
    "gelu": lambda b, x: gelu(b, x, "none"),
    "gelu_tanh": lambda b, x: gelu(b, x, "tanh"),
    "quick_gelu": lambda b, x: swish(b, x, 1.702),
    "sigmoid": lambda b, x: b.op("Sigmoid", x),
    "relu": lambda b, x: b.op("Relu", x),
}


def glu(b):
    b.finish(b.op("Mul", GATES[b.attributes["activation"].decode()](b, b.wide(0)), b.wide(1)))


def rotary(b):
    assert b.attributes["mode"] == b"half"
    x = b.wide(0)
    size = b.op("Gather", b.op("Shape", x), b.constant([-1], numpy.int64))
    middle = b.op("Div", size, b.constant([2], numpy.int64))
    last, zero = b.constant([-1], numpy.int64), b.constant([0], numpy.int64)
    first = b.op("Slice", x, zero, middle, last)
    second = b.op("Slice", x, middle, size, last)
    turned = b.op("Concat", b.op("Neg", second), first, axis=-1)
    b.finish(b.op("Add", b.op("Mul", x, b.wide(1)), b.op("Mul", turned, b.wide(2))))


def attention(b):
    q, k, v = b.wide(0), b.wide(1), b.wide(2)
    # [B, H, S, D] as [B, G, n, S, D]
    def dims(value, axis):
        return b.op("Gather", b.op("Shape", value), b.constant([axis], numpy.int64))
    minus = b.constant([-1], numpy.int64)
    grouped = b.op("Reshape", q, b.op("Concat", dims(q, 0), dims(k, 1), minus, dims(q, 2), dims(q, 3), axis=0))
    two = b.constant([2], numpy.int64)
    scores = b.op("MatMul", grouped, b.op("Transpose", b.op("Unsqueeze", k, two), perm=[0, 1, 2, 4, 3]))
    scores = b.op("Mul", scores, b.constant(b.attributes["scale"]))
    scores = b.op("Reshape", scores, b.op("Concat", dims(q, 0), dims(q, 1), dims(q, 2), dims(k, 2), axis=0))
    if b.attributes.get("softcap", 0):
        cap = b.constant(b.attributes["softcap"])
        scores = b.op("Mul", b.op("Tanh", b.op("Div", scores, cap)), cap)
    boolean = b.has(3) and b.types.get(b.node.input[3]) == onnx.TensorProto.BOOL
    lowest = b.constant(-numpy.inf)
    if b.has(4):
        scores = b.op("Where", b.node.input[4], scores, lowest)
    if b.has(5):
        scores = b.op("Add", scores, b.wide(5))
    if b.has(3):
        scores = b.op("Where", b.node.input[3], scores, lowest) if boolean else b.op("Add", scores, b.wide(3))
    weights = b.op("Softmax", scores, axis=-1)
    if b.attributes.get("guard", 0):
        weights = b.op("Where", b.op("IsNaN", weights), b.constant(0), weights)
    weights = b.op("Reshape", weights, b.op("Concat", dims(q, 0), dims(k, 1), minus, dims(q, 2), dims(k, 2), axis=0))
    y = b.op("MatMul", weights, b.op("Unsqueeze", v, two))
    y = b.op("Reshape", y, b.op("Concat", dims(q, 0), dims(q, 1), dims(q, 2), dims(v, 3), axis=0))
    # The rule's output may be wider than the query: the type is the one declared.
    wanted = b.types.get(b.node.output[0], onnx.TensorProto.UNDEFINED)
    if wanted:
        b.op("Cast", y, to=wanted, output=b.node.output[0])
    else:
        b.finish(y)


OPERATORS = {
    ("", "RMSNormalization"): rms_normalization,
    ("", "LayerNormalization"): layer_normalization,
    ("", "Gelu"): lambda b: b.finish(gelu(b, b.wide(0), b.attributes.get("approximate", b"none").decode())),
    ("", "Swish"): lambda b: b.finish(swish(b, b.wide(0), b.attributes.get("alpha", 1.0))),
    ("ascend_fuse", "DoubledGelu"): lambda b: b.finish(
        b.op("Mul", gelu(b, b.wide(0), b.attributes["approximate"].decode()), b.constant(2))),
    ("ascend_fuse", "QuickGelu"): lambda b: b.finish(swish(b, b.wide(0), 1.702)),
    ("ascend_fuse", "Glu"): glu,
    ("ascend_fuse", "Rotary"): rotary,
    ("ascend_fuse", "Attention"): attention,
}
def fast_gelu(b, x):
    return gelu(b, x, "tanh")


def with_bias(b, x, index):
    return b.op("Add", x, b.wide(index)) if b.has(index) else x


def bias_split_gelu(b):
    x = b.op("Add", b.wide(0), b.wide(1))
    size = b.op("Gather", b.op("Shape", x), b.constant([-1], numpy.int64))
    middle, last = b.op("Div", size, b.constant([2], numpy.int64)), b.constant([-1], numpy.int64)
    left = b.op("Slice", x, b.constant([0], numpy.int64), middle, last)
    b.finish(b.op("Mul", left, gelu(b, b.op("Slice", x, middle, size, last), "none")))


def fused_gemm(b):
    numbers = {name: b.attributes[name] for name in ("alpha", "beta", "transA", "transB") if name in b.attributes}
    assert b.attributes["activation"] == b"Relu"
    b.finish(b.op("Relu", b.op("Gemm", *(b.wide(i) for i in range(len(b.node.input))), **numbers)))


def grouped_norm(b, x, groups, epsilon):
    """x [N, C, ...] without its mean and divided by its deviation over each group of channels."""
    n = normalized(b, b.op("Reshape", x, b.constant([0, groups, -1], numpy.int64)), epsilon)
    return b.op("Reshape", n, b.op("Shape", x))


def normalized(b, flat, epsilon):
    """flat without its mean and divided by its deviation over the last axis."""
    size = b.op("Cast", b.op("Gather", b.op("Shape", flat), b.constant([-1], numpy.int64)), to=onnx.TensorProto.FLOAT)
    axis = b.constant([-1], numpy.int64)
    centred = b.op("Sub", flat, b.op("Div", b.op("ReduceSum", flat, axis), size))
    variance = b.op("Div", b.op("ReduceSum", b.op("Mul", centred, centred), axis), size)
    root = b.op("Sqrt", b.op("Add", variance, b.constant(epsilon)))
    return b.op("Div", centred, root)


def instance_norm(b):
    x = b.wide(0)
    weights = [b.op("Unsqueeze", b.wide(i), b.constant([1], numpy.int64)) for i in (1, 2)]
    channels = b.op("Concat", b.constant([0], numpy.int64),
                    b.op("Gather", b.op("Shape", x), b.constant([1], numpy.int64)), b.constant([-1], numpy.int64), axis=0)
    n = normalized(b, b.op("Reshape", x, channels), b.attributes.get("epsilon", 1e-5))
    b.finish(b.op("Reshape", b.op("Add", b.op("Mul", n, weights[0]), weights[1]), b.op("Shape", x)))


def group_norm(b):
    last = b.attributes.get("channels_last", 1)
    x = b.wide(0)
    for skip in range(3, len(b.node.input)):  # of SkipGroupNorm
        if b.has(skip):
            x = b.op("Add", x, b.wide(skip))
    if len(b.node.output) > 1 and b.node.output[1]:
        b.op("Cast", x, to=b.types.get(b.node.output[1]) or onnx.TensorProto.FLOAT, output=b.node.output[1])
    x = b.op("Transpose", x, perm=[0, 3, 1, 2]) if last else x
    weights = [b.op("Unsqueeze", b.wide(i), b.constant([1, 2], numpy.int64)) for i in (1, 2)]
    n = grouped_norm(b, x, b.attributes["groups"], b.attributes.get("epsilon", 1e-5))
    y = b.op("Add", b.op("Mul", n, weights[0]), weights[1])
    if b.attributes["activation"]:
        y = swish(b, y)
    b.finish(b.op("Transpose", y, perm=[0, 2, 3, 1]) if last else y)


# Operators that ONNX Runtime documents (docs/ContribOperators.md) or that ONNX has, and that its CPU provider does not run
# in every type: written out where it says so.
NOT_ON_CPU = {
    ("com.microsoft", "Gelu"): lambda b: b.finish(gelu(b, b.wide(0), "none")),
    ("com.microsoft", "BiasGelu"): lambda b: b.finish(gelu(b, with_bias(b, b.wide(0), 1), "none")),
    ("com.microsoft", "FastGelu"): lambda b: b.finish(fast_gelu(b, with_bias(b, b.wide(0), 1))),
    ("com.microsoft", "QuickGelu"): lambda b: b.finish(swish(b, b.wide(0), b.attributes.get("alpha", 1.702))),
    ("com.microsoft", "GemmFastGelu"):
        lambda b: b.finish(fast_gelu(b, with_bias(b, b.op("MatMul", b.wide(0), b.wide(1)), 2))),
    ("com.microsoft", "BiasSplitGelu"): bias_split_gelu,
    ("com.microsoft", "FusedGemm"): fused_gemm,
    ("com.microsoft", "GroupNorm"): group_norm,
    ("com.microsoft", "SkipGroupNorm"): group_norm,
    ("", "InstanceNormalization"): instance_norm,
    ("", "RMSNormalization"): rms_normalization,  # its own body does not fit a scale of another type
}

# Axes that count from the front, and further outputs, are left to ONNX Runtime, or counted as not checked.
LAST_AXIS = {"RMSNormalization", "LayerNormalization"}


def handled(node) -> bool:
    if (node.domain, node.op_type) not in OPERATORS:
        return False
    text = {a.name: a.s.decode() for a in node.attribute if a.type == onnx.AttributeProto.STRING}
    if text.get("activation", "silu") not in GATES or text.get("mode", "half") != "half":
        return False
    if node.op_type == "Attention" and len(node.input) > 4 and node.input[4] and any(node.input[i] for i in (3, 5) if i < len(node.input)):
        return False  # rows that two masks empty together: which fill is lower decides, and nothing says so here
    axis = next((a.i for a in node.attribute if a.name == "axis"), -1)
    return node.op_type not in LAST_AXIS or (axis < 0 and len(node.output) == 1)


def write_out(model: onnx.ModelProto, operators: dict | None = None) -> None:
    """Replaces the recognisers' operators, or those of another table, by what they compute. Opset 15 and later: CastLike."""
    graph = model.graph
    types = {v.name: v.type.tensor_type.elem_type for v in [*graph.input, *graph.output, *graph.value_info]}
    types.update({t.name: t.data_type for t in graph.initializer})
    for node in graph.node:  # booleans that masks are made of
        if node.op_type in ("Not", "And", "Or", "Less", "Greater", "Equal", "IsNaN"):
            types[node.output[0]] = onnx.TensorProto.BOOL
    nodes = []
    changed = False
    for node in graph.node:
        if not handled(node) if operators is None else (node.domain, node.op_type) not in operators:
            nodes.append(node)
            continue
        body = Body(node, types)
        (operators or OPERATORS)[(node.domain, node.op_type)](body)
        nodes.extend(body.nodes)
        changed = True
    if changed:
        for domain in model.opset_import:
            if domain.domain == "":
                domain.version = max(domain.version, 15)  # CastLike; nothing else used here changed from 14 to 15
        del graph.node[:]
        graph.node.extend(nodes)


def unknown(model: onnx.ModelProto) -> list[str]:
    """Operators of the private domain that no formula here covers."""
    return sorted({node.op_type for node in model.graph.node if node.domain == "ascend_fuse"})
