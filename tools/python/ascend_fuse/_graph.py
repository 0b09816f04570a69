"""What a pass in Python is given: a view of the graph and a rewriter. A handle knows the pass it belongs to and is refused when
that has ended: Python may be wrong, and does not crash."""

from __future__ import annotations

import contextlib
import ctypes
from typing import Any, Dict, Iterator, List, Mapping, Optional, Sequence, Tuple, Union

from ascend_fuse._library import NOT_FOUND, array, bytes_in, bytes_of, json_value, last_error, library, pointers, text_of

AttributeValue = Union[int, float, str, bytes, Sequence[int], Sequence[float]]


class _Session:
    """One call of one pass."""

    def __init__(self, graph: int) -> None:
        self._graph: int | None = graph

    def end(self) -> None:
        self._graph = None

    @property
    def ended(self) -> bool:
        return self._graph is None

    @property
    def graph(self) -> int:
        if self._graph is None:
            raise RuntimeError("the pass has ended: what it was given cannot be used any more")
        return self._graph


class _Handle:
    """A node or a value: equal handles are the same one."""

    __slots__ = ("_pointer", "_session")

    def __init__(self, session: _Session, pointer: int) -> None:
        self._session = session
        self._pointer = pointer

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and other._pointer == self._pointer

    def __hash__(self) -> int:
        return hash(self._pointer)

    def _text(self, function: Any) -> str:
        return text_of(function(self._session.graph, self._pointer))

    def _nodes(self, function: Any) -> List[Node]:
        session = self._session
        return [Node(session, pointer) for pointer in pointers(function, session.graph, self._pointer) if pointer]

    def _values(self, function: Any) -> List[Optional[Value]]:
        session = self._session
        return [Value(session, pointer) if pointer else None for pointer in pointers(function, session.graph, self._pointer)]


class Value(_Handle):
    """An edge of the graph. Equal handles are the same value."""

    __slots__ = ()

    @property
    def name(self) -> str:
        """Its name."""
        return self._text(library.value_name)

    @property
    def dtype(self) -> str | None:
        """ "float", "float16", "int64" ...; None where it is not known, and before `infer`."""
        return self._text(library.value_dtype) or None

    @property
    def shape(self) -> tuple[int | str | None, ...] | None:
        """A dim is a number, an expression in symbols ("2*seq"), or None; None where the rank is not known."""
        dims = _dims(library.value_shape(self._session.graph, self._pointer))
        return None if dims is None else tuple(dims)

    @property
    def elements(self) -> list[int | float | str | None] | None:
        """The elements of a small tensor, row by row, where they are known."""
        return _dims(library.value_elements(self._session.graph, self._pointer))

    @property
    def splat(self) -> float | None:
        """The one number that all elements are, or None."""
        number = ctypes.c_double()
        known = library.value_splat(self._session.graph, self._pointer, ctypes.byref(number))
        return number.value if known else None

    @property
    def producer(self) -> Node | None:
        """The node that computes it; None for inputs and constants."""
        pointer = library.value_producer(self._session.graph, self._pointer)
        return Node(self._session, pointer) if pointer else None

    @property
    def consumers(self) -> list[Node]:
        """The nodes that read it."""
        return self._nodes(library.value_consumers)

    @property
    def is_input(self) -> bool:
        """Whether the model has it as an input."""
        return bool(library.value_is_input(self._session.graph, self._pointer))

    @property
    def is_output(self) -> bool:
        """Whether the model has it as an output."""
        return bool(library.value_is_output(self._session.graph, self._pointer))

    @property
    def is_constant(self) -> bool:
        """Whether it is a constant of the model."""
        return bool(library.value_is_constant(self._session.graph, self._pointer))

    def __repr__(self) -> str:
        if self._session.ended:
            return "<Value of a pass that has ended>"
        return f"<Value {self._text(library.value_text)}>"


class Node(_Handle):
    """A node of the graph. Equal handles are the same node."""

    __slots__ = ()

    @property
    def op_type(self) -> str:
        """The operator."""
        return self._text(library.node_op_type)

    @property
    def domain(self) -> str:
        """The domain of the operator; "" for the default one."""
        return self._text(library.node_domain)

    @property
    def name(self) -> str:
        """Its name; "" where it has none."""
        return self._text(library.node_name)

    @property
    def inputs(self) -> list[Value | None]:
        """None: an optional input that is left out."""
        return self._values(library.node_inputs)

    @property
    def outputs(self) -> list[Value | None]:
        """None: an output that is left out."""
        return self._values(library.node_outputs)

    @property
    def attributes(self) -> dict[str, int | float | bytes | list[int] | list[float] | None]:
        """By name: numbers, bytes and lists; None stands for a tensor, a graph or a type."""
        read = json_value(library.node_attributes(self._session.graph, self._pointer))
        return {text_of(bytes_in(name)): bytes_in(value) if isinstance(value, str) else value for name, value in read.items()}

    @property
    def alive(self) -> bool:
        """False once it was replaced and nothing reads it."""
        return bool(library.node_alive(self._session.graph, self._pointer))

    @property
    def site(self) -> str | None:
        """The kind of the construct that it was made for: such a node belongs to `lower` and `restore`, leave it alone."""
        return self._text(library.node_site) or None

    def __repr__(self) -> str:
        return "<Node of a pass that has ended>" if self._session.ended else f"<Node {self._text(library.node_text)}>"


class Graph:
    """The whole model, to be read; it changes through the rewriter only."""

    def __init__(self, session: _Session) -> None:
        self._session = session

    def nodes(self, op_type: str | None = None, domain: str = "") -> list[Node]:
        """The nodes that are alive, those of one operator or all; bodies of If, Loop and Scan after the graph around them."""
        session = self._session
        named = None if op_type is None else bytes_of(op_type)
        return [Node(session, p) for p in pointers(library.graph_nodes, session.graph, named, bytes_of(domain)) if p]

    @property
    def inputs(self) -> list[Value]:
        """The inputs of the model."""
        return [Value(self._session, p) for p in pointers(library.graph_inputs, self._session.graph) if p]

    @property
    def outputs(self) -> list[Value]:
        """The outputs of the model."""
        return [Value(self._session, p) for p in pointers(library.graph_outputs, self._session.graph) if p]

    @property
    def opset(self) -> int:
        """The opset of the default domain."""
        return int(library.graph_opset(self._session.graph))


class Rewriter:
    """The only way to change a graph. Every change can be taken back, and is when the run is a dry one."""

    def __init__(self, session: _Session) -> None:
        self._session = session

    def replace(self, outputs: Sequence[Value], op_type: str, inputs: Sequence[Value | None],
                attributes: Mapping[str, AttributeValue] = {}, domain: str = "", name: str = "") -> Node:
        """A new node that computes these values, in the place of the nodes that did. Their names and readers stay."""
        graph = self._session.graph
        taken, read = self._pointers(outputs), self._pointers(inputs)
        self._set_attributes(attributes)
        made = ctypes.c_void_p()
        self._check(library.replace(graph, *array(taken), bytes_of(op_type), *array(read), bytes_of(domain), bytes_of(name),
                                    ctypes.byref(made)))
        return Node(self._session, made.value or 0)

    def insert(self, op_type: str, inputs: Sequence[Value | None], attributes: Mapping[str, AttributeValue] = {}, domain: str = "",
               name: str = "", outputs: int = 1) -> Node:
        """A new node with new values, after the nodes that compute its inputs."""
        graph = self._session.graph
        read = self._pointers(inputs)
        self._set_attributes(attributes)
        made = ctypes.c_void_p()
        self._check(library.insert(graph, bytes_of(op_type), *array(read), bytes_of(domain), bytes_of(name), outputs,
                                   ctypes.byref(made)))
        return Node(self._session, made.value or 0)

    def set_input(self, node: Node, index: int, value: Value | None) -> None:
        """Makes that input of the node read another value; None leaves it out."""
        graph = self._session.graph
        if node._session is not self._session:
            raise ValueError("a node of another pass")
        if index < 0:
            raise IndexError("the node has no such input")
        self._check(library.set_input(graph, node._pointer, index, self._pointers([value])[0]))

    def constant(self, elements: bytes, dtype: str, shape: Sequence[int], name: str = "") -> Value:
        """A constant: elements packed little-endian, as of `numpy.ndarray.tobytes`."""
        graph = self._session.graph
        made = ctypes.c_void_p()
        dims = (ctypes.c_int64 * len(shape))(*shape)
        self._check(library.constant(graph, elements, len(elements), bytes_of(dtype), dims, len(shape), bytes_of(name),
                                     ctypes.byref(made)))
        return Value(self._session, made.value or 0)

    def _pointers(self, values: Sequence[Value | None]) -> List[int | None]:
        for value in values:
            if value is not None and not isinstance(value, Value):
                raise TypeError(f"expected a Value or None, not {value!r}")
            if value is not None and value._session is not self._session:
                raise ValueError("a value of another pass")
        return [None if value is None else value._pointer for value in values]

    def _set_attributes(self, attributes: Mapping[str, AttributeValue]) -> None:
        graph = self._session.graph
        for function, name, arguments in [_attribute(name, value) for name, value in attributes.items()]:
            self._check(function(graph, name, *arguments))

    @staticmethod
    def _check(code: int) -> None:
        if code:
            raise (IndexError if code == NOT_FOUND else ValueError)(last_error())


def _attribute(name: str, value: AttributeValue) -> Tuple[Any, bytes, Tuple[Any, ...]]:
    """The function that sets an attribute, its name, and what else the function takes."""
    key = bytes_of(name)
    if isinstance(value, (bytes, str)):
        data = value if isinstance(value, bytes) else value.encode("utf-8", "surrogateescape")
        return library.attribute_text, key, (data, len(data))
    if isinstance(value, float):
        return library.attribute_float, key, (value,)
    if hasattr(value, "__index__"):
        return library.attribute_int, key, (int(value),)
    if isinstance(value, Sequence):
        if all(hasattr(number, "__index__") for number in value):
            return library.attribute_ints, key, ((ctypes.c_int64 * len(value))(*map(int, value)), len(value))
        if all(hasattr(number, "__float__") for number in value):
            return library.attribute_floats, key, ((ctypes.c_float * len(value))(*map(float, value)), len(value))
    raise TypeError(f"attribute {name}: expected a number, a text or a list of numbers")


def _dims(data: bytes) -> List[Any] | None:
    read: List[Any] | None = json_value(data)
    return read and [text_of(bytes_in(dim)) if isinstance(dim, str) else dim for dim in read]


@contextlib.contextmanager
def graph_and_rewriter(graph: int) -> Iterator[Tuple[Graph, Rewriter]]:
    """What a pass is given. Handles that it keeps raise an error when they are used afterwards."""
    session = _Session(graph)
    try:
        yield Graph(session), Rewriter(session)
    finally:
        session.end()
