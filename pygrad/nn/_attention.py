"""Attention by several heads as a function of its weights, which nn.MultiheadAttention keeps."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence

from .. import _ops
from .._package import pygrad
from .._tensor import Tensor

__all__ = ["multi_head_attention_forward"]

_N = _ops.SPACES["nn"]


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


def _check(
    query: Tensor, key: Tensor, value: Tensor, padding: Tensor | None, mask: Tensor | None
) -> bool:
    """Whether there is a dimension for batches."""
    rank = query.dim()
    if rank not in (2, 3):
        raise AssertionError(
            f"query should be unbatched 2D or batched 3D tensor but received {rank}-D query tensor"
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


def _check_widths(
    query: Tensor, key: Tensor, value: Tensor, width: int, heads: int, separate: bool
) -> None:
    if query.size(-1) != width:
        raise AssertionError(
            f"was expecting embedding dimension of {width}, but got {query.size(-1)}"
        )
    if width % heads:
        raise AssertionError(f"embed_dim {width} not divisible by num_heads {heads}")
    if separate and key.shape[:2] != value.shape[:2]:
        raise AssertionError(
            f"key's sequence and batch dims {key.shape[:2]} do not match value's {value.shape[:2]}"
        )
    if not separate and key.shape != value.shape:
        raise AssertionError(f"key shape {key.shape} does not match value shape {value.shape}")


def _pairs(mask: Tensor | None, query: Tensor, key: Tensor, heads: int) -> Tensor | None:
    """The mask of pairs, (N * heads or 1, L, S)."""
    if mask is None:
        return None
    wanted: tuple[int, ...] = (query.size(0), key.size(0))
    if mask.dim() == 3:
        wanted = (query.size(1) * heads, *wanted)
    if tuple(mask.shape) != wanted:
        raise RuntimeError(
            f"The shape of the {mask.dim()}D attn_mask is {mask.shape}, but should be {wanted}."
        )
    return mask if mask.dim() == 3 else mask.unsqueeze(0)


def _weights(whole: Tensor | None, parts: Sequence[Tensor | None]) -> list[Tensor]:
    """Those of query, key and value: the parts, if there are any, or the whole in three."""
    if not parts:
        if whole is None:
            raise AssertionError("use_separate_proj_weight is False but in_proj_weight is None")
        return list(whole.chunk(3))
    for name, part in zip("qkv", parts, strict=True):
        if part is None:
            raise AssertionError(f"use_separate_proj_weight is True but {name}_proj_weight is None")
    return [part for part in parts if part is not None]


def _check_projections(given: Sequence[Tensor], weights: Sequence[Tensor]) -> None:
    width = given[0].size(-1)
    for name, x, weight in zip(("query", "key", "value"), given, weights, strict=True):
        if weight.shape != (width, x.size(-1)):
            raise AssertionError(
                f"expecting {name} weights shape of {(width, x.size(-1))}, but got {weight.shape}"
            )


def _with_bias(x: Tensor, bias: Tensor | None, name: str, fixed: Tensor | None) -> Tensor:
    """A key or value with the learnt position behind the others."""
    if bias is None:
        return x
    if fixed is not None:
        raise AssertionError(f"bias cannot be added to static {name}.")
    return pygrad.cat([x, bias.repeat(1, x.size(1), 1)])


def _by_heads(x: Tensor, heads: int, name: str = "", fixed: Tensor | None = None) -> Tensor:
    """(S, N, embed_dim) as (N * heads, S, features of a head); or the `fixed` one in its place."""
    rows, width = x.size(1) * heads, x.size(2) // heads
    if fixed is None:
        return x.reshape(x.size(0), rows, width).transpose(0, 1)
    for dim, wanted in ((0, rows), (2, width)):
        if fixed.size(dim) != wanted:
            raise AssertionError(
                f"expecting static_{name}.size({dim}) of {wanted}, but got {fixed.size(dim)}"
            )
    return fixed


def _bias(padding: Tensor | None, mask: Tensor | None, heads: int, added: int) -> Tensor | None:
    """What is added to the scores, (N * heads or 1, L or 1, S)."""
    if padding is not None:
        n, source = padding.shape
        rows = padding.reshape(n, 1, 1, source).expand(n, heads, 1, source)
        padding = rows.reshape(n * heads, 1, source)
        mask = padding if mask is None else mask + padding
    padded: Tensor | None = _N["pad"](mask, (0, added)) if added and mask is not None else mask
    return padded


def _attend(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    bias: Tensor | None,
    heads: int,
    dropout: float,
    need_weights: bool,
    causal: bool,
) -> tuple[Tensor, Tensor | None]:
    """Outputs of all heads (N * heads, L, features of a head), and weights (N, heads, L, S)."""
    rows, length, width = q.shape
    if need_weights:
        scores = (q * math.sqrt(1 / width)) @ k.transpose(1, 2)
        weights = _N["softmax"](scores if bias is None else bias + scores, dim=-1)
        weights = _N["dropout"](weights, p=dropout) if dropout > 0 else weights
        return weights @ v, weights.reshape(rows // heads, heads, length, k.size(1))
    batch, sources = rows // heads, k.size(1)
    split = None
    if bias is not None:
        split = bias.expand(rows, length, sources).reshape(batch, heads, length, sources)
    # All sizes in full: of an empty batch none could be found.
    output = _N["scaled_dot_product_attention"](
        q.reshape(batch, heads, length, width),
        k.reshape(batch, heads, sources, width),
        v.reshape(batch, heads, sources, width),
        split,
        dropout,
        causal,
    )
    return output.reshape(rows, length, width), None


def _check_padding(padding: Tensor, wanted: tuple[int, int]) -> None:
    for dim, size in enumerate(wanted):
        if padding.size(dim) != size:
            raise AssertionError(
                f"Expected key_padded_mask.shape[{dim}] to be {size}, but got {padding.size(dim)}"
            )


def multi_head_attention_forward(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    embed_dim_to_check: int,
    num_heads: int,
    in_proj_weight: Tensor | None,
    in_proj_bias: Tensor | None,
    bias_k: Tensor | None,
    bias_v: Tensor | None,
    add_zero_attn: bool,
    dropout_p: float,
    out_proj_weight: Tensor,
    out_proj_bias: Tensor | None,
    training: bool = True,
    key_padding_mask: Tensor | None = None,
    need_weights: bool = True,
    attn_mask: Tensor | None = None,
    use_separate_proj_weight: bool = False,
    q_proj_weight: Tensor | None = None,
    k_proj_weight: Tensor | None = None,
    v_proj_weight: Tensor | None = None,
    static_k: Tensor | None = None,
    static_v: Tensor | None = None,
    average_attn_weights: bool = True,
    is_causal: bool = False,
) -> tuple[Tensor, Tensor | None]:
    """What :class:`pygrad.nn.MultiheadAttention` computes, of weights that are given.

    The arguments are its attributes and those of its call; batches are the second dimension.

    Args:
        embed_dim_to_check: features of the query.
        static_k: (N * heads, S, features of a head), the key in place of the projected one.
        static_v: likewise the value.

    Returns:
        The output (L, N, embed_dim), and the weights (N, L, S) or None.

    Raises:
        AssertionError: shapes that do not fit, weights that are absent.
        RuntimeError: a mask of another shape; `is_causal` without a mask.

    Example:
        >>> import pygrad
        >>> x, eye = pygrad.ones(3, 1, 2), pygrad.eye(2)
        >>> weights = (pygrad.cat([eye] * 3), None, None, None, False, 0.0, eye, None)
        >>> output, _ = pygrad.nn.functional.multi_head_attention_forward(x, x, x, 2, 1, *weights)
        >>> output[0]
        tensor([[1., 1.]])
    """
    batched = _check(query, key, value, key_padding_mask, attn_mask)
    if not batched:
        query, key, value = (each.unsqueeze(1) for each in (query, key, value))
        key_padding_mask = None if key_padding_mask is None else key_padding_mask.unsqueeze(0)
    if is_causal and attn_mask is None:
        raise RuntimeError(
            "Need attn_mask if specifying the is_causal hint. You may use the Transformer module "
            "method `generate_square_subsequent_mask` to create this mask."
        )
    _warn_of_mixed(key_padding_mask, attn_mask)
    padding = _as_numbers(key_padding_mask, "key_padding_mask", query)
    causal = is_causal and padding is None and not need_weights  # the mask need not be read
    mask = None if causal else _as_numbers(attn_mask, "attn_mask", query)
    separate = use_separate_proj_weight
    _check_widths(query, key, value, embed_dim_to_check, num_heads, separate)
    parts = (q_proj_weight, k_proj_weight, v_proj_weight) if separate else ()
    weights = _weights(in_proj_weight, parts)
    if separate:
        _check_projections((query, key, value), weights)
    mask = _pairs(mask, query, key, num_heads)
    biases = (None,) * 3 if in_proj_bias is None else in_proj_bias.chunk(3)
    projected = zip((query, key, value), weights, biases, strict=True)
    q, k, v = (_N["linear"](*each) for each in projected)
    if (bias_k is None) is not (bias_v is None):
        given, absent = ("bias_k", "bias_v") if bias_v is None else ("bias_v", "bias_k")
        raise AssertionError(f"{given} is set but {absent} is None")
    k = _with_bias(k, bias_k, "key", static_k)
    v = _with_bias(v, bias_v, "value", static_v)
    q = _by_heads(q, num_heads)
    k, v = _by_heads(k, num_heads, "k", static_k), _by_heads(v, num_heads, "v", static_v)
    if add_zero_attn:
        zeros = k.new_zeros(k.size(0), 1, k.size(2))
        k, v = pygrad.cat([k, zeros], 1), pygrad.cat([v, zeros], 1)
    extra = int(bias_k is not None) + int(add_zero_attn)
    if padding is not None:
        _check_padding(padding, (query.size(1), k.size(1) - extra))
    bias = _bias(padding, mask, num_heads, extra)
    dropout = dropout_p if training else 0.0
    output, shown = _attend(q, k, v, bias, num_heads, dropout, need_weights, causal)
    output = output.transpose(0, 1).reshape(query.shape)
    output = _N["linear"](output, out_proj_weight, out_proj_bias)
    if shown is not None and average_attn_weights:
        shown = shown.mean(dim=1)
    if batched:
        return output, shown
    return output.squeeze(1), None if shown is None else shown.squeeze(0)
