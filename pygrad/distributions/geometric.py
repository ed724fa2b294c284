"""The geometric distribution."""

from __future__ import annotations

from typing import Any

from .._tensor import namespace as pygrad
from .._tensor.tensor import Tensor
from ..nn import functional as F
from . import constraints
from ._odds import Odds
from .utils import broadcast_all

__all__ = ["Geometric"]


class Geometric(Odds):
    """Distributions of the number of failures before the first success.

    Args:
        probs: probabilities of success.
        logits: log-odds of success; one of the two is given.
        validate_args: check parameters and values.

    Raises:
        ValueError: both or none given, or no probabilities.

    Example:
        >>> import pygrad
        >>> pygrad.distributions.Geometric(0.25).mean
        tensor(3.)
    """

    support = constraints.nonnegative_integer

    def __init__(
        self, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ) -> None:
        super().__init__(probs, logits, validate_args)
        if self._validate_args and probs is not None and not bool((self.probs > 0).all()):
            raise ValueError(
                f"Expected parameter probs ({type(self.probs).__name__} of shape "
                f"{tuple(self.probs.shape)}) of distribution {self!r} to be positive but found "
                f"invalid values:\n{self.probs[self.probs <= 0]}"
            )

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
