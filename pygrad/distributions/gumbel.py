"""The Gumbel distribution."""

from __future__ import annotations

import math
from typing import Any

from .._tensor import namespace as pygrad
from .._tensor.tensor import Tensor
from . import constraints
from .transformed_distribution import TransformedDistribution
from .transforms import AffineTransform, ExpTransform
from .uniform import Uniform
from .utils import broadcast_all, euler_constant

__all__ = ["Gumbel"]


class Gumbel(TransformedDistribution):
    """Gumbel distributions: loc - scale * log(-log(u)) for a uniform u.

    Args:
        loc: the mode.
        scale: the width.
        validate_args: check parameters and values.

    Raises:
        ValueError: a scale that is not positive.

    Example:
        >>> import pygrad
        >>> pygrad.distributions.Gumbel(0.0, 1.0).mean
        tensor(0.5772)
    """

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}  # noqa: RUF012
    support = constraints.real

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None) -> None:
        self.loc, self.scale = broadcast_all(loc, scale)
        limits = pygrad.finfo(self.loc.dtype)
        low, high = (pygrad.full_like(self.loc, v) for v in (limits.tiny, 1 - limits.eps))
        transforms = [
            ExpTransform().inv,
            AffineTransform(0, -pygrad.ones_like(self.scale)),
            ExpTransform().inv,
            AffineTransform(self.loc, -self.scale),
        ]
        super().__init__(Uniform(low, high, validate_args), transforms, validate_args)

    @property
    def mean(self) -> Tensor:
        return self.loc + self.scale * euler_constant

    @property
    def mode(self) -> Tensor:
        return self.loc

    @property
    def stddev(self) -> Tensor:
        return self.scale * (math.pi / math.sqrt(6))

    @property
    def variance(self) -> Tensor:
        return self.stddev.pow(2)

    def log_prob(self, value: Tensor) -> Tensor:
        self._check(value)
        below = (self.loc - value) / self.scale
        return below - below.exp() - self.scale.log()

    def entropy(self) -> Tensor:
        return self.scale.log() + (1 + euler_constant)
