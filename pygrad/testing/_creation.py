"""Helpers of tests: tensors of random numbers."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from typing import Any

from .._ground.dtypes import bool_, dtype, finfo, iinfo, int64
from .._table import functions
from .._tensor.tensor import Tensor

__all__ = ["make_tensor"]

_f = functions.SPACES["torch"]


def make_tensor(
    *shape: Any,
    dtype: dtype,
    device: Any,
    low: float | None = None,
    high: float | None = None,
    requires_grad: bool = False,
    noncontiguous: bool = False,
    exclude_zero: bool = False,
    memory_format: Any = None,
) -> Tensor:
    """A tensor of random numbers, the same as PyTorch's for one seed.

    Args:
        shape: the sizes, or one sequence of them.
        dtype, device: the dtype and device of the result.
        low, high: the numbers are at least and less than these; 0 and 2 for bool, -9 and 10 for
            integers (0 and 10 for bytes), -9 and 9 for floats, and for the parts of complex
            numbers, by default.
        requires_grad: whether operations on the result are recorded.
        noncontiguous: whether to leave gaps between elements, if there are two or more.
        exclude_zero: zeros become the least positive normal number, or 1.
        memory_format: the layout of the result.

    Raises:
        ValueError: no number lies between the bounds, or arguments exclude each other.

    >>> import pygrad
    >>> made = pygrad.testing.make_tensor(2, 3, dtype=pygrad.float32, device="cpu", low=0, high=1)
    >>> made.shape, bool((made < 1).all())
    (torch.Size([2, 3]), True)
    """
    sizes = tuple(shape[0] if len(shape) == 1 and isinstance(shape[0], Sequence) else shape)
    floating = dtype._inexact
    if noncontiguous and memory_format is not None:
        raise ValueError(
            "The parameters `noncontiguous` and `memory_format` are mutually exclusive, but got "
            f"{noncontiguous=} and {memory_format=}"
        )
    if requires_grad and not floating:
        raise ValueError(
            "`requires_grad=True` is not supported for boolean and integral dtypes, but got "
            f"{dtype=}"
        )
    least, most = _bounds(low, high, dtype)
    gaps = noncontiguous and math.prod(sizes) > 1
    taken = (*sizes[:-1], 2 * sizes[-1]) if gaps else sizes
    if floating:
        result: Tensor = _f["empty"](taken, dtype=dtype, device=device)
        parts = _f["view_as_real"](result) if dtype.is_complex else result
        wide = most - least > finfo(dtype).max
        parts.uniform_(least / 2 if wide else least, most / 2 if wide else most)
        if wide:
            parts.mul_(2)
    else:
        result = _f["randint"](least, most, taken, dtype=dtype, device=device)
    if gaps:
        result = result[..., 1::2]
    elif memory_format is not None:
        result = result.clone(memory_format=memory_format)
    if exclude_zero:
        result[result == 0] = finfo(dtype).tiny if floating else 1
    if floating:
        result.requires_grad = requires_grad
    return result


def _bounds(low: float | None, high: float | None, kind: dtype) -> tuple[Any, Any]:
    """The default bounds of `make_tensor`, within the range of the dtype."""
    floating = kind._inexact
    smallest: float
    end: float
    if kind is bool_:
        smallest, end, least, most = 0, 2, 0, 2
    elif floating:
        smallest, end, least, most = finfo(kind).min, finfo(kind).max, -9, 9
    else:
        info = iinfo(kind)
        smallest, end, least, most = info.min, info.max + (kind is not int64), -9, 10
    low, high = least if low is None else low, most if high is None else high
    if low != low or high != high:
        raise ValueError(f"`low` and `high` cannot be NaN, but got {low=} and {high=}")
    if low == high and floating:
        warnings.warn(
            "Passing `low==high` to `torch.testing.make_tensor` for floating or complex types is "
            "deprecated since 2.1 and will be removed in 2.3. Use `torch.full(...)` instead.",
            FutureWarning,
            stacklevel=3,
        )
    elif low >= high:
        raise ValueError(f"`low` must be less than `high`, but got {low} >= {high}")
    elif high < smallest or low >= end:
        raise ValueError(
            f"The value interval specified by `low` and `high` is [{low}, {high}), but {kind} "
            f"only supports [{smallest}, {end})"
        )
    low, high = min(max(low, smallest), end), min(max(high, smallest), end)
    return (low, high) if floating else (math.ceil(low), math.ceil(high))
