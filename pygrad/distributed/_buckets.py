"""Assignment of parameters to buckets, whose gradients are reduced together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .._tensor.tensor import Tensor

MIB = 1024 * 1024
FIRST = MIB
"""Bytes of the first bucket: small, so that the first messages start early."""
DEFAULT_MIB = 25


def limits_of(cap: float | None, caps: Sequence[float] | None) -> list[int]:
    """The limits of the buckets in bytes, in order; the last one holds for all further buckets."""
    if caps:
        return [int(each * MIB) for each in caps]
    return [FIRST, DEFAULT_MIB * MIB] if cap is None else [int(cap * MIB)]


def assign(
    parameters: Sequence[Tensor], limits: Sequence[int], order: Sequence[int] | None = None
) -> list[list[int]]:
    """The indices of the parameters of each bucket. A bucket has one dtype, and is closed once its
    size reaches its limit.

    Args:
        parameters: all parameters.
        limits: bytes of the first bucket, of the second, ...; the last limit applies to all others.
        order: the indices in the order in which gradients arrive. By default from the last
            parameter, whose gradient usually arrives first, to the first one.

    Example:
        >>> import pygrad
        >>> from pygrad.distributed._buckets import assign
        >>> assign([pygrad.zeros(4) for _ in range(5)], [16, 32])
        [[4], [3, 2], [1, 0]]
    """
    full: list[list[int]] = []
    open_: dict[object, list[int]] = {}
    for number in reversed(range(len(parameters))) if order is None else order:
        dtype = parameters[number].dtype
        bucket = open_.setdefault(dtype, [])
        bucket.append(number)
        size = sum(parameters[each].nbytes for each in bucket)
        if size >= limits[min(len(full), len(limits) - 1)]:
            full.append(open_.pop(dtype))
    return full + list(open_.values())


def initial_buckets(
    parameters: Sequence[Tensor], limits: Sequence[int], searched: bool
) -> list[list[int]]:
    """The initial buckets, before the order of gradients is known.

    Args:
        parameters: all parameters.
        limits: see `assign`.
        searched: whether unused parameters are searched for, which excludes later buckets. As in
            PyTorch the buckets are then filled from the first parameter on, and reduced from the
            last.
    """
    if searched:
        return assign(parameters, limits, range(len(parameters)))[::-1]
    return assign(parameters, limits)


def _compute_bucket_assignment_by_size(
    tensors: Sequence[Tensor],
    bucket_size_limits: Sequence[int],
    expect_sparse_gradient: Sequence[bool] = (),
    tensor_indices: Sequence[int] = (),
    logger: Any = None,
) -> tuple[list[list[int]], list[int]]:
    """`assign` under PyTorch's name: the buckets in the order of the tensors or of
    `tensor_indices`, and the limit of each bucket.

    Raises:
        RuntimeError: a tensor is sparse.
    """
    if any(each.is_sparse for each in tensors):
        text = "No support for sparse tensors."
        if logger is not None:
            logger.error = text
        raise RuntimeError(text)
    made = assign(tensors, bucket_size_limits, tensor_indices or range(len(tensors)))
    last = len(bucket_size_limits) - 1
    return made, [bucket_size_limits[min(place, last)] for place in range(len(made))]
