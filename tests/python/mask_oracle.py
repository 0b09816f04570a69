"""Compares what the analysis of masks claims with what ONNX Runtime computes, element by element."""

import json
import os
import re
import subprocess
import tempfile

import numpy as np
import onnx
import onnx.parser
import onnxruntime

import mask_programs
import mask_rewrites

# At or below this an added number takes a key out (patterns/analysis/mask.h).
THRESHOLD = -1e4 * (1 - 1 / 256)


class Tool:
    """mask_tool, one process for all requests."""

    def __init__(self, build):
        self.process = subprocess.Popen([os.path.join(build, "tests", "mask_tool")], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True)

    def ask(self, path, assumptions=()):
        self.process.stdin.write("\t".join([path, *assumptions]) + "\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())

    def close(self):
        self.process.stdin.close()
        self.process.wait()


def session(model, extra):
    model = onnx.ModelProto.FromString(model.SerializeToString())
    for name in extra:
        model.graph.output.append(onnx.ValueInfoProto(name=name))
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 4
    return onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])


def feeds(model, dims, generator):
    given = {}
    for value in model.graph.input:
        tensor = value.type.tensor_type
        shape = [dims.get(d.dim_param, d.dim_value) if d.dim_param else d.dim_value for d in tensor.shape.dim]
        if tensor.elem_type == onnx.TensorProto.BOOL:
            given[value.name] = generator.random(shape) < 0.6
        elif tensor.elem_type == onnx.TensorProto.INT64:
            high = {"lengths": dims["total"] + 1, "cache_position": dims["total"], "prefix": dims["total"]}.get(value.name, 2)
            given[value.name] = generator.integers(0, high, shape)
        else:
            given[value.name] = generator.standard_normal(shape).astype(np.float32)
    return given


class Elements:
    """An array whose elements outside of it are nothing: a branch that is not taken may ask for them."""

    def __init__(self, array):
        self.array = array

    def __getitem__(self, indices):
        indices = np.broadcast_arrays(*(indices if isinstance(indices, tuple) else (indices,)))
        if not indices:
            return self.array
        inside = [(0 <= index) & (index < size) for index, size in zip(indices, self.array.shape)]
        found = self.array[tuple(np.where(within, index, 0) for within, index in zip(inside, indices))]
        return np.where(np.all(inside, axis=0), found, np.array(-7).astype(self.array.dtype))


def claimed(answer, shape, names):
    """Which keys take part, as the answer says."""
    b, h, i, j = np.ogrid[tuple(slice(n) for n in shape)]
    allowed = np.ones(shape, bool)
    scope = {name: Elements(value) if isinstance(value, np.ndarray) else value for name, value in names.items()}
    scope.update(b=b, h=h, i=i, j=j, where=np.where, floor=np.floor, Min=min, Max=max, broadcast=max)
    for clause in answer["clauses"]:
        allowed = allowed & (np.asarray(eval(clause, {"__builtins__": {}}, scope)) != 0)
    return np.zeros(shape, bool) if answer["nothing"] else allowed


def disagreement(model, answer, seeds, sizes):
    """A sentence about the first element on which the answer and ONNX Runtime differ, or None."""
    known = {value.name for value in model.graph.input}
    read = {name for clause in answer["clauses"] for name in re.findall(r"(\w+)\[", clause)}
    # A dim that inference named itself: that of an axis of a value.
    made_up = {name: (name[:name.rindex("_d")], int(name[name.rindex("_d") + 2:]))
               for clause in answer["clauses"] for name in re.findall(r"\b\w+_d\d+\b", clause)}
    read |= {value for value, _ in made_up.values()}
    run = session(model, sorted(read - known - {tensor.name for tensor in model.graph.initializer}))
    outputs = [output.name for output in run.get_outputs()]
    for seed in seeds:
        generator = np.random.default_rng(seed)
        for seq, past, batch in sizes:
            dims = {"seq": seq, "past": past, "batch": batch, "total": seq + past}
            given = feeds(model, dims, generator)
            values = dict(zip(outputs, run.run(None, given)))
            mask = values["mask"]
            mask = mask.reshape((1,) * (4 - mask.ndim) + mask.shape)
            if any(n not in (1, most) for n, most in zip(mask.shape, (batch, 2, seq, values["k"].shape[2] if "k" in values else seq))):
                continue  # it would enlarge the scores
            truth = mask if mask.dtype == bool else ~(mask <= THRESHOLD)
            constants = {t.name: onnx.numpy_helper.to_array(t) for t in model.graph.initializer}
            known_values = {**constants, **values, **given}
            named = {name: known_values[value].shape[axis] for name, (value, axis) in made_up.items()}
            claim = claimed(answer, mask.shape, {**known_values, **dims, **named})
            # What a bias adds may take a key out by itself.
            differ = truth & ~claim if answer["bias"] else truth != claim
            if differ.any():
                at = tuple(int(x) for x in np.argwhere(differ)[0])
                return f"{dims}: element {at} takes part: {bool(truth[at])}, claimed {bool(claim[at])}"
    return None


SIZES = [(3, 2, 2), (1, 4, 2), (5, 0, 1), (4, 3, 3), (2, 1, 1)]


def check(tool, name, seed, plain=False, rewrites=False, sizes=SIZES):
    """(whether the expected word was found, the word, None or what is wrong)"""
    text, expected = mask_programs.write(name, seed, plain)
    model = onnx.parser.parse_model(text)
    if rewrites:
        model = mask_rewrites.rewritten(model, seed)
    answer = ask(tool, model)
    if "error" in answer:
        return False, answer["error"], f"not read: {answer['error']}"
    wrong = disagreement(model, answer, [seed], sizes) if answer["understood"] else None
    return answer["word"] == expected, answer["word"], wrong


def check_mutant(tool, name, seed, sizes=SIZES):
    """(None or what is wrong, whether it could be compared) of a program with one thing changed."""
    text = mask_programs.mutate(mask_programs.write(name, seed)[0], seed)
    try:
        model = onnx.parser.parse_model(text)
        onnx.checker.check_model(model)
    except Exception:
        return None, False
    answer = ask(tool, model)
    if "error" in answer or not answer["understood"]:
        return None, False
    compared = False
    wrong = None
    for size in sizes:  # some of them may be no program any more, with an index out of bounds
        try:
            wrong = wrong or disagreement(model, answer, [seed], [size])
            compared = True
        except Exception as error:
            if "onnxruntime" not in type(error).__module__:
                raise
    return wrong, compared


def ask(tool, model):
    with tempfile.NamedTemporaryFile(suffix=".onnx") as file:
        file.write(model.SerializeToString())
        file.flush()
        return tool.ask(file.name)
