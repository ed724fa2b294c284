"""Helpers of gradients written in Python."""

from __future__ import annotations

from typing import Any

from ..._tensor.tensor import Tensor

__all__: list[str] = []


def maybe_view(tensor: Tensor, size: Any, check_same_size: bool = True) -> Tensor:
    """The tensor in these sizes."""
    if check_same_size and tensor.size() == size:
        return tensor
    return tensor.contiguous().view(size)


def maybe_unexpand(tensor: Tensor, old_size: Any, check_same_size: bool = True) -> Tensor:
    """The gradient of an expanded tensor: sums over the added dimensions.

    Example:
        >>> import pygrad
        >>> from pygrad.autograd._functions.utils import maybe_unexpand
        >>> maybe_unexpand(pygrad.ones(2, 3), (3,))
        tensor([2., 2., 2.])
    """
    if check_same_size and tensor.size() == old_size:
        return tensor
    return tensor.sum_to_size(*old_size)
