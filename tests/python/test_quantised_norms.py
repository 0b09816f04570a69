"""A sum, its norm and the codes of that in one node of the op plugin: the numbers are those of two nodes, and exports have them."""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path

import numpy as np
import onnx
import pipeline
import pytest
import quantised
from conftest import ROOT, run_ok
from quantised_models import Array
from test_quantised import written
from test_quantised_zoo import rms

from ascend_fuse.inputs import make_inputs
from ascend_fuse.session import plain_session

JOINED = {"NPUAddRmsNormQuant", "NPUAddRmsNormDynamicQuant"}
GOLDEN = ROOT / "tests" / "golden" / "plugin"


def ops(path: Path) -> list[str]:
    return [node.op_type for node in onnx.load(path).graph.node]


def results(case: str, folder: Path, flags: list[str], given: dict[str, Array]) -> tuple[list[str], list[Array]]:
    """The nodes and the numbers of a golden optimized with these flags."""
    folder.mkdir()
    made = pipeline.optimize(GOLDEN / f"{case}.onnxtxt", folder, {"run": flags}).targets["run"]
    return ops(made.optimized), list(plain_session(str(made.expanded)).run(None, given))


@pytest.mark.parametrize("case", ["norm_quantised_910b", "norm_quantised_310p", "norm_quantised_950_fast", "norm_quantised_chain", "norm_quantised_rows_910b"])
def test_one_node_computes_what_two_do(case: str, tmp_path: Path) -> None:
    """To the bit; the rows are not rounded to the type of the model before they are divided, which is float32 here."""
    rng, kind = np.random.default_rng(3), np.float32 if "chain" in case or "rows" in case else np.float16
    width = 32 if "chain" in case else 64
    given: dict[str, Array] = {name: rng.standard_normal((2, 3, width)).astype(kind) for name in "ab"}
    given["a"][0, 0] = -given["b"][0, 0]  # a row of zeros
    given["gamma"] = rng.standard_normal(width).astype(kind)
    found = re.search(r"# RUN: (.*)", (GOLDEN / f"{case}.onnxtxt").read_text())
    assert found is not None
    flags = found[1].split()
    one, joined = results(case, tmp_path / "one", flags, given)
    two, apart = results(case, tmp_path / "two", [*flags, "--skip=add_norm"], given)
    assert JOINED & set(one)
    assert not JOINED & set(two)
    for a, b in zip(joined, apart, strict=True):
        assert np.array_equal(a, b)


def llama(folder: Path, way: str) -> Path:
    """A decoder whose linears alone are quantised, as it is done for language models."""
    from onnxruntime.quantization import CalibrationDataReader, QuantFormat, QuantType, quantize_static

    model_id = "llama-sdpa-nocache-ts17-dynamic"
    onnx.save(quantised.fill.load_model(model_id), folder / "float.onnx")
    if way == "dynamic":
        quantised.quantise(model_id, "dynamic-QInt8-channel-reduced", folder / "m.onnx")
        return folder / "m.onnx"
    reader = type("Reader", (quantised._Calibration, CalibrationDataReader), {})(quantised.entry_of(model_id))
    quantize_static(folder / "float.onnx", folder / "m.onnx", reader, quant_format=QuantFormat.QDQ, activation_type=QuantType.QInt8,
                    weight_type=QuantType.QInt8, per_channel=True, op_types_to_quantize=["MatMul"], extra_options={"MatMulConstBOnly": True})
    return folder / "m.onnx"


@pytest.mark.parametrize(("way", "chip", "flags", "node"), [
    ("static", "ascend910b", (), "NPUAddRmsNormQuant"), ("static", "ascend310p", ("--quantised", "fast"), "NPUAddRmsNormQuant"),
    ("static", "ascend950", (), ""), ("static", "ascend950", ("--quantised", "fast"), "NPUAddRmsNormQuant"),
    ("static", "ascend310b", ("--quantised", "fast"), ""), ("dynamic", "ascend910b", (), ""),
    ("dynamic", "ascend910b", ("--quantised", "per-token"), "NPUAddRmsNormDynamicQuant"),
    ("dynamic", "ascend950", ("--quantised", "per-token"), "NPUAddRmsNormDynamicQuant"),
    ("dynamic", "ascend310p", ("--quantised", "per-token"), "")])
def test_a_decoder(way: str, chip: str, flags: tuple[str, ...], node: str, tmp_path: Path) -> None:
    """All sums but the first norm's, which has none, where there is a kernel. It is as far from the float model as the quantised one."""
    source = llama(tmp_path, way)
    expanded, report = written(source, tmp_path, "--plugin", *flags, chip=chip)
    found = Counter(ops(tmp_path / f"m.{chip}.onnx"))
    assert {name: found[name] for name in JOINED if found[name]} == ({node: 4} if node else {})
    sites = json.loads(json.dumps(report))["sites"]
    emitted = Counter(site.get("emitted_op", "") for site in sites if site["kind"] == "add_norm")
    assert not node or emitted == {f"npu.{node}": 4}
    entry = quantised.entry_of("llama-sdpa-nocache-ts17-dynamic")
    given = [make_inputs(entry, binding) for binding in entry["bindings"][:2]]
    numbers = [[list(plain_session(str(path)).run(None, feeds)) for path in (source, expanded, tmp_path / "float.onnx")] for feeds in given]
    own, far = (np.hypot.reduce([rms(result[i], result[2]) for result in numbers]) for i in (0, 1))
    assert far <= 1.25 * own


def test_without_the_plugin_there_are_two_nodes(tmp_path: Path) -> None:
    run_ok("optimize", llama(tmp_path, "static"), "-o", tmp_path / "o.onnx")
    assert not JOINED & set(ops(tmp_path / "o.onnx"))
    assert "NPUQuantize" in ops(tmp_path / "o.onnx")
