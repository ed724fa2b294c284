"""Nested tensors as tensors with padding, and back."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from .._table import functions
from .._tensor.tensor import Tensor
from ._class import Nested, packed_tensor, wrap_as_nested
from ._internal.nested_tensor import NestedTensor
from ._jagged import Jagged
from ._jagged_shapes import close_gaps
from ._strided import StridedNestedTensor, refuse_otherwise

_F = functions.SPACES["torch"]


def to_padded_tensor(
    input: Tensor,
    padding: float,
    output_size: Sequence[int] | None = None,
    out: Tensor | None = None,
) -> Tensor:
    """A copy of the entries in one tensor, each padded at its ends.

    Args:
        input: nested. padding: the value behind an entry's ends.
        output_size: the sizes of the result; the smallest that fit if left out.
        out: the tensor to write to.

    Raises:
        RuntimeError: `output_size` has too few dimensions, or less room than an entry needs.
        NotImplementedError: `input` is not nested.

    Example:
        >>> import pygrad as torch
        >>> torch.nested.to_padded_tensor(torch.nested.nested_tensor([[1.0, 2.0], [3.0]]), 0.0)
        tensor([[1., 2.],
                [3., 0.]])
    """
    if isinstance(input, NestedTensor):
        made = jagged_padded(close_gaps(input), padding, output_size)
    elif isinstance(input, StridedNestedTensor):
        made = _strided_padded(input, padding, output_size)
    else:
        raise NotImplementedError(
            "Could not run 'aten::to_padded_tensor': it is there for nested tensors alone"
        )
    if out is None:
        return made
    return out.resize_(made.shape).copy_(made)


def _strided_padded(x: StridedNestedTensor, padding: float, size: Sequence[int] | None) -> Tensor:
    sizes, rank = x._parts.sizes, x._parts.rank
    refuse_otherwise(x, "for now to_padded_tensor only supports contiguous nested tensor")
    if not sizes:
        return packed_tensor(x).clone()
    if not any(map(math.prod, sizes)):
        raise RuntimeError(
            "to_padded_tensor: at least one constituent tensor should have non-zero numel"
        )
    least = [len(sizes), *(max(s[d] for s in sizes) for d in range(rank))]
    if size is not None:
        if len(size) != rank + 1:
            raise RuntimeError(
                "Length of output_size does not match NestedTensor dims. Broadcasting is not "
                "supported."
            )
        if any(room < n for room, n in zip(size, least, strict=True)):
            raise RuntimeError(
                "Value in output_size is less than NestedTensor padded size. Truncation is not "
                "supported."
            )
        least = list(size)
    if not rank:
        flat = _F["stack"](x._entries("unbind"))
        return _pad_entry(flat, [least[0] - len(sizes)], padding)
    widened = [
        _pad_entry(
            entry, [room - n for room, n in zip(least[1:], entry.shape, strict=True)], padding
        )
        for entry in x._entries("to_padded_tensor")
    ]
    return _pad_entry(_F["stack"](widened), [least[0] - len(sizes), *[0] * rank], padding)


def _pad_entry(entry: Tensor, more: Sequence[int], padding: float) -> Tensor:
    """Pads each dimension at its end by `more` elements."""
    if not any(more):
        return entry
    pads = [n for each in reversed(more) for n in (0, each)]
    return functions.SPACES["nn"]["pad"](entry, pads, "constant", padding)  # type: ignore[no-any-return]


def jagged_padded(
    x: NestedTensor, padding: Any, size: Sequence[int] | None = None, op: str = "to_padded_tensor"
) -> Tensor:
    """Like `to_padded_tensor`, for a jagged tensor; only the ragged dimension of `size` matters."""
    values, parts = packed_tensor(x), x._parts
    at = parts.ragged - 1
    entries, within = parts.places(values.shape[at], op)
    most = parts.longest()
    if size is not None:
        if len(size) != x.dim():
            raise RuntimeError(
                "Length of output_size does not match NestedTensor dims. Broadcasting is not "
                "supported."
            )
    wanted = most if size is None else int(size[parts.ragged])
    rows, room = values.movedim(at, 0), max(most, wanted)
    empty: Tensor = _F["full"]((parts.batch, room, *rows.shape[1:]), padding, dtype=values.dtype)
    return empty.index_put((entries, within), rows).narrow(1, 0, wanted).movedim(1, at + 1)


def jagged_of_padded(padded: Tensor, parts: Jagged, total: int, op: str) -> Any:
    """The jagged tensor with these parts whose entries are in a padded tensor."""
    at = parts.ragged - 1
    entries, within = parts.places(total, op)
    values = padded.movedim(parts.ragged, 1)[entries, within].movedim(0, at)
    return wrap_as_nested(NestedTensor, values.contiguous() if at else values, parts)


Nested.to_padded_tensor = to_padded_tensor  # type: ignore[attr-defined]
