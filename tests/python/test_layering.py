"""The picture of the folders holds: proto <- ir <- patterns <- passes <- tools, each includes itself and what is
left of it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
LAYERS = ("proto", "ir", "patterns", "passes", "tools")
# Inside ir: the format, the text and inference are built on the graph; they know each other only as written here.
INSIDE_IR = {"ir": {"ir"}, "ir/dim": {"ir", "ir/dim"}, "ir/onnx": {"ir", "ir/onnx"}, "ir/text": {"ir", "ir/text", "ir/onnx"},
             "ir/infer": {"ir", "ir/infer", "ir/onnx"}, "ir/eval": {"ir", "ir/eval"}}
# The only code that reads protobuf messages.
MAY_INCLUDE_PROTO = {"ir/schema.cc", "patterns/codes.cc", "patterns/operators/declarations.cc", "passes/report_json.cc"} | {
    f"patterns/target/{name}.cc" for name in ("compile", "conditions", "forms", "describe", "judge", "judge_limits", "load", "target")}
MAY_INCLUDE_ONNX = {"ir/onnx", "ir/text", "tools/backwards"}
# Writes models, not graphs, and nothing includes it but the command line: its headers show messages.
HEADERS_OF_MESSAGES = "tools/backwards"
# Reads the types that value_info declares from the file's bytes.
ONNX_EXCEPTIONS = {"ir/infer/declared.cc"}
# The graph keeps the file's bytes, and new nodes are encoded as they are made.
IR_EXCEPTIONS = {("ir/model.cc", "ir/onnx/model_file.h"), ("ir/rewriter.cc", "ir/onnx/encode.h")}

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


@pytest.mark.parametrize("path", [p for p in sources() if p.parts[0] == "ir"], ids=str)
def test_folders_of_ir(path: Path) -> None:
    allowed = INSIDE_IR[str(path.parent)]
    for include in includes(path):
        folder = include.rsplit("/", 1)[0]
        if folder in INSIDE_IR and (str(path), include) not in IR_EXCEPTIONS:
            assert folder in allowed, f"{path} includes {include}"
