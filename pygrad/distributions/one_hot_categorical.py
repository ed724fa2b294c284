"""The categorical distribution over one-hot vectors."""

from __future__ import annotations

from typing import Any

from .._tensor import namespace as pygrad
from .._tensor.tensor import Tensor
from ..nn import functional as F
from . import constraints
from ._classes import Classes
from .categorical import Categorical

__all__ = ["OneHotCategorical", "OneHotCategoricalStraightThrough"]


class OneHotCategorical(Classes):
    """Distributions over the C one-hot vectors. Arguments as for :class:`Categorical`.

    Example:
        >>> import pygrad
        >>> pygrad.distributions.OneHotCategorical(pygrad.tensor([0.0, 1.0])).sample()
        tensor([0., 1.])
    """

    support = constraints.one_hot
    has_enumerate_support = True

    def __init__(
        self, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ) -> None:
        super().__init__(Categorical(probs, logits, validate_args), validate_args)

    @property
    def mean(self) -> Tensor:
        return self.probs

    @property
    def mode(self) -> Tensor:
        return F.one_hot(self.probs.argmax(-1), self._event_shape[0]).to(self.probs)

    @property
    def variance(self) -> Tensor:
        return self.probs * (1 - self.probs)

    def sample(self, sample_shape: Any = ()) -> Tensor:
        classes = self._categorical.sample(sample_shape)
        return F.one_hot(classes, self._event_shape[0]).to(self.probs)

    def log_prob(self, value: Tensor) -> Tensor:
        self._check(value)
        return self._categorical.log_prob(value.max(-1)[1])

    def entropy(self) -> Tensor:
        return self._categorical.entropy()

    def enumerate_support(self, expand: bool = True) -> Tensor:
        n = self._event_shape[0]
        values = pygrad.eye(n, dtype=self.probs.dtype)
        values = values.view((n,) + (1,) * len(self._batch_shape) + (n,))
        return values.expand((n, *self._batch_shape, n)) if expand else values


class OneHotCategoricalStraightThrough(OneHotCategorical):
    """One-hot vectors that have the gradient of the probabilities.

    Example:
        >>> import pygrad
        >>> logits = pygrad.zeros(2, requires_grad=True)
        >>> made = pygrad.distributions.OneHotCategoricalStraightThrough(logits=logits)
        >>> made.rsample()[0].backward()
        >>> logits.grad
        tensor([ 0.2500, -0.2500])
    """

    has_rsample = True

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        return self.sample(sample_shape) + (self.probs - self.probs.detach())
