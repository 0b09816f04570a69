"""Inputs for a model nobody described: what each graph input means, and shapes to try.

The guess reads names, element types, ranks and, for token ids, the embedding table that the ids
index. It gives an entry of the form `ascend_fuse.inputs.make_inputs` takes, with a few meanings
more, and a list of bindings: B = 2 and others, query and key lengths that differ, rows padded on
the left, on the right and not at all.
"""

from __future__ import annotations

import ast
import collections
import zlib
from typing import Any, Dict

import numpy as np
import onnx
from onnx import numpy_helper

from ascend_fuse import inputs as known_inputs

Entry = Dict[str, Any]
Binding = Dict[str, Any]

# Meanings that ascend_fuse.inputs does not know: generated here.
EXTRA_MEANINGS = ("cache_position", "keep_mask", "additive_mask", "flag", "count", "integers")

# Numpy names of the element types a model's inputs can have here.
_DTYPES = {
    1: "float32",
    2: "uint8",
    3: "int8",
    5: "int16",
    6: "int32",
    7: "int64",
    9: "bool",
    10: "float16",
    11: "float64",
}

# Operators that pass ids on without changing what they index.
_TRANSPARENT = {
    "Cast",
    "Identity",
    "Reshape",
    "Unsqueeze",
    "Squeeze",
    "Flatten",
    "Slice",
    "Clip",
    "Expand",
    "Transpose",
    "Where",
}


class CannotGuess(ValueError):
    """Raised with a sentence about the input that cannot be generated."""


def guess_entry(model) -> Entry:
    """Returns the description of an `onnx.ModelProto` (weights need not be loaded)."""
    initializers = {t.name: list(t.dims) for t in model.graph.initializer}
    constants = {n.output[0] for n in model.graph.node if n.op_type == "Constant" and n.output}
    specs = []
    for value in model.graph.input:
        if value.name in initializers:
            continue
        tensor = value.type.tensor_type
        if not value.type.HasField("tensor_type") or tensor.elem_type not in _DTYPES:
            raise CannotGuess(f"input '{value.name}' is not a tensor of a type that can be generated")
        shape: list[int | str] = []
        for axis, dim in enumerate(tensor.shape.dim):
            if dim.HasField("dim_value") and dim.dim_value >= 0:
                shape.append(dim.dim_value)
            else:  # some exporters write -1 for a dim that is not known
                shape.append(dim.dim_param or _unnamed(value.name, axis))
        spec = {"name": value.name, "dtype": _DTYPES[tensor.elem_type], "shape": shape}
        spec.update(_meaning(spec, model.graph, initializers, constants))
        specs.append(spec)
    return {"id": model.graph.name or "model", "inputs": specs}


def guess_bindings(entry: Entry) -> list[Binding]:
    """Returns bindings to try: several for symbolic shapes, one per kind of padding for static ones."""
    symbols = _symbol_roles(entry)
    has_mask = any(s["meaning"] == "attention_mask" for s in entry["inputs"])
    has_past = any(s["meaning"] == "past" for s in entry["inputs"])
    paddings = ["left", "none", "right"] if has_mask else ["none"]
    plans = []
    if symbols:
        # batch, new tokens, past tokens, other text; S_q and S_kv differ wherever there is a past.
        sizes = [(2, 5, 3, 7), (2, 4, 6, 9), (1, 3, 5, 6), (3, 6, 2, 8)]
        if has_past:
            sizes.append((2, 1, 7, 5))  # a decode step
        fixed = _fixed_sizes(entry)
        for number, (batch, seq, past, other) in enumerate(sizes):
            plan = {"batch": batch, "seq": seq, "past": past, "encoder": other}
            plan.update({role: size for role, size in fixed.items() if role in plan})
            plan["total"] = fixed.get("total", plan["past"] + plan["seq"] if has_past else plan["seq"])
            plan["padding"] = paddings[number % len(paddings)]
            if plan not in plans:
                plans.append(plan)
    else:
        plans = [{"padding": padding} for padding in paddings]
    bindings = []
    for number, plan in enumerate(plans):
        shapes = bind(entry, {name: _size(role, plan) for name, role in symbols.items()})
        text = "_".join(
            f"{key[0]}{plan[key]}"
            for key in ("batch", "seq", "past")
            if key in plan and (key != "past" or has_past)
        )
        name = "_".join(
            part
            for part in (
                text or "static",
                f"{plan['padding'].replace('none', 'no')}_padding" if has_mask else "",
            )
            if part
        )
        bindings.append({"name": name, "shapes": shapes, "padding": plan["padding"], "seed": number + 1})
    return bindings


def alternatives(entry: Entry, binding: Binding, model: onnx.ModelProto):
    """Yields bindings to try when `model` refuses `binding`: batch 1, rounder sizes, a sound long enough for
    convolutions, and the sizes that a trace made constant."""
    symbols = _symbol_roles(entry)
    if not symbols:
        return
    values = _values(entry, binding["shapes"])
    for changes, word in (
        ({"batch": 1}, "batch 1"),
        ({"other": 8}, "other dims 8"),
        ({"other": 32}, "other dims 32"),
        ({"other": 64, "height": 64, "width": 64}, "other dims 64"),
        ({"other": 224, "height": 224, "width": 224}, "other dims 224"),
        ({} if any(s["meaning"] == "ids" for s in entry["inputs"]) else {"seq": 2048, "other": 2048}, "length 2048"),
        *(({"batch": a, "seq": b, "total": b}, f"batch {a}, length {b}, as traced") for a, b in traced_sizes(model)),
    ):
        changed = dict(values)
        for name, role in symbols.items():
            kind = role.split(":")[0]
            if kind in changes:
                changed[name] = changes[kind]
        if changed != values:
            yield {**binding, "name": f"{binding['name']} ({word})", "shapes": bind(entry, changed)}
    for size in constant_sizes(model):
        for kept in ("batch", ""):  # all dims but the batch, then all
            changed = {name: value if symbols.get(name) == kept else size for name, value in values.items()}
            yield {**binding, "name": f"{binding['name']} (dims {size}, as constants have them)", "shapes": bind(entry, changed)}


def constant_sizes(model: onnx.ModelProto) -> list[int]:
    """Returns dims of the constants that are added, multiplied or chosen elementwise, the commonest first: a mask or a bias of
    a fixed size leaves one size only."""
    read = {name for node in model.graph.node if node.op_type in ("Add", "Mul", "Sub", "Div", "Where") for name in node.input}
    dims = [list(t.dims) for t in model.graph.initializer if t.name in read]
    dims += [list(node.attribute[0].t.dims) for node in model.graph.node
             if node.op_type == "Constant" and node.output[0] in read and node.attribute and node.attribute[0].HasField("t")]
    sizes = collections.Counter(size for shape in dims if len(shape) > 1 for size in shape[-2:] if 1 < size <= 4096)
    return [size for size, _ in sizes.most_common(4)]


def within(entry: Entry, binding: Binding, dims) -> Binding:
    """Returns the binding with sizes that --dim allows: "seq=8", "seq=1..2048", "seq=16..2048:16", "keys=seq"."""
    values = _values(entry, binding["shapes"])
    equal = {}
    for text in dims:
        name, _, size = text.partition("=")
        if name not in values:
            continue
        if not size[:1].isdigit():
            equal[name] = size
            continue
        limits, _, step = size.partition(":")
        low, _, high = limits.partition("..")
        value = min(max(values[name], int(low)), int(high or low))
        step = int(step or 1)
        values[name] = value if value % step == 0 else min(-(-value // step) * step, int(high or low) // step * step)
    for name, other in equal.items():
        values[name] = values.get(other, values[name])
    shapes = bind(entry, values)
    name = binding["name"] if shapes == binding["shapes"] else f"{binding['name']} ({', '.join(dims)})"
    return {**binding, "name": name, "shapes": shapes}


def traced_sizes(model: onnx.ModelProto) -> list[tuple[int, int]]:
    """Returns what constant shapes of Reshapes begin with, the commonest first: where an exporter's trace made them
    constant, those are the only batch and length that a model takes, whatever its inputs say."""
    constants = {t.name: t for t in model.graph.initializer}
    for node in model.graph.node:
        if node.op_type == "Constant" and node.attribute and node.attribute[0].HasField("t"):
            constants[node.output[0]] = node.attribute[0].t
    pairs: collections.Counter[tuple[int, int]] = collections.Counter()
    for node in model.graph.node:
        shape = constants.get(node.input[1]) if node.op_type == "Reshape" else None
        if shape is None or shape.data_location == onnx.TensorProto.EXTERNAL:
            continue
        dims = [int(d) for d in numpy_helper.to_array(shape).ravel()]
        if len(dims) >= 3 and dims[0] > 0 and dims[1] > 0:
            pairs[dims[0], dims[1]] += 1
    return [pair for pair, _ in pairs.most_common(4)]


def make_inputs(entry: Entry, binding: Binding) -> dict[str, np.ndarray]:
    """Like `ascend_fuse.inputs.make_inputs`, with the meanings of EXTRA_MEANINGS as well, and with inputs whose elements the binding
    gives: "values": {"speed": 1.5}."""
    plain = {**entry, "inputs": [s for s in entry["inputs"] if s["meaning"] not in EXTRA_MEANINGS]}
    arrays = known_inputs.make_inputs(plain, binding)
    seed = int(binding.get("seed", 0))
    past = _length(entry, binding, "past", 2)
    result = {}
    for spec in entry["inputs"]:
        name, meaning = spec["name"], spec["meaning"]
        if name in arrays:
            result[name] = arrays[name]
            continue
        shape = tuple(int(d) for d in binding["shapes"][name])
        dtype = np.dtype(spec["dtype"])
        rng = np.random.default_rng([seed, zlib.crc32(name.encode())])
        if meaning == "cache_position":
            value = past + np.arange(int(np.prod(shape))).reshape(shape)
        elif meaning in ("keep_mask", "additive_mask"):
            queries, keys = shape[-2], shape[-1]
            keep = np.tril(np.ones((queries, keys), dtype=bool), k=keys - queries)
            keep = np.broadcast_to(keep, shape)
            if meaning == "keep_mask":
                value = keep
            else:
                value = np.where(keep, 0.0, float(np.finfo(dtype).min))
        elif meaning == "flag":
            value = np.ones(shape, dtype=bool)
        elif meaning == "count":
            value = np.full(shape, past + _length(entry, binding, "ids", 1))
        else:
            value = rng.integers(0, 3, shape)
        result[name] = np.asarray(value).astype(dtype)
    for name, value in binding.get("values", {}).items():
        result[name] = np.broadcast_to(np.asarray(value, result[name].dtype), result[name].shape).copy()
    return result


def bind(entry: Entry, values: dict[str, int]) -> dict[str, list[int]]:
    """Returns the shape of every input when each symbol has its value; expressions are computed."""
    return {
        s["name"]: [d if isinstance(d, int) else _evaluate(d, values) for d in s["shape"]]
        for s in entry["inputs"]
    }


def _unnamed(name: str, axis: int) -> str:
    """Returns what a dim without a name is called here."""
    return f"{name}.axis{axis}"


def _meaning(spec, graph, initializers, constants) -> dict[str, Any]:
    name, dtype, rank = spec["name"].lower(), spec["dtype"], len(spec["shape"])
    integer = dtype.startswith(("int", "uint"))
    if "mask" in name:
        if rank <= 2:
            return {"meaning": "attention_mask"} if rank == 2 else {"meaning": "integers"}
        return {"meaning": "additive_mask" if dtype.startswith("float") else "keep_mask"}
    if "cache_position" in name:
        return {"meaning": "cache_position"}
    if integer and any(word in name for word in ("position", "pos_ids")):
        return {"meaning": "position_ids"}
    if (
        not integer
        and dtype != "bool"
        and rank >= 3
        and any(word in name for word in ("past", "cache", "key_values", "present", "cross"))
    ):
        return {"meaning": "past"}
    if dtype == "bool":
        return {"meaning": "flag"}
    if integer:
        vocab = _vocabulary(spec["name"], graph, initializers)
        if any(word in name for word in ("token_type", "segment")):
            return {"meaning": "segment_ids", "vocab": vocab or 2}
        if vocab is not None or name.endswith("ids") or "tokens" in name:
            return {"meaning": "ids", "vocab": vocab or 16}
        if rank == 0 or any(word in name for word in ("length", "seqlens", "count")):
            return {"meaning": "count"}
        return {"meaning": "integers"}
    unnamed_image = rank == 4 and spec["shape"][1] in (1, 3) and spec["shape"][2:] == [_unnamed(spec["name"], axis) for axis in (2, 3)]
    if unnamed_image or (rank == 4 and any(word in name for word in ("pixel", "image"))):
        return {"meaning": "pixels"}
    return {"meaning": "features"}


def _vocabulary(name: str, graph, initializers) -> int | None:
    """Returns the least size of the tables that are indexed by this input."""
    users: dict[str, list] = {}
    for node in graph.node:
        for value in node.input:
            users.setdefault(value, []).append(node)
    sizes, seen, queue = [], {name}, [name]
    while queue:
        value = queue.pop()
        for node in users.get(value, []):
            if node.op_type == "Gather" and len(node.input) > 1 and node.input[1] == value:
                axis = next((a.i for a in node.attribute if a.name == "axis"), 0)
                dims = initializers.get(node.input[0])
                if dims:
                    sizes.append(int(dims[axis]))
            elif node.op_type in _TRANSPARENT:
                for output in node.output:
                    if output not in seen:
                        seen.add(output)
                        queue.append(output)
    return min(sizes) if sizes else None


def _symbol_roles(entry: Entry) -> dict[str, str]:
    """Returns the role of every symbol; in expressions only when it is nowhere by itself."""
    roles: dict[str, str] = {}
    expressions = []
    other = 0
    for spec in entry["inputs"]:
        meaning, name, rank = spec["meaning"], spec["name"].lower(), len(spec["shape"])
        for axis, dim in enumerate(spec["shape"]):
            if isinstance(dim, int):
                continue
            if not _is_symbol(dim):
                expressions.append(dim)
                continue
            role = _role_by_name(dim, _role(meaning, name, axis, rank))
            if dim in roles and not roles[dim].startswith("other"):
                continue
            if role == "other":
                other += 1
                role = f"other:{other}"
            roles[dim] = role
    for text in expressions:
        for node in ast.walk(_tree(text)):
            if isinstance(node, ast.Name) and node.id not in roles and node.id not in ("Max", "Min", "floor"):
                low = node.id.lower()
                roles[node.id] = "past" if "past" in low or "cache" in low else "seq"
    return roles


def symbols(entry: Entry) -> list[str]:
    """Returns the symbols of the inputs' shapes."""
    return list(_symbol_roles(entry))


def _fixed_sizes(entry: Entry) -> dict[str, int]:
    """Returns the sizes of the roles whose dims are numbers: a decode step has seq 1."""
    sizes: dict[str, int] = {}
    for spec in entry["inputs"]:
        rank = len(spec["shape"])
        for axis, dim in enumerate(spec["shape"]):
            if isinstance(dim, int):
                sizes.setdefault(_role(spec["meaning"], spec["name"].lower(), axis, rank), dim)
    return sizes


def _role(meaning: str, name: str, axis: int, rank: int) -> str:
    encoder = "encoder" in name and "decoder" not in name or ".encoder." in name or name.startswith("cross")
    if axis == 0 and rank >= 2:
        return "batch"
    if meaning == "past":
        return "encoder" if encoder and axis == 2 else "past" if axis == rank - 2 else "other"
    if meaning == "attention_mask":
        return "encoder" if encoder else "total"
    if meaning in ("keep_mask", "additive_mask"):
        return "total" if axis == rank - 1 else "seq" if axis == rank - 2 else "other"
    if meaning in ("ids", "segment_ids", "position_ids", "cache_position") and axis == rank - 1:
        return "encoder" if encoder else "seq"
    if meaning == "pixels" and rank == 4 and axis >= 2:
        return "height" if axis == 2 else "width"
    if meaning == "features" and rank == 3 and axis == 1:
        return "encoder" if encoder else "seq"
    return "other"


def _role_by_name(symbol: str, role: str) -> str:
    """Returns the role of a symbol that stands where `role` is usual: tokens may come before the batch, and names say so."""
    low = symbol.lower()
    if "batch" in low:
        return "batch"
    tokens = low in ("seq", "seq_len", "seq_length", "sequence", "sequence_length")
    return "seq" if tokens and role == "batch" else role


def _size(role: str, plan: dict[str, Any]) -> int:
    if role.startswith("other"):
        return 9 + 2 * int(role.split(":")[1])
    if role in ("height", "width"):
        return 64 if role == "height" else 96
    return plan[role]


def _values(entry: Entry, shapes: dict[str, list[int]]) -> dict[str, int]:
    values = {}
    for spec in entry["inputs"]:
        for dim, size in zip(spec["shape"], shapes[spec["name"]]):
            if not isinstance(dim, int) and _is_symbol(dim):
                values[dim] = size
    for name, role in _symbol_roles(entry).items():
        values.setdefault(name, 3 if role == "past" else 4)
    return values


def _length(entry: Entry, binding: Binding, meaning: str, axis: int) -> int:
    for spec in entry["inputs"]:
        if spec["meaning"] == meaning and len(spec["shape"]) > axis:
            return int(binding["shapes"][spec["name"]][axis])
    return 0


def _is_symbol(text: str) -> bool:
    try:
        return not isinstance(_tree(text).body, (ast.BinOp, ast.Call, ast.UnaryOp))
    except CannotGuess:
        return True


def _tree(text: str) -> ast.Expression:
    try:
        return ast.parse(text, mode="eval")
    except SyntaxError:
        raise CannotGuess(f"dim '{text}' is not an expression") from None


def _evaluate(text: str, values: dict[str, int]) -> int:
    if text in values:
        return values[text]

    def run(node):
        if isinstance(node, ast.Constant) and isinstance(node.value, int):
            return node.value
        if isinstance(node, ast.Name) and node.id in values:
            return values[node.id]
        if isinstance(node, ast.BinOp):
            a, b = run(node.left), run(node.right)
            if isinstance(node.op, ast.Add):
                return a + b
            if isinstance(node.op, ast.Sub):
                return a - b
            if isinstance(node.op, ast.Mult):
                return a * b
            if isinstance(node.op, (ast.FloorDiv, ast.Div)):
                return a // b
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            arguments = [run(a) for a in node.args]
            if node.func.id in ("Max", "Min"):
                return (max if node.func.id == "Max" else min)(arguments)
            if node.func.id == "floor":
                return arguments[0]
        raise CannotGuess(f"dim '{text}' cannot be computed from {sorted(values)}")

    return run(_tree(text).body)
