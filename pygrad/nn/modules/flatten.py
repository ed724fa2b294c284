"""Layers that change only the shape."""

from __future__ import annotations

from collections.abc import Sequence

from ..._tensor.tensor import Tensor
from .module import Module

__all__ = ["Flatten", "Unflatten"]


class Flatten(Module):
    """Merges the dimensions from ``start_dim`` to ``end_dim``; by default all but the batch.

    Shape: (*, S_start, ..., S_end, *) -> (*, S_start * ... * S_end, *).

    Example:
        >>> import pygrad
        >>> tuple(pygrad.nn.Flatten()(pygrad.zeros(32, 1, 5, 5)).shape)
        (32, 25)
    """

    def __init__(self, start_dim: int = 1, end_dim: int = -1) -> None:
        super().__init__()
        self.start_dim = start_dim
        self.end_dim = end_dim

    def forward(self, input: Tensor) -> Tensor:
        return input.flatten(self.start_dim, self.end_dim)

    def extra_repr(self) -> str:
        return f"start_dim={self.start_dim}, end_dim={self.end_dim}"


class Unflatten(Module):
    """Splits dimension ``dim`` into the dimensions of ``unflattened_size``, one of which may be -1.

    Shape: (*, S_dim, *) -> (*, *unflattened_size, *).

    Raises:
        TypeError: ``unflattened_size`` is no tuple of ints.

    Example:
        >>> import pygrad
        >>> tuple(pygrad.nn.Unflatten(1, (2, 5))(pygrad.zeros(3, 10)).shape)
        (3, 2, 5)
    """

    def __init__(self, dim: int, unflattened_size: Sequence[int]) -> None:
        super().__init__()
        if not isinstance(unflattened_size, (tuple, list)):
            raise TypeError(
                "unflattened_size must be a tuple of ints, but found type "
                f"{type(unflattened_size).__name__}"
            )
        for position, size in enumerate(unflattened_size):
            if not isinstance(size, int):
                raise TypeError(
                    "unflattened_size must be tuple of ints, but found element of type "
                    f"{type(size).__name__} at pos {position}"
                )
        self.dim = dim
        self.unflattened_size = unflattened_size

    def forward(self, input: Tensor) -> Tensor:
        return input.unflatten(self.dim, self.unflattened_size)

    def extra_repr(self) -> str:
        return f"dim={self.dim}, unflattened_size={self.unflattened_size}"
