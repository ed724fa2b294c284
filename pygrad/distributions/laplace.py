"""The Laplace distribution."""

from __future__ import annotations

from typing import Any

from .._tensor import namespace as pygrad
from .._tensor.tensor import Tensor
from ._location_scale import LocationScale

__all__ = ["Laplace"]


class Laplace(LocationScale):
    """Laplace distributions.

    Args:
        loc: the mean.
        scale: the mean distance from `loc`.
        validate_args: check parameters and values.

    Raises:
        ValueError: a scale that is not positive.

    Example:
        >>> import pygrad
        >>> pygrad.distributions.Laplace(0.0, 0.5).cdf(pygrad.tensor(0.0))
        tensor(0.5000)
    """

    @property
    def stddev(self) -> Tensor:
        return 2**0.5 * self.scale

    @property
    def variance(self) -> Tensor:
        return 2 * self.scale.pow(2)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        least = pygrad.finfo(self.loc.dtype).eps - 1
        empty = pygrad.empty(self._extended_shape(sample_shape), dtype=self.loc.dtype)
        drawn: Tensor = empty.uniform_(least, 1)
        return self.loc - self.scale * drawn.sign() * (-drawn.abs()).log1p()

    def log_prob(self, value: Tensor) -> Tensor:
        self._check(value)
        return -(2 * self.scale).log() - (value - self.loc).abs() / self.scale

    def cdf(self, value: Tensor) -> Tensor:
        self._check(value)
        distance = value - self.loc
        return 0.5 - 0.5 * distance.sign() * (-distance.abs() / self.scale).expm1()

    def icdf(self, value: Tensor) -> Tensor:
        place = value - 0.5
        return self.loc - self.scale * place.sign() * (-2 * place.abs()).log1p()

    def entropy(self) -> Tensor:
        return 1 + (2 * self.scale).log()
