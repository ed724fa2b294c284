"""What distributions with one probability have in common."""

from __future__ import annotations

from typing import Any

from .._dtypes import Size
from .._tensor import Tensor
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
    """A distribution given by the probability of success, or by the logarithm of its odds."""

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
        """Logarithms of the odds."""
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
