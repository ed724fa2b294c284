"""The inverse gamma distribution."""

from __future__ import annotations

import math
from typing import Any

from .._tensor import namespace as pygrad
from .._tensor.tensor import Tensor
from . import constraints
from .gamma import Gamma
from .transformed_distribution import TransformedDistribution
from .transforms import PowerTransform

__all__ = ["InverseGamma"]


class InverseGamma(TransformedDistribution):
    """Inverse gamma distributions: 1 / x for x of a gamma distribution.

    Args:
        concentration: the shape of x.
        rate: the rate of x, which is the scale of 1 / x.
        validate_args: check parameters and values.

    Raises:
        ValueError: a parameter that is not positive.

    Example:
        >>> import pygrad
        >>> pygrad.distributions.InverseGamma(3.0, 1.0).mean
        tensor(0.5000)
    """

    arg_constraints = {  # noqa: RUF012
        "concentration": constraints.positive,
        "rate": constraints.positive,
    }
    support = constraints.positive
    has_rsample = True

    def __init__(self, concentration: Any, rate: Any, validate_args: bool | None = None) -> None:
        base = Gamma(concentration, rate, validate_args)
        super().__init__(base, PowerTransform(-base.rate.new_ones(())), validate_args)

    @property
    def concentration(self) -> Tensor:
        """The shape of the gamma distribution."""
        return self.base_dist.concentration  # type: ignore[no-any-return]

    @property
    def rate(self) -> Tensor:
        """The rate of the distribution."""
        return self.base_dist.rate  # type: ignore[no-any-return]

    @property
    def mean(self) -> Tensor:
        found = self.rate / (self.concentration - 1)
        return pygrad.where(self.concentration > 1, found, math.inf)

    @property
    def mode(self) -> Tensor:
        return self.rate / (self.concentration + 1)

    @property
    def variance(self) -> Tensor:
        a = self.concentration
        found = self.rate.square() / ((a - 1).square() * (a - 2))
        return pygrad.where(a > 2, found, math.inf)

    def entropy(self) -> Any:
        a = self.concentration
        return a + self.rate.log() + a.lgamma() - (1 + a) * a.digamma()
