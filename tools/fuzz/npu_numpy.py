"""What the Ascend nodes compute, in numpy: a second opinion on them, written from the documents of their kernels.

Sources are those that docs/operators.md names for each node: the README and aclnn pages of ops-nn and ops-transformer, the
op protos of CANN 8.1 and the code of the stock ONNX plugins. The rules by which `expand` writes the same nodes in
standard operators (patterns/rules/reference) were not read for it, so that a mistake there is not made here again.

Everything is computed in float64 and rounded to the type of the node's input once. What a kernel's document forbids
(shapes, numbers of inputs, types) raises ContractError. Where a document leaves a value open it is GARBAGE.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

Array = Any
Attributes = dict[str, Any]
GARBAGE = 7.0
TEMPLATE = 2048  # queries and keys of the mask of the compressed modes


class ContractError(ValueError):
    """A call that the kernel's document forbids; a sentence."""


def evaluate(op_type: str, inputs: Sequence[Array | None], attributes: Attributes, outputs: int = 1) -> list[Array]:
    """Returns the first `outputs` outputs of a node."""
    if op_type not in NODES:
        raise ContractError(f"nothing is known of {op_type}")
    # A constant of shape [0] stands for an input that is not there.
    given = [None if x is None or np.shape(x) == (0,) else np.asarray(x) for x in inputs]
    with np.errstate(all="ignore"):
        results = NODES[op_type](list(inputs) if op_type in COUNTED else given, attributes)
    if outputs > len(results):
        raise ContractError(f"{op_type} has {len(results)} outputs, {outputs} are asked for")
    return [np.asarray(r) for r in results[:outputs]]


def require(holds: bool, sentence: str) -> None:
    if not holds:
        raise ContractError(sentence)


def wide(x: Array) -> Array:
    return np.asarray(x).astype(np.float64)


def at(inputs: Sequence[Array | None], index: int) -> Array | None:
    return inputs[index] if index < len(inputs) else None


def sigmoid(x: Array) -> Array:
    return 0.5 * (1.0 + np.tanh(0.5 * x))


def silu(x: Array) -> Array:
    return x * sigmoid(x)


def erf(x: Array) -> Array:
    flat = [math.erf(v) for v in np.asarray(x, np.float64).ravel()]
    return np.asarray(flat, np.float64).reshape(np.shape(x))


def gelu(x: Array) -> Array:
    return 0.5 * x * (1.0 + erf(x / math.sqrt(2.0)))


def gelu_tanh(x: Array) -> Array:
    return 0.5 * x * (1.0 + np.tanh(math.sqrt(2.0 / math.pi) * (x + 0.044715 * x**3)))


def fast_gelu(x: Array) -> Array:
    return x * sigmoid(1.702 * x)


def text(attributes: Attributes, name: str, default: str | None = None) -> str:
    value = attributes.get(name, default)
    require(value is not None, f"{name} must be given")
    return value.decode() if isinstance(value, bytes) else str(value)


# Norms.


def _rms(x: Array, gamma: Array, epsilon: float) -> tuple[Array, Array]:
    rank = gamma.ndim
    require(1 <= rank <= x.ndim and x.shape[x.ndim - rank :] == gamma.shape, f"gamma {gamma.shape} is not the end of x {x.shape}")
    axes = tuple(range(x.ndim - rank, x.ndim))
    rstd = 1.0 / np.sqrt(np.mean(wide(x) ** 2, axis=axes, keepdims=True) + epsilon)
    return (wide(x) * rstd * wide(gamma)).astype(x.dtype), rstd.astype(np.float32)


def _rms_norm(read_epsilon: bool) -> Callable[..., list[Array]]:
    def run(inputs: list[Array], attributes: Attributes) -> list[Array]:
        require(len(inputs) == 2, "RmsNorm has two inputs")
        epsilon = attributes.get("epsilon", 1e-6) if read_epsilon else 1e-6
        return list(_rms(inputs[0], inputs[1], epsilon))

    return run


def _add_rms_norm(read_epsilon: bool) -> Callable[..., list[Array]]:
    def run(inputs: list[Array], attributes: Attributes) -> list[Array]:
        require(len(inputs) == 3, "AddRmsNorm has three inputs")
        x1, x2, gamma = inputs
        require(x1.shape == x2.shape, f"AddRmsNorm adds nothing of another shape: {x1.shape} and {x2.shape}")
        # The precision mode of ATC may bring half and single precision to one type: x1 and x2 alone have to have one here.
        require(x1.dtype == x2.dtype, "AddRmsNorm adds values of one type")
        total = (wide(x1) + wide(x2)).astype(x1.dtype)
        y, rstd = _rms(total, gamma, attributes.get("epsilon", 1e-6) if read_epsilon else 1e-6)
        return [y, rstd, total]

    return run


def _add_rms_norm_quant(inputs: list[Array | None], attributes: Attributes) -> list[Array]:
    """The norm of a sum by one scale and one zero point for each column. It is rounded to the type of x before, as the kernels
    of A2, A3 and 310P do."""
    x1, x2, gamma, scales, second, zeros = (at(inputs, i) for i in range(6))
    require(scales.dtype == np.float32 and scales.shape == gamma.shape and second is None, "a scale of float32 for each column")
    require(zeros is None or (zeros.dtype == np.int32 and zeros.shape == gamma.shape), "a zero point of int32 for each column")
    y, _, total = _add_rms_norm(True)([x1, x2, gamma], attributes)
    codes = np.rint(y.astype(np.float32) / scales + (0 if zeros is None else zeros.astype(np.float32)))
    return [np.clip(codes, -128, 127).astype(np.int8), np.zeros(1, np.int8), total]


def _add_rms_norm_dynamic_quant(inputs: list[Array | None], attributes: Attributes) -> list[Array]:
    """Each row of the norm of a sum by its own range. Neither is rounded before."""
    x1, x2, gamma = inputs
    require(x1.shape == x2.shape and x1.dtype == x2.dtype, "AddRmsNormDynamicQuant adds values of one shape and type")
    total = x1.astype(np.float32) + x2.astype(np.float32)
    codes, scale = _dynamic_quant([_rms(total, gamma, attributes.get("epsilon", 1e-6))[0]], {})
    return [codes, np.zeros(1, np.int8), total.astype(x1.dtype), scale, np.zeros(1, np.float32)]


def _layer(x: Array, axes: tuple[int, ...], gamma: Array | None, beta: Array | None, epsilon: float) -> list[Array]:
    mean = np.mean(wide(x), axis=axes, keepdims=True)
    rstd = 1.0 / np.sqrt(np.mean((wide(x) - mean) ** 2, axis=axes, keepdims=True) + epsilon)
    y = (wide(x) - mean) * rstd
    y = y if gamma is None else y * wide(gamma)
    y = y if beta is None else y + wide(beta)
    return [y.astype(x.dtype), mean.astype(np.float32), rstd.astype(np.float32)]


def _layer_norm_v4(inputs: list[Array], attributes: Attributes) -> list[Array]:
    x, shape = inputs[0], tuple(int(n) for n in np.asarray(inputs[1]))
    rank = len(shape)
    require(x.shape[x.ndim - rank :] == shape, f"normalized_shape {shape} is not the end of x {x.shape}")
    for one in (at(inputs, 2), at(inputs, 3)):
        require(one is None or one.shape == shape, "gamma and beta have normalized_shape")
    return _layer(x, tuple(range(x.ndim - rank, x.ndim)), at(inputs, 2), at(inputs, 3), attributes.get("epsilon", 1e-5))


def _add_layer_norm(inputs: list[Array], attributes: Attributes) -> list[Array]:
    x1, x2, gamma, beta = inputs[:4]
    require(x1.shape == x2.shape, f"AddLayerNorm adds nothing of another shape: {x1.shape} and {x2.shape}")
    total = (wide(x1) + wide(x2)).astype(x1.dtype)
    rank = gamma.ndim
    require(gamma.shape == beta.shape == total.shape[total.ndim - rank :], "gamma and beta are the end of x")
    y, mean, rstd = _layer(total, tuple(range(total.ndim - rank, total.ndim)), gamma, beta, attributes.get("epsilon", 1e-5))
    return [y, mean, rstd, total if attributes.get("additional_output", 0) else np.full_like(total, GARBAGE)]


def _group_norm(with_silu: bool) -> Callable[..., list[Array]]:
    def run(inputs: list[Array], attributes: Attributes) -> list[Array]:
        x, groups = inputs[0], attributes.get("num_groups", attributes.get("group", 0))
        require(groups > 0 and x.ndim >= 2 and x.shape[1] % groups == 0, f"{groups} groups of x {x.shape}")
        epsilon = attributes.get("eps", 1e-5)
        parts = wide(x).reshape(x.shape[0], groups, -1) if x.size else wide(x).reshape(x.shape[0], groups, 0)
        mean = parts.mean(-1, keepdims=True)
        rstd = 1.0 / np.sqrt(((parts - mean) ** 2).mean(-1, keepdims=True) + epsilon)
        y = ((parts - mean) * rstd).reshape(x.shape)
        column = (-1, *[1] * (x.ndim - 2))
        for one, join in ((at(inputs, 1), np.multiply), (at(inputs, 2), np.add)):
            if one is not None:
                require(one.shape == (x.shape[1],), "gamma and beta have one element a channel")
                y = join(y, wide(one).reshape(column))
        y = silu(y) if with_silu else y
        return [y.astype(x.dtype), mean[..., 0].astype(x.dtype), rstd[..., 0].astype(x.dtype)]

    return run


# Activations and gates.


def _elementwise(function: Callable[[Array], Array]) -> Callable[..., list[Array]]:
    def run(inputs: list[Array], attributes: Attributes) -> list[Array]:
        require(len(inputs) == 1, "one input")
        return [function(wide(inputs[0])).astype(inputs[0].dtype)]

    return run


def _gelu_v2(inputs: list[Array], attributes: Attributes) -> list[Array]:
    form = text(attributes, "approximate", "none")
    require(form in ("none", "tanh"), f"approximate is none or tanh, not {form}")
    return [(gelu if form == "none" else gelu_tanh)(wide(inputs[0])).astype(inputs[0].dtype)]


def _swish(inputs: list[Array], attributes: Attributes) -> list[Array]:
    x = wide(inputs[0])
    return [(x * sigmoid(attributes.get("scale", 1.0) * x)).astype(inputs[0].dtype)]


def _halves(x: Array, dim: int) -> tuple[Array, Array]:
    require(-x.ndim <= dim < x.ndim and x.shape[dim] % 2 == 0, f"axis {dim} of {x.shape} has no halves")
    first, second = np.split(wide(x), 2, axis=dim)
    return first, second


def _swiglu(inputs: list[Array], attributes: Attributes) -> list[Array]:
    first, second = _halves(inputs[0], attributes.get("dim", -1))
    return [(silu(first) * second).astype(inputs[0].dtype)]


def _geglu_stock(inputs: list[Array], attributes: Attributes) -> list[Array]:
    """The stock plugin reads no attribute: the second half is activated, by tanh."""
    first, second = _halves(inputs[0], -1)
    active = gelu_tanh(second)
    return [(first * active).astype(inputs[0].dtype), active.astype(inputs[0].dtype)]


def _geglu_v2(inputs: list[Array], attributes: Attributes) -> list[Array]:
    first, second = _halves(inputs[0], attributes.get("dim", -1))
    function = gelu_tanh if attributes.get("approximate", 1) else gelu
    left = bool(attributes.get("activate_left", 0))
    active = function(first if left else second)
    return [(active * (second if left else first)).astype(inputs[0].dtype), active.astype(inputs[0].dtype)]


# Rotary.


def _turned(x: Array, mode: int) -> Array:
    width = x.shape[-1]
    require(width % (4 if mode == 2 else 2) == 0, f"width {width} cannot be rotated")
    if mode == 0:
        first, second = np.split(x, 2, -1)
        return np.concatenate([-second, first], -1)
    if mode == 1:
        return np.stack([-x[..., 1::2], x[..., 0::2]], -1).reshape(x.shape)
    if mode == 2:
        a, b, c, d = np.split(x, 4, -1)
        return np.concatenate([-b, a, -d, c], -1)
    raise ContractError(f"no rotary mode {mode}")


def _rotated(x: Array, cos: Array, sin: Array, mode: int) -> Array:
    require(x.ndim in (3, 4), f"rotary wants three or four axes, not {x.shape}")
    require(cos.shape == sin.shape and cos.ndim == x.ndim, f"tables {cos.shape} and {sin.shape} of x {x.shape}")
    require(cos.shape[-1] == x.shape[-1], f"tables are {cos.shape[-1]} wide and x {x.shape[-1]}")
    require(all(c in (1, n) for c, n in zip(cos.shape, x.shape)), f"tables {cos.shape} do not broadcast to x {x.shape}")
    require(x.dtype == cos.dtype == sin.dtype, "rotary wants one type")
    if mode == 3:
        h = np.concatenate([wide(x)[..., 0::2], wide(x)[..., 1::2]], -1)
        return (h * wide(cos) + _turned(h, 0) * wide(sin)).astype(x.dtype)
    return (wide(x) * wide(cos) + _turned(wide(x), mode) * wide(sin)).astype(x.dtype)


def _rotary_mul(inputs: list[Array], attributes: Attributes) -> list[Array]:
    require(len(inputs) == 3, "RotaryMul has three inputs")
    return [_rotated(*inputs, 0)]


def _rotary_position(inputs: list[Array], attributes: Attributes) -> list[Array]:
    require("mode" in attributes, "mode must be given")
    return [_rotated(*inputs[:3], int(attributes["mode"]))]


def _apply_rotary(inputs: list[Array], attributes: Attributes) -> list[Array]:
    query, key, cos, sin = inputs
    require(attributes.get("layout", 1) == 1, "layout 1 alone is read by 8.1")
    for x in (query, key):
        require(x.ndim == 4 and x.shape[:2] == query.shape[:2], "query and key are [batch, tokens, heads, width]")
        require(cos.ndim == 4 and cos.shape[:2] == x.shape[:2] and cos.shape[2] == 1, f"tables {cos.shape} have one head and the rows of {x.shape}")
    return [_rotated(query, cos, sin, 0), _rotated(key, cos, sin, 0)]


def _interleave_rope(inputs: list[Array], attributes: Attributes) -> list[Array]:
    x, cos, sin = inputs
    require(x.ndim == 4 and x.shape[-1] == 64, f"InterleaveRope takes heads of 64, not {x.shape}")
    require(cos.shape[0] == x.shape[0] and cos.shape[1] == 1, f"tables {cos.shape} have the batch of {x.shape} and one head")
    return [_rotated(x, cos, sin, 3)]


# Attention.


def _softmax(scores: Array) -> Array:
    if scores.shape[-1] == 0:
        return scores
    shifted = np.exp(scores - scores.max(-1, keepdims=True))
    return shifted / shifted.sum(-1, keepdims=True)


def _visible(mode: int, queries: int, keys: int, pre: int, following: int, mask: Array | None) -> Array:
    """Which keys a query sees, [queries, keys] or with leading axes."""
    i, j = np.arange(queries)[:, None], np.arange(keys)[None]
    if mode in (2, 3, 4):
        require(mask is not None and mask.shape in ((TEMPLATE, TEMPLATE), (1, TEMPLATE, TEMPLATE), (1, 1, TEMPLATE, TEMPLATE)),
                f"sparse_mode {mode} wants the mask of {TEMPLATE} x {TEMPLATE}")
        require(np.array_equal(np.asarray(mask).reshape(TEMPLATE, TEMPLATE) != 0, np.triu(np.ones((TEMPLATE, TEMPLATE), bool), 1)),
                "the mask of a compressed mode is what lies above the diagonal")
        offset = 0 if mode == 2 else keys - queries
        if mode in (2, 3):
            return j <= i + offset
        return (j <= i + offset + following) & (j >= i + offset - pre)
    if mask is None:
        require(mode != 1, "sparse_mode 1 wants a mask")
        return np.ones((queries, keys), bool)
    require(mask.dtype in (np.dtype(bool), np.dtype(np.int8), np.dtype(np.uint8)), f"a mask of {mask.dtype}")
    require(mask.ndim in (2, 3, 4) and mask.shape[-2] >= queries and mask.shape[-1] >= keys, f"mask {mask.shape} of {queries} x {keys}")
    require(mask.ndim < 4 or mask.shape[1] == 1, f"a mask has no axis of heads: {mask.shape}")
    kept = mask[..., :queries, :keys] == 0
    if kept.ndim == 3:
        kept = kept[:, None]
    if mode == 0:
        kept = kept & (j <= i + following) & (j >= i - pre)
    return kept


def _attend(q: Array, k: Array, v: Array, scale: float, pse: Array | None, visible: Array, corrected: bool, lengths: Array | None) -> Array:
    """[batch, heads, queries, width]; k and v may have fewer heads."""
    batch, heads, queries, _ = q.shape
    require(k.shape[:3] == v.shape[:3], f"keys {k.shape} and values {v.shape}")
    require(k.shape[0] == batch and k.shape[3] == q.shape[3], f"queries {q.shape} and keys {k.shape}")
    require(k.shape[1] > 0 and heads % k.shape[1] == 0, f"{heads} heads share {k.shape[1]} of keys")
    k, v = np.repeat(wide(k), heads // k.shape[1], 1), np.repeat(wide(v), heads // v.shape[1], 1)
    keys = k.shape[2]
    scores = np.matmul(wide(q), np.swapaxes(k, -1, -2)) * scale
    if pse is not None:
        require(pse.ndim == 4 and pse.shape[0] in (1, batch) and pse.shape[1] == heads, f"pse_shift {pse.shape} of {heads} heads")
        require(pse.shape[2] >= queries and pse.shape[3] >= keys and pse.dtype == q.dtype, f"pse_shift {pse.shape} {pse.dtype}")
        scores = scores + wide(pse)[:, :, :queries, :keys]
    if visible.ndim == 4:
        require(visible.shape[0] in (1, batch), f"a mask of {visible.shape[0]} rows, batch {batch}")
    visible = np.broadcast_to(visible, scores.shape)
    if lengths is not None:
        visible = visible & (np.arange(keys)[None, None, None] < np.broadcast_to(lengths, (batch,))[:, None, None, None])
    if keys == 0:
        return np.zeros((batch, heads, queries, v.shape[3]))
    some = visible.any(-1, keepdims=True)
    y = np.matmul(_softmax(np.where(visible, scores, np.where(some, -np.inf, 0.0))), v)
    return np.where(some, y, 0.0 if corrected else GARBAGE)


def _split_heads(x: Array, heads: int) -> Array:
    require(x.ndim == 3 and x.shape[2] % heads == 0, f"{heads} heads of {x.shape}")
    return x.reshape(*x.shape[:2], heads, x.shape[2] // heads).transpose(0, 2, 1, 3) if x.size else np.zeros(
        (x.shape[0], heads, x.shape[1], x.shape[2] // heads), x.dtype)


def _prompt(inputs: list[Array | None], attributes: Attributes, scale: float) -> list[Array]:
    q, k, v = inputs[:3]
    require(q.dtype == k.dtype == v.dtype, "query, key and value have one type")
    layout, heads = text(attributes, "input_layout"), attributes.get("num_heads")
    require(isinstance(heads, int) and heads > 0, "num_heads must be given")
    groups = attributes.get("num_key_value_heads", 0) or heads
    require(heads % groups == 0, f"{heads} heads, {groups} of keys")
    if layout == "BSH":
        qs, ks, vs = _split_heads(q, heads), _split_heads(k, groups), _split_heads(v, groups)
    else:
        require(q.ndim == k.ndim == v.ndim == 4, f"layout {layout} has four axes")
        require(layout in ("BSND", "BNSD", "BNSD_BSND"), f"layout {layout}")
        qs, ks, vs = (np.swapaxes(x, 1, 2) if layout == "BSND" else x for x in (q, k, v))
        require(qs.shape[1] == heads, f"num_heads {heads} of query {q.shape} in {layout}")
        require(ks.shape[1] == groups, f"num_key_value_heads {groups} of key {k.shape} in {layout}")
    queries, keys = qs.shape[2], ks.shape[2]
    mode, precise = attributes.get("sparse_mode", 0), attributes.get("inner_precise", 1)
    mask = at(inputs, 4)
    visible = _visible(mode, queries, keys, attributes["pre_tokens"], attributes["next_tokens"], mask)
    corrected = bool(precise & 2) or (mode == 3 and queries > keys)
    y = _attend(qs, ks, vs, scale, at(inputs, 3), visible, corrected, at(inputs, 6))
    if layout in ("BSND", "BNSD_BSND"):
        y = np.swapaxes(y, 1, 2)
    elif layout == "BSH":
        y = np.swapaxes(y, 1, 2).reshape(q.shape[0], queries, heads * vs.shape[3])
    return [y.astype(q.dtype)]


def _prompt_stock(inputs: list[Array | None], attributes: Attributes) -> list[Array]:
    require(len(inputs) in (3, 5, 7, 9, 12), f"the plugin reads 3, 5, 7, 9 or 12 inputs, not {len(inputs)}")
    require(all(x is not None for x in inputs), "the plugin wants every input connected")
    empty = [np.shape(x) == (0,) for x in inputs]
    if len(inputs) > 3:
        require(np.asarray(inputs[3]).dtype == np.asarray(inputs[0]).dtype, "pse_shift has the type of the query, empty or not")
    given = [None if none else np.asarray(x) for x, none in zip(inputs, empty)]
    return _prompt(given, {"pre_tokens": 0, "next_tokens": 0, **attributes}, attributes.get("scale_value", 1.0))


def _prompt_direct(inputs: list[Array | None], attributes: Attributes) -> list[Array]:
    most = 2147483647
    require(len(inputs) <= 5, "query, key, value, pse_shift, atten_mask")
    return _prompt(inputs, {"pre_tokens": most, "next_tokens": most, **attributes}, attributes.get("scale_value", 1.0))


def _fused_infer(inputs: list[Array | None], attributes: Attributes) -> list[Array]:
    """An input that is not given is left out: a constant without elements is none here."""
    most = 2147483647
    require(not any(x is not None and np.shape(x) == (0,) for x in inputs), "no empty tensor stands for an input")
    given = [None if x is None else np.asarray(x) for x in inputs]
    y = _prompt(given, {"pre_tokens": most, "next_tokens": most, **attributes}, attributes.get("scale", 1.0))[0]
    return [y, np.zeros((1,), np.float32)]


def _scaled_masked_softmax(inputs: list[Array | None], attributes: Attributes) -> list[Array]:
    x, mask = inputs[0], at(inputs, 1)
    require(attributes.get("fixed_triu_mask", 0) == 0, "only fixed_triu_mask = 0 works")
    scores = wide(x) * attributes.get("scale", 1.0)
    if mask is not None:
        require(mask.dtype == np.dtype(bool), f"a mask of {mask.dtype}")
        require(mask.ndim == x.ndim and all(m in (1, n) for m, n in zip(mask.shape, x.shape)), f"mask {mask.shape} of {x.shape}")
        require(mask.shape[-2:] == x.shape[-2:], f"mask {mask.shape} of {x.shape}: the last two axes are whole")
        full = np.broadcast_to(mask, scores.shape)
        some = ~full.all(-1, keepdims=True)
        scores = np.where(full, np.where(some, -np.inf, 0.0), scores)
    return [_softmax(scores).astype(x.dtype)]


# Products.


def _fused_matmul(inputs: list[Array | None], attributes: Attributes) -> list[Array]:
    x1, x2, bias = inputs[0], inputs[1], at(inputs, 2)
    kind = text(attributes, "fused_op_type", "")
    require(kind in ("", "relu", "gelu_erf", "gelu_tanh"), f"fused_op_type {kind}")
    if kind.startswith("gelu"):
        require(bias is None and x1.ndim == x2.ndim == 2, "gelu takes matrices, and no bias")
    require(2 <= x1.ndim <= 6 and x1.shape[:-2] == x2.shape[:-2] or x2.ndim == 2, "no batch is broadcast")
    y = np.matmul(wide(x1), wide(x2))
    if bias is not None:
        require(bias.shape == (x2.shape[-1],), f"bias {bias.shape}")
        y = y + wide(bias)
    functions = {"": lambda a: a, "relu": lambda a: np.maximum(a, 0.0), "gelu_erf": gelu, "gelu_tanh": gelu_tanh}
    return [functions[kind](y).astype(x1.dtype)]


# Quantised.


def _read_scale(words: Array) -> Array:
    """The float32 of a scale of uint64, of which fixpipe reads 19 bits (quant/trans_quant_param_v2/README.md)."""
    require(words.dtype == np.uint64 and words.ndim == 1, "a scale is uint64 [1] or [N]")
    return (words & np.uint64(0xFFFFE000)).astype(np.uint32).view(np.float32)


def _quant_batch_matmul(inputs: list[Array | None], attributes: Attributes) -> list[Array]:
    x1, x2, scale, offset, bias = (at(inputs, i) for i in range(5))
    require(x1.dtype == np.int8 and x2.dtype == np.int8, "both factors are int8")
    of_rows = at(inputs, 5)
    require(offset is None, "no offset for results that are not int8")
    columns = x2.T if attributes.get("transpose_x2", 0) == 1 else x2
    require(x1.shape[-1] == columns.shape[0] and x1.shape[-1] <= 65535 and x2.shape[-1] <= 65535, "dims of both factors")
    sums = np.matmul(x1.astype(np.int64), columns.astype(np.int64))
    if bias is not None:
        require(bias.dtype == np.int32 and bias.shape == (columns.shape[1],), "the bias is int32 [N]")
        sums = sums + bias
    kind = attributes.get("dtype", 1)
    if kind == 3:
        return [sums.astype(np.int32)]
    require(kind == 1 and scale.shape[0] in (1, columns.shape[1]), f"dtype {kind} and scale {scale.shape}")
    if of_rows is not None:
        require(scale.dtype == np.float32 and of_rows.dtype == np.float32 and of_rows.ndim == 1, "scales of float32")
        require(of_rows.shape[0] == 1 or (x1.ndim == 2 and of_rows.shape[0] == x1.shape[0]), f"{of_rows.shape} scales of rows")
        return [(sums * scale.astype(np.float64) * of_rows.astype(np.float64)[:, None]).astype(np.float16)]
    return [(sums * _read_scale(scale).astype(np.float64)).astype(np.float16)]


def _dynamic_quant(inputs: list[Array | None], attributes: Attributes) -> list[Array]:
    """Each row by its own range, symmetric; rows of zeros have codes of 0."""
    (x,) = inputs
    wide = x.astype(np.float32)
    scale = (np.abs(wide).max(axis=-1) / np.float32(127)).astype(np.float32)
    divisor = np.where(scale == 0, np.float32(1), scale)[..., None]
    return [np.clip(np.rint(wide / divisor), -128, 127).astype(np.int8), scale]


def _weight_quant_batch_matmul(inputs: list[Array | None], attributes: Attributes) -> list[Array]:
    """x times (weight + offset) * scale; int4 in eights in int32, the first one in the lowest bits."""
    x, weight, scale, offset = (at(inputs, i) for i in range(4))
    require(attributes.get("dtype", -1) == -1, "the result has the type of x")
    if weight.dtype == np.int32:
        fours = (weight.astype(np.int64)[..., None] >> (4 * np.arange(8))) & 15
        weight = np.where(fours > 7, fours - 16, fours).reshape(weight.shape[0], -1)
    else:
        require(weight.dtype == np.int8, f"a weight of {weight.dtype}")
    rows, columns = weight.shape
    group = attributes.get("antiquant_group_size", 0)
    require(x.ndim == 2 and x.shape[1] == rows and rows <= 65535 and columns <= 65535, f"x {x.shape} and a weight of {weight.shape}")
    require(group == 0 or (group % 32 == 0 and rows % group == 0), f"groups of {group} rows of {rows}")
    groups = rows // group if group else 1
    for name, each in (("scale", scale), ("offset", offset)):
        require(each is None or (each.dtype == x.dtype and np.size(each) == groups * columns), f"{name} {None if each is None else each.shape}")

    def spread(each: Array) -> Array:
        return np.repeat(wide(each).reshape(groups, columns), rows // groups, axis=0)

    whole = wide(weight) + (0.0 if offset is None else spread(offset))
    return [np.matmul(wide(x), whole * spread(scale)).astype(x.dtype)]


def _quantize(inputs: list[Array | None], attributes: Attributes) -> list[Array]:
    x, scale, zero = inputs[0], inputs[1], at(inputs, 2)
    require(attributes.get("dtype") == 2 and scale.dtype == np.float32 and scale.shape == (1,), "int8, with one scale of float32")
    y = np.rint(x.astype(np.float32) / scale + (0 if zero is None else zero.astype(np.float32)))
    return [np.clip(y, -128, 127).astype(np.int8)]


def _weight_turned(inputs: list[Array | None], attributes: Attributes) -> list[Array]:
    """x times (weight + offset) * scale, of each row of the weight."""
    x, weight, scale, offset = (at(inputs, i) for i in range(4))
    require(weight.dtype == np.int8 and scale.shape == weight.shape[:1], "a weight of int8 and a scale for each row")
    numbers = weight.astype(np.float64) + (0 if offset is None else offset.astype(np.float64)[:, None])
    return [(x.astype(np.float64) @ (numbers * scale.astype(np.float64)[:, None]).T).astype(x.dtype)]


def _ascend_quant(inputs: list[Array | None], attributes: Attributes) -> list[Array]:
    half = np.float16
    y = np.rint(half(half(inputs[0].astype(half) * half(attributes.get("scale", 0.0))) + half(attributes.get("offset", 0.0))))
    return [np.clip(y, -128, 127).astype(np.int8)]


def _of_ge_type(y: Array, attributes: Attributes) -> Array:
    kind = attributes.get("dtype", 0)
    require(kind in (0, 1), f"dtype {kind}")
    return y.astype(np.float16).astype(np.float16 if kind == 1 else np.float32)


def _ascend_dequant(inputs: list[Array | None], attributes: Attributes) -> list[Array]:
    scale = _read_scale(inputs[1]).astype(np.float64)
    require(inputs[0].dtype == np.int32, "sums are int32")
    channels = inputs[0].ndim - 1 if inputs[0].ndim != 4 else 1
    shape = [-1 if i == channels else 1 for i in range(inputs[0].ndim)] if scale.size > 1 else [1]
    y = inputs[0] * scale.reshape(shape)
    return [_of_ge_type(np.maximum(y, 0) if attributes.get("relu_flag", 0) else y, attributes)]


def _ascend_anti_quant(inputs: list[Array | None], attributes: Attributes) -> list[Array]:
    half = np.float16
    y = half(half(inputs[0].astype(half) - half(attributes.get("offset", 0.0))) * half(attributes.get("scale", 0.0)))
    return [_of_ge_type(y, attributes)]


NODES: dict[str, Callable[..., list[Array]]] = {
    "QuantBatchMatMul": _quant_batch_matmul, "NPUQuantBatchMatMul": _quant_batch_matmul, "NPUWeightQuantBatchMatmulTurned": _weight_turned,
    "WeightQuantBatchMatmulV2": _weight_quant_batch_matmul,
    "NPUWeightQuantBatchMatmulV2": _weight_quant_batch_matmul, "NPUQuantize": _quantize, "NPUDynamicQuant": _dynamic_quant, "AscendQuant": _ascend_quant,
    "AscendDequant": _ascend_dequant, "AscendAntiQuant": _ascend_anti_quant,
    "NPURmsNorm": _rms_norm(False), "NPURmsNormWithEpsilon": _rms_norm(True), "NPUAddRmsNorm": _add_rms_norm(False),
    "NPUAddRmsNormQuant": _add_rms_norm_quant, "NPUAddRmsNormDynamicQuant": _add_rms_norm_dynamic_quant,
    "NPUAddRmsNormWithEpsilon": _add_rms_norm(True), "NPULayerNormV4": _layer_norm_v4,
    "NPUAddLayerNorm": _add_layer_norm, "NPUGroupNormSilu": _group_norm(True), "NPUGroupNorm": _group_norm(False),
    "NPUFastGelu": _elementwise(fast_gelu), "NPUGelu": _elementwise(gelu_tanh), "NPUGeluV2": _gelu_v2,
    "NPUMish": _elementwise(lambda x: x * np.tanh(np.logaddexp(0.0, x))), "NPUSwish": _swish, "NPUSwiGlu": _swiglu, "NPUGeglu": _geglu_stock,
    "NPUGeGluV2": _geglu_v2, "NPURotaryMul": _rotary_mul, "NPURotaryPositionEmbedding": _rotary_position,
    "NPUApplyRotaryPosEmb": _apply_rotary, "NPUInterleaveRope": _interleave_rope,
    "NPUPromptFlashAttention": _prompt_stock, "NPUPromptFlashAttentionDirect": _prompt_direct, "NPUFusedInferAttentionScore": _fused_infer,
    "NPUScaledMaskedSoftmax": _scaled_masked_softmax, "NPUFusedMatMul": _fused_matmul,
}
# Nodes whose number of inputs counts, and for which an empty constant is not the same as none.
COUNTED = {"NPUPromptFlashAttention", "NPUFusedInferAttentionScore"}
