"""The chi-squared distribution."""

from __future__ import annotations

from typing import Any

from .._ground.dtypes import Size
from .._tensor.tensor import Tensor
from . import constraints
from .gamma import Gamma

__all__ = ["Chi2"]


class Chi2(Gamma):
    """Chi-squared distributions: the sum of the squares of `df` standard normal values.

    Args:
        df: the degrees of freedom.
        validate_args: check parameters and values.

    Raises:
        ValueError: a parameter that is not positive.

    Example:
        >>> import pygrad
        >>> pygrad.distributions.Chi2(3.0).mean
        tensor(3.)
    """

    arg_constraints = {"df": constraints.positive}  # noqa: RUF012

    def __init__(self, df: Any, validate_args: bool | None = None) -> None:
        super().__init__(0.5 * df, 0.5, validate_args=validate_args)

    def _expand_more(self, new: Any, batch_shape: Size) -> None:
        new.concentration = self.concentration.expand(batch_shape)
        new.rate = self.rate.expand(batch_shape)

    @property
    def df(self) -> Tensor:
        """The degrees of freedom."""
        return self.concentration * 2
