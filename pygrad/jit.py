"""What scripts ask of TorchScript, which is not here: functions and modules run as they are.

Example:
    >>> import pygrad as torch
    >>> @torch.jit.script
    ... def double(x):
    ...     return x * 2
    >>> double(torch.ones(1))
    tensor([2.])
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ._absent import answers, refusals


def script(obj: Any, *_: Any, **__: Any) -> Any:
    """The function, class or module itself: what a compiled one computes is the same."""
    return obj


def ignore(drop: Any = False, **_: Any) -> Any:
    """A decorator, with or without arguments, that changes nothing."""
    return drop if callable(drop) else lambda function: function


unused = export = script

_functions = answers(__name__, {"is_scripting": False, "is_tracing": False})
_functions |= refusals(
    __name__,
    "save load trace trace_module freeze fork wait",
    NotImplementedError,
    "jit.{}: pygrad has no TorchScript",
)
globals().update(_functions)

__all__ = ["export", "ignore", "script", "unused"]
__all__ += _functions

if TYPE_CHECKING:

    def __getattr__(name: str) -> Any: ...
