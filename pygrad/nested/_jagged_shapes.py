"""Rules of the jagged layout for ops that change sizes but not elements: they act on the values,
whose dimensions are the nested tensor's without the batch.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from .._ground.dtypes import int64
from .._table import functions
from .._tensor.tensor import Tensor
from ._class import not_there, packed_tensor, rule, view_as_nested, wrap_as_nested
from ._internal.nested_tensor import RULES, NestedTensor
from ._jagged import Jagged
from ._sizes import SymInt

_F = functions.SPACES["torch"]


def jagged_like(values: Tensor, like: NestedTensor, ragged: int | None = None) -> Any:
    """A jagged tensor in the place of values that were just made, with the offsets of another."""
    return wrap_as_nested(
        NestedTensor, values, like._parts.with_ragged(ragged or like._parts.ragged)
    )


def _numbers(given: Sequence[Any]) -> tuple[Any, ...]:
    """Sizes or dimensions, given separately or in a list."""
    one = len(given) == 1 and isinstance(given[0], (list, tuple))
    return tuple(given[0]) if one else tuple(given)


def _parse_shape(op: str, shape: Sequence[Any], x: Any) -> tuple[Any, ...]:
    """The sizes given to an op, also as another tensor.

    Raises: TypeError: there are no sizes. NotImplementedError: a dtype is given.
    """
    if not shape:
        raise TypeError(f'{op}() missing 1 required positional arguments: "size"')
    if type(shape[0]).__name__ == "dtype":
        raise not_there(f"{op}.dtype", x)
    return (shape[0].shape,) if isinstance(shape[0], Tensor) else tuple(shape)


def split_rule(table: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """A decorator: a function of a tensor, sizes and a dimension that splits nested tensors of a
    layout, whichever name the sizes are given by.
    """

    def put(function: Callable[..., Any]) -> Callable[..., Any]:
        @rule(table, "split split_with_sizes")
        def split(
            input: Any,
            split_size: Any = None,
            dim: int = 0,
            *,
            split_sizes: Any = None,
            split_size_or_sections: Any = None,
        ) -> Any:
            given = (split_size, split_sizes, split_size_or_sections)
            found = next((each for each in given if each is not None), None)
            if found is None:
                raise TypeError(
                    "Tensor.split() missing 1 required positional argument: 'split_size'"
                )
            return function(input, found, dim)

        return split

    return put


def close_gaps(x: NestedTensor) -> Any:
    """The entries without gaps between them."""
    if x._parts.lengths is None:
        return x
    at, parts = x._parts.ragged - 1, x._parts
    entries = x._entries("contiguous")
    values = _F["cat"](entries, at) if entries else packed_tensor(x).narrow(at, 0, 0)
    first = parts.lengths.new_zeros(1) if parts.lengths is not None else None
    offsets = _F["cat"]([first, parts.lengths.cumsum(0)]).to(int64)  # type: ignore[union-attr]
    return wrap_as_nested(
        NestedTensor, values, Jagged(offsets, None, parts.ragged, parts.least, parts.most)
    )


# ------------------------------------------------------------------ entries


@rule(RULES, "unbind")
def unbind(input: NestedTensor, dim: int = 0) -> tuple[Tensor, ...]:
    """The entries."""
    if input._dim(dim) != 0:
        raise RuntimeError("unbind(): only supported for NestedTensor on dim=0")
    return tuple(input._entries("unbind"))


@rule(RULES, "select")
def select(input: NestedTensor, dim: int, index: int) -> Any:
    """An entry; or one place of a dimension that is not ragged, for each entry."""
    at = input._dim(dim)
    if at == 0:
        values, along = packed_tensor(input), input._parts.ragged - 1
        start, length = tuple(input._parts.spans(values.shape[along], "select"))[index]
        return values.narrow(along, start, length)
    if at == input._parts.ragged:
        raise RuntimeError("select(): not supported for NestedTensor on ragged dim")
    ragged = input._parts.ragged
    return jagged_like(packed_tensor(input).select(at - 1, index), input, ragged - (at < ragged))


@rule(RULES, "__getitem__ _getitem")
def getitem(input: NestedTensor, index: Any) -> Any:
    """Indexing: applies the items one after the other."""
    items = list(index) if isinstance(index, tuple) else [index]
    used = sum(each is not None and each is not Ellipsis for each in items)
    x: Any = input
    at = 0
    for i, each in enumerate(items):
        if each is Ellipsis:
            at += max(x.dim() - at - (used - sum(e is not None for e in items[:i])), 0)
        elif each is None:
            x, at = x.unsqueeze(at), at + 1
        elif isinstance(each, (bool, list, Tensor)):
            raise not_there("index.Tensor", input)
        elif isinstance(each, slice):
            x, at = _slice_dim(x, at, each), at + 1
        else:
            x = x.select(at, each)
            if not isinstance(x, NestedTensor):
                return x[tuple(items[i + 1 :])] if items[i + 1 :] else x
    return x


def _slice_dim(x: NestedTensor, dim: int, part: slice) -> Any:
    at = x._inner(dim, "slice")
    whole = (slice(None),) * at
    return jagged_like(packed_tensor(x)[(*whole, part)], x)


# ------------------------------------------------------------------ order of dimensions


@rule(RULES, "transpose swapaxes swapdims")
def transpose(input: NestedTensor, dim0: int, dim1: int) -> Any:
    """Two dimensions in each other's place: a view."""
    a, b = input._dim(dim0), input._dim(dim1)
    if 0 in (a, b):
        raise ValueError("Transpose is not supported on the batch dimension for jagged NT")
    ragged = input._parts.ragged
    moved = {a: b, b: a}.get(ragged, ragged)
    return jagged_like(packed_tensor(input).transpose(a - 1, b - 1), input, moved)


@rule(RULES, "mT adjoint mH")
def matrix_transpose(input: NestedTensor) -> Any:
    """The last two dimensions in each other's place."""
    return transpose(input, -2, -1)


@rule(RULES, "numpy_T T")
def reversed_dims(input: NestedTensor) -> Any:
    """Raises ValueError: the batch stays the first dimension."""
    return permute(input, *range(input.dim() - 1, -1, -1))


@rule(RULES, "permute")
def permute(input: NestedTensor, *dims: Any) -> Any:
    """The dimensions in another order: a view."""
    order = [input._dim(d) for d in _numbers(dims)]
    if sorted(order) != list(range(input.dim())):
        raise RuntimeError("permute(): the dimensions are not those of the tensor, each once")
    if order[0] != 0:
        raise ValueError("Permute is not supported on the batch dimension for jagged NT")
    values = packed_tensor(input).permute([d - 1 for d in order[1:]])
    return jagged_like(values, input, order.index(input._parts.ragged))


@rule(RULES, "movedim moveaxis")
def movedim(input: NestedTensor, source: Any, destination: Any) -> Any:
    """Moves dimensions to other places."""
    sources = [input._dim(d) for d in _numbers((source,))]
    places = [input._dim(d) for d in _numbers((destination,))]
    rest = iter([d for d in range(input.dim()) if d not in sources])
    by_place = dict(zip(places, sources, strict=True))
    order = [by_place[i] if i in by_place else next(rest) for i in range(input.dim())]
    return permute(input, *order)


# ------------------------------------------------------------------ sizes


@rule(RULES, "unsqueeze")
def unsqueeze(input: NestedTensor, dim: int) -> Any:
    """A dimension of size 1 more."""
    n = input.dim()
    at = dim + n + 1 if dim < 0 else dim
    if at == 0:
        raise RuntimeError("unsqueeze(): not supported for NestedTensor on dim=0")
    ragged = input._parts.ragged
    return jagged_like(packed_tensor(input).unsqueeze(at - 1), input, ragged + (at <= ragged))


@rule(RULES, "squeeze")
def squeeze(input: NestedTensor, dim: Any = None) -> Any:
    """A dimension of size 1 less."""
    if not isinstance(dim, int):
        raise not_there("squeeze.default", input)
    at, ragged = input._inner(dim, "squeeze"), input._parts.ragged
    if packed_tensor(input).shape[at] != 1:
        return view_as_nested(NestedTensor, packed_tensor(input), input._parts)
    return jagged_like(packed_tensor(input).squeeze(at), input, ragged - (at + 1 < ragged))


@rule(RULES, "view reshape view_as reshape_as")
def view(input: NestedTensor, *shape: Any) -> Any:
    """The entries in other sizes. The batch size stays; the ragged size is named by itself or
    -1.
    """
    shape = _parse_shape("view", shape, input)
    sizes = list(_numbers(shape))
    refused = RuntimeError(f"view(): cannot view shape {input._size} as {sizes}")
    values, parts = packed_tensor(input), input._parts
    mine, before = input._size, math.prod(input._size[1 : parts.ragged])
    if len(sizes) < 2 or sizes[0] not in (parts.batch, -1):
        raise refused
    named = [i for i, n in enumerate(sizes) if isinstance(n, SymInt)]
    if named and sizes[named[0]] != parts.size:
        raise refused
    free = [i for i, n in enumerate(sizes[1:], 1) if type(n) is int and n == -1]
    at = named[0] if named else _place_of(sizes, before)
    inner = sizes[1:]
    if at is None or (not named and at not in free):
        raise refused
    if math.prod([n for n in sizes[1:at] if n != -1]) != before and not named:
        raise refused
    inner[at - 1] = values.shape[parts.ragged - 1]
    found = values.view(inner)
    if math.prod(found.shape[: at - 1]) != before or mine[0] != parts.batch:
        raise refused
    return jagged_like(found, input, at)


def _place_of(sizes: Sequence[Any], before: int) -> int | None:
    """The index of the ragged dimension among sizes that do not name it."""
    n = 1
    for i, size in enumerate(sizes[1:], 1):
        if size == -1 and n == before:
            return i
        n *= size
    return None


@rule(RULES, "expand expand_as broadcast_to")
def expand(input: Any, *shape: Any) -> Any:
    """Dimensions of size 1 in other sizes: a view."""
    if not isinstance(input, NestedTensor):
        return _broadcast_like(input, shape[0])
    shape = _parse_shape("expand", shape, input)
    sizes = list(_numbers(shape))
    parts, n = input._parts, input.dim()
    if len(sizes) != n or sizes[0] not in (parts.batch, -1):
        raise RuntimeError(f"expand(): cannot expand shape {input._size} -> {tuple(sizes)}")
    if sizes[parts.ragged] not in (parts.size, -1):
        raise RuntimeError(f"expand(): cannot expand shape {input._size} -> {tuple(sizes)}")
    inner = [-1 if i == parts.ragged else size for i, size in enumerate(sizes)][1:]
    return jagged_like(packed_tensor(input).expand(inner), input)


def _broadcast_like(dense: Tensor, like: Any) -> Any:
    wide = like._expand_to_values("expand_as", dense) if dense.dim() else dense
    return jagged_like(_F["broadcast_to"](wide, packed_tensor(like).shape), like)


@rule(RULES, "flatten")
def flatten(input: NestedTensor, start_dim: int = 0, end_dim: int = -1) -> Any:
    """Merges dimensions, neither the batch's nor the ragged one."""
    first, last = input._dim(start_dim), input._dim(end_dim)
    ragged = input._parts.ragged
    if first > last:
        raise RuntimeError("flatten() has invalid args: start_dim cannot come after end_dim")
    if first == 0:
        raise RuntimeError("flatten(): not supported for NestedTensor on dim=0")
    if first <= ragged <= last and first != last:
        raise RuntimeError("flatten(): not supported for NestedTensor on ragged dim")
    moved = ragged - (last - first) if last < ragged else ragged
    return jagged_like(packed_tensor(input).flatten(first - 1, last - 1), input, moved)


@rule(RULES, "unflatten")
def unflatten(input: NestedTensor, dim: int, sizes: Sequence[int]) -> Any:
    """Splits one dimension into several."""
    at, ragged = input._inner(dim, "unflatten"), input._parts.ragged
    moved = ragged + len(sizes) - 1 if at + 1 < ragged else ragged
    return jagged_like(packed_tensor(input).unflatten(at, list(sizes)), input, moved)


# ------------------------------------------------------------------ parts and several


@rule(RULES, "narrow")
def narrow(input: NestedTensor, dim: int, start: Any, length: int) -> Any:
    """A part of a dimension: a view."""
    at = input._inner(dim, "narrow")
    return jagged_like(packed_tensor(input).narrow(at, start, length), input)


@split_rule(RULES)
def split(input: NestedTensor, split_size: Any, dim: int) -> tuple[Any, ...]:
    """Parts of `split_size` places each."""
    op = "split" if isinstance(split_size, int) else "split_with_sizes"
    at = input._inner(dim, op)
    return tuple(jagged_like(each, input) for each in packed_tensor(input).split(split_size, at))


@rule(RULES, "chunk")
def chunk(input: NestedTensor, chunks: int, dim: int = 0) -> tuple[Any, ...]:
    """Splits into `chunks` parts; along the batch, each part has its own entries."""
    at = input._dim(dim)
    if at:
        inner = input._inner(dim, "chunk")
        return tuple(jagged_like(each, input) for each in packed_tensor(input).chunk(chunks, inner))
    values, parts = packed_tensor(input), input._parts
    if parts.lengths is not None:
        raise RuntimeError("chunk(): not supported for nested tensors with holes")
    spans, along = parts.spans(values.shape[parts.ragged - 1], "chunk"), parts.ragged - 1
    if chunks <= 0:
        raise RuntimeError(f"chunk expects `chunks` to be greater than 0, got: {chunks}")
    step = -(-len(spans) // chunks)
    found = []
    for first in range(0, len(spans), step):
        mine = spans[first : first + step]
        offsets = parts.offsets[first : first + len(mine) + 1] - mine[0][0]
        rows = values.narrow(along, mine[0][0], sum(n for _, n in mine))
        found.append(wrap_as_nested(NestedTensor, rows, Jagged(offsets, None, parts.ragged)))
    return tuple(found)


@rule(RULES, "cat concat concatenate")
def cat(tensors: Sequence[Any], dim: int = 0, *, out: Any = None) -> Any:
    """Concatenates jagged tensors with the same offsets."""
    return _concatenate("cat", tensors, dim, out)


@rule(RULES, "stack")
def stack(tensors: Sequence[Any], dim: int = 0, *, out: Any = None) -> Any:
    """Joins tensors along a new dimension."""
    first = _like_each_other("stack", tensors, out)
    n = first.dim() + 1
    at = dim + n if dim < 0 else dim
    if at == 0:
        raise RuntimeError("stack(): not supported for NestedTensor on dim=0")
    ragged = first._parts.ragged
    values = _F["stack"]([packed_tensor(t) for t in tensors], at - 1)
    return jagged_like(values, first, ragged + (at <= ragged))


def _concatenate(op: str, tensors: Sequence[Any], dim: int, out: Any) -> Any:
    first = _like_each_other(op, tensors, out)
    at = first._inner(dim, op)
    wide = [t if isinstance(t, NestedTensor) else _broadcast_like(t, first) for t in tensors]
    return jagged_like(_F["cat"]([packed_tensor(t) for t in wide], at), first)


def _like_each_other(op: str, tensors: Sequence[Any], out: Any) -> Any:
    if out is not None:
        raise NotImplementedError(f"aten.{op}: out= is not implemented for nested tensors")
    first = next(t for t in tensors if isinstance(t, NestedTensor))
    for each in tensors:
        if isinstance(each, NestedTensor) and not each._parts.same(first._parts):
            raise RuntimeError(
                f"{op}(): expected all nested tensors to have the same offsets, but got shapes "
                f"{first._size} and {each._size}"
            )
    return first
