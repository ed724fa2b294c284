"""What distributions of a function of a normal value have in common."""

from __future__ import annotations

from typing import Any

from pygrad._dtypes import Size
from pygrad._tensor import Tensor
from pygrad.distributions.distribution import Distribution
from pygrad.distributions.normal import Normal


class OfNormal(Distribution):
    """The distribution of a function, `_of`, of what `base_dist` draws."""

    has_rsample = True

    def __init__(self, base: Normal, validate_args: bool | None) -> None:
        self.base_dist = base
        super().__init__(base.batch_shape, validate_args=validate_args)

    @staticmethod
    def _of(x: Tensor) -> Tensor:
        raise NotImplementedError

    def _expand_more(self, new: Any, batch_shape: Size) -> None:
        new.base_dist = self.base_dist.expand(batch_shape)

    @property
    def scale(self) -> Tensor:
        """The standard deviation of the normal value."""
        return self.base_dist.scale

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        return self._of(self.base_dist.rsample(sample_shape))

    def sample(self, sample_shape: Any = ()) -> Tensor:
        return self._of(self.base_dist.sample(sample_shape))
