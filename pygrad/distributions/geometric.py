"""The geometric distribution."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import pygrad
from pygrad._tensor import Tensor
from pygrad.distributions import constraints
from pygrad.distributions.distribution import Distribution
from pygrad.distributions.utils import (
    broadcast_all,
    exactly_one,
    logits_to_probs,
    probs_to_logits,
)
from pygrad.nn import functional as F

__all__ = ["Geometric"]


class Geometric(Distribution):
    """Distributions of the number of failures before the first success.

    Args:
        probs: probabilities of success.
        logits: logarithms of the odds; one of the two is given.
        validate_args: check parameters and values.

    Raises:
        ValueError: both or none given, or no probabilities.

    Example:
        >>> import pygrad
        >>> pygrad.distributions.Geometric(0.25).mean
        tensor(3.)
    """

    arg_constraints = {  # noqa: RUF012
        "probs": constraints.unit_interval,
        "logits": constraints.real,
    }
    support = constraints.nonnegative_integer

    def __init__(
        self, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ) -> None:
        exactly_one(probs, logits)
        if probs is not None:
            (self.probs,) = broadcast_all(probs)
            shape = self.probs.size()
        else:
            (self.logits,) = broadcast_all(logits)
            shape = self.logits.size()
        super().__init__(shape, validate_args=validate_args)

    @cached_property
    def logits(self) -> Tensor:
        """Logarithms of the odds."""
        return probs_to_logits(self.probs, is_binary=True)

    @cached_property
    def probs(self) -> Tensor:
        """Probabilities of success."""
        return logits_to_probs(self.logits, is_binary=True)

    @property
    def mean(self) -> Tensor:
        return 1 / self.probs - 1

    @property
    def mode(self) -> Tensor:
        return pygrad.zeros_like(self.probs)

    @property
    def variance(self) -> Tensor:
        return (1 / self.probs - 1) / self.probs

    def sample(self, sample_shape: Any = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        with pygrad.no_grad():
            drawn = pygrad.empty(shape, dtype=self.probs.dtype)
            drawn.uniform_(pygrad.finfo(self.probs.dtype).tiny, 1)
            return (drawn.log() / (-self.probs).log1p()).floor()

    def log_prob(self, value: Tensor) -> Tensor:
        self._check(value)
        value, probs = broadcast_all(value, self.probs)
        failing = probs.masked_fill((probs == 1) & (value == 0), 0)
        return value * (-failing).log1p() + self.probs.log()

    def entropy(self) -> Tensor:
        loss = F.binary_cross_entropy_with_logits(self.logits, self.probs, reduction="none")
        return loss / self.probs
