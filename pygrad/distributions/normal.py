"""The normal distribution."""

from __future__ import annotations

import math
from typing import Any

from .._tensor import namespace as pygrad
from .._tensor.tensor import Tensor
from ._location_scale import LocationScale
from .exp_family import ExponentialFamily
from .utils import _standard_normal

__all__ = ["Normal"]


class Normal(LocationScale, ExponentialFamily):
    """Normal distributions.

    Args:
        loc: the mean.
        scale: the standard deviation.
        validate_args: check parameters and values.

    Raises:
        ValueError: a scale that is not positive.

    Example:
        >>> import pygrad
        >>> normal = pygrad.distributions.Normal(0.0, 2.0)
        >>> normal.log_prob(pygrad.tensor(0.0))
        tensor(-1.6121)
    """

    @property
    def stddev(self) -> Tensor:
        return self.scale

    @property
    def variance(self) -> Tensor:
        return self.stddev.pow(2)

    def sample(self, sample_shape: Any = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        with pygrad.no_grad():
            return pygrad.normal(self.loc.expand(shape), self.scale.expand(shape))

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        noise = _standard_normal(self._extended_shape(sample_shape), self.loc.dtype)
        return self.loc + noise * self.scale

    def log_prob(self, value: Tensor) -> Tensor:
        self._check(value)
        distance = -((value - self.loc) ** 2) / (2 * self.scale**2)
        return distance - self.scale.log() - math.log(math.sqrt(2 * math.pi))

    def cdf(self, value: Tensor) -> Tensor:
        self._check(value)
        return 0.5 * (1 + ((value - self.loc) * self.scale.reciprocal() / math.sqrt(2)).erf())

    def icdf(self, value: Tensor) -> Tensor:
        return self.loc + self.scale * (2 * value - 1).erfinv() * math.sqrt(2)

    def entropy(self) -> Tensor:
        return 0.5 + 0.5 * math.log(2 * math.pi) + self.scale.log()

    _mean_carrier_measure = 0

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        precision = self.scale.pow(2).reciprocal()
        return self.loc * precision, -0.5 * precision

    def _log_normalizer(self, x: Tensor, y: Tensor) -> Any:
        return 0.5 * (-math.pi / y).log() - x.pow(2) / (4 * y)
