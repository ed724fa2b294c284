"""gradcheck for functions that take and return sparse tensors, by way of their values."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from .._ground.dtypes import bool_, sparse_bsc, sparse_bsr, sparse_coo, sparse_csc, strided
from .._table import functions
from .._tensor.tensor import Tensor
from ._make import sparse_compressed_tensor, sparse_coo_tensor


def as_sparse_gradcheck(gradcheck: Callable[..., Any]) -> Callable[..., Any]:
    """A gradcheck or gradgradcheck that also takes functions of sparse tensors: it checks the
    function of their values, with dense results.

    Example:
        >>> import pygrad
        >>> check = pygrad.sparse.as_sparse_gradcheck(pygrad.autograd.gradcheck)
        >>> x = pygrad.eye(2, dtype=pygrad.float64).to_sparse().requires_grad_()
        >>> check(lambda x: x.to_sparse_csr(), x)
        True
    """

    @functools.wraps(gradcheck)
    def check(func: Callable[..., Any], inputs: Any, **options: Any) -> Any:
        masked = options.pop("masked", False)
        given = list(inputs) if isinstance(inputs, (list, tuple)) else [inputs]
        makers = [_maker(x, masked) for x in given]
        parts = [make(None) if make else x for make, x in zip(makers, given, strict=True)]

        def apply_to_parts(*values: Any) -> Any:
            found = func(*(m(v) if m else v for m, v in zip(makers, values, strict=True)))
            several = isinstance(found, (list, tuple))
            dense = tuple(_dense(y, masked) for y in (found if several else (found,)))
            return dense if several else dense[0]

        return gradcheck(apply_to_parts, tuple(parts), **options)

    return check


def _dense(value: Any, masked: bool) -> Any:
    sparse = isinstance(value, Tensor) and value.requires_grad and value.layout is not strided
    return value.to_dense(masked_grad=masked) if sparse else value


def _maker(x: Any, masked: bool) -> Callable[[Any], Tensor] | None:
    """A function that makes a tensor like x from values; for None it returns x's values."""
    if not isinstance(x, Tensor) or not x.requires_grad or x.layout is strided:
        return None
    if not masked:
        x = _fill_missing(x)
    if x.layout is sparse_coo:
        indices, values, whole = x._indices(), x._values(), x.is_coalesced()

        def make(v: Any) -> Tensor:
            return sparse_coo_tensor(indices, v, x.shape, is_coalesced=whole)

    else:
        columns = x.layout in (sparse_csc, sparse_bsc)
        places = (
            (x.ccol_indices(), x.row_indices()) if columns else (x.crow_indices(), x.col_indices())
        )
        values = x._values()

        def make(v: Any) -> Tensor:
            return sparse_compressed_tensor(*places, v, x.shape, layout=x.layout)

    leaf = values.clone().requires_grad_()
    return lambda v: leaf if v is None else make(v)


def _fill_missing(x: Tensor) -> Tensor:
    """The tensor with all elements, and zeros for missing ones."""
    x = x.detach()
    block = None
    if x.layout in (sparse_bsr, sparse_bsc):
        at = x.ndim - x.sparse_dim() - x.dense_dim() + 1
        block = tuple(x._values().shape[at : at + 2])
    mask = functions.SPACES["torch"]["ones"](x.shape, dtype=bool_).to_sparse(
        layout=x.layout, blocksize=block, dense_dim=x.dense_dim()
    )
    return x.to_dense().sparse_mask(mask)
