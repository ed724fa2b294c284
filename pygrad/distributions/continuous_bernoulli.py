"""The continuous Bernoulli distribution."""

from __future__ import annotations

import math
from typing import Any

from .._tensor import namespace as pygrad
from .._tensor.tensor import Tensor
from ..nn import functional as F
from . import constraints
from ._odds import Odds
from .exp_family import ExponentialFamily
from .utils import broadcast_all, clamp_probs, lazy_property, logits_to_probs

__all__ = ["ContinuousBernoulli"]


class ContinuousBernoulli(Odds, ExponentialFamily):
    """Distributions over numbers between 0 and 1, with densities proportional to p ** x (1 - p) **
    (1 - x).

    Args:
        probs: p.
        logits: the log-odds log(p / (1 - p)); one of the two is given.
        lims: between these, p is treated as one half, with series instead of divisions by 0.
        validate_args: check parameters and values.

    Raises:
        ValueError: both or none given, or no probabilities.

    Example:
        >>> import pygrad
        >>> pygrad.distributions.ContinuousBernoulli(0.5).mean
        tensor(0.5000)
    """

    support = constraints.unit_interval
    has_rsample = True

    def __init__(
        self,
        probs: Any = None,
        logits: Any = None,
        lims: tuple[float, float] = (0.499, 0.501),
        validate_args: bool | None = None,
    ) -> None:
        if probs is not None and validate_args is not None:
            (given,) = broadcast_all(probs)
            if not bool(self.arg_constraints["probs"].check(given).all()):
                raise ValueError("The parameter probs has invalid values")
        self._lims = lims
        super().__init__(probs, logits, validate_args)
        if probs is not None:
            self.probs = clamp_probs(self.probs)

    @lazy_property
    def probs(self) -> Tensor:
        """p, clamped away from 0 and 1."""
        return clamp_probs(logits_to_probs(self.logits, is_binary=True))

    def _expand_more(self, new: Any, batch_shape: Any) -> None:
        new._lims = self._lims

    def _outside_unstable_region(self) -> Tensor:
        """Whether p is far from one half."""
        return (self.probs <= self._lims[0]) | (self.probs > self._lims[1])

    def _cut_probs(self) -> Tensor:
        """p, with another value where it is near one half."""
        return pygrad.where(
            self._outside_unstable_region(), self.probs, pygrad.full_like(self.probs, self._lims[0])
        )

    def _cont_bern_log_norm(self) -> Tensor:
        cut = self._cut_probs()
        below = pygrad.where(cut <= 0.5, cut, pygrad.zeros_like(cut))
        above = pygrad.where(cut >= 0.5, cut, pygrad.ones_like(cut))
        found = ((-cut).log1p() - cut.log()).abs().log() - pygrad.where(
            cut <= 0.5, (-2.0 * below).log1p(), (2.0 * above - 1.0).log()
        )
        x = (self.probs - 0.5).pow(2)
        series = math.log(2.0) + (4.0 / 3.0 + 104.0 / 45.0 * x) * x
        return pygrad.where(self._outside_unstable_region(), found, series)

    @property
    def mean(self) -> Tensor:
        cut = self._cut_probs()
        found = cut / (2.0 * cut - 1.0) + 1.0 / ((-cut).log1p() - cut.log())
        x = self.probs - 0.5
        return pygrad.where(
            self._outside_unstable_region(), found, 0.5 + (1.0 / 3.0 + 16.0 / 45.0 * x.pow(2)) * x
        )

    @property
    def stddev(self) -> Tensor:
        return self.variance.sqrt()

    @property
    def variance(self) -> Tensor:
        cut = self._cut_probs()
        found = cut * (cut - 1.0) / (1.0 - 2.0 * cut).pow(2)
        found = found + 1.0 / ((-cut).log1p() - cut.log()).pow(2)
        x = (self.probs - 0.5).pow(2)
        series = 1.0 / 12.0 - (1.0 / 15.0 - 128.0 / 945.0 * x) * x
        return pygrad.where(self._outside_unstable_region(), found, series)

    def sample(self, sample_shape: Any = ()) -> Tensor:
        with pygrad.no_grad():
            return self.rsample(sample_shape)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        return self.icdf(pygrad.rand(shape, dtype=self.probs.dtype))

    def log_prob(self, value: Tensor) -> Tensor:
        self._check(value)
        logits, value = broadcast_all(self.logits, value)
        loss = F.binary_cross_entropy_with_logits(logits, value, reduction="none")
        return -loss + self._cont_bern_log_norm()

    def cdf(self, value: Tensor) -> Tensor:
        self._check(value)
        cut = self._cut_probs()
        found = cut.pow(value) * (1.0 - cut).pow(1.0 - value) + cut - 1.0
        found = pygrad.where(self._outside_unstable_region(), found / (2.0 * cut - 1.0), value)
        inside = pygrad.where(value >= 1.0, pygrad.ones_like(found), found)
        return pygrad.where(value <= 0.0, pygrad.zeros_like(found), inside)

    def icdf(self, value: Tensor) -> Tensor:
        cut = self._cut_probs()
        found = (-cut + value * (2.0 * cut - 1.0)).log1p() - (-cut).log1p()
        return pygrad.where(
            self._outside_unstable_region(), found / (cut.log() - (-cut).log1p()), value
        )

    def entropy(self) -> Tensor:
        of_none, of_one = (-self.probs).log1p(), self.probs.log()
        return self.mean * (of_none - of_one) - self._cont_bern_log_norm() - of_none

    _mean_carrier_measure = 0

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        return (self.logits,)

    def _log_normalizer(self, x: Tensor) -> Any:
        low, high = (lim - 0.5 for lim in self._lims)
        far = (x <= low) | (x > high)
        cut = pygrad.where(far, x, pygrad.full_like(x, low))
        found = cut.expm1().abs().log() - cut.abs().log()
        series = (0.5 + (1 / 24 - x.pow(2) / 2880) * x) * x
        return pygrad.where(far, found, series)
