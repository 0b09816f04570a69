"""ascend-fuse as a pass of onnx_ir, for pipelines of onnxscript and onnx_ir:

    fuse = OptimizePass(target="ascend910b")
    result = onnx_ir.passes.Sequential(onnxscript.optimizer..., fuse)(model)
    fuse.save(result.model, "m.npu.onnx")
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import onnx
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

    def save(self, model: onnx_ir.Model, path: str | os.PathLike[str], **options: Any) -> None:
        """onnx_ir.save of what this pass gave, with its options, spelled as ATC of the target reads it.

        onnx_ir has one name for ONNX's own domain, the empty one. ATC up to CANN 9.2 refuses nodes of that beside a second
        import, and reads `ai.onnx`: where the report says style X, that is what is written. The file appears whole or not at
        all.
        """
        path = Path(path)
        with tempfile.NamedTemporaryFile(dir=path.parent, prefix=f".{path.name}.", suffix=".onnx", delete=False) as file:
            temporary = Path(file.name)
        try:
            onnx_ir.save(model, temporary, **options)
            if self.report is not None and self.report.target.style == "X":
                proto = onnx.load(str(temporary), load_external_data=False)
                spell_default_domain(proto)
                onnx.save(proto, str(temporary))
            temporary.chmod(0o666 & ~_umask())
            temporary.replace(path)
        finally:
            temporary.unlink(missing_ok=True)


def spell_default_domain(model: onnx.ModelProto) -> None:
    """Writes ONNX's own domain as `ai.onnx`, in imports and in all nodes, those of bodies and functions too."""
    parts = [model, *model.functions]
    for part in parts:
        for opset in part.opset_import:
            opset.domain = opset.domain or "ai.onnx"
    _spell([model.graph.node, *(function.node for function in model.functions)])


def _spell(lists: Iterable[Iterable[onnx.NodeProto]]) -> None:
    for nodes in lists:
        for node in nodes:
            node.domain = node.domain or "ai.onnx"
            for attribute in node.attribute:
                _spell(graph.node for graph in ([attribute.g] if attribute.HasField("g") else attribute.graphs))


def _umask() -> int:
    now = os.umask(0)
    os.umask(now)
    return now
