"""ascend_fuse: exported ONNX in, the same model with Ascend NPU nodes out, and a report.

    result = ascend_fuse.optimize("model.onnx", target="ascend910b")
    print(result.report.to_text())
    result.save("model.npu.onnx")

docs/python.md has the whole package. What is imported from here is loaded when it is first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ascend_fuse._core import version as __version__
    from ascend_fuse.analysis import Analysis
    from ascend_fuse.api import (
        Expanded,
        ModelLike,
        Result,
        analyze,
        chips,
        check,
        expand,
        explain,
        list_opportunities,
        optimize,
        precision,
        targets,
        verify,
    )
    from ascend_fuse.errors import (
        AscendFuseError,
        BrokenGraphError,
        CancelledError,
        InvalidError,
        NotFoundError,
        NotReadByAtc,
        RefusedError,
        RequirementNotMet,
        SystemFault,
    )
    from ascend_fuse.passes import Graph, Node, Pass, Rewriter, Value, stages
    from ascend_fuse.report import Finding, Report, Site

_HOME = {
    **dict.fromkeys(("Expanded", "ModelLike", "Result", "analyze", "chips", "check", "expand", "explain", "list_opportunities",
                     "optimize", "precision", "targets", "verify"), "api"),
    **dict.fromkeys(("AscendFuseError", "BrokenGraphError", "CancelledError", "InvalidError", "NotFoundError", "NotReadByAtc",
                     "RefusedError", "RequirementNotMet", "SystemFault"), "errors"),
    **dict.fromkeys(("Graph", "Node", "Pass", "Rewriter", "Value", "stages"), "passes"),
    **dict.fromkeys(("Finding", "Report", "Site"), "report"),
    "Analysis": "analysis",
}

__all__ = [
    "Analysis", "AscendFuseError", "BrokenGraphError", "CancelledError", "Expanded", "Finding", "Graph", "InvalidError", "ModelLike",
    "Node", "NotFoundError", "NotReadByAtc", "Pass", "RefusedError", "Report", "RequirementNotMet", "Result", "Rewriter", "Site",
    "SystemFault", "Value", "__version__", "analyze", "chips", "check", "expand", "explain", "list_opportunities", "optimize", "precision",
    "stages", "targets", "verify",
]


def __getattr__(name: str) -> object:
    import importlib

    if name == "__version__":
        return importlib.import_module("ascend_fuse._core").version
    if name not in _HOME:
        raise AttributeError(f"module 'ascend_fuse' has no attribute '{name}'")
    value = getattr(importlib.import_module(f"ascend_fuse.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
