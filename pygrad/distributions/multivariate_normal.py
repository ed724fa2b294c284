"""The normal distribution of vectors."""

from __future__ import annotations

import math
from typing import Any

from .. import linalg
from .._ground.dtypes import Size
from .._tensor import namespace as pygrad
from .._tensor.tensor import Tensor
from . import constraints
from ._covariance import FORMS, Covariance, _precision_to_scale_tril  # noqa: F401
from ._location_scale import Centred
from .utils import _standard_normal, lazy_property

__all__ = ["MultivariateNormal"]


class MultivariateNormal(Covariance, Centred):
    """Normal distributions of vectors of length D.

    Args:
        loc: (*, D), the mean.
        covariance_matrix: (*, D, D), positive definite.
        precision_matrix: the inverse of the covariance.
        scale_tril: the Cholesky factor of the covariance; one of the three is given.
        validate_args: check parameters and values.

    Raises:
        ValueError: none or several given, or a matrix that is not positive definite.

    Example:
        >>> import pygrad
        >>> normal = pygrad.distributions.MultivariateNormal(pygrad.zeros(2), pygrad.eye(2))
        >>> normal.log_prob(pygrad.zeros(2))
        tensor(-1.8379)
    """

    arg_constraints = {"loc": constraints.real_vector, **FORMS}  # noqa: RUF012
    support = constraints.real_vector
    has_rsample = True

    def __init__(
        self,
        loc: Tensor,
        covariance_matrix: Tensor | None = None,
        precision_matrix: Tensor | None = None,
        scale_tril: Tensor | None = None,
        validate_args: bool | None = None,
    ) -> None:
        if loc.dim() < 1:
            raise ValueError("loc must be at least one-dimensional.")
        name, matrix = self._only_form(
            ValueError,
            covariance_matrix=covariance_matrix,
            precision_matrix=precision_matrix,
            scale_tril=scale_tril,
        )
        if matrix.dim() < 2:
            raise ValueError(
                f"{name} must be at least two-dimensional, with optional leading batch dimensions"
            )
        batch = pygrad.broadcast_shapes(matrix.shape[:-2], loc.shape[:-1])
        event = Size(loc.shape[-1:])
        self.loc = loc.expand(batch + event)
        self.__dict__[name] = matrix.expand(batch + event + event)
        super().__init__(batch, event, validate_args)
        self._keep_factor(name, matrix)

    def _expand_more(self, new: Any, batch_shape: Size) -> None:
        new._unbroadcasted_scale_tril = self._unbroadcasted_scale_tril

    @lazy_property
    def precision_matrix(self) -> Tensor:
        """The inverse of the covariance."""
        inverse = linalg.inv(self._unbroadcasted_scale_tril)
        return self._expand_to_batch(inverse.mT @ inverse)

    @property
    def variance(self) -> Tensor:
        return (
            self._unbroadcasted_scale_tril.pow(2)
            .sum(-1)
            .expand(self._batch_shape + self._event_shape)
        )

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        noise = _standard_normal(self._extended_shape(sample_shape), self.loc.dtype)
        return self.loc + _batch_mv(self._unbroadcasted_scale_tril, noise)

    def log_prob(self, value: Tensor) -> Any:
        self._check(value)
        distance = _batch_mahalanobis(self._unbroadcasted_scale_tril, value - self.loc)
        return -0.5 * (self._event_shape[0] * math.log(2 * math.pi) + distance) - log_det(
            self._unbroadcasted_scale_tril
        )

    def entropy(self) -> Any:
        found = 0.5 * self._event_shape[0] * (1 + math.log(2 * math.pi)) + log_det(
            self._unbroadcasted_scale_tril
        )
        return found.expand(self._batch_shape)


def _batch_mv(bmat: Tensor, bvec: Tensor) -> Tensor:
    """Products of matrices and vectors with broadcast batch dimensions."""
    return (bmat @ bvec.unsqueeze(-1)).squeeze(-1)


def _batch_mahalanobis(bL: Tensor, bx: Tensor) -> Tensor:
    """The squared Mahalanobis lengths of vectors, from Cholesky factors of covariances."""
    column = bx.unsqueeze(-1)
    shape = pygrad.broadcast_shapes(bL.shape[:-2], column.shape[:-2])
    factor = bL.expand(shape + Size(bL.shape[-2:]))
    column = column.expand(shape + Size(column.shape[-2:]))
    solved = linalg.solve_triangular(factor, column, upper=False)
    return solved.pow(2).sum((-2, -1))


def log_det(tril: Tensor) -> Tensor:
    """Half the log-determinant of the covariance."""
    return tril.diagonal(dim1=-2, dim2=-1).log().sum(-1)
