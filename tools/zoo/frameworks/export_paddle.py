#!/usr/bin/env python3
"""Exports the models of paddle_models.py by paddle2onnx.

    python3 tools/zoo/frameworks/export_paddle.py [--only PATTERN ...] [--to FOLDER]
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import numpy as np
import onnx
import paddle

sys.path.insert(0, str(Path(__file__).resolve().parent))
import common  # noqa: E402
import paddle_models  # noqa: E402
import weights  # noqa: E402

OPSETS = {"pd17": 17, "pd13": 13}


def fill(built: common.Built) -> list[weights.Parameter]:
    """Gives every trainable parameter its seeded values."""
    described = []
    for name, tensor in built.module.named_parameters():
        if tensor.stop_gradient:
            continue
        shape = tuple(tensor.shape)
        parameter = weights.Parameter(name, shape, *distribution(name, shape))
        tensor.set_value(weights.parameter_values(parameter, np.dtype("<f4")))
        described.append(parameter)
    built.module.eval()
    return described


def distribution(name: str, shape: tuple[int, ...]) -> tuple[float, float]:
    """Returns mean and deviation: a gain is about 1, and no shift is 0."""
    if name.endswith("bias"):
        return 0.0, 0.05
    if "norm" in name:
        return 1.0, 0.1
    if "embedding" in name or "table" in name:
        return 0.0, 0.5
    return 0.0, float(1 / np.sqrt(shape[0] if len(shape) == 2 else np.prod(shape[1:])))


def export(built: common.Built, opset: int) -> onnx.ModelProto:
    kinds = {"ids": "int64"}
    specs = [paddle.static.InputSpec([None if isinstance(d, str) else d for d in i.shape], kinds.get(i.meaning, "float32"), i.name)
             for i in built.inputs]
    with tempfile.TemporaryDirectory() as folder:
        paddle.onnx.export(built.module, f"{folder}/m", input_spec=specs, opset_version=opset)
        return onnx.load(f"{folder}/m.onnx")


def run(built: common.Built, feeds: dict[str, np.ndarray]) -> list[np.ndarray]:
    """The module's own outputs."""
    with paddle.no_grad():
        result = built.module(*(paddle.to_tensor(a) for a in feeds.values()))
    return [t.numpy() for t in (result if isinstance(result, (list, tuple)) else [result])]


FRAMEWORK = common.Framework(paddle_models.MODELS, OPSETS, fill, export, run, ("paddlepaddle", "paddle2onnx"))

if __name__ == "__main__":
    sys.exit(common.main(FRAMEWORK))
