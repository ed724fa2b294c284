"""The distribution of the size of a normal value."""

from __future__ import annotations

import math
from typing import Any

import pygrad
from pygrad._tensor import Tensor
from pygrad.distributions import constraints
from pygrad.distributions._of_normal import OfNormal
from pygrad.distributions.normal import Normal

__all__ = ["HalfNormal"]


class HalfNormal(OfNormal):
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

    def __init__(self, scale: Any, validate_args: bool | None = None) -> None:
        super().__init__(Normal(0, scale, validate_args=False), validate_args)

    @staticmethod
    def _of(x: Tensor) -> Tensor:
        return x.abs()

    @property
    def mean(self) -> Tensor:
        return self.scale * math.sqrt(2 / math.pi)

    @property
    def mode(self) -> Tensor:
        return pygrad.zeros_like(self.scale)

    @property
    def variance(self) -> Tensor:
        return self.scale.pow(2) * (1 - 2 / math.pi)

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
