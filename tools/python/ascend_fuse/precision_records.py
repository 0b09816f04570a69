"""The records of `ascend-fuse precision`: what its JSON holds (tools/schema/precision.schema.json)."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

SCHEMA = 1


@dataclasses.dataclass
class TypeCount:
    """How many results of each type an operator, or a module, gives."""

    of: str
    types: dict[str, int]


@dataclasses.dataclass
class CastCount:
    """Casts from one type to another."""

    types: str  # "float16 -> float32"
    count: int
    nodes: list[str]


@dataclasses.dataclass
class Island:
    """float32 nodes between casts in a model that is otherwise of a half type."""

    module: str
    count: int  # of such places, one a layer
    operators: list[str]
    casts_in: int
    casts_out: int
    nodes: list[str]  # of all places


@dataclasses.dataclass
class ConstantFinding:
    """A constant that a half type does not hold."""

    name: str
    type: str
    half: str
    effect: str  # overflows, vanishes, nan
    count: int  # of the elements with that effect
    elements: int
    largest: float
    smallest: float
    readers: list[str]
    because: str


@dataclasses.dataclass
class Risk:
    """A construct that half precision can break, found in the file alone."""

    construct: str
    severity: str  # certain: constants alone decide; possible: the numbers decide
    ops: list[str]
    modules: list[str]  # layers are one: "layers.*"
    nodes: list[str]
    because: str
    way_out: str


@dataclasses.dataclass
class RangeFinding:
    """A value that leaves the range of the half type, or of which much vanishes, in a run."""

    node: str
    op: str
    module: str
    value: str
    count: int
    largest: float
    smallest: float
    over: int
    to_zero: int
    subnormal: int
    infinite: int
    nan: int
    because: str


@dataclasses.dataclass
class OutputError:
    """How far an output of a half run is from float32."""

    case: str
    output: str
    max_rel: float
    lost: int  # elements that became NaN or infinite
    ok: bool


@dataclasses.dataclass
class ModuleError:
    """The largest error inside of a module, and with the list."""

    module: str
    max_rel: float
    lost: int
    node: str  # where numbers become NaN or infinite first, else where the error is largest
    with_list: float
    lost_with_list: int


@dataclasses.dataclass
class Simulation:
    """A run in a half type, and the same with the list."""

    half: str
    tolerance: float
    ok: bool
    outputs: list[OutputError] = dataclasses.field(default_factory=list)
    ok_with_list: bool = False
    outputs_with_list: list[OutputError] = dataclasses.field(default_factory=list)
    modules: list[ModuleError] = dataclasses.field(default_factory=list)

    def worst(self, with_list: bool = False) -> OutputError:
        """The output that is farthest off."""
        outputs = self.outputs_with_list if with_list else self.outputs
        return max(outputs, key=lambda o: (o.lost > 0, o.max_rel), default=OutputError("", "", 0.0, 0, True))


@dataclasses.dataclass
class KeptNode:
    """A node that has to stay float32."""

    name: str
    op: str
    ge_op: str
    module: str
    because: str


@dataclasses.dataclass
class WrittenFile:
    """A file for ATC."""

    option: str
    path: str
    nodes: int
    ok: bool  # whether a run with these nodes in float32, and no others, is right
    text: str
    atc: str  # the line of atc that goes with it
    atc_v2: str  # the same with --precision_mode_v2
    notes: list[str] = dataclasses.field(default_factory=list)


@dataclasses.dataclass
class WeightCandidate:
    """A weight that can be stored in a smaller type."""

    name: str
    module: str
    op: str
    type: str
    bytes: int
    saved_float16: int  # 0 where it loses numbers there
    saved_bfloat16: int
    saved_int8: int  # one scale for each output channel; 0 where no product reads it, or where it loses too much
    int8_error: float  # root mean square error, relative to that of the weight


@dataclasses.dataclass
class Runs:
    """The inputs of the runs, and what they took."""

    source: str = ""  # data or seeded; "" where nothing was run
    cases: list[str] = dataclasses.field(default_factory=list)
    trials: int = 0
    complete: bool = True  # False where time ran out before the list was as small as it could be


@dataclasses.dataclass
class PrecisionReport:
    """What half precision does to a model. `to_json` is the section `precision` of other reports, too."""

    schema: int = SCHEMA
    model: str = ""
    target: str = ""
    saturates: bool = False
    nodes: int = 0
    types_by_operator: list[TypeCount] = dataclasses.field(default_factory=list)
    types_by_module: list[TypeCount] = dataclasses.field(default_factory=list)
    casts: list[CastCount] = dataclasses.field(default_factory=list)
    islands: list[Island] = dataclasses.field(default_factory=list)
    constants: list[ConstantFinding] = dataclasses.field(default_factory=list)
    risks: list[Risk] = dataclasses.field(default_factory=list)
    runs: Runs = dataclasses.field(default_factory=Runs)
    ranges: list[RangeFinding] = dataclasses.field(default_factory=list)
    simulations: list[Simulation] = dataclasses.field(default_factory=list)
    keep: list[KeptNode] = dataclasses.field(default_factory=list)
    files: list[WrittenFile] = dataclasses.field(default_factory=list)
    candidates: list[WeightCandidate] = dataclasses.field(default_factory=list)
    atc: list[str] = dataclasses.field(default_factory=list)  # lines of atc, each of which will do
    verdict: str = ""
    notes: list[str] = dataclasses.field(default_factory=list)

    @property
    def ok(self) -> bool:
        """Whether float16 is right as it is, or with the list; True where nothing was run."""
        return not self.simulations or self.simulations[0].ok or self.simulations[0].ok_with_list

    def to_dict(self) -> dict[str, Any]:
        return dataclasses.asdict(self)

    def to_json(self) -> str:
        """Returns the JSON, in which numbers that JSON does not have are texts ("inf")."""
        return json.dumps(_finite(self.to_dict()), indent=1)

    def to_text(self, verbose: bool = False) -> str:
        from ascend_fuse.precision_text import text_of

        return text_of(self, verbose)

    def __str__(self) -> str:
        return self.to_text()


def _finite(data: Any) -> Any:
    if isinstance(data, dict):
        return {key: _finite(value) for key, value in data.items()}
    if isinstance(data, list):
        return [_finite(value) for value in data]
    if isinstance(data, float) and (data != data or data in (float("inf"), float("-inf"))):
        return str(data)
    return data
