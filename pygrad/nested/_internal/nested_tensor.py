"""The jagged layout: values that hold the entries one after the other, and offsets.

Example:
    >>> import pygrad as torch
    >>> from pygrad.nested._internal.nested_tensor import NestedTensor
    >>> x = torch.nested.nested_tensor([torch.ones(2), torch.ones(3)], layout=torch.jagged)
    >>> isinstance(x, NestedTensor), x.offsets(), x.values()
    (True, tensor([0, 2, 5]), tensor([1., 1., 1., 1., 1.]))
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from ..._boundary import attributes
from ..._ground.dtypes import Size, int64, jagged
from ..._tensor.base import check_deepcopied
from ..._tensor.tensor import Tensor
from .._class import Nested, Rules, packed_tensor, view_as_nested
from .._jagged import Jagged
from .._sizes import SymInt, ragged_size_of, shape_of

RULES: Rules = {}


class NestedTensor(Nested):
    """A nested tensor of the layout `torch.jagged`: one dimension is ragged.

    Args:
        values: the entries, one after the other along a dimension.
        offsets: int64 or int32, (batch + 1,): the begin of each entry, and the end of the last.
        lengths: (batch,): the length of each entry, if there are gaps between entries.

    Raises:
        AssertionError: the arguments do not fit each other.
    """

    __slots__ = ()

    rules: ClassVar[Rules] = RULES
    kind: ClassVar[Any] = jagged
    _parts: Jagged

    def __new__(
        cls,
        values: Tensor,
        offsets: Tensor,
        *,
        lengths: Tensor | None = None,
        requires_grad: bool = False,
        _ragged_idx: int = 1,
        _metadata_cache: dict[str, Any] | None = None,
        **_: Any,
    ) -> Any:
        parts = _parts_of(values, offsets, lengths, _ragged_idx)
        known = _metadata_cache or {}
        for name, key in (("least", "min_seqlen"), ("most", "max_seqlen")):
            if known.get(key) is not None:
                setattr(parts, name, known[key].shape[0])
        made = view_as_nested(cls, values.detach(), parts)
        return made.requires_grad_() if requires_grad else made

    def __init__(self, *_: Any, **__: Any) -> None:
        """The work is done in __new__."""

    # ------------------------------------------------------------ parts

    def values(self) -> Tensor:
        """The entries, one after the other: a view."""
        return packed_tensor(self)

    def offsets(self) -> Tensor:
        """The begin of each entry, and the end of the last."""
        return self._parts.offsets

    def lengths(self) -> Tensor | None:
        """The length of each entry if there are gaps between entries; else None."""
        return self._parts.lengths

    @property
    def _values(self) -> Tensor:  # type: ignore[override]
        return packed_tensor(self).detach()

    _offsets = property(offsets)
    _lengths = property(lengths)

    @property
    def _ragged_idx(self) -> int:
        return self._parts.ragged

    def _get_max_seqlen(self) -> int:
        parts = self._parts
        if parts.most is None:
            parts.most = parts.longest()
        return parts.most

    def _get_min_seqlen(self) -> int:
        parts = self._parts
        if parts.least is None:
            parts.least = parts.shortest()
        return parts.least

    _max_seqlen, _min_seqlen = property(_get_max_seqlen), property(_get_min_seqlen)

    @property
    def _maybe_max_seqlen(self) -> int | None:
        return self._parts.most

    @property
    def _maybe_min_seqlen(self) -> int | None:
        return self._parts.least

    # ------------------------------------------------------------ description

    @property
    def shape(self) -> Size:
        """The sizes, one of which is ragged."""
        inner, parts = attributes.shape(self), self._parts
        at = parts.ragged - 1
        return shape_of((parts.batch, *inner[:at], parts.size, *inner[at + 1 :]))

    @classmethod
    def _describe(cls, parts: Jagged, metadata: Any) -> None:
        super()._describe(parts, metadata)
        inner, at = metadata.shape, parts.ragged - 1
        metadata.shape = [parts.batch, *inner[:at], parts.size, *inner[at + 1 :]]

    @property
    def _size(self) -> tuple[Any, ...]:
        return tuple(self.shape)

    def size(self, dim: int | None = None) -> Any:
        """All sizes, or the size of one dimension."""
        return self.shape if dim is None else self.shape[self._dim(dim)]

    def stride(self, dim: int | None = None) -> Any:
        """The strides in elements; the batch has a ragged one."""
        inner = attributes.strides(self)
        all_of = (self._parts.size * inner[self._parts.ragged - 1], *inner)
        return all_of if dim is None else all_of[self._dim(dim)]

    @property
    def _strides(self) -> tuple[Any, ...]:
        return self.stride()  # type: ignore[no-any-return]

    def dim(self) -> int:
        """The number of dimensions, including the batch."""
        return attributes.dim(self) + 1

    def numel(self) -> int:
        """The number of elements in all entries."""
        n, parts = attributes.numel(self), self._parts
        if parts.lengths is None:
            return n
        rows = attributes.shape(self)[parts.ragged - 1]
        return n // rows * sum(length for _, length in parts._read_spans()) if rows else 0

    def is_contiguous(self, memory_format: Any = None) -> bool:
        """Whether the values are contiguous and there are no gaps between the entries."""
        return self._parts.lengths is None and packed_tensor(self).is_contiguous()

    def _is_contiguous_or_false(self) -> bool:
        return self.is_contiguous()

    def __len__(self) -> int:
        return self._parts.batch

    def _dim(self, dim: int) -> int:
        """A dimension counted from the first.

        Raises: IndexError: there is no such dimension.
        """
        n = self.dim()
        if not -n <= dim < n:
            raise IndexError(
                f"Dimension out of range (expected to be in range of [{-n}, {n - 1}], but got "
                f"{dim})"
            )
        return dim % n

    def _inner(self, dim: int, op: str) -> int:
        """A dimension of each entry that is not ragged, counted in the values.

        Raises: RuntimeError: it is the batch, or ragged.
        """
        at = self._dim(dim)
        if at == 0:
            raise RuntimeError(f"{op}(): not supported for NestedTensor on dim=0")
        if at == self._parts.ragged:
            raise RuntimeError(f"{op}(): not supported for NestedTensor on ragged dim")
        return at - 1

    def __repr__(self) -> str:  # type: ignore[override]
        history = f", requires_grad={self.requires_grad}" if self.requires_grad else ""
        if self.grad_fn:
            history = f", grad_fn={self.grad_fn}"
        return (
            f"NestedTensor(size={self._size}, offsets={self.offsets()}{history}, "
            f"contiguous={self.is_contiguous()})"
        )

    # ------------------------------------------------------------ copies, files

    def __copy__(self) -> NestedTensor:
        made: NestedTensor = view_as_nested(type(self), self.detach(), self._parts)
        return made.requires_grad_(self.requires_grad)  # type: ignore[return-value]

    def __deepcopy__(self, memo: dict[int, Any]) -> NestedTensor:
        if id(self) in memo:
            return memo[id(self)]  # type: ignore[no-any-return]
        check_deepcopied(self)
        parts = self._parts
        made = view_as_nested(type(self), packed_tensor(self).detach().clone(), parts)
        memo[id(self)] = made.requires_grad_(self.requires_grad)
        if self.grad is not None:
            made.grad = view_as_nested(type(made), packed_tensor(self.grad).clone(), made._parts)
        return made  # type: ignore[no-any-return]

    def __reduce_ex__(self, protocol: Any) -> Any:
        parts = self._parts
        known = {
            key: _store_val_in_tensor(n)
            for key, n in (("max_seqlen", parts.most), ("min_seqlen", parts.least))
            if n is not None
        }
        return (
            _rebuild_njt,
            (
                {
                    "values": self._values,
                    "offsets": parts.offsets,
                    "lengths": parts.lengths,
                    "_ragged_idx": parts.ragged,
                    "_metadata_cache": known,
                    "requires_grad": self.requires_grad,
                },
            ),
        )

    # ------------------------------------------------------------ operands beside the values

    def _fits_shape(self, shape: Sequence[int]) -> bool:
        mine, at = attributes.shape(self), self._parts.ragged - 1
        return len(shape) == len(mine) and shape[at] == mine[at]

    def _entries(self, op: str) -> list[Tensor]:
        values, at = packed_tensor(self), self._parts.ragged - 1
        spans = self._parts.spans(values.shape[at], op)
        if self._parts.lengths is None:
            return list(values.split([n for _, n in spans], at))
        return [values.narrow(at, start, n) for start, n in spans]

    def _fit(self, name: str, value: Any, is_self: bool = False) -> Any:
        if isinstance(value, Nested):
            if type(value) is not type(self) or not self._broadcasts_with(value):
                raise _unfit(name, self, value)
            return value
        if not isinstance(value, Tensor) or value.dim() == 0:
            return value
        return self._expand_to_values(name, value)

    def _broadcasts_with(self, other: Any) -> bool:
        """Whether the other tensor's sizes equal these, or broadcast with them."""
        if not self._parts.same(other._parts) or self.dim() != other.dim():
            return False
        pairs = zip(self.shape, other.shape, strict=True)
        return all(a == b or 1 in (a, b) for a, b in pairs)

    def _expand_to_values(self, name: str, dense: Tensor) -> Tensor:
        """Expands a dense tensor to the rows of the values: row r gets the element of r's entry and
        place.
        """
        n, ragged, parts = self.dim(), self._parts.ragged, self._parts
        if dense.dim() > n:
            raise NotImplementedError("NYI: broadcasting NT with T with larger dim")
        if dense.dim() < n:
            return dense
        if dense.shape[0] == 1 and dense.shape[ragged] == 1:
            return dense.squeeze(0)
        if dense.shape[0] not in (1, parts.batch):
            raise _unfit(name, self, dense)
        values = attributes.shape(self)
        rest = [size for i, size in enumerate(dense.shape) if i not in (0, ragged)]
        entries, within = parts.places(values[ragged - 1], name)
        rows = dense.movedim(ragged, 1)
        rows = rows.expand(parts.batch, parts.longest(), *rest)
        return rows[entries, within].movedim(0, ragged - 1)


def _unfit(name: str, self: NestedTensor, other: Any) -> RuntimeError:
    if isinstance(other, NestedTensor):
        shapes: tuple[Any, Any] = self._size, other._size
    elif isinstance(other, Nested):
        return RuntimeError("Expected both self and other to be nested of the same layout")
    else:
        shapes = self.shape, other.shape
    return RuntimeError(
        f"cannot call binary pointwise function {name}.Tensor with inputs of shapes {shapes[0]} "
        f"and {shapes[1]}"
    )


def _store_val_in_tensor(n: int) -> Tensor:
    """A number as files have it: the size of a tensor without elements."""
    from ..._tensor.creation import tensor

    return tensor([]).new_zeros((n, 0))


def _parts_of(values: Any, offsets: Any, lengths: Any, ragged: int) -> Jagged:
    """Raises: AssertionError: they are no parts of a tensor. TypeError: no tensors."""
    if not isinstance(offsets, Tensor):
        raise TypeError(
            "_nested_view_from_jagged(): argument 'offsets' (position 2) must be Tensor, not "
            f"{type(offsets).__name__}"
        )
    if isinstance(values, Nested):
        raise ValueError(
            "NestedTensor _nested_view_from_jagged_default(values: t, offsets: t, dummy: jt_all, "
            "lengths: t?, ragged_idx: any?, min_seqlen: t?, max_seqlen: t?): expected values to be "
            "a tensor"
        )
    if offsets.ndim != 1:
        raise AssertionError(f"offsets must be 1D, but got {offsets.ndim}D")
    if offsets.shape[0] == 0:
        raise AssertionError("offsets must have an element more than there are entries")
    if lengths is not None and (lengths.ndim != 1 or lengths.shape[0] != offsets.shape[0] - 1):
        raise AssertionError(
            "offsets and lengths batch sizes must match: offsets.shape[0] - 1 = "
            f"{offsets.shape[0] - 1}, lengths.shape[0] = {lengths.shape[0] if lengths.ndim else 0}"
        )
    if not 1 <= ragged <= values.dim():
        raise IndexError(
            f"Dimension out of range (expected to be in range of [1, {values.dim()}], but got "
            f"{ragged})"
        )
    return Jagged(offsets, lengths, ragged)


def _rebuild_njt(constructor_kwargs: dict[str, Any]) -> Any:
    """A tensor from its parts in a file or a copy.

    Raises: TypeError, AssertionError: the parts make no tensor.
    """
    if type(constructor_kwargs) is not dict or not isinstance(
        constructor_kwargs.get("values"), Tensor
    ):
        raise TypeError("a nested tensor is made of values and offsets")
    return NestedTensor(**constructor_kwargs)


def get_tensor_symint(tensor: Tensor, *, coeff: int = 1) -> SymInt:
    """The ragged size that belongs to offsets or lengths."""
    return ragged_size_of(tensor) * coeff


def nested_view_from_values_offsets(
    values: Tensor,
    offsets: Tensor,
    ragged_idx: int = 1,
    min_seqlen: int | None = None,
    max_seqlen: int | None = None,
) -> NestedTensor:
    """A jagged tensor over values: a view of them."""
    return nested_view_from_values_offsets_lengths(
        values, offsets, None, ragged_idx, min_seqlen, max_seqlen
    )


def nested_view_from_values_offsets_lengths(
    values: Tensor,
    offsets: Tensor,
    lengths: Tensor | None,
    ragged_idx: int = 1,
    min_seqlen: int | None = None,
    max_seqlen: int | None = None,
) -> NestedTensor:
    """Like `nested_view_from_values_offsets`, for entries with gaps between them."""
    parts = _parts_of(values, offsets, lengths, ragged_idx)
    parts.least, parts.most = min_seqlen, max_seqlen
    return view_as_nested(NestedTensor, values, parts)  # type: ignore[no-any-return]


def jagged_from_list(
    tensors: Sequence[Tensor], offsets: Tensor | None, dtype: Any = None, device: Any = None
) -> tuple[NestedTensor, Tensor]:
    """A jagged tensor of copies of its entries, and its offsets: the given ones, or new ones.

    Raises: RuntimeError: there are no tensors, or they do not fit each other.
    """
    from ..._table import functions
    from ..._tensor.creation import tensor

    if not len(tensors):
        raise RuntimeError("Cannot construct a nested tensor from an empty tensor list")
    if len({t.dtype for t in tensors}) > 1:
        raise RuntimeError(
            "When constructing a nested tensor, all tensors in list must have the same dtype"
        )
    if len({t.device for t in tensors}) > 1:
        raise RuntimeError(
            "When constructing a nested tensor, all tensors in list must be on the same device"
        )
    if len({t.dim() for t in tensors}) > 1:
        raise RuntimeError(
            "When constructing a nested tensor, all tensors in list must have the same dim"
        )
    if not tensors[0].dim():
        raise RuntimeError("Cannot construct a nested tensor from a list of zero-dim tensors")
    sizes = [t.shape for t in tensors]
    free = [i for i in range(len(sizes[0])) if any(s[i] != sizes[0][i] for s in sizes)]
    if len(free) > 1:
        raise RuntimeError(
            "Cannot represent given tensor list as a nested tensor with the jagged layout. Note "
            "that the jagged layout only allows for a single ragged dimension. For example: "
            "(B, *, D_0, D_1, ..., D_N), with ragged * dim."
        )
    at = free[0] if free else 0
    values = functions.SPACES["torch"]["cat"](list(tensors), at)
    if dtype is not None or device is not None:
        values = values.to(device=device, dtype=dtype)
    lengths = [s[at] for s in sizes]
    if offsets is None:
        ends = [sum(lengths[:i]) for i in range(len(lengths) + 1)]
        offsets = tensor(ends, dtype=int64, device=values.device)
    parts = Jagged(offsets, None, at + 1, min(lengths), max(lengths))
    return view_as_nested(NestedTensor, values, parts), offsets


def jagged_from_tensor_and_lengths(
    tensor: Tensor, starts: Tensor, lengths: Tensor
) -> tuple[NestedTensor, Tensor, Tensor | None]:
    """The part of each row of a tensor from its start with its length: a view."""
    from ..._table import functions

    batch, most = tensor.shape[0], tensor.shape[1]
    values = tensor.reshape(-1, *tensor.shape[2:])
    made_lengths = lengths.expand(batch)
    begins = functions.SPACES["torch"]["arange"](0, batch * most, most, dtype=int64) + starts
    last = begins[-1:] + made_lengths[-1:]
    offsets = functions.SPACES["torch"]["cat"]([begins, last.to(int64)])
    found = nested_view_from_values_offsets_lengths(values, offsets, made_lengths)
    return found, offsets, made_lengths


def buffer_from_jagged(jagged: NestedTensor) -> Tensor:
    """The values."""
    return jagged.values()
