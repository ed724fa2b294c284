"""Small helpers of linear algebra that libraries import, and removed names."""

from __future__ import annotations

from typing import Any, NoReturn

from .._ground.dtypes import dtype, float32, float64
from .._table import functions
from .._tensor.tensor import Tensor

__all__: list[str] = []

_f = functions.SPACES["torch"]


def is_sparse(A: Any) -> bool:
    """Whether a matrix is a sparse tensor."""
    return isinstance(A, Tensor) and bool(A.is_sparse)


def get_floating_dtype(A: Tensor) -> dtype:
    """The floating type for computing with a matrix: its own, if it is floating."""
    return A.dtype if A.dtype in (float32, float64) or A.is_floating_point() else float32


def matmul(A: Tensor | None, B: Tensor) -> Tensor:
    """A B; B where A is None."""
    return B if A is None else A @ B


def bform(X: Tensor, A: Tensor | None, Y: Tensor) -> Tensor:
    """X^T A Y."""
    return X.mT @ matmul(A, Y)


def qform(A: Tensor | None, S: Tensor) -> Tensor:
    """S^T A S."""
    return bform(S, A, S)


def basis(A: Tensor) -> Tensor:
    """Orthonormal columns with the span of A's columns."""
    found: Tensor = functions.SPACES["linalg"]["qr"](A)[0]
    return found


def symeig(A: Tensor, largest: bool | None = False) -> tuple[Tensor, Tensor]:
    """Eigenvalues and eigenvectors of a symmetric matrix, from the smallest or the largest."""
    values, vectors = functions.SPACES["linalg"]["eigh"](A)
    if largest:
        values, vectors = _f["flip"](values, (-1,)), _f["flip"](vectors, (-1,))
    return values, vectors


def _removed_function(name: str, instead: str) -> Any:
    def function(*_: Any, **__: Any) -> NoReturn:
        raise RuntimeError(
            "This function was deprecated since version 1.9 and is now removed. "
            f"`torch.{name}` is deprecated in favor of `torch.linalg.{instead}`."
        )

    function.__name__ = name
    function.__doc__ = f"Raises RuntimeError: it is `linalg.{instead}` now."
    return function


matrix_rank = _removed_function("matrix_rank", "matrix_rank")
solve = _removed_function("solve", "solve")
lstsq = _removed_function("lstsq", "lstsq")
eig = _removed_function("eig", "eig")
_symeig = _removed_function("symeig", "eigh")
