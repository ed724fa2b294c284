"""A loop over slices that carries a value along."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..._ground.tree import flatten, unflatten
from ..._table import functions
from ..._tensor.functions import is_tensor

__all__ = ["scan"]

_stack = functions.SPACES["torch"]["stack"]


def scan(
    combine_fn: Callable[[Any, Any], tuple[Any, Any]],
    init: Any,
    xs: Any,
    *,
    dim: int = 0,
    reverse: bool = False,
) -> tuple[Any, Any]:
    """``carry, y = combine_fn(carry, x)`` for each slice `x` of `xs` along a dimension, the first
    `carry` being `init`.

    Returns:
        The last carry, and the ys, stacked along the first dimension.

    Raises:
        RuntimeError: `combine_fn` cannot be called, or there is nothing to carry or to scan.

    Example:
        >>> import pygrad
        >>> from pygrad._higher_order_ops import scan
        >>> scan(lambda c, x: (c + x, c * x), pygrad.tensor(0.0), pygrad.ones(3))
        (tensor(3.), tensor([0., 1., 2.]))
    """
    if not callable(combine_fn):
        raise RuntimeError(f"Combine_fn must be a callable, but got {combine_fn}")
    leaves, spec = flatten(xs)
    for name, values in (("init", flatten(init)[0]), ("xs", leaves)):
        if not values:
            raise RuntimeError(f"scan() operator requires {name} leaves.")
        if not all(is_tensor(value) for value in values):
            raise RuntimeError(f"All {name} leaves must be a Tensor but got {values}")
    carry, made = init, []
    for row in rows_of(leaves, dim, reverse):
        carry, y = combine_fn(carry, unflatten(row, spec))
        made.append(y)
    return carry, stack_trees(made[::-1] if reverse else made, 0)


def rows_of(leaves: Sequence[Any], dim: int, reverse: bool) -> list[tuple[Any, ...]]:
    """The slices of tensors along a dimension; each row has one slice of each tensor."""
    rows = list(zip(*(leaf.unbind(dim) for leaf in leaves), strict=True))
    return rows[::-1] if reverse else rows


def stack_trees(made: list[Any], dim: int) -> Any:
    """Stacks a list of like trees, leaf by leaf, into one tree."""
    if not made:
        return None
    flat, specs = zip(*(flatten(each) for each in made), strict=True)
    return unflatten([_stack(list(parts), dim) for parts in zip(*flat, strict=True)], specs[0])
