"""The Cauchy distribution."""

from __future__ import annotations

import math
from typing import Any

from .._tensor import namespace as pygrad
from .._tensor.tensor import Tensor
from ._location_scale import LocationScale

__all__ = ["Cauchy"]


class Cauchy(LocationScale):
    """Cauchy distributions.

    Args:
        loc: the median.
        scale: half the width at half the maximum.
        validate_args: check parameters and values.

    Raises:
        ValueError: a scale that is not positive.

    Example:
        >>> import pygrad
        >>> pygrad.distributions.Cauchy(0.0, 1.0).cdf(pygrad.tensor(1.0))
        tensor(0.7500)
    """

    @property
    def mean(self) -> Tensor:
        return pygrad.full(self._extended_shape(), math.nan, dtype=self.loc.dtype)

    @property
    def variance(self) -> Tensor:
        return pygrad.full(self._extended_shape(), math.inf, dtype=self.loc.dtype)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        drawn: Tensor = pygrad.empty(shape, dtype=self.loc.dtype).cauchy_()
        return self.loc + drawn * self.scale

    def log_prob(self, value: Tensor) -> Tensor:
        self._check(value)
        distance = ((value - self.loc) / self.scale) ** 2
        return -math.log(math.pi) - self.scale.log() - distance.log1p()

    def cdf(self, value: Tensor) -> Tensor:
        self._check(value)
        return ((value - self.loc) / self.scale).atan() / math.pi + 0.5

    def icdf(self, value: Tensor) -> Tensor:
        return (math.pi * (value - 0.5)).tan() * self.scale + self.loc

    def entropy(self) -> Tensor:
        return math.log(4 * math.pi) + self.scale.log()
