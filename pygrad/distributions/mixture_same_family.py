"""Mixtures of distributions of one type."""

from __future__ import annotations

from typing import Any

from .._ground.dtypes import Size
from .._tensor import namespace as pygrad
from .._tensor.tensor import Tensor
from . import constraints
from .categorical import Categorical
from .distribution import Distribution

__all__ = ["MixtureSameFamily"]


class MixtureSameFamily(Distribution):
    """Mixtures: a categorical distribution selects along the last batch dimension of the
    components.

    Args:
        mixture_distribution: the probabilities of the components.
        component_distribution: the components.
        validate_args: check values.

    Raises:
        ValueError: incompatible shapes, or an argument that is no distribution.

    Example:
        >>> import pygrad
        >>> from pygrad.distributions import Categorical, MixtureSameFamily, Normal
        >>> parts = Normal(pygrad.tensor([-1.0, 1.0]), 1.0)
        >>> MixtureSameFamily(Categorical(pygrad.ones(2)), parts).mean
        tensor(0.)
    """

    arg_constraints: Any = {}  # noqa: RUF012

    def __init__(
        self,
        mixture_distribution: Categorical,
        component_distribution: Distribution,
        validate_args: bool | None = None,
    ) -> None:
        self._mixture_distribution = mixture_distribution
        self._component_distribution = component_distribution
        if not isinstance(mixture_distribution, Categorical):
            raise ValueError(
                " The Mixture distribution needs to be an  instance of "
                "torch.distributions.Categorical"
            )
        if not isinstance(component_distribution, Distribution):
            raise ValueError(
                "The Component distribution need to be an instance of "
                "torch.distributions.Distribution"
            )
        batch = component_distribution.batch_shape
        for a, b in zip(
            reversed(mixture_distribution.batch_shape), reversed(batch[:-1]), strict=False
        ):
            if a != 1 and b != 1 and a != b:
                raise ValueError(
                    f"`mixture_distribution.batch_shape` ({mixture_distribution.batch_shape}) is "
                    "not compatible with `component_distribution.batch_shape`"
                    f"({Size(batch[:-1])})"
                )
        count = mixture_distribution.logits.shape[-1]
        if count != batch[-1]:
            raise ValueError(
                f"`mixture_distribution component` ({count}) does not equal "
                f"`component_distribution.batch_shape[-1]` ({batch[-1]})"
            )
        super().__init__(batch[:-1], component_distribution.event_shape, validate_args)

    def _expand_more(self, new: Any, batch_shape: Size) -> None:
        components = self._component_distribution
        new._mixture_distribution = self._mixture_distribution.expand(batch_shape)
        new._component_distribution = components.expand((*batch_shape, components.batch_shape[-1]))

    @property
    def mixture_distribution(self) -> Categorical:
        """The probabilities of the components, as a distribution."""
        return self._mixture_distribution

    @property
    def component_distribution(self) -> Distribution:
        """The components."""
        return self._component_distribution

    @constraints.dependent_property
    def support(self) -> constraints.Constraint:
        """The support of the components."""
        return constraints.MixtureSameFamilyConstraint(self._component_distribution.support)

    def _weights(self) -> Tensor:
        probs = self._mixture_distribution.probs
        return probs.reshape(tuple(probs.shape) + (1,) * len(self._event_shape))

    def _dim(self) -> int:
        return -1 - len(self._event_shape)

    @property
    def mean(self) -> Tensor:
        return (self._weights() * self._component_distribution.mean).sum(self._dim())

    @property
    def variance(self) -> Tensor:
        parts = self._component_distribution
        inside = (self._weights() * parts.variance).sum(self._dim())
        around = (parts.mean - self.mean.unsqueeze(self._dim())).pow(2)
        return inside + (self._weights() * around).sum(self._dim())

    def cdf(self, x: Tensor) -> Tensor:
        parts = self._component_distribution.cdf(x.unsqueeze(self._dim()))
        return (parts * self._mixture_distribution.probs).sum(-1)

    def log_prob(self, x: Tensor) -> Tensor:
        self._check(x)
        found = self._component_distribution.log_prob(x.unsqueeze(self._dim()))
        weights = self._mixture_distribution.logits.log_softmax(-1)
        return (found + weights).logsumexp(-1)

    def sample(self, sample_shape: Any = ()) -> Tensor:
        with pygrad.no_grad():
            which = self._mixture_distribution.sample(sample_shape)
            drawn = self._component_distribution.sample(sample_shape)
            dim = len(Size(sample_shape)) + len(self._batch_shape)
            tail = tuple(self._event_shape)
            which = which.reshape(tuple(which.shape) + (1,) * (len(tail) + 1))
            which = which.repeat((1,) * (dim + 1) + tail)
            return drawn.gather(dim, which).squeeze(dim)

    def __repr__(self) -> str:
        parts = f"\n  {self._mixture_distribution},\n  {self._component_distribution}"
        return f"MixtureSameFamily({parts})"
