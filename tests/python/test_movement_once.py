"""What an operator that moves elements does to positions is decoded once, in ir/infer, and asked of `Facts::MovementOf`. So nobody else
tells such operators by name, but the places below: they write these nodes, or look at terms, which are not nodes yet."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
DECODED_IN = ("ir/infer", "ir/movement")
# Makes models out of rules, whose nodes have no facts.
WITHOUT_FACTS = ("tools/backwards",)
# Which of these operators a file may tell by name, and why.
ALLOWED = {
    # Terms: nodes that a rule is about to make.
    "patterns/functions/tensor.cc": {"Concat", "Expand", "Flatten", "Gather", "Identity", "Pad", "Reshape", "Slice", "Split", "Squeeze",
                                     "Tile", "Transpose", "Unsqueeze"},
    "patterns/functions/mask.cc": {"Concat", "Expand"},
    "patterns/functions/rotary.cc": {"Concat"},  # the operator that near misses of rotations begin at
    "passes/core/emit.cc": {"Reshape", "Split"},
    "passes/core/node_inserter.cc": {"Reshape"},
    "passes/core/reshape_target.cc": {"Reshape"},  # which of the attributes of a node that is made says what its zeros mean
    "passes/layout/way_forms.cc": {"Transpose"},
    # A rule names axes as its operator counts them.
    "patterns/language/matcher.cc": {"Unsqueeze"},
    # Identity is not a construct.
    "passes/recognise/recognise.cc": {"Identity"},
    # Write the node anew: its attributes and inputs are those of its operator.
    "passes/layout/moving_nodes.cc": {"Concat", "Expand", "Gather", "Reshape", "Slice", "Split", "Transpose"},
    "passes/layout/head_writer.cc": {"Reshape", "Squeeze", "Transpose"},
    "passes/quantised/quantise_norms.cc": {"Reshape"},
    "passes/legalise/convert_node.cc": {"Pad", "ScatterElements", "ScatterND", "Split"},
    "passes/legalise/adapters.cc": {"CenterCropPad", "ScatterElements", "ScatterND", "Split"},
    "passes/legalise/adapt_indices.cc": {"GatherElements", "GatherND", "ScatterElements"},
    "passes/legalise/adapt_sequences.cc": {"Identity"},
    # Count what an operator costs, and who computes it, by its name.
    "passes/analyze/host_work.cc": {"Expand", "Pad", "Reshape", "Slice", "Split", "Squeeze", "Tile", "Unsqueeze"},
    "passes/core/weights.cc": {"Gather", "GatherElements", "GatherND"},
    "passes/analyze/memory.cc": {"Concat", "Identity"},
    # An Identity costs nothing.
    "passes/layout/row_ways.cc": {"Identity"},
    # Inputs that may be left out, by operator.
    "passes/legalise/adapt_branch_inputs.cc": {"Pad", "Slice"},
    # Writes into the scores: only what it writes into is followed, no place is decoded.
    "patterns/analysis/scores.cc": {"ScatterND"},
    # The column of a sink that is joined to the scores.
    "patterns/analysis/score_variants.cc": {"Concat"},
    # Which operators have a form that takes codes as they are, and how each quantised one is written.
    "passes/quantised/int8_kernel.cc": {"Identity", "Transpose"},  # the weight of a linear, and what stands in its place
    "passes/quantised/code_writer.cc": {"DepthToSpace", "Expand", "Flatten", "Gather", "GatherElements", "GatherND", "Identity", "Reshape",
                                        "Slice", "SpaceToDepth", "Split", "Squeeze", "Tile", "Transpose", "Unsqueeze"},
    "passes/quantised/weight_kernel.cc": {"Identity"},
    "passes/quantised/write_blocks.cc": {"Gather", "Identity", "Transpose"},
    "passes/quantised/write_elementwise.cc": {"Concat", "Gather", "Identity", "Transpose"},
    "passes/quantised/write_products.cc": {"Identity"},
    "passes/quantised/write_quantised.cc": {"Transpose"},
    "passes/quantised/write_whole.cc": {"Transpose"},
    # Outputs that may not be left out, by operator.
    "ir/rewriter.cc": {"Split"},
    # Write these operators as others, one rewrite each. Where they decode positions besides, they should ask.
    "passes/tidy/columns.cc": {"Expand", "Tile"},
    "passes/tidy/element_parts.cc": {"Identity"},  # noise, which is gone before orders are chosen
    "passes/tidy/expands.cc": {"Expand"},
    "passes/tidy/places.cc": {"GatherND"},
    "passes/tidy/dims.cc": {"Gather"},
    "passes/tidy/joins.cc": {"Concat", "Gather", "Slice"},
    "passes/tidy/kinds.cc": {"Concat", "Expand", "Flatten", "Gather", "GatherElements", "GatherND", "Pad", "Reshape", "ScatterND", "Slice", "Squeeze", "Transpose", "Unsqueeze"},
    "passes/tidy/reshapes.cc": {"Flatten", "Gather", "Reshape", "Squeeze", "Unsqueeze"},
    "passes/tidy/splits.cc": {"Slice"},
    "passes/tidy/shapes.cc": {"Expand", "Reshape"},
    "passes/tidy/transposes.cc": {"Transpose"},
}
COMMENT = re.compile(r"//[^\n]*")
# What stands before the name of an operator of which a node or a term is made.
MAKES = re.compile(r'(op_type = |\bOp\(|Term::Node\(\s*\{"",\s*|\bRewrite\(workspace, node, |InternCopy\(|Named\(copy\.scope, )$')


def operators() -> set[str]:
    table = (ROOT / "ir/infer/moves.cc").read_text()
    found = set(re.findall(r'\{"[\w.]*", "(\w+)", \w+\}', table))
    assert {"Slice", "Concat", "Transpose", "Expand", "ScatterND"} <= found
    return found


def told_by_name(text: str, names: set[str]) -> set[str]:
    text = COMMENT.sub("", text)
    return {match[1] for match in re.finditer(r'"(\w+)"', text) if match[1] in names and not MAKES.search(text[:match.start()])}


def sources() -> list[str]:
    paths = [path for layer in ("ir", "patterns", "passes", "tools") for pattern in ("*.h", "*.cc") for path in (ROOT / layer).rglob(pattern)]
    names = sorted(path.relative_to(ROOT).as_posix() for path in paths)
    return [name for name in names if not name.startswith(DECODED_IN + WITHOUT_FACTS)]


@pytest.mark.parametrize("path", sources())
def test_movement_is_asked_for(path: str) -> None:
    found = told_by_name((ROOT / path).read_text(), operators())
    more = found - ALLOWED.get(path, set())
    assert not more, f"{path} tells {sorted(more)} by name: ask Facts::MovementOf (ir/infer/movement_of.h) what a node moves"
    gone = ALLOWED.get(path, set()) - found
    assert not gone, f"{path} does not tell {sorted(gone)} by name any more: delete them from ALLOWED"


def test_every_place_that_is_allowed_is_there() -> None:
    assert set(ALLOWED) <= set(sources())


def test_the_detector_detects() -> None:
    names = operators()
    assert told_by_name('if (IsOp(node, "Slice") || op == "Gather") {}  // "Concat"', names) == {"Slice", "Gather"}
    assert told_by_name('Producer(value, "Expand"); kOps[] = {{"Tile", &OfTile}};', names) == {"Expand", "Tile"}
    assert not told_by_name('plan.op_type = "Slice"; inserter.Op("Gather", {x}); build::Op("Pad", {}); IsOp(node, "Add");', names)
