"""The module in C++: models, runs with text for options and JSON for reports, and what passes are given."""

from collections.abc import Callable, Sequence

version: str

_Pairs = Sequence[tuple[str, str]]
_Progress = Callable[[str, int, int], object] | None

class Model:
    """A loaded model; its weights stay in the file."""

    @staticmethod
    def load(path: str) -> Model: ...
    @staticmethod
    def from_bytes(bytes: bytes, path: str = "") -> Model: ...
    def save(self, path: str, weights: str, copy_data: bool, progress: _Progress) -> None: ...
    def to_bytes(self) -> bytes: ...
    def text(self, most_elements: int) -> str: ...
    def run(
        self,
        command: str,
        options: _Pairs,
        rules: _Pairs,
        passes: Sequence[tuple[str, str, str, Callable[[Graph, Rewriter], None]]],
        progress: _Progress,
    ) -> str: ...
    def analyze(self, options: _Pairs, rules: _Pairs, progress: _Progress) -> tuple[str, str, str]: ...
    def expand(self, options: _Pairs, rules: _Pairs, as_atc: bool, progress: _Progress) -> None: ...

class Value:
    """An edge of the graph. Equal handles are the same value."""

    @property
    def name(self) -> str: ...
    @property
    def dtype(self) -> str | None:
        """ "float", "float16", "int64" ...; None where it is not known, and before `infer`."""
    @property
    def shape(self) -> tuple[int | str | None, ...] | None:
        """A dim is a number, an expression in symbols ("2*seq"), or None; None where the rank is not known."""
    @property
    def elements(self) -> list[int | float | str | None] | None:
        """The elements of a small tensor, row by row, where they are known."""
    @property
    def splat(self) -> float | None:
        """The one number that all elements are."""
    @property
    def producer(self) -> Node | None:
        """None for inputs and constants."""
    @property
    def consumers(self) -> list[Node]: ...
    @property
    def is_input(self) -> bool: ...
    @property
    def is_output(self) -> bool: ...
    @property
    def is_constant(self) -> bool: ...
    def __hash__(self) -> int: ...
    def __eq__(self, other: object) -> bool: ...

class Node:
    """A node of the graph. Equal handles are the same node."""

    @property
    def op_type(self) -> str: ...
    @property
    def domain(self) -> str:
        """ "" for the default domain."""
    @property
    def name(self) -> str: ...
    @property
    def inputs(self) -> list[Value | None]:
        """None: an optional input that is left out."""
    @property
    def outputs(self) -> list[Value | None]: ...
    @property
    def attributes(self) -> dict[str, int | float | bytes | list[int] | list[float] | None]:
        """None stands for a tensor, a graph or a type."""
    @property
    def alive(self) -> bool:
        """False once it was replaced and nothing reads it."""
    @property
    def site(self) -> str | None:
        """The kind of the construct that it was made for: such a node belongs to `lower` and `restore`, leave it alone."""
    def __hash__(self) -> int: ...
    def __eq__(self, other: object) -> bool: ...

class Graph:
    """The whole model, to be read; it changes through the rewriter only."""

    def nodes(self, op_type: str | None = None, domain: str = "") -> list[Node]:
        """The nodes that are alive, those of one operator or all; bodies of If, Loop and Scan after the graph around them."""
    @property
    def inputs(self) -> list[Value]: ...
    @property
    def outputs(self) -> list[Value]: ...
    @property
    def opset(self) -> int: ...

_Attributes = dict[str, int | float | str | bytes | list[int] | list[float]]

class Rewriter:
    """The only way to change a graph. Every change can be taken back, and is when the run is a dry one."""

    def replace(
        self,
        outputs: Sequence[Value],
        op_type: str,
        inputs: Sequence[Value | None],
        attributes: _Attributes = {},
        domain: str = "",
        name: str = "",
    ) -> Node:
        """A new node that computes these values, in the place of the nodes that did. Their names and readers stay."""
    def insert(
        self,
        op_type: str,
        inputs: Sequence[Value | None],
        attributes: _Attributes = {},
        domain: str = "",
        name: str = "",
        outputs: int = 1,
    ) -> Node:
        """A new node with new values, behind the nodes that compute its inputs."""
    def set_input(self, node: Node, index: int, value: Value | None) -> None:
        """Makes that input of the node read another value; None leaves it out."""
    def constant(self, elements: bytes, dtype: str, shape: Sequence[int], name: str = "") -> Value:
        """A constant: elements packed little-endian, as of `numpy.ndarray.tobytes`."""

def report_text(json: str, verbose: bool, changed: bool) -> str: ...
def report_html(json: str, command: str, page: bool) -> str: ...
def unmet(json: str, kinds: Sequence[str]) -> list[str]: ...
def findings_text(json: str) -> str: ...
def why_not_written(json: str) -> list[str]: ...
def is_fatal(certain: bool, effect: str) -> bool: ...
def explain(code: str) -> str: ...
def list_codes() -> str: ...
def describe_target(options: _Pairs, operator: str) -> str: ...
def describe_targets() -> str: ...
def chips() -> list[str]: ...
def cann_versions() -> list[str]: ...
def stages() -> list[str]:
    """The names of the passes of `optimize`, in their order (docs/passes.md)."""
