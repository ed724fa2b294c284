"""The distribution of the exponential of a normal value."""

from __future__ import annotations

from typing import Any

from pygrad._dtypes import Size
from pygrad._tensor import Tensor
from pygrad.distributions import constraints
from pygrad.distributions.distribution import Distribution
from pygrad.distributions.normal import Normal

__all__ = ["LogNormal"]


class LogNormal(Distribution):
    """Distributions of exp(x) with x normal.

    Args:
        loc: the mean of x.
        scale: the standard deviation of x.
        validate_args: check parameters and values.

    Raises:
        ValueError: a scale that is not positive.

    Example:
        >>> import pygrad
        >>> pygrad.distributions.LogNormal(0.0, 1.0).mode
        tensor(0.3679)
    """

    arg_constraints = Normal.arg_constraints
    support = constraints.positive
    has_rsample = True

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None) -> None:
        self.base_dist = Normal(loc, scale, validate_args)
        super().__init__(self.base_dist.batch_shape, validate_args=validate_args)

    def _expand_more(self, new: Any, batch_shape: Size) -> None:
        new.base_dist = self.base_dist.expand(batch_shape)

    @property
    def loc(self) -> Tensor:
        """The mean of the logarithm."""
        return self.base_dist.loc

    @property
    def scale(self) -> Tensor:
        """The standard deviation of the logarithm."""
        return self.base_dist.scale

    @property
    def mean(self) -> Tensor:
        return (self.loc + self.scale.pow(2) / 2).exp()

    @property
    def mode(self) -> Tensor:
        return (self.loc - self.scale.square()).exp()

    @property
    def variance(self) -> Tensor:
        square = self.scale.pow(2)
        return square.expm1() * (2 * self.loc + square).exp()

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        return self.base_dist.rsample(sample_shape).exp()

    def sample(self, sample_shape: Any = ()) -> Tensor:
        return self.base_dist.sample(sample_shape).exp()

    def log_prob(self, value: Tensor) -> Tensor:
        self._check(value)
        return self.base_dist.log_prob(value.log()) - value.log()

    def cdf(self, value: Tensor) -> Tensor:
        return self.base_dist.cdf(value.log())

    def icdf(self, value: Tensor) -> Tensor:
        return self.base_dist.icdf(value).exp()

    def entropy(self) -> Tensor:
        return self.base_dist.entropy() + self.loc
