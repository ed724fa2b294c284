"""The Weibull distribution."""

from __future__ import annotations

from typing import Any

from .._tensor import namespace as pygrad
from .._tensor.tensor import Tensor
from . import constraints
from .exponential import Exponential
from .transformed_distribution import TransformedDistribution
from .transforms import AffineTransform, PowerTransform
from .utils import broadcast_all, euler_constant

__all__ = ["Weibull"]


class Weibull(TransformedDistribution):
    """Weibull distributions: scale * x ** (1 / concentration) for an exponential x.

    Args:
        scale: the width.
        concentration: the shape; 1 gives exponential distributions.
        validate_args: check parameters and values.

    Raises:
        ValueError: a parameter that is not positive.

    Example:
        >>> import pygrad
        >>> pygrad.distributions.Weibull(2.0, 1.0).mean
        tensor(2.)
    """

    arg_constraints = {  # noqa: RUF012
        "scale": constraints.positive,
        "concentration": constraints.positive,
    }
    support = constraints.positive

    def __init__(self, scale: Any, concentration: Any, validate_args: bool | None = None) -> None:
        self.scale, self.concentration = broadcast_all(scale, concentration)
        transforms = [
            PowerTransform(self.concentration_reciprocal),
            AffineTransform(0, self.scale),
        ]
        base = Exponential(pygrad.ones_like(self.scale), validate_args)
        super().__init__(base, transforms, validate_args)

    @property
    def concentration_reciprocal(self) -> Tensor:
        """The inverse of the concentration."""
        return self.concentration.reciprocal()

    @property
    def mean(self) -> Tensor:
        return self.scale * (1 + self.concentration_reciprocal).lgamma().exp()

    @property
    def mode(self) -> Tensor:
        c = self.concentration
        return self.scale * ((c - 1) / c) ** self.concentration_reciprocal

    @property
    def variance(self) -> Tensor:
        once = (1 + self.concentration_reciprocal).lgamma()
        twice = (1 + 2 * self.concentration_reciprocal).lgamma()
        return self.scale.pow(2) * (twice.exp() - (2 * once).exp())

    def entropy(self) -> Tensor:
        inverse = self.concentration_reciprocal
        return euler_constant * (1 - inverse) + (self.scale * inverse).log() + 1
