"""Gives inputs and initializers of bodies names of values around them, as the checker of ONNX and ONNX Runtime let them.

A body that is rewritten to read such a value would read its own. What it reads already is near: most names are those of what that is
computed from, which it reads after a copy, a Cast or a movement is taken away.
"""

from __future__ import annotations

import random

import onnx

from fuzz.written import all_nodes, bodies, captured, own_names


def hide_names(graph: onnx.GraphProto, noise: random.Random) -> int:
    """Renames in place; returns how many values have got the name of one around them."""
    names = [i.name for i in graph.input] + [t.name for t in graph.initializer]
    return _of_nodes(graph.node, {}, names, {t.name: t for t in graph.initializer}, noise)


def _of_nodes(nodes: list[onnx.NodeProto], made_of: dict[str, list[str]], names: list[str], tensors: dict[str, onnx.TensorProto],
              noise: random.Random) -> int:
    """`names`: what is defined around the nodes; `made_of`: of what it is computed."""
    names, made_of = [*names, *(name for node in nodes for name in node.output if name)], dict(made_of)
    hidden = 0
    for node in nodes:
        made_of.update((name, list(node.input)) for name in node.output)
        # ONNX Runtime hands what one branch of an If reads to the other, where it takes the place of an initializer of its name.
        read = set().union(*map(captured, bodies(node)))
        for body in bodies(node):
            hidden += _of_nodes(body.node, made_of, [*names, *(i.name for i in body.input)], tensors, noise)
            from_around = sorted(captured(body) & set(names))
            hidden += _of_body(body, from_around, made_of, [name for name in names if name not in read], tensors, noise)
    return hidden


def _of_body(body: onnx.GraphProto, from_around: list[str], made_of: dict[str, list[str]], names: list[str],
             tensors: dict[str, onnx.TensorProto], noise: random.Random) -> int:
    inside = all_nodes(body.node)
    mentioned = {name for node in inside for name in [*node.input, *node.output]} | {i.name for i in body.input}
    mentioned |= {t.name for node in inside for inner in bodies(node) for t in inner.initializer}
    near, level = [], from_around
    for _ in range(3):
        level = sorted({name for value in level for name in made_of.get(value, []) if name})
        near += level
    others = [name for name in names if name not in mentioned]
    near = [name for name in dict.fromkeys(near) if name in others]
    own = [i.name for i in body.input]
    for name in from_around:  # a weight of the model becomes one of the body
        if name in tensors and noise.random() < 0.3:
            copy = body.initializer.add()
            copy.CopyFrom(tensors[name])
            own.append(name)
    hidden = 0
    for name in own:
        chosen = near if near and noise.random() < 0.8 else others
        if not chosen:
            continue
        other = noise.choice(chosen)
        _rename(body, name, other)
        near, others = ([one for one in some if one != other] for some in (near, others))
        hidden += 1
    return hidden


def _rename(body: onnx.GraphProto, name: str, other: str) -> None:
    for value in [*body.input, *body.initializer, *body.output, *body.value_info]:
        if value.name == name:
            value.name = other
    for node in body.node:
        node.input[:] = [other if one == name else one for one in node.input]
        for inner in bodies(node):
            if name not in own_names(inner):
                _rename(inner, name, other)
