"""The Kumaraswamy distribution."""

from __future__ import annotations

import math
from typing import Any

from .._tensor import namespace as pygrad
from .._tensor.tensor import Tensor
from .beta import Beta
from .transformed_distribution import TransformedDistribution
from .transforms import AffineTransform, PowerTransform
from .uniform import Uniform
from .utils import broadcast_all, euler_constant

__all__ = ["Kumaraswamy"]


class Kumaraswamy(TransformedDistribution):
    """Kumaraswamy distributions: (1 - u ** (1 / b)) ** (1 / a) for a uniform u in (0, 1).

    Args:
        concentration1: a.
        concentration0: b.
        validate_args: check parameters and values.

    Raises:
        ValueError: a parameter that is not positive.

    Example:
        >>> import pygrad
        >>> pygrad.distributions.Kumaraswamy(1.0, 1.0).mean
        tensor(0.5000)
    """

    arg_constraints = Beta.arg_constraints
    support = Beta.support
    has_rsample = True

    def __init__(
        self, concentration1: Any, concentration0: Any, validate_args: bool | None = None
    ) -> None:
        self.concentration1, self.concentration0 = broadcast_all(concentration1, concentration0)
        zeros = pygrad.full_like(self.concentration0, 0)
        transforms = [
            PowerTransform(self.concentration0.reciprocal()),
            AffineTransform(1, -1),
            PowerTransform(self.concentration1.reciprocal()),
        ]
        super().__init__(Uniform(zeros, zeros + 1, validate_args), transforms, validate_args)

    def _moment(self, n: int) -> Tensor:
        a, b = self.concentration1, self.concentration0
        first = 1 + n / a
        return b * (first.lgamma() + b.lgamma() - (first + b).lgamma()).exp()

    @property
    def mean(self) -> Tensor:
        return self._moment(1)

    @property
    def mode(self) -> Tensor:
        a, b = self.concentration1, self.concentration0
        found = b.reciprocal() * (-b).log1p() - (-b * a).log1p()
        return found.masked_fill((b < 1) | (a < 1), math.nan).exp()

    @property
    def variance(self) -> Tensor:
        return self._moment(2) - self.mean.pow(2)

    def entropy(self) -> Tensor:
        a, b = self.concentration1, self.concentration0
        harmonic = (b + 1).digamma() + euler_constant
        return (1 - b.reciprocal()) + (1 - a.reciprocal()) * harmonic - a.log() - b.log()
