"""The generalized Pareto distribution."""

from __future__ import annotations

import math
from typing import Any

from .._tensor import namespace as pygrad
from .._tensor.tensor import Tensor
from . import constraints
from .distribution import Distribution
from .utils import broadcast_all

__all__ = ["GeneralizedPareto"]


class GeneralizedPareto(Distribution):
    """Generalized Pareto distributions: values above a high threshold.

    Args:
        loc: the least value.
        scale: the width.
        concentration: the shape: 0 gives an exponential tail, a negative value a bounded one.
        validate_args: check parameters and values.

    Raises:
        ValueError: a scale that is not positive.

    Example:
        >>> import pygrad
        >>> pygrad.distributions.GeneralizedPareto(1.0, 2.0, 0.5).mean
        tensor(5.)
    """

    arg_constraints = {  # noqa: RUF012
        "loc": constraints.real,
        "scale": constraints.positive,
        "concentration": constraints.real,
    }
    has_rsample = True

    def __init__(
        self, loc: Any, scale: Any, concentration: Any, validate_args: bool | None = None
    ) -> None:
        self.loc, self.scale, self.concentration = broadcast_all(loc, scale, concentration)
        super().__init__(self.loc.size(), validate_args=validate_args)

    @constraints.dependent_property(is_discrete=False, event_dim=0)
    def support(self) -> constraints.Constraint:
        """Numbers from `loc` on, up to a bound if the concentration is below 0."""
        end = self.loc - self.scale / self.concentration
        upper = pygrad.where(self.concentration < 0, end, math.inf)
        return constraints.interval(lower_bound=self.loc, upper_bound=upper)

    def _tail(self) -> tuple[Tensor, Tensor]:
        """A mask of exponential tails (concentration 0); the concentration, with 1 at the mask."""
        none = pygrad.isclose(self.concentration, pygrad.zeros_like(self.concentration))
        return none, self.concentration.masked_fill(none, 1)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        return self.icdf(pygrad.rand(shape, dtype=self.loc.dtype))

    def log_prob(self, value: Tensor) -> Tensor:
        self._check(value)
        z = (value - self.loc) / self.scale
        exponential, k = self._tail()
        power = 1 / k + pygrad.ones_like(z)
        found = pygrad.where(power == 0, power, power * (k * z).log1p())
        return -self.scale.log() - pygrad.where(exponential, z, found)

    def log_survival_function(self, value: Tensor) -> Tensor:
        """The log-probability of a greater value."""
        self._check(value)
        z = (value - self.loc) / self.scale
        exponential, k = self._tail()
        return pygrad.where(exponential, -z, -(k * z).log1p() / k)

    def log_cdf(self, value: Tensor) -> Tensor:
        """The logarithm of :meth:`cdf`."""
        return (-self.log_survival_function(value).exp()).log1p()

    def cdf(self, value: Tensor) -> Tensor:
        return self.log_cdf(value).exp()

    def icdf(self, value: Tensor) -> Tensor:
        exponential, k = self._tail()
        above = (-value).log1p()
        found = self.loc + self.scale / k * (-k * above).expm1()
        return pygrad.where(exponential, self.loc - self.scale * above, found)

    @property
    def mean(self) -> Tensor:
        none = ~(self.concentration < 1)
        found = self.loc + self.scale / (1 - self.concentration.masked_fill(none, 0.5))
        return found.masked_fill(none, math.nan)

    @property
    def variance(self) -> Tensor:
        none = ~(self.concentration < 0.5)
        k = self.concentration.masked_fill(none, 0.25)
        found = self.scale**2 / ((1 - k) ** 2 * (1 - 2 * k))
        return found.masked_fill(none, math.nan)

    @property
    def mode(self) -> Tensor:
        return self.loc

    def entropy(self) -> Any:
        return (self.scale.log() + self.concentration + 1).expand(self._batch_shape)
