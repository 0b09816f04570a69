"""In a pipeline of onnx_ir passes: onnxscript's optimizer first, then ours.

python onnxscript_pass.py model.onnx out.onnx
"""

from __future__ import annotations

import sys

import onnx_ir
import onnxscript.optimizer

from ascend_fuse.ir_pass import OptimizePass


def main(source: str, path: str) -> None:
    model = onnx_ir.load(source)
    onnxscript.optimizer.optimize(model)
    fuse = OptimizePass(target="ascend910b", dims={"batch": (1, 8)})
    result = onnx_ir.passes.Sequential(fuse)(model)
    assert fuse.report is not None
    print(fuse.report.to_text())
    fuse.save(result.model, path)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
