"""The base classes of distributions with one probability, and of those over counts."""

from __future__ import annotations

from typing import Any

from .._ground.dtypes import Size
from .._tensor.tensor import Tensor
from . import constraints
from .distribution import Distribution
from .utils import (
    broadcast_all,
    exactly_one,
    lazy_property,
    logits_to_probs,
    probs_to_logits,
)


class Odds(Distribution):
    """A distribution parametrized by the probability of success, or by its log-odds."""

    arg_constraints = {  # noqa: RUF012
        "probs": constraints.unit_interval,
        "logits": constraints.real,
    }

    def __init__(
        self, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ) -> None:
        exactly_one(probs, logits)
        if probs is not None:
            (self.probs,) = broadcast_all(probs)
        else:
            (self.logits,) = broadcast_all(logits)
        super().__init__(self._given_shape(), validate_args=validate_args)

    @lazy_property
    def logits(self) -> Tensor:
        """The log-odds."""
        return probs_to_logits(self.probs, is_binary=True)

    @lazy_property
    def probs(self) -> Tensor:
        """Probabilities of success."""
        return logits_to_probs(self.logits, is_binary=True)

    @property
    def param_shape(self) -> Size:
        """The shape of the parameter."""
        return self._given_shape()

    def _given_shape(self) -> Size:
        given = self.__dict__["probs" if "probs" in self.__dict__ else "logits"]
        return given.size()  # type: ignore[no-any-return]


class CountedOdds(Odds):
    """A distribution that also has a `total_count`, of the shape and dtype of its parameter."""

    def __init__(
        self,
        total_count: Any,
        probs: Any = None,
        logits: Any = None,
        validate_args: bool | None = None,
    ) -> None:
        exactly_one(probs, logits)
        self.total_count, given = broadcast_all(total_count, probs if logits is None else logits)
        self.total_count = self.total_count.type_as(given)
        probs, logits = (given, None) if logits is None else (None, given)
        super().__init__(probs, logits, validate_args)
