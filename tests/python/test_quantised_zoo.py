"""Quantised exports of the zoo (tools/zoo/quantised.py): every quantised product is a site, what is written is read by ATC, a second
run changes nothing, and the numbers are those of ONNX Runtime."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
import quantised
from conftest import run_ok
from quantised_models import Array
from test_quantised import CHIPS, EXACT, KERNELS

from ascend_fuse.inputs import make_inputs
from ascend_fuse.session import plain_session

# Linears between two activations have no kernel; weights of uint8 that are not symmetric have one where int32 leaves it.
ON_KERNELS = {"QDQ-QInt8-QInt8-tensor", "QDQ-QUInt8-QInt8-channel", "QOperator-QUInt8-QInt8-tensor", "dynamic-QInt8-channel-reduced"}
ON_KERNELS_OF_INT32 = {*ON_KERNELS, "dynamic-QUInt8-tensor-whole", "QDQ-QUInt8-QUInt8-channel"}
# Where float16 is computed weights in blocks have a kernel, too; those of uint8 in QDQ models are symmetric.
ON_KERNELS_OF_FLOAT16 = {*ON_KERNELS, "QDQ-QUInt8-QUInt8-channel", "4-32-nbits", "8-32-nbits", "4-32-blocks", "4-32-gather"}
RELEASES = ("8.1", "8.5", "9.0", "9.1", "9.2", "2026.07")


def outputs(path: Path, given: dict[str, Array]) -> list[Array]:
    return list(plain_session(str(path)).run(None, given))


def rms(a: list[Array], b: list[Array]) -> float:
    return float(np.sqrt(sum(np.square(x.astype(np.float64) - y).sum() for x, y in zip(a, b, strict=True) if x.dtype.kind == "f")))


def constant_linears(model: onnx.ModelProto, sites: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The sites of linears whose weight is an initializer."""
    constants = {tensor.name for tensor in model.graph.initializer}
    made = {name: node for node in model.graph.node for name in node.output}
    weights = {}
    for node in model.graph.node:
        source = node.input[3] if node.op_type in ("QLinearMatMul", "QGemm") else node.input[1] if len(node.input) > 1 else ""
        while source in made and made[source].op_type in ("DequantizeLinear", "Transpose"):
            source = made[source].input[0]
        weights[node.name] = source in constants
    return [site for site in sites if site["kind"] == "quantised_linear" and weights[site["node"]]]


FIRST = {way: model_id for model_id, way in reversed(quantised.EXPORTS)}  # one of each way


@pytest.mark.parametrize(("model_id", "way"), [
    pytest.param(model_id, way, id=f"{model_id}-{way}", marks=[] if FIRST[way] == model_id else pytest.mark.slow)
    for model_id, way in quantised.EXPORTS])
def test_an_export(model_id: str, way: str, tmp_path: Path) -> None:
    source = tmp_path / "m.onnx"
    model = quantised.quantise(model_id, way, source)
    expected = quantised.quantised_products(model)
    assert expected.total() > 0
    onnx.save(quantised.fill.load_model(model_id), tmp_path / "float.onnx")
    entry = quantised.entry_of(model_id)
    given = [make_inputs(entry, binding) for binding in entry["bindings"][:2]]
    for chip in CHIPS:
        for flags in ((), ("--plugin",), EXACT) if chip == "ascend910b" else ((),):
            made = tmp_path / "o.onnx"
            run_ok("optimize", source, "-o", made, "--target", chip, "--json", tmp_path / "r.json", *flags)
            run_ok("check", made, "--target", chip, *flags)
            sites = json.loads((tmp_path / "r.json").read_text())["sites"]
            assert Counter(site["kind"] for site in sites if site["kind"].startswith("quantised_")) == expected
            assert not [site for site in sites if site["code"] == "quantised-left"]
            run_ok("optimize", made, "-o", tmp_path / "again.onnx", "--target", chip, *flags)
            assert (tmp_path / "again.onnx").read_bytes() == made.read_bytes()
            if chip in KERNELS and way in (ON_KERNELS_OF_INT32 if flags == EXACT else ON_KERNELS_OF_FLOAT16):
                linears = constant_linears(model, sites)
                fused = sum(site["state"] == "fused" for site in linears)
                assert fused >= 0.95 * len(linears), {site["because"] for site in linears}
            if chip not in ("ascend910b", "ascend310p"):
                continue
            run_ok("expand", made, "-o", tmp_path / "e.onnx")
            # Exact but for codes of sums that lie between two, which later layers amplify. A result in float16 moves more codes: what is
            # written is as far from the float model as the quantised model is, over all inputs, because where one code falls is chance.
            in_float16 = any(site["state"] == "fused" and site["precision"] == "approximate" for site in sites if site["kind"] in expected)
            results = [[outputs(tmp_path / name, feeds) for name in ("m.onnx", "e.onnx", "float.onnx")] for feeds in given]
            own, moved, far = (np.hypot.reduce([rms(result[i], result[j]) for result in results]) for i, j in ((0, 2), (1, 0), (1, 2)))
            assert (far <= 1.25 * own) if in_float16 else (moved <= 0.25 * own)


@pytest.mark.slow
@pytest.mark.parametrize("chip", CHIPS)
@pytest.mark.parametrize("way", FIRST)
def test_every_release_reads_it(way: str, chip: str, tmp_path: Path) -> None:
    """With and without the plugin, and by all ways of writing it."""
    source = tmp_path / "m.onnx"
    expected = quantised.quantised_products(quantised.quantise(FIRST[way], way, source))
    for release in RELEASES:
        for flags in ((), ("--plugin",), ("--quantised", "fast"), ("--quantised", "per-token", "--plugin"), ("--quantised", "float")):
            of_target = ("--target", chip, "--cann", release, *[flag for flag in flags if flag == "--plugin"])
            run_ok("optimize", source, "-o", tmp_path / "o.onnx", *of_target, "--json", tmp_path / "r.json", *[flag for flag in flags if flag != "--plugin"])
            run_ok("check", tmp_path / "o.onnx", *of_target)
            sites = json.loads((tmp_path / "r.json").read_text())["sites"]
            assert Counter(site["kind"] for site in sites if site["kind"].startswith("quantised_")) == expected
            assert not [site for site in sites if site["code"] == "quantised-left"]
