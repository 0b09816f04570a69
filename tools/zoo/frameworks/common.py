"""What the exporters of other frameworks share: inputs, counts, bindings, and how an export joins the zoo."""

from __future__ import annotations

import argparse
import fnmatch
import hashlib
import importlib.metadata
import inspect
import json
import lzma
import re
import sys
import traceback
import zlib
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE.parents[1] / "python")]
import fill  # noqa: E402
import manifest_file  # noqa: E402
import weights  # noqa: E402
from ascend_fuse.inputs import make_inputs  # noqa: E402

LAYERS = 2
HEAD_DIM = 64
VOCAB = 128
KINDS = (
    "rms_norm", "layer_norm", "group_norm", "gelu", "silu", "hard_swish", "mish", "glu", "linear_activation",
    "rotary", "attention",
)
SIZES = [{"batch": 2, "seq": 5}, {"batch": 1, "seq": 7}, {"batch": 3, "seq": 6}, {"batch": 2, "seq": 9}]
TOLERANCE = 1e-4
Entry = dict[str, Any]


@dataclass(frozen=True)
class Input:
    """A graph input: its shape in terms of batch and seq, and what its values mean."""

    name: str
    shape: tuple[Any, ...]
    meaning: str
    vocab: int | None = None


@dataclass(frozen=True)
class Built:
    """A module of a framework, its inputs, and how many sites its configuration makes."""

    module: Any
    inputs: list[Input]
    expected: dict[str, int]
    options: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Framework:
    """How a framework fills parameters, exports a module, and runs it."""

    models: dict[str, Callable[[], Built]]
    exporters: dict[str, int]  # name and opset
    fill: Callable[[Built], list[weights.Parameter]]
    export: Callable[[Built, int], onnx.ModelProto]
    run: Callable[[Built, dict[str, np.ndarray]], list[np.ndarray]]
    packages: tuple[str, ...]
    of_model: dict[str, tuple[str, ...]] = field(default_factory=dict)  # the exporters of a model; all that are not named have all


def counts(**given: int) -> dict[str, int]:
    """Returns a number for every kind."""
    assert set(given) <= set(KINDS), given
    return {kind: given.get(kind, 0) for kind in KINDS}


def bindings(inputs: list[Input]) -> list[Entry]:
    """Returns the bindings under which a model is run: shapes, padding and seed of each."""
    masked = any(i.meaning == "attention_mask" for i in inputs)
    symbols = {d for i in inputs for d in i.shape if isinstance(d, str)}
    result = []
    for seed, (sizes, padding) in enumerate(zip(SIZES, ("left", "none", "right", "left")), 1):
        padding = padding if masked else "none"
        name = f"b{sizes['batch']}" + (f"_s{sizes['seq']}" if "seq" in symbols else "")
        name += f"_{'no' if padding == 'none' else padding}_padding" if masked else f"_seed{seed}"
        shapes = {i.name: [sizes.get(d, d) for d in i.shape] for i in inputs}
        result.append({"name": name, "shapes": shapes, "padding": padding, "seed": seed})
    return result


def described(inputs: list[Input], model: onnx.ModelProto) -> list[Entry]:
    """Returns name, type, symbolic shape as in the graph, and meaning of every input, in the graph's order."""
    by_name = {i.name: i for i in inputs}
    initialized = {tensor.name for tensor in model.graph.initializer}
    given = [value for value in model.graph.input if value.name not in initialized]
    if len(inputs) == 1:  # The name is the exporter's.
        by_name = {given[0].name: inputs[0]}
    result = []
    for value in given:
        spec = by_name[value.name]
        tensor = value.type.tensor_type
        shape = [d.dim_param if d.HasField("dim_param") else d.dim_value for d in tensor.shape.dim]
        dtype = onnx.helper.tensor_dtype_to_np_dtype(tensor.elem_type).name
        more = {} if spec.vocab is None else {"vocab": spec.vocab}
        result.append({"name": value.name, "dtype": dtype, "shape": shape, "meaning": spec.meaning, **more})
    return result


def difference(framework: Framework, built: Built, model: onnx.ModelProto, entry: Entry) -> float:
    """Returns the largest difference between graph and module over all bindings, relative to an output's largest value."""
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, ["CPUExecutionProvider"])
    worst = 0.0
    for binding in entry["bindings"]:
        feeds = make_inputs(entry, binding)
        theirs = framework.run(built, feeds)
        ours = session.run(None, feeds)
        assert len(ours) == len(theirs), f"{len(ours)} outputs of {len(theirs)}"
        for one in theirs:
            # Outputs are met by their shape and their values: an exporter may order them by name.
            gaps = [float(np.abs(o - one).max() / np.abs(one).max()) for o in ours if o.shape == one.shape]
            worst = max(worst, min(gaps) if gaps else float("inf"))
    return worst


def digest(framework: Framework, name: str, exporter: str) -> str:
    """Returns a digest of what decides how an export looks."""
    parts = [
        name, exporter, framework.exporters[exporter], inspect.getsource(framework.models[name]),
        *(inspect.getsource(f) for f in (framework.fill, framework.export)),
        {package: importlib.metadata.version(package) for package in framework.packages}, Path(weights.__file__).read_text(),
    ]
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:16]


def put(framework: Framework, name: str, exporter: str, folder: Path | None) -> str:
    """Exports one model; returns what is said of it."""
    built = framework.models[name]()
    built.options["exporter"] = exporter
    parameters = framework.fill(built)
    model = framework.export(built, framework.exporters[exporter])
    drop_documents(model)
    entry = {
        "id": f"{name}-{exporter}" + ("" if exporter.endswith("-static") else "-dynamic"), "part": 3, "architecture": name, "transformers": "",
        "dtype": "float32", "attention": "", "mode": None, "expected": built.expected,
        "inputs": described(built.inputs, model), "bindings": [],
    }
    names = [i["name"] for i in entry["inputs"]] if len(built.inputs) == 1 else []
    entry["bindings"] = bindings([replace(i, name=name) for i, name in zip(built.inputs, names)] if names else built.inputs)
    entry |= manifest_file.of_id(entry["id"])
    entry["difference_to_torch"] = float(f"{difference(framework, built, model, entry):.1e}")
    assert entry["difference_to_torch"] < TOLERANCE, f"the graph differs from the module by {entry['difference_to_torch']}"
    entry["recipe"] = digest(framework, name, exporter)
    if folder is not None:
        folder.mkdir(parents=True, exist_ok=True)
        onnx.save(model, folder / f"{entry['id']}.onnx")
        (folder / f"{entry['id']}.json").write_text(json.dumps(entry))
        return f"{entry['id']}: {len(model.graph.node)} nodes, difference {entry['difference_to_torch']}"
    small = weights.strip(model, parameters)
    again = weights.restore(onnx.load_from_string(small.SerializeToString()))
    assert again.SerializeToString(deterministic=True) == model.SerializeToString(deterministic=True)
    path = fill.packed_path(entry["id"])
    packed = lzma.compress(small.SerializeToString(deterministic=True), preset=9 | lzma.PRESET_EXTREME)
    fill.replace_file(path, packed)
    join(entry)
    return f"{entry['id']}: {len(packed)} bytes, difference {entry['difference_to_torch']}"


def join(entry: Entry) -> None:
    """Puts an entry into the manifest."""
    manifest = manifest_file.load()
    others = [e for e in manifest["models"] if e["id"] != entry["id"]]
    place = next((i for i, e in enumerate(manifest["models"]) if e["id"] == entry["id"]), len(others))
    manifest["models"] = [*others[:place], entry, *others[place:]]
    fill.replace_file(manifest_file.PATH, manifest_file.render(manifest).encode())


def drop_documents(model: onnx.ModelProto) -> None:
    """Removes doc strings and stack traces, which name files of the exporting machine."""
    model.ClearField("doc_string")
    model.graph.ClearField("doc_string")
    for node in model.graph.node:
        node.ClearField("doc_string")
        kept = [p for p in node.metadata_props if "stack" not in p.key and "/" not in p.value[:1]]
        del node.metadata_props[:]
        node.metadata_props.extend(kept)


def reason_of(error: BaseException) -> str:
    """Returns the first line of an error, without paths of this machine."""
    text = re.sub(r"\x1b\[[0-9;]*m", "", str(error)).strip() or repr(error)
    return re.sub(r"/\S*/(site-packages/)?", "", f"{type(error).__name__}: {text.splitlines()[0]}")[:300]


def main(framework: Framework) -> int:
    parser = argparse.ArgumentParser(description="Exports small models of a framework into the zoo.")
    parser.add_argument("--only", nargs="*", default=["*"], help="shell patterns of names")
    parser.add_argument("--exporters", nargs="*", default=list(framework.exporters))
    parser.add_argument("--to", type=Path, help="a folder for whole models, instead of the zoo")
    arguments = parser.parse_args()
    failed = 0
    for name in framework.models:
        for exporter in arguments.exporters:
            if exporter not in framework.of_model.get(name, (exporter,)):
                continue
            if not any(fnmatch.fnmatchcase(name, p) for p in arguments.only):
                continue
            try:
                print(put(framework, name, exporter, arguments.to), flush=True)
            except Exception as error:  # An exporter may fail in any way.
                traceback.print_exc(file=sys.stderr)
                print(f"FAILED {name}-{exporter}: {reason_of(error)}", flush=True)
                failed += 1
    return 1 if failed else 0
