"""Clipping of gradients in place, by their total norm or element by element.

``foreach`` selects an implementation in PyTorch; pygrad has one, which every value selects.
"""

from __future__ import annotations

import types
import warnings
from collections.abc import Iterable
from typing import TypeAlias

from ... import linalg
from ..._table.functions import C
from ..._tensor import namespace as pygrad
from ..._tensor.subclassing import answers_for_ops
from ..._tensor.tensor import Tensor

__all__ = [
    "clip_grad_norm",
    "clip_grad_norm_",
    "clip_grad_value_",
    "clip_grads_with_norm_",
    "get_total_norm",
]

Tensors: TypeAlias = Tensor | Iterable[Tensor]


def get_total_norm(
    tensors: Tensors,
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
    foreach: bool | None = None,
) -> Tensor:
    """The norm of all tensors as a single vector, as a 0-dim tensor.

    Raises:
        RuntimeError: with ``error_if_nonfinite``, the norm is infinite or NaN.

    Example:
        >>> import pygrad
        >>> get_total_norm([pygrad.tensor([3.0]), pygrad.tensor([4.0])]).item()
        5.0
    """
    parts = [tensors] if isinstance(tensors, Tensor) else list(tensors)
    norm_type = float(norm_type)
    if any(map(_needs_ops, parts)):
        return _norm_by_ops(parts, norm_type, error_if_nonfinite)
    total: Tensor = C["_grad_norm"](parts, norm_type, error_if_nonfinite)
    return total


def _needs_ops(tensor: Tensor) -> bool:
    """Whether the norm of a tensor must be composed of ops, since the engine cannot read its
    elements.
    """
    return tensor.is_meta or answers_for_ops(tensor)


def _norm_by_ops(parts: list[Tensor], norm_type: float, error_if_nonfinite: bool) -> Tensor:
    """The total norm, composed of ops."""
    with pygrad.no_grad():
        norms = [linalg.vector_norm(part, norm_type) for part in parts]
        total: Tensor = linalg.vector_norm(pygrad.stack(norms), norm_type)
    if error_if_nonfinite and not total.isfinite().item():
        raise RuntimeError(
            f"The total norm of order {norm_type} for gradients from `parameters` is non-finite, "
            "so it cannot be clipped. To disable this error and scale the gradients by the "
            "non-finite norm anyway, set `error_if_nonfinite=False`"
        )
    return total


def clip_grads_with_norm_(
    parameters: Tensors, max_norm: float, total_norm: Tensor, foreach: bool | None = None
) -> None:
    """Scale gradients by max_norm / (total_norm + 1e-6) if that is less than one."""
    parts = [parameters] if isinstance(parameters, Tensor) else list(parameters)
    grads = _gradients(parts)
    if not any(map(_needs_ops, grads)):
        C["_clip_grads_"](parts, float(max_norm), 2.0, False, total_norm)
        return
    with pygrad.no_grad():
        factor = (float(max_norm) / (total_norm + 1e-6)).clamp(max=1.0)
        for grad in grads:
            grad.mul_(factor)


def clip_grad_norm_(
    parameters: Tensors,
    max_norm: float,
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
    foreach: bool | None = None,
) -> Tensor:
    """Scale the gradients so that their total norm is at most ``max_norm``.

    Args:
        parameters: the tensors whose ``.grad`` is scaled in place.
        max_norm: the greatest norm.
        norm_type: the p of the norm; ``float("inf")`` is the greatest absolute value.
        error_if_nonfinite: raise if the norm is infinite or NaN.

    Returns:
        The norm before clipping, as a 0-dim tensor.

    Raises:
        RuntimeError: with ``error_if_nonfinite``; gradients are unchanged then.

    Example:
        >>> import pygrad
        >>> p = pygrad.nn.Parameter(pygrad.zeros(2))
        >>> p.grad = pygrad.tensor([3.0, 4.0])
        >>> clip_grad_norm_([p], 1.0).item()
        5.0
        >>> [round(g, 3) for g in p.grad.tolist()]
        [0.6, 0.8]
    """
    if isinstance(parameters, Tensor):
        parts = [parameters]
    else:
        parts = list(parameters)
        if not parts and isinstance(parameters, types.GeneratorType):
            warnings.warn(
                "`parameters` is an empty generator, no gradient clipping will occur.",
                stacklevel=2,
            )
    grads = _gradients(parts)
    if any(map(_needs_ops, grads)):
        total = _norm_by_ops(grads, float(norm_type), error_if_nonfinite)
        clip_grads_with_norm_(parts, max_norm, total)
    else:
        total = C["_clip_grads_"](parts, float(max_norm), float(norm_type), error_if_nonfinite)
    return total


def clip_grad_norm(
    parameters: Tensors,
    max_norm: float,
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
    foreach: bool | None = None,
) -> Tensor:
    """Deprecated name of :func:`clip_grad_norm_`."""
    warnings.warn(
        "`torch.nn.utils.clip_grad_norm` is now deprecated in favor of "
        "`torch.nn.utils.clip_grad_norm_`.",
        FutureWarning,
        stacklevel=2,
    )
    return clip_grad_norm_(parameters, max_norm, norm_type, error_if_nonfinite, foreach)


def clip_grad_value_(parameters: Tensors, clip_value: float, foreach: bool | None = None) -> None:
    """Clamp every element of the gradients to [-clip_value, clip_value], in place.

    Example:
        >>> import pygrad
        >>> p = pygrad.nn.Parameter(pygrad.zeros(2))
        >>> p.grad = pygrad.tensor([-3.0, 0.5])
        >>> clip_grad_value_(p, 1.0)
        >>> p.grad.tolist()
        [-1.0, 0.5]
    """
    bound = float(clip_value)
    with pygrad.no_grad():
        for grad in _gradients(parameters):
            grad.clamp_(min=-bound, max=bound)


def _gradients(parameters: Tensors) -> list[Tensor]:
    tensors = [parameters] if isinstance(parameters, Tensor) else parameters
    return [grad for grad in (tensor.grad for tensor in tensors) if grad is not None]
