"""Graphs as dynamo of torch 2.1 to 2.4 exported them: every call of a module a local function of its own, operators that
torch has and ONNX has not functions of a library.

The module calls are found as pytorch/pytorch:torch/onnx/_internal/fx/passes/modularization.py finds them: nodes next to each
other that lie in one module are one call, and calls in it are found in the same way. Functions are named
<class>_<module path>_<how many calls of it>, with _ for every dot, in a domain pkg.<package>.<version>. What newer
exporters say of modules in metadata is removed.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterable

import onnx
from onnx import helper

LIBRARY = "pkg.onnxscript.torch_lib"
# Operators that become functions of the library.
OPERATORS = {"Transpose", "Softmax", "ReduceMean", "Concat", "Sigmoid", "Pow", "Reciprocal", "Gather", "Unsqueeze", "Erf",
             "Tanh", "MatMul", "LayerNormalization", "Cast"}


def _modules(node: onnx.NodeProto) -> list[tuple[str, str]]:
    """Returns (path, class) of the modules around a node, outermost first."""
    data = {entry.key: entry.value for entry in node.metadata_props}
    paths = ast.literal_eval(data.get("pkg.torch.onnx.name_scopes", "[]"))[:-1]
    classes = ast.literal_eval(data.get("pkg.torch.onnx.class_hierarchy", "[]"))[:-1]
    return [(path, kind) for path, kind in zip(paths, classes) if path and not path.startswith("_empty")]


def _reads(node: onnx.NodeProto) -> Iterable[str]:
    yield from (name for name in node.input if name)
    for attribute in node.attribute:
        for graph in [attribute.g, *attribute.graphs]:
            for inner in graph.node:
                yield from _reads(inner)


class Outliner:
    def __init__(self, model: onnx.ModelProto, version: str) -> None:
        self.model = model
        self.version = version
        self.opset = next(entry.version for entry in model.opset_import if entry.domain == "")
        self.functions: dict[tuple[str, str], onnx.FunctionProto] = {}
        self.calls: Counter[str] = Counter()
        self.nodes = 0

    def run(self) -> onnx.ModelProto:
        graph = self.model.graph
        self._name_weights()
        nodes = self._call_modules(list(graph.node), 0, {output.name for output in graph.output})
        result = onnx.ModelProto()
        result.CopyFrom(self.model)
        del result.graph.node[:]
        result.graph.node.extend(nodes)
        del result.graph.value_info[:]
        result.ir_version = max(result.ir_version, 8)
        for domain in sorted({domain for domain, _ in self.functions}):
            result.opset_import.append(helper.make_opsetid(domain, 1))
        result.functions.extend(self.functions.values())
        return result

    def _name_weights(self) -> None:
        """Weights that newer exporters have folded get the names of the modules that read them."""
        graph = self.model.graph
        names = {tensor.name for tensor in graph.initializer}
        renamed = {}
        for node in graph.node:
            modules = _modules(node)
            if node.op_type not in ("MatMul", "Gemm") or not modules or not node.input[1].startswith("val_"):
                continue
            name = f"{modules[-1][0]}.weight"
            if node.input[1] in names and name not in names and node.input[1] not in renamed:
                renamed[node.input[1]] = name
        for tensor in graph.initializer:
            tensor.name = renamed.get(tensor.name, tensor.name)
        for node in graph.node:
            for i, name in enumerate(node.input):
                node.input[i] = renamed.get(name, name)

    def _call_modules(self, nodes: list[onnx.NodeProto], depth: int, wanted: set[str]) -> list[onnx.NodeProto]:
        groups: list[tuple[tuple[str, str] | None, list[onnx.NodeProto]]] = []
        for node in nodes:
            modules = _modules(node)
            module = modules[depth] if len(modules) > depth else None
            if module is not None and groups and groups[-1][0] == module:
                groups[-1][1].append(node)
            else:
                groups.append((module, [node]))
        result = []
        later = Counter(name for node in nodes for name in _reads(node))
        for module, members in groups:
            later.subtract(Counter(name for node in members for name in _reads(node)))
            if module is None:
                result.append(self._call_operator(members[0]))
                continue
            made = [name for node in members for name in node.output if name]
            outputs = [name for name in made if name in wanted or later[name] > 0]
            inputs = list(dict.fromkeys(name for node in members for name in _reads(node) if name not in set(made)))
            result.append(self._module(module, members, depth + 1, inputs, outputs))
        return result

    def _module(self, module: tuple[str, str], members: list[onnx.NodeProto], depth: int, inputs: list[str],
                outputs: list[str]) -> onnx.NodeProto:
        path, kind = module
        display = path.replace(".", "_")
        self.calls[display] += 1
        name = f"{kind.replace('.', '_')}_{display}_{self.calls[display]}"
        domain = f"pkg.{kind.split('.')[0]}.{self.version}"
        body = self._call_modules(members, depth, set(outputs))
        self._function(domain, name, inputs, outputs, body)
        return helper.make_node(name, inputs, outputs, domain=domain, name=self._named(name))

    def _call_operator(self, node: onnx.NodeProto) -> onnx.NodeProto:
        plain = onnx.NodeProto()
        plain.CopyFrom(node)
        del plain.metadata_props[:]
        plain.name = self._named(node.op_type)
        if node.op_type not in OPERATORS or node.domain or "" in [*node.input, *node.output]:
            return plain
        attributes = sorted(attribute.name for attribute in node.attribute)
        name = "_".join([f"aten_{node.op_type.lower()}", str(len(node.input)), *attributes])
        if (LIBRARY, name) not in self.functions:
            body = onnx.NodeProto(op_type=node.op_type, input=[f"self_{i}" for i in range(len(node.input))],
                                  output=[f"return_{i}" for i in range(len(node.output))])
            for attribute in node.attribute:
                body.attribute.add(name=attribute.name, type=attribute.type, ref_attr_name=attribute.name)
            self._function(LIBRARY, name, list(body.input), list(body.output), [body], attributes)
        plain.op_type, plain.domain = name, LIBRARY
        plain.name = self._named(name)
        return plain

    def _named(self, name: str) -> str:
        self.nodes += 1
        return f"{name}_{self.nodes}"

    def _function(self, domain: str, name: str, inputs: list[str], outputs: list[str], body: list[onnx.NodeProto],
                  attributes: list[str] | None = None) -> None:
        domains = sorted({node.domain for node in body if node.domain})
        imports = [helper.make_opsetid("", self.opset), *(helper.make_opsetid(domain, 1) for domain in domains)]
        self.functions[domain, name] = helper.make_function(domain, name, inputs, outputs, body, imports, attributes)


def outline(model: onnx.ModelProto, version: str = "4.37.0") -> onnx.ModelProto:
    """Returns the same model with its modules as functions; `model` loses the names of its folded weights."""
    return Outliner(model, version).run()


def without_metadata(model: onnx.ModelProto) -> onnx.ModelProto:
    """Returns the model without what its nodes say of their modules."""
    plain = onnx.ModelProto()
    plain.CopyFrom(model)
    del plain.graph.value_info[:]
    for node in plain.graph.node:
        del node.metadata_props[:]
    return plain
