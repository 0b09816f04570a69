"""An error has an address: what verify says of a model of which one place is wrong."""

from __future__ import annotations

import json
from pathlib import Path

import onnx
import pytest
from conftest import TOOL, run_ok

from ascend_fuse import verification as verify

MODEL = "llama-sdpa-past-dy18-dynamic"

# As the built-in rule, with the sine subtracted.
WRONG_ROTARY = """
rule reference_rotary_mul (x, cos, sin) => (y)
match { y = npu.NPURotaryMul (x, cos, sin) }
where { shape (x) = [..., D] }
emit {
  h = Cast <to = float> (x)
  left, right = Split <axis = -1, split = [number (D) / 2, number (D) / 2]> (h)
  rotated = Concat <axis = -1> (Neg (right), left)
  y = Cast <to = dtype (y)> (Sub (Mul (h, Cast <to = float> (cos)), Mul (rotated, Cast <to = float> (sin))))
}
"""


@pytest.fixture
def optimized(zoo: Path, tmp_path: Path) -> tuple[Path, Path, dict]:
    """Returns the original, the optimized model, and the report."""
    source, output = zoo / f"{MODEL}.onnx", tmp_path / "o.onnx"
    report = json.loads(run_ok("optimize", source, "-o", output, "--json", "-", "--quiet", "--plugin").out)
    return source, output, report


def test_every_fused_site_has_a_region_and_all_are_equal(optimized) -> None:
    source, output, report = optimized
    result = verify.verify_models(source, output, tool=TOOL, report=report)
    assert result.ok
    assert len({region.binding for region in result.regions}) == 5
    fused = {name for site in report["sites"] if site["state"] == "fused" for name in site["outputs"]}
    assert {region.output for region in result.regions if region.kinds != ["adapted"]} == fused
    # Forms that ATC does not read are compared, too: one dim of a shape, here.
    assert {region.kinds[0] for region in result.regions if region.output not in fused} == {"adapted"}
    sites = [region for region in result.regions if region.output in fused]
    assert {kind for region in sites for kind in region.kinds} == {"rms_norm", "glu", "rotary", "attention"}
    assert all(region.module.startswith("model.") for region in sites)


def test_a_wrong_reference_is_pinned_to_its_sites(optimized, tmp_path: Path) -> None:
    source, output, report = optimized
    rules = tmp_path / "wrong.rule"
    rules.write_text(WRONG_ROTARY)
    result = verify.verify_models(source, output, tool=TOOL, report=report, rules=[rules])
    assert not result.ok
    assert any(not comparison.ok for comparison in result.comparisons)  # the logits say that, and not where
    wrong = {region.output for region in result.regions if not region.ok}
    assert wrong == {site["outputs"][0] for site in report["sites"] if site["kind"] == "rotary"}
    text = result.to_text()
    assert "NOT EQUAL: rotary -> NPURotaryMul at " in text
    assert "NOT EQUAL: attention" not in text


def test_one_wrong_node_is_pinned_to_itself(optimized) -> None:
    source, output, report = optimized
    model = onnx.load(output)
    node = next(node for node in model.graph.node if node.op_type == "NPURotaryMul")
    node.input[1], node.input[2] = node.input[2], node.input[1]
    onnx.save(model, output)
    result = verify.verify_models(source, output, tool=TOOL, report=report)
    assert {region.output for region in result.regions if not region.ok} == {node.output[0]}


def test_a_change_that_no_output_shows_is_found(optimized, tmp_path: Path) -> None:
    """A wrong scale of one head's zeros would not be seen in the logits of a model that multiplies them away."""
    source, output, report = optimized
    original = onnx.load(source)
    optimized_model = onnx.load(output)
    for model in (original, optimized_model):
        name = model.graph.output[0].name
        zero = onnx.helper.make_tensor("no_difference", onnx.TensorProto.FLOAT, [], [0.0])
        model.graph.initializer.append(zero)
        last = next(node for node in model.graph.node if name in node.output)
        last.output[0] = "logits_before"
        domain = last.domain
        model.graph.node.append(onnx.helper.make_node("Mul", ["logits_before", "no_difference"], [name], domain=domain))
        del model.graph.output[1:]
    node = next(node for node in optimized_model.graph.node if node.op_type == "NPURmsNorm")
    node.input[1] = next(n.input[1] for n in optimized_model.graph.node if n.op_type == "NPURmsNorm" and n != node)
    onnx.save(original, tmp_path / "a.onnx")
    onnx.save(optimized_model, tmp_path / "b.onnx")
    outputs = verify.verify_models(tmp_path / "a.onnx", tmp_path / "b.onnx", tool=TOOL, regions=False)
    assert outputs.ok and not outputs.regions
    result = verify.verify_models(tmp_path / "a.onnx", tmp_path / "b.onnx", tool=TOOL)
    assert not result.ok
    assert {region.output for region in result.regions if not region.ok} == {node.output[0]}


def test_weights_outside_the_model_are_found(optimized, tmp_path: Path) -> None:
    source, _, _ = optimized
    folder = tmp_path / "external"
    folder.mkdir()
    onnx.save(onnx.load(source), folder / "m.onnx", save_as_external_data=True, location="m.data", size_threshold=64)
    run_ok("optimize", folder / "m.onnx", "-o", folder / "o.onnx", "--quiet")
    before = sorted(folder.iterdir())
    result = verify.verify_models(folder / "m.onnx", folder / "o.onnx", tool=TOOL)
    assert result.ok and result.regions
    assert sorted(folder.iterdir()) == before


def test_without_a_report_rows_of_padding_are_left_out_on_every_chip(zoo: Path, tmp_path: Path) -> None:
    source, output = zoo / "llama-sdpa-nocache-dy18-dynamic.onnx", tmp_path / "o.onnx"
    run_ok("optimize", source, "-o", output, "--quiet", "--target", "ascend950", "--plugin")
    result = verify.verify_models(source, output, tool=TOOL)
    assert [region.output for region in result.regions if not region.ok] == []
    assert {"rms_norm", "glu", "rotary"} <= {kind for region in result.regions for kind in region.kinds}
    assert any(region.nodes == ["NPUFusedInferAttentionScore"] for region in result.regions)
