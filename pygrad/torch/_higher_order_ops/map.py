"""A function of each slice."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..._ground.tree import flatten, unflatten
from ..._tensor.functions import is_tensor
from .scan import stack_trees

__all__ = ["map"]


def map(f: Callable[..., Any], xs: Any, *args: Any) -> Any:
    """``f(x, *args)`` for each slice of `xs` along its first dimension, stacked.

    Raises:
        RuntimeError: `xs` are not tensors of the same number of slices.

    Example:
        >>> import pygrad
        >>> from pygrad._higher_order_ops import map
        >>> map(lambda row, k: row.sum() * k, pygrad.ones(3, 2), 5)
        tensor([10., 10., 10.])
    """
    leaves, spec = flatten(xs)
    if not all(is_tensor(leaf) for leaf in leaves):
        raise RuntimeError(f"Mapped xs can only consist of tensors. Got xs {leaves}.")
    if any(leaf.ndim == 0 for leaf in leaves) or len({len(leaf) for leaf in leaves}) != 1:
        raise RuntimeError(
            "Leading dimensions of mapped xs must be consistent. "
            f"Got shapes {[leaf.shape for leaf in leaves]}."
        )
    rows = zip(*(leaf.unbind(0) for leaf in leaves), strict=True)
    return stack_trees([f(unflatten(row, spec), *args) for row in rows], 0)
