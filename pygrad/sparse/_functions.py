"""Functions of sparse tensors."""

from __future__ import annotations

from typing import Any

from .._ground.dtypes import dtype, int64, layout, sparse_coo, sparse_csc, sparse_csr, strided
from .._table import functions
from .._tensor.tensor import Tensor
from ._make import sparse_coo_tensor

_C = functions.C
_f = functions.SPACES["torch"]


def mm(mat1: Tensor, mat2: Tensor, reduce: str | None = None) -> Tensor:
    """The product of matrices, at least one of them sparse; the gradient of a sparse factor is
    sparse, at its places.

    Example:
        >>> import pygrad
        >>> x = pygrad.eye(2).to_sparse().requires_grad_()
        >>> pygrad.sparse.mm(x, pygrad.ones(2, 2)).sum().backward()
        >>> x.grad.to_dense()
        tensor([[2., 0.],
                [0., 2.]])
    """
    made: Tensor = _C["_sparse_mm"](mat1, mat2, reduce)
    return made


def addmm(
    mat: Tensor, mat1: Tensor, mat2: Tensor, *, beta: complex = 1, alpha: complex = 1
) -> Tensor:
    """beta * mat + alpha * mat1 @ mat2, with the gradient of a sparse factor sparse."""
    made: Tensor = _C["_sparse_addmm"](mat, mat1, mat2, beta=beta, alpha=alpha)
    return made


def sampled_addmm(
    input: Tensor,
    mat1: Tensor,
    mat2: Tensor,
    *,
    beta: complex = 1,
    alpha: complex = 1,
    out: Tensor | None = None,
) -> Tensor:
    """beta * input + alpha * mat1 @ mat2 at the places of a CSR tensor alone.

    Raises:
        RuntimeError: the sizes, dtypes or layouts do not fit each other.

    Example:
        >>> import pygrad
        >>> x = pygrad.eye(2).to_sparse_csr()
        >>> pygrad.sparse.sampled_addmm(x, pygrad.ones(2, 3), pygrad.ones(3, 2)).to_dense()
        tensor([[4., 0.],
                [0., 4.]])
    """
    made: Tensor = _C["_sparse_sampled_addmm"](input, mat1, mat2, beta=beta, alpha=alpha)
    return made if out is None else out.copy_(made)


def spdiags(diagonals: Tensor, offsets: Tensor, shape: Any, layout: layout | None = None) -> Tensor:
    """A sparse matrix of diagonals: row k of `diagonals`, shape (n, m), lies along the diagonal
    `offsets[k]`, its element j in column j.

    Args:
        diagonals: a matrix, or a vector for a single diagonal.
        offsets: int64, of 0 or 1 dimensions: above the main diagonal where positive.
        shape: the two sizes.
        layout: COO if left out; or CSR, CSC.

    Raises:
        RuntimeError: the arguments do not fit each other.

    Example:
        >>> import pygrad
        >>> rows = pygrad.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
        >>> pygrad.sparse.spdiags(rows, pygrad.tensor([0, 1]), (3, 3)).to_dense()
        tensor([[1., 5., 0.],
                [0., 2., 6.],
                [0., 0., 3.]])
    """
    if diagonals.ndim not in (1, 2):
        raise RuntimeError("Diagonals must be vector or matrix")
    if len(shape) != 2:
        raise RuntimeError("Output shape must be 2d")
    if offsets.ndim > 1:
        raise RuntimeError("Offsets must be scalar or vector")
    rows = diagonals if diagonals.ndim == 2 else diagonals.unsqueeze(0)
    if rows.shape[0] != offsets.numel():
        raise RuntimeError(
            f"Number of diagonals ({rows.shape[0]}) does not match the number of offsets "
            f"({offsets.numel()})"
        )
    if layout not in (None, sparse_coo, sparse_csr, sparse_csc):
        shown = "Strided" if layout is strided else str(layout).removeprefix("torch.").title()
        raise RuntimeError(
            "Only output layouts (Sparse, SparseCsc, SparseCsr) are supported, got "
            + shown.replace("_", "")
        )
    if offsets.dtype is not int64:
        raise RuntimeError(f"Offset Tensor must have dtype Long but got {offsets.dtype.legacy}")
    at = offsets.reshape(-1).tolist()
    if len(set(at)) != len(at):
        raise RuntimeError("Offset tensor contains duplicate values")
    height, width = shape
    columns = [
        _f["arange"](max(0, k), max(0, k, min(width, rows.shape[1], height + k)), dtype=int64)
        for k in at
    ]
    values = [row[c] for row, c in zip(rows.unbind(), columns, strict=True)]
    places = [_f["stack"]([c - k, c]) for k, c in zip(at, columns, strict=True)]
    made = sparse_coo_tensor(
        _f["cat"](places, 1) if places else _f["empty"]((2, 0), dtype=int64),
        _f["cat"](values) if values else rows.reshape(-1),
        (height, width),
    )
    return made if layout in (None, sparse_coo) else made.to_sparse(layout=layout)


def sum(input: Tensor, dim: Any = None, dtype: dtype | None = None) -> Tensor:
    """The sum over some dimensions, sparse as long as a sparse dimension is left; or of all
    elements.

    Example:
        >>> import pygrad
        >>> x = pygrad.tensor([[1.0, 0.0], [2.0, 3.0]]).to_sparse()
        >>> pygrad.sparse.sum(x, 0).to_dense()
        tensor([3., 3.])
        >>> pygrad.sparse.sum(x)
        tensor(6.)
    """
    made: Tensor = _C["_sparse_sum"](input, () if dim is None else dim, dtype=dtype)
    return made


def softmax(input: Tensor, dim: int, *, dtype: dtype | None = None) -> Tensor:
    """The softmax over a dimension of a COO tensor's elements; missing elements count as -inf."""
    made: Tensor = _C["_sparse_softmax"](input, dim, False, dtype)
    return made


def log_softmax(input: Tensor, dim: int, *, dtype: dtype | None = None) -> Tensor:
    """The logarithm of `softmax`."""
    made: Tensor = _C["_sparse_softmax"](input, dim, True, dtype)
    return made
