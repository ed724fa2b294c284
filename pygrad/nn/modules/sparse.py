"""Lookup tables that are trained."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pygrad
from pygrad._tensor import Tensor
from pygrad.nn import functional as F
from pygrad.nn import init
from pygrad.nn.modules.module import Module
from pygrad.nn.parameter import Parameter

if TYPE_CHECKING:
    from pygrad.nn._types import DeviceLike, DTypeLike

__all__ = ["Embedding"]


class Embedding(Module):
    """A table of vectors, looked up by integer; drawn from the standard normal distribution.

    Args:
        num_embeddings: rows of the table.
        embedding_dim: length of a row.
        padding_idx: a row that stays zero and gets no gradient.
        max_norm: rows that are looked up are first scaled down to this norm, in place.
        norm_type: the p of that norm.
        scale_grad_by_freq: divide a row's gradient by how often it was looked up.
        sparse: ask for a sparse gradient.

    Shape: indices (*) -> (*, embedding_dim).

    Raises:
        AssertionError: ``padding_idx`` is outside the table, or a given weight has another shape.

    Example:
        >>> import pygrad
        >>> table = pygrad.nn.Embedding(10, 3, padding_idx=0)
        >>> tuple(table(pygrad.tensor([[0, 2], [4, 5]])).shape)
        (2, 2, 3)
    """

    weight: Parameter

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        padding_idx: int | None = None,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        sparse: bool = False,
        _weight: Tensor | None = None,
        _freeze: bool = False,
        device: DeviceLike = None,
        dtype: DTypeLike = None,
    ) -> None:
        super().__init__()
        self.num_embeddings = num_embeddings
        self.embedding_dim = embedding_dim
        if padding_idx is not None:
            if not (padding_idx == 0 or -num_embeddings <= padding_idx < num_embeddings):
                raise AssertionError("Padding_idx must be within num_embeddings")
            padding_idx += num_embeddings if padding_idx < 0 else 0
        self.padding_idx = padding_idx
        self.max_norm = max_norm
        self.norm_type = norm_type
        self.scale_grad_by_freq = scale_grad_by_freq
        if _weight is None:
            table = pygrad.empty((num_embeddings, embedding_dim), device=device, dtype=dtype)
            self.weight = Parameter(table, requires_grad=not _freeze)
            self.reset_parameters()
        else:
            if list(_weight.shape) != [num_embeddings, embedding_dim]:
                raise AssertionError(
                    "Shape of weight does not match num_embeddings and embedding_dim"
                )
            self.weight = Parameter(_weight, requires_grad=not _freeze)
        self.sparse = sparse

    def reset_parameters(self) -> None:
        """Draw the table anew; the padding row becomes zero."""
        init.normal_(self.weight)
        if self.padding_idx is not None:
            with pygrad.no_grad():
                self.weight[self.padding_idx].fill_(0)

    def forward(self, input: Tensor) -> Tensor:
        return F.embedding(
            input,
            self.weight,
            self.padding_idx,
            self.max_norm,
            self.norm_type,
            self.scale_grad_by_freq,
            self.sparse,
        )

    def extra_repr(self) -> str:
        parts = [f"{self.num_embeddings}, {self.embedding_dim}"]
        if self.padding_idx is not None:
            parts.append(f"padding_idx={self.padding_idx}")
        if self.max_norm is not None:
            parts.append(f"max_norm={self.max_norm}")
        if self.norm_type != 2:
            parts.append(f"norm_type={self.norm_type}")
        if self.scale_grad_by_freq is not False:
            parts.append(f"scale_grad_by_freq={self.scale_grad_by_freq}")
        if self.sparse is not False:
            parts.append("sparse=True")
        return ", ".join(parts)

    @classmethod
    def from_pretrained(
        cls,
        embeddings: Tensor,
        freeze: bool = True,
        padding_idx: int | None = None,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        sparse: bool = False,
    ) -> Embedding:
        """A table made of a given matrix (num_embeddings, embedding_dim), by default not trained.

        Example:
            >>> import pygrad
            >>> table = pygrad.nn.Embedding.from_pretrained(pygrad.tensor([[1.0, 2.0], [3.0, 4.0]]))
            >>> table(pygrad.tensor([1])).tolist()
            [[3.0, 4.0]]
        """
        if embeddings.dim() != 2:
            raise AssertionError("Embeddings parameter is expected to be 2-dimensional")
        rows, cols = embeddings.shape
        return cls(
            num_embeddings=rows,
            embedding_dim=cols,
            padding_idx=padding_idx,
            max_norm=max_norm,
            norm_type=norm_type,
            scale_grad_by_freq=scale_grad_by_freq,
            sparse=sparse,
            _weight=embeddings,
            _freeze=freeze,
        )
