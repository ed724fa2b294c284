"""Whether operations are recorded: no_grad, enable_grad, set_grad_enabled, as scopes and
decorators.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

from .. import _engine

_MODE = _engine.frame + _engine.layout["frame_grad_mode"]
_memory = _engine.memory


def _set(enabled: bool) -> bool:
    """Turns recording on or off, in the engine's frame; returns what it was."""
    was = _memory[_MODE] != 0
    _memory[_MODE] = enabled
    return was


class _Scope:
    """A context manager that is a decorator too: of functions, generators and (with a warning in
    PyTorch) classes.
    """

    _mode: bool

    def __enter__(self) -> None:
        self._before = _set(self._mode)

    def __exit__(self, *_: Any) -> None:
        _set(self._before)

    def clone(self) -> _Scope:
        """A fresh scope of the same kind, for each call of a decorated function."""
        return type(self)()

    def __call__(self, function: Callable[..., Any]) -> Callable[..., Any]:
        if inspect.isgeneratorfunction(function):
            return self._wrap_generator(function)

        @functools.wraps(function)
        def decorated(*args: Any, **kwargs: Any) -> Any:
            with self.clone():
                return function(*args, **kwargs)

        return decorated

    def _wrap_generator(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """The scope holds while the generator runs, not while its user does."""

        @functools.wraps(function)
        def decorated(*args: Any, **kwargs: Any) -> Any:
            generator = function(*args, **kwargs)
            value: Any = None
            raised: BaseException | None = None
            while True:
                try:
                    with self.clone():
                        got = generator.send(value) if raised is None else generator.throw(raised)
                except StopIteration as stop:
                    return stop.value
                value, raised = None, None
                try:
                    value = yield got
                except GeneratorExit:
                    with self.clone():
                        generator.close()
                    raise
                except BaseException as error:
                    raised = error

        return decorated


class no_grad(_Scope):
    """Nothing is recorded inside.

    Example:
        >>> import pygrad
        >>> x = pygrad.ones(1, requires_grad=True)
        >>> with pygrad.no_grad():
        ...     y = x * 2
        >>> y.requires_grad
        False
    """

    _mode = False

    def __new__(cls, orig_func: Callable[..., Any] | None = None) -> Any:
        scope = super().__new__(cls)
        return scope if orig_func is None else scope(orig_func)

    def __init__(self, orig_func: Callable[..., Any] | None = None) -> None:
        pass


class enable_grad(no_grad):
    """Operations are recorded inside, even within no_grad."""

    _mode = True


class set_grad_enabled(_Scope):
    """Turns recording on or off: at once when called, and until the end of a ``with`` when used
    so.
    """

    def __init__(self, mode: bool) -> None:
        if not isinstance(mode, bool):
            raise TypeError(
                "set_grad_enabled(): argument 'enabled' (position 1) must be bool, not "
                f"{type(mode).__name__}"
            )
        self._mode = self.mode = mode
        self._before = _set(mode)

    def __call__(self, function: Callable[..., Any]) -> Callable[..., Any]:
        _set(self._before)
        return super().__call__(function)

    def __enter__(self) -> None:
        _set(self._mode)

    def __repr__(self) -> str:
        return f"set_grad_enabled(mode={self.mode})"

    def clone(self) -> set_grad_enabled:
        """A scope of the same mode."""
        return set_grad_enabled(self.mode)
