"""Whether and how operations are recorded: scopes that are switches and decorators too.

Every mode belongs to one thread; a new thread starts with recording on and all else off.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, TypeVar

from .._boundary.modes import (
    ANY_LAYOUT,
    GRAD,
    INFERENCE,
    ONE_THREAD,
    VIEW_REPLAY,
    get,
    put,
    replace,
    switch,
)
from .._ground.decorators import _DecoratorContextManager, _NoParamDecoratorContextManager
from .._table.builtins import builtin
from .._table.functions import C
from .._tensor.base import Tensor

__all__ = [
    "enable_grad",
    "inference_mode",
    "no_grad",
    "set_grad_enabled",
    "set_multithreading_enabled",
]

_Self = TypeVar("_Self", bound="_Switch")


def _must_be_bool(name: str, argument: str, value: Any) -> bool:
    if not isinstance(value, bool):
        raise TypeError(
            f"{name}(): argument '{argument}' (position 1) must be bool, not {type(value).__name__}"
        )
    return value


class no_grad(_NoParamDecoratorContextManager):
    """Nothing is recorded inside: results do not require grad, whatever their inputs.

    Example:
        >>> import pygrad
        >>> x = pygrad.ones(1, requires_grad=True)
        >>> with pygrad.no_grad():
        ...     y = x * 2
        >>> y.requires_grad
        False
        >>> @pygrad.no_grad()
        ... def double(x):
        ...     return x * 2
        >>> double(x).requires_grad
        False
    """

    def __init__(self, orig_func: Callable[..., Any] | None = None) -> None:
        self.prev = False

    def __enter__(self) -> None:
        self.prev = bool(switch(GRAD, False) & GRAD)

    def __exit__(self, exc_type: Any, exc_value: Any, traceback: Any) -> None:
        switch(GRAD, self.prev)


class enable_grad(_NoParamDecoratorContextManager):
    """Operations are recorded inside, even within no_grad (but not within inference_mode).

    Example:
        >>> import pygrad
        >>> x = pygrad.ones(1, requires_grad=True)
        >>> with pygrad.no_grad(), pygrad.enable_grad():
        ...     y = x * 2
        >>> y.requires_grad
        True
    """

    def __init__(self, orig_func: Callable[..., Any] | None = None) -> None:
        self.prev = False

    def __enter__(self) -> None:
        self.prev = bool(switch(GRAD, True) & GRAD)

    def __exit__(self, exc_type: Any, exc_value: Any, traceback: Any) -> None:
        switch(GRAD, self.prev)


class _Switch(_DecoratorContextManager):
    """A mode that is on or off from the call on, or until the end of a ``with``; a decorated
    function leaves the caller's as it was.
    """

    _bit: ClassVar[int]
    _setter: ClassVar[str]

    def __init__(self, mode: bool) -> None:
        self.mode = _must_be_bool(self._setter, "enabled", mode)
        self.prev = bool(switch(self._bit, mode) & self._bit)

    def __call__(self, orig_func: Callable[..., Any]) -> Callable[..., Any]:
        switch(self._bit, self.prev)
        return super().__call__(orig_func)

    def __enter__(self) -> None:
        switch(self._bit, self.mode)

    def __exit__(self, exc_type: Any, exc_value: Any, traceback: Any) -> None:
        switch(self._bit, self.prev)

    def clone(self: _Self) -> _Self:
        """A scope of the same mode."""
        return type(self)(self.mode)


class set_grad_enabled(_Switch):
    """Turns recording on or off: at once if called, until the end of the block if used in ``with``.

    Args:
        mode: whether operations are recorded.

    Example:
        >>> import pygrad
        >>> x = pygrad.ones(1, requires_grad=True)
        >>> with pygrad.set_grad_enabled(False):
        ...     y = x * 2
        >>> y.requires_grad
        False
        >>> _ = pygrad.set_grad_enabled(True)
    """

    _bit = GRAD
    _setter = "set_grad_enabled"

    def __repr__(self) -> str:
        kind = type(self)
        return f"{kind.__module__}.{kind.__qualname__}(mode={self.mode})"


class inference_mode(_DecoratorContextManager):
    """Nothing is recorded inside, not even with enable_grad, and tensors made inside are never
    recorded: outside they cannot be saved for backward or written to.

    Args:
        mode: False switches inference mode off inside; a function is decorated.

    Example:
        >>> import pygrad
        >>> with pygrad.inference_mode():
        ...     y = pygrad.ones(2) * 2
        >>> y.is_inference()
        True
        >>> y * pygrad.ones(2, requires_grad=True)
        Traceback (most recent call last):
        ...
        RuntimeError: Inference tensors cannot be saved for backward. ...
    """

    def __new__(cls, mode: Any = True) -> Any:
        return super().__new__(cls) if isinstance(mode, bool) else cls()(mode)

    def __init__(self, mode: Any = True) -> None:
        self.mode = mode
        self._before: list[int] = []

    def __enter__(self) -> None:
        inside = INFERENCE | ONE_THREAD
        self._before.append(replace(GRAD, inside) if self.mode else replace(inside, GRAD))

    def __exit__(self, exc_type: Any, exc_value: Any, traceback: Any) -> None:
        put(self._before.pop())

    def clone(self) -> inference_mode:
        """A scope of the same mode."""
        return type(self)(self.mode)


class set_multithreading_enabled(_DecoratorContextManager):
    """Accepted and remembered: backward always runs on the calling thread.

    Args:
        mode: whether backward might use more threads, if there were any.

    Example:
        >>> import pygrad
        >>> with pygrad.autograd.set_multithreading_enabled(False):
        ...     pass
    """

    def __init__(self, mode: bool) -> None:
        on = _must_be_bool("set_multithreading_enabled", "enabled", mode)
        self.prev = not switch(ONE_THREAD, not on) & ONE_THREAD
        self.mode = mode

    def __enter__(self) -> None:
        pass

    def __exit__(self, exc_type: Any, exc_value: Any, traceback: Any) -> None:
        switch(ONE_THREAD, not self.prev)

    def clone(self) -> set_multithreading_enabled:
        """A scope of the same mode."""
        return type(self)(self.mode)


@builtin
def is_multithreading_enabled() -> bool:
    """The setting of `set_multithreading_enabled` in this thread: True by default.

    Example:
        >>> import pygrad
        >>> with pygrad.autograd.set_multithreading_enabled(False):
        ...     pygrad.autograd.is_multithreading_enabled()
        False
    """
    return not get() & ONE_THREAD


class _force_original_view_tracking(_Switch):
    """Sets whether new views record the ops that made them: at once if called, until the end of the
    block if used in ``with``. After a write to its base, such a view is recorded anew by the nodes
    of its own ops; any other view by one as_strided.

    Args:
        mode: whether views record their ops.

    Example:
        >>> import pygrad
        >>> x = pygrad.ones(2, 2, requires_grad=True).clone()
        >>> with pygrad.autograd._force_original_view_tracking(True):
        ...     y = x.view(-1)
        >>> y.add_(1).grad_fn.name()
        'ViewBackward0'
    """

    _bit = VIEW_REPLAY
    _setter = "set_view_replay_enabled"


@builtin
def _set_view_replay_enabled(enabled: bool) -> None:
    """Sets the switch that `is_view_replay_enabled` returns."""
    switch(VIEW_REPLAY, _must_be_bool("set_view_replay_enabled", "enabled", enabled))


@builtin
def is_view_replay_enabled() -> bool:
    """Whether views made in this thread know how they were made: False by default.

    Example:
        >>> import pygrad
        >>> with pygrad.autograd._force_original_view_tracking(True):
        ...     pygrad.autograd.is_view_replay_enabled()
        True
    """
    return bool(get() & VIEW_REPLAY)


class _unsafe_preserve_version_counter(_DecoratorContextManager):
    """Writes to the tensors within the scope do not change their versions: the former versions are
    restored at the end.

    Args:
        tensors: one tensor, or a tuple of tensors.

    Raises:
        AssertionError: anything else.

    Example:
        >>> import pygrad
        >>> x = pygrad.ones(2)
        >>> with pygrad.autograd._unsafe_preserve_version_counter(x):
        ...     _ = x.add_(1)
        >>> x._version
        0
    """

    def __init__(self, tensors: Tensor | tuple[Tensor, ...]) -> None:
        self.tensors = (tensors,) if isinstance(tensors, Tensor) else tensors
        if not isinstance(self.tensors, tuple):
            raise AssertionError("Expected tensors to be a tuple")
        self.prev_versions = tuple(tensor._version for tensor in self.tensors)

    def __enter__(self) -> None:
        pass

    def __exit__(self, exc_type: Any, exc_value: Any, traceback: Any) -> None:
        for tensor, version in zip(self.tensors, self.prev_versions, strict=True):
            C["_set_version"](tensor, version)

    def clone(self) -> _unsafe_preserve_version_counter:
        """A scope of the same tensors, from their present versions on."""
        return type(self)(self.tensors)


class enforce_grad_layout_policy(_DecoratorContextManager):
    """Whether a new ``.grad`` must have the strides of its tensor (the default) or may keep the
    layout in which backward made it, which saves a copy.

    Args:
        enable: False accepts any layout, at once and until the end of a ``with``.

    Example:
        >>> import pygrad
        >>> x = pygrad.ones(2, 3).t().requires_grad_()
        >>> with pygrad.autograd.enforce_grad_layout_policy(False):
        ...     (x.contiguous() * 2).sum().backward()
        >>> x.grad.shape
        torch.Size([3, 2])
    """

    def __init__(self, enable: bool = True) -> None:
        on = _must_be_bool("set_grad_layout_enforcement_enabled", "enabled", enable)
        self.prev = not switch(ANY_LAYOUT, not on) & ANY_LAYOUT
        self.mode = enable

    def __call__(self, orig_func: Callable[..., Any]) -> Callable[..., Any]:
        switch(ANY_LAYOUT, not self.prev)
        return super().__call__(orig_func)

    def __enter__(self) -> None:
        pass

    def __exit__(self, exc_type: Any, exc_value: Any, traceback: Any) -> None:
        switch(ANY_LAYOUT, not self.prev)

    def clone(self) -> enforce_grad_layout_policy:
        """A scope of the same policy."""
        return type(self)(self.mode)
