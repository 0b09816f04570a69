"""The bindings that a user gives to verify: a list, or an entry of a manifest."""

from __future__ import annotations

import json
import pathlib
from typing import Any

import numpy as np

from ascend_fuse import guess_inputs
from ascend_fuse.expanded import VerifyError


def read_bindings(argument: str | None) -> tuple[Any, Any]:
    """Returns (entry, bindings) of --bindings: from a list, or from a manifest entry."""
    if argument in (None, "auto"):
        return None, None
    text = argument
    if not argument.lstrip().startswith(("[", "{")):
        try:
            text = pathlib.Path(argument).read_text()
        except OSError as error:
            raise VerifyError(f"the bindings {argument} cannot be read: {error}") from None
    try:
        data = json.loads(text)
    except ValueError as error:
        raise VerifyError(f"the bindings are not JSON: {error}") from None
    if isinstance(data, dict) and "inputs" in data:
        return data, data.get("bindings")
    return None, data if isinstance(data, list) else [data]


def symbol_bindings(bindings, entry):
    """Bindings may give symbols and the elements of inputs ({"batch": 2, "seq": 5, "speed": 1.5}) instead of shapes."""
    result = []
    known = set(guess_inputs.symbols(entry))
    for number, binding in enumerate(bindings):
        if "shapes" in binding:
            result.append(binding)
            continue
        given = {k: v for k, v in binding.items() if k not in ("name", "padding", "seed")}
        symbols = {k: v for k, v in given.items() if k in known}
        name = binding.get("name") or ",".join(f"{k}={v}" for k, v in given.items()) or f"binding {number + 1}"
        shapes = guess_inputs.bind(entry, symbols)
        result.append(
            {
                "name": name,
                "shapes": shapes,
                "padding": binding.get("padding", "none"),
                "seed": binding.get("seed", number + 1),
                "values": {k: _elements(k, v, entry, shapes) for k, v in given.items() if k not in known},
            }
        )
    return result


def _elements(name: str, value: Any, entry, shapes) -> Any:
    """Returns what a binding gives for the elements of an input, or says why it cannot be that."""
    spec = next((s for s in entry["inputs"] if s["name"] == name), None)
    if spec is None:
        dims = ", ".join(guess_inputs.symbols(entry)) or "none"
        inputs = ", ".join(s["name"] for s in entry["inputs"])
        raise VerifyError(
            f"the bindings have `{name}`, which is neither a dim nor an input of the model; dims: {dims}; inputs: {inputs}"
        )
    dtype, shape = np.dtype(spec["dtype"]), tuple(shapes[name])
    try:
        elements = np.asarray(value)
        exact = elements.astype(dtype)
        np.broadcast_to(exact, shape)
    except (TypeError, ValueError, OverflowError):
        exact = None
    if exact is None or (dtype.kind in "iub" and not np.array_equal(exact, elements)):
        raise VerifyError(f"the bindings give {json.dumps(value)} for `{name}`, which is {dtype}{list(shape)}")
    return value


def different(bindings) -> list:
    """The bindings without those that have the shapes, the padding and the given elements of one before."""
    found: dict[str, Any] = {}
    for binding in bindings:
        found.setdefault(json.dumps([binding["shapes"], binding["padding"], binding.get("values")]), binding)
    return list(found.values())
