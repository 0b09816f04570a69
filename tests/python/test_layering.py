"""The picture of the folders holds: proto <- ir <- patterns <- passes <- tools, each includes itself and what is left of it.
Inside ir, patterns and passes the arrows are written down here, one way each; docs/architecture.md draws them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
LAYERS = ("proto", "ir", "patterns", "passes", "tools")
# Inside a layer: which other folders of it a folder may include. The files of the layer's own folder stand below all folders
# in ir and patterns (graphs, codes), and above all in passes (the front door).
INSIDE = {
    "ir": {"ir": set(), "ir/dim": {"ir"}, "ir/movement": {"ir"}, "ir/onnx": {"ir"}, "ir/text": {"ir", "ir/onnx"},
           "ir/infer": {"ir", "ir/onnx", "ir/movement"}},
    "patterns": {"patterns": set(), "patterns/terms": {"patterns"}, "patterns/operators": {"patterns"},
                 "patterns/analysis": {"patterns", "patterns/terms"},
                 "patterns/target": {"patterns", "patterns/operators"}, "patterns/cost": {"patterns", "patterns/operators"},
                 "patterns/functions": {"patterns", "patterns/terms", "patterns/analysis", "patterns/operators", "patterns/target"},
                 "patterns/language": {"patterns", "patterns/terms", "patterns/operators", "patterns/functions"}},
    "passes": {"passes/core": set(), "passes/recognise": {"passes/core"}, "passes/quantised": {"passes/core", "passes/legalise"}, "passes/layout": {"passes/core"},
               "passes/legalise": {"passes/core"}, "passes/tidy": {"passes/core", "passes/layout"}, "passes/lower": {"passes/core", "passes/layout", "passes/legalise"},
               "passes/check": {"passes/core"}, "passes/expand": {"passes/core", "passes/check"},
               "passes/report": {"passes/core", "passes/check"},
               "passes/analyze": {"passes/core", "passes/check", "passes/report"},
               "passes": {"passes/core", "passes/recognise", "passes/quantised", "passes/layout", "passes/legalise", "passes/tidy", "passes/lower", "passes/check",
                          "passes/expand", "passes/report", "passes/analyze"}},
}
# The only code that reads protobuf messages.
MAY_INCLUDE_PROTO = {"ir/schema.cc", "patterns/codes.cc", "patterns/operators/declarations.cc", "patterns/cost/costs.cc",
                     "passes/report/report_json.cc", "passes/analyze/analysis_json.cc", "passes/analyze/compare_reports.cc"} | {
    f"patterns/target/{name}.cc" for name in ("compile", "conditions", "forms", "describe", "judge", "judge_limits", "load", "target")}
MAY_INCLUDE_ONNX = {"ir/onnx", "ir/text", "tools/backwards"}
# Writes models, not graphs, and nothing includes it but the command line: its headers show messages.
HEADERS_OF_MESSAGES = "tools/backwards"
# Reads the types that value_info declares from the file's bytes.
ONNX_EXCEPTIONS = {"ir/infer/declared.cc"}
# The graph keeps the file's bytes, and new nodes are encoded as they are made.
IR_EXCEPTIONS = {("ir/model.cc", "ir/onnx/model_file.h"), ("ir/rewriter.cc", "ir/onnx/encode.h")}

# Makes or changes nodes and values; all others hold pointers to const (ir/graph.h).
MAY_CHANGE_GRAPHS = {"ir/graph.h", "ir/model.h", "ir/model.cc", "ir/rewriter.h", "ir/rewriter.cc", "ir/onnx/inline.cc", "ir/onnx/load.cc"}
CHANGES_GRAPHS = re.compile(r"\b(GraphBuilder|GraphKey)\b|const_cast<(ascend_fuse::)?(Node|Value|Graph|Use)\b")

INCLUDE = re.compile(r'^\s*#include\s+[<"]([^>"]+)[>"]', re.MULTILINE)


def sources() -> list[Path]:
    found = [path for layer in LAYERS for pattern in ("*.h", "*.cc") for path in (ROOT / layer).rglob(pattern)]
    assert len(found) > 40
    return sorted(path.relative_to(ROOT) for path in found)


def includes(path: Path) -> list[str]:
    return INCLUDE.findall((ROOT / path).read_text())


def layer_of(include: str) -> str | None:
    first = include.split("/")[0]
    return first if first in LAYERS and "/" in include else None


@pytest.mark.parametrize("path", sources(), ids=str)
def test_includes_point_left(path: Path) -> None:
    own = LAYERS.index(path.parts[0])
    for include in includes(path):
        layer = layer_of(include)
        if layer is not None:
            assert LAYERS.index(layer) <= own, f"{path} includes {include}"
        assert not include.startswith(("tests/", "bench/")), f"{path} includes {include}"
        assert not include.startswith("../"), f"{path}: includes are written from the top: {include}"


@pytest.mark.parametrize("path", [p for p in sources() if p.suffix == ".h"], ids=str)
def test_headers_need_no_generated_code(path: Path) -> None:
    if str(path.parent) == HEADERS_OF_MESSAGES and path.name != "run.h":
        return
    generated = [i for i in includes(path) if i.endswith(".pb.h") or i.startswith("google/protobuf/")]
    assert not generated, f"{path} includes {generated}"


@pytest.mark.parametrize("path", [p for p in sources() if p.suffix == ".cc"], ids=str)
def test_generated_code_is_included_where_it_is_declared(path: Path) -> None:
    folder = str(path.parent)
    for include in includes(path):
        if include.endswith("onnx.pb.h"):
            assert folder in MAY_INCLUDE_ONNX or str(path) in ONNX_EXCEPTIONS, f"{path} includes {include}"
        elif include.endswith(".pb.h"):
            assert str(path) in MAY_INCLUDE_PROTO, f"{path} includes {include}"


@pytest.mark.parametrize("path", [p for p in sources() if p.parts[0] in INSIDE], ids=str)
def test_folders_of_a_layer(path: Path) -> None:
    folders = INSIDE[path.parts[0]]
    own = str(path.parent)
    assert own in folders, f"{path}: say in INSIDE what the folder {own} may include"
    for include in includes(path):
        folder = include.rsplit("/", 1)[0]
        if folder in folders and folder != own and (str(path), include) not in IR_EXCEPTIONS:
            assert folder in folders[own], f"{path} includes {include}"


def test_graphs_change_in_the_rewriter_only() -> None:
    change = {str(path) for path in sources() if CHANGES_GRAPHS.search((ROOT / path).read_text())}
    assert change == MAY_CHANGE_GRAPHS


def test_arrows_go_one_way() -> None:
    for folders in INSIDE.values():
        done: set[str] = set()
        while len(done) < len(folders):
            free = [folder for folder in folders if folder not in done and folders[folder] <= done]
            assert free, f"a circle among {sorted(set(folders) - done)}"
            done.update(free)
