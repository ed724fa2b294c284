"""The gamma distribution."""

from __future__ import annotations

from typing import Any

from .. import special
from .._tensor import namespace as pygrad
from .._tensor.tensor import Tensor
from . import constraints
from .exp_family import ExponentialFamily
from .utils import broadcast_all

__all__ = ["Gamma"]


def _standard_gamma(concentration: Tensor) -> Tensor:
    """Draws with rate 1, with gradients for the concentration."""
    return pygrad._standard_gamma(concentration)


class Gamma(ExponentialFamily):
    """Gamma distributions, with densities proportional to x ** (concentration - 1) * exp(-rate *
    x).

    Args:
        concentration: the shape.
        rate: the inverse of the scale.
        validate_args: check parameters and values.

    Raises:
        ValueError: a parameter that is not positive.

    Example:
        >>> import pygrad
        >>> pygrad.distributions.Gamma(3.0, 2.0).mean
        tensor(1.5000)
    """

    arg_constraints: Any = {  # noqa: RUF012
        "concentration": constraints.positive,
        "rate": constraints.positive,
    }
    support = constraints.nonnegative
    has_rsample = True
    _mean_carrier_measure = 0

    def __init__(self, concentration: Any, rate: Any, validate_args: bool | None = None) -> None:
        self.concentration, self.rate = broadcast_all(concentration, rate)
        super().__init__(self.concentration.size(), validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        return self.concentration / self.rate

    @property
    def mode(self) -> Tensor:
        return ((self.concentration - 1) / self.rate).clamp(min=0)

    @property
    def variance(self) -> Tensor:
        return self.concentration / self.rate.pow(2)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        drawn = _standard_gamma(self.concentration.expand(shape)) / self.rate.expand(shape)
        drawn.detach().clamp_(min=pygrad.finfo(drawn.dtype).tiny)  # not part of the graph
        return drawn

    def log_prob(self, value: Any) -> Any:
        value = pygrad.as_tensor(value, dtype=self.rate.dtype)
        self._check(value)
        power = (self.concentration - 1).xlogy(value)
        norm = self.concentration.xlogy(self.rate) - self.concentration.lgamma()
        return norm + power - self.rate * value

    def cdf(self, value: Tensor) -> Tensor:
        self._check(value)
        return special.gammainc(self.concentration, self.rate * value)

    def entropy(self) -> Any:
        a = self.concentration
        return a - self.rate.log() + a.lgamma() + (1 - a) * a.digamma()

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        return self.concentration - 1, -self.rate

    def _log_normalizer(self, x: Tensor, y: Tensor) -> Any:
        return (x + 1).lgamma() - (x + 1) * (-y).log()
