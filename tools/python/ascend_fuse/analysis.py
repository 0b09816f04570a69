"""An analysis as typed records, with the names of docs/analyze.md, and as frames of pandas where that is installed."""

from __future__ import annotations

import dataclasses
import html
import json as json_module
from typing import Any

from ascend_fuse.report import Finding, Report, record


@dataclasses.dataclass(frozen=True)
class Quantity:
    """A count as a function of the model's dims, and as a number."""

    formula: str = ""
    value: float = 0.0

    def __float__(self) -> float:
        return self.value


@dataclasses.dataclass(frozen=True)
class BoundDim:
    """A symbol, the number that counts are for, and who said so: dim or default."""

    name: str = ""
    value: float = 0.0
    origin: str = ""


@dataclasses.dataclass(frozen=True)
class Side:
    """The whole graph, before or after."""

    nodes: int = 0
    kernels: int = 0
    ai_cpu: int = 0
    host: int = 0
    folded: int = 0
    unknown: int = 0
    flops: Quantity = Quantity()
    bytes: Quantity = Quantity()
    intensity: float = 0.0


@dataclasses.dataclass(frozen=True)
class Ratio:
    """How many times faster the written graph is, by the cost model."""

    low: float = 1.0
    middle: float = 1.0
    high: float = 1.0
    launch: str = ""


@dataclasses.dataclass(frozen=True)
class Share:
    """One type of operator, or one module, before and after."""

    name: str = ""
    kind: str = ""
    nodes_before: int = 0
    nodes_after: int = 0
    kernels_before: int = 0
    kernels_after: int = 0
    flops_before: Quantity = Quantity()
    flops_after: Quantity = Quantity()
    bytes_before: Quantity = Quantity()
    bytes_after: Quantity = Quantity()
    intensity: float = 0.0
    share_before: float = 0.0
    share_after: float = 0.0


@dataclasses.dataclass(frozen=True)
class Heavy:
    """A node that takes much of the time."""

    node: str = ""
    op: str = ""
    module: str = ""
    flops: Quantity = Quantity()
    bytes: Quantity = Quantity()
    share: float = 0.0
    bound_by: str = ""


@dataclasses.dataclass(frozen=True)
class Support:
    """Where nodes of a type run, and who says so."""

    op: str = ""
    engine: str = ""
    nodes: int = 0
    after: bool = False
    because: str = ""
    source: str = ""
    way_out: str = ""
    unit: str = ""
    kernel: str = ""
    shapes: str = ""


@dataclasses.dataclass(frozen=True)
class Opportunity:
    """Places of one kind with one fate, and what they win."""

    kind: str = ""
    state: str = ""
    count: int = 0
    place: str = ""
    emitted_op: str = ""
    gain: float = 0.0
    at_most: bool = False
    kernels_saved: int = 0
    bytes_saved: float = 0.0
    because: str = ""
    code: str = ""
    source: str = ""
    way: str = ""
    nodes: list[str] = dataclasses.field(default_factory=list)


@dataclasses.dataclass(frozen=True)
class Weights:
    """Weights of one type or module."""

    name: str = ""
    tensors: int = 0
    bytes: float = 0.0


@dataclasses.dataclass(frozen=True)
class CurvePoint:
    """Activations in memory while a node runs."""

    step: int = 0
    node: str = ""
    bytes: float = 0.0


@dataclasses.dataclass(frozen=True)
class Activations:
    """The peak of activations, the node that runs then, and the curve."""

    peak: Quantity = Quantity()
    at: str = ""
    curve: list[CurvePoint] = dataclasses.field(default_factory=list)


@dataclasses.dataclass(frozen=True)
class Cache:
    """An input that comes back longer."""

    input: str = ""
    output: str = ""
    bytes: Quantity = Quantity()


@dataclasses.dataclass(frozen=True)
class MemoryFit:
    """A size of the chip's memory."""

    bytes: float = 0.0
    fits: bool = False
    source: str = ""


@dataclasses.dataclass(frozen=True)
class Memory:
    """Weights, activations and caches."""

    weights: float = 0.0
    weights_shared: float = 0.0
    weights_half: float = 0.0
    weights_int8: float = 0.0
    by_type: list[Weights] = dataclasses.field(default_factory=list)
    by_module: list[Weights] = dataclasses.field(default_factory=list)
    before: Activations = Activations()
    after: Activations = Activations()
    cache: Quantity = Quantity()
    caches: list[Cache] = dataclasses.field(default_factory=list)
    needed: float = 0.0
    fits: list[MemoryFit] = dataclasses.field(default_factory=list)


@dataclasses.dataclass(frozen=True)
class Host:
    """What keeps the graph from running on the chip alone."""

    code: str = ""
    op: str = ""
    nodes: int = 0
    node: str = ""
    module: str = ""
    because: str = ""
    way_out: str = ""


@dataclasses.dataclass(frozen=True)
class Type:
    """What kernels compute in one type."""

    type: str = ""
    values: int = 0
    kernels: int = 0
    bytes: float = 0.0


@dataclasses.dataclass(frozen=True)
class Precision:
    """Types of what kernels compute, Casts, and what half precision does not hold."""

    types: list[Type] = dataclasses.field(default_factory=list)
    casts: int = 0
    findings: list[Finding] = dataclasses.field(default_factory=list)


@dataclasses.dataclass(frozen=True)
class Reason:
    """What decides how hard the migration is."""

    level: str = ""
    code: str = ""
    count: int = 0
    because: str = ""
    way_out: str = ""


@dataclasses.dataclass(frozen=True)
class Complexity:
    """How hard the migration is: high, medium or low, riskiest reason first."""

    level: str = ""
    reasons: list[Reason] = dataclasses.field(default_factory=list)


@dataclasses.dataclass(frozen=True)
class Step:
    """What to do next."""

    action: str = ""
    because: str = ""
    command: str = ""


@dataclasses.dataclass(frozen=True, repr=False)
class Analysis:
    """What a model computes, moves and needs, before and after."""

    schema: int = 0
    report: Report = Report()
    dims: list[BoundDim] = dataclasses.field(default_factory=list)
    precision_bytes: str = ""
    before: Side = Side()
    after: Side = Side()
    ratio: Ratio = Ratio()
    operators: list[Share] = dataclasses.field(default_factory=list)
    modules: list[Share] = dataclasses.field(default_factory=list)
    heaviest: list[Heavy] = dataclasses.field(default_factory=list)
    support: list[Support] = dataclasses.field(default_factory=list)
    opportunities: list[Opportunity] = dataclasses.field(default_factory=list)
    memory: Memory = Memory()
    host: list[Host] = dataclasses.field(default_factory=list)
    precision: Precision = Precision()
    complexity: Complexity = Complexity()
    next: list[Step] = dataclasses.field(default_factory=list)
    uncounted: list[str] = dataclasses.field(default_factory=list)
    json: str = ""
    texts: tuple[str, str, str] = ("", "", "")

    @classmethod
    def from_json(cls, text: str) -> Analysis:
        """Returns the analysis of the JSON of `ascend-fuse analyze --json`; it has no text and no page then."""
        return dataclasses.replace(record(cls, json_module.loads(text)), json=text)

    @classmethod
    def from_texts(cls, json: str, short: str, whole: str, page: str) -> Analysis:
        """Returns the analysis of its JSON, with what `to_text` and `to_html` give."""
        return dataclasses.replace(cls.from_json(json), texts=(short, whole, page))

    def to_json(self) -> str:
        """Returns the JSON of docs/analyze.md."""
        return self.json

    def to_text(self, verbose: bool = False) -> str:
        """Returns what the command line prints."""
        return self.texts[verbose]

    def to_html(self) -> str:
        """Returns the page for a browser that the command line writes for `--report FILE.html`, complete in itself."""
        return self.texts[2]

    def _repr_html_(self) -> str:
        """Returns that page for notebooks, in a frame of its own: its script and its style are not the notebook's."""
        return f'<iframe srcdoc="{html.escape(self.to_html())}" style="width: 100%; height: 48rem; border: 0" title="analysis"></iframe>'

    def frame(self, part: str = "operators") -> Any:
        """Returns operators, modules, opportunities, support, heaviest, host or sites as a pandas.DataFrame; quantities are numbers."""
        import pandas  # type: ignore[import-not-found, import-untyped, unused-ignore]

        rows = self.report.sites if part == "sites" else getattr(self, part)
        return pandas.DataFrame([{field.name: _plain(getattr(row, field.name)) for field in dataclasses.fields(row)} for row in rows])

    def __repr__(self) -> str:
        return (f"<Analysis of {self.report.model or 'model'} for {self.report.target.chip}: {self.before.kernels} -> "
                f"{self.after.kernels} kernels, {self.complexity.level}>")

    def __str__(self) -> str:
        return self.to_text()


def _plain(value: Any) -> Any:
    return value.value if isinstance(value, Quantity) else value
