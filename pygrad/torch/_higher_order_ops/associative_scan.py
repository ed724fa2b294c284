"""All prefixes of a sequence, combined."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..._ground.tree import flatten, unflatten
from ..._tensor.functions import is_tensor
from .scan import rows_of, stack_trees

__all__ = ["associative_scan"]


def associative_scan(
    combine_fn: Callable[[Any, Any], Any],
    xs: Any,
    dim: int,
    reverse: bool = False,
    combine_mode: str = "pointwise",
) -> Any:
    """Combines each slice of `xs` along a dimension with all slices before it.

    Args:
        combine_fn: ``(a, b) -> c``, an associative function of two slices.
        xs: A tensor, or a tree of tensors.
        dim: The dimension of the scan.
        reverse: From the last slice to the first.
        combine_mode: "generic"; "pointwise" is for devices that pygrad lacks.

    Raises:
        ValueError: `combine_fn` cannot be called, or `combine_mode` is another.

    Example:
        >>> import pygrad
        >>> from pygrad._higher_order_ops import associative_scan
        >>> associative_scan(lambda a, b: a * b, pygrad.arange(1, 5), 0, combine_mode="generic")
        tensor([ 1,  2,  6, 24])
    """
    if not callable(combine_fn):
        raise ValueError(f"Combine_fn must be a callable, but got {combine_fn}")
    if combine_mode not in ("pointwise", "generic"):
        raise ValueError(
            f"Combine_mode must either 'pointwise' or 'generic', but got {combine_mode}"
        )
    leaves, spec = flatten(xs)
    if not leaves or not all(is_tensor(leaf) for leaf in leaves):
        raise ValueError(f"xs leaves must be tensors, and at least one, but got {leaves}")
    if combine_mode == "pointwise":
        raise ValueError(
            "For combine_mode='pointwise', all input tensors need to be on CUDA or XPU"
        )
    rows = [unflatten(row, spec) for row in rows_of(leaves, dim, reverse)]
    for i in range(1, len(rows)):
        rows[i] = combine_fn(rows[i - 1], rows[i])
    return stack_trees(rows[::-1] if reverse else rows, dim) if rows else xs
