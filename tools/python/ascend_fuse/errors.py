"""What the package raises. Every message is a sentence that says what is wrong and, where there is one, the way out."""

from __future__ import annotations


class AscendFuseError(Exception):
    """The base of all of them."""


class InvalidError(AscendFuseError, ValueError):
    """A model that is damaged or not valid, an option, a rule or a value that means nothing."""


class NotFoundError(AscendFuseError, LookupError):
    """There is no such file, target or code."""


class RefusedError(AscendFuseError):
    """It cannot be done with this model: external data is missing, a node that no rule knows, more than 2 GB in one file."""


class CancelledError(AscendFuseError):
    """The run was ended from outside."""


class SystemFault(AscendFuseError, OSError):
    """The file system: no permission, no room."""


class BrokenGraphError(AscendFuseError):
    """A pass left an invalid graph; the sentence names the pass, the node and the value."""


class NotReadByAtc(AscendFuseError):
    """ATC refuses the optimized model, or reads it as another one. `report` says where; `force=True` returns it all the same."""

    def __init__(self, message: str, report: object) -> None:
        super().__init__(message)
        self.report = report


class RequirementNotMet(AscendFuseError):
    """What `require` asked for was left, or is not in the model. `report` says why."""

    def __init__(self, message: str, report: object) -> None:
        super().__init__(message)
        self.report = report
