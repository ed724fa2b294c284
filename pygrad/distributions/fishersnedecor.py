"""Fisher's and Snedecor's distribution."""

from __future__ import annotations

import math
from typing import Any

from .._ground.dtypes import Size
from .._tensor import namespace as pygrad
from .._tensor.tensor import Tensor
from . import constraints
from .distribution import Distribution
from .gamma import Gamma
from .utils import broadcast_all

__all__ = ["FisherSnedecor"]


class FisherSnedecor(Distribution):
    """F-distributions: the ratio of two chi-squared values, each divided by its degrees of freedom.

    Args:
        df1: the degrees of freedom of the numerator.
        df2: the degrees of freedom of the denominator.
        validate_args: check parameters and values.

    Raises:
        ValueError: a parameter that is not positive.

    Example:
        >>> import pygrad
        >>> pygrad.distributions.FisherSnedecor(1.0, 4.0).mean
        tensor(2.)
    """

    arg_constraints = {"df1": constraints.positive, "df2": constraints.positive}  # noqa: RUF012
    support = constraints.positive
    has_rsample = True

    def __init__(self, df1: Any, df2: Any, validate_args: bool | None = None) -> None:
        self.df1, self.df2 = broadcast_all(df1, df2)
        self._gamma1 = Gamma(self.df1 * 0.5, self.df1)
        self._gamma2 = Gamma(self.df2 * 0.5, self.df2)
        super().__init__(self.df1.size(), validate_args=validate_args)

    def _expand_more(self, new: Any, batch_shape: Size) -> None:
        new._gamma1 = self._gamma1.expand(batch_shape)
        new._gamma2 = self._gamma2.expand(batch_shape)

    @property
    def mean(self) -> Tensor:
        df2 = self.df2.masked_fill(self.df2 <= 2, math.nan)
        return df2 / (df2 - 2)

    @property
    def mode(self) -> Tensor:
        found = (self.df1 - 2) / self.df1 * self.df2 / (self.df2 + 2)
        return found.masked_fill(self.df1 <= 2, math.nan)

    @property
    def variance(self) -> Tensor:
        df1, df2 = self.df1, self.df2.masked_fill(self.df2 <= 4, math.nan)
        return 2 * df2.pow(2) * (df1 + df2 - 2) / (df1 * (df2 - 2).pow(2) * (df2 - 4))

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        above, below = self._gamma1.rsample(sample_shape), self._gamma2.rsample(sample_shape)
        tiny = pygrad.finfo(below.dtype).tiny
        return (above / below.clamp(min=tiny)).clamp(min=tiny)

    def log_prob(self, value: Tensor) -> Tensor:
        self._check(value)
        a, b, ratio = self.df1 * 0.5, self.df2 * 0.5, self.df1 / self.df2
        norm = (a + b).lgamma() - a.lgamma() - b.lgamma()
        return norm + a * ratio.log() + (a - 1) * value.log() - (a + b) * (ratio * value).log1p()
