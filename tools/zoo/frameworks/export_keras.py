#!/usr/bin/env python3
"""Exports the models of keras_models.py by Keras' own export to ONNX, which is tf2onnx.

    python3 tools/zoo/frameworks/export_keras.py [--only PATTERN ...] [--to FOLDER]
"""

from __future__ import annotations

import os

os.environ.update(KERAS_BACKEND="tensorflow", TF_CPP_MIN_LOG_LEVEL="3", CUDA_VISIBLE_DEVICES="")

import sys
import tempfile
from pathlib import Path

import keras
import numpy as np
import onnx
import tensorflow as tf

sys.path.insert(0, str(Path(__file__).resolve().parent))
import common  # noqa: E402
import keras_models  # noqa: E402
import weights  # noqa: E402

# TensorFlow 2.21 writes gelu with Erfc, which tf2onnx does not know. This is how it was written before.
tf.nn.gelu = lambda x, approximate=False, name=None: (
    0.5 * x * (1.0 + tf.tanh(0.7978845608028654 * (x + 0.044715 * tf.pow(x, 3))))
    if approximate else 0.5 * x * (1.0 + tf.math.erf(x / tf.cast(1.4142135623730951, x.dtype))))
OPSETS = {"tf17": 17, "tf13": 13}


def fill(built: common.Built) -> list[weights.Parameter]:
    """Gives every trainable variable its seeded values."""
    described = []
    for variable in built.module.trainable_variables:
        parameter = weights.Parameter(variable.path, tuple(variable.shape), *distribution(variable))
        variable.assign(weights.parameter_values(parameter, np.dtype("<f4")))
        described.append(parameter)
    return described


def distribution(variable: keras.Variable) -> tuple[float, float]:
    """Returns mean and deviation: a gain is about 1, Gemma's is added to 1, and no shift is 0."""
    name, shape = variable.path, tuple(variable.shape)
    if name.endswith(("gamma", "/scale")):
        return (0.0 if "gemma" in name else 1.0), 0.1
    if len(shape) < 2 or name.endswith(("beta", "bias")):
        return 0.0, 0.05
    if "embedding" in name:
        return 0.0, 0.5
    return 0.0, float(1 / np.sqrt(np.prod(shape[:-1]) if len(shape) != 3 else max(shape[0], 64)))


def export(built: common.Built, opset: int) -> onnx.ModelProto:
    sizes = common.SIZES[0]
    run(built, {i.name: np.ones([sizes.get(d, d) for d in i.shape], "f4" if i.meaning in ("pixels", "features") else "i4") for i in built.inputs})
    with tempfile.TemporaryDirectory() as folder:
        built.module.export(f"{folder}/m.onnx", format="onnx", opset_version=opset, verbose=False)
        return onnx.load(f"{folder}/m.onnx")


def run(built: common.Built, feeds: dict[str, np.ndarray]) -> list[np.ndarray]:
    """The module's own outputs."""
    given = dict(feeds) if len(feeds) > 1 or isinstance(built.module.input, dict) else next(iter(feeds.values()))
    result = built.module(given, training=False)
    return [np.asarray(t) for t in keras.tree.flatten(result)]


FRAMEWORK = common.Framework(keras_models.MODELS, OPSETS, fill, export, run, ("keras", "keras-hub", "tensorflow-cpu", "tf2onnx"))


if __name__ == "__main__":
    sys.exit(common.main(FRAMEWORK))
