"""The binomial distribution."""

from __future__ import annotations

from typing import Any

from .._tensor import namespace as pygrad
from .._tensor.tensor import Tensor
from . import constraints
from ._odds import CountedOdds

__all__ = ["Binomial"]


def _positive_part(x: Tensor) -> Tensor:
    """max(x, 0), with gradient 1/2 at 0."""
    return (x.clamp(min=0) + x - x.clamp(max=0)) / 2


class Binomial(CountedOdds):
    """Distributions of the number of successes in `total_count` trials.

    Args:
        total_count: the number of trials.
        probs: the probability of success.
        logits: the log-odds; one of the two is given.
        validate_args: check parameters and values.

    Raises:
        ValueError: both or none given, or out of range.

    Example:
        >>> import pygrad
        >>> pygrad.distributions.Binomial(2, 0.5).log_prob(pygrad.tensor(1.0)).exp()
        tensor(0.5000)
    """

    arg_constraints = {  # noqa: RUF012
        "total_count": constraints.nonnegative_integer,
        **CountedOdds.arg_constraints,
    }
    has_enumerate_support = True

    def __init__(
        self,
        total_count: Any = 1,
        probs: Any = None,
        logits: Any = None,
        validate_args: bool | None = None,
    ) -> None:
        super().__init__(total_count, probs, logits, validate_args)

    @constraints.dependent_property(is_discrete=True, event_dim=0)
    def support(self) -> constraints.Constraint:
        """The integers from 0 to the total count."""
        return constraints.integer_interval(lower_bound=0, upper_bound=self.total_count)

    @property
    def mean(self) -> Tensor:
        return self.total_count * self.probs

    @property
    def mode(self) -> Tensor:
        return ((self.total_count + 1) * self.probs).floor().clamp(max=self.total_count)

    @property
    def variance(self) -> Tensor:
        return self.total_count * self.probs * (1 - self.probs)

    def sample(self, sample_shape: Any = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        with pygrad.no_grad():
            return pygrad.binomial(self.total_count.expand(shape), self.probs.expand(shape))

    def log_prob(self, value: Tensor) -> Tensor:
        self._check(value)
        n, logits = self.total_count, self.logits
        ways = (n + 1).lgamma() - (value + 1).lgamma() - (n - value + 1).lgamma()
        whole = n * _positive_part(logits) + n * (-logits.abs()).exp().log1p()
        return ways + value * logits - whole

    def entropy(self) -> Tensor:
        count = int(self.total_count.max())
        if not bool((self.total_count == count).all()):
            raise NotImplementedError("Inhomogeneous total count not supported by `entropy`.")
        found = self.log_prob(self.enumerate_support(False))
        return -(found.exp() * found).sum(0)

    def enumerate_support(self, expand: bool = True) -> Tensor:
        count = int(self.total_count.max())
        if not bool((self.total_count == count).all()):
            raise NotImplementedError(
                "Inhomogeneous total count not supported by `enumerate_support`."
            )
        values = pygrad.arange(1 + count, dtype=self.total_count.dtype)
        values = values.view((-1,) + (1,) * len(self._batch_shape))
        return values.expand((-1, *self._batch_shape)) if expand else values
