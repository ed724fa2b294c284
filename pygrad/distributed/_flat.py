"""Several tensors, one after another in a flat tensor."""

from __future__ import annotations

from collections.abc import Sequence

from .._tensor import namespace as pygrad
from .._tensor.tensor import Tensor


class Flat:
    """A tensor of one dimension, and a view of it for each of several tensors."""

    __slots__ = ("tensor", "views")

    def __init__(self, like: Sequence[Tensor]) -> None:
        self.tensor = pygrad.empty(sum(each.numel() for each in like), dtype=like[0].dtype)
        self.views = [
            part.view(each.shape)
            for part, each in zip(
                self.tensor.split([each.numel() for each in like]), like, strict=True
            )
        ]

    def gather(self, tensors: Sequence[Tensor]) -> None:
        """Copies the tensors into the flat tensor."""
        for view, each in zip(self.views, tensors, strict=True):
            view.copy_(each)

    def scatter(self, tensors: Sequence[Tensor]) -> None:
        """Copies the views to the tensors."""
        for view, each in zip(self.views, tensors, strict=True):
            each.copy_(view)
