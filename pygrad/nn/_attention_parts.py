"""Steps of `multi_head_attention_forward`, and checks of layers, which libraries call
separately.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from typing import Any

from .._ground.dtypes import bool_
from .._table import functions
from .._tensor import namespace as pygrad
from .._tensor.tensor import Tensor

_F = functions.SPACES["nn"]


def _none_or_dtype(input: Any) -> Any:
    """The dtype of a tensor; None for None."""
    if input is None or isinstance(input, Tensor):
        return None if input is None else input.dtype
    raise RuntimeError("input to _none_or_dtype() must be None or torch.Tensor")


def _canonical_mask(
    mask: Tensor | None,
    mask_name: str,
    other_type: Any,
    other_name: str,
    target_type: Any,
    check_other: bool = True,
) -> Tensor | None:
    """Converts a mask to numbers to add: minus infinity where a mask of bools is True.

    Raises:
        AssertionError: a mask of another dtype.
    """
    if mask is None:
        return None
    if mask.dtype != bool_ and not mask.is_floating_point():
        raise AssertionError(f"only bool and floating types of {mask_name} are supported")
    if check_other and other_type is not None and other_type != mask.dtype:
        warnings.warn(
            f"Support for mismatched {mask_name} and {other_name} is deprecated. Use same type for "
            "both instead.",
            stacklevel=5,
        )
    if mask.is_floating_point():
        return mask
    return pygrad.zeros_like(mask, dtype=target_type).masked_fill_(mask, -math.inf)


def _check_key_padding_mask(key_padding_mask: Tensor, src_len: int, bsz: int) -> None:
    if tuple(key_padding_mask.shape) != (bsz, src_len):
        raise AssertionError(
            f"Expected key_padded_mask.shape to be {(bsz, src_len)}, but got "
            f"{key_padding_mask.shape}"
        )


def _mha_shape_check(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    key_padding_mask: Tensor | None,
    attn_mask: Tensor | None,
    num_heads: int,
) -> bool:
    """Whether the inputs have a batch dimension.

    Raises:
        AssertionError: their ranks do not match.
    """
    rank = query.dim()
    if rank not in (2, 3):
        raise AssertionError(
            f"query should be unbatched 2D or batched 3D tensor but received {rank}-D query tensor"
        )
    head = f"For {'batched' if rank == 3 else 'unbatched'} ({rank}-D) `query`, expected"
    if key.dim() != rank or value.dim() != rank:
        raise AssertionError(
            f"{head} `key` and `value` to be {rank}-D but found {key.dim()}-D and "
            f"{value.dim()}-D tensors respectively"
        )
    if key_padding_mask is not None and key_padding_mask.dim() != rank - 1:
        raise AssertionError(
            f"{head} `key_padding_mask` to be `None` or {rank - 1}-D but found "
            f"{key_padding_mask.dim()}-D tensor instead"
        )
    if attn_mask is not None:
        if attn_mask.dim() not in (2, 3):
            raise AssertionError(
                f"{head} `attn_mask` to be `None`, 2-D or 3-D but found {attn_mask.dim()}-D tensor "
                "instead"
            )
        expected = num_heads, query.shape[0], key.shape[0]
        if rank == 2 and attn_mask.dim() == 3 and tuple(attn_mask.shape) != expected:
            raise AssertionError(
                f"Expected `attn_mask` shape to be {expected} but got {attn_mask.shape}"
            )
    return rank == 3


def _in_projection_packed(
    q: Tensor, k: Tensor, v: Tensor, w: Tensor, b: Tensor | None = None
) -> list[Tensor]:
    """Projects queries, keys and values by three weights in one, (3 E, E)."""
    linear, width = _F["linear"], q.size(-1)
    if k is v and q is k:
        return list(linear(q, w, b).unflatten(-1, (3, width)).unbind(-2))
    weights = w.split([width] * 3)
    biases = (None,) * 3 if b is None else b.split([width] * 3)
    return [linear(x, m, c) for x, m, c in zip((q, k, v), weights, biases, strict=True)]


def _in_projection(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    w_q: Tensor,
    w_k: Tensor,
    w_v: Tensor,
    b_q: Tensor | None = None,
    b_k: Tensor | None = None,
    b_v: Tensor | None = None,
) -> tuple[Tensor, Tensor, Tensor]:
    """Projects queries, keys and values, each by its own weight.

    Raises:
        AssertionError: a weight or bias has another shape.
    """
    width = q.size(-1)
    named = zip(("query", "key", "value"), (q, k, v), (w_q, w_k, w_v), strict=True)
    for name, x, weight in named:
        if tuple(weight.shape) != (width, x.size(-1)):
            raise AssertionError(
                f"expecting {name} weights shape of {(width, x.size(-1))}, but got {weight.shape}"
            )
    for name, bias in zip(("query", "key", "value"), (b_q, b_k, b_v), strict=True):
        if bias is not None and tuple(bias.shape) != (width,):
            raise AssertionError(f"expecting {name} bias shape of {(width,)}, but got {bias.shape}")
    linear = _F["linear"]
    return linear(q, w_q, b_q), linear(k, w_k, b_k), linear(v, w_v, b_v)


def _get_softmax_dim(name: str, ndim: int, stacklevel: int) -> int:
    """The default dimension of a softmax, with a warning."""
    warnings.warn(
        f"Implicit dimension choice for {name} has been deprecated. Change the call to include "
        "dim=X as an argument.",
        stacklevel=stacklevel,
    )
    return 0 if ndim in (0, 1, 3) else 1


def _verify_batch_size(size: Sequence[int]) -> None:
    """Raises ValueError unless there is more than one value per channel."""
    if size[0] * math.prod(size[2:]) == 1:
        raise ValueError(
            f"Expected more than 1 value per channel when training, got input size {size}"
        )


def _verify_spatial_size(size: Sequence[int]) -> None:
    """Raises ValueError unless there is more than one position."""
    if math.prod(size[2:]) == 1:
        raise ValueError(
            f"Expected more than 1 spatial element when training, got input size {size}"
        )
