"""Functions of `torch` that PyTorch composes in Python, by the module in which it has them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .._ground.package import PACKAGE as _PACKAGE
from .._table import functions as _functions
from .._table.builtins import builtin
from .._tensor import functions as _composed
from .._tensor.tensor import Tensor
from ..nn import functional as F

_WRITTEN = [op.name for op in _functions.TABLE if {"torch", "written:python"} <= op.words]
"""The functions whose rows say that PyTorch has them in Python."""
for _name in [*_WRITTEN, "broadcast_shapes", "istft", "lu"]:  # istft is here in PyTorch too
    globals()[_name] = getattr(_composed, _name, None) or _functions.SPACES["torch"][_name]
__all__ = sorted([*_WRITTEN, "broadcast_shapes", "istft", "lu"])

_unique_of = _functions.SPACES["torch"]["unique"]


@builtin
def _unique(self: Tensor, sorted: bool = True, return_inverse: bool = False) -> Any:
    """The distinct elements, and the place of each original element among them, empty if not asked
    for.
    """
    return _unique2(self, sorted, return_inverse)[:2]


@builtin
def _unique2(
    self: Tensor, sorted: bool = True, return_inverse: bool = False, return_counts: bool = False
) -> Any:
    """Like `_unique`, and also the number of occurrences."""
    found = _unique_of(self, sorted=sorted, return_inverse=True, return_counts=True)
    empty = found[1].new_empty(0)
    return (
        found[0],
        found[1] if return_inverse else empty,
        found[2] if return_counts else empty,
    )


_unique.__module__ = _unique2.__module__ = _PACKAGE  # where users know them


@builtin
def unique_dim(
    self: Tensor,
    dim: int,
    sorted: bool = True,
    return_inverse: bool = False,
    return_counts: bool = False,
) -> Any:
    """The distinct slices of a dimension, the place of each original slice among them, and their
    numbers of occurrences; all three whatever is asked for. PyTorch has it in `torch._VF` alone.

    Example:
        >>> import pygrad
        >>> pygrad._VF.unique_dim(pygrad.tensor([[3, 1, 3]]), 1)
        (tensor([[1, 3]]), tensor([1, 0, 1]), tensor([1, 2]))
    """
    return _unique_of(self, sorted=sorted, return_inverse=True, return_counts=True, dim=dim)


if TYPE_CHECKING:

    def __getattr__(name: str) -> Any: ...
