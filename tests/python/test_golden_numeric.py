"""Every golden file in numbers: the model of its text against the optimized model, expanded to standard operators.

Both run in ONNX Runtime without any graph optimization, on seeded inputs and several bindings of the named dims.
Boolean and integer inputs are masks of 0 and 1. Rows of a softmax without any allowed key are left out only where the
report says that they do not matter.
"""

import pathlib

import numpy
import onnx
import pytest
from ascend_fuse.session import plain_session

import pipeline
from conftest import run_ok
from model_checks import check_expanded, check_written, read

ROOT = pathlib.Path(__file__).resolve().parents[2]
FOLDER = ROOT / "tests" / "golden"
FILES = sorted(str(path.relative_to(FOLDER))[: -len(".onnxtxt")] for path in FOLDER.rglob("*.onnxtxt"))
TOLERANCE = {numpy.dtype("float32"): 1e-5, numpy.dtype("float16"): 1e-2, numpy.dtype("float64"): 1e-5}
# What the named dims are; those that name no dim of a model are left out.
BINDINGS = [{}, {"B": 1}, {"S": 1, "seq": 1, "s1": 1}, {"T": 9, "S": 9}, {"B": 0, "batch": 0, "N": 0}]
# Dims that are not the first one are 0 there too: a kernel has two axes, which are taken apart to those of x.
NO_ROWS = {"S": 0, "seq": 0, "T": 0}
WITHOUT_ROWS = {"quantised/weight_kernel", "linear_activation/relu_950_plugin", "linear_activation/gelu_950_plugin",
                "linear_activation/gelu_tanh_950_plugin", "linear_activation/relu_of_heads_950_plugin"}
SIZES = {"B": 2, "batch": 2, "s0": 2, "S": 5, "seq": 5, "s1": 5, "T": 7, "N": 4, "H": 3, "W": 6, "M": 1, "L": 64, "C": 2, "D": 2}


class GroupNorm:
    """com.microsoft.GroupNorm and SkipGroupNorm, for which ONNX Runtime has no kernel on the CPU, from its documentation."""

    def __init__(self, node):
        self.inputs, self.attributes = node.input, {a.name: onnx.helper.get_attribute_value(a) for a in node.attribute}
        self.outputs = len(node.output)

    def run(self, _, feeds):
        x, gain, shift, *more = (feeds[name].astype(numpy.float64) for name in self.inputs)
        # A skip without places is the same everywhere.
        total = x = x + sum(value[:, None, None] if value.ndim == 2 else value for value in more)
        last = self.attributes.get("channels_last", 1)
        x = numpy.moveaxis(x, -1, 1) if last else x
        groups = x.reshape(x.shape[0], self.attributes["groups"], -1)
        groups = groups - groups.mean(-1, keepdims=True)
        groups /= numpy.sqrt((groups**2).mean(-1, keepdims=True) + self.attributes["epsilon"])
        y = groups.reshape(x.shape) * gain[:, None, None] + shift[:, None, None]
        y = y / (1 + numpy.exp(-y)) if self.attributes["activation"] else y
        y = numpy.moveaxis(y, 1, -1) if last else y
        return [value.astype(numpy.float32) for value in (y, total)[: self.outputs]]


class PackedHeads:
    """com.microsoft.MultiHeadAttention of packed heads, [B, S, N, 3, D] or key and value [B, T, N, 2, D], which ONNX Runtime
    has no kernel for on the CPU: as the same operator of three tensors."""

    def __init__(self, model):
        model = onnx.ModelProto.FromString(model.SerializeToString())
        node, inputs = model.graph.node[0], model.graph.input
        self.packed = node.input[0] if len(node.input) == 1 else node.input[1]
        self.names = [f"{self.packed}.{i}" for i in range(3 if len(node.input) == 1 else 2)]
        rest = list(node.input[2:]) if len(node.input) == 1 else list(node.input[3:])
        node.input[:] = [*([] if len(self.names) == 3 else [node.input[0]]), *self.names, *rest]
        kept = [value for value in inputs if value.name != self.packed]
        del inputs[:]
        shape = [None, None, None]
        inputs.extend([*kept, *(onnx.helper.make_tensor_value_info(n, onnx.TensorProto.FLOAT, shape) for n in self.names)])
        self.session = plain_session(model.SerializeToString(), threads=1)

    def run(self, outputs, feeds):
        packed = feeds[self.packed]
        parts = {name: packed[:, :, :, i].reshape(*packed.shape[:2], -1) for i, name in enumerate(self.names)}
        return self.session.run(outputs, {k: v for k, v in feeds.items() if k != self.packed} | parts)


def reference(model):
    """What runs the original model."""
    nodes = model.graph.node
    if len(nodes) == 1 and nodes[0].op_type == "MultiHeadAttention" and any(
        len(value.type.tensor_type.shape.dim) == 5 for value in model.graph.input
    ):
        return PackedHeads(model)
    if len(nodes) == 1 and nodes[0].op_type in ("GroupNorm", "SkipGroupNorm"):
        return GroupNorm(nodes[0])
    names = [node.name for node in nodes if node.name]
    if len(set(names)) < len(names):  # which ONNX Runtime refuses, and which mean nothing
        model = onnx.ModelProto.FromString(model.SerializeToString())
        for node in model.graph.node:
            node.name = ""
    return plain_session(model.SerializeToString(), threads=1)


def make_inputs(model, binding, seed, first_key, ones=()):
    """Seeded inputs. With first_key, masks let every row have one key: the first of the last axis is 1. `ones` are the
    inputs of which the report says that they hold nothing else."""
    random = numpy.random.default_rng(seed)
    values = {}
    for value in model.graph.input:
        tensor = value.type.tensor_type
        dtype = onnx.helper.tensor_dtype_to_np_dtype(tensor.elem_type)
        shape = [binding.get(dim.dim_param, SIZES.get(dim.dim_param, 3)) if dim.dim_param else dim.dim_value
                 for dim in tensor.shape.dim]
        if dtype.kind in "biu":
            array = random.integers(0, 2, shape)
            if first_key and array.ndim > 0 and array.size > 0:
                array[..., 0] = 0 if value.name == "masked" else 1
            if value.name in ones:
                array[...] = 1
            values[value.name] = array.astype(dtype)
        else:
            values[value.name] = random.standard_normal(shape).astype(dtype)
    return values


def compare(name, expected, found, skip_zero_rows):
    assert expected.shape == found.shape and expected.dtype == found.dtype, name
    if expected.dtype.kind != "f":
        assert numpy.array_equal(expected, found), name
        return
    a, b = expected.astype(numpy.float64), found.astype(numpy.float64)
    if skip_zero_rows:
        keep = numpy.any(b != 0, axis=-1)
        a, b = a[keep], b[keep]
    if a.size == 0:
        return
    assert numpy.array_equal(numpy.isnan(a), numpy.isnan(b)), f"{name}: NaN in other places"
    a, b = numpy.nan_to_num(a), numpy.nan_to_num(b)
    scale = max(1.0, float(numpy.abs(a).max()))
    error = float(numpy.abs(a - b).max()) / scale
    assert error <= TOLERANCE[expected.dtype], f"{name}: relative error {error:g}"


# ONNX Runtime has no kernel on the CPU for an operator of these models: BiasSplitGelu, and MatMul, Mul and Sigmoid of bfloat16.
# RMSNormalization of mixed types: its function body in ONNX Runtime multiplies them as they are.
# It refuses functions that mean another operator of a name than the model, and an Attention whose mask is shorter than its keys.
# AscendQuant is an operator of ATC.
NOT_RUNNABLE = {
    "functions/other_opset",
    "glu/runtime_bias_split_gelu",
    "plugin/ffn_bfloat16",
    "plugin/ffn_swiglu_bfloat16",
    "plugin/swish_bfloat16_310p",
    "quantised/amct",
    "rms_norm/bfloat16_310p",
    "rms_norm/bfloat16_scaled_310p",
    "rms_norm/standard_operator_of_another_type",
    "runtime/onnx_attention_24_mask",
    "runtime/onnx_attention_short_mask",
}


# Other numbers on purpose: activations are not rounded (--quantised float), or sums of integers are scaled to float16
# (tests/python/test_quantised.py, test_int8_kernel.py and test_quantised_norms.py have bounds); rows without a key are read by
# another attention.
OTHER_NUMBERS = {"quantised/linear_float", "quantised/linear", "quantised/int8_kernel_310p_fast", "quantised/dynamic",
                 "quantised/int8_kernel_dynamic", "quantised/per_token", "quantised/amct_written_310b", "plugin/quant_matmul_opset_18_910b",
                 "quantised/clip_below_zero_float", "quantised/probabilities_float",
                 "plugin/norm_quantised_310p", "plugin/norm_quantised_910b", "plugin/norm_quantised_950",
                 "plugin/norm_quantised_950_fast", "plugin/norm_quantised_broadcast", "plugin/norm_quantised_chain",
                 "plugin/norm_quantised_float_read", "plugin/norm_quantised_narrow_310p", "plugin/norm_quantised_rows_910b",
                 "plugin/norm_quantised_rows_float_read", "attention/mask_of_unrelated_batch_before_another",
                 "attention/batch_learned_in_a_loop"}


@pytest.mark.parametrize("case", [name for name in FILES if name not in NOT_RUNNABLE | OTHER_NUMBERS])
def test_numbers(case, tmp_path):
    path = FOLDER / (case + ".onnxtxt")
    text = path.read_text()
    flags = [word for line in text.splitlines() if line.startswith("# RUN:") for word in line[6:].split()]
    runs = pipeline.optimize(path, tmp_path, {"run": flags})
    assert not runs.wrong, runs.wrong
    made = runs.targets["run"]
    report = made.report
    original, expanded = read(tmp_path / "original.onnx"), read(made.expanded)
    check_written(original, read(made.optimized))
    assumptions = [sentence for site in report.get("sites", []) for sentence in site.get("assumptions", [])]
    empty_rows = any(sentence.startswith("rows with no allowed key") for sentence in assumptions)
    masked = any(value.type.tensor_type.elem_type == onnx.TensorProto.BOOL
                 or value.type.tensor_type.elem_type == onnx.TensorProto.INT64 for value in original.graph.input)
    ones = {word for sentence in assumptions if sentence.endswith("holds only ones (--assume)")
            for word in sentence.split()[2:3]}
    if original != expanded:
        check_expanded(original, expanded)
    else:  # nothing was fused: the same computation, and what is left to show is that it runs
        assert not any(site.get("state") == "fused" for site in report.get("sites", []))
    runnable = original
    if any(node.domain == "npu" or node.op_type.startswith("NPU") for node in original.graph.node):  # a file that was optimized before
        run_ok("expand", tmp_path / "original.onnx", "-o", tmp_path / "original-expanded.onnx")
        runnable = read(tmp_path / "original-expanded.onnx")
    first = reference(runnable)
    second = plain_session(expanded.SerializeToString(), threads=1) if original != expanded else first
    outputs = [output.name for output in original.graph.output]
    assert outputs == [output.name for output in expanded.graph.output]
    symbols = {dim.dim_param for value in original.graph.input for dim in value.type.tensor_type.shape.dim}
    bound = {name: int(size) for name, _, size in (word.removeprefix("--dim=").partition("=") for word in flags if word.startswith("--dim="))
             if size.isdigit() and int(size) <= 4096}  # longer ones take gigabytes, and no number is written
    every = [*BINDINGS, NO_ROWS] if case in WITHOUT_ROWS else BINDINGS
    bindings = [{**binding, **bound} for binding in every if not binding or symbols & set(binding)]
    # Where a dim is 0, Einsum and GroupQueryAttention end the process of ONNX Runtime, and ReduceSum with a negative axis gives another shape.
    if any(node.op_type in ("Einsum", "GroupQueryAttention", "ReduceSum") for model in (original, expanded) for node in model.graph.node):
        bindings = [binding for binding in bindings if 0 not in binding.values()]
    done = 0
    for seed, binding in enumerate(bindings):
        for first_key in (True, False) if masked else (False,):
            inputs = make_inputs(original, binding, seed, first_key, ones)
            try:
                a = first.run(outputs, inputs)
            except Exception:
                if 0 not in binding.values():
                    raise
                continue  # a Reshape that has nothing to tell -1 from, and other such refusals of what is empty
            b = second.run(outputs, inputs)
            for name, expected, found in zip(outputs, a, b):
                # With the first key allowed to all, every row has a key and all rows count.
                compare(f"{name} with {binding}", expected, found, empty_rows and not first_key)
            done += 1
    assert done > 0
