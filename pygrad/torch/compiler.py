"""Queries and settings of PyTorch's compiler, which pygrad lacks; `pygrad.compile` returns its
argument.

Example:
    >>> import pygrad as torch
    >>> torch.compiler.is_compiling()
    False
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .._ground.absent import answers
from .._tensor.functions import compile as _compile


def disable(fn: Any = None, recursive: bool = True, **_: Any) -> Any:
    """The function itself; a decorator, with or without arguments."""
    return (lambda function: function) if fn is None else fn


def allow_in_graph(fn: Any) -> Any:
    """The function itself."""
    return fn


def compile(*args: Any, **kwargs: Any) -> Any:
    """Like :func:`pygrad.compile`."""
    return _compile(*args, **kwargs)


_functions = answers(
    __name__,
    {
        "get_default_backend": "eager",
        **dict.fromkeys("is_compiling is_dynamo_compiling is_exporting".split(), False),
        **dict.fromkeys("reset cudagraph_mark_step_begin".split()),
    },
)
globals().update(_functions)

__all__ = ["allow_in_graph", "compile", "disable"]
__all__ += _functions

if TYPE_CHECKING:

    def __getattr__(name: str) -> Any: ...
