"""Every operator that the onnx and onnxruntime packages define in the domains we infer either has inference or
stands in docs/inference.md, in the list of those without, with a reason. So has every operator of patterns/operators.txtpb
that has a signature."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import onnx.defs

REPOSITORY = Path(__file__).resolve().parents[2]
TOOL = Path(os.environ.get("ASCEND_FUSE_BUILD", REPOSITORY / "build")) / "tests" / "infer_tool"
ROW = re.compile(r"^\| (?P<names>`[^|]+`) \| (?P<reason>[^|]+) \|$", re.MULTILINE)


def inferred() -> set[tuple[str, str]]:
    lines = subprocess.run([TOOL, "--operators"], capture_output=True, text=True, check=True).stdout.splitlines()
    return {tuple(line.split(" ")) for line in lines}  # type: ignore[misc]


def documented() -> set[str]:
    """Names in the table of docs/inference.md; com.microsoft unless it says otherwise."""
    text = (REPOSITORY / "docs" / "inference.md").read_text().split("## Operators without inference")[1]
    names: list[str] = []
    for row in ROW.finditer(text):
        assert len(row["reason"].split()) >= 3, f"no reason: {row[0]}"
        names += re.findall(r"`([^`]+)`", row["names"])
    assert len(names) == len(set(names))
    return set(names)


def test_every_version_of_every_standard_operator_has_inference():
    schemas = {(s.name, s.since_version) for s in onnx.defs.get_all_schemas_with_history() if s.domain == ""}
    assert len(schemas) > 500
    known = {name for domain, name in inferred() if domain == ""}
    assert sorted(s for s in schemas if s[0] not in known) == []


def test_every_operator_of_microsoft_has_inference_or_a_reason():
    from onnxruntime.capi import onnxruntime_pybind11_state

    names = {s.name for s in onnxruntime_pybind11_state.get_all_operator_schema() if s.domain == "com.microsoft"}
    assert len(names) > 100
    known = {name for domain, name in inferred() if domain == "com.microsoft"}
    without = documented()
    assert sorted(names - known - without) == [], "neither inferred nor documented"
    assert sorted(without & known) == [], "documented as unknown, and known"
    assert sorted(without - names) == [], "documented, and no operator"


def test_every_declared_operator_with_a_signature_has_inference():
    text = (REPOSITORY / "patterns" / "operators.txtpb").read_text()
    rows = re.split(r"^op \{", text, flags=re.MULTILINE)[1:]
    # Operators of ONNX stand there for the op plugin alone.
    rows = [row for row in rows if '  name: "ai.onnx.' not in row]
    declared = {re.search(r'^  name: "([\w.]+)"', row, re.MULTILINE)[1] for row in rows if "signature {" in row}  # type: ignore[index]
    assert len(declared) > 30
    known = {f"{domain}.{name}" for domain, name in inferred()}
    assert sorted(declared - known) == []
    assert sorted(name for name in known if name.startswith(("npu.", "ascend_fuse.")) and name not in declared) == []
    # Nodes are written without their domain too.
    assert sorted(name for name in declared if name.startswith("npu.") and name[3:] not in known) == []


def test_ir_knows_no_operator_of_our_own():
    for path in (REPOSITORY / "ir").rglob("*.cc"):
        assert not re.search(r'"npu"|"ascend_fuse"|"NPU[A-Z]', path.read_text()), path
