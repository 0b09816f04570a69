#!/usr/bin/env python3
"""Exports the models of torch_models.py by TorchScript or dynamo.

    python3 tools/zoo/frameworks/export_torch.py [--only PATTERN ...] [--to FOLDER]
"""

from __future__ import annotations

import io
import logging
import sys
import warnings
from pathlib import Path

import numpy as np
import onnx
import torch

sys.path.insert(0, str(Path(__file__).resolve().parent))
import common  # noqa: E402
import torch_models  # noqa: E402
import weights  # noqa: E402

TYPES = {"ids": torch.int64, "attention_mask": torch.int64, "position_ids": torch.int64}
TRACED = {"batch": 2, "seq": 6}


def fill(built: common.Built) -> list[weights.Parameter]:
    """Gives every trained parameter its seeded values."""
    described = []
    for name, tensor in built.module.named_parameters():
        if not tensor.requires_grad:
            continue
        shape = tuple(tensor.shape)
        parameter = weights.Parameter(name, shape, *distribution(name, shape))
        tensor.data.copy_(torch.from_numpy(weights.parameter_values(parameter, np.dtype("<f4"))))
        described.append(parameter)
    built.module.eval()
    return described


def distribution(name: str, shape: tuple[int, ...]) -> tuple[float, float]:
    """Returns mean and deviation: a gain is about 1, and no shift is 0."""
    if len(shape) < 2:
        return (0.0, 0.05) if name.endswith("bias") else (1.0, 0.1)
    return 0.0, float(1 / np.sqrt(max(1, np.prod(shape[1:]))))


def export(built: common.Built, opset: int) -> onnx.ModelProto:
    exporter = built.options["exporter"]
    logging.disable(logging.WARNING)
    warnings.filterwarnings("ignore")
    symbols = {i.name: {axis: d for axis, d in enumerate(i.shape) if isinstance(d, str)} for i in built.inputs}
    arguments = tuple(
        torch.zeros([TRACED.get(d, d) for d in i.shape], dtype=TYPES.get(i.meaning, torch.float32)) + (i.meaning in TYPES)
        for i in built.inputs)
    names = {"input_names": list(symbols), "output_names": ["out"], "opset_version": opset}
    dynamic = not exporter.endswith("static")
    with torch.no_grad():
        if exporter.startswith("dy"):
            shapes = tuple({axis: torch.export.Dim.DYNAMIC for axis in axes} for axes in symbols.values())
            shapes = (shapes,) if isinstance(built.module, torch_models.Flat) else shapes
            program = torch.onnx.export(
                built.module, arguments, dynamo=True, verbose=False, dynamic_shapes=shapes if dynamic else None, **names)
            return program.model_proto
        buffer = io.BytesIO()
        torch.onnx.export(built.module, arguments, buffer, dynamo=False, dynamic_axes=symbols if dynamic else None, **names)
        return onnx.load_from_string(buffer.getvalue())


def run(built: common.Built, feeds: dict[str, np.ndarray]) -> list[np.ndarray]:
    """The module's own outputs."""
    with torch.no_grad():
        return [built.module(*map(torch.from_numpy, feeds.values())).numpy()]


EXPORTERS = sorted({exporter for _, exporters in torch_models.MODELS.values() for exporter in exporters})
FRAMEWORK = common.Framework(
    {name: build for name, (build, _) in torch_models.MODELS.items()},
    {exporter: int(exporter[2:4]) for exporter in EXPORTERS}, fill, export, run,
    ("torch", "onnxscript", "transformers", "timm", "diffusers", "x-transformers", "vit-pytorch", "conformer", "einops"),
    {name: exporters for name, (_, exporters) in torch_models.MODELS.items()})

if __name__ == "__main__":
    sys.exit(common.main(FRAMEWORK))
