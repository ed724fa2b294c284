"""The categorical distribution."""

from __future__ import annotations

import math
from typing import Any

from .._ground.dtypes import Size
from .._tensor import namespace as pygrad
from .._tensor.tensor import Tensor
from . import constraints
from .distribution import Distribution
from .utils import exactly_one, lazy_property, logits_to_probs, probs_to_logits

__all__ = ["Categorical"]


class Categorical(Distribution):
    """Distributions over classes 0 to C - 1.

    Args:
        probs: (*, C), weights, not negative.
        logits: (*, C), logarithms of the weights; one of the two is given.
        validate_args: check parameters and values.

    Raises:
        ValueError: both or none given, no classes, or negative weights.

    Example:
        >>> import pygrad
        >>> weights = pygrad.tensor([1.0, 3.0])
        >>> pygrad.distributions.Categorical(weights).log_prob(pygrad.tensor(1)).exp()
        tensor(0.7500)
    """

    arg_constraints = {  # noqa: RUF012
        "probs": constraints.simplex,
        "logits": constraints.real_vector,
    }
    has_enumerate_support = True

    def __init__(
        self, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ) -> None:
        exactly_one(probs, logits)
        given = logits if probs is None else probs
        if given.dim() < 1:
            name = "logits" if probs is None else "probs"
            raise ValueError(f"`{name}` parameter must be at least one-dimensional.")
        if probs is not None:
            self.probs = probs / probs.sum(-1, keepdim=True)
        else:
            self.logits = logits - logits.logsumexp(dim=-1, keepdim=True)
        self._num_events = given.size(-1)
        super().__init__(given.size()[:-1], validate_args=validate_args)

    @lazy_property
    def logits(self) -> Tensor:
        """Logarithms of the probabilities."""
        return probs_to_logits(self.probs)

    @lazy_property
    def probs(self) -> Tensor:
        """The probabilities."""
        return logits_to_probs(self.logits)

    def _expand_more(self, new: Any, batch_shape: Size) -> None:
        new._num_events = self._num_events

    @property
    def _param(self) -> Tensor:
        return self.__dict__.get("probs", self.__dict__.get("logits"))  # type: ignore[return-value]

    @property
    def param_shape(self) -> Size:
        """The shape of the parameter."""
        return self._param.size()  # type: ignore[no-any-return]

    @constraints.dependent_property(is_discrete=True, event_dim=0)
    def support(self) -> constraints.Constraint:
        """The classes."""
        return constraints.integer_interval(lower_bound=0, upper_bound=self._num_events - 1)

    @property
    def mean(self) -> Tensor:
        return pygrad.full(self._extended_shape(), math.nan, dtype=self.probs.dtype)

    @property
    def variance(self) -> Tensor:
        return self.mean

    @property
    def mode(self) -> Tensor:
        return self.probs.argmax(dim=-1)

    def sample(self, sample_shape: Any = ()) -> Tensor:
        sample_shape = Size(sample_shape)
        rows = self.probs.detach().reshape(-1, self._num_events)
        drawn = pygrad.multinomial(rows, sample_shape.numel(), True).T
        return drawn.reshape(self._extended_shape(sample_shape))

    def log_prob(self, value: Tensor) -> Tensor:
        self._check(value)
        value, table = pygrad.broadcast_tensors(value.long().unsqueeze(-1), self.logits)
        return table.gather(-1, value[..., :1]).squeeze(-1)

    def entropy(self) -> Tensor:
        least = pygrad.finfo(self.logits.dtype).min
        return -(self.logits.clamp(min=least) * self.probs).sum(-1)

    def enumerate_support(self, expand: bool = True) -> Tensor:
        values = pygrad.arange(self._num_events).view((-1,) + (1,) * len(self._batch_shape))
        return values.expand((-1, *self._batch_shape)) if expand else values
