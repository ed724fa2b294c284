"""Makers of nested tensors: from lists, from one tensor, from values and offsets, and from
masks.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .._ground.dtypes import bool_, device, dtype, int64, jagged, layout, strided
from .._table import functions
from .._tensor.creation import data_as_tensor, tensor
from .._tensor.tensor import Tensor
from ..autograd.grad_mode import no_grad
from ._class import Nested
from ._internal.nested_tensor import (
    jagged_from_list,
    jagged_from_tensor_and_lengths,
    nested_view_from_values_offsets,
    nested_view_from_values_offsets_lengths,
)
from ._strided import Strided, nested_of_entries, nested_over_buffer, rebuild_strided

_F = functions.SPACES["torch"]


def _layout_error(kind: Any) -> RuntimeError:
    return RuntimeError(f"Specified layout is unsupported for nested tensors: {kind}")


def nested_tensor(
    tensor_list: Any,
    *,
    dtype: dtype | None = None,
    layout: layout | None = None,
    device: device | str | None = None,
    requires_grad: bool = False,
    pin_memory: bool = False,
) -> Any:
    """A nested tensor with copies of its entries, a leaf.

    Args:
        tensor_list: the entries: tensors, or data for `torch.tensor`, all of one rank.
        dtype: the result's dtype; the first entry's if left out.
        layout: `torch.strided`, which is taken if left out, or `torch.jagged`.
        device: the result's device. requires_grad: whether operations on it are recorded.
        pin_memory: not possible without an accelerator.

    Raises:
        RuntimeError: the entries do not fit each other, or the layout.
        TypeError: no list.

    Example:
        >>> import pygrad as torch
        >>> torch.nested.nested_tensor([[1.0, 2.0], [3.0]])
        nested_tensor([
          tensor([1., 2.]),
          tensor([3.])
        ])
    """
    if layout is None or layout is strided:
        if not isinstance(tensor_list, list):
            raise TypeError(
                "Only lists (List[Tensor] and List[List...[Scalar]]) are accepted in nested_tensor"
            )
        made = _leaf_of(tensor_list, dtype, device)
    elif layout is jagged:
        entries = [t if isinstance(t, Tensor) else data_as_tensor(t) for t in tensor_list]
        with no_grad():
            made = jagged_from_list(entries, None, dtype, device)[0].detach()
    else:
        raise _layout_error(layout)
    if requires_grad and not made.dtype._inexact:
        raise RuntimeError("Only Tensors of floating point and complex dtype can require gradients")
    return made.requires_grad_(requires_grad)


def _leaf_of(given: list[Any], kind: Any, where: Any) -> Any:
    entries = [t.detach() if isinstance(t, Tensor) else tensor(t) for t in given]
    if kind is None:
        kind = entries[0].dtype if entries else _F["get_default_dtype"]()
    with no_grad():
        return _nested_tensor_from_tensor_list(entries, kind, None, where)


def _nested_tensor_from_tensor_list(
    list: Sequence[Tensor],
    dtype: dtype | None = None,
    layout: layout | None = None,
    device: device | str | None = None,
    pin_memory: bool | None = None,
) -> Any:
    """A strided nested tensor of copies of tensors, with their history."""
    entries = [*list]
    for i, each in enumerate(entries):
        if each.dim() != entries[0].dim():
            raise RuntimeError(
                "All Tensors given to nested_tensor must have the same dimension. Found dimension "
                f"{each.dim()} for Tensor at index {i} and dimension {entries[i - 1].dim()} for "
                f"Tensor at index {i - 1}."
            )
    if device is not None and str(device).startswith("meta"):
        raise NotImplementedError("pygrad: nested tensors are not made on the device meta")
    if not entries:
        return nested_over_buffer(_F["empty"](0, dtype=dtype), Strided.in_order([], 0))
    kind = entries[0].dtype if dtype is None else dtype
    entries = [each if each.dtype is kind else each.to(kind) for each in entries]
    return nested_of_entries(entries, entries[0].dim())


def as_nested_tensor(
    ts: Tensor | Sequence[Tensor],
    dtype: dtype | None = None,
    device: device | str | None = None,
    layout: layout | None = None,
) -> Any:
    """A nested tensor of tensors, with their history; from one tensor, over its own elements.

    Args:
        ts: the entries, of one rank; or one tensor, whose first dimension is the batch. A nested
            tensor of the same layout is returned, converted if necessary.
        dtype, device: of the result.
        layout: `torch.strided`, which is taken if left out, or `torch.jagged`.

    Raises:
        TypeError: neither a tensor nor a list of tensors.
        RuntimeError: the entries do not fit each other, or another layout is asked for.

    Example:
        >>> import pygrad as torch
        >>> a, b = torch.ones(2, requires_grad=True), torch.ones(1, requires_grad=True)
        >>> torch.nested.as_nested_tensor([a, b]).values().sum().backward()
        >>> a.grad, b.grad
        (tensor([1., 1.]), tensor([1.]))
    """
    one = isinstance(ts, Tensor)
    if not one and not (isinstance(ts, (list, tuple)) and all(isinstance(t, Tensor) for t in ts)):
        raise TypeError(
            "as_nested_tensor(): Expected first argument to be a tensor or a list / tuple of "
            "tensors "
        )
    given: Any = ts
    if one and given.dim() < 2:
        raise RuntimeError("as_nested_tensor(): Expected tensor argument to have dim() > 1")
    if isinstance(given, Nested):
        if layout is given.layout:
            return given.to(device=device, dtype=dtype)
        raise RuntimeError(
            "as_nested_tensor(): Converting between nested tensor layouts is not supported"
        )
    if layout is None or layout is strided:
        if not one:
            return _nested_tensor_from_tensor_list(given, dtype, None, device)
        buffer = given.reshape(-1).to(device=device, dtype=dtype)
        return nested_over_buffer(
            buffer, Strided.in_order([tuple(given.shape[1:])] * given.shape[0])
        )
    if layout is not jagged:
        raise _layout_error(layout)
    if not one:
        return jagged_from_list(given, None, dtype, device)[0]
    batch, length = given.shape[:2]
    values = given.contiguous().flatten(0, 1).to(device=device, dtype=dtype)
    offsets = tensor([i * length for i in range(batch + 1)], dtype=int64)
    return nested_view_from_values_offsets(values, offsets, 1, length, length)


def nested_tensor_from_jagged(
    values: Tensor,
    offsets: Tensor | None = None,
    lengths: Tensor | None = None,
    jagged_dim: int | None = None,
    min_seqlen: int | None = None,
    max_seqlen: int | None = None,
) -> Any:
    """A jagged tensor over values that hold the entries one after the other: a view of them.

    Args:
        values: the entries, along dimension `jagged_dim` - 1.
        offsets: (batch + 1,): the begin of each entry, and the end of the last.
        lengths: (batch,): the length of each entry; without `offsets` they are consecutive.
        jagged_dim: the ragged dimension of the result; 1 if left out.
        min_seqlen, max_seqlen: the shortest and the longest, if they are known.

    Raises:
        RuntimeError: neither `offsets` nor `lengths` is given. Entries outside the values are
            detected when an op needs the entries.

    Example:
        >>> import pygrad as torch
        >>> x = torch.nested.nested_tensor_from_jagged(torch.arange(4.0), torch.tensor([0, 1, 4]))
        >>> list(x)
        [tensor([0.]), tensor([1., 2., 3.])]
    """
    if offsets is None:
        if lengths is None:
            raise RuntimeError(
                "nested_tensor_from_jagged(): At least one of offsets or lengths is required."
            )
        first = _F["zeros"](1, dtype=lengths.dtype)
        offsets, lengths = _F["cat"]([first, lengths.cumsum(0)]), None
    return nested_view_from_values_offsets_lengths(
        values, offsets, lengths, 1 if jagged_dim is None else jagged_dim, min_seqlen, max_seqlen
    )


def narrow(
    tensor: Tensor,
    dim: int,
    start: int | Tensor,
    length: int | Tensor,
    layout: layout = strided,
) -> Any:
    """The part of each row of a tensor from a start with a length.

    Args:
        tensor: (batch, n, ...).
        dim: 1 for the jagged layout, which is a view; 0 for the strided one, which is a copy.
        start, length: a number, or for the jagged layout a tensor (batch,).
        layout: of the result.

    Raises:
        RuntimeError: another dimension, or no numbers.

    Example:
        >>> import pygrad as torch
        >>> x = torch.arange(6.0).view(2, 3)
        >>> y = torch.nested.narrow(x, 1, torch.tensor([0, 1]), torch.tensor([1, 2]), torch.jagged)
        >>> list(y)
        [tensor([0.]), tensor([4., 5.])]
    """
    for name, value in (("start", start), ("length", length)):
        if not isinstance(value, (int, Tensor)):
            raise RuntimeError(f"{name} must be an integer or a tensor")
    if layout is strided:
        if isinstance(start, Tensor) or isinstance(length, Tensor):
            raise RuntimeError("start and length must be integers for the strided layout NT impl")
        return as_nested_tensor(tensor.unbind()).narrow(dim, start, length)
    if layout is not jagged:
        raise _layout_error(layout)
    if dim != 1:
        raise RuntimeError("jagged layout only supports dim=1")
    starts, lengths = (
        value if isinstance(value, Tensor) else _F["full"]((tensor.shape[0],), value, dtype=int64)
        for value in (start, length)
    )
    return jagged_from_tensor_and_lengths(tensor, starts, lengths)[0]


def masked_select(tensor: Tensor, mask: Tensor) -> Any:
    """The elements of each row of a tensor that a mask selects, as a jagged tensor.

    Args:
        tensor: (batch, n). mask: bool, broadcast to `tensor`.

    Raises:
        RuntimeError: not a strided tensor, or more than two dimensions.

    Example:
        >>> import pygrad as torch
        >>> x = torch.tensor([[1.0, 2.0], [3.0, 4.0]])
        >>> list(torch.nested.masked_select(x, x > 1.5))
        [tensor([2.]), tensor([3., 4.])]
    """
    if tensor.layout is not strided:
        raise RuntimeError(
            f"torch.nested.masked_select requires a strided tensor, given {tensor.layout}"
        )
    if mask.layout is not strided:
        raise RuntimeError(
            f"torch.nested.masked_select requires a strided mask, given: {mask.layout}"
        )
    values = tensor.masked_select(mask)
    whole = _F["broadcast_to"](mask, tensor.shape)
    lengths = whole.sum(tensor.dim() - 1)
    if lengths.dim() != 1:
        raise RuntimeError("masked_select only support 2-D selections currently")
    return nested_tensor_from_jagged(values, lengths=lengths)


# ------------------------------------------------------------------ PyTorch's functions within


def _nested_tensor_from_mask(t: Tensor, mask: Tensor, mask_check: bool = True) -> Any:
    """A strided nested tensor of the rows that a mask leaves of each entry.

    Args:
        t: (batch, n, features). mask: bool, (batch, n): true first, then false.
    """
    if mask.dtype is not bool_:
        raise RuntimeError(
            f"Expected mask to be of ScalarType Bool, but got {mask.dtype.name} instead."
        )
    if mask.dim() != 2:
        raise RuntimeError(f"Padding mask should be 2D but got {mask.dim()}")
    if t.dim() != 3:
        raise RuntimeError(f"Input should be a 3D tensor, N * L * D but got {t.dim()}D")
    if tuple(t.shape[:2]) != tuple(mask.shape):
        raise RuntimeError("Padding mask size should match the first two dimensions of the input")
    lengths = mask.sum(1).tolist()
    if mask_check and not _nested_tensor_from_mask_left_aligned(t, mask):
        raise RuntimeError("Mask must be left-aligned without gaps")
    return nested_of_entries([t[i, :n] for i, n in enumerate(lengths)], t.dim() - 1)


def _nested_tensor_from_mask_left_aligned(t: Tensor, mask: Tensor) -> bool:
    """Whether no row of a mask has a true behind a false."""
    steps = mask.to(int64).diff(dim=1)
    return not bool((steps > 0).any())


def _nested_from_padded(
    padded: Tensor, cpu_nested_shape_example: Tensor, fuse_transform_0213: bool = False
) -> Any:
    """A strided nested tensor of the leading parts of a padded tensor; a table gives the sizes.

    With `fuse_transform_0213`, heads (batch, heads, n, features) become rows of all their features
    first.
    """
    if fuse_transform_0213:
        padded = padded.permute(0, 2, 1, 3).flatten(2)
    rows = [tuple(row) for row in cpu_nested_shape_example.tolist()]
    entries = [padded[i][tuple(slice(n) for n in row)] for i, row in enumerate(rows)]
    return nested_of_entries(entries, padded.dim() - 1)


def _nested_from_padded_and_nested_example(padded: Tensor, nt_example: Any) -> Any:
    """Like `_nested_from_padded`, with the sizes of a nested tensor."""
    return _nested_from_padded(padded, nt_example._nested_tensor_size())


def _nested_view_from_buffer(
    self: Tensor, nested_size: Tensor, nested_strides: Tensor, offsets: Tensor
) -> Any:
    """A strided nested tensor over a buffer: a view of it."""
    return rebuild_strided(self, nested_size, nested_strides, offsets)


def _nested_compute_contiguous_strides_offsets(nested_size: Tensor) -> tuple[Tensor, Tensor]:
    """The strides and offsets of consecutive entries."""
    parts = Strided.in_order([tuple(row) for row in nested_size.tolist()])
    strides = tensor([list(each) for each in parts.strides], dtype=int64)
    return strides.reshape(nested_size.shape), tensor(list(parts.offsets), dtype=int64)


def _nested_get_values(self: Any) -> Tensor:
    """The values of a jagged tensor."""
    return self.values()  # type: ignore[no-any-return]


def _nested_get_offsets(self: Any) -> Tensor:
    """The offsets of a jagged tensor."""
    return self.offsets()  # type: ignore[no-any-return]


def _nested_get_lengths(self: Any) -> Tensor | None:
    """The lengths of a jagged tensor, or None."""
    return self.lengths()  # type: ignore[no-any-return]


def _nested_get_ragged_idx(self: Any) -> int:
    """The index of a jagged tensor's ragged dimension."""
    return int(self._ragged_idx)
