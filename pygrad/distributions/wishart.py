"""The Wishart distribution."""

from __future__ import annotations

import math
import warnings
from numbers import Number
from typing import Any

from .. import linalg
from .._ground.dtypes import Size
from .._tensor import namespace as pygrad
from .._tensor.tensor import Tensor
from . import constraints
from ._covariance import FORMS, Covariance
from .chi2 import Chi2
from .exp_family import ExponentialFamily
from .multivariate_normal import log_det
from .utils import lazy_property

__all__ = ["Wishart"]


def _mvdigamma(x: Tensor, p: int) -> Tensor:
    """The derivative of the logarithm of the multivariate gamma function."""
    if not bool(x.gt((p - 1) / 2).all()):
        raise AssertionError("Wrong domain for multivariate digamma function.")
    return (x.unsqueeze(-1) - pygrad.arange(p, dtype=x.dtype) / 2).digamma().sum(-1)


def _clamp_above_eps(x: Tensor) -> Tensor:
    """Numbers clamped to at least the dtype's eps."""
    return x.clamp(min=pygrad.finfo(x.dtype).eps)


class Wishart(Covariance, ExponentialFamily):
    """Wishart distributions: the sum of x x^T over `df` normal vectors x with mean 0.

    Args:
        df: the degrees of freedom, more than D - 1.
        covariance_matrix: (*, D, D), the covariance of x.
        precision_matrix: the inverse of the covariance.
        scale_tril: the Cholesky factor of the covariance; one of the three is given.
        validate_args: check parameters and values.

    Raises:
        AssertionError: no matrix or several matrices given.
        ValueError: a df that is too small, or a matrix that is not positive definite.

    Example:
        >>> import pygrad
        >>> pygrad.distributions.Wishart(3.0, pygrad.eye(2)).mean
        tensor([[3., 0.],
                [0., 3.]])
    """

    support = constraints.positive_definite
    has_rsample = True
    _mean_carrier_measure = 0

    def __init__(
        self,
        df: Any,
        covariance_matrix: Tensor | None = None,
        precision_matrix: Tensor | None = None,
        scale_tril: Tensor | None = None,
        validate_args: bool | None = None,
    ) -> None:
        name, matrix = self._only_form(
            AssertionError,
            covariance_matrix=covariance_matrix,
            precision_matrix=precision_matrix,
            scale_tril=scale_tril,
        )
        if matrix.dim() < 2:
            raise ValueError(
                "scale_tril must be at least two-dimensional, with optional leading batch "
                "dimensions"
            )
        batch, event = Size(matrix.shape[:-2]), Size(matrix.shape[-2:])
        if isinstance(df, Number):
            self.df = pygrad.tensor(df, dtype=matrix.dtype)
        else:
            batch = pygrad.broadcast_shapes(batch, df.shape)
            self.df = df.expand(batch)
        size = event[-1]
        if bool(self.df.le(size - 1).any()):
            raise ValueError(f"Value of df={df} expected to be greater than ndim - 1 = {size - 1}.")
        self.__dict__[name] = matrix.expand((*batch, -1, -1))
        if bool(self.df.lt(size).any()):
            warnings.warn(
                "Low df values detected. Singular samples are highly likely to occur for ndim - 1 "
                "< df < ndim.",
                stacklevel=2,
            )
        super().__init__(batch, event, validate_args)
        self._keep_factor(name, matrix)
        self._dist_chi2 = self._diagonal_chi2(batch)

    @property
    def arg_constraints(self) -> Any:
        """The constraints of the parameters. The least `df` depends on the size of the matrices."""
        return {**FORMS, "df": constraints.greater_than(self.event_shape[-1] - 1)}

    def _diagonal_chi2(self, batch: Size) -> Chi2:
        """The distributions of the squares on the diagonal of a draw's factor."""
        size = self._event_shape[-1]
        fewer = pygrad.arange(size, dtype=self._unbroadcasted_scale_tril.dtype)
        return Chi2(self.df.expand(batch).unsqueeze(-1) - fewer.expand((*batch, size)))

    def _expand_more(self, new: Any, batch_shape: Size) -> None:
        new._event_shape = self._event_shape
        new._unbroadcasted_scale_tril = self._unbroadcasted_scale_tril.expand(
            batch_shape + self._event_shape
        )
        new._dist_chi2 = new._diagonal_chi2(batch_shape)

    @lazy_property
    def precision_matrix(self) -> Tensor:
        """The inverse of the covariance of x."""
        tril = self._unbroadcasted_scale_tril
        identity = pygrad.eye(self._event_shape[-1], dtype=tril.dtype)
        return self._expand_to_batch(pygrad.cholesky_solve(identity, tril))

    def _times(self, factor: Tensor, matrix: Tensor) -> Tensor:
        return factor.reshape((*self._batch_shape, 1, 1)) * matrix

    @property
    def mean(self) -> Tensor:
        return self._times(self.df, self.covariance_matrix)

    @property
    def mode(self) -> Tensor:
        factor = self.df - self._event_shape[-1] - 1
        return self._times(factor.masked_fill(factor <= 0, math.nan), self.covariance_matrix)

    @property
    def variance(self) -> Tensor:
        covariance = self.covariance_matrix
        diagonal = covariance.diagonal(dim1=-2, dim2=-1)
        return self._times(
            self.df, covariance.pow(2) + diagonal.unsqueeze(-1) * diagonal.unsqueeze(-2)
        )

    def _bartlett_sampling(self, sample_shape: Any = ()) -> Tensor:
        """Draws by a product of triangular matrices."""
        size = self._event_shape[-1]
        roots = _clamp_above_eps(self._dist_chi2.rsample(sample_shape).sqrt())
        noise = roots.diag_embed(dim1=-2, dim2=-1)
        shape = (*sample_shape, *self._batch_shape, size * (size - 1) // 2)
        rows, columns = pygrad.tril_indices(size, size, offset=-1)
        noise[..., rows, columns] = pygrad.randn(shape, dtype=noise.dtype)
        factor = self._unbroadcasted_scale_tril @ noise
        return factor @ factor.mT

    def _any_of_batch(self, found: Tensor) -> Tensor:
        dims = tuple(range(-len(self._batch_shape), 0))
        return found.amax(dims) if dims else found

    def rsample(self, sample_shape: Any = (), max_try_correction: int | None = None) -> Tensor:
        """Values with gradients with respect to the parameters.

        As in PyTorch 2.13, a warning is issued for positive definite matrices, and they are drawn
        once more; the random stream continues from there.

        Args:
            sample_shape: the shape of the sample.
            max_try_correction: the number of new draws for singular matrices, 10 by default.
        """
        tries = 10 if max_try_correction is None else max_try_correction
        sample = self._bartlett_sampling(Size(sample_shape))
        again = self._any_of_batch(self.support.check(sample))
        if not bool(again.any()):
            return sample
        warnings.warn("Singular sample detected.", stacklevel=2)
        for _ in range(tries):
            drawn = self._bartlett_sampling(again[again].shape)
            sample[again] = drawn
            again[again.clone()] = self._any_of_batch(~self.support.check(drawn))
            if not bool(again.any()):
                break
        return sample

    def log_prob(self, value: Tensor) -> Any:
        self._check(value)
        nu, size, tril = self.df, self._event_shape[-1], self._unbroadcasted_scale_tril
        norm = nu * (size * math.log(2) / 2 + log_det(tril)) + (nu / 2).mvlgamma(size)
        power = (nu - size - 1) / 2 * linalg.slogdet(value).logabsdet
        trace = pygrad.cholesky_solve(value, tril).diagonal(dim1=-2, dim2=-1).sum(-1)
        return power - norm - trace / 2

    def entropy(self) -> Any:
        nu, size = self.df, self._event_shape[-1]
        norm = (size + 1) * (size * math.log(2) / 2 + log_det(self._unbroadcasted_scale_tril))
        slope = (nu - size - 1) / 2 * _mvdigamma(nu / 2, p=size)
        return norm + (nu / 2).mvlgamma(size) - slope + nu * size / 2

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        return -self.precision_matrix / 2, (self.df - self._event_shape[-1] - 1) / 2

    def _log_normalizer(self, x: Tensor, y: Tensor) -> Any:
        size = self._event_shape[-1]
        half = y + (size + 1) / 2
        log_det_x = linalg.slogdet(-2 * x).logabsdet
        return half * (math.log(2) * size - log_det_x) + half.mvlgamma(size)
