#!/usr/bin/env python3
"""Small quantised exports by other quantisers than those of ONNX Runtime: torch's pt2e by torchao, and Neural Compressor.

    python3 tools/zoo/other_quantisers.py [--out DIR]

writes DIR/<way>.onnx.xz (default tests/zoo/quantisers) for every way below; tests/python/test_other_quantisers.py runs them. Needs
requirements-quantisers.txt. What gives no quantised operator is not among them: torchao's weights of int8 and int4 come out of
the exporter as floating-point numbers, and its int8 of activations by rows does not export (torch 2.13.0, torchao 0.18.0).
"""

from __future__ import annotations

import argparse
import lzma
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

OUT = Path(__file__).resolve().parents[2] / "tests" / "zoo" / "quantisers"


def _torch_model() -> Any:
    import torch

    class Model(torch.nn.Module):
        """Two convolutions and two linears."""

        def __init__(self) -> None:
            super().__init__()
            self.first, self.second = torch.nn.Conv2d(3, 32, 3, padding=1), torch.nn.Conv2d(32, 32, 3, padding=1)
            self.third, self.last = torch.nn.Linear(32, 48), torch.nn.Linear(48, 16)

        def forward(self, x: Any) -> Any:
            x = torch.relu(self.second(torch.relu(self.first(x)))).mean((2, 3))
            return self.last(torch.nn.functional.gelu(self.third(x)))

    torch.manual_seed(0)
    return Model().eval()


def _pt2e(kind: str, to: Path) -> None:
    import torch
    from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e

    if kind == "x86":
        from torchao.quantization.pt2e.quantizer.x86_inductor_quantizer import X86InductorQuantizer, get_default_x86_inductor_quantization_config

        quantizer = X86InductorQuantizer().set_global(get_default_x86_inductor_quantization_config())
    else:
        from torchao.testing.pt2e._xnnpack_quantizer import XNNPACKQuantizer, get_symmetric_quantization_config

        quantizer = XNNPACKQuantizer().set_global(get_symmetric_quantization_config(is_per_channel=kind == "channel"))
    given = (torch.randn(2, 3, 16, 16),)
    prepared = prepare_pt2e(torch.export.export(_torch_model(), given).module(), quantizer)
    for _ in range(3):
        prepared(torch.randn(2, 3, 16, 16))
    torch.onnx.export(convert_pt2e(prepared), given, str(to), dynamo=True, opset_version=18, verbose=False)


def _float_model() -> onnx.ModelProto:
    rng, node = np.random.default_rng(0), helper.make_node
    weights = {"w": rng.standard_normal((256, 96)) * 0.2, "w2": rng.standard_normal((96, 32)) * 0.2, "b": rng.standard_normal(32)}
    nodes = [node("MatMul", ["x", "w"], ["a"], name="fc1"), node("Relu", ["a"], ["r"], name="relu"),
             node("MatMul", ["r", "w2"], ["c"], name="fc2"), node("Add", ["c", "b"], ["y"], name="add")]
    graph = helper.make_graph(nodes, "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", 256])],
                              [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["batch", 32])],
                              [numpy_helper.from_array(value.astype(np.float32), name) for name, value in weights.items()])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def _neural_compressor(kind: str, to: Path) -> None:
    from onnx_neural_compressor.data_reader import CalibrationDataReader
    from onnx_neural_compressor.quantization import QuantFormat, config, matmul_nbits_quantizer, quantize

    class Reader(CalibrationDataReader):  # type: ignore[misc]
        """A few inputs."""

        def __init__(self) -> None:
            self.rewind()

        def get_next(self) -> dict[str, Any] | None:
            return next(self.rest, None)

        def rewind(self) -> None:
            self.rest = iter([{"x": np.random.default_rng(seed).standard_normal((4, 256)).astype(np.float32)} for seed in range(4)])

    source = to.with_name("float.onnx")
    onnx.save(_float_model(), source)
    if kind in ("QDQ", "QOperator"):
        quantize(source, to, config.StaticQuantConfig(calibration_data_reader=Reader(), quant_format=QuantFormat[kind]))
    elif kind == "dynamic":
        quantize(source, to, config.DynamicQuantConfig())
    else:
        ways = {"rtn": lambda: matmul_nbits_quantizer.RTNWeightOnlyQuantConfig(),
                "gptq": lambda: matmul_nbits_quantizer.GPTQWeightOnlyQuantConfig(calibration_data_reader=Reader()),
                "awq": lambda: matmul_nbits_quantizer.AWQWeightOnlyQuantConfig(calibration_data_reader=Reader())}
        quantizer = matmul_nbits_quantizer.MatMulNBitsQuantizer(onnx.load(source), algo_config=ways[kind]())
        quantizer.process()
        onnx.save(getattr(quantizer.model, "model", quantizer.model), to)


WAYS: dict[str, Callable[[Path], None]] = {
    **{name: lambda to, kind=kind: _pt2e(kind, to) for name, kind in (("pt2e-x86", "x86"), ("pt2e-xnn-tensor", "tensor"), ("pt2e-xnn-channel", "channel"))},
    **{name: lambda to, kind=kind: _neural_compressor(kind, to)
       for name, kind in (("inc-static-QDQ", "QDQ"), ("inc-static-QOperator", "QOperator"), ("inc-dynamic", "dynamic"), ("inc-rtn", "rtn"), ("inc-gptq", "gptq"), ("inc-awq", "awq"))}}


def main() -> int:
    parser = argparse.ArgumentParser(description="Quantise small models by other quantisers.")
    parser.add_argument("--out", type=Path, default=OUT)
    out = parser.parse_args().out
    out.mkdir(parents=True, exist_ok=True)
    for way, make in WAYS.items():
        with tempfile.TemporaryDirectory() as folder:
            to = Path(folder) / "m.onnx"
            make(to)
            model = onnx.load(to)
        for one in (model, model.graph, *model.graph.node, *model.graph.initializer, *model.graph.value_info, *model.graph.input, *model.graph.output):
            del one.metadata_props[:]
        (out / f"{way}.onnx.xz").write_bytes(lzma.compress(model.SerializeToString(), preset=9))
    return 0


if __name__ == "__main__":
    sys.exit(main())
