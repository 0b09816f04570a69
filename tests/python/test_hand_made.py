"""Models made by hand (hand_made.py): on every chip, stock and with the plugin, in float32 and float16, the result computes what the
original does, as ONNX defines it and as that ATC reads it."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import numpy as np
import pytest
from hand_made import MODELS, SIZES, Maker, make

sys.path.insert(0, str(Path(os.environ.get("ASCEND_FUSE_BUILD", Path(__file__).resolve().parents[2] / "build")) / "python"))

import ascend_fuse  # noqa: E402
from ascend_fuse.session import plain_session  # noqa: E402

CHIPS = ("ascend310b", "ascend310p", "ascend910", "ascend910b", "ascend910_93", "ascend950")
# Of the largest number: where kernels round, and where they do not.
BOUNDS = {np.float32: 1e-4, np.float16: 1e-2}
# With one key, one of two masks that are opposites keeps none.
NOT_OF_ONE_KEY = {"one_mask_both_ways"}
# What the report says is don't-care: the first queries, which see no key.
NO_KEY = {"causal_without_itself": 1}
# Models whose numbers lose more than others in float16.
ROUGH = {"layer_norm_of_large_numbers": 3e-2}


def run(model: bytes, feeds: dict[str, np.ndarray]) -> list[np.ndarray]:
    return [np.asarray(y) for y in plain_session(model, threads=1).run(None, feeds)]


def difference(found: np.ndarray, expected: np.ndarray, bound: float) -> str:
    if found.shape != expected.shape or found.dtype != expected.dtype:
        return f"{expected.dtype}{list(expected.shape)} became {found.dtype}{list(found.shape)}"
    a, b = found.astype(np.float64), expected.astype(np.float64)
    if not np.array_equal(np.isfinite(a), np.isfinite(b)):
        return "NaN or infinity in other places"
    finite = np.isfinite(b)
    far = float(np.max(np.abs(a - b)[finite], initial=0))
    most = float(np.max(np.abs(b)[finite], initial=1e-6))
    return f"{far:.3g} away, of {most:.3g}" if far > bound * most else ""


def wrong(name: str, dtype: type, targets: list[tuple[str, bool]]) -> list[str]:
    maker: Maker = make(name, dtype)
    model = maker.model().SerializeToString()
    fed = []
    bound = max(BOUNDS[dtype], ROUGH.get(name, 0) if dtype == np.float16 else 0)
    for sizes in SIZES[:1] if name in NOT_OF_ONE_KEY else SIZES:
        feeds = maker.feeds(sizes)
        fed.append((feeds, run(model, feeds)))
    found: list[str] = []
    compared: set[bytes] = set()
    for target, plugin in targets:
        result = ascend_fuse.optimize(model, target=target, plugin=plugin, force=True).to_bytes()
        again = ascend_fuse.optimize(result, target=target, plugin=plugin, force=True).to_bytes()
        if again != result:
            found.append(f"{target} {plugin}: a second run changes it")
        for as_atc in (False, True):
            try:
                expanded = ascend_fuse.expand(result, as_atc=as_atc, target=target, plugin=plugin).to_bytes()
            except ascend_fuse.AscendFuseError as error:
                if not as_atc:
                    found.append(f"{target} {plugin}: {error}")
                continue  # ATC refuses a node of the original, and optimize says so
            if expanded in compared:
                continue
            compared.add(expanded)
            for feeds, expected in fed:
                for number, (y, z) in enumerate(zip(run(expanded, feeds), expected, strict=True)):
                    skip = NO_KEY.get(name, 0)
                    why = difference(y[:, skip:], z[:, skip:], bound) if skip else difference(y, z, bound)
                    if why:
                        found.append(f"{target} {plugin} as_atc={as_atc}: output {number}: {why}")
    return found


@pytest.mark.parametrize("name", MODELS)
def test_numbers(name: str) -> None:
    faults = wrong(name, np.float32, [(chip, plugin) for chip in CHIPS for plugin in (False, True)])
    assert not faults, "\n".join(faults)


@pytest.mark.slow
@pytest.mark.parametrize("name", MODELS)
def test_numbers_in_half(name: str) -> None:
    faults = wrong(name, np.float16, [(chip, plugin) for chip in CHIPS for plugin in (False, True)])
    assert not faults, "\n".join(faults)
