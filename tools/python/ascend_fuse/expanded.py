"""Models on their way to ONNX Runtime: read, without NPU nodes (`ascend-fuse expand`), and as sessions."""

from __future__ import annotations

import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
from typing import Any

import onnx

from ascend_fuse.comparison import Result
from ascend_fuse.session import plain_session


class VerifyError(Exception):
    """Something that keeps the comparison from being made; a sentence."""


class CannotLoad(VerifyError):
    """ONNX Runtime does not take a model; a sentence."""


class RefusedByAtc(Exception):
    """ATC would not compile the model, or what it would compute is not known; a sentence."""


def first_line(error) -> str:
    return str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__


def read_graph(path: pathlib.Path):
    try:
        return onnx.load(str(path), load_external_data=False)
    except FileNotFoundError:
        raise VerifyError(f"{path} does not exist") from None
    except Exception as error:
        raise VerifyError(f"{path} cannot be read as an ONNX model: {error}") from None


def _is_npu(node) -> bool:
    return node.domain == "npu" or node.op_type.startswith("NPU")


def npu_nodes(graph) -> int:
    count = 0
    for node in graph.node:
        count += _is_npu(node)
        for attribute in node.attribute:
            if attribute.HasField("g"):
                count += npu_nodes(attribute.g)
    return count


def has_external_data(model) -> bool:
    return any(t.data_location == onnx.TensorProto.EXTERNAL for t in model.graph.initializer)


def find_tool(tool: Any = None) -> str | None:
    """Returns the ascend-fuse program: the one that is named, the one of this Python environment, or the one in PATH."""
    beside = pathlib.Path(sys.executable).parent / "ascend-fuse"
    return str(tool) if tool else str(beside) if beside.is_file() else shutil.which("ascend-fuse")


class Expanded:
    """The path of the optimized model without NPU nodes; temporary files are removed again."""

    def __init__(self, path: pathlib.Path, model, tool, result: Result, rules=(), dims=(), as_atc=None):
        self.path, self.model, self.tool, self.result = path, model, tool, result
        self.flags = [word for rule in rules for word in ("--rules", str(rule))]
        self.flags += [word for dim in dims for word in ("--dim", dim)]
        self.as_atc = as_atc is not None
        if self.as_atc:
            self.flags += ["--as-atc", *as_atc]
        self.folder: str | None = None
        self.file: pathlib.Path | None = None

    def __enter__(self) -> pathlib.Path:
        count = npu_nodes(self.model.graph)
        if count == 0 and not self.as_atc:
            self.result.notes.append("the optimized model has no NPU nodes: it ran as it is")
            return self.path
        self._expand(count)
        left = npu_nodes(read_graph(self.file).graph)
        if left:
            self.__exit__()
            raise VerifyError(f"ascend-fuse expand left {left} NPU nodes in the model")
        self.result.notes.append(f"{count} NPU nodes were expanded to standard operators")
        if self.as_atc:
            self.result.notes.append("the optimized model ran as ATC reads it")
        return self.file

    def _expand(self, count: int) -> None:
        tool = find_tool(self.tool)
        if tool is None:
            raise VerifyError(
                f"{self.path} has {count} NPU nodes; --tool must name the ascend-fuse program that expands"
                " them"
            )
        if has_external_data(self.model):  # found beside the model only
            self.file = self.path.with_name(f"{self.path.stem}.expanded-{os.getpid()}-{id(self)}.onnx")
        else:
            self.folder = tempfile.mkdtemp(prefix="ascend-fuse-")
            self.file = pathlib.Path(self.folder) / "expanded.onnx"
        try:
            run = subprocess.run(
                [str(tool), "expand", str(self.path), "-o", str(self.file), "--quiet", *self.flags],
                capture_output=True,
                text=True,
                check=False,
            )
        except OSError as error:
            self.__exit__()
            raise VerifyError(f"{tool} cannot be started: {error}") from None
        if self.as_atc and run.returncode == 3:
            self.__exit__()
            raise RefusedByAtc(re.sub(r"^ascend-fuse: ", "", run.stderr.strip()))
        if run.returncode != 0 or not self.file.exists():
            self.__exit__()
            raise VerifyError(
                f"{tool} expand failed with exit code {run.returncode}:"
                f" {run.stderr.strip() or run.stdout.strip()}"
            )

    def __exit__(self, *_):
        if self.file is not None:
            self.file.unlink(missing_ok=True)
        if self.folder is not None:
            shutil.rmtree(self.folder, ignore_errors=True)


class Inlined(Expanded):
    """The path of the original without calls of local functions: its inner values are those of the optimized model."""

    def __init__(self, path: pathlib.Path, model, tool, result: Result, wanted: bool):
        super().__init__(path, model, tool, result)
        self.wanted = wanted and len(model.functions) > 0

    def __enter__(self) -> pathlib.Path:
        if not self.wanted:
            return self.path
        self._expand(0)
        return self.file


def open_session(path, what: str):
    try:
        return plain_session(path)
    except Exception as error:
        raise CannotLoad(f"ONNX Runtime cannot load {what}: {error}") from None


def session_of_model(model, beside, what: str):
    """A session of a model in memory; external data is looked for in the folder of `beside`."""
    if not has_external_data(model):
        return open_session(model.SerializeToString(), what)
    path = pathlib.Path(beside).with_name(f"{pathlib.Path(beside).stem}.regions-{os.getpid()}.onnx")
    try:
        path.write_bytes(model.SerializeToString())
        return open_session(path, what)
    finally:
        path.unlink(missing_ok=True)
