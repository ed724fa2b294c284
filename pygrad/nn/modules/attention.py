"""Attention: each position of a sequence takes from all positions of another what fits it."""

from __future__ import annotations

import math
import warnings
from typing import TYPE_CHECKING, Any

import pygrad
from pygrad._tensor import Tensor
from pygrad.nn import functional as F
from pygrad.nn import init
from pygrad.nn.modules.linear import Linear
from pygrad.nn.modules.module import Module
from pygrad.nn.parameter import Parameter

if TYPE_CHECKING:
    from pygrad.nn._types import DeviceLike, DTypeLike

__all__ = ["MultiheadAttention"]


class NonDynamicallyQuantizableLinear(Linear):
    """A Linear, by the name that PyTorch prints for this one."""


def _as_numbers(mask: Tensor | None, name: str, like: Tensor) -> Tensor | None:
    """A mask as what is added: minus infinity where a mask of truth values is True."""
    if mask is None or mask.is_floating_point():
        return mask
    if mask.dtype != pygrad.bool:
        raise AssertionError(f"only bool and floating types of {name} are supported")
    return pygrad.zeros_like(mask, dtype=like.dtype).masked_fill(mask, -math.inf)


def _warn_of_mixed(padding: Tensor | None, mask: Tensor | None) -> None:
    if padding is not None and mask is not None and padding.dtype != mask.dtype:
        warnings.warn(
            "Support for mismatched key_padding_mask and attn_mask is deprecated. Use same type "
            "for both instead.",
            stacklevel=6,
        )


class MultiheadAttention(Module):
    """Attention by several heads, each on its share of the features.

    Args:
        embed_dim: features of the query and of the output.
        num_heads: divides `embed_dim`.
        dropout: probability with which a weight becomes zero in training.
        bias: whether the projections have biases.
        add_bias_kv: a learnt position more in key and value.
        add_zero_attn: a position of zeros more in key and value.
        kdim: features of the key, by default `embed_dim`.
        vdim: features of the value, by default `embed_dim`.
        batch_first: batches stand before positions.

    Shape: query (L, N, embed_dim), key (S, N, kdim) and value (S, N, vdim), or all without N
        -> (L, N, embed_dim), and the weights (N, L, S) or None.

    Raises:
        ValueError: a size that is not positive.
        AssertionError: heads that do not divide `embed_dim`, shapes that do not fit.
        RuntimeError: a mask of another shape.

    Example:
        >>> import pygrad
        >>> x = pygrad.ones(5, 2, 8)
        >>> output, weights = pygrad.nn.MultiheadAttention(8, 2)(x, x, x)
        >>> tuple(output.shape), tuple(weights.shape)
        ((5, 2, 8), (2, 5, 5))
    """

    in_proj_weight: Parameter | None
    in_proj_bias: Parameter | None
    bias_k: Parameter | None
    bias_v: Parameter | None

    def __init__(
        self,
        embed_dim: int,
        num_heads: int,
        dropout: float = 0.0,
        bias: bool = True,
        add_bias_kv: bool = False,
        add_zero_attn: bool = False,
        kdim: int | None = None,
        vdim: int | None = None,
        batch_first: bool = False,
        device: DeviceLike = None,
        dtype: DTypeLike = None,
    ) -> None:
        if embed_dim <= 0 or num_heads <= 0:
            raise ValueError(
                "embed_dim and num_heads must be greater than 0, got "
                f"embed_dim={embed_dim} and num_heads={num_heads} instead"
            )
        super().__init__()
        self.embed_dim = embed_dim
        self.kdim = embed_dim if kdim is None else kdim
        self.vdim = embed_dim if vdim is None else vdim
        self._qkv_same_embed_dim = self.kdim == embed_dim and self.vdim == embed_dim
        self.num_heads = num_heads
        self.dropout = dropout
        self.batch_first = batch_first
        self.head_dim = embed_dim // num_heads
        if self.head_dim * num_heads != embed_dim:
            raise AssertionError("embed_dim must be divisible by num_heads")
        whole = self._qkv_same_embed_dim
        for name, shape in (
            ("q_proj_weight", None if whole else (embed_dim, embed_dim)),
            ("k_proj_weight", None if whole else (embed_dim, self.kdim)),
            ("v_proj_weight", None if whole else (embed_dim, self.vdim)),
            ("in_proj_weight", (3 * embed_dim, embed_dim) if whole else None),
            ("in_proj_bias", (3 * embed_dim,) if bias else None),
        ):
            self._make(name, shape, device, dtype)
        self.out_proj = NonDynamicallyQuantizableLinear(
            embed_dim, embed_dim, bias=bias, device=device, dtype=dtype
        )
        for name in ("bias_k", "bias_v"):
            self._make(name, (1, 1, embed_dim) if add_bias_kv else None, device, dtype)
        self.add_zero_attn = add_zero_attn
        self._reset_parameters()

    def _make(
        self, name: str, shape: tuple[int, ...] | None, device: DeviceLike, dtype: DTypeLike
    ) -> None:
        empty = None if shape is None else pygrad.empty(shape, device=device, dtype=dtype)
        self.register_parameter(name, None if empty is None else Parameter(empty))

    def _reset_parameters(self) -> None:
        for name in ("in_proj_weight", "q_proj_weight", "k_proj_weight", "v_proj_weight"):
            if getattr(self, name) is not None:
                init.xavier_uniform_(getattr(self, name))
        if self.in_proj_bias is not None:
            init.constant_(self.in_proj_bias, 0.0)
            init.constant_(self.out_proj.bias, 0.0)  # type: ignore[arg-type]
        for added in (self.bias_k, self.bias_v):
            if added is not None:
                init.xavier_normal_(added)

    def forward(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        key_padding_mask: Tensor | None = None,
        need_weights: bool = True,
        attn_mask: Tensor | None = None,
        average_attn_weights: bool = True,
        is_causal: bool = False,
    ) -> tuple[Tensor, Tensor | None]:
        """What the query takes from the value, and the weights with which it does.

        Args:
            query: see above, as `key` and `value`.
            key: what the query is compared with.
            value: what is taken.
            key_padding_mask: (N, S), True (or minus infinity, which is added) where a key is none.
            need_weights: give the weights too.
            attn_mask: (L, S) or (N * heads, L, S), likewise, for pairs of positions.
            average_attn_weights: over the heads; else (N, heads, L, S).
            is_causal: a hint that `attn_mask` is causal.
        """
        batched = self._check(query, key, value, key_padding_mask, attn_mask)
        if batched and self.batch_first:
            query, key, value = (each.transpose(0, 1) for each in (query, key, value))
        elif not batched:
            query, key, value = (each.unsqueeze(1) for each in (query, key, value))
            if key_padding_mask is not None:
                key_padding_mask = key_padding_mask.unsqueeze(0)
        if query.size(-1) != self.embed_dim:
            raise AssertionError(
                f"was expecting embedding dimension of {self.embed_dim}, but got {query.size(-1)}"
            )
        if is_causal and attn_mask is None:
            raise RuntimeError(
                "Need attn_mask if specifying the is_causal hint. You may use the Transformer "
                "module method `generate_square_subsequent_mask` to create this mask."
            )
        _warn_of_mixed(key_padding_mask, attn_mask)
        padding = _as_numbers(key_padding_mask, "key_padding_mask", query)
        mask = self._pairs(_as_numbers(attn_mask, "attn_mask", query), query, key)
        causal = is_causal and padding is None and not need_weights  # the mask need not be read
        if causal:
            mask = None
        output, weights = self._attend(query, key, value, padding, mask, need_weights, causal)
        output = self.out_proj(output)
        if weights is not None and average_attn_weights:
            weights = weights.mean(dim=1)
        if not batched:
            return output.squeeze(1), None if weights is None else weights.squeeze(0)
        return output.transpose(0, 1) if self.batch_first else output, weights

    def _check(self, query: Tensor, key: Tensor, value: Tensor, padding: Any, mask: Any) -> bool:
        """Whether there is a dimension for batches."""
        rank = query.dim()
        if rank not in (2, 3):
            raise AssertionError(
                "query should be unbatched 2D or batched 3D tensor but received "
                f"{rank}-D query tensor"
            )
        kind = "batched (3-D)" if rank == 3 else "unbatched (2-D)"
        if key.dim() != rank or value.dim() != rank:
            raise AssertionError(
                f"For {kind} `query`, expected `key` and `value` to be {rank}-D but found "
                f"{key.dim()}-D and {value.dim()}-D tensors respectively"
            )
        if padding is not None and padding.dim() != rank - 1:
            raise AssertionError(
                f"For {kind} `query`, expected `key_padding_mask` to be `None` or {rank - 1}-D but "
                f"found {padding.dim()}-D tensor instead"
            )
        if mask is not None and mask.dim() not in (2, 3):
            raise AssertionError(
                f"For {kind} `query`, expected `attn_mask` to be `None`, 2-D or 3-D but found "
                f"{mask.dim()}-D tensor instead"
            )
        return rank == 3

    def _pairs(self, mask: Tensor | None, query: Tensor, key: Tensor) -> Tensor | None:
        """The mask of pairs, (N * heads or 1, L, S)."""
        if mask is None:
            return None
        wanted: tuple[int, ...] = (query.size(0), key.size(0))
        if mask.dim() == 3:
            wanted = (query.size(1) * self.num_heads, *wanted)
        if tuple(mask.shape) != wanted:
            raise RuntimeError(
                f"The shape of the {mask.dim()}D attn_mask is {mask.shape}, but should be {wanted}."
            )
        return mask if mask.dim() == 3 else mask.unsqueeze(0)

    def _projected(self, query: Tensor, key: Tensor, value: Tensor) -> list[Tensor]:
        if self._qkv_same_embed_dim:
            assert self.in_proj_weight is not None
            weights = self.in_proj_weight.chunk(3)
        else:
            weights = (self.q_proj_weight, self.k_proj_weight, self.v_proj_weight)
        biases: Any = (None,) * 3 if self.in_proj_bias is None else self.in_proj_bias.chunk(3)
        given = (query, key, value)
        return [F.linear(x, w, b) for x, w, b in zip(given, weights, biases, strict=True)]

    def _attend(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        padding: Tensor | None,
        mask: Tensor | None,
        need_weights: bool,
        causal: bool,
    ) -> tuple[Tensor, Tensor | None]:
        """Outputs of all heads side by side (L, N, embed_dim), and weights (N, heads, L, S)."""
        length, n, _ = query.shape
        rows = n * self.num_heads
        q, k, v = self._projected(query, key, value)
        added = 0
        if self.bias_k is not None and self.bias_v is not None:
            added = 1
            k = pygrad.cat([k, self.bias_k.repeat(1, n, 1)])
            v = pygrad.cat([v, self.bias_v.repeat(1, n, 1)])
        q, k, v = (x.reshape(x.size(0), rows, self.head_dim).transpose(0, 1) for x in (q, k, v))
        if self.add_zero_attn:
            added += 1
            zeros = pygrad.zeros(rows, 1, self.head_dim, dtype=k.dtype, device=k.device)
            k, v = pygrad.cat([k, zeros], 1), pygrad.cat([v, zeros], 1)
        bias = self._bias(padding, mask, n, added)
        dropout = self.dropout if self.training else 0.0
        if need_weights:
            scores = (q * math.sqrt(1 / self.head_dim)) @ k.transpose(1, 2)
            weights = F.softmax(scores if bias is None else bias + scores, dim=-1)
            weights = F.dropout(weights, p=dropout) if dropout > 0 else weights
            output, shown = weights @ v, weights.reshape(n, self.num_heads, length, k.size(1))
        else:
            heads = (n, self.num_heads, -1, self.head_dim)
            each = None if bias is None else bias.expand(rows, length, k.size(1))
            split = None if each is None else each.reshape(n, self.num_heads, length, k.size(1))
            output = F.scaled_dot_product_attention(
                q.reshape(heads), k.reshape(heads), v.reshape(heads), split, dropout, causal
            ).reshape(rows, length, self.head_dim)
            shown = None
        return output.transpose(0, 1).reshape(length, n, self.embed_dim), shown

    def _bias(
        self, padding: Tensor | None, mask: Tensor | None, n: int, added: int
    ) -> Tensor | None:
        """What is added to the scores, (N * heads or 1, L or 1, S)."""
        if padding is not None:
            source = padding.size(1)
            rows = padding.reshape(n, 1, 1, source).expand(n, self.num_heads, 1, source)
            padding = rows.reshape(n * self.num_heads, 1, source)
            mask = padding if mask is None else mask + padding
        return F.pad(mask, (0, added)) if added and mask is not None else mask
