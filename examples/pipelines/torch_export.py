"""Behind torch.onnx.export: an ONNXProgram goes in and comes out, and no file lies in between.

python torch_export.py out.onnx
"""

from __future__ import annotations

import sys

import torch

import ascend_fuse


class Block(torch.nn.Module):
    """A norm, an activation and a projection, as a decoder has them."""

    def __init__(self, width: int = 64) -> None:
        super().__init__()
        self.gain = torch.nn.Parameter(torch.ones(width))
        self.linear = torch.nn.Linear(width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        scale = torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6)
        return torch.nn.functional.mish(self.linear(self.gain * (x * scale)))


def main(path: str) -> None:
    dims = {"x": {0: torch.export.Dim("batch", max=64)}}
    program = torch.onnx.export(Block().eval(), (torch.randn(2, 8, 64),), dynamo=True, dynamic_shapes=dims, verbose=False)
    assert program is not None
    result = ascend_fuse.optimize(program, target="ascend910b", require=["rms_norm"])
    print(result.report.to_text())
    result.model.save(path)  # an ONNXProgram again


if __name__ == "__main__":
    main(sys.argv[1])
