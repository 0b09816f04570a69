#!/usr/bin/env python3
"""Exports the zoo: small configurations of real architectures, by several exporters.

    python3 tools/zoo/export.py [--only PATTERN ...] [--force] [--jobs N]

writes tests/zoo/models/<id>.onnx.xz and updates tests/zoo/manifest.json. It exports those of
`variants.py` that belong to the installed version of transformers; `export.sh` runs it once for each
version. What was exported with the same recipe (configuration, code, packages) is not done again.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import fnmatch
import gc
import hashlib
import importlib.metadata
import inspect
import io
import json
import logging
import lzma
import multiprocessing
import re
import sys
import tempfile
import traceback
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import torch
import transformers

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "python")]
import weights  # noqa: E402
import architectures as part1  # noqa: E402
import manifest_file  # noqa: E402
import more_architectures  # noqa: E402
from architectures import Architecture, Input  # noqa: E402
from ascend_fuse.inputs import make_inputs  # noqa: E402
from ascend_fuse.session import plain_session  # noqa: E402
from check import blind_rows  # noqa: E402
from fill import ZOO, load_model, packed_path, replace_file  # noqa: E402
from variants import EXPORTERS, OPTIMIZER_TYPES, Variant, variants  # noqa: E402

ARCHITECTURES = part1.ARCHITECTURES | more_architectures.ARCHITECTURES
TOLERANCES = {"float32": 1e-4, "float16": 2e-2}
TORCH_DTYPES = {"float32": torch.float32, "float16": torch.float16}
TOOLS = {None: [], "ortopt": ["onnxruntime"], "onnxsim": ["onnxsim"], "onnxslim": ["onnxslim"]}
FUNCTIONS = ("fill_parameters", "distribution", "run_exporter", "dynamic_shapes", "put_through", "drop_stack_traces")


def module_class(architecture: str, mode: str) -> type:
    """Returns the module to export, of either part."""
    return (more_architectures if architecture in more_architectures.ARCHITECTURES else part1).module_class(architecture, mode)


# ---- Weights -------------------------------------------------------------------------------------


def fill_parameters(module: torch.nn.Module) -> list[weights.Parameter]:
    """Gives every trainable parameter its seeded values and returns their descriptions.

    Parameters that are not trained (Whisper's sinusoids) keep the values of the module.
    """
    owners = {id(p): m for m in module.modules() for p in m._parameters.values() if p is not None}
    described = []
    for name, tensor in module.named_parameters():
        if not tensor.requires_grad:
            continue
        mean, std = distribution(name, tuple(tensor.shape), type(owners[id(tensor)]).__name__)
        parameter = weights.Parameter(name, tuple(tensor.shape), mean, std)
        values = weights.parameter_values(parameter, np.dtype("<f4"))
        tensor.data.copy_(torch.from_numpy(values))
        described.append(parameter)
    return described


def distribution(name: str, shape: tuple[int, ...], owner: str) -> tuple[float, float]:
    """Returns mean and deviation of a parameter: as after training, so that nothing is neutral.

    A norm's weight is about 1 and its bias is not zero, so that a fusion that loses one is seen.
    """
    if "Norm" in owner:
        offset_from_one = owner.startswith("Gemma")
        return (1.0, 0.1) if name.endswith("weight") and not offset_from_one else (0.0, 0.1)
    if name.endswith("bias"):
        return 0.0, 0.05
    if owner in ("Linear", "Conv1d", "Conv2d", "Conv1D") or name.endswith("in_proj_weight"):
        fan_in = shape[0] if owner == "Conv1D" else int(np.prod(shape[1:]))
        # T5 does not scale its scores: its initialisation puts the factor into the query weight.
        unscaled = 1 / 64 if name.endswith(("SelfAttention.q.weight", "EncDecAttention.q.weight")) else 1.0
        return 0.0, float(np.sqrt(unscaled / fan_in))
    return 0.0, 0.5


# ---- Bindings ------------------------------------------------------------------------------------


def known_sizes(sizes: dict[str, int]) -> dict[str, int]:
    """Returns the values of all symbols; the source of cross attention is as long as a past or one longer."""
    seq, past = sizes["seq"], sizes["past"]
    return {**sizes, "total": seq + past, "source": past, "states": past + 1, "height": 2 * seq}


def concrete(inputs: list[Input], sizes: dict[str, int]) -> dict[str, list[int]]:
    """Returns the shape of every input for the given values of batch, seq and past."""
    known = known_sizes(sizes)
    return {i.name: [known.get(d, d) for d in i.shape] for i in inputs}


def bindings(variant: Variant, architecture: Architecture, inputs: list[Input]) -> list[dict[str, Any]]:
    """Returns the bindings under which the model is run: shapes, padding and seed of each."""
    symbols = {d for i in inputs for d in i.shape if isinstance(d, str)}
    masked = any(i.meaning == "attention_mask" for i in inputs)
    paddings = ("none", "left", "right") if masked else ("none",) * 3
    if variant.dims == "static":
        choices = [(sizes_of(variant, architecture), p) for p in paddings]
    else:
        sizes = [(2, 5, 7), (2, 4, 9), (1, 3, 8), (3, 6, 4)]
        padded = paddings[1:2] + paddings[:1] + paddings[2:] + paddings[1:2]
        choices = [
            ({"batch": b, "seq": 1 if variant.mode == "decode" else s, "past": p}, padding)
            for (b, s, p), padding in zip(sizes, padded)
        ]
    result = []
    for seed, (values, padding) in enumerate(choices, 1):
        name = f"b{values['batch']}"
        name += f"_s{values['seq']}" if symbols & {"seq", "total", "height"} else ""
        name += f"_p{values['past']}" if "past" in symbols else ""
        name += f"_{'no' if padding == 'none' else padding}_padding" if masked else f"_seed{seed}"
        result.append({"name": name, "shapes": concrete(inputs, values), "padding": padding, "seed": seed})
    return result


def sizes_of(variant: Variant, architecture: Architecture) -> dict[str, int]:
    """Returns the sizes of the traced example, which are those of a static export."""
    return {**architecture.sizes, "seq": 1} if variant.mode == "decode" else dict(architecture.sizes)


# ---- Export --------------------------------------------------------------------------------------


def export(variant: Variant, digest: str) -> dict[str, Any]:
    """Exports one variant, writes its small form and returns its entry of the manifest."""
    architecture = ARCHITECTURES[variant.architecture]
    inputs = architecture.inputs(variant.mode or "")
    if variant.dims == "static":
        sizes = sizes_of(variant, architecture)
        known = known_sizes(sizes)
        inputs = [replace(i, shape=tuple(known.get(d, d) for d in i.shape)) for i in inputs]
    torch.manual_seed(0)
    config = architecture.make(variant.attention)
    module = module_class(variant.architecture, variant.mode or "")(config).eval()
    assert module.config._attn_implementation == variant.attention
    parameters = fill_parameters(module)
    module = module.to(TORCH_DTYPES[variant.dtype])
    model = exported(replace(variant, after=None)) if variant.after else None
    model = put_through(variant, model or run_exporter(variant, architecture, module, inputs), config)
    runs = bindings(variant, architecture, architecture.inputs(variant.mode or ""))
    described = [describe_input(variant, i, model) for i in inputs]
    difference = difference_to_torch(module, model, {"inputs": described}, runs)
    assert difference < TOLERANCES[variant.dtype], f"the graph differs from the module by {difference:.2g}"
    store(variant, model, parameters)
    return {
        "id": variant.id,
        "part": variant.part,
        "architecture": variant.architecture,
        "transformers": variant.transformers,
        "exporter": EXPORTERS[variant.exporter][0],
        "opset": EXPORTERS[variant.exporter][1],
        "dims": "static" if variant.dims == "static" else "dynamic",
        "dtype": variant.dtype,
        "attention": variant.attention,
        "mode": variant.mode,
        **({"after": variant.after} if variant.after else {}),
        "expected": architecture.expected(config),
        "inputs": described,
        "bindings": runs,
        "difference_to_torch": float(f"{difference:.1e}"),
        "recipe": digest,
    }


def exported(variant: Variant) -> onnx.ModelProto | None:
    """Returns the model of a variant if the zoo has it and it is up to date."""
    known = {e["id"]: e.get("recipe") for e in manifest()["models"]}
    return load_model(variant.id) if known.get(variant.id) == recipe(variant) else None


def recipe(variant: Variant) -> str:
    """Returns a digest of everything that decides what an export looks like. What is expected of it is not among that:
    expected.py computes it anew without exporting."""
    architecture = ARCHITECTURES[variant.architecture]
    packages = ["torch", "onnx", "onnxscript", *TOOLS[variant.after]]
    if variant.architecture.startswith("diffusers-"):
        packages.append("diffusers")
    try:
        config = architecture.make(variant.attention)
        module = module_class(variant.architecture, variant.mode or "")
        plain = variant.architecture in more_architectures.PLAIN
        parts = [
            repr(vars(config)) if plain else config.to_json_string(),
            Path(inspect.getfile(module)).read_text() if plain else inspect.getsource(module.forward),
        ]
    except Exception as error:  # What cannot be built cannot be exported either, as long as it stays so.
        parts = [f"{error}"]
    inputs = architecture.inputs(variant.mode or "")
    parts += [
        vars(variant),
        variant.part,
        [vars(i) for i in inputs],
        architecture.sizes,
        bindings(variant, architecture, inputs),
        {name: importlib.metadata.version(name) for name in packages},
        [inspect.getsource(globals()[name]) for name in FUNCTIONS],
        Path(weights.__file__).read_text(),
    ]
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:16]


def run_exporter(
    variant: Variant, architecture: Architecture, module: torch.nn.Module, inputs: list[Input]
) -> onnx.ModelProto:
    """Returns the exported model."""
    shapes = concrete(inputs, sizes_of(variant, architecture))
    entry = {"inputs": [{**vars(i), "dtype": dtype_of(variant, i)} for i in inputs]}
    example = make_inputs(entry, {"shapes": shapes, "padding": "left", "seed": 0})
    arguments = tuple(torch.from_numpy(a) for a in example.values())
    outputs = architecture.outputs(variant.mode or "")
    exporter, opset = EXPORTERS[variant.exporter]
    names = {"input_names": [i.name for i in inputs], "output_names": [o[0] for o in outputs]}
    with torch.no_grad():
        if exporter == "dynamo":
            axes = dynamic_shapes(variant, inputs)
            program = torch.onnx.export(
                module,
                arguments,
                dynamo=True,
                verbose=False,
                opset_version=opset,
                dynamic_shapes=axes,
                **names,
            )
            return program.model_proto
        shaped = [(i.name, i.shape) for i in inputs] + outputs
        buffer = io.BytesIO()
        torch.onnx.export(
            module,
            arguments,
            buffer,
            dynamo=False,
            opset_version=opset,
            dynamic_axes={n: symbolic(s) for n, s in shaped} if variant.dims == "dynamic" else None,
            **names,
        )
        return onnx.load_from_string(buffer.getvalue())


def put_through(variant: Variant, model: onnx.ModelProto, config: Any) -> onnx.ModelProto:
    """Returns the model as another tool leaves it, since people bring those models too."""
    if variant.after == "onnxsim":
        import onnxsim

        return onnxsim.simplify(model)[0]
    if variant.after == "onnxslim":
        import onnxslim

        return onnxslim.slim(model)
    if variant.after == "ortopt":
        from onnxruntime.transformers import optimizer

        with tempfile.TemporaryDirectory() as folder:
            onnx.save(model, f"{folder}/m.onnx")
            # 0: the optimizer finds the number itself.
            heads, width = (getattr(config, name, 0) for name in ("num_attention_heads", "hidden_size"))
            model_type = OPTIMIZER_TYPES[variant.architecture]
            optimizer.optimize_model(
                f"{folder}/m.onnx", model_type=model_type, num_heads=heads, hidden_size=width, opt_level=0
            ).save_model_to_file(f"{folder}/o.onnx")
            result = onnx.load(f"{folder}/o.onnx")
            if all(o.domain != "com.microsoft" for o in result.opset_import):
                result.opset_import.add(domain="com.microsoft", version=1)  # Left out by some releases.
            return result
    return model


def dynamic_shapes(variant: Variant, inputs: list[Input]) -> tuple[dict[int, Any], ...] | None:
    """Returns the dynamic axes for the dynamo exporter, which names them itself or takes our names."""
    if variant.dims == "static":
        return None
    if variant.dims == "dynamic":
        return tuple({axis: torch.export.Dim.DYNAMIC for axis in symbolic(i.shape)} for i in inputs)
    named = {d: torch.export.Dim(d) for i in inputs for d in symbolic(i.shape).values()}
    return tuple({axis: named[d] for axis, d in symbolic(i.shape).items()} for i in inputs)


def difference_to_torch(
    module: torch.nn.Module, model: onnx.ModelProto, entry: dict[str, Any], runs: list[dict[str, Any]]
) -> float:
    """Returns the largest difference between graph and module over all bindings and outputs.

    It is relative to the largest value of an output, and catches what a trace made constant. Rows
    whose queries have no key to attend to are left out: they hold no meaning, and kernels differ.
    """
    session = plain_session(model.SerializeToString(), threads=1)
    worst = 0.0
    for binding in runs:
        feeds = make_inputs(entry, binding)
        with torch.no_grad():
            expected = module(*(torch.from_numpy(a) for a in feeds.values()))
        expected = expected if isinstance(expected, tuple) else (expected,)
        for ours, theirs in zip(session.run(None, feeds), expected, strict=True):
            ours, theirs = ours.astype(np.float64), theirs.double().numpy()
            assert ours.shape == theirs.shape, f"{binding['name']}: {ours.shape} is not {theirs.shape}"
            sighted = sighted_rows(feeds, ours)
            gap = np.abs(ours - theirs)[sighted].max() / np.abs(theirs[sighted]).max()
            worst = max(worst, float(gap) if np.isfinite(gap) else float("inf"))
    return worst


def sighted_rows(feeds: dict[str, np.ndarray], output: np.ndarray) -> tuple[Any, ...]:
    """Returns the index of the part of an output whose queries can attend to some key."""
    if "attention_mask" not in feeds or output.ndim < 3:
        return (Ellipsis,)
    tokens = output.shape[-2]
    if feeds["attention_mask"].shape[-1] < tokens:  # The mask is that of another sequence.
        return (Ellipsis,)
    sighted = ~blind_rows(feeds["attention_mask"], tokens)
    return (sighted,) if output.ndim == 3 else (np.broadcast_to(sighted[:, None, :], output.shape[:-1]),)


def symbolic(shape: tuple[Any, ...]) -> dict[int, str]:
    return {axis: d for axis, d in enumerate(shape) if isinstance(d, str)}


def dtype_of(variant: Variant, spec: Input) -> str:
    return variant.dtype if spec.meaning in ("past", "pixels", "features") else "int64"


def describe_input(variant: Variant, spec: Input, model: onnx.ModelProto) -> dict[str, Any]:
    """Returns name, type, symbolic shape as in the graph, and meaning of one input."""
    [value] = [v for v in model.graph.input if v.name == spec.name]
    tensor = value.type.tensor_type
    dtype = onnx.helper.tensor_dtype_to_np_dtype(tensor.elem_type).name
    assert dtype == dtype_of(variant, spec), f"{spec.name} is {dtype}"
    shape = [d.dim_param if d.HasField("dim_param") else d.dim_value for d in tensor.shape.dim]
    more = {k: v for k, v in (("vocab", spec.vocab), ("eos", spec.eos)) if v is not None}
    return {"name": spec.name, "dtype": dtype, "shape": shape, "meaning": spec.meaning, **more}


def store(variant: Variant, model: onnx.ModelProto, parameters: list[weights.Parameter]) -> None:
    """Writes the small form of a model, after proving that the full one comes back from it."""
    drop_stack_traces(model)
    small = weights.strip(model, parameters)
    again = weights.restore(onnx.load_from_string(small.SerializeToString()))
    assert again.SerializeToString(deterministic=True) == model.SerializeToString(deterministic=True)
    path = packed_path(variant.id)
    path.parent.mkdir(parents=True, exist_ok=True)
    replace_file(path, lzma.compress(small.SerializeToString(deterministic=True), preset=9 | lzma.PRESET_EXTREME))


def drop_stack_traces(model: onnx.ModelProto) -> None:
    """Removes stack traces and doc strings, which are large and name files of the exporting machine.

    The scopes and classes of the modules stay: the tool reads module paths from them.
    """
    model.ClearField("doc_string")
    model.graph.ClearField("doc_string")
    for node in model.graph.node:
        node.ClearField("doc_string")
        for position in reversed(range(len(node.metadata_props))):
            if node.metadata_props[position].key == "pkg.torch.onnx.stack_trace":
                del node.metadata_props[position]


# ---- Manifest ------------------------------------------------------------------------------------


def reason_of(error: BaseException) -> str:
    """Returns the first telling line of the innermost error, without paths of this machine."""
    while error.__cause__ is not None:
        error = error.__cause__
    text = re.sub(r"\x1b\[[0-9;]*m", "", str(error)).strip()
    line = text.splitlines()[0].strip() if text else ""
    return re.sub(r"/\S*/(site-packages/)?", "", f"{type(error).__name__}: {line}")[:300]


def update_manifest(entries: dict[str, dict[str, Any]], failures: dict[str, dict[str, str]]) -> None:
    """Merges new entries and failures into the manifest, in the order of `variants`."""
    old = manifest()
    done = set(entries) | set(failures)
    models = {e["id"]: e for e in old["models"] if e["id"] not in done} | entries
    failed = {f["id"]: f for f in old["not_exported"] if f["id"] not in done} | failures
    order = [v.id for v in variants()]
    order += [e["id"] for e in old["models"] if e["part"] == 3]  # of other frameworks (frameworks/)
    new = {
        "models": [models[i] for i in order if i in models],
        "not_exported": [failed[i] for i in order if i in failed],
    }
    temporary = ZOO / "manifest.json.tmp"
    temporary.write_text(manifest_file.render(new))
    temporary.replace(ZOO / "manifest.json")  # Workers read it.
    # A file of a variant that is not in the manifest yet belongs to an export that runs beside this one.
    stale = {f"{i}.onnx.xz" for i in failed}
    known = {f"{i}.onnx.xz" for i in order}
    for file in packed_path("x").parent.glob("*.onnx.xz"):
        if file.name in stale or file.name not in known:
            file.unlink()


def manifest() -> dict[str, Any]:
    """Returns the manifest as it is, empty if there is none."""
    return manifest_file.load()


def prepare() -> None:
    """Makes a process quiet and single-threaded."""
    warnings.filterwarnings("ignore")
    logging.disable(logging.WARNING)
    torch.set_num_threads(1)
    gc.freeze()
    gc.set_threshold(100_000, 50, 50)  # A dynamo export makes many objects that live until its end.


def attempt(variant: Variant, digest: str) -> tuple[str, dict[str, Any] | None, str]:
    """Exports one variant and returns its id and its entry, or None and why there is none."""
    try:
        return variant.id, export(variant, digest), ""
    except Exception as error:  # An exporter may fail in any way; the table says how.
        traceback.print_exc(file=sys.stderr)
        return variant.id, None, reason_of(error)


def wanted(patterns: list[str], force: bool) -> dict[Variant, str]:
    """Returns those variants of the installed transformers that match and are not up to date, with their recipes."""
    old = manifest()
    known = {e["id"]: e.get("recipe") for e in old["models"] if packed_path(e["id"]).exists()}
    known |= {e["id"]: e.get("recipe") for e in old["not_exported"]}
    recipes = {
        v: recipe(v)
        for v in variants()
        if v.transformers == transformers.__version__ and any(fnmatch.fnmatchcase(v.id, p) for p in patterns)
    }
    return {v: digest for v, digest in recipes.items() if force or known.get(v.id) != digest}


def adopt(recipes: dict[str, str]) -> None:
    """Writes these recipes to what the manifest has of them, after a change that alters no export."""
    old = manifest()
    for entry in [*old["models"], *old["not_exported"]]:
        entry["recipe"] = recipes.get(entry["id"], entry.get("recipe"))
    (ZOO / "manifest.json").write_text(manifest_file.render(old))


def main() -> int:
    parser = argparse.ArgumentParser(description="Export the zoo with the installed transformers.")
    parser.add_argument("--only", nargs="*", default=["*"], help="shell patterns of ids")
    parser.add_argument("--force", action="store_true", help="also what is up to date")
    parser.add_argument("--jobs", type=int, default=2, help="processes")
    parser.add_argument("--adopt", action="store_true", help="export nothing: what is there counts as up to date")
    arguments = parser.parse_args()
    prepare()
    todo = wanted(arguments.only, arguments.force)
    if arguments.adopt:
        adopt({variant.id: digest for variant, digest in todo.items()})
        return 0
    print(f"transformers {transformers.__version__}: {len(todo)} models to export", flush=True)
    entries: dict[str, dict[str, Any]] = {}
    failures: dict[str, dict[str, str]] = {}
    spawn = multiprocessing.get_context("spawn")
    with concurrent.futures.ProcessPoolExecutor(arguments.jobs, spawn, prepare) as pool:
        futures = {pool.submit(attempt, v, digest): digest for v, digest in todo.items()}
        for future in concurrent.futures.as_completed(futures):
            name, entry, reason = future.result()
            if entry is not None:
                entries[name] = entry
                print(f"exported {name}: {packed_path(name).stat().st_size} bytes", flush=True)
            else:
                failures[name] = {"id": name, "reason": reason, "recipe": futures[future]}
                print(f"FAILED   {name}: {reason}", flush=True)
            if (len(entries) + len(failures)) % 20 == 0:
                update_manifest(entries, failures)
    update_manifest(entries, failures)
    return 0


if __name__ == "__main__":
    sys.exit(main())
