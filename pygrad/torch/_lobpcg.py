"""The largest or smallest eigenpairs of a symmetric matrix, under the name of PyTorch's iterative
method.

PyTorch iterates towards them; here they are selected from all eigenpairs, which is exact and
differentiable, also with a second matrix.
"""

from __future__ import annotations

from typing import Any

from .._table import functions
from .._tensor.tensor import Tensor

__all__ = ["lobpcg"]

_linalg = functions.SPACES["linalg"]


def _mean(A: Tensor) -> Tensor:
    """The symmetric part of A. The iteration depends on it alone, even if one element was changed;
    eigh would read only the lower triangle.
    """
    return (A + A.mT) / 2


def lobpcg(
    A: Tensor,
    k: int | None = None,
    B: Tensor | None = None,
    X: Tensor | None = None,
    n: int | None = None,
    iK: Tensor | None = None,
    niter: int | None = None,
    tol: float | None = None,
    largest: bool | None = None,
    method: str | None = None,
    tracker: Any = None,
    ortho_iparams: dict[str, int] | None = None,
    ortho_fparams: dict[str, float] | None = None,
    ortho_bparams: dict[str, bool] | None = None,
) -> tuple[Tensor, Tensor]:
    """The k largest or smallest e with A x = e B x, and the vectors x.

    Args:
        A: (*, m, m), symmetric.
        k: how many; by default as many as X has columns, or 1.
        B: (*, m, m), positive definite; none: the identity.
        X: (*, m, n): PyTorch's starting point; only its size matters here.
        n: its columns, if it is not given.
        largest: which end of the spectrum; the default is the largest.
        iK, niter, tol, method, tracker: of the iteration, so of no effect, like all `ortho_...`.

    Returns:
        (*, k) and (*, m, k), from that end on. The vectors are orthonormal, by B if it is given.

    Raises:
        AssertionError: A is not square, or B has another shape.
        ValueError: m is less than three times n.

    Example:
        >>> import pygrad
        >>> pygrad.lobpcg(pygrad.arange(1.0, 7.0).diag(), k=2)[0]
        tensor([6., 5.])
    """
    if A.shape[-2] != A.shape[-1]:
        raise AssertionError(f"A must be square, got shape {A.shape}")
    if B is not None and A.shape != B.shape:
        raise AssertionError(f"A and B must have same shape, got {A.shape} vs {B.shape}")
    rows = A.shape[-1]
    if k is None:
        k = 1 if X is None else X.shape[-1]
    wanted = X.shape[-1] if X is not None else k if n is None else n
    if rows < 3 * wanted:
        raise ValueError(
            f"LOBPCG algorithm is not applicable when the number of A rows (={rows}) is smaller "
            f"than 3 x the number of requested eigenpairs (={wanted})"
        )
    if B is None:
        values, vectors = _linalg["eigh"](_mean(A))
    else:
        lower = _linalg["cholesky"](B)
        solve = _linalg["solve_triangular"]
        halved = solve(lower, A, upper=False)
        values, vectors = _linalg["eigh"](_mean(solve(lower, halved.mT, upper=False)))
        vectors = solve(lower.mT, vectors, upper=True)
    if largest is None or largest:
        values, vectors = values.flip(-1), vectors.flip(-1)
    return values[..., :k], vectors[..., :k]
