"""The base class of distributions of the absolute value of a symmetric variable."""

from __future__ import annotations

import math
from typing import Any

from .._tensor import namespace as pygrad
from .._tensor.tensor import Tensor
from . import constraints
from .distribution import Distribution
from .transformed_distribution import TransformedDistribution
from .transforms import AbsTransform


class Folded(TransformedDistribution):
    """The distribution of \\|x\\|, x symmetric about 0 with a `scale`."""

    arg_constraints = {"scale": constraints.positive}  # noqa: RUF012
    support = constraints.nonnegative

    def __init__(self, base: Distribution, validate_args: bool | None) -> None:
        super().__init__(base, AbsTransform(), validate_args)

    @property
    def scale(self) -> Tensor:
        """The scale of the distribution of x."""
        return self.base_dist.scale  # type: ignore[no-any-return]

    @property
    def mode(self) -> Tensor:
        return pygrad.zeros_like(self.scale)

    def log_prob(self, value: Tensor) -> Tensor:
        self._check(value)
        found = self.base_dist.log_prob(value) + math.log(2)
        return pygrad.where(value >= 0, found, -math.inf)

    def cdf(self, value: Tensor) -> Any:
        self._check(value)
        return 2 * self.base_dist.cdf(value) - 1

    def icdf(self, prob: Tensor) -> Any:
        return self.base_dist.icdf((prob + 1) / 2)

    def entropy(self) -> Any:
        return self.base_dist.entropy() - math.log(2)
