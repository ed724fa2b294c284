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

import warnings
from collections.abc import Callable
from contextlib import ContextDecorator
from typing import TYPE_CHECKING, Any
from typing import Final as Final

from ._absent import answers, refusals
from ._package import submodule
from .nn import Module


def script(obj: Any, *_: Any, **__: Any) -> Any:
    """The function, class or module itself: what a compiled one computes is the same."""
    return obj


def trace(func: Any, *_: Any, **__: Any) -> Any:
    """The function or module itself, which computes what it does for other inputs too."""
    return func


def ignore(drop: Any = False, **_: Any) -> Any:
    """A decorator, with or without arguments, that changes nothing."""
    return drop if callable(drop) else lambda function: function


unused = export = script
freeze = trace_module = trace


def fork(func: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """A future of what the function gives, which is called at once: what it raises is raised here.

    Example:
        >>> import pygrad as torch
        >>> torch.jit.wait(torch.jit.fork(torch.neg, torch.ones(1)))
        tensor([-1.])
    """
    future = submodule("futures").Future()
    future.set_result(func(*args, **kwargs))
    return future


def wait(future: Any) -> Any:
    """What a forked function gave."""
    return future.wait()


_fork, _wait = fork, wait

_functions = answers(__name__, {"is_scripting": False, "is_tracing": False})
_functions |= refusals(
    __name__,
    "save load",
    NotImplementedError,
    "jit.{}: pygrad has no TorchScript",
)
globals().update(_functions)


class ScriptModule(Module):
    """A module like any other, for programs that derive theirs from it."""


class TracerWarning(Warning):
    """What a trace would warn of; nothing is traced, so nothing warns."""

    @staticmethod
    def ignore_lib_warnings() -> None:
        """Ignores those of PyTorch's own modules."""
        warnings.filterwarnings("ignore", category=TracerWarning, module="torch.(?!jit)")


class strict_fusion(ContextDecorator):
    """A scope in which nothing is different."""

    def __enter__(self) -> None:
        pass

    def __exit__(self, *_: object) -> None:
        pass


__all__ = ["ScriptModule", "export", "fork", "freeze", "ignore", "script", "strict_fusion"]
__all__ += ["trace", "trace_module", "unused", "wait"]
__all__ += _functions

if TYPE_CHECKING:

    def __getattr__(name: str) -> Any: ...
