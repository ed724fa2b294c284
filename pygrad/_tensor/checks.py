"""Assertions of scripts: ``torch._check`` and its like, each with an error of its own."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

from .._ground.dtypes import bool_
from .tensor import Tensor

__all__ = [
    "_check",
    "_check_index",
    "_check_is_size",
    "_check_not_implemented",
    "_check_tensor_all",
    "_check_tensor_all_with",
    "_check_type",
    "_check_value",
    "_check_with",
]

Message = Callable[[], object] | None


def _raise_unless(error: type[Exception], fine: bool, message: Message) -> None:
    if fine:
        return
    if message is None:
        text: object = (
            "Expected cond to be True, but got False. (Could this error message be improved? If "
            "so, please report an enhancement request to PyTorch.)"
        )
    elif callable(message):
        text = message()
    else:
        raise TypeError("message must be a callable")
    raise error(str(text))


def _check_with(error_type: type[Exception], cond: Any, message: Message) -> None:
    """Raises an error of this type, with the text that `message` returns, unless `cond` is True.

    Raises:
        TypeError: `cond` is no bool, or `message` cannot be called.

    Example:
        >>> import pygrad
        >>> pygrad._check_with(KeyError, True, lambda: "never said")
    """
    if not isinstance(cond, bool):
        if isinstance(cond, Tensor):
            raise TypeError(
                "cond must be a bool, but got a Tensor. For tensor conditions, use "
                "torch._check_tensor_all() to assert that all elements are true."
            )
        raise TypeError(f"cond must be a bool, but got {type(cond)}")
    _raise_unless(error_type, cond, message)


def _check(cond: Any, message: Message = None) -> None:
    """Raises RuntimeError unless `cond` is True; see `_check_with`."""
    _check_with(RuntimeError, cond, message)


def _check_index(cond: Any, message: Message = None) -> None:
    """Raises IndexError unless `cond` is True; see `_check_with`."""
    _check_with(IndexError, cond, message)


def _check_value(cond: Any, message: Message = None) -> None:
    """Raises ValueError unless `cond` is True; see `_check_with`."""
    _check_with(ValueError, cond, message)


def _check_type(cond: Any, message: Message = None) -> None:
    """Raises TypeError unless `cond` is True; see `_check_with`."""
    _check_with(TypeError, cond, message)


def _check_not_implemented(cond: Any, message: Message = None) -> None:
    """Raises NotImplementedError unless `cond` is True; see `_check_with`."""
    _check_with(NotImplementedError, cond, message)


def _check_is_size(i: int, message: Message = None, *, max: int | None = None) -> None:
    """Raises RuntimeError unless the int is not negative, and at most `max`."""
    warnings.warn(
        "_check_is_size will be removed in a future PyTorch release along with "
        "guard_size_oblivious.     Use _check(i >= 0) instead.",
        FutureWarning,
        stacklevel=2,
    )
    _check(i >= 0, message)
    if max is not None:
        _check(i <= max, message)


def _check_tensor_all_with(error_type: type[Exception], cond: Any, message: Message = None) -> None:
    """Raises an error of this type unless all elements of a bool tensor are True.

    Raises:
        TypeError: no bool tensor, or `message` cannot be called.

    Example:
        >>> import pygrad
        >>> pygrad._check_tensor_all_with(KeyError, pygrad.tensor([True]))
    """
    if not isinstance(cond, Tensor):
        raise TypeError(f"cond must be a tensor, but got {type(cond)}")
    if cond.dtype is not bool_:
        raise TypeError(f"cond tensor must have dtype torch.bool, but got {cond.dtype}")
    _raise_unless(error_type, bool(cond.all().item()), message)


def _check_tensor_all(cond: Any, message: Message = None) -> None:
    """Raises RuntimeError unless all elements are True; see `_check_tensor_all_with`."""
    _check_tensor_all_with(RuntimeError, cond, message)
