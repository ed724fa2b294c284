"""Functions of the torch namespace about matrices, older than torch.linalg or beside it."""

from __future__ import annotations

import warnings
from typing import Any

from . import _linalg, _ops
from ._builtins import builtin
from ._linalg import lu_unpack, matrix_exp
from ._out import into, legacy_name
from ._tensor import Tensor
from ._warnings import once

__all__ = [
    "cholesky_inverse",
    "frobenius_norm",
    "lu",
    "lu_solve",
    "lu_unpack",
    "matrix_exp",
    "nuclear_norm",
    "orgqr",
    "pca_lowrank",
    "svd",
    "svd_lowrank",
    "triangular_solve",
]

_L = _ops.SPACES["linalg"]
_F = _ops.SPACES["torch"]
_LuWithInfo = _ops.named_result("_lu_with_info", ("LU", "pivots", "info"))
_Svd = _ops.named_result("svd", ("U", "S", "V"))
_TriangularSolve = _ops.named_result("triangular_solve", ("solution", "cloned_coefficient"))


def _warn_once(name: str, text: str) -> None:
    if once(f"torch.{name}"):
        warnings.warn(text, stacklevel=3)


@builtin
def svd(input: Tensor, some: bool = True, compute_uv: bool = True, *, out: Any = None) -> Any:
    """U, S and V with input = U diag(S) V.mT; `linalg.svd` by its older name.

    Args:
        input: (*, m, n).
        some: only as many columns as there are singular values.
        compute_uv: else U and V are zeros.
        out: where to put the three results.

    Example:
        >>> import pygrad
        >>> pygrad.svd(pygrad.tensor([[3.0, 0.0], [0.0, 4.0]])).S
        tensor([4., 3.])
    """
    if not compute_uv:
        batch, (m, n) = input.shape[:-2], input.shape[-2:]
        zeros = (input.new_zeros((*batch, k, k)) for k in (m, n))
        u, v = zeros
        return into("svd", _Svd((u, _L["svdvals"](input), v)), out)
    u, values, vh = _L["svd"](input, full_matrices=not some)
    return into("svd", _Svd((u, values, vh.mT)), out)


@builtin
def cholesky_inverse(L: Tensor, upper: bool = False, *, out: Any = None) -> Tensor:
    """The inverse of A, given its Cholesky factor.

    Args:
        L: (*, n, n), the lower factor; the upper one if `upper`.
        upper: A is L.mT @ L.
        out: where to put the result.

    Raises:
        RuntimeError: matrices that are not square.
        NotImplementedError: integers.

    Example:
        >>> import pygrad
        >>> pygrad.cholesky_inverse(pygrad.tensor([[2.0]]))
        tensor([[0.2500]])
    """
    _linalg._check_square("cholesky_inverse", L)
    if not L.is_floating_point():
        raise NotImplementedError(
            f"\"cholesky_inverse_out_cpu\" not implemented for '{legacy_name(L)}'"
        )
    identity = _F["eye"](L.size(-1), dtype=L.dtype)
    inverse: Tensor = into("cholesky_inverse", _F["cholesky_solve"](identity, L, upper), out)
    return inverse


def lu(A: Tensor, pivot: bool = True, get_infos: bool = False, out: Any = None) -> Any:
    """`linalg.lu_factor`, or `linalg.lu_factor_ex` if `get_infos`, by its older name.

    Example:
        >>> import pygrad, warnings
        >>> with warnings.catch_warnings(action="ignore"):
        ...     pygrad.lu(pygrad.tensor([[4.0]]))
        (tensor([[4.]]), tensor([1], dtype=torch.int32))
    """
    _warn_once(
        "lu",
        "torch.lu is deprecated in favor of torch.linalg.lu_factor / torch.linalg.lu_factor_ex and "
        "will be removed in a future PyTorch release.\nLU, pivots = torch.lu(A, compute_pivots)\n"
        "should be replaced with\nLU, pivots = torch.linalg.lu_factor(A, compute_pivots)\nand\n"
        "LU, pivots, info = torch.lu(A, compute_pivots, get_infos=True)\nshould be replaced with\n"
        "LU, pivots, info = torch.linalg.lu_factor_ex(A, compute_pivots)",
    )
    found = _LuWithInfo(_linalg.lu_factor_ex(A, pivot=pivot))
    return into("lu", found if get_infos else tuple(found[:2]), out)


@builtin
def lu_solve(input: Tensor, LU_data: Tensor, LU_pivots: Tensor, *, out: Any = None) -> Tensor:
    """`linalg.lu_solve` by its older name, with the right side first.

    Example:
        >>> import pygrad, warnings
        >>> factors = pygrad.linalg.lu_factor(pygrad.tensor([[4.0]]))
        >>> with warnings.catch_warnings(action="ignore"):
        ...     pygrad.lu_solve(pygrad.tensor([[8.0]]), *factors)
        tensor([[2.]])
    """
    _warn_once(
        "lu_solve",
        "torch.lu_solve is deprecated in favor of torch.linalg.lu_solveand will be removed in a "
        "future PyTorch release.\nNote that torch.linalg.lu_solve has its arguments reversed.\n"
        "X = torch.lu_solve(B, LU, pivots)\nshould be replaced with\n"
        "X = torch.linalg.lu_solve(LU, pivots, B)",
    )
    return _linalg.lu_solve(LU_data, LU_pivots, input, out=out)


@builtin
def nuclear_norm(
    input: Tensor, dim: Any = None, keepdim: bool = False, *, out: Any = None
) -> Tensor:
    """The sum of a matrix's singular values; `linalg.matrix_norm` with "nuc" by its older name.

    Args:
        input: (*, m, n).
        dim: the two dimensions of the matrix, the last two by default; or, alone, `keepdim`.
        keepdim: these stay, with size 1.
        out: where to put the result.

    Example:
        >>> import pygrad, warnings
        >>> with warnings.catch_warnings(action="ignore"):
        ...     pygrad.nuclear_norm(pygrad.eye(3))
        tensor(3.)
    """
    _warn_once(
        "nuclear_norm",
        "at::nuclear_norm is deprecated and it is just left for JIT compatibility. It will be "
        "removed in a future PyTorch release. Please use `linalg.matrix_norm(A, 'nuc', dim, "
        "keepdim)` instead",
    )
    if dim is None or isinstance(dim, bool):
        dim, keepdim = (-2, -1), bool(dim) or keepdim
    norm: Tensor = into("nuclear_norm", _L["matrix_norm"](input, "nuc", dim, keepdim), out)
    return norm


@builtin
def frobenius_norm(input: Tensor, dim: Any, keepdim: bool = False, *, out: Any = None) -> Tensor:
    """The root of the sum of squares; `linalg.vector_norm` by its older name.

    Example:
        >>> import pygrad, warnings
        >>> with warnings.catch_warnings(action="ignore"):
        ...     pygrad.frobenius_norm(pygrad.tensor([[3.0, 4.0]]), (0, 1))
        tensor(5.)
    """
    _warn_once(
        "frobenius_norm",
        "at::frobenius_norm is deprecated and it is just left for JIT compatibility. It will be "
        "removed in a future PyTorch release. Please use `linalg.vector_norm(A, 2., dim, keepdim)` "
        "instead",
    )
    norm: Tensor = into("frobenius_norm", _L["vector_norm"](input, 2, dim, keepdim), out)
    return norm


@builtin
def orgqr(input: Tensor, input2: Tensor, *, out: Any = None) -> Tensor:
    """`linalg.householder_product` by its older name.

    Example:
        >>> import pygrad
        >>> pygrad.orgqr(pygrad.zeros(2, 1), pygrad.tensor([2.0]))
        tensor([[-1.],
                [ 0.]])
    """
    return _linalg.householder_product(input, input2, out=out)


@builtin
def triangular_solve(
    b: Tensor,
    A: Tensor,
    upper: bool = True,
    transpose: bool = False,
    unitriangular: bool = False,
    *,
    out: Any = None,
) -> Any:
    """`linalg.solve_triangular` by its older name, with the right side first.

    Args:
        b: (*, n, k).
        A: (*, n, n), of which one triangle is read.
        upper: the upper one.
        transpose: solve A.mT X = b.
        unitriangular: A's diagonal counts as 1.
        out: where to put the two results.

    Returns:
        solution and cloned_coefficient, a copy of A.

    Raises:
        RuntimeError: shapes or dtypes that do not fit.

    Example:
        >>> import pygrad, warnings
        >>> with warnings.catch_warnings(action="ignore"):
        ...     pygrad.triangular_solve(pygrad.tensor([[8.0]]), pygrad.tensor([[4.0]])).solution
        tensor([[2.]])
    """
    _warn_once(
        "triangular_solve",
        "torch.triangular_solve is deprecated in favor of torch.linalg.solve_triangularand will be "
        "removed in a future PyTorch release.\ntorch.linalg.solve_triangular has its arguments "
        "reversed and does not return a copy of one of the inputs.\n"
        "X = torch.triangular_solve(B, A).solution\nshould be replaced with\n"
        "X = torch.linalg.solve_triangular(A, B).",
    )
    for name, each in (("b", b), ("A", A)):
        if each.dim() < 2:
            raise RuntimeError(
                f"torch.triangular_solve: Expected {name} to have at least 2 dimensions, but it "
                f"has {each.dim()} dimensions instead"
            )
    if b.dtype is not A.dtype:
        raise RuntimeError(
            "Expected b and A to have the same dtype, but found b of type "
            f"{legacy_name(b)} and A of type {legacy_name(A)} instead."
        )
    rows, columns = A.shape[-2:]
    if rows != columns:
        raise RuntimeError(
            f"A must be batches of square matrices, but they are {rows} by {columns} matrices"
        )
    if b.size(-2) != rows:
        raise RuntimeError(
            f"Incompatible matrix sizes for triangular_solve: each A matrix is {rows} by {rows} "
            f"but each b matrix is {b.size(-2)} by {b.size(-1)}"
        )
    solution = _L["solve_triangular"](
        A.mT if transpose else A, b, upper=upper is not transpose, unitriangular=unitriangular
    )
    copy = A.expand(*solution.shape[:-2], *A.shape[-2:]).clone()
    return into("triangular_solve", _TriangularSolve((solution, copy)), out)


# ---------------------------------------------------------------- of low rank


def svd_lowrank(
    A: Tensor, q: int | None = 6, niter: int | None = 2, M: Tensor | None = None
) -> tuple[Tensor, Tensor, Tensor]:
    """U, S and V of an approximation of rank q, by random projections (Halko and others, 2009).

    Args:
        A: (*, m, n).
        q: somewhat more than the rank; 6 if None.
        niter: how often the basis is improved; 2 if None.
        M: (*, m or 1, n), subtracted from A first.

    Example:
        >>> import pygrad
        >>> U, S, V = pygrad.svd_lowrank(pygrad.ones(4, 3), q=1)
        >>> ((U * S) @ V.mT).round(decimals=4)
        tensor([[1., 1., 1.],
                [1., 1., 1.],
                [1., 1., 1.],
                [1., 1., 1.]])
    """
    if M is not None:
        A = A - M
    wide = A.size(-2) < A.size(-1)
    if wide:
        A = A.mT
    basis = A @ _F["randn"](A.size(-1), 6 if q is None else q, dtype=A.dtype)
    basis = _L["qr"](basis).Q
    for _ in range(2 if niter is None else niter):
        basis = _L["qr"](A.mT @ basis).Q
        basis = _L["qr"](A @ basis).Q
    U, S, Vh = _L["svd"](basis.mT @ A, full_matrices=False)
    U, V = basis @ U, Vh.mT
    return (V, S, U) if wide else (U, S, V)


def pca_lowrank(
    A: Tensor, q: int | None = None, center: bool = True, niter: int = 2
) -> tuple[Tensor, Tensor, Tensor]:
    """The first q principal components: U, S and V by :func:`svd_lowrank` of the centred rows.

    Args:
        A: (*, m, n), an observation a row.
        q: how many; min(6, m, n) by default.
        center: subtract the mean of the rows.
        niter: as of :func:`svd_lowrank`.

    Raises:
        ValueError: a `q` that is larger than m or n, or a negative `niter`.

    Example:
        >>> import pygrad
        >>> _, S, _ = pygrad.pca_lowrank(pygrad.tensor([[1.0, 0.0], [3.0, 0.0]]), q=1)
        >>> S
        tensor([1.4142])
    """
    most = min(A.shape[-2:])
    if q is None:
        q = min(6, most)
    elif not 0 <= q <= most:
        raise ValueError(
            f"q(={q}) must be non-negative integer and not greater than min(m, n)={most}"
        )
    if niter < 0:
        raise ValueError(f"niter(={niter}) must be non-negative integer")
    return svd_lowrank(A - A.mean(-2, keepdim=True) if center else A, q, niter)
