"""The distribution of the size of a normal value."""

from __future__ import annotations

import math
from typing import Any

import pygrad
from pygrad._dtypes import Size
from pygrad._tensor import Tensor
from pygrad.distributions import constraints
from pygrad.distributions.distribution import Distribution
from pygrad.distributions.normal import Normal

__all__ = ["HalfNormal"]


class HalfNormal(Distribution):
    """Distributions of \\|x\\| with x normal of mean 0.

    Args:
        scale: the standard deviation of x.
        validate_args: check parameters and values.

    Raises:
        ValueError: a scale that is not positive.

    Example:
        >>> import pygrad
        >>> pygrad.distributions.HalfNormal(1.0).mean
        tensor(0.7979)
    """

    arg_constraints = {"scale": constraints.positive}  # noqa: RUF012
    support = constraints.nonnegative
    has_rsample = True

    def __init__(self, scale: Any, validate_args: bool | None = None) -> None:
        self.base_dist = Normal(0, scale, validate_args=False)
        super().__init__(self.base_dist.batch_shape, validate_args=validate_args)

    def _expand_more(self, new: Any, batch_shape: Size) -> None:
        new.base_dist = self.base_dist.expand(batch_shape)

    @property
    def scale(self) -> Tensor:
        """The standard deviation of the normal value."""
        return self.base_dist.scale

    @property
    def mean(self) -> Tensor:
        return self.scale * math.sqrt(2 / math.pi)

    @property
    def mode(self) -> Tensor:
        return pygrad.zeros_like(self.scale)

    @property
    def variance(self) -> Tensor:
        return self.scale.pow(2) * (1 - 2 / math.pi)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        return self.base_dist.rsample(sample_shape).abs()

    def sample(self, sample_shape: Any = ()) -> Tensor:
        return self.base_dist.sample(sample_shape).abs()

    def log_prob(self, value: Tensor) -> Tensor:
        self._check(value)
        found = self.base_dist.log_prob(value) + math.log(2)
        return pygrad.where(value >= 0, found, -math.inf)

    def cdf(self, value: Tensor) -> Tensor:
        self._check(value)
        return 2 * self.base_dist.cdf(value) - 1

    def icdf(self, value: Tensor) -> Tensor:
        return self.base_dist.icdf((value + 1) / 2)

    def entropy(self) -> Tensor:
        return self.base_dist.entropy() - math.log(2)
