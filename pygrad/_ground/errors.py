"""Exceptions of pygrad that Python does not have, and the table from the engine's names to
types.
"""

from __future__ import annotations

_PACKAGE = __name__.partition(".")[0]


class OutOfMemoryError(RuntimeError):
    """The engine's memory has no room for a tensor. The engine stays usable."""


class LimitExceeded(RuntimeError):
    """A call has taken more than `limits` allows. The engine stays usable."""


class LinAlgError(RuntimeError):
    """A linear algebra routine met a matrix that it cannot handle."""


class EngineError(RuntimeError):
    """The engine broke down (a bug of pygrad's) and cannot be used any more in this process."""


for _each in (OutOfMemoryError, LimitExceeded, EngineError):
    _each.__module__ = _PACKAGE  # the module that users know, which tracebacks show
LinAlgError.__name__ = LinAlgError.__qualname__ = "_LinAlgError"  # as PyTorch has it
LinAlgError.__module__ = f"{_PACKAGE}._C"

BY_NAME: dict[str, type[BaseException]] = {
    kind.__name__.lstrip("_"): kind
    for kind in (
        RuntimeError,
        TypeError,
        ValueError,
        IndexError,
        NotImplementedError,
        OutOfMemoryError,
        AttributeError,
        KeyError,
        OverflowError,
        AssertionError,
        LinAlgError,
        ZeroDivisionError,
        RecursionError,
    )
}
