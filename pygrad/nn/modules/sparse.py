"""Trained lookup tables."""

from __future__ import annotations

from ..._tensor import namespace as pygrad
from ..._tensor.tensor import Tensor
from .. import functional as F
from .. import init
from .._types import DeviceLike, DTypeLike
from ..parameter import Parameter
from .module import Module

__all__ = ["Embedding", "EmbeddingBag"]


class Embedding(Module):
    """A table of vectors looked up by index, drawn from the standard normal distribution.

    Args:
        num_embeddings: rows of the table.
        embedding_dim: length of a row.
        padding_idx: a row that stays zero and gets no gradient.
        max_norm: scale rows down to this norm when they are looked up, in place.
        norm_type: the p of that norm.
        scale_grad_by_freq: divide a row's gradient by the number of its lookups.
        sparse: return a sparse gradient.

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
        """Redraw the table; zero the padding row."""
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
        """Makes a table from a matrix (num_embeddings, embedding_dim), by default not trained.

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


class EmbeddingBag(Module):
    """Sums, means or maxima of bags of rows of a table, which is drawn as for :class:`Embedding`.

    Args:
        num_embeddings: rows of the table.
        embedding_dim: length of a row.
        max_norm: scale rows down to this norm when they are looked up, in place.
        norm_type: the p of that norm.
        scale_grad_by_freq: divide a row's gradient by the number of its lookups.
        mode: "sum", "mean" or "max".
        sparse: return a sparse gradient.
        include_last_offset: offsets end with the number of indices.
        padding_idx: a row that stays zero, is not counted and gets no gradient.

    Shape: indices (B, N), or (N) and offsets (B) -> (B, embedding_dim).

    Raises:
        AssertionError: ``padding_idx`` is outside the table, or a given weight has another shape.

    Example:
        >>> import pygrad
        >>> table = pygrad.nn.EmbeddingBag(10, 3, mode="sum")
        >>> tuple(table(pygrad.tensor([1, 2, 4, 5]), pygrad.tensor([0, 3])).shape)
        (2, 3)
    """

    weight: Parameter

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        mode: str = "mean",
        sparse: bool = False,
        _weight: Tensor | None = None,
        include_last_offset: bool = False,
        padding_idx: int | None = None,
        device: DeviceLike = None,
        dtype: DTypeLike = None,
    ) -> None:
        super().__init__()
        self.num_embeddings = num_embeddings
        self.embedding_dim = embedding_dim
        self.max_norm = max_norm
        self.norm_type = norm_type
        self.scale_grad_by_freq = scale_grad_by_freq
        if padding_idx is not None:
            if not -num_embeddings <= padding_idx < num_embeddings:
                raise AssertionError("padding_idx must be within num_embeddings")
            padding_idx += num_embeddings if padding_idx < 0 else 0
        self.padding_idx = padding_idx
        if _weight is None:
            table = pygrad.empty((num_embeddings, embedding_dim), device=device, dtype=dtype)
            self.weight = Parameter(table)
            self.reset_parameters()
        else:
            if list(_weight.shape) != [num_embeddings, embedding_dim]:
                raise AssertionError(
                    "Shape of weight does not match num_embeddings and embedding_dim"
                )
            self.weight = Parameter(_weight)
        self.mode = mode
        self.sparse = sparse
        self.include_last_offset = include_last_offset

    def reset_parameters(self) -> None:
        """Redraw the table; zero the padding row."""
        init.normal_(self.weight)
        if self.padding_idx is not None:
            with pygrad.no_grad():
                self.weight[self.padding_idx].fill_(0)

    def forward(
        self,
        input: Tensor,
        offsets: Tensor | None = None,
        per_sample_weights: Tensor | None = None,
    ) -> Tensor:
        """One vector per bag.

        Args:
            input: indices, (B, N), or (N) if there are offsets.
            offsets: the start of each bag.
            per_sample_weights: factors of the shape of the indices; only for "sum".
        """
        return F.embedding_bag(
            input,
            self.weight,
            offsets,
            self.max_norm,
            self.norm_type,
            self.scale_grad_by_freq,
            self.mode,
            self.sparse,
            per_sample_weights,
            self.include_last_offset,
            self.padding_idx,
        )

    def extra_repr(self) -> str:
        parts = [f"{self.num_embeddings}, {self.embedding_dim}"]
        if self.max_norm is not None:
            parts.append(f"max_norm={self.max_norm}")
        if self.norm_type != 2:
            parts.append(f"norm_type={self.norm_type}")
        if self.scale_grad_by_freq is not False:
            parts.append(f"scale_grad_by_freq={self.scale_grad_by_freq}")
        parts.append(f"mode={self.mode!r}")
        if self.padding_idx is not None:
            parts.append(f"padding_idx={self.padding_idx}")
        return ", ".join(parts)

    @classmethod
    def from_pretrained(
        cls,
        embeddings: Tensor,
        freeze: bool = True,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        mode: str = "mean",
        sparse: bool = False,
        include_last_offset: bool = False,
        padding_idx: int | None = None,
    ) -> EmbeddingBag:
        """Makes a table from a matrix (num_embeddings, embedding_dim), by default not trained.

        Example:
            >>> import pygrad
            >>> rows = pygrad.tensor([[1.0, 2.0], [3.0, 4.0]])
            >>> pygrad.nn.EmbeddingBag.from_pretrained(rows)(pygrad.tensor([[0, 1]])).tolist()
            [[2.0, 3.0]]
        """
        if embeddings.dim() != 2:
            raise AssertionError("Embeddings parameter is expected to be 2-dimensional")
        rows, cols = embeddings.shape
        made = cls(
            num_embeddings=rows,
            embedding_dim=cols,
            max_norm=max_norm,
            norm_type=norm_type,
            scale_grad_by_freq=scale_grad_by_freq,
            mode=mode,
            sparse=sparse,
            _weight=embeddings,
            include_last_offset=include_last_offset,
            padding_idx=padding_idx,
        )
        made.weight.requires_grad = not freeze
        return made
