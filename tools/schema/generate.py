#!/usr/bin/env python3
"""Writes ir/ops.txtpb, the operator table, from the official operator definitions.

Usage: pip install -r tools/schema/requirements.txt && python3 tools/schema/generate.py

Sources, pinned in requirements.txt:
  - ai.onnx, all opsets: onnx.defs.get_all_schemas_with_history() of onnx 1.23.2;
  - com.microsoft, and the two normalizations that ONNX Runtime writes into the default domain: the registry
    compiled into onnxruntime 1.31.1, from which microsoft/onnxruntime:tools/python/gen_contrib_doc.py also
    writes docs/ContribOperators.md.
The traits below are ours: the official definitions do not say them.
"""

import pathlib
import struct
import sys

VERSIONS = {"onnx": "1.23.2", "onnxruntime": "1.31.1"}
OUTPUT = pathlib.Path(__file__).resolve().parents[2] / "ir" / "ops.txtpb"

# Operators that ONNX Runtime's optimizer writes with the default domain although ai.onnx has no such
# operator, or only a later one (microsoft/onnxruntime:onnxruntime/core/graph/contrib_ops/contrib_defs.cc).
RUNTIME_IN_DEFAULT_DOMAIN = {("LayerNormalization", 1), ("SimplifiedLayerNormalization", 1)}

# commutative: swapping the first two inputs never changes the result. Before opset 7 the binary operators
# broadcast B along the attribute `axis` of A, so there they are not.
COMMUTATIVE = set(
    "Add Mul And Or Xor Equal Max Min Sum Mean BitwiseAnd BitwiseOr BitwiseXor com.microsoft.ComplexMul".split()
)
# elementwise: an output element is a function of the input elements at the same (broadcast) place, not of
# its position, its neighbours or the shape. Quantization is left out: its scales may lie along any axis.
UNARY = set(
    "Abs Acos Acosh Asin Asinh Atan Atanh BitCast BitwiseNot Cast Ceil Celu Cos Cosh Elu Erf Exp Floor Gelu HardSigmoid"
    " HardSwish Identity IsInf IsNaN LeakyRelu Log Mish Neg Not Reciprocal Relu Round Selu Shrink Sigmoid Sign"
    " Sin Sinh Softplus Softsign Sqrt Swish Tan Tanh ThresholdedRelu Dropout Clip CastLike RegexFullMatch".split()
)
BINARY = set(
    "Add And BitShift BitwiseAnd BitwiseOr BitwiseXor Div Equal Greater GreaterOrEqual Less LessOrEqual Mod Mul Or"
    " PRelu Pow StringConcat Sub Xor".split()
)
N_ARY = set("Max Mean Min Sum Where".split())
RUNTIME_ELEMENTWISE = {
    "com.microsoft." + name for name in "BiasAdd BiasGelu FastGelu Gelu QuickGelu ScaledSiLU".split()
}
# The binary operators that broadcast along `axis` before opset 7; Max, Min, Sum, Mean had no attributes.
LEGACY_BROADCAST = set("Add And Div Equal Greater Less Mul Or PRelu Pow Sub Xor".split())

# Not costly: besides the elementwise operators those that only make, move or select elements, or speak of
# shapes. Everything else (contractions, reductions, normalizations, sorting, sampling, loops) is costly.
MOVING = set(
    "AffineGrid BlackmanWindow CenterCropPad Compress Concat ConcatFromSequence Constant ConstantOfShape DepthToSpace"
    " Expand EyeLike Flatten Gather GatherElements GatherND HammingWindow HannWindow MelWeightMatrix OneHot Optional"
    " OptionalGetElement OptionalHasElement Pad QuantizeLinear DequantizeLinear Range Reshape ReverseSequence"
    " Scatter ScatterElements ScatterND SequenceAt SequenceConstruct SequenceEmpty SequenceErase SequenceInsert"
    " SequenceLength Shape Size Slice SpaceToDepth Split SplitToSequence Squeeze TensorScatter Tile Transpose Trilu"
    " Unsqueeze".split()
)
RUNTIME_MOVING = {
    "com.microsoft." + name
    for name in "BiasSplitGelu ComplexMul ComplexMulConj DequantizeLinear ExpandDims GatherND Pad"
    " QuantizeLinear QLinearAdd QLinearConcat QLinearLeakyRelu QLinearMul QLinearSigmoid QLinearWhere Range"
    " RemovePadding RestorePadding Trilu UnfoldTensor".split()
}

# nondeterministic: random numbers. The onnx definitions mark more (every operator without a fixed order of
# summation); here it means that two equal nodes may not stand for one another. Dropout: the versions that
# can be told to train, by attribute is_test before 7 and by input training_mode from 12.
RANDOM = set("Bernoulli Multinomial RandomNormal RandomNormalLike RandomUniform RandomUniformLike".split())
RUNTIME_RANDOM = {
    "com.microsoft." + name for name in "BiasDropout BitmaskBiasDropout BitmaskDropout Sampling".split()
}

# heavy: of the costly operators those that are most of a model's work. One that a fused construct reads in two places
# would be computed once more beside it.
HEAVY = set("MatMul Gemm Softmax".split())

# near_miss_anchor: they mostly stand in a construct that rules know. Where no rule covered one, the report says which
# rule got farthest.
NEAR_MISS_ANCHORS = set(
    "Softmax Erf Tanh InstanceNormalization LpNormalization Sigmoid HardSigmoid Clip ReduceL2 ReduceSumSquare Neg"
    " ReduceMean".split()
)

# With two inputs the operator is another one. Exporters of opsets before 14 write a GELU with Sum.
EQUALS_WITH_TWO_INPUTS = {"Sum": "Add"}


def traits(name, version):
    """Our columns of one row."""
    legacy = name in LEGACY_BROADCAST and version < 7
    elementwise = (name in UNARY | BINARY | N_ARY | RUNTIME_ELEMENTWISE) and not legacy
    cheap = name in UNARY | BINARY | N_ARY | RUNTIME_ELEMENTWISE | MOVING | RUNTIME_MOVING
    random = name in RANDOM | RUNTIME_RANDOM or (name == "Dropout" and version not in (7, 10))
    flags = {
        "commutative": name in COMMUTATIVE and not legacy,
        "costly": not cheap,
        "elementwise": elementwise,
        "nondeterministic": random,
        "heavy": name in HEAVY,
        "near_miss_anchor": name in NEAR_MISS_ANCHORS,
    }
    values = [f"{flag}: true" for flag, value in flags.items() if value]
    if name in EQUALS_WITH_TWO_INPUTS and not legacy:
        values.append(f"equals_with_two_inputs: {quote(EQUALS_WITH_TWO_INPUTS[name])}")
    return values


def quote(text):
    """A protobuf text string."""
    if isinstance(text, str):
        text = text.encode()
    out = ""
    for byte in text:
        char = chr(byte)
        out += char if 32 <= byte < 127 and char not in '"\\' else f"\\{byte:03o}"
    return f'"{out}"'


def float_text(value):
    """The shortest decimal that reads back as the same float32."""
    bits = struct.pack("<f", value)
    for digits in range(1, 10):
        text = f"{value:.{digits}g}"
        try:
            if struct.pack("<f", float(text)) == bits:
                return text
        except OverflowError:  # rounded up beyond the largest float32
            continue
    raise ValueError(f"no decimal for {value!r}")


def default_text(onnx, operator, attribute, value):
    if not value.name:  # no default
        return []
    kind = attribute.type.name
    fields = {
        "INT": ("i", [value.i], str),
        "FLOAT": ("f", [value.f], float_text),
        "STRING": ("s", [value.s], quote),
        "INTS": ("ints", value.ints, str),
        "FLOATS": ("floats", value.floats, float_text),
        "STRINGS": ("strings", value.strings, quote),
    }
    if kind not in fields:
        raise ValueError(f"{operator}.{attribute.name}: a default of type {kind}")
    field, values, text = fields[kind]
    if not values:
        raise ValueError(f"{operator}.{attribute.name}: the default is an empty list")
    return [f"{field}: {text(v)}" for v in values]


class TypeSets:
    """The sets of types that parameters take, each once, in the order in which they are met."""

    def __init__(self):
        self.places = {}

    def place(self, formal):
        tensors = [t.removeprefix("tensor(").removesuffix(")") for t in formal.types if t.startswith("tensor(")]
        return self.places.setdefault((tuple(sorted(tensors)), len(tensors) < len(formal.types)), len(self.places))

    def lines(self):
        for place, (tensors, others) in enumerate(self.places):
            parts = [f"types: {quote(t)}" for t in tensors] + ["others: true"] * others
            yield f"type_sets {{ {' '.join(parts)} }}  # {place}"


def row(onnx, domain, schema, sets):
    """One operator as one line of protobuf text."""
    qualified = f"{domain}.{schema.name}" if domain else schema.name
    parts = []
    if domain:
        parts.append(f"domain: {quote(domain)}")
    parts += [f"op_type: {quote(schema.name)}", f"since_version: {schema.since_version}"]
    if schema.deprecated:
        parts.append("deprecated: true")
    parts += traits(qualified, schema.since_version)
    for field, parameters in (("inputs", schema.inputs), ("outputs", schema.outputs)):
        for formal in parameters:
            option = {"Optional": " optional: true", "Variadic": " variadic: true"}.get(formal.option.name, "")
            types = "" if domain else f" types: {sets.place(formal)}"
            parts.append(f"{field} {{ name: {quote(formal.name)}{option}{types} }}")
    for name in sorted(schema.attributes):
        attribute = schema.attributes[name]
        if hasattr(attribute, "default_value"):
            value = attribute.default_value
        else:  # onnxruntime gives the encoded AttributeProto
            value = onnx.AttributeProto.FromString(attribute._default_value)
        fields = [f"name: {quote(name)}", f"type: {attribute.type.name}"]
        if attribute.required:
            fields.append("required: true")
        fields += default_text(onnx, qualified, attribute, value)
        parts.append(f"attributes {{ {' '.join(fields)} }}")
    return f"ops {{ {' '.join(parts)} }}"


def check_traits(names):
    """A misspelt name in a set above would silently do nothing."""
    for listed in (COMMUTATIVE, UNARY, BINARY, N_ARY, RUNTIME_ELEMENTWISE, MOVING, RUNTIME_MOVING, RANDOM,
                   RUNTIME_RANDOM, LEGACY_BROADCAST, HEAVY, NEAR_MISS_ANCHORS, set(EQUALS_WITH_TWO_INPUTS)):
        unknown = listed - names
        if unknown:
            raise ValueError(f"no such operator: {sorted(unknown)}")


def generate():
    import onnx
    import onnx.defs
    import onnxruntime
    from onnxruntime.capi import onnxruntime_pybind11_state

    found = {"onnx": onnx.__version__, "onnxruntime": onnxruntime.__version__}
    if found != VERSIONS:
        raise ImportError(f"the table is made from {VERSIONS}, installed are {found}")
    rows = {}
    for schema in onnx.defs.get_all_schemas_with_history():
        if schema.domain == "":
            rows["", schema.name, schema.since_version] = schema
    for schema in onnxruntime_pybind11_state.get_all_operator_schema():
        key = (schema.domain, schema.name, schema.since_version)
        if schema.domain == "com.microsoft" or (schema.domain == "" and key[1:] in RUNTIME_IN_DEFAULT_DOMAIN):
            rows.setdefault(key, schema)
    check_traits({f"{domain}.{name}" if domain else name for domain, name, _ in rows})
    newest = onnx.defs.onnx_opset_version()
    sets = TypeSets()
    ops = [row(onnx, key[0], rows[key], sets) for key in sorted(rows)]
    lines = [
        "# proto-file: proto/schema.proto",
        "# proto-message: ascend_fuse.proto.OperatorTable",
        f"# Written by tools/schema/generate.py from onnx {VERSIONS['onnx']} (ai.onnx to opset {newest}) and",
        f"# onnxruntime {VERSIONS['onnxruntime']} (com.microsoft). Do not edit.",
        f"newest_opset: {newest}",
        *sets.lines(),
        *ops,
    ]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    text = generate()
    OUTPUT.write_text(text)
    print(f"{OUTPUT}: {text.count(chr(10))} lines, {len(text)} bytes", file=sys.stderr)
