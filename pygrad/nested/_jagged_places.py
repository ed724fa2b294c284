"""Rules of the jagged layout for masks and indices."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .._boundary.overriding import DisableTorchFunctionSubclass
from .._ground.dtypes import bool_, int64
from .._table import functions
from .._tensor.creation import tensor
from .._tensor.tensor import Tensor
from ._class import packed_tensor, rule, wrap_as_nested
from ._internal.nested_tensor import RULES, NestedTensor
from ._jagged import Jagged
from ._jagged_shapes import jagged_like

_F = functions.SPACES["torch"]


@rule(RULES, "masked_select")
def masked_select(input: Any, mask: Any, *, out: Any = None) -> Any:
    """The elements of each entry that a mask with the same offsets selects."""
    if out is not None:
        raise NotImplementedError("aten.masked_select: out= is not implemented for nested tensors")
    jagged = isinstance(input, NestedTensor) and isinstance(mask, NestedTensor)
    if not jagged or mask._size != input._size:
        raise RuntimeError(
            f"Mask with shape {mask.shape} is not compatible with input's shape {input.shape}"
        )
    if input.dim() != 2:
        raise RuntimeError("masked_select only support 2-D selections currently")
    if mask.dtype is not bool_:
        raise RuntimeError("masked_select: expected BoolTensor for mask")
    chosen, offsets = packed_tensor(mask), input._parts.offsets
    input._parts.spans(len(chosen), "masked_select")
    ends = _F["cat"]([chosen.new_zeros(1, dtype=int64), chosen.cumsum(0)])
    values = packed_tensor(input).masked_select(chosen)
    return wrap_as_nested(NestedTensor, values, Jagged(ends[offsets].detach()))


def _rows(input: NestedTensor, indices: Sequence[Any], op: str) -> tuple[Any, ...]:
    """Converts indices of entries and places in them to indices of the values.

    Raises: RuntimeError: a place is outside its entry, or the ragged dimension is not indexed.
    """
    parts = input._parts
    if parts.ragged != 1 or parts.lengths is not None:
        raise RuntimeError(f"{op}(): only works on contiguous nested tensors")
    spans = parts.spans(packed_tensor(input).shape[0], op)
    if len(indices) == 1 and indices[0].dtype is not bool_:
        chosen = [spans[i] for i in indices[0].tolist()]
        places = [place for start, n in chosen for place in range(start, start + n)]
        return (tensor(places, dtype=int64),)
    if len(indices) < 2 or indices[0] is None or indices[1] is None:
        raise NotImplementedError(
            f"aten.{op}: the entry and the place in it are to be named for nested tensors"
        )
    entries, within = (each.to(int64) for each in indices[:2])
    lengths = _F["stack"]([parts.offsets[:-1], parts.offsets.diff()]).to(int64)
    begins, sizes = lengths[0][entries], lengths[1][entries]
    if spans and bool(((within < 0) | (within >= sizes)).any()):
        raise RuntimeError("Some indices in the ragged dimension are out of bounds!")
    return (begins + within, *indices[2:])


@rule(RULES, "index_put")
def index_put(
    input: NestedTensor, indices: Sequence[Any], values: Any, accumulate: bool = False
) -> Any:
    """A copy with other elements at places indexed by entry and place."""
    rows = _rows(input, indices, "index_put")
    return jagged_like(packed_tensor(input).index_put(rows, values, accumulate), input)


@rule(RULES, "index_put_")
def index_put_(
    input: NestedTensor, indices: Sequence[Any], values: Any, accumulate: bool = False
) -> Any:
    """Writes elements to places that are named by entry and place."""
    rows = _rows(input, indices, "index_put_")
    with DisableTorchFunctionSubclass():
        Tensor.index_put_(input, rows, values, accumulate)
    return input
