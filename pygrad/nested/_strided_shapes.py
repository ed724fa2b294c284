"""Rules of the strided layout for ops that change sizes and leave elements: of each entry the sizes
and strides, over the same buffer."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from .._table import functions
from .._tensor.tensor import Tensor
from ._class import not_there, packed_tensor, rule
from ._jagged_shapes import _numbers, _parse_shape, split_rule
from ._strided import (
    RULES,
    Sizes,
    Strided,
    StridedNestedTensor,
    each,
    entries_of,
    nested_of_entries,
    nested_over_buffer,
    refuse_otherwise,
    to_consecutive,
)

_F = functions.SPACES["torch"]
_ASK = "if you need this feature, please open an issue on github describing your use case."


def _with_parts(x: StridedNestedTensor, parts: Strided) -> Any:
    """A tensor over the same buffer with other sizes and strides."""
    return nested_over_buffer(packed_tensor(x), parts)


def _change_geometry(
    x: StridedNestedTensor, change: Callable[[Sizes, Sizes, int], Any], rank: int
) -> Any:
    """The entries with other sizes, strides and beginnings over the same buffer."""
    rows = zip(x._parts.sizes, x._parts.strides, x._parts.offsets, strict=True)
    changed = [change(*row) for row in rows]
    sizes, strides, offsets = ([row[i] for row in changed] for i in range(3))
    return _with_parts(x, Strided(sizes, strides, offsets, rank))


# ------------------------------------------------------------------ entries


@rule(RULES, "unbind")
def unbind(input: StridedNestedTensor, dim: int = 0) -> tuple[Tensor, ...]:
    """The entries."""
    at = input._dim(dim)
    if at != 0:
        raise RuntimeError(
            f"NestedTensor can only be unbound along dimension 0 got dimension {at} instead."
        )
    return tuple(input._entries("unbind"))


@rule(RULES, "select")
def select(input: StridedNestedTensor, dim: int, index: int) -> Any:
    """An entry; or one place of a dimension, for each entry."""
    at, parts = input._dim(dim), input._parts
    if at == 0:
        batch = len(parts.sizes)
        if not -batch <= index < batch:
            raise IndexError(f"index {index} is out of bounds for dimension 0 with size {batch}")
        n = index % batch
        one = Strided([parts.sizes[n]], [parts.strides[n]], [parts.offsets[n]], parts.rank)
        return entries_of(packed_tensor(input), one, True)[0]

    def change(size: Sizes, stride: Sizes, start: int) -> Any:
        if not -size[at - 1] <= index < size[at - 1]:
            raise IndexError(
                f"index {index} is out of bounds for dimension {at - 1} of the "
                f"{input._parts.sizes.index(size)}th constituent tensor with size {size[at - 1]}"
            )
        begin = start + index % size[at - 1] * stride[at - 1]
        return _less(size, at - 1), _less(stride, at - 1), begin

    return _change_geometry(input, change, parts.rank - 1)


def _less(row: Sizes, at: int) -> Sizes:
    return (*row[:at], *row[at + 1 :])


@rule(RULES, "__getitem__ _getitem")
def getitem(input: StridedNestedTensor, index: Any) -> Any:
    """Indexing: the number of an entry, then an index of the entry."""
    items = index if isinstance(index, tuple) else (index,)
    if not items or not isinstance(items[0], int) or isinstance(items[0], bool):
        raise not_there("slice.Tensor", input)
    found = select(input, 0, items[0])
    return found[items[1:]] if items[1:] else found


# ------------------------------------------------------------------ order of dimensions


@rule(RULES, "transpose swapaxes swapdims")
def transpose(input: StridedNestedTensor, dim0: int, dim1: int) -> Any:
    """Two dimensions in each other's place: a view."""
    a, b = input._dim(dim0), input._dim(dim1)
    if a != b and 0 in (a, b):
        raise RuntimeError("Nested tensor dimension 0 cannot be transposed")

    def swap(row: Sizes) -> Sizes:
        found = list(row)
        if a:
            found[a - 1], found[b - 1] = row[b - 1], row[a - 1]
        return tuple(found)

    return _change_geometry(
        input, lambda size, stride, at: (swap(size), swap(stride), at), input.dim() - 1
    )


@rule(RULES, "mT adjoint mH")
def matrix_transpose(input: StridedNestedTensor) -> Any:
    """The last two dimensions in each other's place."""
    return transpose(input, -2, -1)


# ------------------------------------------------------------------ sizes


@rule(RULES, "unsqueeze")
def unsqueeze(input: StridedNestedTensor, dim: int) -> Any:
    """A dimension of size 1 more."""
    n = input.dim()
    at = dim + n + 1 if dim < 0 else dim
    if at == 0:
        raise RuntimeError(
            "unsqueeze(): For nested tensors, unsqueezing dimension 0 is not supported at the "
            f"moment {_ASK}"
        )

    def change(size: Sizes, stride: Sizes, start: int) -> Any:
        step = size[at - 1] * stride[at - 1] if at <= len(size) else 1
        widened = (*size[: at - 1], 1, *size[at - 1 :])
        return widened, (*stride[: at - 1], step, *stride[at - 1 :]), start

    return _change_geometry(input, change, n)


@rule(RULES, "squeeze")
def squeeze(input: StridedNestedTensor, dim: Any = None) -> Any:
    """A dimension of size 1 less; where it is another size it stays."""
    if dim is None:
        raise RuntimeError(
            "squeeze(): For nested tensors, squeeze without the dim argument is not supported at "
            f"the moment, however you can use squeeze(Tensor self, int dim) instead {_ASK}"
        )
    if isinstance(dim, (tuple, list)):
        for each_of in sorted((input._dim(d) for d in dim), reverse=True):
            input = squeeze(input, each_of)
        return input
    at = input._dim(dim)
    if at == 0:
        raise RuntimeError(
            "squeeze(): For nested tensors, squeezing dimension 0 is not supported at the moment "
            f"{_ASK}"
        )
    if input._parts.regular(at - 1) != 1:
        return _with_parts(input, input._parts)
    if input._parts.rank == 1:
        raise RuntimeError(
            "squeeze(): For nested tensors, squeezing a nested tensor of singleton tensors is not "
            "supported at the moment, if you need this feature, please open an issue on "
            "githubdescribing your use case."
        )

    def change(size: Sizes, stride: Sizes, start: int) -> Any:
        return _less(size, at - 1), _less(stride, at - 1), start

    return _change_geometry(input, change, input._parts.rank - 1)


def _resolve_sizes(x: StridedNestedTensor, shape: Sequence[int], op: str) -> list[Sizes]:
    """The new sizes of each entry; -1 keeps an entry's size in that dimension.

    Raises: RuntimeError: the number of elements differs.
    """
    if not shape:
        raise RuntimeError("shape '[]' is invalid for a nested tensor")
    if not x._parts.sizes:
        raise RuntimeError("empty nested tensor cannot be reshaped")
    if shape[0] != len(x._parts.sizes):
        raise RuntimeError(
            f"{op}: For now nested {op} cannot change or infer the implicit batch dimension"
        )
    rank, found = x._parts.rank, []
    if len(shape) > rank + 1 and list(shape[1 : rank + 1]).count(-1) > 1:
        raise RuntimeError("only one dimension can be inferred")
    for sizes in x._parts.sizes:
        made: list[int] = []
        for i, n in enumerate(shape[1:]):
            if n < -1:
                raise RuntimeError(f"invalid shape dimension {n}")
            if n == -1 and i >= len(sizes):
                raise RuntimeError("nested tensor does not infer shape")
            made.append(sizes[i] if n == -1 else n)
        total = math.prod(sizes)
        if math.prod(tuple(made)) != total:
            raise RuntimeError(f"shape '{list(shape)}' is invalid for input of size {total}")
        found.append(tuple(made))
    return found


@rule(RULES, "view")
def view(input: StridedNestedTensor, *shape: Any) -> Any:
    """The entries in other sizes, over the same buffer."""
    sizes = _numbers(_parse_shape("view", shape, input))
    made = _resolve_sizes(input, sizes, "view")
    entries = entries_of(packed_tensor(input).detach(), input._parts)
    views = [entry.view(size) for entry, size in zip(entries, made, strict=True)]
    strides = [view.stride() for view in views]
    return _with_parts(input, Strided(made, strides, input._parts.offsets, len(sizes) - 1))


@rule(RULES, "reshape")
def reshape(input: StridedNestedTensor, *shape: Any) -> Any:
    """Like `view`, or a copy if the entries are not in order."""
    sizes = _numbers(_parse_shape("reshape", shape, input))
    made = _resolve_sizes(input, sizes, "reshape")
    whole = to_consecutive(input)
    return _with_parts(whole, Strided.in_order(made, len(sizes) - 1))


# ------------------------------------------------------------------ parts and several


def _last(x: StridedNestedTensor, dim: int, op: str) -> int:
    """The last dimension.

    Raises: RuntimeError: it is not that one, it is ragged, or the entries are not in order.
    """
    if x._dim(dim) != x.dim() - 1:
        raise RuntimeError(
            f"{op} for nested tensors is currently only supported for the last dimension."
        )
    refuse_otherwise(x, f"{op.lower()} expects `self` to be contiguous.")
    return int(x.size(-1))


def _columns(x: StridedNestedTensor, start: int, length: int) -> Any:
    def change(size: Sizes, stride: Sizes, at: int) -> Any:
        return (*size[:-1], length), stride, at + start * stride[-1]

    return _change_geometry(x, change, x._parts.rank)


@rule(RULES, "chunk")
def chunk(input: StridedNestedTensor, chunks: int, dim: int = 0) -> tuple[Any, ...]:
    """`chunks` equal parts of the last dimension."""
    n = _last(input, dim, "Chunk")
    if chunks <= 0:
        raise RuntimeError(f"chunk expects `chunks` to be greater than 0, got: {chunks}")
    if n % chunks:
        raise RuntimeError(
            "Chunk for nested tensors is only supported for nested tensors with trailing "
            f"dimension divisible by chunks, got: {n} % {chunks} != 0"
        )
    step = n // chunks
    return tuple(_columns(input, i * step, step) for i in range(chunks))


@split_rule(RULES)
def split(input: StridedNestedTensor, split_size: Any, dim: int) -> tuple[Any, ...]:
    """Parts of the last dimension with the sizes `split_size`."""
    if isinstance(split_size, int):
        raise not_there("split.Tensor", input)
    n = _last(input, dim, "split_with_sizes")
    if sum(split_size) != n:
        raise RuntimeError(
            f"split_with_sizes expects split_sizes to sum exactly to {n} (input tensor's size at "
            f"dimension {input.dim() - 1}), but got split_sizes={list(split_size)}"
        )
    ends = [sum(split_size[:i]) for i in range(len(split_size))]
    return tuple(_columns(input, a, length) for a, length in zip(ends, split_size, strict=True))


@rule(RULES, "narrow")
def narrow(input: StridedNestedTensor, dim: int, start: int, length: int) -> Any:
    """A range of the entries: a view."""
    at = input._dim(dim)
    if at != 0:
        raise RuntimeError(f"narrow(): only dim=0 supported for nested tensors, but got: {at}")
    n = len(input._parts.sizes)
    begin = start + n if start < 0 else start
    if length < 0 or not 0 <= begin <= n - length:
        raise RuntimeError(f"start ({start}) + length ({length}) exceeds dimension size ({n}).")
    rows, parts = slice(begin, begin + length), input._parts
    kept = Strided(parts.sizes[rows], parts.strides[rows], parts.offsets[rows], parts.rank)
    return _with_parts(input, kept)


@rule(RULES, "cat concat concatenate")
def cat(tensors: Sequence[Any], dim: int = 0, *, out: Any = None) -> Any:
    """Joins tensors: their entries one after the other, or the entries of the same number."""
    if out is not None:
        raise NotImplementedError("aten.cat: out= is not implemented for nested tensors")
    if not all(isinstance(t, StridedNestedTensor) for t in tensors):
        raise RuntimeError("Expected each tensor in given list to be nested.")
    for each_of in tensors:
        refuse_otherwise(each_of, "Expected each tensor in given list to be contiguous.")
    first = tensors[0]
    at = first._dim(dim)
    if any(t._parts.rank != first._parts.rank for t in tensors):
        raise RuntimeError("cat: expected all tensors to have the same number of dimensions")
    if at == 0:
        entries = [entry for t in tensors for entry in t._entries("cat")]
        return nested_of_entries(entries, first._parts.rank) if entries else first.clone()
    if any(len(t._parts.sizes) != len(first._parts.sizes) for t in tensors):
        raise RuntimeError("cat: expected all nested tensors to have as many entries")
    return each(lambda *entry: _F["cat"](list(entry), at - 1), first, *tensors[1:])
