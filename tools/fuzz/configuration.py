"""The flags of one run: chip, plugin, and a random choice of the others."""

from __future__ import annotations

import dataclasses
import random
from typing import Any

from fuzz.graph import Dim, Graph

CHIPS = ("ascend310b", "ascend310p", "ascend910", "ascend910b", "ascend910_93", "ascend950")
CANN = ("8.1", "8.5", "9.0", "9.1", "9.2", "2026.07")
PRECISION = ("force_fp16", "force_fp16", "force_fp16", "must_keep_origin_dtype", "allow_fp32_to_fp16", "allow_mix_precision", "force_fp32")


@dataclasses.dataclass
class Configuration:
    """Flags of `optimize`. dims are by the key of the plan."""

    target: str
    plugin: bool
    cann: str = "8.1"
    strict: bool = False
    precision_mode: str = "force_fp16"
    style: str = ""
    dims: dict[str, Any] = dataclasses.field(default_factory=dict)  # names of the file
    fix: dict[str, int] = dataclasses.field(default_factory=dict)
    assume: dict[str, str] = dataclasses.field(default_factory=dict)
    prefer: list[str] = dataclasses.field(default_factory=list)
    weights: str = ""
    rules: list[str] = dataclasses.field(default_factory=list)

    def __str__(self) -> str:
        words = [f"--target {self.target}", f"--cann {self.cann}"] + ["--plugin"] * self.plugin + ["--strict"] * self.strict
        words += [f"--precision-mode {self.precision_mode}"] * (self.precision_mode != "force_fp16")
        words += [f"--style {self.style}"] * bool(self.style) + [f"--weights {self.weights}"] * bool(self.weights)
        words += [f"--dim {k}={f'{v[0]}..{v[1]}' if isinstance(v, (tuple, list)) else v}" for k, v in self.dims.items()]
        words += [f"--fix {k}={v}" for k, v in self.fix.items()] + [f"--assume {k}={v}" for k, v in self.assume.items()]
        return " ".join(words + [f"--prefer {one}" for one in self.prefer])

    def options(self, again: bool = False) -> dict[str, Any]:
        dims = {k: tuple(v) if isinstance(v, list) else v for k, v in self.dims.items()}
        result = {"target": self.target, "plugin": self.plugin, "cann": self.cann, "strict": self.strict,
                  "precision_mode": self.precision_mode, "style": self.style, "dims": dims, "assume": self.assume, "prefer": self.prefer,
                  "rules": self.rules}
        return result if again else {**result, "fix": self.fix}

    def for_check(self) -> dict[str, Any]:
        return {k: v for k, v in self.options(again=True).items() if k in ("target", "plugin", "cann", "precision_mode", "dims")}

    def for_expand(self) -> dict[str, Any]:
        return {k: v for k, v in self.options(again=True).items() if k in ("target", "plugin", "cann", "precision_mode", "dims")}

    def allows(self, sizes: dict[str, int], dims: dict[str, Dim]) -> bool:
        """Whether the flags promise nothing that these sizes break."""
        for key, dim in dims.items():
            for number in range(dim.aliases):
                name = dim.name if number == 0 else f"{dim.name}_{number}"
                low, high = bounds(self.dims.get(name))
                if not low <= sizes[key] <= high or self.fix.get(name, sizes[key]) != sizes[key]:
                    return False
        return True


def bounds(value: Any) -> tuple[int, int]:
    if value is None:
        return 0, 2**62
    return (value[0], value[1]) if isinstance(value, (tuple, list)) else (value, value)


def choose(seed: int, graph: Graph, padding: str) -> list[Configuration]:
    """Every chip, stock and with the plugin, each with other flags."""
    rng = random.Random(f"configurations/{seed}")
    declared = {str(d.dim_param) for i in graph.model().graph.input for d in i.type.tensor_type.shape.dim if d.dim_param}
    masks = [i.name for i in graph.inputs if i.meaning == "keep" and i.dtype == "int64"]
    result = []
    for chip in CHIPS:
        for plugin in (False, True):
            one = Configuration(chip, plugin)
            one.cann = rng.choice(CANN) if rng.random() < 0.5 else "8.1"
            one.strict = rng.random() < 0.08
            one.precision_mode = rng.choice(PRECISION)
            one.style = rng.choice(["", "", "", "", "", "", "X", "N" if one.cann == "2026.07" else ""])
            for dim in graph.dims.values():
                for number in range(dim.aliases):
                    name = dim.name if number == 0 else f"{dim.name}_{number}"
                    if not dim.dynamic or name not in declared:
                        continue
                    draw = rng.random()
                    if draw < 0.12:
                        one.dims[name] = dim.size
                    elif draw < 0.25:
                        one.dims[name] = (min(1, dim.size), max(64, dim.size))  # with --fix of its other name, nothing that this breaks
                    elif draw < 0.33:
                        one.fix[name] = dim.size
            for mask in masks:
                if rng.random() < 0.15:
                    one.assume[mask] = {"left": "left-padded", "right": "right-padded", "none": "ones"}.get(padding, "binary")
            if plugin and rng.random() < 0.3:
                one.prefer = ["NPUSwiGlu"]
            if rng.random() < 0.04:
                one.weights = rng.choice(["copy", "reference", "weights.bin"])
            result.append(one)
    return result
