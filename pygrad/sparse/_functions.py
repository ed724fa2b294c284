"""Functions of sparse tensors."""

from __future__ import annotations

from typing import Any

from .. import _ops
from .._dtypes import dtype
from .._tensor import Tensor

_C = _ops.C


def mm(mat1: Tensor, mat2: Tensor, reduce: str | None = None) -> Tensor:
    """The product of matrices of which one is sparse at least; the gradient of a sparse one is
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
    """The softmax over a dimension of what a COO tensor has there: what is left out is -inf."""
    made: Tensor = _C["_sparse_softmax"](input, dim, False, dtype)
    return made


def log_softmax(input: Tensor, dim: int, *, dtype: dtype | None = None) -> Tensor:
    """Its logarithm."""
    made: Tensor = _C["_sparse_softmax"](input, dim, True, dtype)
    return made
