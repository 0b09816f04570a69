"""The report of a run as typed records, with the names of docs/report.md."""

from __future__ import annotations

import dataclasses
import json
import typing
from typing import Any, Callable, Dict, List, Optional, TypeVar

from ascend_fuse import _core

_T = TypeVar("_T")


@dataclasses.dataclass(frozen=True)
class Target:
    """The chip and compiler that the run was for."""

    chip: str = ""
    cann: str = ""
    style: str = ""
    precision_mode: str = ""
    opset: int = 0
    plugin: bool = False
    dims: List[str] = dataclasses.field(default_factory=list)


@dataclasses.dataclass(frozen=True)
class KindCount:
    """How many sites of one kind there are, and what became of them."""

    found: int = 0
    fused: int = 0
    by_ge: int = 0
    left: int = 0
    commonest_reason: str = ""


@dataclasses.dataclass(frozen=True)
class NodeCount:
    """Nodes before and after the run."""

    before: int = 0
    after: int = 0


@dataclasses.dataclass(frozen=True)
class WeightBytes:
    """Bytes of the constants that are read before and after the run; `read_` without tables of which rows are gathered."""

    before: float = 0
    after: float = 0
    read_before: float = 0
    read_after: float = 0


@dataclasses.dataclass(frozen=True)
class Summary:
    """Counts of the whole model: sites by kind, nodes, and bytes of weights."""

    sites: Dict[str, KindCount] = dataclasses.field(default_factory=dict)
    nodes: NodeCount = NodeCount()
    weights: WeightBytes = WeightBytes()


@dataclasses.dataclass(frozen=True)
class Site:
    """One place where a construct was recognised, fused or not."""

    kind: str = ""
    state: str = ""
    module: str = ""
    rule: str = ""
    emitted_op: str = ""
    covers: List[str] = dataclasses.field(default_factory=list)
    precision: str = ""
    mask: str = ""
    mask_offset: str = ""
    mask_window: str = ""
    mask_padding: List[str] = dataclasses.field(default_factory=list)
    mask_assumptions: List[str] = dataclasses.field(default_factory=list)
    assumptions: List[str] = dataclasses.field(default_factory=list)
    code: str = ""
    because: str = ""
    source: str = ""
    node: str = ""
    outputs: List[str] = dataclasses.field(default_factory=list)
    pair: str = ""


@dataclasses.dataclass(frozen=True)
class NearMiss:
    """A rule that got far at a node, and what stopped it."""

    rule: str = ""
    node: str = ""
    module: str = ""
    matched_nodes: int = 0
    stopped_by: str = ""
    code: str = ""
    expected: str = ""
    found: str = ""
    source: str = ""


@dataclasses.dataclass(frozen=True)
class PassRun:
    """A pass that ran, its time and its number of changes."""

    name: str = ""
    milliseconds: float = 0.0
    changes: int = 0


@dataclasses.dataclass(frozen=True)
class Adapted:
    """Nodes that were written in another form, because ATC does not read theirs."""

    code: str = ""
    op: str = ""
    nodes: List[str] = dataclasses.field(default_factory=list)


@dataclasses.dataclass(frozen=True)
class Tidied:
    """Nodes of the rest of the graph that were joined with equal ones, written shorter, or are gone."""

    code: str = ""
    op: str = ""
    nodes: List[str] = dataclasses.field(default_factory=list)


@dataclasses.dataclass(frozen=True)
class Gain:
    """What is known of the speed of a node that was emitted: measured, likely, unknown or loss."""

    node: str = ""
    evidence: str = ""
    because: str = ""
    source: str = ""


@dataclasses.dataclass(frozen=True)
class Contradiction:
    """A declared shape that is not what is computed, which was believed."""

    value: str = ""
    declared: str = ""
    computed: str = ""
    node: str = ""


@dataclasses.dataclass(frozen=True)
class Warning:
    """Something about the whole model, the target or the options."""

    code: str = ""
    message: str = ""


@dataclasses.dataclass(frozen=True)
class Finding:
    """What ATC refuses, misreads or runs slowly: from `check` only."""

    code: str = ""
    effect: str = ""
    certain: bool = False
    op: str = ""
    node: str = ""
    module: str = ""
    because: str = ""
    source: str = ""
    error: str = ""
    way_out: str = ""
    fixed_by: str = ""

    @property
    def fatal(self) -> bool:
        """Whether ATC ends with an error or makes another model of it, as far as is known."""
        return _core.is_fatal(self.certain, self.effect)


@dataclasses.dataclass(frozen=True, repr=False)
class Report:
    """What a run did: every site with what became of it, and why."""

    schema: int = 0
    model: str = ""
    target: Target = Target()
    summary: Summary = Summary()
    sites: List[Site] = dataclasses.field(default_factory=list)
    near_misses: List[NearMiss] = dataclasses.field(default_factory=list)
    passes: List[PassRun] = dataclasses.field(default_factory=list)
    contradictions: List[Contradiction] = dataclasses.field(default_factory=list)
    warnings: List[Warning] = dataclasses.field(default_factory=list)
    findings: List[Finding] = dataclasses.field(default_factory=list)
    adapted: List[Adapted] = dataclasses.field(default_factory=list)
    tidied: List[Tidied] = dataclasses.field(default_factory=list)
    gains: List[Gain] = dataclasses.field(default_factory=list)
    json: str = ""
    command: str = "optimize"

    @classmethod
    def from_json(cls, text: str, command: str = "optimize") -> Report:
        """Returns the report of a JSON text, that of `--json` too. Names that this version does not know are kept in `json`."""
        return dataclasses.replace(record(cls, json.loads(text)), json=text, command=command)

    def to_json(self) -> str:
        """Returns the JSON of docs/report.md."""
        return self.json

    def to_text(self, verbose: bool = False) -> str:
        """Returns what the command line prints."""
        if self.command == "check":
            return _core.findings_text(self.json)
        return _core.report_text(self.json, verbose, self.command == "optimize")

    def in_short(self) -> str:
        """Returns one line: the model, the chip and how many sites were fused, or how many findings there are."""
        of = f"{self.model or 'model'} for {self.target.chip}"
        if self.command == "check":
            return f"{of}: {len(self.findings)} findings, {len(self.fatal)} fatal"
        fused = sum(site.state == "fused" for site in self.sites)
        return f"{of}: {fused} of {len(self.sites)} sites fused, nodes {self.summary.nodes.before} -> {self.summary.nodes.after}"

    def __repr__(self) -> str:
        return f"<Report of {self.command}, {self.in_short()}>"

    def __str__(self) -> str:
        return self.to_text()

    @property
    def fatal(self) -> list[Finding]:
        """The findings that ATC refuses the model for, or reads as another model."""
        return [finding for finding in self.findings if finding.fatal]

    def of(self, kind: str, state: str | None = None) -> list[Site]:
        """Returns the sites of a kind, in one state ("fused", "by_ge", "left") or in any."""
        return [site for site in self.sites if site.kind == kind and state in (None, site.state)]

    def to_html(self) -> str:
        """Returns the page for a browser that the command line writes for `--report FILE.html`, complete in itself."""
        return _core.report_html(self.json, self.command, page=True)

    def _repr_html_(self) -> str:
        """Returns what is in the body of that page, for notebooks."""
        return _core.report_html(self.json, self.command, page=False)


def record(of: type[_T], data: dict[str, Any]) -> _T:
    """Builds a record; what it has no field for is left out."""
    readers = _readers(of)
    fields = {}
    for name, value in data.items():
        if name in readers:
            reader = readers[name]
            fields[name] = reader(value) if reader else value
    return of(**fields)


_READERS: Dict[type, Dict[str, Optional[Callable[[Any], Any]]]] = {}


def _readers(of: type) -> dict[str, Callable[[Any], Any] | None]:
    """By field: what makes its value of what JSON has, None where that is the value."""
    if of not in _READERS:  # resolving the annotations costs more than everything else here
        _READERS[of] = {name: _reader(hint) for name, hint in typing.get_type_hints(of).items()}
    return _READERS[of]


def _reader(hint: Any) -> Callable[[Any], Any] | None:
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin is list and dataclasses.is_dataclass(arguments[0]):
        return lambda value: [record(arguments[0], item) for item in value]
    if origin is dict and dataclasses.is_dataclass(arguments[1]):
        return lambda value: {key: record(arguments[1], item) for key, item in value.items()}
    if isinstance(hint, type) and dataclasses.is_dataclass(hint):
        return lambda value: record(hint, value)
    return None
