"""The uniform distribution."""

from __future__ import annotations

import math
from typing import Any

from .._tensor import namespace as pygrad
from .._tensor.tensor import Tensor
from . import constraints
from .distribution import Distribution
from .utils import broadcast_all

__all__ = ["Uniform"]


class Uniform(Distribution):
    """Uniform distributions over [low, high).

    Args:
        low: the least value.
        high: the upper bound, which is excluded.
        validate_args: check parameters and values.

    Raises:
        ValueError: `low` is not below `high`.

    Example:
        >>> import pygrad
        >>> pygrad.distributions.Uniform(0.0, 4.0).log_prob(pygrad.tensor(1.0)).exp()
        tensor(0.2500)
    """

    has_rsample = True

    def __init__(self, low: Any, high: Any, validate_args: bool | None = None) -> None:
        self.low, self.high = broadcast_all(low, high)
        super().__init__(self.low.size(), validate_args=validate_args)

    @property
    def arg_constraints(self) -> dict[str, constraints.Constraint]:
        """The constraints of the bounds: each is bounded by the other."""
        below = constraints.less_than(upper_bound=self.__dict__.get("high"))
        above = constraints.greater_than(lower_bound=self.__dict__.get("low"))
        return {"low": below, "high": above}

    @constraints.dependent_property(is_discrete=False, event_dim=0)
    def support(self) -> constraints.Constraint:
        """Numbers from `low` to `high`."""
        return constraints.interval(lower_bound=self.low, upper_bound=self.high)

    @property
    def mean(self) -> Tensor:
        return (self.high + self.low) / 2

    @property
    def mode(self) -> Tensor:
        return math.nan * self.high

    @property
    def stddev(self) -> Tensor:
        return (self.high - self.low) / 12**0.5

    @property
    def variance(self) -> Tensor:
        return (self.high - self.low).pow(2) / 12

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        drawn = pygrad.rand(self._extended_shape(sample_shape), dtype=self.low.dtype)
        return self.low + drawn * (self.high - self.low)

    def log_prob(self, value: Tensor) -> Tensor:
        self._check(value)
        inside = self.low.le(value).type_as(self.low) * self.high.gt(value).type_as(self.low)
        return inside.log() - (self.high - self.low).log()

    def cdf(self, value: Tensor) -> Tensor:
        self._check(value)
        return ((value - self.low) / (self.high - self.low)).clamp(min=0, max=1)

    def icdf(self, value: Tensor) -> Tensor:
        return value * (self.high - self.low) + self.low

    def entropy(self) -> Tensor:
        return (self.high - self.low).log()
