"""A continuous relaxation of the one-hot categorical distribution, with gradients."""

from __future__ import annotations

from typing import Any

from .._ground.dtypes import Size
from .._tensor import namespace as pygrad
from .._tensor.tensor import Tensor
from . import constraints
from ._classes import Classes
from ._relaxed import Relaxed
from .categorical import Categorical
from .transforms import ExpTransform
from .utils import broadcast_all, clamp_probs

__all__ = ["ExpRelaxedCategorical", "RelaxedOneHotCategorical"]


class ExpRelaxedCategorical(Classes):
    """Distributions of the logarithm of a :class:`RelaxedOneHotCategorical` value, with the same
    arguments.

    Example:
        >>> import pygrad
        >>> from pygrad.distributions.relaxed_categorical import ExpRelaxedCategorical
        >>> ExpRelaxedCategorical(pygrad.tensor(1.0), pygrad.ones(3)).sample().shape
        torch.Size([3])
    """

    support = constraints.real_vector
    has_rsample = True

    def __init__(
        self,
        temperature: Any,
        probs: Any = None,
        logits: Any = None,
        validate_args: bool | None = None,
    ) -> None:
        self.temperature = temperature
        super().__init__(Categorical(probs, logits), validate_args)

    def _expand_more(self, new: Any, batch_shape: Size) -> None:
        super()._expand_more(new, batch_shape)
        new.temperature = self.temperature

    def rsample(self, sample_shape: Any = ()) -> Any:
        shape = self._extended_shape(sample_shape)
        drawn = clamp_probs(pygrad.rand(shape, dtype=self.logits.dtype))
        scores = (self.logits - (-drawn.log()).log()) / self.temperature
        return scores - scores.logsumexp(dim=-1, keepdim=True)

    def log_prob(self, value: Tensor) -> Any:
        self._check(value)
        n = self._event_shape[0]
        logits, value = broadcast_all(self.logits, value)
        scale = pygrad.full_like(self.temperature, float(n)).lgamma()
        scale = scale - self.temperature.log().mul(-(n - 1))
        score = logits - value.mul(self.temperature)
        return (score - score.logsumexp(dim=-1, keepdim=True)).sum(-1) + scale


class RelaxedOneHotCategorical(Relaxed):
    """Distributions over vectors with a sum of 1, nearly one-hot for a low temperature.

    Args:
        temperature: a tensor.
        probs: probabilities, (\\*batch, C).
        logits: logarithms of the probabilities; one of the two is given.
        validate_args: check parameters and values.

    Raises:
        ValueError: both or none given, or no probabilities.

    Example:
        >>> import pygrad
        >>> from pygrad.distributions import RelaxedOneHotCategorical
        >>> RelaxedOneHotCategorical(pygrad.tensor(0.5), pygrad.ones(3)).rsample().shape
        torch.Size([3])
    """

    arg_constraints = Categorical.arg_constraints
    support = constraints.simplex

    def __init__(
        self,
        temperature: Any,
        probs: Any = None,
        logits: Any = None,
        validate_args: bool | None = None,
    ) -> None:
        base = ExpRelaxedCategorical(temperature, probs, logits, validate_args)
        super().__init__(base, ExpTransform(), validate_args)
