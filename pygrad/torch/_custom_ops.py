"""The older API for ops of a program's own: functions that take the name of an op.

Example:
    >>> import pygrad as torch
    >>> from pygrad import _custom_ops
    >>> @_custom_ops.custom_op("older::square")
    ... def square(x: torch.Tensor) -> torch.Tensor: ...
    >>> @_custom_ops.impl("older::square")
    ... def square_impl(x):
    ...     return x * x
    >>> @_custom_ops.impl_save_for_backward("older::square")
    ... def square_saves(inputs, output):
    ...     return inputs.x
    >>> @_custom_ops.impl_backward("older::square")
    ... def square_backward(ctx, saved, grad):
    ...     return {"x": 2 * saved * grad}
    >>> x = torch.tensor(3.0, requires_grad=True)
    >>> torch.autograd.grad(torch.ops.older.square(x), x)
    (tensor(6.),)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from ..library import get_ctx, register_fake
from ._custom_op.impl import (
    _custom_op_with_schema,
    _find_custom_op,
    _schema_of,
    parse_qualname,
    validate_namespace,
)

__all__ = [
    "custom_op",
    "get_ctx",
    "impl",
    "impl_abstract",
    "impl_backward",
    "impl_save_for_backward",
]


def custom_op(qualname: str, func_or_schema: Any = None) -> Any:
    """Makes an op of a schema, or of the annotations of a function; it decorates the function.

    Raises: ValueError: the name, the function or its schema is not allowed for such an op.
    """
    ns, _ = parse_qualname(qualname)
    validate_namespace(ns)

    def make(func: Callable[..., Any]) -> Callable[..., Any]:
        _custom_op_with_schema(qualname, _schema_of(qualname, func))
        return func

    if func_or_schema is None:
        return make
    if isinstance(func_or_schema, str):
        _custom_op_with_schema(qualname, func_or_schema)
        return None
    return make(func_or_schema)


def impl(
    qualname: str,
    *,
    device_types: str | Iterable[str] = ("cpu", "cuda"),
    func: Callable[..., Any] | None = None,
) -> Any:
    """Adds the function that an op runs on types of devices. Takes the function, or decorates it.

    Raises:
        ValueError: there is no such op or device. RuntimeError: the op has such a function.
    """

    def add(fn: Callable[..., Any]) -> Callable[..., Any]:
        _find_custom_op(qualname, also_check_torch_library=True).impl(device_types, 3)(fn)
        return fn

    return add if func is None else add(func)


def impl_abstract(qualname: str, *, func: Callable[..., Any] | None = None) -> Any:
    """Adds an op's function for tensors without elements: `pygrad.library.register_fake`."""
    return register_fake(qualname, func)


def impl_save_for_backward(qualname: str, *, func: Callable[..., Any] | None = None) -> Any:
    """Adds the function ``func(inputs, output)`` that returns the values an op's backward needs.

    Raises: RuntimeError: an op of this schema, or with a gradient of its own, takes none.
    """

    def add(fn: Callable[..., Any]) -> Callable[..., Any]:
        _find_custom_op(qualname, also_check_torch_library=True).impl_save_for_backward(3)(fn)
        return fn

    return add if func is None else add(func)


def impl_backward(
    qualname: str,
    output_differentiability: list[bool] | None = None,
    *,
    func: Callable[..., Any] | None = None,
) -> Any:
    """Adds the gradient of an op: ``func(ctx, saved, *grads)`` returns the arguments' gradients by
    name.

    Raises: RuntimeError: an op of this schema, or with a gradient of its own, takes none.
    """

    def add(fn: Callable[..., Any]) -> Callable[..., Any]:
        made = _find_custom_op(qualname, also_check_torch_library=True)
        made.impl_backward(output_differentiability, 3)(fn)
        return fn

    return add if func is None else add(func)


def _destroy(qualname: str) -> None:
    """Takes an op of this form away."""
    _find_custom_op(qualname)._destroy()
