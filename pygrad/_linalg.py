"""torch.linalg beside the op table: what rests on the engine's SVD, LU, inverses and triangular
solves.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from . import _ops
from ._builtins import builtin
from ._dtypes import finfo, int32
from ._out import into, legacy_name
from ._tensor import Tensor

__all__ = [
    "cond",
    "diagonal",
    "householder_product",
    "lstsq",
    "lu",
    "lu_factor",
    "lu_factor_ex",
    "lu_solve",
    "matrix_exp",
    "matrix_rank",
    "tensorinv",
    "tensorsolve",
    "vander",
]

_L = _ops.SPACES["linalg"]
_F = _ops.SPACES["torch"]
_Lstsq = _ops.named_result("linalg_lstsq", ("solution", "residuals", "rank", "singular_values"))
_Lu = _ops.named_result("linalg_lu", ("P", "L", "U"))
_LuFactor = _ops.named_result("linalg_lu_factor", ("LU", "pivots"))
_LuFactorEx = _ops.named_result("linalg_lu_factor_ex", ("LU", "pivots", "info"))
_LuUnpack = _ops.named_result("lu_unpack", ("P", "L", "U"))


def _check_square(name: str, A: Tensor) -> None:
    if A.dim() < 2:
        raise RuntimeError(f"{name}: The input tensor A must have at least 2 dimensions.")
    if A.size(-1) != A.size(-2):
        raise RuntimeError(
            f"{name}: A must be batches of square matrices, but they are {A.size(-2)} by "
            f"{A.size(-1)} matrices"
        )


def _check_least_squares(A: Tensor, B: Tensor, vector: bool) -> None:
    name = "torch.linalg.lstsq"
    if not B.dim():
        raise RuntimeError(f"{name}: other must have at least 1 dimension.")
    if A.dtype is not B.dtype:
        raise RuntimeError(
            f"{name}: Expected input and other to have the same dtype, but got input's dtype "
            f"{legacy_name(A)} and other's dtype {legacy_name(B)}"
        )
    if not 0 <= A.dim() - B.dim() <= 1:
        raise RuntimeError(
            f"{name}: input.dim() must be greater or equal to other.dim() and "
            "(input.dim() - other.dim()) <= 1"
        )
    last = -1 if vector else -2
    if B.size(last) != A.size(-2):
        raise RuntimeError(f"{name}: input.size(-2) should match other.size({last})")
    if not A.is_floating_point():
        raise RuntimeError("This function doesn't handle types other than float and double")


@builtin
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
    vector = B.dim() == 1 or (B.dim() == A.dim() - 1 and B.shape == A.shape[:-1])
    _check_least_squares(A, B, vector)
    columns = B.unsqueeze(-1) if vector else B
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


@builtin
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
        out: where to put the result.

    Example:
        >>> import pygrad
        >>> pygrad.linalg.matrix_rank(pygrad.ones(3, 3))
        tensor(1)
    """
    if A.dim() < 2:
        raise RuntimeError(
            "torch.linalg.matrix_rank: The input tensor input must have at least 2 dimensions."
        )
    if tol is not None:
        atol, rtol = tol, 0.0
    values = _L["svdvals"](A.detach())
    if rtol is None:
        rtol = finfo(A.dtype).eps * max(A.shape[-2:]) if atol is None else 0.0
    if not values.size(-1):
        none: Tensor = into("linalg_matrix_rank", values.new_zeros(values.shape[:-1]).long(), out)
        return none
    bound = values.amax(-1) * rtol
    if isinstance(atol, Tensor):
        bound = _F["maximum"](bound, atol)
    elif atol is not None:
        bound = bound.clamp(min=float(atol))
    found: Tensor = into("linalg_matrix_rank", (values > bound.unsqueeze(-1)).sum(-1), out)
    return found


@builtin
def cond(A: Tensor, p: Any = None, *, out: Any = None) -> Tensor:
    """The condition number: the norm times that of the inverse.

    Args:
        A: (*, m, n); (*, n, n) for another p than None, 2 and -2.
        p: the norm, as of :func:`matrix_norm`; None: the largest by the least singular value.
        out: where to put the result.

    Example:
        >>> import pygrad
        >>> pygrad.linalg.cond(pygrad.tensor([[4.0, 0.0], [0.0, 2.0]]))
        tensor(2.)
    """
    found: Tensor
    if p in (None, 2, -2):
        values = _L["svdvals"](A)
        if not values.size(-1):
            found = values.sum(-1)
        else:
            largest, least = values[..., 0], values[..., -1]
            found = least / largest if p == -2 else largest / least
    else:
        found = _norm_by_norm_of_inverse(A, p)
    found = into("linalg_cond", found, out)
    return found


def _norm_by_norm_of_inverse(A: Tensor, p: Any) -> Tensor:
    """Infinite where there is no inverse."""
    if p not in ("fro", "nuc", 1, -1, math.inf, -math.inf):
        raise RuntimeError(f"linalg.cond got an invalid norm type: {_number(p)}")
    _check_square(f"linalg.cond(ord={_number(p)})", A)
    found: Tensor
    if p == "nuc":  # the norm itself refuses matrices that are not finite
        values = _L["svdvals"](A)
        found = values.sum(-1) * values.reciprocal().sum(-1)
        return found
    inverse, info = _L["inv_ex"](A)
    inverse = inverse.masked_fill((info > 0)[..., None, None], math.inf)
    norm = _L["matrix_norm"]
    found = (norm(A, p) * norm(inverse, p)).nan_to_num(math.inf, math.inf, -math.inf)
    return found


def _number(p: Any) -> str:
    return p if isinstance(p, str) else f"{p:g}"


_TERMS = 18
"""Of the exponential's series at a norm of one half: enough for float64."""


@builtin
def matrix_exp(A: Tensor) -> Tensor:
    """The exponential of square matrices, by its series for the matrix halved often enough.

    Raises:
        RuntimeError: matrices that are not square, integers.

    Example:
        >>> import pygrad
        >>> pygrad.linalg.matrix_exp(pygrad.zeros(2, 2))
        tensor([[1., 0.],
                [0., 1.]])
    """
    _check_square("linalg.matrix_exp", A)
    if not A.is_floating_point():
        raise RuntimeError(
            "linalg.matrix_exp: Expected a floating point or complex tensor as input. Got "
            f"{legacy_name(A)}"
        )
    if not A.numel():
        return A.clone()
    if A.size(-1) == 1:
        return _F["exp"](A)  # type: ignore[no-any-return]
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


# ---------------------------------------------------------------- LU


def _factored(A: Tensor, pivot: bool, name: str) -> tuple[Tensor, Tensor, Tensor]:
    """LU, pivots and info."""
    if A.dim() < 2:
        raise RuntimeError(
            f"{name}: Expected tensor with 2 or more dimensions. Got size: {list(A.shape)} instead"
        )
    if not pivot:
        raise RuntimeError("linalg.lu_factor: LU without pivoting is not implemented on the CPU")
    LU, pivots, info = _ops.C["_lu_factor"](A)
    return LU, pivots, info


def _check_info(info: Tensor, name: str) -> None:
    bad = info.flatten().tolist()
    for k, place in enumerate(bad):
        if place:
            where = f"(Batch element {k}): " if info.dim() else ""
            raise RuntimeError(
                f"torch.linalg.{name}: {where}U[{place},{place}] is zero and using it on lu_solve "
                "would result in a division by zero. If you still want to perform the "
                "factorization, consider calling linalg.lu(A, pivot) or "
                "linalg.lu_factor_ex(A, pivot)"
            )


@builtin
def lu_factor_ex(
    A: Tensor, *, pivot: bool = True, check_errors: bool = False, out: Any = None
) -> Any:
    """:func:`lu_factor`, which also says where there is a zero on U's diagonal.

    Args:
        A: (*, m, n).
        pivot: only True, as in PyTorch on the CPU.
        check_errors: raise for a zero there.
        out: where to put the three results.

    Returns:
        LU, pivots, and info: 1 + the place of the first zero, or 0.

    Raises:
        RuntimeError: fewer dimensions; no pivots; a zero if `check_errors`.
        NotImplementedError: integers.

    Example:
        >>> import pygrad
        >>> pygrad.linalg.lu_factor_ex(pygrad.zeros(2, 2)).info
        tensor(1, dtype=torch.int32)
    """
    found = _factored(A, pivot, "torch.lu_factor")
    if check_errors:
        _check_info(found[2], "lu_factor_ex")
    return into("linalg_lu_factor_ex", _LuFactorEx(found), out)


@builtin
def lu_factor(A: Tensor, *, pivot: bool = True, out: Any = None) -> Any:
    """The factors L and U of matrices in one, and which rows were exchanged for them.

    Args:
        A: (*, m, n).
        pivot: only True, as in PyTorch on the CPU.
        out: where to put the two results.

    Returns:
        LU, of A's shape: U, and below its diagonal L without its own, which is 1; and pivots
        (*, min(m, n)), int32: row k was exchanged with row pivots[k] - 1.

    Raises:
        RuntimeError: fewer dimensions; no pivots; a zero on U's diagonal.
        NotImplementedError: integers.

    Example:
        >>> import pygrad
        >>> pygrad.linalg.lu_factor(pygrad.tensor([[1.0, 2.0], [2.0, 6.0]])).LU
        tensor([[ 2.0000,  6.0000],
                [ 0.5000, -1.0000]])
    """
    LU, pivots, info = _factored(A, pivot, "torch.lu_factor")
    _check_info(info, "lu_factor")
    return into("linalg_lu_factor", _LuFactor((LU, pivots)), out)


@builtin
def lu_unpack(
    LU_data: Tensor,
    LU_pivots: Tensor,
    unpack_data: bool = True,
    unpack_pivots: bool = True,
    *,
    out: Any = None,
) -> Any:
    """P, L and U of what :func:`lu_factor` gives.

    Args:
        LU_data: (*, m, n).
        LU_pivots: (*, min(m, n)), int32.
        unpack_data: else L and U are empty.
        unpack_pivots: else P is empty.
        out: where to put the three results.

    Raises:
        RuntimeError: fewer dimensions; pivots that are none.

    Example:
        >>> import pygrad
        >>> A = pygrad.tensor([[1.0, 2.0], [2.0, 6.0]])
        >>> P, L, U = pygrad.lu_unpack(*pygrad.linalg.lu_factor(A))
        >>> P @ L @ U
        tensor([[1., 2.],
                [2., 6.]])
    """
    if LU_data.dim() < 2:
        raise RuntimeError(
            "torch.lu_unpack: Expected tensor with 2 or more dimensions. Got size: "
            f"{list(LU_data.shape)} instead"
        )
    if unpack_pivots and LU_pivots.dtype is not int32:
        raise RuntimeError(
            "torch.lu_unpack: LU_pivots is expected to be a contiguous tensor of torch.int32 "
            "dtype.\nNote: this function is intended to be used with the output produced by "
            "torch.linalg.lu_factor"
        )
    least = min(LU_data.shape[-2:])
    P = L = U = LU_data.new_empty(0)
    if unpack_pivots:
        _check_pivots(LU_pivots, LU_data.size(-2))
        P = _ops.C["_lu_permutation"](LU_data, LU_pivots).contiguous()
    if unpack_data:
        ones = _F["eye"](LU_data.size(-2), least, dtype=LU_data.dtype)
        L = LU_data[..., :least].contiguous().tril(-1) + ones
        U = LU_data[..., :least, :].contiguous().triu()
    return into("lu_unpack", _LuUnpack((P, L, U)), out)


def _check_pivots(pivots: Tensor, rows: int) -> None:
    if not bool(((pivots >= 1) & (pivots <= rows)).all()):
        raise RuntimeError(
            "pivots passed to lu_unpack must be between 1 and LU.size(-2) inclusive."
            "Did you properly pass the result of lu_factor?"
        )


@builtin
def lu(A: Tensor, *, pivot: bool = True, out: Any = None) -> Any:
    """A = P L U with a permutation, a unit lower and an upper triangle.

    Args:
        A: (*, m, n).
        pivot: only True, as in PyTorch on the CPU.
        out: where to put the three results.

    Raises:
        RuntimeError: fewer dimensions; no pivots.

    Example:
        >>> import pygrad
        >>> pygrad.linalg.lu(pygrad.tensor([[1.0, 2.0], [2.0, 6.0]])).U
        tensor([[ 2.,  6.],
                [ 0., -1.]])
    """
    LU, pivots, _ = _factored(A, pivot, "linalg.lu")
    return into("linalg_lu", _Lu(lu_unpack(LU, pivots)), out)


def _check_lu_solve(LU: Tensor, pivots: Tensor, B: Tensor, left: bool) -> None:
    if not LU.is_floating_point():
        raise RuntimeError(
            "torch.linalg.lu_solve: Expected a floating point or complex tensor as input. Got "
            f"{legacy_name(LU)}"
        )
    if LU.dtype is not B.dtype:
        raise RuntimeError(
            "linalg.lu_solve: Expected LU and B to have the same dtype, but found LU of type "
            f"{legacy_name(LU)} and B of type {legacy_name(B)} instead"
        )
    if pivots.dtype is not int32:
        raise RuntimeError("linalg.lu_solve: pivots should be a Tensor of scalar type torch.int32")
    _check_square("torch.linalg.lu_solve", LU)
    if B.dim() < 2:
        raise RuntimeError("linalg.lu_solve: The input tensor B must have at least 2 dimensions.")
    n, (rows, columns) = LU.size(-1), B.shape[-2:]
    if (rows if left else columns) != n:
        raise RuntimeError(
            "linalg.lu_solve: Incompatible shapes of A and B for the equation "
            f"{'AX' if left else 'XA'} = B ({n}x{n} and {rows}x{columns})"
        )
    if pivots.size(-1) != n:
        raise RuntimeError(
            "linalg.lu_solve: Number of pivots per batch should be same as the dimension of the "
            "matrix"
        )


@builtin
def lu_solve(
    LU: Tensor,
    pivots: Tensor,
    B: Tensor,
    *,
    left: bool = True,
    adjoint: bool = False,
    out: Any = None,
) -> Tensor:
    """X with A X = B, given what :func:`lu_factor` gives of A.

    Args:
        LU: (*, n, n).
        pivots: (*, n), int32.
        B: (*, n, k), or (*, k, n) if not `left`.
        left: else X A = B.
        adjoint: A is transposed.
        out: where to put the result.

    Raises:
        RuntimeError: shapes or dtypes that do not fit.

    Example:
        >>> import pygrad
        >>> factors = pygrad.linalg.lu_factor(pygrad.tensor([[1.0, 2.0], [2.0, 6.0]]))
        >>> pygrad.linalg.lu_solve(*factors, pygrad.tensor([[3.0], [8.0]]))
        tensor([[1.],
                [1.]])
    """
    _check_lu_solve(LU, pivots, B, left)
    solve, P = _L["solve_triangular"], _ops.C["_lu_permutation"](LU, pivots)
    found = B if left else B.mT  # X A = B is A.mT X.mT = B.mT
    if left is not adjoint:
        lower = solve(LU, P.mT @ found, upper=False, unitriangular=True)
        found = solve(LU, lower, upper=True)
    else:
        upper = solve(LU.mT, found, upper=False)
        found = P @ solve(LU.mT, upper, upper=True, unitriangular=True)
    solved: Tensor = into("linalg_lu_solve", found if left else found.mT, out)
    return solved


# ---------------------------------------------------------------- of tensors and vectors


@builtin
def diagonal(A: Tensor, *, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Tensor:
    """The diagonal of matrices: a view.

    Example:
        >>> import pygrad
        >>> pygrad.linalg.diagonal(pygrad.tensor([[1.0, 2.0], [3.0, 4.0]]))
        tensor([1., 4.])
    """
    return A.diagonal(offset, dim1, dim2)


@builtin
def vander(x: Tensor, *, N: int | None = None) -> Tensor:
    """The powers of numbers from 0 to N - 1.

    Args:
        x: (*, n).
        N: how many powers; n by default; at least 2.

    Returns:
        (*, n, N).

    Raises:
        RuntimeError: fewer powers; Booleans.

    Example:
        >>> import pygrad
        >>> pygrad.linalg.vander(pygrad.tensor([1, 2, 3]))
        tensor([[1, 1, 1],
                [1, 2, 4],
                [1, 3, 9]])
    """
    if str(x.dtype) == "torch.bool":
        raise RuntimeError(
            "linalg.vander supports floating point, complex, and integer tensors, but got Bool"
        )
    count = N if N is not None else x.size(-1) if x.dim() else 1
    if count <= 1:
        raise RuntimeError("N must be greater than 1.")
    x = x if x.dim() else x.unsqueeze(0)
    powers = x.unsqueeze(-1).expand(*x.shape, count - 1).cumprod(-1)
    found: Tensor = _F["cat"]([_F["ones_like"](powers[..., :1]), powers], -1)
    return found


def _check_products(A: Tensor, k: int, names: str, left: int | None = None) -> None:
    left = math.prod(A.shape[:k]) if left is None else left
    right = math.prod(A.shape[k:])
    if left != right:
        raise RuntimeError(
            f"Expected self to satisfy the requirement prod(self.shape[{names}:]) == "
            f"prod(self.shape[:{names}]), but got {right} != {left}"
        )


@builtin
def tensorinv(A: Tensor, ind: int = 2, *, out: Any = None) -> Tensor:
    """The inverse of a tensor as a map of tensors: B with tensordot(A, tensordot(B, x)) = x.

    Args:
        A: of as many elements before dimension `ind` as after it.
        ind: how many dimensions the result of the map has.
        out: where to put the result.

    Raises:
        RuntimeError: another `ind`, another shape, a map without inverse.

    Example:
        >>> import pygrad
        >>> pygrad.linalg.tensorinv(pygrad.eye(6).reshape(2, 3, 6)).shape
        torch.Size([6, 2, 3])
    """
    if ind <= 0:
        raise RuntimeError(f"Expected a strictly positive integer for 'ind', but got {ind}")
    _check_products(A, ind, "ind")
    n = math.prod(A.shape[:ind])
    inverse = _L["inv"](A.reshape(n, n)).reshape(*A.shape[ind:], *A.shape[:ind])
    found: Tensor = into("linalg_tensorinv", inverse, out)
    return found


@builtin
def tensorsolve(
    A: Tensor, B: Tensor, dims: Sequence[int] | None = None, *, out: Any = None
) -> Tensor:
    """X with tensordot(A, X, X.dim()) = B.

    Args:
        A: of as many elements as B in its first B.dim() dimensions, and again in the others.
        B: the right side.
        dims: dimensions of A that are moved to its end first.
        out: where to put the result.

    Raises:
        RuntimeError: shapes or dtypes that do not fit, a map without inverse.

    Example:
        >>> import pygrad
        >>> A = 2 * pygrad.eye(4).reshape(2, 2, 4)
        >>> pygrad.linalg.tensorsolve(A, pygrad.ones(2, 2))
        tensor([0.5000, 0.5000, 0.5000, 0.5000])
    """
    if dims is not None:
        A = A.movedim(tuple(dims), tuple(range(A.dim() - len(dims), A.dim())))
    _check_products(A, B.dim(), "other.ndim", B.numel())
    n = math.prod(A.shape[B.dim() :])
    solution = _L["solve"](A.reshape(n, n), B.flatten()).reshape(A.shape[B.dim() :])
    found: Tensor = into("linalg_tensorsolve", solution, out)
    return found


def _check_householder(input: Tensor, tau: Tensor) -> None:
    name = "torch.linalg.householder_product"
    if input.dim() < 2:
        raise RuntimeError(f"{name}: input must have at least 2 dimensions.")
    if input.size(-2) < input.size(-1):
        raise RuntimeError(
            f"{name}: input.shape[-2] must be greater than or equal to input.shape[-1]"
        )
    if input.size(-1) < tau.size(-1):
        raise RuntimeError(
            f"{name}: input.shape[-1] must be greater than or equal to tau.shape[-1]"
        )
    if input.dim() - tau.dim() != 1:
        raise RuntimeError(
            f"{name}: Expected tau to have one dimension less than input, but got tau.ndim equal "
            f"to {tau.dim()} and input.ndim is equal to {input.dim()}"
        )
    if tau.shape[:-1] != input.shape[:-2]:
        raise RuntimeError(
            f"{name}: Expected batch dimensions of tau to be equal to input.shape[:-2], but got "
            f"{list(tau.shape[:-1])}"
        )
    if tau.dtype is not input.dtype:
        raise RuntimeError(
            f"{name}: tau dtype {legacy_name(tau)} does not match input dtype {legacy_name(input)}"
        )


@builtin
def householder_product(input: Tensor, tau: Tensor, *, out: Any = None) -> Tensor:
    """The first n columns of the product of k reflections I - tau v v.mT.

    Args:
        input: (*, m, n) with m >= n: below the diagonal of column i what follows the 1 in v.
        tau: (*, k) with k <= n.
        out: where to put the result.

    Returns:
        (*, m, n).

    Raises:
        RuntimeError: shapes or dtypes that do not fit.

    Example:
        >>> import pygrad
        >>> pygrad.linalg.householder_product(pygrad.zeros(2, 1), pygrad.tensor([2.0]))
        tensor([[-1.],
                [ 0.]])
    """
    _check_householder(input, tau)
    m, n = input.shape[-2:]
    identity = _F["eye"](m, n, dtype=input.dtype)
    vectors = input.tril(-1) + identity
    found = vectors.triu()  # the identity, as part of the graph
    for k in reversed(range(tau.size(-1))):
        v = vectors[..., k : k + 1]
        found = found - tau[..., k, None, None] * v @ (v.mT @ found)
    product: Tensor = into("linalg_householder_product", found, out)
    return product
