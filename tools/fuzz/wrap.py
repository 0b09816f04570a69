"""Puts what a function builds into the branches of an If, the body of a Loop or Scan, or a local function."""

from __future__ import annotations

from collections.abc import Callable

from onnx import helper

from fuzz.graph import TYPES, Graph

Build = Callable[[Graph, str], str]


def wrapped(g: Graph, how: str, x: str, build: Build) -> str:
    return {"none": lambda: build(g, x), "if": lambda: _if(g, x, build), "loop": lambda: _loop(g, x, build),
            "scan": lambda: _scan(g, x, build), "function": lambda: _function(g, x, build)}[how]()


def _inside(g: Graph, x: str, build: Build, scope: str) -> tuple[list, str]:
    """The nodes that build makes, taken out of the graph, and the value that they give."""
    outer, g.nodes = g.nodes, []
    g.inner += 1
    with g.within(scope):
        y = build(g, x)
        if not any(y in node.output for node in g.nodes):
            y = g.op("Identity", y)
    g.inner -= 1
    nodes, g.nodes = g.nodes, outer
    return nodes, y


def _value(g: Graph, name: str) -> object:
    return helper.make_tensor_value_info(name, TYPES[g.dtypes[name]], None)


def _if(g: Graph, x: str, build: Build) -> str:
    size = g.squeeze(g.dim_value("s"), [0])
    condition = g.op("Greater", size, g.const(g.noise.choice([0, 4, 100]), "int64"), dtype="bool")
    branches = []
    for scope in ("then", "else"):
        if scope == "else" and g.chance(0.5):
            nodes, y = _inside(g, x, lambda inner, value: inner.op("Identity", value), scope)
        else:
            nodes, y = _inside(g, x, build, scope)
        branches.append(helper.make_graph(nodes, scope, [], [_value(g, y)]))
    return g.op("If", condition, dtype=g.main, then_branch=branches[0], else_branch=branches[1])


def _loop(g: Graph, x: str, build: Build) -> str:
    with g.within("loop"):
        number, go_on, state = f"{g.scope}/i", f"{g.scope}/go", f"{g.scope}/x"
    g.dtypes[state], g.shapes[state] = g.main, g.shapes[x]
    nodes, y = _inside(g, state, build, "loop")
    again = f"{go_on}_again"
    nodes.append(helper.make_node("Identity", [go_on], [again], name=again))
    inputs = [helper.make_tensor_value_info(number, TYPES["int64"], []), helper.make_tensor_value_info(go_on, TYPES["bool"], []),
              helper.make_tensor_value_info(state, TYPES[g.main], None)]
    body = helper.make_graph(nodes, "body", inputs, [helper.make_tensor_value_info(again, TYPES["bool"], []), _value(g, y)])
    return g.op("Loop", g.const(2, "int64"), g.const(True, "bool"), x, dtype=g.main, body=body)


def _scan(g: Graph, x: str, build: Build) -> str:
    """Two rounds over a sequence of zeros that are added to the state."""
    with g.within("scan"):
        state, element = f"{g.scope}/x", f"{g.scope}/element"
    g.dtypes[state], g.shapes[state] = g.main, g.shapes[x]
    sequence = g.const([[0.0], [0.5]])

    def body(inner: Graph, value: str) -> str:
        return inner.op("Add", build(inner, value), element)

    nodes, y = _inside(g, state, body, "scan")
    copy = f"{y}_copy"
    nodes.append(helper.make_node("Identity", [element], [copy], name=copy))
    inputs = [helper.make_tensor_value_info(state, TYPES[g.main], None), helper.make_tensor_value_info(element, TYPES[g.main], [1])]
    graph = helper.make_graph(nodes, "body", inputs, [_value(g, y), helper.make_tensor_value_info(copy, TYPES[g.main], None)])
    result, _ = g.op("Scan", x, sequence, outputs=2, dtype=g.main, body=graph, num_scan_inputs=1)
    return result


def _function(g: Graph, x: str, build: Build) -> str:
    nodes, y = _inside(g, x, build, "function")
    made = {name for node in nodes for name in node.output}
    read: list[str] = []
    for name in (name for node in nodes for name in node.input):
        if name and name not in made and name not in read:
            read.append(name)
    name = f"Block_{len(g.functions)}"
    imports = [helper.make_opsetid("", g.opset)] + [helper.make_opsetid(d, 1) for d in sorted({n.domain for n in nodes} - {""})]
    g.functions.append(helper.make_function("local", name, read, [y], nodes, imports))
    g.domains.add("local")
    return g.op(name, *read, domain="local", dtype=g.main)
