"""Modes that intercept all ops below autograd: PyTorch's `torch.utils._python_dispatch`.

Example:
    >>> import pygrad as torch
    >>> from pygrad.utils._python_dispatch import TorchDispatchMode
    >>> class Listing(TorchDispatchMode):
    ...     def __torch_dispatch__(self, func, types, args=(), kwargs=None):
    ...         print(func)
    ...         return func(*args, **(kwargs or {}))
    >>> x = torch.ones(2, requires_grad=True)
    >>> with Listing():
    ...     y = (x * 2).sum()
    aten.mul.Tensor
    aten.sum.default
"""

from __future__ import annotations

import warnings
from _thread import get_ident
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final, TypeVar

from .._dispatch import handlers
from .._table.builtins import builtin
from .._tensor.tensor import Tensor

__all__ = [
    "BaseTorchDispatchMode",
    "TorchDispatchMode",
    "is_traceable_wrapper_subclass",
    "is_traceable_wrapper_subclass_type",
    "return_and_correct_aliasing",
    "transform_subclass",
]

_Mode = TypeVar("_Mode", bound="TorchDispatchMode")


class TorchDispatchMode:
    """A scope in which this object runs every op that autograd or the program calls: its
    ``__torch_dispatch__(func, types, args, kwargs)`` gets an `OpOverload` and returns the result.
    Modes nest; the ops that a mode calls go to the mode around it.
    """

    supports_higher_order_operators = False

    def __init__(self, _dispatch_key: Any = None) -> None:
        if _dispatch_key is not None:
            self.__dict__["_dispatch_key"] = _dispatch_key

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Sequence[Any] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        raise NotImplementedError

    def __enter__(self: _Mode) -> _Mode:
        _push_mode(self)
        return self

    def __exit__(self, *_: object) -> None:
        handlers.pop_mode()

    @classmethod
    def push(cls, *args: Any, **kwargs: Any) -> Any:
        """The old constructor."""
        warnings.warn(
            "`Mode.push()` is no longer necessary and can be replaced with just `with Mode()`",
            stacklevel=2,
        )
        return cls(*args, **kwargs)

    @classmethod
    def is_infra_mode(cls) -> bool:
        """Whether the mode belongs to a tracer rather than to a program."""
        return False

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return True

    @classmethod
    def ignore_compile_internals(cls) -> bool:
        """Whether the mode ignores ops in compiled functions."""
        return cls.is_infra_mode()


class BaseTorchDispatchMode(TorchDispatchMode):
    """A mode that runs every op unchanged."""

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Sequence[Any] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        return func(*args, **(kwargs or {}))


_push_mode: Callable[[Any], None] = handlers.push_mode


@builtin
def _pop_mode(k: Any = None) -> Any:
    return handlers.pop_mode()


@contextmanager
def _pop_mode_temporarily(k: Any = None) -> Iterator[Any]:
    mode = _pop_mode()
    try:
        yield mode
    finally:
        _push_mode(mode)


@contextmanager
def _disable_current_modes() -> Iterator[list[Any]]:
    with handlers.without_modes() as was:
        yield list(was)


@builtin
def _len_torch_dispatch_stack() -> int:
    return len(handlers.mode_stack())


@builtin
def _get_dispatch_stack_at(place: int) -> Any:
    return handlers.mode_stack()[place]


def _get_current_dispatch_mode_stack() -> list[Any]:
    return handlers.mode_stack()


beside: Final[list[tuple[int, int, Any]]] = []
"""Modes that intercept ops outside of the engine's stack, innermost last: each with its thread and
the depth of the stack when it was entered.
"""


def _get_current_dispatch_mode() -> Any:
    stack = handlers.mode_stack()
    mine = [(count, mode) for thread, count, mode in beside if thread == get_ident()]
    if mine and mine[-1][0] == len(stack):
        return mine[-1][1]
    return stack[-1] if stack else None


def is_in_torch_dispatch_mode(include_infra_modes: bool = True) -> bool:
    """Whether this thread is in a mode."""
    return any(include_infra_modes or not mode.is_infra_mode() for mode in handlers.mode_stack())


def is_traceable_wrapper_subclass_type(t: type) -> bool:
    """Whether a class of tensors has ``__tensor_flatten__`` and ``__tensor_unflatten__``."""
    return (
        issubclass(t, Tensor)
        and t is not Tensor
        and hasattr(t, "__tensor_flatten__")
        and hasattr(t, "__tensor_unflatten__")
    )


def is_traceable_wrapper_subclass(t: object) -> bool:
    """Whether an object is a tensor of such a class."""
    return isinstance(t, Tensor) and is_traceable_wrapper_subclass_type(type(t))


def transform_subclass(
    t: Any, callback: Callable[[str, Any], Any], outer_size: Any = None, outer_stride: Any = None
) -> Any:
    """A tensor like `t`, whose inner tensors are the results of a function of name and tensor."""
    size = t.size() if outer_size is None else outer_size
    stride = t.stride() if outer_stride is None else outer_stride
    names, context = t.__tensor_flatten__()
    inner = {name: callback(name, getattr(t, name)) for name in names}
    made = type(t).__tensor_unflatten__(inner, context, size, stride)
    if made.shape != size or made.stride() != stride:
        raise AssertionError(
            f"Expected return value from {type(t)}__tensor_unflatten__() to have shape equal to "
            f"{size} and strides {stride}, but got: {made.shape} and {made.stride()}"
        )
    return made


def _aliases(argument: Any) -> frozenset[str]:
    info = argument.alias_info
    return frozenset() if info is None else frozenset(info.before_set | info.after_set)


def return_and_correct_aliasing(
    func: Any, args: Sequence[Any], kwargs: dict[str, Any] | None, out: Any
) -> Any:
    """Gives the results of a wrapper's ``__torch_dispatch__`` the aliasing of the schema.

    A result that the schema declares to be a mutated argument becomes that argument.
    """
    schema, given = func._schema, list(args)
    by_name = dict(kwargs or {})
    values = [
        given[i] if i < len(given) else by_name.get(argument.name)
        for i, argument in enumerate(schema.arguments)
    ]

    def aliased_output(place: int, made: Any) -> Any:
        names = _aliases(schema.returns[place])
        write = schema.returns[place].is_write
        for argument, value in zip(schema.arguments, values, strict=True):
            if names and write and _aliases(argument) & names and isinstance(value, Tensor):
                return value
        return made

    if not schema.is_mutable:
        return out
    if len(schema.returns) == 1:
        return aliased_output(0, out)
    if isinstance(out, (tuple, list)):
        return type(out)(aliased_output(i, each) for i, each in enumerate(out))
    return out
