"""Factors of matrices of low rank, by the module in which PyTorch has them."""

from __future__ import annotations

from typing import Any

from .._table import functions
from .._tensor.tensor import Tensor

__all__ = ["pca_lowrank", "svd_lowrank"]

_f = functions.SPACES["torch"]
pca_lowrank, svd_lowrank = _f["pca_lowrank"], _f["svd_lowrank"]


def get_approximate_basis(A: Any, q: int, niter: int | None = 2, M: Tensor | None = None) -> Tensor:
    """Orthonormal columns that nearly span a matrix's columns.

    Args:
        A: (*, m, n).
        q: how many columns.
        niter: how many times the matrix and its adjoint are applied to sharpen them.
        M: subtracted from A before, (*, m, n).

    Returns:
        (*, m, q).

    Example:
        >>> import pygrad
        >>> a = pygrad.ones(3, 1) @ pygrad.ones(1, 2)
        >>> pygrad._lowrank.get_approximate_basis(a, 1).abs()
        tensor([[0.5774],
                [0.5774],
                [0.5774]])
    """
    matrix = A if M is None else A - M
    qr = functions.SPACES["linalg"]["qr"]
    start = _f["randn"](matrix.shape[-1], q, dtype=matrix.dtype)
    basis: Tensor = qr(matrix @ start)[0]
    for _ in range(2 if niter is None else niter):
        basis = qr(matrix @ qr(matrix.mH @ basis)[0])[0]
    return basis
