"""The bindings that a user gives to verify: a list, or an entry of a manifest."""

from __future__ import annotations

import json
import pathlib
from typing import Any

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
    """Bindings may give symbols ({"batch": 2, "seq": 5}) instead of shapes."""
    result = []
    for number, binding in enumerate(bindings):
        if "shapes" in binding:
            result.append(binding)
            continue
        symbols = {k: v for k, v in binding.items() if k not in ("name", "padding", "seed")}
        name = (
            binding.get("name") or ",".join(f"{k}={v}" for k, v in symbols.items()) or f"binding {number + 1}"
        )
        result.append(
            {
                "name": name,
                "shapes": guess_inputs.bind(entry, symbols),
                "padding": binding.get("padding", "none"),
                "seed": binding.get("seed", number + 1),
            }
        )
    return result


def different(bindings) -> list:
    """The bindings without those that have the shapes and the padding of one before."""
    found: dict[str, Any] = {}
    for binding in bindings:
        found.setdefault(json.dumps([binding["shapes"], binding["padding"]]), binding)
    return list(found.values())
