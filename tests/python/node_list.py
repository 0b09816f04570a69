"""A model under construction, node by node: what tests that generate graphs derive from."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import onnx
from onnx import helper


@dataclass(kw_only=True)
class NodeList:
    """Nodes in order, and constants by name."""

    nodes: list[onnx.NodeProto] = field(default_factory=list)
    weights: dict[str, np.ndarray] = field(default_factory=dict)

    def op(self, kind: str, *inputs: str, outputs: int = 1, **attributes: object) -> list[str]:
        """Adds a node and returns the names of its outputs."""
        names = [f"{kind.lower()}_{len(self.nodes)}_{i}" for i in range(outputs)]
        self.nodes.append(helper.make_node(kind, list(inputs), names, **attributes))
        return names

    def one(self, kind: str, *inputs: str, **attributes: object) -> str:
        """The same of one output."""
        return self.op(kind, *inputs, **attributes)[0]

    def ints(self, *values: int) -> str:
        """A constant of these numbers, [n]."""
        name = "i_" + "_".join(map(str, values)).replace("-", "m")
        self.weights[name] = np.array(values, np.int64)
        return name
