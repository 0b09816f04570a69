"""Exports of other quantisers than ONNX Runtime's (tools/zoo/other_quantisers.py): torch's pt2e, Neural Compressor."""

from __future__ import annotations

import json
import lzma
from collections import Counter
from pathlib import Path

import numpy as np
import onnx
import pytest
import quantised
from quantised_models import feeds
from test_quantised import CHIPS, EXACT, KERNELS, compare, written

from ascend_fuse.session import plain_session

FOLDER = Path(__file__).resolve().parents[1] / "zoo" / "quantisers"
WAYS = sorted(path.name.split(".")[0] for path in FOLDER.glob("*.onnx.xz"))


def test_there_are_all() -> None:
    assert len(WAYS) == 9


@pytest.mark.parametrize("chip", CHIPS)
@pytest.mark.parametrize("way", WAYS)
def test_an_export(way: str, chip: str, tmp_path: Path) -> None:
    """Every product is a site, every linear is on a kernel where the chip has one, and the numbers are those of ONNX Runtime."""
    source = tmp_path / "m.onnx"
    source.write_bytes(lzma.decompress((FOLDER / f"{way}.onnx.xz").read_bytes()))
    model = onnx.load(source)
    for value in model.graph.input:
        for dim in value.type.tensor_type.shape.dim:
            dim.dim_value = dim.dim_value or 3
    given = feeds(model, np.random.default_rng(9))
    expected = quantised.quantised_products(model)
    assert expected.total() > 0
    for flags in (EXACT, ("--quantised", "fast")):
        made, report = written(source, tmp_path, *flags, chip=chip)
        sites = [site for site in json.loads((tmp_path / "report.json").read_text())["sites"] if site["kind"].startswith("quantised_")]
        assert Counter(site["kind"] for site in sites) == expected
        in_blocks = way.split("-")[-1] in ("rtn", "gptq", "awq")
        if chip in KERNELS and not (in_blocks and flags == EXACT):
            assert {site["state"] for site in sites if site["kind"] == "quantised_linear"} == {"fused"}
        if flags == EXACT:
            compare(source, made, given, 2e-6)
        else:
            plain, found = (plain_session(str(path)).run(None, given)[0] for path in (source, made))
            assert np.abs(found - plain).max() <= 0.03 * np.abs(plain).max()
