"""A continuous relaxation of the Bernoulli distribution over (0, 1), with gradients."""

from __future__ import annotations

from typing import Any

from .._ground.dtypes import Size
from .._tensor import namespace as pygrad
from .._tensor.tensor import Tensor
from . import constraints
from ._odds import Odds
from ._relaxed import Relaxed
from .transforms import SigmoidTransform
from .utils import broadcast_all, clamp_probs

__all__ = ["LogitRelaxedBernoulli", "RelaxedBernoulli"]


class LogitRelaxedBernoulli(Odds):
    """Distributions of the logit of a :class:`RelaxedBernoulli` value, with the same arguments.

    Example:
        >>> import pygrad
        >>> from pygrad.distributions.relaxed_bernoulli import LogitRelaxedBernoulli
        >>> LogitRelaxedBernoulli(pygrad.tensor(1.0), 0.5).log_prob(pygrad.tensor(0.0)).exp()
        tensor(0.2500)
    """

    support = constraints.real
    has_rsample = True

    def __init__(
        self,
        temperature: Any,
        probs: Any = None,
        logits: Any = None,
        validate_args: bool | None = None,
    ) -> None:
        self.temperature = temperature
        super().__init__(probs, logits, validate_args)

    def _expand_more(self, new: Any, batch_shape: Size) -> None:
        new.temperature = self.temperature

    @property
    def param_shape(self) -> Size:
        """The shape of the parameter."""
        return self._given_shape()

    def rsample(self, sample_shape: Any = ()) -> Any:
        shape = self._extended_shape(sample_shape)
        probs = clamp_probs(self.probs.expand(shape))
        drawn = clamp_probs(pygrad.rand(shape, dtype=probs.dtype))
        logits = drawn.log() - (-drawn).log1p() + probs.log() - (-probs).log1p()
        return logits / self.temperature

    def log_prob(self, value: Tensor) -> Any:
        self._check(value)
        logits, value = broadcast_all(self.logits, value)
        apart = logits - value.mul(self.temperature)
        return self.temperature.log() + apart - 2 * apart.exp().log1p()


class RelaxedBernoulli(Relaxed):
    """Distributions over (0, 1), concentrated near 0 and 1 for a low temperature.

    Args:
        temperature: a tensor.
        probs: probabilities of 1.
        logits: log-odds of 1; one of the two is given.
        validate_args: check parameters and values.

    Raises:
        ValueError: both or none given, or no probabilities.

    Example:
        >>> import pygrad
        >>> from pygrad.distributions import RelaxedBernoulli
        >>> RelaxedBernoulli(pygrad.tensor(0.5), pygrad.tensor([0.1, 0.9])).sample().shape
        torch.Size([2])
    """

    arg_constraints = Odds.arg_constraints
    support = constraints.unit_interval

    def __init__(
        self,
        temperature: Any,
        probs: Any = None,
        logits: Any = None,
        validate_args: bool | None = None,
    ) -> None:
        base = LogitRelaxedBernoulli(temperature, probs, logits)
        super().__init__(base, SigmoidTransform(), validate_args)
