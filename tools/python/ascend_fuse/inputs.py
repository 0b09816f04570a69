"""Random inputs of a model that obey what each input means.

A random tensor is a poor test input: token ids have to be smaller than the vocabulary, a padding
mask holds only 0 and 1 and keeps at least one key per row, and positions follow from the mask.
`make_inputs` builds such inputs from the description of a model (an entry of
`tests/zoo/manifest.json`, or a dict of the same form) and one *binding*: a concrete shape for every
input, the side on which rows are padded, and a seed.

Only numpy is needed.
"""

from __future__ import annotations

import zlib
from typing import Any, Dict

import numpy as np

Entry = Dict[str, Any]
Binding = Dict[str, Any]


def make_inputs(entry: Entry, binding: Binding) -> dict[str, np.ndarray]:
    """Returns one array per input of `entry`, in the order of the graph, for the given binding.

    The meanings understood are `ids` (below `vocab`; with `eos`, that id ends each row and occurs
    nowhere else), `segment_ids` (below `vocab`), `attention_mask`, `position_ids`, `past`, `pixels`
    and `features`. Any other meaning raises a ValueError, since an input that nobody understands
    cannot be generated honestly.
    """
    shapes = binding["shapes"]
    seed = int(binding.get("seed", 0))
    mask = _mask_of(entry, binding)
    result: dict[str, np.ndarray] = {}
    for spec in entry["inputs"]:
        name, meaning = spec["name"], spec["meaning"]
        shape = tuple(int(d) for d in shapes[name])
        dtype = np.dtype(spec["dtype"])
        rng = np.random.default_rng([seed, zlib.crc32(name.encode())])
        if meaning in ("ids", "segment_ids"):
            ids = rng.integers(0, int(spec["vocab"]), shape)
            eos = spec.get("eos")
            result[name] = (ids if eos is None else _ended(ids, mask, int(eos))).astype(dtype)
        elif meaning == "attention_mask":
            own = mask if mask.size == np.prod(shape) else _mask_of_shape(shape, binding)
            result[name] = own.astype(dtype).reshape(shape)
        elif meaning == "position_ids":
            result[name] = positions_of(mask, shape).astype(dtype)
        elif meaning in ("past", "pixels", "features"):
            result[name] = rng.standard_normal(shape).astype(dtype)
        else:
            raise ValueError(f"input '{name}' has the unknown meaning '{meaning}'")
    return result


def padding_mask(rows: int, length: int, new_tokens: int, padding: str) -> np.ndarray:
    """Returns an int64 mask [rows, length] that is 1 where a token may be attended to.

    `length` counts past and new tokens, `new_tokens` only the new ones. Rows are padded by
    different amounts, and every row keeps at least one token. With padding on the left, the padding
    starts at the oldest token. With padding on the right, the last new tokens are padding; a decode
    step has only one new token, which is real, so there the end of the past is padded instead, as in
    a batch of right-padded prompts.
    """
    mask = np.ones((rows, length), dtype=np.int64)
    if padding == "none":
        return mask
    past = length - new_tokens
    for row in range(rows):
        if padding == "left":
            mask[row, : _amount(row, length)] = 0
        elif padding == "right" and new_tokens > 1:
            mask[row, length - _amount(row, new_tokens) :] = 0
        elif padding == "right":
            mask[row, past - _amount(row, past) : past] = 0
        else:
            raise ValueError(f"padding is left, right or none, not '{padding}'")
    return mask


def positions_of(mask: np.ndarray | None, shape: tuple[int, ...]) -> np.ndarray:
    """Returns the positions of the last shape[-1] tokens: their rank among the unmasked tokens."""
    if mask is None:
        return np.broadcast_to(np.arange(shape[-1], dtype=np.int64), shape).copy()
    positions = np.clip(np.cumsum(mask, axis=-1) - 1, 0, None)
    return positions[..., -shape[-1] :].reshape(shape)


def _ended(ids: np.ndarray, mask: np.ndarray | None, eos: int) -> np.ndarray:
    """Returns ids in which only the last unmasked token of each row is the end-of-sequence id."""
    ids = np.where(ids == eos, eos - 1 if eos > 0 else 1, ids)
    kept = np.ones_like(ids) if mask is None else mask[:, -ids.shape[1] :]
    last = ids.shape[1] - 1 - np.argmax(kept[:, ::-1], axis=1)
    ids[np.arange(ids.shape[0]), last] = eos
    return ids


def _amount(row: int, available: int) -> int:
    """Returns how many of the available tokens of this row are padding: at least 1 if that leaves one."""
    most = max(available // 2, min(available - 1, 1))
    return 1 + row % most if most > 0 else 0


def _mask_of_shape(shape: tuple[int, ...], binding: Binding) -> np.ndarray:
    """Returns the padding mask of a second input, as a decoder with keys of an encoder has one."""
    return padding_mask(int(np.prod(shape[:-1])), shape[-1], shape[-1], binding.get("padding", "none"))


def _mask_of(entry: Entry, binding: Binding) -> np.ndarray | None:
    """Returns the padding mask of the binding, or None for a model without one."""
    specs = [s for s in entry["inputs"] if s["meaning"] == "attention_mask"]
    if not specs:
        return None
    rows, length = binding["shapes"][specs[0]["name"]]
    ids = [s for s in entry["inputs"] if s["meaning"] == "ids"]
    new_tokens = binding["shapes"][ids[0]["name"]][-1] if ids else length
    return padding_mask(rows, length, new_tokens, binding.get("padding", "none"))
