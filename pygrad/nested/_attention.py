"""Attention of nested tensors: of each entry by itself."""

from __future__ import annotations

from typing import Any

from .._table import functions
from .._tensor.tensor import Tensor
from ._class import Nested, packed_tensor, rule
from ._internal.nested_tensor import RULES as JAGGED
from ._internal.nested_tensor import NestedTensor
from ._jagged_shapes import jagged_like, transpose
from ._strided import RULES as STRIDED
from ._strided import StridedNestedTensor, each

_F, _NN = functions.SPACES["torch"], functions.SPACES["nn"]
_NO_WAY = "No viable backend for scaled_dot_product_attention was found."


@rule(JAGGED, "scaled_dot_product_attention")
def jagged_attention(
    query: Any,
    key: Any,
    value: Any,
    attn_mask: Any = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Any:
    """The attention of heads (batch, heads, ragged, features) within each entry."""
    given = (query, key, value)
    if attn_mask is not None:
        raise ValueError("Masks are not yet supported!")
    if not all(isinstance(x, NestedTensor) for x in given):
        raise ValueError(
            "scaled_dot_product_attention: query, key and value must be nested tensors of the "
            "jagged layout"
        )
    if is_causal or any(x.dim() != 4 or x._parts.ragged != 2 for x in given):
        raise RuntimeError(_NO_WAY)
    if key._parts.size != value._parts.size or query._parts.batch != key._parts.batch:
        raise ValueError("scaled_dot_product_attention: key and value must have the same offsets")
    entries = zip(*(x._entries("scaled_dot_product_attention") for x in given), strict=True)
    made = [
        _attend(q, k, v, None, dropout_p, is_causal, scale, enable_gqa).transpose(0, 1)
        for q, k, v in entries
    ]
    if query._parts.lengths is not None:
        raise RuntimeError("scaled_dot_product_attention: the query must not have holes")
    flat = transpose(query, 1, 2)
    values = _F["cat"](made) if made else packed_tensor(flat).new_zeros(packed_tensor(flat).shape)
    return transpose(jagged_like(values, flat), 1, 2)


def _attend(q: Tensor, k: Tensor, v: Tensor, *how: Any) -> Tensor:
    """The attention of one entry: (heads, length, features), or without the heads."""
    mask, dropout, causal, scale, grouped = how
    made: Tensor = _NN["scaled_dot_product_attention"](
        q.unsqueeze(0),
        k.unsqueeze(0),
        v.unsqueeze(0),
        mask,
        dropout,
        causal,
        scale=scale,
        enable_gqa=grouped,
    )
    return made.squeeze(0)


@rule(STRIDED, "scaled_dot_product_attention")
def strided_attention(
    query: Any,
    key: Any,
    value: Any,
    attn_mask: Any = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Any:
    """The attention within each entry."""
    given = (query, key, value)
    if attn_mask is not None:
        raise RuntimeError(
            "Scaled_dot_product_attention: Nested tensors for query / key are not supported when "
            "an explicit attn_mask is set"
        )
    if is_causal:
        raise RuntimeError(
            "_scaled_dot_product_attention: Nested tensors for query / key are not supported when "
            "is_causal=True"
        )
    for x in given:
        if not isinstance(x, StridedNestedTensor):
            kinds = ["nested" if isinstance(y, Nested) else "non-nested" for y in (query, x)]
            raise RuntimeError(
                f"Expected both to be nested, but got a {kinds[0]} self and {kinds[1]} other"
            )
    if not all(x.is_contiguous() for x in given):
        raise RuntimeError(
            "scaled_dot_product_attention: If inputs are nested tensors they must be contiguous"
        )
    return each(
        lambda q, k, v: _attend(q, k, v, None, dropout_p, is_causal, scale, enable_gqa), *given
    )
