"""ascend-fuse as a pass of onnx_ir, for pipelines of onnxscript and onnx_ir:

    onnx_ir.passes.Sequential(onnxscript.optimizer..., OptimizePass(target="ascend910b"))(model)
"""

from __future__ import annotations

from typing import Any

import onnx_ir

from ascend_fuse import api
from ascend_fuse.report import Report


class OptimizePass(onnx_ir.passes.FunctionalPass):
    """`ascend_fuse.optimize` with these options. The model that is given stays as it is; `report` is that of the last call."""

    def __init__(self, **options: Any) -> None:
        super().__init__()
        self.options = options
        self.report: Report | None = None

    def call(self, model: onnx_ir.Model) -> onnx_ir.passes.PassResult:
        """Returns the optimized model, and whether it is another one."""
        data, folder, again = api.from_ir(model, self.options.get("base_dir"))
        result = api.optimize(data, **{**self.options, "base_dir": folder})
        self.report = result.report
        optimized = result.to_bytes()
        return onnx_ir.passes.PassResult(again(optimized), modified=optimized != data)
