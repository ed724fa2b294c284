"""The multinomial distribution."""

from __future__ import annotations

import math
from typing import Any

from .._ground.dtypes import Size
from .._tensor import namespace as pygrad
from .._tensor.tensor import Tensor
from . import constraints
from ._classes import Classes
from .binomial import Binomial
from .categorical import Categorical
from .utils import broadcast_all

__all__ = ["Multinomial"]


class Multinomial(Classes):
    """Distributions of the counts of C classes in `total_count` draws.

    Args:
        total_count: the number of draws.
        probs: probabilities of the classes, (\\*batch, C).
        logits: logarithms of the probabilities; one of the two is given.
        validate_args: check parameters and values.

    Raises:
        NotImplementedError: a different total_count for each element of a batch.
        ValueError: both or none given, or no probabilities.

    Example:
        >>> import pygrad
        >>> pygrad.distributions.Multinomial(4, pygrad.tensor([0.0, 1.0])).sample()
        tensor([0., 4.])
    """

    def __init__(
        self,
        total_count: int = 1,
        probs: Any = None,
        logits: Any = None,
        validate_args: bool | None = None,
    ) -> None:
        if not isinstance(total_count, int):
            raise NotImplementedError("inhomogeneous total_count is not supported")
        self.total_count = total_count
        categorical = Categorical(probs, logits)
        self._binomial = Binomial(total_count, probs=categorical.probs)
        super().__init__(categorical, validate_args)

    def _expand_more(self, new: Any, batch_shape: Size) -> None:
        super()._expand_more(new, batch_shape)
        new.total_count = self.total_count
        new._binomial = self._binomial.expand(batch_shape + self._event_shape)

    @constraints.dependent_property(is_discrete=True, event_dim=1)
    def support(self) -> constraints.Constraint:
        """Vectors of counts with a sum of the total count."""
        return constraints.multinomial(self.total_count)

    @property
    def mean(self) -> Tensor:
        return self.probs * self.total_count

    @property
    def variance(self) -> Tensor:
        return self.total_count * self.probs * (1 - self.probs)

    def sample(self, sample_shape: Any = ()) -> Tensor:
        classes = self._categorical.sample(Size((self.total_count,)) + Size(sample_shape))
        shape = self._extended_shape(sample_shape)
        classes = classes.permute(*range(1, classes.dim()), 0)
        ones = pygrad.ones_like(classes)
        counts = classes.new_zeros(shape).scatter_add_(-1, classes, ones)
        return counts.type_as(self.probs)

    def log_prob(self, value: Tensor) -> Tensor:
        self._check(value)
        logits, value = broadcast_all(self.logits, value)
        ways = (value.sum(-1) + 1).lgamma() - (value + 1).lgamma().sum(-1)
        logits = logits.masked_fill((value == 0) & (logits == -math.inf), 0)
        return ways + (logits * value).sum(-1)

    def entropy(self) -> Tensor:
        n = pygrad.tensor(self.total_count)
        classes = self._categorical.entropy()
        counts = self._binomial.enumerate_support(expand=False)[1:]
        weights = self._binomial.log_prob(counts).exp()
        ways = (weights * (counts + 1).lgamma()).sum((0, -1))
        return n * classes - (n + 1).lgamma() + ways
