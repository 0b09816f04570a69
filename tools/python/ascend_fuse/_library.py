"""The shared library behind the package, by its interface in C (ascend_fuse.h), and how its codes become exceptions. So one package
serves every Python from 3.8 on: no file of it belongs to one version."""

from __future__ import annotations

import ctypes
import json
import os
from pathlib import Path
from typing import Any, Callable, Dict, List, Tuple, Type

from ascend_fuse import errors

Handle = int  # a pointer

ProgressCallback = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p)
PassCallback = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p)


class Progress(ctypes.Structure):
    """ascend_fuse_progress."""

    _fields_ = [("user", ctypes.c_void_p), ("pass_", ctypes.c_char_p), ("number", ctypes.c_size_t), ("count", ctypes.c_size_t)]


INVALID, NOT_FOUND, REFUSED, CANCELLED, SYSTEM, INTERNAL = range(1, 7)
_ERRORS: Dict[int, Type[errors.AscendFuseError]] = {
    INVALID: errors.InvalidError, NOT_FOUND: errors.NotFoundError, REFUSED: errors.RefusedError, CANCELLED: errors.CancelledError,
    SYSTEM: errors.SystemFault, INTERNAL: errors.BrokenGraphError,
}
_ABI = 2

# What the letters of a prototype stand for; before the parentheses is what the function gives.
_TYPES: Dict[str, Any] = {
    "-": None, "c": ctypes.c_int, "i": ctypes.c_int64, "n": ctypes.c_size_t, "d": ctypes.c_float, "s": ctypes.c_char_p,
    "p": ctypes.c_void_p, "P": ctypes.POINTER(ctypes.c_void_p), "S": ctypes.POINTER(ctypes.c_char_p),
    "N": ctypes.POINTER(ctypes.c_size_t), "D": ctypes.POINTER(ctypes.c_double), "g": ProgressCallback, "r": PassCallback,
}

# Calls that take long, or call back, give the lock of the interpreter away.
_LONG = {
    "load": "c(sP)", "load_bytes": "c(pnsP)", "save_as": "c(psp)", "save_bytes": "c(pPN)", "model_text": "c(piS)",
    "optimize": "c(ppP)",
    "list": "c(ppP)", "check": "c(ppP)", "analyze": "c(ppP)", "expand": "c(pp)",
}
_SHORT = {
    "abi": "c()", "version": "s()", "error": "s()",
    "options_new": "p()", "options_set": "c(pss)", "options_rules": "c(pss)", "options_progress": "-(pgp)",
    "options_pass": "c(psssrp)",
    "options_free": "-(p)", "model_free": "-(p)",
    "report_json": "s(p)", "report_text": "s(p)", "report_read": "c(sP)", "report_as": "c(psS)", "report_unmet": "c(psS)", "report_free": "-(p)",
    "is_fatal": "c(cs)", "describe": "c(sspS)",
    "graph_opset": "i(p)", "graph_nodes": "n(pssP)", "graph_inputs": "n(pP)", "graph_outputs": "n(pP)",
    "node_op_type": "s(pp)", "node_domain": "s(pp)", "node_name": "s(pp)", "node_text": "s(pp)", "node_site": "s(pp)",
    "node_alive": "c(pp)",
    "node_inputs": "n(ppP)", "node_outputs": "n(ppP)", "node_attributes": "s(pp)",
    "value_name": "s(pp)", "value_text": "s(pp)", "value_dtype": "s(pp)", "value_shape": "s(pp)", "value_elements": "s(pp)",
    "value_splat": "c(ppD)", "value_producer": "p(pp)", "value_consumers": "n(ppP)", "value_is_input": "c(pp)",
    "value_is_output": "c(pp)",
    "value_is_constant": "c(pp)",
    "attribute_int": "c(psi)", "attribute_float": "c(psd)", "attribute_text": "c(pssn)", "attribute_ints": "c(pspn)",
    "attribute_floats": "c(pspn)", "replace": "c(ppnspnssP)", "insert": "c(pspnssnP)", "set_input": "c(ppnp)",
    "constant": "c(ppnspnsP)",
}


class Library:
    """The functions of the library by their names without `ascend_fuse_`."""

    def __init__(self, path: str) -> None:
        long, short = ctypes.CDLL(path), ctypes.PyDLL(path)
        for table, library in ((_LONG, long), (_SHORT, short)):
            for name, prototype in table.items():
                function = getattr(library, f"ascend_fuse_{name}")
                function.restype = _TYPES[prototype[0]]
                function.argtypes = [_TYPES[letter] for letter in prototype[2:-1]]
                setattr(self, name, function)

    def __getattr__(self, name: str) -> Callable[..., Any]:
        raise AttributeError(f"the library has no function ascend_fuse_{name}")


def _load() -> Library:
    path = Path(__file__).with_name("libascend_fuse.so")
    try:
        library = Library(str(path))
    except (OSError, AttributeError) as error:
        raise ImportError(f"{path} cannot be loaded: {error}. Is it of this machine's processor, and of this package?") from None
    if library.abi() // 1000 != _ABI:
        raise ImportError(f"{path} is of another version of ascend_fuse: its interface is {library.abi()}, not {_ABI}xxx")
    return library


library = _load()


def text_of(data: bytes | None) -> str:
    """Returns a text of the library. What is not UTF-8 can be given back as it was."""
    return "" if data is None else data.decode("utf-8", "surrogateescape")


def bytes_of(text: str | os.PathLike[str]) -> bytes:
    """Returns a text for the library. Raises InvalidError for one with a zero in it, which C would end there."""
    data = os.fspath(text).encode("utf-8", "surrogateescape")
    if b"\0" in data:
        raise errors.InvalidError(f"{text!r}: a text must not have a zero in it")
    return data


def last_error() -> str:
    """Returns the sentence of the last call that failed in this thread."""
    return text_of(library.error())


def check(code: int) -> None:
    """Raises the error that a code stands for."""
    if code:
        raise _ERRORS[code](last_error())


def json_value(data: bytes) -> Any:
    """Returns a value of JSON, in whose texts every character is a byte."""
    return json.loads(data)


def bytes_in(text: str) -> bytes:
    """Returns the bytes that the characters of a text in JSON stand for."""
    return text.encode("latin-1")


def pointers(function: Callable[..., int], *arguments: Any) -> List[int | None]:
    """Returns the list that a function gives by its last argument; None for NULL."""
    first = ctypes.c_void_p()
    count = function(*arguments, ctypes.byref(first))
    return list((ctypes.c_void_p * count).from_address(first.value)) if count and first.value else []


def array(values: List[int | None]) -> Tuple[Any, int]:
    """Returns pointers as an argument, and how many there are."""
    return (ctypes.c_void_p * len(values))(*values), len(values)
