"""What distributions near to discrete ones have in common: the base draws on the whole line."""

from __future__ import annotations

from typing import Any

from .._tensor import Tensor
from .transformed_distribution import TransformedDistribution


class Relaxed(TransformedDistribution):
    """A transformed distribution with the parameters of its base."""

    @property
    def temperature(self) -> Any:
        """How far values are from those of the discrete distribution."""
        return self.base_dist.temperature

    @property
    def logits(self) -> Tensor:
        """Those of the discrete distribution."""
        return self.base_dist.logits  # type: ignore[no-any-return]

    @property
    def probs(self) -> Tensor:
        """The probabilities of the discrete distribution."""
        return self.base_dist.probs  # type: ignore[no-any-return]
