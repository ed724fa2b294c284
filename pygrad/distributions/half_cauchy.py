"""The distribution of the absolute value of a Cauchy value."""

from __future__ import annotations

import math
from typing import Any

from .._tensor import namespace as pygrad
from .._tensor.tensor import Tensor
from ._folded import Folded
from .cauchy import Cauchy

__all__ = ["HalfCauchy"]


class HalfCauchy(Folded):
    """Distributions of \\|x\\| for x of a Cauchy distribution about 0.

    Args:
        scale: half the width of x's density at half its maximum.
        validate_args: check parameters and values.

    Raises:
        ValueError: a scale that is not positive.

    Example:
        >>> import pygrad
        >>> pygrad.distributions.HalfCauchy(1.0).cdf(pygrad.tensor(1.0))
        tensor(0.5000)
    """

    def __init__(self, scale: Any, validate_args: bool | None = None) -> None:
        super().__init__(Cauchy(0, scale, validate_args=False), validate_args)

    @property
    def mean(self) -> Tensor:
        return pygrad.full(self._extended_shape(), math.inf, dtype=self.scale.dtype)

    @property
    def variance(self) -> Tensor:
        return self.base_dist.variance  # type: ignore[no-any-return]
