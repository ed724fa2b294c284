"""The base class of exponential families, whose moments are derivatives of the normalizer."""

from __future__ import annotations

from typing import Any

from .. import autograd
from .._tensor.tensor import Tensor
from .distribution import Distribution
from .utils import _sum_rightmost

__all__ = ["ExponentialFamily"]


class ExponentialFamily(Distribution):
    """Distributions of density h(x) exp(<t(x), n> - A(n)), n the natural parameters.

    A subclass defines ``_natural_params``, ``_log_normalizer`` (A) and ``_mean_carrier_measure``
    (the mean of log h). The entropy, and the divergence between two members of one class, then
    follow by differentiating A.

    Example:
        >>> from pygrad import distributions as d
        >>> d.ExponentialFamily.entropy(d.Exponential(2.0)), d.Exponential(2.0).entropy()
        (tensor(0.3069, grad_fn=<SubBackward0>), tensor(0.3069))
    """

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        raise NotImplementedError

    def _log_normalizer(self, *natural_params: Any, **named: Any) -> Any:
        raise NotImplementedError

    @property
    def _mean_carrier_measure(self) -> Any:
        raise NotImplementedError

    def entropy(self) -> Any:
        whole = -self._mean_carrier_measure
        natural, normalizer, means = self._log_normalizer_gradients()
        found = whole + normalizer
        for parameter, mean in zip(natural, means, strict=True):
            found = found - (parameter * mean).reshape((*self._batch_shape, -1)).sum(-1)
        return found

    def _log_normalizer_gradients(self) -> tuple[list[Tensor], Any, tuple[Tensor, ...]]:
        """The natural parameters as leaves, A at them, and its derivatives, the means of t(x)."""
        natural = [p.detach().requires_grad_() for p in self._natural_params]
        normalizer = self._log_normalizer(*natural)
        return (
            natural,
            normalizer,
            autograd.grad(normalizer.sum(), natural, create_graph=True),
        )

    def _divergence(self, other: ExponentialFamily) -> Any:
        """The divergence from another distribution of the class (a Bregman divergence)."""
        natural, normalizer, means = self._log_normalizer_gradients()
        others = other._natural_params
        found = other._log_normalizer(*others) - normalizer
        for mine, theirs, mean in zip(natural, others, means, strict=True):
            found = found - _sum_rightmost((theirs - mine) * mean, len(other.event_shape))
        return found
