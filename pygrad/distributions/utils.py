"""Helpers of distributions: broadcasting of parameters, probabilities and logits."""

from __future__ import annotations

from collections.abc import Callable
from numbers import Number
from typing import Any, Final, Generic, Self, TypeVar, overload

from .._table import functions as _functions
from .._tensor import namespace as pygrad
from .._tensor.tensor import Tensor
from ..nn import functional as F

__all__ = [
    "broadcast_all",
    "clamp_probs",
    "lazy_property",
    "logits_to_probs",
    "probs_to_logits",
    "tril_matrix_to_vec",
    "vec_to_tril_matrix",
]

euler_constant: Final = 0.57721566490153286060


_C: Final = _functions.C

T = TypeVar("T")
R = TypeVar("R")


class lazy_property(Generic[T, R]):
    """A property that is computed at its first access, with gradients, and then cached.

    Example:
        >>> from pygrad.distributions.utils import lazy_property
        >>> class Once:
        ...     @lazy_property
        ...     def answer(self):
        ...         print("computed")
        ...         return 42
        >>> once = Once()
        >>> once.answer, once.answer
        computed
        (42, 42)
    """

    def __init__(self, wrapped: Callable[[T], R]) -> None:
        self.wrapped = wrapped
        self.__name__ = wrapped.__name__
        self.__doc__ = wrapped.__doc__

    @overload
    def __get__(self, instance: None, owner: Any = None) -> Self: ...
    @overload
    def __get__(self, instance: T, owner: Any = None) -> R: ...
    def __get__(self, instance: T | None, owner: Any = None) -> Self | R:
        if instance is None:
            return self
        with pygrad.enable_grad():
            value = self.wrapped(instance)
        setattr(instance, self.__name__, value)
        return value


def broadcast_all(*values: Any) -> tuple[Tensor, ...]:
    """Broadcasts numbers and tensors to tensors of one shape.

    Raises:
        ValueError: an argument that is neither.

    Example:
        >>> import pygrad
        >>> pygrad.distributions.utils.broadcast_all(1.0, pygrad.zeros(2))
        (tensor([1., 1.]), tensor([0., 0.]))
    """
    like = [isinstance(v, Tensor) or hasattr(v, "__torch_function__") for v in values]
    if not all(known or isinstance(v, Number) for v, known in zip(values, like, strict=True)):
        raise ValueError(
            "Input arguments must all be instances of Number, torch.Tensor or objects implementing "
            "__torch_function__."
        )
    first = next((v for v in values if isinstance(v, Tensor)), None)
    dtype = pygrad.get_default_dtype() if first is None else first.dtype
    made = [
        v if known else pygrad.tensor(v, dtype=dtype) for v, known in zip(values, like, strict=True)
    ]
    return tuple(pygrad.broadcast_tensors(*made))


def clamp_probs(probs: Tensor) -> Tensor:
    """Clamps probabilities away from 0 and 1 by the dtype's eps.

    Example:
        >>> import pygrad
        >>> pygrad.distributions.utils.clamp_probs(pygrad.tensor([0.5]))
        tensor([0.5000])
    """
    eps = pygrad.finfo(probs.dtype).eps
    return probs.clamp(min=eps, max=1 - eps)


def probs_to_logits(probs: Tensor, is_binary: bool = False) -> Tensor:
    """The logarithms of probabilities; log-odds if binary.

    Example:
        >>> import pygrad
        >>> pygrad.distributions.utils.probs_to_logits(pygrad.tensor([0.5]), is_binary=True)
        tensor([0.])
    """
    clamped = clamp_probs(probs)
    return clamped.log() - (-clamped).log1p() if is_binary else clamped.log()


def logits_to_probs(logits: Tensor, is_binary: bool = False) -> Tensor:
    """The inverse of :func:`probs_to_logits`.

    Example:
        >>> import pygrad
        >>> pygrad.distributions.utils.logits_to_probs(pygrad.zeros(2))
        tensor([0.5000, 0.5000])
    """
    return logits.sigmoid() if is_binary else F.softmax(logits, dim=-1)


def all_true(valid: Tensor) -> bool:
    """Whether all elements are true; under vmap, in all slices."""
    return bool(_C["_is_all_true"](valid))


def exactly_one(probs: Any, logits: Any) -> None:
    """Raise ``ValueError`` unless exactly one of the two is given."""
    if (probs is None) == (logits is None):
        raise ValueError("Either `probs` or `logits` must be specified, but not both.")


def _standard_normal(shape: Any, dtype: Any, device: Any = None) -> Tensor:
    """Draws from the standard normal distribution."""
    return pygrad.empty(shape, dtype=dtype, device=device).normal_()


def _sum_rightmost(value: Tensor, dim: int) -> Tensor:
    """Sums over the last dimensions."""
    return value.reshape((*value.shape[:-dim], -1)).sum(-1) if dim else value


def _lower_mask(n: int, diag: int) -> Tensor:
    """A mask of the elements of an n x n matrix on or below a diagonal."""
    return pygrad.ones(n, n, dtype=pygrad.bool).tril(diag)


def tril_matrix_to_vec(mat: Tensor, diag: int = 0) -> Tensor:
    """The elements of (*, n, n) on and below a diagonal, row by row.

    Raises:
        ValueError: the diagonal is out of range.

    Example:
        >>> import pygrad
        >>> from pygrad.distributions.utils import tril_matrix_to_vec
        >>> tril_matrix_to_vec(pygrad.tensor([[1.0, 2.0], [3.0, 4.0]]))
        tensor([1., 3., 4.])
    """
    n = mat.shape[-1]
    if not -n <= diag < n:
        raise ValueError(f"diag ({diag}) provided is outside [{-n}, {n - 1}].")
    return mat[..., _lower_mask(n, diag)]


def vec_to_tril_matrix(vec: Tensor, diag: int = 0) -> Tensor:
    """The inverse of :func:`tril_matrix_to_vec`, with zeros elsewhere.

    Raises:
        ValueError: no matrix has this number of elements.

    Example:
        >>> import pygrad
        >>> from pygrad.distributions.utils import vec_to_tril_matrix
        >>> vec_to_tril_matrix(pygrad.tensor([1.0, 3.0, 4.0]))
        tensor([[1., 0.],
                [3., 4.]])
    """
    count, slope = vec.shape[-1], 1 + 2 * diag
    # n with n (n + slope) = 2 count + |diag| (diag + 1)
    root = (slope**2 + 8 * count + 4 * abs(diag) * (diag + 1)) ** 0.5
    exact = (root - slope) / 2
    n = round(exact)
    if n - exact > pygrad.finfo(vec.dtype).eps:
        raise ValueError(
            f"The size of last dimension is {count} which cannot be expressed as the lower "
            "triangular part of a square D x D matrix."
        )
    made = vec.new_zeros((*vec.shape[:-1], n, n))
    made[..., _lower_mask(n, diag)] = vec
    return made
