"""The manifest of the zoo: what each export is, its inputs, bindings and expected counts.

In the file an export is one line. Lists that many exports share (inputs, bindings, counts) stand there once and are named by their
number, and what the id of an export says is not written again.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

PATH = Path(__file__).resolve().parents[2] / "tests" / "zoo" / "manifest.json"
SHARED = ("expected", "inputs", "bindings")
DIMS = {"named": "dynamic"}  # with names of the user's
EXPORTERS = {"ts": "torchscript", "dy": "dynamo", "tf": "tf2onnx", "jx": "jax2onnx", "pd": "paddle2onnx"}


def of_id(model_id: str) -> dict[str, Any]:
    """What the id says: "llama-sdpa-past-ts17-dynamic"."""
    words = model_id.split("-")
    place = next(i for i, word in enumerate(words) if word[:2] in EXPORTERS and word[2:].isdigit())
    return {"exporter": EXPORTERS[words[place][:2]], "opset": int(words[place][2:]), "dims": DIMS.get(words[place + 1], words[place + 1])}


def load(path: Path = PATH) -> dict[str, Any]:
    """Returns `models`, one entry for each export, and `not_exported`; both empty where there is no file."""
    if not path.exists():
        return {"models": [], "not_exported": []}
    stored = json.loads(path.read_text())
    for entry in stored["models"]:
        entry |= of_id(entry["id"]) | {key: stored[key][entry[key]] for key in SHARED}
    return {key: stored[key] for key in ("models", "not_exported")}


def render(manifest: dict[str, Any]) -> str:
    """Returns the text of the file."""
    shared: dict[str, list[Any]] = {key: [] for key in SHARED}
    models = []
    for entry in manifest["models"]:
        said = of_id(entry["id"])
        assert {key: entry[key] for key in said} == said, entry["id"]
        line = {key: value for key, value in entry.items() if key not in said}
        for key in SHARED:
            if entry[key] not in shared[key]:
                shared[key].append(entry[key])
            line[key] = shared[key].index(entry[key])
        models.append(line)
    lists = {**shared, "models": models, "not_exported": manifest["not_exported"]}
    return "{\n" + ",\n".join(f' "{key}": [\n  ' + ",\n  ".join(map(json.dumps, rows)) + "\n ]" for key, rows in lists.items()) + "\n}\n"
