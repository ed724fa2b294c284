"""The strided layout: a buffer, with the sizes, strides and offset of each entry.

Any dimension except the batch may be ragged. An op that is not element-wise runs entry by entry, as
in PyTorch on the CPU.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

from .._boundary import attributes
from .._ground.dtypes import Size, int64, strided
from .._table import functions
from .._tensor.host_data import contiguous_strides
from .._tensor.rebuild import _rebuild_nested_tensor
from .._tensor.tensor import Tensor
from ._class import Nested, Rules, packed_tensor, view_as_nested, wrap_as_nested

RULES: Rules = {}
_F = functions.SPACES["torch"]
_NO_SIZES = "Internal error: NestedTensorImpl doesn't support {}. Please file an issue."
Sizes = tuple[int, ...]


class Strided:
    """The places of the entries in the buffer."""

    __slots__ = ("offsets", "rank", "sizes", "strides")

    def __init__(
        self, sizes: Sequence[Sizes], strides: Sequence[Sizes], offsets: Sequence[int], rank: int
    ) -> None:
        self.sizes, self.strides = tuple(sizes), tuple(strides)
        self.offsets, self.rank = tuple(offsets), rank

    @classmethod
    def in_order(cls, sizes: Sequence[Sizes], rank: int | None = None) -> Strided:
        """The parts of consecutive, contiguous entries."""
        offsets, at = [], 0
        for each in sizes:
            offsets.append(at)
            at += math.prod(each)
        if rank is None:
            rank = len(sizes[0]) if sizes else 0
        return cls(sizes, [contiguous_strides(size) for size in sizes], offsets, rank)

    def same(self, other: Strided) -> bool:
        """Whether the parts have the same sizes."""
        return self.sizes == other.sizes and self.rank == other.rank

    def lies_like(self, other: Strided) -> bool:
        """Whether the entries of both are at the same places of their buffers."""
        return self.strides == other.strides and self.offsets == other.offsets

    def is_in_order(self, numel: int) -> bool:
        """Whether the entries are contiguous and consecutive, and fill the buffer."""
        plain = Strided.in_order(self.sizes, self.rank)
        if sum(map(math.prod, self.sizes)) != numel:
            return False
        return plain.offsets == self.offsets and all(
            n < 2 or a == b
            for mine, like, sizes in zip(self.strides, plain.strides, self.sizes, strict=True)
            for a, b, n in zip(mine, like, sizes, strict=True)
        )

    def regular(self, dim: int) -> int | None:
        """The size of a dimension if all entries have the same; None: it is ragged."""
        found = {sizes[dim] for sizes in self.sizes}
        return found.pop() if len(found) == 1 else 0 if not found else None


class StridedNestedTensor(Nested):
    """A nested tensor of the layout `torch.strided`; `nested_tensor` makes it."""

    __slots__ = ()

    rules: ClassVar[Rules] = RULES
    kind: ClassVar[Any] = strided
    _parts: Strided

    # ------------------------------------------------------------ description

    @property
    def shape(self) -> Size:
        """Raises RuntimeError: ask for `size(dim)`."""
        raise RuntimeError(_NO_SIZES.format("sizes"))

    def size(self, dim: int | None = None) -> Any:
        """The size of a dimension.

        Raises: RuntimeError: it is ragged, or not given. IndexError: there is no such dimension.
        """
        if dim is None:
            raise RuntimeError(_NO_SIZES.format("sizes"))
        at = self._dim(dim)
        if at == 0:
            return len(self._parts.sizes)
        found = self._parts.regular(at - 1)
        if found is None:
            raise RuntimeError(f"Given dimension {at} is irregular and does not have a size.")
        return found

    def stride(self, dim: int | None = None) -> Any:
        """Raises RuntimeError: each entry has its own strides."""
        raise RuntimeError(_NO_SIZES.format("strides"))

    def dim(self) -> int:
        """The number of dimensions, including the batch."""
        return self._parts.rank + 1

    def numel(self) -> int:
        """The number of elements in all entries."""
        return sum(map(math.prod, self._parts.sizes))

    def is_contiguous(self, memory_format: Any = None) -> bool:
        """Whether the entries are contiguous and consecutive."""
        return self._parts.is_in_order(attributes.numel(self))

    def __len__(self) -> int:
        raise RuntimeError(_NO_SIZES.format("sizes"))

    def _dim(self, dim: int) -> int:
        n = self.dim()
        if not -n <= dim < n:
            raise IndexError(
                f"Dimension out of range (expected to be in range of [{-n}, {n - 1}], but got "
                f"{dim})"
            )
        return dim % n

    @classmethod
    def _describe(cls, parts: Strided, metadata: Any) -> None:
        super()._describe(parts, metadata)
        metadata.is_cpp_nested_tensor = True

    def _table(self, rows: Sequence[Any], shape: Sizes) -> Tensor:
        from .._tensor.creation import tensor

        return tensor([list(each) for each in rows], dtype=int64).reshape(shape)

    def _nested_tensor_size(self) -> Tensor:
        """int64, (batch, dimensions of an entry): the sizes of each entry."""
        return self._table(self._parts.sizes, self._table_shape())

    def _nested_tensor_strides(self) -> Tensor:
        """The strides of each entry, in the same form."""
        return self._table(self._parts.strides, self._table_shape())

    def _table_shape(self) -> Sizes:
        n = len(self._parts.sizes)
        return (n, self._parts.rank) if n else (0,)

    def _nested_tensor_storage_offsets(self) -> Tensor:
        """int64, (batch,): the begin of each entry in the buffer."""
        from .._tensor.creation import tensor

        return tensor(list(self._parts.offsets), dtype=int64)

    def values(self) -> Tensor:
        """The buffer: a view."""
        return packed_tensor(self)

    def __repr__(self) -> str:  # type: ignore[override]
        entries = ",\n".join(_indent(repr(each)) for each in self._entries_to_print())
        text = f"nested_tensor([\n{entries}\n]"
        if self.grad_fn is not None:
            return f"{text}, grad_fn=<{self.grad_fn.name()}>)"
        return f"{text}, requires_grad=True)" if self.requires_grad else f"{text})"

    def _entries_to_print(self) -> list[Tensor]:
        entries = entries_of(packed_tensor(self).detach(), self._parts)
        return [each.requires_grad_() for each in entries] if self.requires_grad else entries

    # ------------------------------------------------------------ copies, files

    def __copy__(self) -> StridedNestedTensor:
        made = view_as_nested(type(self), packed_tensor(self).detach(), self._parts)
        return made.requires_grad_(self.requires_grad)  # type: ignore[no-any-return]

    def __deepcopy__(self, memo: dict[int, Any]) -> StridedNestedTensor:
        if id(self) in memo:
            return memo[id(self)]  # type: ignore[no-any-return]
        if not self.is_leaf:
            raise RuntimeError(
                "Only Tensors created explicitly by the user (graph leaves) support the deepcopy "
                "protocol at the moment."
            )
        made = view_as_nested(type(self), packed_tensor(self).detach().clone(), self._parts)
        memo[id(self)] = made.requires_grad_(self.requires_grad)
        if self.grad is not None:
            made.grad = view_as_nested(
                type(made), packed_tensor(self.grad).clone(), self.grad._parts
            )
        return made  # type: ignore[no-any-return]

    def __reduce_ex__(self, protocol: Any) -> Any:
        parts = (
            packed_tensor(self).detach().requires_grad_(self.requires_grad),
            self._nested_tensor_size(),
            self._nested_tensor_strides(),
            self._nested_tensor_storage_offsets(),
        )
        return _rebuild_nested_tensor, parts

    # ------------------------------------------------------------ operands

    def _entries(self, op: str) -> list[Tensor]:
        return entries_of(packed_tensor(self), self._parts)

    def _operand(self, name: str, others: Sequence[Any], alone: bool) -> Nested:
        if self.is_contiguous() or name == "detach":
            return self
        if alone or name.endswith("_"):
            raise RuntimeError("NestedTensor must be contiguous to get buffer.")
        nested = [o for o in others if isinstance(o, StridedNestedTensor)]
        if all(self._parts.lies_like(o._parts) for o in nested):
            return self
        if name in ("div", "divide", "true_divide"):
            same = all(self._parts.strides == o._parts.strides for o in nested)
            what = "offsets" if same else "strides"
            raise RuntimeError(f"{name} requires {what} to match when given NestedTensors")
        return nested_of_entries(self._entries(name), self._parts.rank)  # type: ignore[no-any-return]

    def _fit(self, name: str, value: Any, is_self: bool = False) -> Any:
        if not isinstance(value, Tensor):
            return value
        if isinstance(value, StridedNestedTensor):
            if not value._parts.same(self._parts):
                raise RuntimeError(
                    f"{name.removesuffix('_')} does not support broadcasting when given a "
                    "NestedTensor"
                )
            return value if self._parts.lies_like(value._parts) else to_consecutive(value)
        if value.dim() == 0:
            return value
        kinds = ("non-nested", "nested") if is_self else ("nested", "non-nested")
        raise RuntimeError(
            f"Expected both self and other to be nested, but got a {kinds[0]} self and {kinds[1]} "
            "other"
        )


def _indent(text: str) -> str:
    return "\n".join(f"  {line}" for line in text.split("\n"))


def entries_of(buffer: Tensor, parts: Strided, apart: bool = False) -> list[Tensor]:
    """The entries as views of the buffer: by one common op, or each by its own."""
    if parts.sizes and not apart and parts.is_in_order(buffer.shape[0]):
        pieces = buffer.split([math.prod(each) for each in parts.sizes])
        return [p.view(s) for p, s in zip(pieces, parts.sizes, strict=True)]
    rows = zip(parts.sizes, parts.strides, parts.offsets, strict=True)
    return [buffer.as_strided(size, stride, start) for size, stride, start in rows]


def nested_of_entries(entries: Sequence[Tensor], rank: int | None = None) -> Any:
    """A nested tensor of copies of its entries, with their history."""
    sizes = [tuple(each.shape) for each in entries]
    buffer = _F["cat"]([each.reshape(-1) for each in entries])
    return wrap_as_nested(StridedNestedTensor, buffer, Strided.in_order(sizes, rank))


def nested_over_buffer(buffer: Tensor, parts: Strided) -> Any:
    """A nested tensor over a buffer: a view of it."""
    return view_as_nested(StridedNestedTensor, buffer, parts)


def refuse_otherwise(x: Any, words: str) -> None:
    """Raises: RuntimeError: in these words, if the entries are not in order."""
    if not x.is_contiguous():
        raise RuntimeError(words)


def to_consecutive(x: Any) -> Any:
    """The entries contiguous and consecutive: `x` itself if they are so already."""
    return x if x.is_contiguous() else nested_of_entries(x._entries("contiguous"), x._parts.rank)


def copy_to_layout(x: Any, like: Any) -> Any:
    """The entries in a buffer with another tensor's layout."""
    if x._parts.lies_like(like._parts):
        return x
    other = like._parts
    buffer = packed_tensor(x).new_zeros(packed_tensor(like).shape)
    for place, entry in zip(entries_of(buffer, other, True), x._entries("copy_"), strict=True):
        place.copy_(entry)
    return wrap_as_nested(StridedNestedTensor, buffer, other)


def each(function: Callable[..., Tensor], x: Any, *others: Any) -> Any:
    """Applies a function to each entry, or to the corresponding entries of several tensors."""
    lists = [t._entries("unbind") for t in (x, *others)]
    made = [function(*entry) for entry in zip(*lists, strict=True)]
    return nested_of_entries(made, made[0].dim() if made else x._parts.rank) if made else x.clone()


def rebuild_strided(buffer: Tensor, sizes: Tensor, strides: Tensor, offsets: Tensor) -> Any:
    """A nested tensor from its parts in a file or in `torch._nested_view_from_buffer`.

    Raises: RuntimeError: an entry is outside the buffer.
    """
    if buffer.dim() != 1:
        raise RuntimeError("given buffer must be 1-dimensional")
    tables = [sizes.tolist(), strides.tolist()]
    parts = Strided(
        [tuple(row) for row in tables[0]],
        [tuple(row) for row in tables[1]],
        offsets.tolist(),
        sizes.shape[1] if sizes.dim() == 2 else 0,
    )
    check(parts, buffer.shape[0])
    return nested_over_buffer(buffer, parts)


def check(parts: Strided, room: int) -> None:
    """Raises: RuntimeError: an entry is outside a buffer of `room` elements."""
    if not len(parts.sizes) == len(parts.strides) == len(parts.offsets):
        raise RuntimeError("sizes, strides and offsets of a nested tensor are of as many entries")
    for size, stride, start in zip(parts.sizes, parts.strides, parts.offsets, strict=True):
        if len(size) != parts.rank or len(stride) != parts.rank:
            raise RuntimeError("entries of a nested tensor have the same number of dimensions")
        numbers = (*size, *stride, start)
        if any(type(n) is not int or n < 0 for n in numbers):
            raise RuntimeError("sizes, strides and offsets of a nested tensor are not negative")
        last = start + sum((n - 1) * step for n, step in zip(size, stride, strict=True))
        if math.prod(size) and last >= room:
            raise RuntimeError(
                f"an entry of a nested tensor reaches to element {last} of a buffer of {room}"
            )
