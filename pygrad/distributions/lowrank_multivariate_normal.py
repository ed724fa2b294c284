"""The normal distribution of vectors with a covariance of low rank and a diagonal."""

from __future__ import annotations

import math
from typing import Any

from .. import linalg
from .._ground.dtypes import Size
from .._tensor import namespace as pygrad
from .._tensor.tensor import Tensor
from . import constraints
from ._location_scale import Centred
from .multivariate_normal import _batch_mahalanobis, _batch_mv
from .utils import _standard_normal, lazy_property

__all__ = ["LowRankMultivariateNormal"]


def _with_ones(matrix: Tensor) -> Tensor:
    """The Cholesky factor of a matrix plus the identity."""
    identity = pygrad.eye(matrix.size(-1), dtype=matrix.dtype)
    found: Tensor = linalg.cholesky(matrix + identity)
    return found


def _batch_capacitance_tril(W: Tensor, D: Tensor) -> Tensor:
    """The Cholesky factor of I + W^T D^-1 W."""
    return _with_ones((W.mT / D.unsqueeze(-2)) @ W)


def _batch_lowrank_logdet(W: Tensor, D: Tensor, capacitance_tril: Tensor) -> Tensor:
    """The logarithm of the determinant of W W^T + D."""
    inner = capacitance_tril.diagonal(dim1=-2, dim2=-1).log().sum(-1)
    return 2 * inner + D.log().sum(-1)


def _batch_lowrank_mahalanobis(W: Tensor, D: Tensor, x: Tensor, capacitance_tril: Tensor) -> Tensor:
    """x^T (W W^T + D)^-1 x."""
    inner = _batch_mv(W.mT / D.unsqueeze(-2), x)
    return (x.pow(2) / D).sum(-1) - _batch_mahalanobis(capacitance_tril, inner)


class LowRankMultivariateNormal(Centred):
    """Normal distributions of vectors of length D with covariance W W^T + diag(d).

    Draws and densities compute no matrix of size D x D.

    Args:
        loc: (*, D), the mean.
        cov_factor: (*, D, m), W.
        cov_diag: (*, D), d, positive.
        validate_args: check parameters and values.

    Raises:
        ValueError: shapes that do not fit, or a d that is not positive.

    Example:
        >>> import pygrad
        >>> from pygrad.distributions import LowRankMultivariateNormal
        >>> made = LowRankMultivariateNormal(pygrad.zeros(2), pygrad.ones(2, 1), pygrad.ones(2))
        >>> made.covariance_matrix
        tensor([[2., 1.],
                [1., 2.]])
    """

    arg_constraints = {  # noqa: RUF012
        "loc": constraints.real_vector,
        "cov_factor": constraints.independent(constraints.real, 2),
        "cov_diag": constraints.independent(constraints.positive, 1),
    }
    support = constraints.real_vector
    has_rsample = True

    def __init__(
        self,
        loc: Tensor,
        cov_factor: Tensor,
        cov_diag: Tensor,
        validate_args: bool | None = None,
    ) -> None:
        if loc.dim() < 1:
            raise ValueError("loc must be at least one-dimensional.")
        event = Size(loc.shape[-1:])
        if cov_factor.dim() < 2:
            raise ValueError(
                "cov_factor must be at least two-dimensional, with optional leading batch "
                "dimensions"
            )
        if cov_factor.shape[-2:-1] != event:
            raise ValueError(f"cov_factor must be a batch of matrices with shape {event[0]} x m")
        if cov_diag.shape[-1:] != event:
            raise ValueError(f"cov_diag must be a batch of vectors with shape {event}")
        try:
            mean, self.cov_factor, diagonal = pygrad.broadcast_tensors(
                loc.unsqueeze(-1), cov_factor, cov_diag.unsqueeze(-1)
            )
        except RuntimeError as error:
            raise ValueError(
                f"Incompatible batch shapes: loc {loc.shape}, cov_factor {cov_factor.shape}, "
                f"cov_diag {cov_diag.shape}"
            ) from error
        self.loc, self.cov_diag = mean[..., 0], diagonal[..., 0]
        self._unbroadcasted_cov_factor = cov_factor
        self._unbroadcasted_cov_diag = cov_diag
        self._capacitance_tril = _batch_capacitance_tril(cov_factor, cov_diag)
        super().__init__(self.loc.shape[:-1], event, validate_args)

    def _expand_more(self, new: Any, batch_shape: Size) -> None:
        new._unbroadcasted_cov_factor = self._unbroadcasted_cov_factor
        new._unbroadcasted_cov_diag = self._unbroadcasted_cov_diag
        new._capacitance_tril = self._capacitance_tril

    def _expand_to_batch(self, matrix: Tensor) -> Tensor:
        """A matrix expanded to the batch shape."""
        return matrix.expand(self._batch_shape + self._event_shape + self._event_shape)

    @lazy_property
    def scale_tril(self) -> Tensor:
        """The Cholesky factor of the covariance."""
        # Factor D^-1/2 (W W^T + D) D^-1/2 instead, which is better conditioned.
        root = self._unbroadcasted_cov_diag.sqrt().unsqueeze(-1)
        scaled = self._unbroadcasted_cov_factor / root
        return self._expand_to_batch(root * _with_ones(scaled @ scaled.mT))

    @lazy_property
    def covariance_matrix(self) -> Tensor:
        """The covariance."""
        factor = self._unbroadcasted_cov_factor
        return self._expand_to_batch(factor @ factor.mT + self._unbroadcasted_cov_diag.diag_embed())

    @lazy_property
    def precision_matrix(self) -> Tensor:
        """The inverse of the covariance, by Woodbury's identity."""
        diagonal = self._unbroadcasted_cov_diag
        inner = _inner(self)
        return self._expand_to_batch(diagonal.reciprocal().diag_embed() - inner.mT @ inner)

    @lazy_property
    def variance(self) -> Tensor:
        """The diagonal of the covariance."""
        found = self._unbroadcasted_cov_factor.pow(2).sum(-1) + self._unbroadcasted_cov_diag
        return found.expand(self._batch_shape + self._event_shape)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        shape, dtype = self._extended_shape(sample_shape), self.loc.dtype
        inner = _standard_normal((*shape[:-1], self.cov_factor.shape[-1]), dtype)
        outer = _standard_normal(shape, dtype)
        drawn = self.loc + _batch_mv(self._unbroadcasted_cov_factor, inner)
        return drawn + self._unbroadcasted_cov_diag.sqrt() * outer

    def _log_det(self) -> Tensor:
        return _batch_lowrank_logdet(
            self._unbroadcasted_cov_factor, self._unbroadcasted_cov_diag, self._capacitance_tril
        )

    def _distance(self, x: Tensor) -> Tensor:
        return _batch_lowrank_mahalanobis(
            self._unbroadcasted_cov_factor, self._unbroadcasted_cov_diag, x, self._capacitance_tril
        )

    def log_prob(self, value: Tensor) -> Any:
        self._check(value)
        norm = self._event_shape[0] * math.log(2 * math.pi) + self._log_det()
        return -0.5 * (norm + self._distance(value - self.loc))

    def entropy(self) -> Any:
        found = 0.5 * (self._event_shape[0] * (1.0 + math.log(2 * math.pi)) + self._log_det())
        return found.expand(self._batch_shape)


def _inner(p: LowRankMultivariateNormal) -> Tensor:
    """The matrix A of the precision D^-1 - A^T A."""
    scaled = p._unbroadcasted_cov_factor.mT / p._unbroadcasted_cov_diag.unsqueeze(-2)
    found: Tensor = linalg.solve_triangular(p._capacitance_tril, scaled, upper=False)
    return found
