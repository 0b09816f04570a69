"""Graphs of the differential fuzzer (docs/fuzzing.md): some seeds on some configurations, and a planted fault."""

from __future__ import annotations

import os
import random
import sys
from pathlib import Path

import numpy as np
import onnx
import onnx.parser
import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))
sys.path.insert(0, str(Path(os.environ.get("ASCEND_FUSE_BUILD", ROOT / "build")) / "python"))

from fuzz import compare, configuration, extras, inputs, oracles, plan, reducing  # noqa: E402
from fuzz.configuration import Configuration  # noqa: E402
from fuzz.hidden import hide_names  # noqa: E402

from ascend_fuse.session import plain_session  # noqa: E402

FIRST, CHUNK, PER_GRAPH = 1_000_000, 20, 3
CHUNKS = [*range(FIRST, FIRST + 8 * CHUNK, CHUNK), extras.FIRST_SEED, extras.FIRST_SEED + 2 * CHUNK, extras.FIRST_SEED + 3 * CHUNK]
# Graphs that found faults: 2000318, a node that was made of the value that it replaces; 2003324, a Split without one of its outputs.
# Second runs that changed a right file: 8001657, where one node of a norm of GE was turned alone; 8000162, 8000808, 8001709 and 8003069, whose
# weights are dequantised when the model is saved; 8004412 and 9010113, whose attention has a cache that nobody reads. 9200154: rows of zeros
# before an Ascend node of the first run. 9040514 and 10110887: attentions and rotations after one whose mask has a batch of another name.
# 10180769: a sum and the norm that GE joins with it. 10186724: a norm with a shift alone. 10473741: zeros after heads that are turned in pairs.
# 10483327 and 10483917: an opset that a Softmax in a branch that is not taken held. 10502224: nodes of the branch that is taken. 10504935: two
# equal norms, of which an attention that was left read one. 10514731: two equal norms with shifts of zeros. 10535127 and 10536757: what is
# known of dims without a promise. 10544910: a large epsilon. 10549137: a Scan. 10555230: zeros that make a rotation wide enough. 10557191: a cap
# before heads that share keys. 10558580: a mask that was made at an older opset. 10586749: a batch that changes from turn to turn. 10589704:
# cosines of a single token. 10631065: a sink that reads the largest of the scores, beside long programs of shapes. 10673812: a rotation in a
# Loop, whose batch is known once that of a mask is. 10693322: a weight that several linears read.
FOUND = [2000318, 2003324, 8001657, 8000162, 8000808, 8001709, 8003069, 8004412, 9010113, 9200154, 9040514, 10110887, 10180769, 10186724,
         10473741, 10483327, 10483917, 10502224, 10504935, 10514731, 10535127, 10536757, 10544910, 10549137, 10555230, 10557191, 10558580,
         10586749, 10589704, 10631065, 10673812, 10693322]
# A kernel of integers writes float16; float16 and bfloat16 that ONNX Runtime does not round; a mean of what a norm centred, which is 0;
# a Where over no keys, of which ONNX Runtime keeps the axis; a GELU that is 0 in every run, where all else is don't-care.
BOUNDS = [9002109, 9001155, 9201153, 10111522, 10120100, 10670388]
# Graphs with quantised linears: of weights in 8 and 4 bits, of activations with a constant scale and with a computed one.
QUANTISED = [5000018, 5000074, 5000084, 5000102, 5000128]
# SiLU taken for another sigmoid form, by a rule that overrides the right one.
PLANTED = """
rule silu <kind = gelu> (x) => (y)
match { y = Mul (x, Sigmoid (x)) }
emit  { y = ascend_fuse.QuickGelu (x) }
"""


def findings_of(seed: int, per_graph: int) -> list[str]:
    chosen = plan.choose(seed)
    chosen["edge"] = "none"  # where a dim is 0, some kernels of ONNX Runtime end the process
    try:
        subject = oracles.Subject(chosen)
    except oracles.Unusable:
        return []
    examiner = oracles.Examiner(subject)
    every = configuration.choose(seed, subject.graph, inputs.padding(chosen))
    for step in range(per_graph):
        examiner.examine(every[(seed + 5 * step) % len(every)])
    return [f"seed {seed}: {f.kind} {f.binding}: {f.sentence} [{f.configuration}]" for f in examiner.result.findings]


@pytest.mark.parametrize("first", [FIRST, *(pytest.param(first, marks=pytest.mark.slow) for first in CHUNKS[1:])])
def test_graphs(first: int) -> None:
    found = [sentence for seed in range(first, first + CHUNK) for sentence in findings_of(seed, PER_GRAPH)]
    assert not found, "\n".join(found)


@pytest.mark.parametrize("seed", [*FOUND, *(pytest.param(seed, marks=pytest.mark.slow) for seed in BOUNDS)])
def test_found(seed: int) -> None:
    assert not findings_of(seed, 12)


@pytest.mark.parametrize("seed", QUANTISED)
def test_quantised_linears(seed: int) -> None:
    assert any(layer.get("quantised") for layer in plan.choose(seed)["layers"])
    assert not findings_of(seed, 6)


HIDING = """<ir_version: 8, opset_import: ["" : 17]>
g (float[2] x) => (float[2] y) <int64 k = {3}, bool go = {1}, float[2] w = {2, 3}, float[2] v = {5, 7}> {
  r = Sin (x)
  i = Identity (r)
  j = Mul (i, v)
  y = Loop (k, go, x) <body = b (int64 n, bool more, float[2] s) => (bool again, float[2] o) {
    p = Mul (s, w)
    q = Add (p, j)
    o = If (more) <then_branch = t () => (float[2] a) { a = Add (q, w) }, else_branch = e () => (float[2] d) { d = Sub (q, s) }>
    again = Identity (more) }>
}"""


def test_names_of_values_around_a_body_change_nothing() -> None:
    model = onnx.parser.parse_model(HIDING)
    feeds = {"x": np.array([0.5, -2], np.float32)}
    expected = plain_session(model.SerializeToString()).run(None, feeds)
    hidden, seen = set(), 0
    for seed in range(20):
        other = onnx.ModelProto()
        other.CopyFrom(model)
        seen += hide_names(other.graph, random.Random(seed))
        onnx.checker.check_model(other)
        np.testing.assert_array_equal(plain_session(other.SerializeToString()).run(None, feeds), expected)
        body = other.graph.node[3].attribute[0].g
        hidden |= {i.name for i in body.input} | {t.name for t in body.initializer}
    assert seen >= 60 and {"r", "i", "v", "x"} <= hidden


def gated(seed: int) -> plan.Plan:
    """A plan of one SwiGLU and nothing else."""
    for number in range(seed, seed + 10000):
        chosen = plan.choose(number)
        layer = chosen["layers"][0]
        if chosen["dtype"] == "float" and layer["body"] == "mlp" and layer["activation"]["kind"] == "silu" and layer["gate"] == "none" and layer[
                "wrap"] == "none" and (layer["activation"]["spelling"] == "spelled" or chosen["opset"] < 24):
            return {**chosen, "layers": [layer], "taps": []}
    raise AssertionError("no seed makes one")


def test_a_planted_fault_is_found() -> None:
    """What ATC reads is here what ONNX means, so that two of the oracles are one file."""
    chosen = gated(0)
    examiner = oracles.Examiner(oracles.Subject(chosen))
    examiner.examine(Configuration("ascend910b", False))
    assert not examiner.result.findings
    examiner.examine(Configuration("ascend910b", False, rules=[PLANTED]))
    assert {f.kind for f in examiner.result.findings} == {"numpy", "expand"}


def test_a_plan_is_reduced() -> None:
    """To what shows the fault, here a residual around a mlp, and nothing else."""
    chosen = gated(0)
    chosen["layers"].append({**chosen["layers"][0], "placement": "both", "residual": True, "swapped": True})
    small = reducing.reduce_plan(chosen, lambda one: any(layer["residual"] and layer["swapped"] for layer in one["layers"]))
    assert len(small["layers"]) == 1 and small["layers"][0]["residual"]
    assert small["layers"][0]["placement"] == "none" and small["final_norm"] is None and small["taps"] == []


def test_zeros_that_cancel_are_told_from_zeros() -> None:
    """10480867: the mean of one row that a norm centred is 0 in float64, and as near to it as the type allows anywhere else."""
    subject = oracles.Subject(plan.choose(10480867))
    mean = "/norm/ReduceMean_output_0"
    assert not subject.references["second"][mean].any() and subject.shaken("second")[mean].any()
    examiner = oracles.Examiner(subject)
    examiner.examine(Configuration("ascend910b", False))
    assert not examiner.result.findings
    assert not oracles.shaken([0.0, -0.0], 3).any() and oracles.shaken([7], 3).tolist() == [7]


def test_a_reduction_of_an_empty_tensor() -> None:
    """ONNX Runtime keeps the axis where it is counted from the end; any other length is a finding."""
    assert oracles._keeps_an_empty_axis("y: shape [0, 1] became [0, 64]", b"ReduceSum")
    assert not oracles._keeps_an_empty_axis("y: shape [0, 1] became [0, 64]", b"ReduceMean")
    for sentence in ("y: shape [3, 1] became [3, 64]", "y: shape [0, 2] became [0, 64]", "y: shape [0, 1] became [0]"):
        assert not oracles._keeps_an_empty_axis(sentence, b"ReduceSum")


def test_bounds() -> None:
    reference = [1.0, -2.0, 1e-9]
    assert compare.difference([1.0, -2.0, 0.0], reference, reference, "float")[0] == ""
    assert "is more than" in compare.difference([1.0, -2.001, 0.0], reference, reference, "float")[0]
    # The original itself is that far from the exact result.
    assert compare.difference([1.0, -2.001, 0.0], [1.0, -1.9999, 0.0], reference, "float")[0] == ""
    assert "NaN" in compare.difference([float("nan"), -2.0, 0.0], reference, reference, "float")[0]
    assert compare.difference([float("nan"), -2.0, 0.0], reference, reference, "float", [False, True, True])[0] == ""
    assert "became" in compare.difference([[1.0]], [1.0], [1.0], "float")[0]
    # What stays beside don't-care is a number that was rounded to 0.
    rounded = [8.0, -0.0]
    assert compare.difference([7.0, -2e-11], rounded, rounded, "float", [False, True])[0] == ""
    assert "is more than" in compare.difference([7.0, -1e-4], rounded, rounded, "float", [False, True])[0]
    assert "is more than" in compare.difference([7.0, -2e-11], [0.0, 0.0], [0.0, 0.0], "float", [False, True])[0]
