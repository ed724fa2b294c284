"""Which gradients are reduced together."""

from __future__ import annotations

from collections.abc import Sequence

from ..._tensor import Tensor

MIB = 1024 * 1024
FIRST = MIB
"""Bytes of the first bucket: small, so that the first messages start early."""
DEFAULT_MIB = 25


def limits_of(cap: float | None, caps: Sequence[float] | None) -> list[int]:
    """The bytes of the first bucket, of the second, ...; the last number is that of all others."""
    if caps:
        return [int(each * MIB) for each in caps]
    return [FIRST, DEFAULT_MIB * MIB] if cap is None else [int(cap * MIB)]


def assign(parameters: Sequence[Tensor], limits: Sequence[int]) -> list[list[int]]:
    """The numbers of the parameters of each bucket: from the last parameter, whose gradient comes
    first, to the first one. A bucket has one dtype, and is closed once it has as many bytes as its
    limit.

    Example:
        >>> import pygrad
        >>> from pygrad.nn.parallel._buckets import assign
        >>> assign([pygrad.zeros(4) for _ in range(5)], [16, 32])
        [[4], [3, 2], [1, 0]]
    """
    full: list[list[int]] = []
    open_: dict[object, list[int]] = {}
    for number in reversed(range(len(parameters))):
        dtype = parameters[number].dtype
        bucket = open_.setdefault(dtype, [])
        bucket.append(number)
        size = sum(parameters[each].nbytes for each in bucket)
        if size >= limits[min(len(full), len(limits) - 1)]:
            full.append(open_.pop(dtype))
    return full + list(open_.values())
