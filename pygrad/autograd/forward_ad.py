"""Forward mode: tangents computed beside values, which gives directional derivatives."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from .._boundary import calls, header
from .._ground.decorators import _DecoratorContextManager
from .._table import functions as _functions
from .._tensor.base import Tensor

__all__ = [
    "UnpackedDualTensor",
    "dual_level",
    "enter_dual_level",
    "exit_dual_level",
    "make_dual",
    "unpack_dual",
]

_C = _functions.C


def current_level() -> int:
    """The level that is entered, or -1."""
    return header.dual_levels() - 1


if not TYPE_CHECKING:

    def __getattr__(name):
        """`_current_level`, by its old name."""
        if name == "_current_level":
            return current_level()
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def enter_dual_level() -> int:
    """Enters a level, within which dual tensors may be made.

    Returns:
        The level, 0: one at a time is supported, as in PyTorch.

    Raises:
        RuntimeError: a level is entered already.

    Example:
        >>> from pygrad.autograd import forward_ad
        >>> forward_ad.enter_dual_level()
        0
        >>> forward_ad.exit_dual_level()
    """
    return int(_C["_enter_dual_level"]())


def exit_dual_level(*, level: int | None = None) -> None:
    """Leaves the level, which forgets every tangent made in it.

    Args:
        level: the result of `enter_dual_level`; the current level by default.

    Raises:
        RuntimeError: that is not the last level entered.

    Example:
        >>> import pygrad
        >>> from pygrad.autograd import forward_ad
        >>> level = forward_ad.enter_dual_level()
        >>> dual = forward_ad.make_dual(pygrad.ones(2), pygrad.ones(2))
        >>> forward_ad.exit_dual_level(level=level)
        >>> forward_ad.unpack_dual(dual).tangent is None
        True
    """
    _C["_exit_dual_level"](level)


def make_dual(tensor: Tensor, tangent: Tensor, *, level: int | None = None) -> Tensor:
    """A view of a tensor that carries a tangent, as functions of it then do: the directional
    derivative.

    Args:
        tensor: of any shape and a floating-point dtype.
        tangent: of that shape and a floating-point dtype. It becomes part of the dual tensor as it
            is if it has the memory layout of `tensor`, so in-place ops write to it; otherwise it is
            copied. Inside `vmap` it may be batched though `tensor` is not: many directions at one
            point. Values then stay one tensor, and in-place ops write one value.
        level: the level to make it in; the current one by default.

    Raises:
        RuntimeError: no level is entered, the shapes differ, or either is a dual tensor already.
        ValueError: either is not floating.

    Example:
        >>> import pygrad
        >>> from pygrad.autograd import forward_ad
        >>> with forward_ad.dual_level():
        ...     x = forward_ad.make_dual(pygrad.tensor([2.0, 3.0]), pygrad.tensor([1.0, 0.0]))
        ...     forward_ad.unpack_dual(x ** 2).tangent
        tensor([4., 0.])
    """
    _ = tensor.is_floating_point, tangent.is_floating_point  # AttributeError: it is no tensor
    result: Tensor = _functions.SPACES["torch"]["_make_dual"](tensor, tangent, level)
    calls.remember(tangent)
    return result


class UnpackedDualTensor(NamedTuple):
    """The result of `unpack_dual`.

    Example:
        >>> import pygrad
        >>> from pygrad.autograd import forward_ad
        >>> forward_ad.unpack_dual(pygrad.ones(1))
        UnpackedDualTensor(primal=tensor([1.]), tangent=None)
    """

    primal: Tensor
    tangent: Tensor | None


def unpack_dual(tensor: Tensor, *, level: int | None = None) -> UnpackedDualTensor:
    """The parts of a dual tensor: a view of it without tangent, and the tangent itself or None.

    Args:
        tensor: dual or not.
        level: the level the tangent belongs to; the current one by default.

    Example:
        >>> import pygrad
        >>> from pygrad.autograd import forward_ad
        >>> with forward_ad.dual_level():
        ...     x = forward_ad.make_dual(pygrad.tensor(1.0), pygrad.tensor(0.5))
        ...     forward_ad.unpack_dual(3 * x)
        UnpackedDualTensor(primal=tensor(3.), tangent=tensor(1.5000))
    """
    primal, tangent = _functions.SPACES["torch"]["_unpack_dual"](tensor, level)
    if primal is not tensor:
        primal._b = tensor
    if tangent is not None:
        tangent = calls.remember(calls.remembered_object(tangent))
    return UnpackedDualTensor(primal, tangent)


class dual_level(_DecoratorContextManager):
    """Enters a level for a block, or for each call of the function it decorates.

    Example:
        >>> import pygrad
        >>> from pygrad.autograd import forward_ad
        >>> with forward_ad.dual_level() as level:
        ...     level
        0
        >>> @forward_ad.dual_level()
        ... def slope(f, x):
        ...     return forward_ad.unpack_dual(f(forward_ad.make_dual(x, pygrad.ones(())))).tangent
        >>> slope(pygrad.exp, pygrad.tensor(0.0))
        tensor(1.)
    """

    def __enter__(self) -> int:  # type: ignore[override]
        return enter_dual_level()

    def __exit__(self, *_: Any) -> None:
        exit_dual_level()


def _is_fwd_grad_enabled() -> bool:
    """Whether tangents are seen and computed."""
    return bool(_C["_is_fwd_grad_enabled"]())


class _set_fwd_grad_enabled(_DecoratorContextManager):
    """Switches forward mode off or on at once, and back at the end of a block."""

    def __init__(self, mode: bool) -> None:
        self._enabled = mode
        self.prev = _is_fwd_grad_enabled()
        _C["_set_fwd_grad_enabled"](mode)

    def __enter__(self) -> None:
        pass

    def __exit__(self, *_: Any) -> None:
        _C["_set_fwd_grad_enabled"](self.prev)

    def clone(self) -> _set_fwd_grad_enabled:
        """A fresh scope, for each call of a decorated function."""
        return type(self)(self._enabled)
