"""The Bernoulli distribution."""

from __future__ import annotations

import math
from functools import cached_property
from typing import Any

import pygrad
from pygrad._dtypes import Size
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

__all__ = ["Bernoulli"]


class Bernoulli(Distribution):
    """Distributions over 0 and 1.

    Args:
        probs: probabilities of 1.
        logits: logarithms of the odds of 1; one of the two is given.
        validate_args: check parameters and values.

    Raises:
        ValueError: both or none given, or no probabilities.

    Example:
        >>> import pygrad
        >>> pygrad.distributions.Bernoulli(0.25).log_prob(pygrad.tensor(1.0)).exp()
        tensor(0.2500)
    """

    arg_constraints = {  # noqa: RUF012
        "probs": constraints.unit_interval,
        "logits": constraints.real,
    }
    support: Any = constraints.boolean
    has_enumerate_support = True

    def __init__(
        self, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ) -> None:
        exactly_one(probs, logits)
        if probs is not None:
            (self.probs,) = broadcast_all(probs)
        else:
            (self.logits,) = broadcast_all(logits)
        super().__init__(self.param_shape, validate_args=validate_args)

    @cached_property
    def logits(self) -> Tensor:
        """Logarithms of the odds."""
        return probs_to_logits(self.probs, is_binary=True)

    @cached_property
    def probs(self) -> Tensor:
        """Probabilities of 1."""
        return logits_to_probs(self.logits, is_binary=True)

    @property
    def param_shape(self) -> Size:
        """The shape of the parameter."""
        given = self.__dict__["probs" if "probs" in self.__dict__ else "logits"]
        return given.size()  # type: ignore[no-any-return]

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
