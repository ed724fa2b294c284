"""Sparse tensors of indices and values: `sparse_coo_tensor`, `sparse_csr_tensor` and their kin."""

from __future__ import annotations

from typing import Any

from .._boundary.overriding import overridable_factory
from .._ground.dtypes import (
    dtype,
    int32,
    int64,
    layout,
    sparse_bsc,
    sparse_bsr,
    sparse_csc,
    sparse_csr,
)
from .._table import functions
from .._table.builtins import builtin
from .._tensor.creation import data_as_tensor
from .._tensor.tensor import Tensor

_C = functions.C


def _values_of(data: Any, kind: dtype | None, device: Any) -> Tensor:
    """Given numbers as a tensor; a tensor keeps its history."""
    values = data if isinstance(data, Tensor) else data_as_tensor(data, kind)
    return values if device is None else values.to(device)


def _indices_of(data: Any) -> Tensor:
    if isinstance(data, Tensor):
        return data if data.dtype in (int32, int64) else data.to(int64)
    return data_as_tensor(data, int64)


def _is_size(value: Any) -> bool:
    return isinstance(value, (tuple, list)) and all(isinstance(n, int) for n in value)


@builtin
@overridable_factory
def sparse_coo_tensor(
    indices: Any = None,
    values: Any = None,
    size: Any = None,
    *,
    dtype: dtype | None = None,
    device: Any = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
    check_invariants: bool | None = None,
    is_coalesced: bool | None = None,
    layout: layout | None = None,
) -> Tensor:
    """A COO tensor with the given places and values of elements; missing elements are zero.

    Args:
        indices: a row for each sparse dimension, a column for each element.
        values: one value for each element, or with more dimensions one row.
        size: the sizes; the smallest that fit, if left out. Alone, it makes a tensor without
            elements.
        dtype, device, requires_grad: as for `tensor`.
        check_invariants: also check a claim of `is_coalesced`.
        is_coalesced: the columns are sorted and distinct.

    Raises:
        RuntimeError: the arguments do not fit each other.

    Example:
        >>> import pygrad
        >>> pygrad.sparse_coo_tensor([[0, 1, 1]], [1.0, 2.0, 3.0], (3,)).to_dense()
        tensor([1., 5., 0.])
    """
    if size is None and values is None and _is_size(indices):
        size, indices = indices, None
    if indices is None and values is None:
        made: Tensor = _C["_sparse_coo_empty"](tuple(size), dtype, requires_grad)
        return made
    filled: Tensor = _C["_sparse_coo_tensor"](
        _indices_of(indices),
        _values_of(values, dtype, device),
        None if size is None else tuple(size),
        dtype,
        requires_grad,
        check_invariants,
        bool(is_coalesced),
    )
    return filled


@builtin
@overridable_factory
def sparse_compressed_tensor(
    compressed_indices: Any,
    plain_indices: Any,
    values: Any,
    size: Any = None,
    *,
    dtype: dtype | None = None,
    layout: layout | None = None,
    device: Any = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
    check_invariants: bool | None = None,
) -> Tensor:
    """A tensor of compressed rows (CSR, BSR) or columns (CSC, BSC).

    Args:
        compressed_indices: the begin of each row, or column, and the end of the last.
        plain_indices: the column, or row, of each element.
        values: an element each; of BSR and BSC a block each.
        size: the sizes; the smallest that fit, if left out.
        layout: which of the four.

    Raises:
        RuntimeError: the arguments do not fit each other.

    Example:
        >>> import pygrad
        >>> x = pygrad.sparse_compressed_tensor(
        ...     [0, 1, 2], [1, 0], [5.0, 6.0], layout=pygrad.sparse_csr)
        >>> x.to_dense()
        tensor([[0., 5.],
                [6., 0.]])
    """
    if layout is None:
        raise RuntimeError(
            "expected sparse compressed tensor layout but got Strided: give a layout"
        )
    made: Tensor = _C["_sparse_compressed_tensor"](
        _indices_of(compressed_indices),
        _indices_of(plain_indices),
        _values_of(values, dtype, device),
        None if size is None else tuple(size),
        layout,
        dtype,
        requires_grad,
    )
    return made


def _constructor_of_layout(name: str, kind: layout, first: str, second: str) -> Any:
    def make(*args: Any, **options: Any) -> Tensor:
        given = options.pop("layout", None)
        if given is not None and given is not kind:
            raise RuntimeError(f"{name}: expected layout {kind} but got layout {given}")
        places = ((first, "compressed_indices"), (second, "plain_indices"))
        for theirs, ours in places[len(args) :] if len(args) < len(places) else ():
            if theirs in options:
                options[ours] = options.pop(theirs)
        return sparse_compressed_tensor(*args, layout=kind, **options)

    make.__name__ = make.__qualname__ = name
    make.__doc__ = (
        f"A {kind} tensor of `{first}`, `{second}`, values and size: see "
        "`sparse_compressed_tensor`."
    )
    return builtin(overridable_factory(make))


sparse_csr_tensor = _constructor_of_layout(
    "sparse_csr_tensor", sparse_csr, "crow_indices", "col_indices"
)
sparse_csc_tensor = _constructor_of_layout(
    "sparse_csc_tensor", sparse_csc, "ccol_indices", "row_indices"
)
sparse_bsr_tensor = _constructor_of_layout(
    "sparse_bsr_tensor", sparse_bsr, "crow_indices", "col_indices"
)
sparse_bsc_tensor = _constructor_of_layout(
    "sparse_bsc_tensor", sparse_bsc, "ccol_indices", "row_indices"
)
