"""Seeded weights, and the small form of a model that leaves them out.

Every trainable parameter of a zoo model is filled by `parameter_values` before the export, from
nothing but its name, shape, mean and standard deviation. An exported initializer that equals such a
parameter (as it is, transposed, reshaped, or one part of a packed projection) therefore need not be stored: `strip` removes its bytes
and writes into the model's metadata how to make them again, and `restore` does so, bit for bit.
Everything else in a graph (masks, rotary tables, sinusoids, folded constants) is kept as exported.

The numbers come from the raw 64-bit words of PCG64 through integer sums, so they are the same on
every platform and with every version of numpy.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import math
import zlib
from dataclasses import dataclass

import numpy as np
import onnx

FILL_KEY = "ascend_fuse.zoo.fill"
SMALL = 256  # Initializers of at most this many elements are stored verbatim.

_DTYPES = {onnx.TensorProto.FLOAT: np.dtype("<f4"), onnx.TensorProto.FLOAT16: np.dtype("<f2")}


@dataclass(frozen=True)
class Parameter:
    """A trainable parameter: all that is needed to compute its values."""

    name: str
    shape: tuple[int, ...]
    mean: float
    std: float


def parameter_values(parameter: Parameter, dtype: np.dtype) -> np.ndarray:
    """Returns the values of a parameter: nearly normal, seeded by the parameter's name."""
    seed = int.from_bytes(hashlib.sha256(parameter.name.encode()).digest()[:8], "little")
    words = np.random.PCG64(seed).random_raw(math.prod(parameter.shape))
    # The sum of four 16-bit numbers is close to a normal distribution and exact in integers.
    total = sum((words >> np.uint64(s)) & np.uint64(0xFFFF) for s in (0, 16, 32, 48))
    deviation = math.sqrt(4.0 * (65536.0**2 - 1.0) / 12.0)
    unit = (total.astype(np.float64) - 4 * 32767.5) / deviation
    values = parameter.mean + parameter.std * unit
    return values.astype(np.float32).astype(dtype).reshape(parameter.shape)


def strip(model: onnx.ModelProto, parameters: list[Parameter]) -> onnx.ModelProto:
    """Returns a copy of the model without the bytes of initializers that equal a parameter."""
    small = onnx.ModelProto()
    small.CopyFrom(model)
    index = _index(parameters)
    fills: dict[str, dict] = {}
    for tensor in small.graph.initializer:
        dtype = _DTYPES.get(tensor.data_type)
        if dtype is None or math.prod(tensor.dims) <= SMALL or not tensor.raw_data:
            continue
        found = index.get(_digest(tensor.raw_data))
        if found is None:
            continue
        parameter, order, rounded, part = found
        fills[tensor.name] = {
            "parameter": parameter.name,
            "shape": list(parameter.shape),
            "mean": parameter.mean,
            "std": parameter.std,
            "transpose": list(order),
            "rounded": rounded,
            **({"part": list(part)} if part[1] > 1 else {}),
            "crc32": zlib.crc32(tensor.raw_data),
        }
        tensor.ClearField("raw_data")
    entry = small.metadata_props.add()
    entry.key, entry.value = FILL_KEY, json.dumps(fills, separators=(",", ":"))
    return small


def restore(model: onnx.ModelProto) -> onnx.ModelProto:
    """Fills in, in place, the weights that `strip` removed, and returns the model."""
    recorded = [p for p in model.metadata_props if p.key == FILL_KEY]
    if not recorded:
        return model
    fills = json.loads(recorded[0].value)
    for tensor in model.graph.initializer:
        if tensor.name not in fills:
            continue
        fill = fills[tensor.name]
        parameter = Parameter(fill["parameter"], tuple(fill["shape"]), fill["mean"], fill["std"])
        values = parameter_values(parameter, np.dtype(fill["rounded"])).astype(_DTYPES[tensor.data_type])
        index, parts = fill.get("part", (0, 1))
        tensor.raw_data = np.split(values, parts)[index].transpose(fill["transpose"]).tobytes()
        if zlib.crc32(tensor.raw_data) != fill["crc32"]:
            raise ValueError(f"the weight '{tensor.name}' is not what was exported")
    for position in reversed(range(len(model.metadata_props))):
        if model.metadata_props[position].key == FILL_KEY:
            del model.metadata_props[position]
    return model


# A parameter, the order of its axes, its rounding, and which part of how many along the first axis.
_Found = tuple[Parameter, tuple[int, ...], str, tuple[int, int]]


def _index(parameters: list[Parameter]) -> dict[bytes, _Found]:
    """Maps the digest of a parameter's bytes to where they come from.

    A parameter occurs in any order of its axes, as float32, as float16, and as float32 that was
    rounded to float16 before (a half-precision weight that the exporter folded a Cast into). A matrix
    also occurs in halves and thirds, where a tool took a packed projection apart.
    """
    index: dict[bytes, _Found] = {}
    for parts, parameter in itertools.product((1, 2, 3), parameters):
        if math.prod(parameter.shape) <= SMALL * parts:
            continue
        if parts > 1 and (len(parameter.shape) > 2 or parameter.shape[0] % parts):
            continue
        for rounded, stored in (("<f4", "<f4"), ("<f2", "<f2"), ("<f2", "<f4")):
            whole = parameter_values(parameter, np.dtype(rounded)).astype(stored)
            for number, values in enumerate(np.split(whole, parts)):
                for order in itertools.permutations(range(len(parameter.shape))):
                    found = (parameter, order, rounded, (number, parts))
                    index.setdefault(_digest(values.transpose(order).tobytes()), found)
    return index


def _digest(data: bytes) -> bytes:
    return hashlib.sha256(data).digest()
