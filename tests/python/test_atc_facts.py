"""The facts that are known of ATC, line by line: for each a foreign file in which `check` finds it under its code, and what
`optimize` makes of that file: the form is gone, or nothing is written, or it is told where the sources leave it open.

Facts about single operators are cases of test_atc_check.py; the table below says which. Those about npu nodes and the frame
of a file stand here. The numbers are those of the operator audit (W: silently wrong, R: refused), of the ten things that
break an emitted model (1 ... 10), of the parser's answers (A ... O), and of a pipeline that had to be done by hand (P).
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path

import onnx
import onnx.parser
import pytest
from conftest import ROOT, run
from test_atc_check import CASES, Case, name_of, parse, rows
from test_atc_check_frame import codes, with_empty_names

# Codes of forms that have no exact other spelling, or none in general, with a word of the form where only that one has none.
# Nothing is written.
NOT_WRITTEN = {
    ("dropout-inputs", ""),  # training is random
    ("resize-form", "(x, r)"), ("resize-form", "area"),  # no Resize of ONNX
    ("resize-attribute", "cubic_coeff_a"), ("resize-attribute", "exclude_outside"), ("resize-attribute", "extrapolation_value"),
    ("resize-attribute", "antialias"), ("resize-attribute", "keep_aspect_ratio_policy"),
    ("reduce-axes-input", "ReduceMax"),  # of axes that are computed
    ("scatter-reduction", ""),  # of indices that are computed: two may be the same
    ("no-parser", "Frobnicate"),
}
# Forms of which the sources, or values that only come at run time, leave open whether they are read: told, and written.
TOLD = {"scatter-reduction"}
# What a single source measured on one chip: told, and nothing is written.
SEEN_ONCE = {"seen-wrong-once", "half-kernel-only"}
ELSEWHERE = {"on-ai-cpu", "on-host", "slow-kernel"}  # read rightly, and slow


def not_written(case: Case) -> bool:
    return any(case.code == code and word in f"{case.form} {case.caught}" for code, word in NOT_WRITTEN)


@pytest.mark.parametrize("case", [case for case in CASES if case.code not in ELSEWHERE], ids=name_of)
def test_what_optimize_writes_does_not_have_the_form(case: Case, tmp_path: Path) -> None:
    source, written = tmp_path / "m.onnx", tmp_path / "o.onnx"
    onnx.save(parse(case, case.caught), source)
    flags = ("--cann", case.cann, "--target", case.target)
    result = run("optimize", source, "-o", written, *flags)
    if case.certain and not_written(case):
        assert result.code == 4 and not written.exists()
        assert f"[{case.code}]" in result.err
        return
    assert result.code == 0, result.err
    found = [f["code"] for f in json.loads(run("check", written, "--json", "-", *flags).out)["findings"]]
    assert (case.code in found) == (case.code in TOLD | SEEN_ONCE and not case.certain), found


NPU = '"ai.onnx" : 17, "npu" : 1'
QKV = "float16[1, 2, 16, 64] q, float16[1, 2, 16, 64] k, float16[1, 2, 16, 64] v"
PFA = ('num_heads = 2, scale_value = 0.125, pre_tokens = 65535, next_tokens = 65535, input_layout = "BNSD", '
       "num_key_value_heads = 2, sparse_mode = 0")
MASK = "bool[1, 1, 16, 16] m"
NORM = "npu.NPURmsNorm <epsilon = 0.000001>"


@dataclass
class Foreign:
    """A file, and what `check` finds in it on CANN 8.1 and on that of July 2026."""

    fact: str
    body: str
    found: str = ""
    newest: str | None = None  # another answer of the newest one
    imports: str = NPU
    more: str = ""
    constants: str = ""
    output: str = "float16[1, 2, 16, 64] y"

    def model(self) -> onnx.ModelProto:
        inputs = QKV + (f", {self.more}" if self.more else "")
        text = f"({inputs}) => ({self.output}) {self.constants} {{ {self.body} }}"
        return with_empty_names(onnx.parser.parse_model(f"<ir_version: 8, opset_import: [{self.imports}]>\ng {text}"))


def attention(inputs: str, attributes: str = PFA, op: str = "npu.NPUPromptFlashAttention") -> str:
    return f"y = {op} <{attributes}> ({inputs})"


GAIN = "float16[64] w"
FOREIGN = [
    Foreign("1 two imports beside the empty domain; A'", f"a = Relu (q)\n y = {NORM} (a, w)", "imports-mixed", "",
            '"" : 17, "npu" : 1', GAIN),
    Foreign("1 style D; B", "y = NPURmsNorm <epsilon = 0.000001> (q, w)", imports='"" : 17', more=GAIN),
    Foreign("1 style X; C", f"a = ai.onnx.Relu (q)\n y = {NORM} (a, w)", more=GAIN),
    Foreign("1 no standard node beside it; A", f"y = {NORM} (q, w)", imports='"" : 17, "npu" : 1', more=GAIN),
    Foreign("1 an alias has opsets", attention("q, k, v", op="NPUPromptFlashAttention"), "no-parser", imports='"" : 17'),
    Foreign("1 an alias has opsets", attention("q, k, v", op="NPUPromptFlashAttention"), imports='"" : 16'),
    Foreign("2 empty names are wired together; K",
            "y, EMPTY = npu.NPURmsNorm <epsilon = 0.000001> (q, w)\n z = ai.onnx.Clip (q, EMPTY, h)", "empty-names-wired",
            more=f"{GAIN}, float16 h", output="float16[1, 2, 16, 64] y, float16[1, 2, 16, 64] z"),
    Foreign("L an empty input alone", "y = ai.onnx.Clip (q, EMPTY, h)", more="float16 h"),
    Foreign("3 one node becomes many; G", attention("q, k, v, EMPTY, m"), "operand-refused", more=MASK),
    Foreign("H an empty constant instead", attention("q, k, v, p, m"), more=MASK, constants="<float16[0] p = {}>"),
    Foreign("F three inputs", attention("q, k, v")),
    Foreign("4 tokens are written", attention("q, k, v", 'num_heads = 2, scale_value = 0.125, input_layout = "BNSD"'),
            "attribute-refused"),
    Foreign("4 3, 5, 7, 9 or 12 inputs; I", attention("q, k, v, m"), "operand-refused", more=MASK),
    Foreign("4 3, 5, 7, 9 or 12 inputs; J", attention("q, k, v, p, m, l"), "operand-refused", more=f"{MASK}, int64[1] l",
            constants="<float16[0] p = {}>"),
    Foreign("5 five broken plugins; M", "y = npu.NPUIncreFlashAttention <num_heads = 2> (q, k, v)", "node-refused"),
    Foreign("5 five broken plugins", "y = npu.NPUFlashAttention <head_num = 2> (q, k, v)", "node-refused"),
    Foreign("5 five broken plugins", "y = npu.NPUMaskedSoftmaxWithRelPosBias (q, k, v)", "node-refused"),
    Foreign("5 five broken plugins", "y = npu.NPUFusedAttentionScore (q, k, v)", "node-refused"),
    Foreign("5 five broken plugins", "y = npu.NPUFusedAttentionScoreFwd (q, k, v)", "no-node"),
    Foreign("6 epsilon is not read; P", "y = npu.NPURmsNorm <epsilon = 0.5> (q, w)", "attribute-refused", more=GAIN),
    Foreign("7 a name that nobody has", "y = npu.NPUGeGlu (q)", "no-node"),
    Foreign("7 three inputs", f"y = {NORM} (q, k, v)", "operand-refused"),
    Foreign("7 the axis is not read; P", "y, z = npu.NPUGeglu <dim = 1> (q)", "attribute-refused"),
    Foreign("8 the mode is not read", 'y = npu.NPURotaryMul <rotary_mode = "interleave"> (q, k, v)', "attribute-refused"),
    Foreign("9 no plugin; N", "y = npu.NPUSwiGlu (q)", "node-refused", output="float16[1, 2, 16, 32] y"),
    Foreign("9 no plugin", "y, z = npu.NPUApplyRotaryPosEmb (q, k, v, v)", "node-refused"),
    Foreign("9 no plugin", "y = npu.NPUFusedInferAttentionScore (q, k, v)", "node-refused"),
    Foreign("9 no plugin", "y = npu.NPUGroupNorm (q)", "node-refused"),
    Foreign("9 no plugin", "y = npu.NPUSwish (q)", "node-refused"),
    Foreign("10 no parser", "y = Gelu (q)", "no-parser", imports='"" : 17'),
    Foreign("10 no parser", "y = QuantizeLinear (q, s)", "no-parser", imports='"" : 17', more="float16 s"),
    Foreign("10 LayerNormalization at 17 and 18", "y = LayerNormalization (q, w)", "no-parser", imports='"" : 16', more=GAIN),
    Foreign("D a newer opset", "y = Add (q, k)", "opset-too-high", imports='"" : 19'),
    Foreign("E another version of npu", f"y = {NORM} (q, w)", "npu-version", imports='"ai.onnx" : 17, "npu" : 2', more=GAIN),
    Foreign("O the name of an input", "[q] y = Relu (q)", "name-of-an-input", imports='"" : 17'),
    Foreign("P an opset of two domains", "a = Relu (q)\n y = npu.NPUFastGelu (a)", "imports-mixed", "", '"" : 17, "npu" : 1'),
]


@pytest.mark.parametrize("case", FOREIGN, ids=lambda case: f"{case.fact}-{FOREIGN.index(case)}".replace(" ", "_"))
def test_check_finds_it_in_a_foreign_file(case: Foreign, tmp_path: Path) -> None:
    newest = case.found if case.newest is None else case.newest
    for cann, expected in (("8.1", case.found), ("2026.07", newest)):
        assert codes(case.model(), tmp_path, "--cann", cann) == ([expected] if expected else []), cann


# Codes of each row of the operator audit. `-`: no form of a file, but a number that is loose.
AUDIT = {
    "W1": "reduce-axes-input", "W2": "shape-start-end", "W3": "if-condition-rank", "W4": "gather-nd-negative-index",
    "W5": "reduce-axes-attribute", "W6": "reduce-axes-input", "W7": "reduce-without-axes", "W8": "constant-value-form",
    "W9": "mod-sign", "W10": "scatter-reduction", "W11": "scatter-reduction", "W12": "resize-nearest resize-attribute",
    "W13": "sum-broadcast sum-type", "W14": "one-hot-depth", "W15": "gemm-alpha", "W16": "conv-transpose-shape",
    "W17": "log-softmax-axis", "W18": "softmax-axis", "W19": "batch-norm-training", "W20": "top-k-index-type",
    "W21": "size-type", "W22": "dropout-inputs", "W23": "pad-axes-input", "W24": "constant-of-shape-field",
    "R1": "split-num-outputs", "R2": "no-parser", "R3": "trilu-kernel", "R4": "einsum-kernel", "R5": "instance-norm-rank",
    "R6": "transpose-without-perm", "R7": "clip-without-bounds", "R8": "gather-nd-batch-dims", "R9": "select-last-index",
    "R10": "scatter-reduction", "R11": "expand-rank", "R12": "range-empty", "R13": "cast-like-kernel", "R14": "resize-form",
    "R15": "conv-attributes empty-optional-input", "R16": "conv-transpose-kernel", "R17": "empty-optional-input",
    "R18": "no-parser", "R19": "reduce-without-axes",
}
# What the pipeline by hand met in plain ONNX, and where it is met here.
PIPELINE = {
    "Slice with computed bounds": "on-ai-cpu", "Slice with axes from the front and steps of 1": "slice-steps",
    "Split with num_outputs": "split-num-outputs", "NaN in weights": "constant-is-nan",
    "a mask of less than float16": "half-overflow",
}


# What is written in the place of each form, and where the form stays, by code.
WRITTEN = {
    "reduce-axes-input": "axes as an attribute at opset 17; of computed axes, a mean, a sum of squares and the logarithm of a sum "
                         "as a ReduceSum",
    "shape-start-end": "Shape and a Slice, or a Gather of one dim", "if-condition-rank": "a Squeeze before it",
    "gather-nd-negative-index": "constant indices counted from the front, computed ones by a Where",
    "reduce-axes-attribute": "axes as an input at opset 18", "reduce-without-axes": "all axes named; where it reduces nothing, what stands around the sum",
    "constant-value-form": "the number as a tensor, sparse ones whole", "mod-sign": "Mod (Add (Mod (a, b), b), b) of integers, a Where where that sum may overflow",
    "scatter-reduction": "a gather, the sum, and a scatter, of constant indices that are all different",
    "resize-nearest": "asymmetric with floor by whole factors, a Gather along each axis of known lengths",
    "resize-attribute": "scales or sizes of all axes; nearest of known lengths as a Gather along each axis",
    "sum-broadcast": "a chain of Add", "sum-type": "a chain of Add", "one-hot-depth": "a comparison with 0, 1, ... depth - 1",
    "gemm-alpha": "MatMul, Mul and Add", "conv-transpose-shape": "pads", "log-softmax-axis": "Flatten before and Reshape after it",
    "softmax-axis": "Flatten before and Reshape after it", "batch-norm-training": "its mean and variance, computed",
    "top-k-index-type": "a Cast after it", "size-type": "a product of dims", "dropout-inputs": "nothing, at inference",
    "pad-axes-input": "pads of all axes", "constant-of-shape-field": "the value in raw_data", "split-num-outputs": "the sizes",
    "no-parser": "ReduceL1 and ReduceL2 at opset 17 or by ReduceSum, and the definitions of Attention, CenterCropPad, Gelu, "
                 "GroupNormalization, RMSNormalization, RotaryEmbedding and Swish",
    "trilu-kernel": "a Where over ranges", "einsum-kernel": "MatMul, Mul, ReduceSum and Transpose, of four operands at most",
    "instance-norm-rank": "four dims", "transpose-without-perm": "perm", "clip-without-bounds": "the largest numbers as bounds; nothing of integers",
    "gather-nd-batch-dims": "indices with those of the batch in front", "select-last-index": "the first one from the end",
    "expand-rank": "a shape of the full rank", "range-empty": "an empty constant", "cast-like-kernel": "Cast",
    "resize-form": "a Gather along each axis, of nearest and known lengths", "conv-attributes": "the attributes",
    "empty-optional-input": "without the empty name", "conv-transpose-kernel": "kernel_shape",
}
STAYS = {
    "reduce-axes-input": "a largest, smallest, product or LogSumExp of computed axes: no other operator computes it",
    "reduce-axes-attribute": "beside an operator that opset 18 has not", 
    "if-condition-rank": "conditions of several elements are not ONNX", "constant-value-form": "texts: nothing on the chip holds one",
    "scatter-reduction": "computed indices: which of them are the same comes at run time",
    "resize-nearest": "lengths that are not known, by other factors than whole ones",
    "resize-attribute": "antialias, cubic_coeff_a, exclude_outside, extrapolation_value: GE has no parameter for them",
    "conv-transpose-shape": "pads of an odd sum, where versions of ONNX differ in where the rest goes",
    "dropout-inputs": "training, which is random", "one-hot-depth": "a computed depth, and values that are truths",
    "split-num-outputs": "a length that is not a dim of a name", "no-parser": "other operators: what is quantized, loops, sequences",
    "einsum-kernel": "integers, more than one letter twice in an operand, letters of an axis of length 1 beside others",
    "resize-form": "modes that ONNX does not have", "conv-attributes": "auto_pad SAME of lengths that are not known",
    "log-softmax-axis": "opsets before 11", "softmax-axis": "opsets before 11", "trilu-kernel": "data of unknown rank",
    "gemm-alpha": "integers", "sum-type": "ONNX has no Mean of integers", "select-last-index": "data of unknown rank",
    "batch-norm-training": "parameters of another type than the data", "expand-rank": "a shape of unknown length",
}
PAGE = ROOT / "docs" / "forms.md"
HEAD = """# Forms that ATC does not read

Each row of the audit of ATC's parsers (W: read as something else, R: refused), what `optimize` writes instead, and where the
form stays: nothing is written then without `--force`, or it is told where the sources leave open whether it is read. What the form is, why, and who
says so: `ascend-fuse targets ascend910b OPERATOR`. `tests/python/test_atc_facts.py` writes this page and has the cases; those
with numbers are in `test_adapt_forms.py` and `test_adapt.py`.

| row | code | operators | written instead | stays |
|---|---|---|---|---|
"""


def page() -> str:
    lines = []
    for row, words in AUDIT.items():
        for code in words.split():
            ops = sorted({op for known in rows() if known["code"] == code for op in known["ops"].split()})
            names = ", ".join(ops) if len(ops) <= 6 else f"{len(ops)} operators"
            lines.append(f"| {row} | `{code}` | {names} | {WRITTEN.get(code, '-')} | {STAYS.get(code, '-')} |\n")
    return HEAD + "".join(lines)


def test_the_page_of_forms_is_written() -> None:
    if os.environ.get("BLESS"):
        PAGE.write_text(page())
    assert PAGE.read_text() == page(), "BLESS=1 writes it"
    codes = {code for words in AUDIT.values() for code in words.split()}
    assert set(WRITTEN) == codes and set(STAYS) <= codes
    # What the cases say is what the page says.
    assert {code for code, _ in NOT_WRITTEN} | TOLD <= set(STAYS)


def test_every_row_of_the_audit_has_a_case() -> None:
    known = {case.code for case in CASES}
    assert [row for row, words in AUDIT.items() if not set(words.split()) <= known] == []
    assert len(AUDIT) == 24 + 19
    # The others are cases of test_atc_check_frame.py.
    frame = (ROOT / "tests" / "python" / "test_atc_check_frame.py").read_text()
    assert all(code in known or f'"{code}"' in frame for code in PIPELINE.values())
    told = {word for case in FOREIGN for word in case.fact.replace(";", "").replace("'", "").split()}
    assert {str(i) for i in range(1, 11)} <= told
    assert set("ABCDEFGHIJKLMNO") <= told
