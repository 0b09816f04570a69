"""What `verify` says of models that round activations to codes: a difference of one code is told as that."""

from __future__ import annotations

from typing import Dict, Optional

import onnx
from onnx import numpy_helper

from ascend_fuse.comparison import MOVE, Comparison, RegionComparison, Result

# A fair bound of models that round activations to codes (docs/quantised.md), and the operators that do so.
TOLERANCE_OF_CODES = 1e-2
MAKE_CODES = {"QuantizeLinear", "DynamicQuantizeLinear"}

# Nodes whose inputs' differences add up.
ADD = {"Add", "Sub"}
# Of one code, for what float32 rounds beside it.
MORE_THAN_A_CODE = 1e-3


class Codes:
    """The codes of activations in a model: who makes them, and how much one code is."""

    def __init__(self, original: onnx.ModelProto) -> None:
        self._makers: Dict[str, onnx.NodeProto] = {output: node for node in original.graph.node for output in node.output if output}
        self._constants = {tensor.name: tensor for tensor in original.graph.initializer}
        for node in original.graph.node:
            if node.op_type == "Constant" and node.attribute and node.attribute[0].name == "value":
                self._constants[node.output[0]] = node.attribute[0].t
        self.nodes = [node for node in original.graph.node if node.op_type in MAKE_CODES and not self._is_constant(node.input[0])]

    def _is_constant(self, name: str) -> bool:
        maker = self._makers.get(name)
        return name in self._constants or (maker is not None and maker.op_type == "Constant")

    def one_code(self, name: str) -> Optional[float]:
        """By how much a value differs where each tensor of codes that it is the sum of is one code away; None where it is not such a sum."""
        total = 0.0
        work = [name]
        for _ in range(100):
            if not work:
                return total if total > 0 else None
            value = work.pop()
            maker = self._makers.get(value)
            if self._is_constant(value):
                continue
            if maker is None:
                return None
            if maker.op_type == "DequantizeLinear":
                scale = self._constants.get(maker.input[1])
                codes = self._makers.get(maker.input[0])
                if scale is None:
                    return None
                if codes is not None and codes.op_type in MAKE_CODES:
                    total += float(numpy_helper.to_array(scale).max())
            elif maker.op_type in MOVE:
                work.append(maker.input[0])
            elif maker.op_type in ADD:
                work.extend(maker.input)
            else:
                return None
        return None


def say_if_codes(original: onnx.ModelProto, result: Result) -> None:
    """Adds a note on why a result may be a little beyond the tolerance where the model rounds activations to codes."""
    failed = [c for c in (*result.comparisons, *result.regions) if not c.ok]
    if not failed:
        return
    codes = Codes(original)
    if not codes.nodes:
        return
    away = [c for c in failed if not _within(c, result.tolerance)]
    if any(not _one_code_away(c, codes) for c in away):
        return
    first = codes.nodes[0]
    note = (
        f"the original rounds activations to codes ({first.op_type} at {first.name or first.output[0]}, {len(codes.nodes)} in"
        " all): where a sum lies in the middle between two codes, another order of addition gives the next code, and one code may be more"
        f" than the tolerance of {result.tolerance:g}. "
    )
    if not away:
        note += f"--tolerance {TOLERANCE_OF_CODES:g} is a fair bound for such models"
    else:
        largest = max(away, key=lambda c: c.max_rel)
        note += (
            f"No place differs by more than one code, which is up to {largest.max_rel:.2g} of the largest value (at {largest.output}: the"
            f" inputs made for this run reach few of its codes). --tolerance {TOLERANCE_OF_CODES:g} --no-regions compares the outputs alone,"
            " with a fair bound for such models"
        )
    result.notes.append(note)


def _within(comparison: Comparison, tolerance: float) -> bool:
    return bool(comparison.compared) and tolerance < comparison.max_rel <= TOLERANCE_OF_CODES


def _one_code_away(comparison: Comparison, codes: Codes) -> bool:
    if not isinstance(comparison, RegionComparison) or not comparison.compared:
        return False
    code = codes.one_code(comparison.output)
    return code is not None and comparison.max_abs <= code * (1 + MORE_THAN_A_CODE)
