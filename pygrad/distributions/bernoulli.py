"""The Bernoulli distribution."""

from __future__ import annotations

import math
from typing import Any

from .._tensor import namespace as pygrad
from .._tensor.tensor import Tensor
from ..nn import functional as F
from . import constraints
from ._odds import Odds
from .exp_family import ExponentialFamily
from .utils import broadcast_all

__all__ = ["Bernoulli"]


class Bernoulli(Odds, ExponentialFamily):
    """Distributions over 0 and 1.

    Args:
        probs: probabilities of 1.
        logits: log-odds of 1; one of the two is given.
        validate_args: check parameters and values.

    Raises:
        ValueError: both or none given, or values that are no probabilities.

    Example:
        >>> import pygrad
        >>> pygrad.distributions.Bernoulli(0.25).log_prob(pygrad.tensor(1.0)).exp()
        tensor(0.2500)
    """

    support: Any = constraints.boolean
    has_enumerate_support = True

    @property
    def mean(self) -> Tensor:
        return self.probs

    @property
    def mode(self) -> Tensor:
        return (self.probs >= 0.5).to(self.probs).masked_fill(self.probs == 0.5, math.nan)

    @property
    def variance(self) -> Tensor:
        return self.probs * (1 - self.probs)

    def sample(self, sample_shape: Any = ()) -> Tensor:
        with pygrad.no_grad():
            return pygrad.bernoulli(self.probs.expand(self._extended_shape(sample_shape)))

    def log_prob(self, value: Tensor) -> Tensor:
        self._check(value)
        logits, value = broadcast_all(self.logits, value)
        return -F.binary_cross_entropy_with_logits(logits, value, reduction="none")

    def entropy(self) -> Tensor:
        return F.binary_cross_entropy_with_logits(self.logits, self.probs, reduction="none")

    def enumerate_support(self, expand: bool = True) -> Tensor:
        values = pygrad.arange(2, dtype=self.probs.dtype).view(
            (-1,) + (1,) * len(self._batch_shape)
        )
        return values.expand((-1, *self._batch_shape)) if expand else values

    _mean_carrier_measure = 0

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        return (self.probs.logit(),)

    def _log_normalizer(self, x: Tensor) -> Any:
        return x.exp().log1p()
