"""The base class of distributions over vectors with one element per class."""

from __future__ import annotations

from typing import Any

from .._ground.dtypes import Size
from .._tensor.tensor import Tensor
from .categorical import Categorical
from .distribution import Distribution


class Classes(Distribution):
    """A distribution parametrized by class probabilities, which a `Categorical` holds."""

    arg_constraints = Categorical.arg_constraints

    def __init__(self, categorical: Categorical, validate_args: bool | None) -> None:
        self._categorical = categorical
        shape = categorical.param_shape
        super().__init__(shape[:-1], shape[-1:], validate_args)

    def _expand_more(self, new: Any, batch_shape: Size) -> None:
        new._categorical = self._categorical.expand(batch_shape)

    @property
    def probs(self) -> Tensor:
        """The probabilities."""
        return self._categorical.probs

    @property
    def logits(self) -> Tensor:
        """The logarithms of the probabilities."""
        return self._categorical.logits

    @property
    def param_shape(self) -> Size:
        """The shape of the parameter."""
        return self._categorical.param_shape
