"""A pass of one's own in Python: a function over a view of the graph and a rewriter, at a named place of the pipeline."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

from ascend_fuse._core import Graph, Node, Rewriter, Value, stages

__all__ = ["Graph", "Node", "Pass", "Rewriter", "Value", "stages"]


@dataclasses.dataclass(frozen=True)
class Pass:
    """A function `(graph, rewriter)` and the stage that it runs before or after: one of `stages ()`, or a pass given before.

    After it the graph is verified; one that is none ends the run with BrokenGraphError. What the function raises is raised by
    the run. Nodes and values are valid while the function runs.
    """

    function: Callable[[Graph, Rewriter], None]
    after: str | None = None
    before: str | None = None
    name: str = ""

    def __post_init__(self) -> None:
        if (self.after is None) == (self.before is None):
            raise ValueError("a pass stands either before or after a stage")

    def placed(self) -> tuple[str, str, str, Callable[[Graph, Rewriter], None]]:
        """Returns before or after, the stage, the name and the function."""
        name = self.name or getattr(self.function, "__name__", "")
        place, stage = ("after", self.after) if self.after is not None else ("before", self.before)
        return place, stage or "", name, self.function
