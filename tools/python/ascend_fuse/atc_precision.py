"""What ATC takes to keep nodes in float32: its three files, and the options that go with them.

The formats are those of ATC's documents (hicann/ge:docs/zh/user_guides/atc_tools/CLI_options/--keep_dtype.md, --modify_mixlist.md,
--customize_dtypes.md), and what its readers do besides (hicann/ge:compiler/api/aclgrph/attr_options/keep_dtype_option.cc,
compiler/engines/nn_engine/utils/common/config_parser):

- keep_dtype: one name a line. A name that the graph does not have is an error in older releases, so there are no comments.
  Nodes that a plugin makes of one of the file are found by its name.
- modify_mixlist: strict JSON, without comments, by types of GE operators.
- customize_dtypes: `name::InputDtype:...,OutputDtype:...`. A name ends at its first colon, a line at 1023 characters, and an empty
  line is an error. Only a node that stays one GE operator is found by its name, and a type that the kernel has not is an error.
"""

from __future__ import annotations

import dataclasses
import json
import pathlib
import re
import shlex
from collections.abc import Sequence

from ascend_fuse.expanded import VerifyError
from ascend_fuse.precision_model import PrecisionModel, Unit

_LONGEST_LINE = 1023  # of a customize_dtypes file

# Which GE operator a node becomes (hicann/ops-math, hicann/ops-nn: */framework/*_onnx_plugin.cpp). Names not listed are the same.
_GE = {
    "BatchNormalization": "BatchNorm", "Clip": "ClipByValue", "Concat": "ConcatD", "Conv": "Conv2D", "ConvTranspose": "Conv2DTranspose",
    "CumSum": "Cumsum", "Div": "RealDiv", "Gather": "GatherV2", "GatherND": "GatherNd", "Gemm": "MatMulV2",
    "GlobalAveragePool": "ReduceMean", "InstanceNormalization": "InstanceNorm", "LayerNormalization": "LayerNorm",
    "LogSoftmax": "LogSoftmaxV2", "MatMul": "BatchMatMulV2", "Max": "Maximum", "Min": "Minimum", "ReduceL1": "LpNormV2",
    "ReduceL2": "LpNormV2", "ReduceSumSquare": "SquareSumV1", "Slice": "StridedSliceD", "Softmax": "SoftmaxV2", "Split": "SplitV",
    "Sum": "AccumulateNV2", "Where": "SelectV2", "AveragePool": "AvgPoolV2", "MaxPool": "MaxPoolV3", "Pad": "PadV3",
    "npu.NPUGeglu": "GeGluV2", "npu.NPUPromptFlashAttentionDirect": "PromptFlashAttention",
}
# Nodes that stay one GE operator with the inputs of ONNX: their plugins have no ParseOpToGraphFn (hicann/ops-math, hicann/ops-nn).
_ONE_TO_ONE = frozenset((
    "Abs Add Ceil Cos CumSum Div Elu Erf Exp Floor HardSigmoid LeakyRelu Log LogSoftmax MatMul Mul Neg PRelu Pow Reciprocal Relu Round"
    " Sigmoid Sign Sin Softmax Softplus Sqrt Sub Tanh Where Identity").split())
# Operators without a float32 kernel, on all chips or on some (leideng/CANN-8.1.RC1: aic-<chip>-ops-info.json; of the cube units,
# hiascend.com aclnnMatmul: "Cube does not compute FLOAT32" on Atlas inference and Atlas training products).
_CUBE = frozenset("MatMul Gemm Conv ConvTranspose Einsum".split())
_HALF_ONLY = frozenset(("npu.NPUPromptFlashAttention", "npu.NPUPromptFlashAttentionDirect", "npu.NPUFusedInferAttentionScore",
                        "npu.NPUIncreFlashAttention", "AveragePool"))
_NO_FLOAT32_CUBE = ("ascend310p", "ascend910")
# aclrtFloatOverflowMode of CANN 9.1: these chips have the saturation mode only.
_SATURATES = ("ascend310p", "ascend310b", "ascend910")
_NO_BFLOAT16 = ("ascend310p", "ascend910")
_FORCED = ("--precision_mode=force_fp16", "--precision_mode_v2=fp16")
_CHIPS = ("ascend310p", "ascend310b", "ascend910_93", "ascend910b", "ascend950", "ascend910")


def chip_of(target: str) -> str:
    """Returns the chip of a name such as Ascend310P3 or ascend910b."""
    for chip in _CHIPS:
        if target.lower().startswith(chip):
            return chip
    raise VerifyError(f"--target {target}: the chips are {', '.join(_CHIPS)}")


def saturates(chip: str) -> bool:
    """Whether an overflow becomes the largest number, and NaN 0."""
    return chip in _SATURATES


def has_bfloat16(chip: str) -> bool:
    return chip not in _NO_BFLOAT16


def why_not_float32(unit: Unit, chip: str) -> str:
    """Returns why a node cannot stay float32 on a chip; "" where it can, as far as is known."""
    if unit.op in _HALF_ONLY or (unit.op == "MaxPool" and chip == "ascend310p"):
        return f"{ge_operator(unit)} has no float32 kernel"
    if unit.op in _CUBE and chip in _NO_FLOAT32_CUBE:
        return f"the cube unit of {chip} does not compute float32"
    return ""


def ge_operator(unit: Unit) -> str:
    """Returns the type of the GE operator that a node becomes."""
    return _GE.get(unit.op) or re.sub(r"^npu\.(NPU)?", "", unit.op).rpartition(".")[2]


@dataclasses.dataclass
class AtcFile:
    """A file for ATC, and the options of the line that reads it."""

    option: str  # keep_dtype, modify_mixlist or customize_dtypes
    path: str
    text: str
    modes: list[str]  # the precision mode that goes with it: --precision_mode, and --precision_mode_v2 of newer releases
    keeps: list[Unit]  # what it keeps float32
    notes: list[str] = dataclasses.field(default_factory=list)

    def atc_line(self, model: str, new: bool = False) -> str:
        """The line of atc that reads it; the options of a line that `optimize` printed go with it."""
        return atc_line(model, self.modes[new], [shlex.quote(f"--{self.option}={self.path}")] if self.keeps else [])

    def write(self) -> None:
        """Writes the file."""
        try:
            pathlib.Path(self.path).write_text(self.text)
        except OSError as error:
            raise VerifyError(f"{self.path} cannot be written: {error}") from None


def keep_dtype_file(path: str, kept: list[Unit]) -> AtcFile:
    """One name a line, in the order of the model."""
    named, notes = [], []
    for unit in kept:
        if "\n" in unit.name or unit.name != unit.name.strip() or unit.name.startswith("OpType::"):
            notes.append(f"{unit.name!r} cannot be named in the file: rename the node")
        else:
            named.append(unit)
    return AtcFile("keep_dtype", path, "".join(f"{name}\n" for name in dict.fromkeys(unit.name for unit in named)), list(_FORCED), named, notes)


def mixlist_file(path: str, kept: list[Unit], model: PrecisionModel) -> AtcFile:
    """The types of the nodes on the black list, which keeps every node of these types."""
    types = sorted({ge_operator(unit) for unit in kept})
    same = [unit for unit in model.units if ge_operator(unit) in types and any(model.is_float(n) for n in unit.outputs)]
    data = {"black-list": {"to-add": types}} if types else {}
    modes = ["--precision_mode=allow_mix_precision", "--precision_mode_v2=mixed_float16"]
    notes = []
    if len(same) > len(kept):
        notes.append(f"the list is by type: it keeps {len(same)} nodes float32, and {len(kept)} need it")
    return AtcFile("modify_mixlist", path, json.dumps(data, indent=2) + "\n", modes, same, notes)


def customize_dtypes_file(path: str, kept: list[Unit], model: PrecisionModel) -> AtcFile:
    """A line for every node, with float32 for its float inputs and outputs."""
    lines, named, left = [], [], []
    for unit in kept:
        inputs = ["float32" if model.is_float(name) else "" for name in unit.node.input]
        outputs = ["float32" if model.is_float(name) else "" for name in unit.node.output]
        line = f"{unit.name}::InputDtype:{','.join(inputs)},OutputDtype:{','.join(outputs)}"
        if unit.op not in _ONE_TO_ONE or ":" in unit.name or "\n" in unit.name or len(line.encode()) > _LONGEST_LINE:
            left.append(unit)
        else:
            lines.append(line)
            named.append(unit)
    notes = []
    if left:
        names = ", ".join(f"{unit.op} {unit.name}" for unit in left[:3]) + (" ..." if len(left) > 3 else "")
        notes.append(f"{len(left)} nodes cannot be named in this file (ATC's plugin makes other operators of them, or their name has a"
                     f" colon): {names}; use --keep-dtype for them")
    return AtcFile("customize_dtypes", path, "".join(f"{line}\n" for line in lines), list(_FORCED), named, notes)


def atc_line(model: str, mode: str = "--precision_mode=force_fp16", options: Sequence[str] = ()) -> str:
    """A line of atc with a precision mode."""
    words = ["atc", shlex.quote(f"--model={model}"), "--framework=5", shlex.quote(f"--output={pathlib.Path(model).stem}"), mode, *options]
    return " ".join([*words, "--soc_version=${SOC_VERSION}"])


def read_keep_list(path: str, model: PrecisionModel) -> tuple[list[Unit], list[str]]:
    """Returns the units that a keep_dtype file names, by name or as OpType::Type, and the lines that name nothing."""
    try:
        lines = [line.strip() for line in pathlib.Path(path).read_text().splitlines()]
    except (OSError, UnicodeDecodeError) as error:
        raise VerifyError(f"the list {path} cannot be read: {error}") from None
    kept: dict[int, Unit] = {}
    unknown = []
    for line in filter(None, lines):
        of_type = line[len("OpType::"):] if line.startswith("OpType::") else None
        found = [u for u in model.units if (ge_operator(u) == of_type if of_type is not None else u.name == line)]
        kept.update({unit.index: unit for unit in found})
        if not found:
            unknown.append(line)
    return [kept[index] for index in sorted(kept)], unknown
