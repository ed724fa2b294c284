"""What distributions over vectors with a number for each class have in common."""

from __future__ import annotations

from typing import Any

from .._dtypes import Size
from .._tensor import Tensor
from .categorical import Categorical
from .distribution import Distribution


class Classes(Distribution):
    """A distribution given by the probabilities of the classes, as a `Categorical` has them."""

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
        """Logarithms of the probabilities."""
        return self._categorical.logits

    @property
    def param_shape(self) -> Size:
        """The shape of the parameter."""
        return self._categorical.param_shape
