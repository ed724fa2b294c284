"""Linear algebra composed of the engine's ops: what rests on its SVD, inverses and triangular
solves.
"""

from __future__ import annotations

import math
from typing import Any

from . import _ops
from ._dtypes import finfo
from ._tensor import Tensor

__all__ = [
    "cond",
    "eigh",
    "eigvalsh",
    "lstsq",
    "matrix_exp",
    "matrix_rank",
]

_L = _ops.SPACES["l"]
_F = _ops.SPACES["f"]
_Eigh = _ops.named_result("linalg_eigh", ("eigenvalues", "eigenvectors"))
_Lstsq = _ops.named_result("linalg_lstsq", ("solution", "residuals", "rank", "singular_values"))
_Svd = _ops.named_result("svd", ("U", "S", "V"))


def _check_square(name: str, A: Tensor) -> None:
    if A.dim() < 2:
        raise RuntimeError(f"{name}: The input tensor A must have at least 2 dimensions.")
    if A.size(-1) != A.size(-2):
        raise RuntimeError(
            f"{name}: A must be batches of square matrices, but they are {A.size(-2)} by "
            f"{A.size(-1)} matrices"
        )


def eigh(A: Tensor, UPLO: str = "L", *, out: Any = None) -> Any:
    """The eigenvalues of symmetric matrices, the least first, and their vectors.

    They are the singular values and vectors of the matrix moved up until it is positive definite.
    The sign of a vector is not determined: it may differ from PyTorch's.

    Args:
        A: (*, n, n), of which one triangle is read.
        UPLO: which one: "L" or "U".
        out: not supported.

    Raises:
        RuntimeError: matrices that are not square, another UPLO.
        NotImplementedError: `out` is given.

    Example:
        >>> import pygrad
        >>> values, vectors = pygrad.linalg.eigh(pygrad.tensor([[2.0, 1.0], [1.0, 2.0]]))
        >>> [round(value, 4) for value in values.tolist()]
        [1.0, 3.0]
    """
    if out is not None:
        raise NotImplementedError("linalg.eigh: out is not supported")
    _check_square("linalg.eigh", A)
    side = UPLO.upper()
    if side not in ("L", "U"):
        raise RuntimeError(f"Expected UPLO argument to be 'L' or 'U', but got {UPLO}")
    if not A.size(-1):
        return _Eigh((A.sum(-1), A.clone()))
    plain = A.detach()
    part = plain.tril() if side == "L" else plain.triu()
    read = part + part.mT - _F["diag_embed"](plain.diagonal(dim1=-2, dim2=-1))
    mean = (A + A.mT) / 2  # the gradient is symmetric, whichever triangle is read
    whole = mean + (read - mean.detach())
    shift = read.abs().sum(-1).amax(-1)
    identity = _F["eye"](A.size(-1), dtype=A.dtype)
    _, values, vectors = _L["svd"](whole + shift[..., None, None] * identity)
    return _Eigh(((values - shift[..., None]).flip(-1), vectors.mT.flip(-1)))


def eigvalsh(A: Tensor, UPLO: str = "L", *, out: Any = None) -> Tensor:
    """The eigenvalues of symmetric matrices; see :func:`eigh`.

    Example:
        >>> import pygrad
        >>> pygrad.linalg.eigvalsh(pygrad.eye(2))
        tensor([1., 1.])
    """
    values: Tensor = eigh(A, UPLO, out=out)[0]
    return values


def lstsq(A: Tensor, B: Tensor, rcond: float | None = None, *, driver: str | None = None) -> Any:
    """The least x for which A x is nearest to B, by the pseudoinverse.

    Args:
        A: (*, m, n).
        B: (*, m, k) or (*, m).
        rcond: singular values below this share of the largest count as zero; by default the
            dtype's eps times the larger of m and n.
        driver: "gelsy", "gels", "gelsd" or "gelss": what PyTorch also returns for it.

    Returns:
        solution, residuals (of another driver than "gelsy", where m > n and the rank is full),
        rank, singular values (of "gelsd" and "gelss").

    Raises:
        RuntimeError: shapes that do not fit, another driver.

    Example:
        >>> import pygrad
        >>> A = pygrad.tensor([[1.0, 0.0], [1.0, 1.0], [1.0, 2.0]])
        >>> found = pygrad.linalg.lstsq(A, pygrad.tensor([[1.0], [3.0], [5.0]])).solution
        >>> [round(x, 3) for x in found.flatten().tolist()]
        [1.0, 2.0]
    """
    driver = driver or "gelsy"
    if driver not in ("gelsy", "gels", "gelsd", "gelss"):
        raise RuntimeError(
            "torch.linalg.lstsq: parameter `driver` should be one of (gels, gelsy, gelsd, gelss)"
        )
    if A.dim() < 2:
        raise RuntimeError("torch.linalg.lstsq: input must have at least 2 dimensions.")
    vector = B.dim() == A.dim() - 1 and B.shape == A.shape[:-1]
    columns = B.unsqueeze(-1) if vector else B
    if columns.dim() < 2 or columns.size(-2) != A.size(-2):
        raise RuntimeError("torch.linalg.lstsq: input.size(-2) should match other.size(-2)")
    m, n = A.size(-2), A.size(-1)
    least = finfo(A.dtype).eps * max(m, n) if rcond is None else rcond
    solution = _L["pinv"](A, rtol=least) @ columns
    rank = matrix_rank(A.detach(), rtol=least)
    residuals = A.new_empty(0)
    if driver != "gelsy" and m > n and bool((rank == n).all()):
        residuals = (A @ solution - columns).square().sum(-2)
    none = A.new_empty(0)
    values = _L["svdvals"](A.detach()) if driver in ("gelsd", "gelss") else none
    if driver == "gels":
        rank = none.long()
    solution = solution.squeeze(-1) if vector else solution
    return _Lstsq((solution, residuals, rank, values))


def matrix_rank(
    A: Tensor,
    tol: Any = None,
    hermitian: bool = False,
    *,
    atol: Any = None,
    rtol: Any = None,
    out: Any = None,
) -> Tensor:
    """How many singular values are larger than max(atol, rtol * the largest one).

    Args:
        A: (*, m, n).
        tol: another name for `atol`, without `rtol`.
        hermitian: A is symmetric; of no effect.
        atol: 0 by default.
        rtol: the dtype's eps times the larger of m and n by default, or 0 if `atol` is given.
        out: not supported.

    Raises:
        NotImplementedError: `out` is given.

    Example:
        >>> import pygrad
        >>> pygrad.linalg.matrix_rank(pygrad.ones(3, 3))
        tensor(1)
    """
    if out is not None:
        raise NotImplementedError("linalg.matrix_rank: out is not supported")
    if tol is not None:
        atol, rtol = tol, 0.0
    values = _L["svdvals"](A.detach())
    if rtol is None:
        rtol = finfo(A.dtype).eps * max(A.shape[-2:]) if atol is None else 0.0
    if not values.size(-1):
        none: Tensor = values.new_zeros(values.shape[:-1]).long()
        return none
    bound = values.amax(-1, keepdim=True) * rtol
    if atol is not None:
        bound = (
            bound.clamp(min=float(atol))
            if not isinstance(atol, Tensor)
            else _F["maximum"](bound, atol.unsqueeze(-1))
        )
    found: Tensor = (values > bound).sum(-1)
    return found


def cond(A: Tensor, p: Any = None, *, out: Any = None) -> Tensor:
    """The condition number: the norm times that of the inverse.

    Args:
        A: (*, m, n); (*, n, n) for another p than None, 2 and -2.
        p: the norm, as of :func:`matrix_norm`; None: the largest by the least singular value.
        out: not supported.

    Raises:
        NotImplementedError: `out` is given.

    Example:
        >>> import pygrad
        >>> pygrad.linalg.cond(pygrad.tensor([[4.0, 0.0], [0.0, 2.0]]))
        tensor(2.)
    """
    if out is not None:
        raise NotImplementedError("linalg.cond: out is not supported")
    found: Tensor
    if p in (None, 2, -2):
        values = _L["svdvals"](A)
        found = values[..., 0] / values[..., -1]
        if p == -2:
            found = values[..., -1] / values[..., 0]
        return found
    _check_square("linalg.cond", A)
    norm = _L["matrix_norm"]
    found = norm(A, p) * norm(_L["inv"](A), p)
    return found


_TERMS = 18
"""Of the exponential's series at a norm of one half: enough for float64."""


def matrix_exp(A: Tensor) -> Tensor:
    """The exponential of square matrices, by its series for the matrix halved often enough.

    Raises:
        RuntimeError: matrices that are not square.

    Example:
        >>> import pygrad
        >>> pygrad.linalg.matrix_exp(pygrad.zeros(2, 2))
        tensor([[1., 0.],
                [0., 1.]])
    """
    _check_square("linalg.matrix_exp", A)
    if not A.numel():
        return A.clone()
    largest = A.detach().abs().sum(-2).amax().item()
    if not math.isfinite(largest):
        return A * math.nan
    halvings = max(0, math.ceil(math.log2(largest)) + 1) if largest > 0 else 0
    scaled = A / 2**halvings
    identity = _F["eye"](A.size(-1), dtype=A.dtype)
    found: Tensor = identity + scaled / _TERMS
    for k in range(_TERMS - 1, 0, -1):
        found = identity + (scaled @ found) / k
    for _ in range(halvings):
        found = found @ found
    return found


def svd(input: Tensor, some: bool = True, compute_uv: bool = True, *, out: Any = None) -> Any:
    """U, S and V with input = U diag(S) V.mT; `linalg.svd` by its older name.

    Args:
        input: (*, m, n).
        some: only as many columns as there are singular values.
        compute_uv: else U and V are zeros.
        out: not supported.

    Raises:
        NotImplementedError: `out` is given.

    Example:
        >>> import pygrad
        >>> pygrad.svd(pygrad.tensor([[3.0, 0.0], [0.0, 4.0]])).S
        tensor([4., 3.])
    """
    if out is not None:
        raise NotImplementedError("svd: out is not supported")
    if not compute_uv:
        batch, (m, n) = input.shape[:-2], input.shape[-2:]
        zeros = (input.new_zeros((*batch, k, k)) for k in (m, n))
        u, v = zeros
        return _Svd((u, _L["svdvals"](input), v))
    u, values, vh = _L["svd"](input, full_matrices=not some)
    return _Svd((u, values, vh.mT))
