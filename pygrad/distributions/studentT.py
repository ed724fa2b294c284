"""Student's t-distribution."""

from __future__ import annotations

import math
from typing import Any

from .._ground.dtypes import Size
from .._tensor.tensor import Tensor
from . import constraints
from .chi2 import Chi2
from .distribution import Distribution
from .utils import _standard_normal, broadcast_all

__all__ = ["StudentT"]


class StudentT(Distribution):
    """Student's t-distributions: a normal value over the root of a chi-squared value divided by
    `df`.

    Args:
        df: the degrees of freedom.
        loc: the center.
        scale: the width.
        validate_args: check parameters and values.

    Raises:
        ValueError: df or scale that is not positive.

    Example:
        >>> import pygrad
        >>> pygrad.distributions.StudentT(3.0).variance
        tensor(3.)
    """

    arg_constraints = {  # noqa: RUF012
        "df": constraints.positive,
        "loc": constraints.real,
        "scale": constraints.positive,
    }
    support = constraints.real
    has_rsample = True

    def __init__(
        self, df: Any, loc: Any = 0.0, scale: Any = 1.0, validate_args: bool | None = None
    ) -> None:
        self.df, self.loc, self.scale = broadcast_all(df, loc, scale)
        self._chi2 = Chi2(self.df)
        super().__init__(self.df.size(), validate_args=validate_args)

    def _expand_more(self, new: Any, batch_shape: Size) -> None:
        new._chi2 = self._chi2.expand(batch_shape)

    @property
    def mean(self) -> Tensor:
        return self.loc.masked_fill(self.df <= 1, math.nan)

    @property
    def mode(self) -> Tensor:
        return self.loc

    @property
    def variance(self) -> Tensor:
        none = self.df <= 2
        df = self.df.masked_fill(none, 3)
        found = self.scale.pow(2) * df / (df - 2)
        return found.masked_fill(none, math.inf).masked_fill(self.df <= 1, math.nan)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        noise = _standard_normal(self._extended_shape(sample_shape), self.df.dtype)
        size = (self._chi2.rsample(sample_shape) / self.df).rsqrt()
        return self.loc + self.scale * (noise * size)

    def log_prob(self, value: Tensor) -> Any:
        self._check(value)
        y = (value - self.loc) / self.scale
        half, more = 0.5 * self.df, 0.5 * (self.df + 1.0)
        norm = self.scale.log() + 0.5 * self.df.log() + 0.5 * math.log(math.pi)
        norm = norm + half.lgamma() - more.lgamma()
        return -more * (y**2.0 / self.df).log1p() - norm

    def entropy(self) -> Any:
        half, more = 0.5 * self.df, 0.5 * (self.df + 1)
        log_beta = half.lgamma() + math.lgamma(0.5) - more.lgamma()
        slope = more * (more.digamma() - half.digamma())
        return self.scale.log() + slope + 0.5 * self.df.log() + log_beta
