"""The smallest part of a model that still shows a fault, for a report or a test.

    ascend-fuse reduce model.onnx --check 'ascend-fuse optimize {} -o /tmp/o.onnx' -o small.onnx

The command is run for every smaller model that is tried, with its path in place of {} (or at the end), and ends with 0
where the fault is there; 'sh -c "! ..."' turns that round. What is kept is a set of nodes: what they read from others
becomes an input, what others read of them an output (delta debugging: Zeller and Hildebrandt, IEEE Transactions on
Software Engineering 28(2), 2002). Weights of other nodes go.

Exit codes: 0 the small model was written, 1 an error, 3 the whole model does not show the fault.
"""

from __future__ import annotations

import argparse
import contextlib
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

# What is missing is said here, as verification does.
try:
    import onnx

    from ascend_fuse.progress import WORDS, ProgressLine
    from ascend_fuse.regions import reads_of
except ImportError as error:  # pragma: no cover
    if __name__ != "__main__":
        raise
    print(f"ascend-fuse: reduce needs the Python packages numpy and onnx: {error}. Install them with: python3 -m pip install onnx",
          file=sys.stderr)
    sys.exit(1)

_EXIT_NO_FAULT = 3


class Reducer:
    """The parts of one model: those nodes of its main graph that are to be kept, by number."""

    def __init__(self, model: Any):
        self.model = model
        self._nodes = list(model.graph.node)
        # What shape inference cannot tell is left without a type: such a value is not an input of a part.
        inferred = model
        with contextlib.suppress(Exception):
            inferred = onnx.shape_inference.infer_shapes(model, data_prop=True)
        graph = inferred.graph
        self._types = {value.name: value for value in [*graph.value_info, *graph.input, *graph.output]}
        self._initializers = {tensor.name: tensor for tensor in model.graph.initializer}
        self._outputs = {value.name for value in model.graph.output}
        self._readers: dict[str, set[int]] = {}
        for number, node in enumerate(self._nodes):
            for name in reads_of(node):
                self._readers.setdefault(name, set()).add(number)

    def __len__(self) -> int:
        return len(self._nodes)

    def part(self, kept: list[int]) -> Any | None:
        """Returns the model of these nodes, or None where a value that would be an input has no known type."""
        inside = set(kept)
        result = onnx.ModelProto()
        for field in ("ir_version", "producer_name", "producer_version", "domain", "model_version"):
            setattr(result, field, getattr(self.model, field))
        result.opset_import.extend(self.model.opset_import)
        result.functions.extend(self.model.functions)
        result.graph.name = self.model.graph.name
        made: set[str] = set()
        needed: set[str] = set()
        for number in kept:
            node = self._nodes[number]
            for name in reads_of(node):
                if name in made or name in needed:
                    continue
                needed.add(name)
                if name in self._initializers:
                    result.graph.initializer.append(self._initializers[name])
                elif name in self._types and self._types[name].type.WhichOneof("value") is not None:
                    result.graph.input.append(self._types[name])
                else:
                    return None
            made.update(node.output)
            result.graph.node.append(node)
            for name in node.output:
                readers = self._readers.get(name, set())
                if name and (name in self._outputs or not readers or not readers <= inside):
                    result.graph.output.append(self._types.get(name, onnx.ValueInfoProto(name=name)))
        return result


def smallest(count: int, is_faulty: Callable[[list[int]], bool]) -> list[int]:
    """Returns numbers out of range(count) none of which can go, if all of them together are faulty (ddmin)."""
    kept = list(range(count))
    chunks = 2
    while len(kept) > 1:
        size = -(-len(kept) // chunks)
        for start in range(0, len(kept), size):
            rest = kept[:start] + kept[start + size :]
            # Halves first: what remains is most often one place.
            if chunks == 2 and is_faulty(kept[start : start + size]):
                kept, chunks = kept[start : start + size], 2
                break
            if rest and is_faulty(rest):
                kept, chunks = rest, max(chunks - 1, 2)
                break
        else:
            if size == 1:
                break
            chunks = min(len(kept), chunks * 2)
    return kept


def reduce(model: Any, is_faulty: Callable[[Any], bool], say: Callable[[str], None] = lambda _: None) -> Any | None:
    """Returns the smallest part of an onnx.ModelProto that is_faulty, or None where the whole model is not."""
    reducer = Reducer(model)
    known: dict[tuple[int, ...], bool] = {}

    def check(kept: list[int]) -> bool:
        key = tuple(kept)
        if key not in known:
            part = reducer.part(kept)
            known[key] = part is not None and is_faulty(part)
            if known[key]:
                say(f"{len(kept)} of {len(reducer)} nodes show the fault")
        return known[key]

    if not check(list(range(len(reducer)))):
        return None
    return reducer.part(smallest(len(reducer), check))


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="ascend-fuse reduce", description=__doc__.splitlines()[0])
    parser.add_argument("model", type=Path)
    parser.add_argument("--check", required=True, help="the command; {} stands for the model, and 0 means that the fault is there")
    parser.add_argument("-o", "--output", type=Path, help="default: <model>.small.onnx")
    parser.add_argument("--timeout", type=float, default=300, help="seconds for one run of the command; a longer run does not count as the fault")
    parser.add_argument("--quiet", action="store_true")
    parser.add_argument("--progress", choices=WORDS, default="auto")
    flags = parser.parse_args(arguments)
    output = flags.output or flags.model.with_suffix(".small.onnx")
    try:
        model = onnx.load(str(flags.model))
    except Exception as error:  # of protobuf, onnx and the file system
        print(f"ascend-fuse: {flags.model} cannot be read: {error}", file=sys.stderr)
        return 1
    words = shlex.split(flags.check)
    with tempfile.TemporaryDirectory(prefix="ascend-fuse-reduce-") as folder:
        path = Path(folder) / "part.onnx"

        def is_faulty(part: Any) -> bool:
            onnx.save(part, str(path))
            command = [word.replace("{}", str(path)) for word in words]
            if command == words:
                command.append(str(path))
            try:
                done = subprocess.run(command, capture_output=True, timeout=flags.timeout, check=False)
            except subprocess.TimeoutExpired:
                return False
            return done.returncode == 0

        try:
            with ProgressLine("none" if flags.quiet else flags.progress) as line:
                small = reduce(model, is_faulty, lambda text: line.tell(text))
        except OSError as error:
            print(f"ascend-fuse: the command of --check cannot be run: {error}", file=sys.stderr)
            return 1
    if small is None:
        print("ascend-fuse: the command of --check does not end with 0 for the whole model", file=sys.stderr)
        return _EXIT_NO_FAULT
    onnx.save(small, str(output))
    if not flags.quiet:
        print(f"wrote {output}: {len(small.graph.node)} of {len(model.graph.node)} nodes")
    return 0


if __name__ == "__main__":
    sys.exit(main())
