#!/usr/bin/env python3
"""Quantised exports of the zoo: what the quantisers of ONNX Runtime make of its models.

    python3 tools/zoo/quantised.py [--out DIR]

writes DIR/<id>-<way>.onnx (default build/zoo-quantised) for every row of EXPORTS. Nothing of them is committed: the models come
from the zoo, their weights and the inputs of the calibration from seeds, and the quantisers from the pinned onnxruntime. How many
quantised products each has is counted in what the quantiser wrote.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnx

sys.path[:0] = [str(Path(__file__).resolve().parent), str(Path(__file__).resolve().parents[1] / "python")]
import fill  # noqa: E402
from ascend_fuse.inputs import make_inputs  # noqa: E402

# Ways to quantise. Static: form, type of activations, type of weights, spread of weights. Dynamic: type of weights, spread,
# range. In blocks: bits, length of a block, form (nbits is MatMulNBits, blocks are those of opset 21, gather takes tables too).
WAYS = ("QDQ-QInt8-QInt8-tensor", "QDQ-QUInt8-QInt8-channel", "QOperator-QUInt8-QInt8-tensor", "QDQ-QUInt8-QUInt8-channel",
        "dynamic-QUInt8-tensor-whole", "dynamic-QInt8-channel-reduced", "4-32-nbits", "8-32-nbits", "4-32-blocks", "4-32-gather")
ARCHITECTURES = (
    "bert-sdpa-ts17-dynamic", "llama-sdpa-nocache-ts17-dynamic", "vit-sdpa-ts17-dynamic", "gpt2-sdpa-nocache-ts17-dynamic",
    "qwen3-sdpa-nocache-ts17-dynamic", "roberta-sdpa-ts17-dynamic", "convnext-eager-ts17-dynamic", "gemma2-eager-nocache-ts17-dynamic",
    "opt-sdpa-nocache-ts17-dynamic", "whisper-encoder-sdpa-ts17-dynamic", "swin-sdpa-ts17-dynamic", "phi-sdpa-nocache-ts17-dynamic",
    "dinov2-sdpa-ts17-dynamic", "unet-sdpa-ts17-dynamic")
# Of forms of opset 21 the quantiser raises the opset without writing reductions anew: models with them become invalid.
RAISED = ("4-32-blocks", "4-32-gather")
WITH_REDUCTIONS = ("llama", "qwen3", "convnext", "gemma2", "phi")


def _exports() -> list[tuple[str, str]]:
    """Three ways for each architecture, so that each way meets several of them."""
    rows = []
    for i, model in enumerate(ARCHITECTURES):
        for j in range(3):
            way = WAYS[(3 * i + j * 4) % len(WAYS)]
            raised = way in RAISED and model.split("-")[0] in WITH_REDUCTIONS
            rows.append((model, "4-32-nbits" if raised else way))
    return sorted(set(rows))


EXPORTS = _exports()

LINEARS = {"MatMul", "Gemm", "QLinearMatMul", "QGemm", "MatMulInteger", "MatMulNBits", "DynamicQuantizeMatMul", "MatMulIntegerToFloat"}
CONVS = {"Conv", "ConvTranspose", "QLinearConv", "ConvInteger"}
PLAIN = {"MatMul", "Gemm", "Conv", "ConvTranspose"}  # quantised where their second input is dequantised


class _Calibration:
    """The inputs of a model under its bindings, twice."""

    def __init__(self, entry: dict[str, Any]) -> None:
        self.rest: Iterator[dict[str, np.ndarray]] = iter([make_inputs(entry, binding) for binding in entry["bindings"]])

    def get_next(self) -> dict[str, np.ndarray] | None:
        return next(self.rest, None)


def entry_of(model_id: str) -> dict[str, Any]:
    """The manifest's entry of a model."""
    return next(entry for entry in fill.load_manifest()["models"] if entry["id"] == model_id)


def _in_blocks(model: onnx.ModelProto, bits: int, block: int, form: str) -> onnx.ModelProto:
    from onnxruntime.quantization import QuantFormat
    from onnxruntime.quantization.matmul_nbits_quantizer import DefaultWeightOnlyQuantConfig, MatMulNBitsQuantizer

    gather = form == "gather"
    config = DefaultWeightOnlyQuantConfig(
        block_size=block, is_symmetric=form != "nbits", bits=bits, quant_format=QuantFormat.QDQ if form == "blocks" else QuantFormat.QOperator,
        op_types_to_quantize=("MatMul", "Gather") if gather else ("MatMul",), quant_axes=(("MatMul", 0), ("Gather", 1)) if gather else (("MatMul", 0),))
    quantiser = MatMulNBitsQuantizer(model, algo_config=config)
    quantiser.process()
    made: onnx.ModelProto = quantiser.model.model
    return made


def quantise(model_id: str, way: str, to: Path) -> onnx.ModelProto:
    """Writes the model quantised in a way of WAYS, and returns it."""
    from onnxruntime.quantization import CalibrationDataReader, QuantFormat, QuantType, quantize_dynamic, quantize_static

    first, second, third, *rest = way.split("-")
    model = fill.load_model(model_id)
    if first in ("4", "8"):
        onnx.save(_in_blocks(model, int(first), int(second), third), to)
        return onnx.load(to)
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "float.onnx"
        onnx.save(model, source)
        if first == "dynamic":
            quantize_dynamic(source, to, weight_type=QuantType[second], per_channel=third == "channel", reduce_range=rest[0] == "reduced")
        else:
            reader = type("Reader", (_Calibration, CalibrationDataReader), {})(entry_of(model_id))
            quantize_static(source, to, reader, quant_format=QuantFormat[first], activation_type=QuantType[second],
                            weight_type=QuantType[third], per_channel=rest[0] == "channel")
    return onnx.load(to)


def quantised_products(model: onnx.ModelProto) -> Counter[str]:
    """How many quantised linears and convolutions there are, by kind of site."""
    made = {name: node for node in model.graph.node for name in node.output}

    def dequantised(name: str) -> bool:
        node = made.get(name)
        while node is not None and node.op_type == "Transpose":
            node = made.get(node.input[0])
        return node is not None and node.op_type == "DequantizeLinear"

    found: Counter[str] = Counter()
    for node in model.graph.node:
        if node.op_type in LINEARS | CONVS and (node.op_type not in PLAIN or dequantised(node.input[1])):
            found["quantised_linear" if node.op_type in LINEARS else "quantised_conv"] += 1
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description="Quantise models of the zoo.")
    parser.add_argument("--out", type=Path, default=fill.REPOSITORY / "build" / "zoo-quantised")
    out = parser.parse_args().out
    out.mkdir(parents=True, exist_ok=True)
    for model_id, way in EXPORTS:
        model = quantise(model_id, way, out / f"{model_id}-{way}.onnx")
        print(f"{model_id}-{way}: {dict(quantised_products(model))}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
