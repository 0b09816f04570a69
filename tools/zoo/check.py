#!/usr/bin/env python3
"""Runs every zoo model under every binding, with all graph optimizations of ONNX Runtime off.

    python3 tools/zoo/check.py [IDS...]

Checks each model with onnx.checker (shape inference included), compares its inputs with the
manifest, and runs it. Rows whose queries have no key to attend to may be NaN in the original model;
any other NaN is a failure, as is a binding that the graph refuses. The last line counts failures.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

import numpy as np
import onnx

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "python")]
import fill  # noqa: E402
from ascend_fuse.inputs import make_inputs  # noqa: E402
from ascend_fuse.session import plain_session  # noqa: E402


def declared_inputs(model: onnx.ModelProto) -> list[tuple[str, str, list[Any]]]:
    """Returns name, dtype and shape of every graph input, as the manifest writes them."""
    result = []
    for value in model.graph.input:
        tensor = value.type.tensor_type
        shape = [d.dim_param if d.HasField("dim_param") else d.dim_value for d in tensor.shape.dim]
        result.append((value.name, onnx.helper.tensor_dtype_to_np_dtype(tensor.elem_type).name, shape))
    return result


def blind_rows(mask: np.ndarray, tokens: int) -> np.ndarray:
    """Returns, for each row and new token, whether causality and padding leave it without a key."""
    return (np.cumsum(mask, axis=-1) == 0)[:, -tokens:]


def problems_of(entry: dict[str, Any]) -> list[str]:
    """Returns what is wrong with one model."""
    model = fill.load_model(entry["id"])
    data = model.SerializeToString()
    problems = []
    try:
        onnx.checker.check_model(model, full_check=True)
    except Exception as error:
        # ONNX Runtime's optimizer puts operators of its own into ONNX's domain.
        if entry.get("after") != "ortopt" or "No Op registered for" not in str(error):
            problems.append(f"onnx.checker: {str(error).splitlines()[0]}")
    if declared_inputs(model) != [(i["name"], i["dtype"], i["shape"]) for i in entry["inputs"]]:
        problems.append(f"inputs differ from the manifest: {declared_inputs(model)}")
    try:
        session = plain_session(data, threads=1)
    except Exception as error:
        return [*problems, f"ONNX Runtime refuses the model: {str(error).splitlines()[0]}"]
    for binding in entry["bindings"]:
        try:
            feeds = make_inputs(entry, binding)
            outputs = session.run(None, feeds)
        except Exception as error:
            problems.append(f"{binding['name']}: {str(error).splitlines()[0][:400]}")
            continue
        problems.extend(f"{binding['name']}: {p}" for p in output_problems(feeds, outputs[0]))
    return problems


def output_problems(feeds: dict[str, np.ndarray], output: np.ndarray) -> list[str]:
    """Returns what is wrong with the first output: NaN in rows that can see a key, or a dead output."""
    broken = ~np.isfinite(output)
    mask = feeds.get("attention_mask")
    if mask is not None and output.ndim == 3 and mask.shape[1] >= output.shape[1]:  # Else that of another sequence.
        blind = blind_rows(mask, output.shape[1])
        broken = broken[~blind]
        output = output[~blind]
    if broken.any():
        return [f"{int(broken.sum())} of {broken.size} values are not finite"]
    return ["the output is constant"] if np.ptp(output.astype(np.float64)) < 1e-3 else []


def main() -> int:
    parser = argparse.ArgumentParser(description="Run every zoo model in ONNX Runtime.")
    parser.add_argument("ids", nargs="*", metavar="IDS", help="ids or shell patterns; default: all")
    ids = set(fill.select(parser.parse_args().ids))
    entries = [e for e in fill.load_manifest()["models"] if e["id"] in ids]
    failures = 0
    runs = 0
    for entry in entries:
        problems = problems_of(entry)
        failures += len(problems)
        runs += len(entry["bindings"])
        for problem in problems:
            print(f"{entry['id']}: {problem}")
    print(f"{len(entries)} models, {runs} runs, {failures} failures")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
