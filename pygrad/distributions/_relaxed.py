"""The base class of continuous relaxations of discrete distributions."""

from __future__ import annotations

from typing import Any

from .._tensor.tensor import Tensor
from .transformed_distribution import TransformedDistribution


class Relaxed(TransformedDistribution):
    """A transformed distribution with the parameters of its base."""

    @property
    def temperature(self) -> Any:
        """The temperature: the smaller it is, the closer values are to discrete ones."""
        return self.base_dist.temperature

    @property
    def logits(self) -> Tensor:
        """The logits of the discrete distribution."""
        return self.base_dist.logits  # type: ignore[no-any-return]

    @property
    def probs(self) -> Tensor:
        """The probabilities of the discrete distribution."""
        return self.base_dist.probs  # type: ignore[no-any-return]
