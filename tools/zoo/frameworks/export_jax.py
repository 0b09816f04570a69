#!/usr/bin/env python3
"""Exports the models of jax_models.py by jax2onnx.

    python3 tools/zoo/frameworks/export_jax.py [--only PATTERN ...] [--to FOLDER]
"""

from __future__ import annotations

import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import jax2onnx
import numpy as np
import onnx
from flax import nnx

sys.path.insert(0, str(Path(__file__).resolve().parent))
import common  # noqa: E402
import jax_models  # noqa: E402
import weights  # noqa: E402

OPSETS = {"jx21": 21, "jx23": 23}
jax.config.update("jax_platforms", "cpu")


def fill(built: common.Built) -> list[weights.Parameter]:
    """Gives every parameter its seeded values."""
    state = nnx.state(built.module, nnx.Param)
    described = []
    for path, variable in nnx.to_flat_state(state):
        name, shape = ".".join(map(str, path)), tuple(variable.shape)
        parameter = weights.Parameter(name, shape, *distribution(name, shape))
        variable.set_value(jnp.asarray(weights.parameter_values(parameter, np.dtype("<f4"))))
        described.append(parameter)
    nnx.update(built.module, state)
    return described


def distribution(name: str, shape: tuple[int, ...]) -> tuple[float, float]:
    """Returns mean and deviation: a gain is about 1, and no shift is 0."""
    if name.endswith("scale"):
        return 1.0, 0.1
    if len(shape) < 2 or name.endswith("bias"):
        return 0.0, 0.05
    return 0.0, 0.5 if "embedding" in name else float(1 / np.sqrt(np.prod(shape[:-1]) if len(shape) != 3 else 128))


def export(built: common.Built, opset: int) -> onnx.ModelProto:
    kinds = {"ids": jnp.int32, "position_ids": jnp.int32}
    letters = {"batch": "B", "seq": "T"}
    inputs = [jax.ShapeDtypeStruct(
        jax.export.symbolic_shape("(" + ",".join(str(letters.get(d, d)) for d in i.shape) + ",)", scope=SCOPE),
        kinds.get(i.meaning, jnp.float32)) for i in built.inputs]
    return jax2onnx.to_onnx(built.module, inputs, opset=opset, input_names=[i.name for i in built.inputs])


SCOPE = jax.export.SymbolicScope()


def run(built: common.Built, feeds: dict[str, np.ndarray]) -> list[np.ndarray]:
    """The module's own outputs."""
    return [np.asarray(t) for t in jax.tree.leaves(built.module(*map(jnp.asarray, feeds.values())))]


FRAMEWORK = common.Framework(jax_models.MODELS, OPSETS, fill, export, run, ("jax", "flax", "jax2onnx"))

if __name__ == "__main__":
    sys.exit(common.main(FRAMEWORK))
