"""TorchScript's interface for scripts; there is no compiler: functions and modules run unchanged.

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
from types import FunctionType
from typing import TYPE_CHECKING, Any
from typing import Final as Final

from .._ground.absent import answers, refusals
from .._ground.package import submodule
from ..nn import Module

_MARK = "_is_scripted"


def script(obj: Any, *_: Any, **__: Any) -> Any:
    """Returns the function, class or module itself: its compiled form would compute the same.

    It is marked, and so are the modules within it: `isinstance` accepts them as a `ScriptModule`,
    and a function as a `ScriptFunction`.
    """
    if isinstance(obj, Module):
        for module in obj.modules():
            module.__dict__[_MARK] = True
    elif isinstance(obj, FunctionType):
        obj.__dict__[_MARK] = True
    return obj


def trace(func: Any = None, *_: Any, **__: Any) -> Any:
    """Returns the function or module itself, which also works for other inputs; marked as by
    `script`.
    """
    return script(func)


def trace_module(mod: Any, *_: Any, **__: Any) -> Any:
    """Returns the module itself, as `trace` does."""
    return script(mod)


def ignore(drop: Any = False, **_: Any) -> Any:
    """A decorator, with or without arguments, that changes nothing."""
    return drop if callable(drop) else lambda function: function


def _itself(obj: Any, *_: Any, **__: Any) -> Any:
    """The function or module itself."""
    return obj


unused = export = _itself


def freeze(mod: Any, *_: Any, **__: Any) -> Any:
    """The module itself."""
    return mod


def fork(func: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """A future of the function's result. The function is called at once, and its errors are raised
    here.

    Example:
        >>> import pygrad as torch
        >>> torch.jit.wait(torch.jit.fork(torch.neg, torch.ones(1)))
        tensor([-1.])
    """
    future = submodule("futures").Future()
    future.set_result(func(*args, **kwargs))
    return future


def wait(future: Any) -> Any:
    """The result of a forked function."""
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


class _Marked(type):
    """Lets marked objects pass `isinstance`."""

    def __instancecheck__(cls, instance: object) -> bool:
        if super().__instancecheck__(instance):
            return True
        kind = FunctionType if cls is ScriptFunction else Module
        known = cls in (ScriptModule, RecursiveScriptModule, ScriptFunction)
        return known and isinstance(instance, kind) and _MARK in instance.__dict__


class ScriptModule(Module, metaclass=_Marked):
    """A module like any other, for programs that derive theirs from it."""


class RecursiveScriptModule(ScriptModule):
    """PyTorch's class of scripted modules."""


class ScriptFunction(metaclass=_Marked):
    """PyTorch's class of scripted functions.

    Raises: TypeError: on construction.
    """

    def __init__(self, *_: Any, **__: Any) -> None:
        raise TypeError("ScriptFunction: No constructor defined!")


class TracerWarning(Warning):
    """PyTorch's warning of traces; never raised, as nothing is traced."""

    @staticmethod
    def ignore_lib_warnings() -> None:
        """Ignores warnings of PyTorch's own modules."""
        warnings.filterwarnings("ignore", category=TracerWarning, module="torch.(?!jit)")


class strict_fusion(ContextDecorator):
    """A scope in which nothing is different."""

    def __enter__(self) -> None:
        pass

    def __exit__(self, *_: object) -> None:
        pass


__all__ = [
    "RecursiveScriptModule",
    "ScriptFunction",
    "ScriptModule",
    "export",
    "fork",
    "freeze",
    "ignore",
    "script",
    "strict_fusion",
]
__all__ += ["trace", "trace_module", "unused", "wait"]
__all__ += _functions

if TYPE_CHECKING:

    def __getattr__(name: str) -> Any: ...
