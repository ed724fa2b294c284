"""The negative binomial distribution."""

from __future__ import annotations

from typing import Any

from .._tensor import namespace as pygrad
from .._tensor.tensor import Tensor
from ..nn import functional as F
from . import constraints
from ._odds import CountedOdds
from .gamma import Gamma
from .utils import lazy_property

__all__ = ["NegativeBinomial"]


class NegativeBinomial(CountedOdds):
    """Distributions of the number of successes before `total_count` failures.

    Args:
        total_count: the number of failures, any number from 0 on.
        probs: the probability of success.
        logits: the log-odds of success; one of the two is given.
        validate_args: check parameters and values.

    Raises:
        ValueError: both or none given, or out of range.

    Example:
        >>> import pygrad
        >>> pygrad.distributions.NegativeBinomial(2.0, 0.5).mean
        tensor(2.)
    """

    arg_constraints = {  # noqa: RUF012
        "total_count": constraints.greater_than_eq(0),
        "probs": constraints.half_open_interval(0.0, 1.0),
        "logits": constraints.real,
    }
    support = constraints.nonnegative_integer

    @property
    def mean(self) -> Tensor:
        return self.total_count * self.logits.exp()

    @property
    def mode(self) -> Tensor:
        return ((self.total_count - 1) * self.logits.exp()).floor().clamp(min=0.0)

    @property
    def variance(self) -> Tensor:
        return self.mean / (-self.logits).sigmoid()

    @lazy_property
    def _gamma(self) -> Gamma:
        """The distribution of the rates of the Poisson values."""
        return Gamma(self.total_count, (-self.logits).exp(), validate_args=False)

    def sample(self, sample_shape: Any = ()) -> Tensor:
        with pygrad.no_grad():
            return pygrad.poisson(self._gamma.sample(sample_shape))

    def log_prob(self, value: Tensor) -> Tensor:
        self._check(value)
        n = self.total_count
        power = n * F.logsigmoid(-self.logits) + value * F.logsigmoid(self.logits)
        norm = (1.0 + value).lgamma() + n.lgamma() - (n + value).lgamma()
        # With 0 failures, 0 successes are certain: log-probability 0. But lgamma(0) is infinite.
        return power - norm.masked_fill(n + value == 0.0, 0.0)
