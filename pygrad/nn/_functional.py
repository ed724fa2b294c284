"""Functions of torch.nn.functional that are no rows of the op table: one calls back into Python,
one has more arguments than a call of the engine allows, one takes a Python object.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable

from .._boundary.overriding import overridable
from .._table import functions
from .._tensor import namespace as pygrad
from .._tensor.tensor import Tensor

__all__ = [
    "linear_cross_entropy",
    "multi_head_attention_forward",
    "triplet_margin_with_distance_loss",
]


@overridable
def linear_cross_entropy(
    input: Tensor,
    linear_weight: Tensor,
    target: Tensor,
    *,
    linear_bias: Tensor | None = None,
    weight: Tensor | None = None,
    reduction: str = "mean",
    ignore_index: int | None = None,
    label_smoothing: float = 0.0,
    options: object | None = None,
) -> Tensor:
    """The cross entropy of ``linear(input, linear_weight, linear_bias)``.

    Args:
        input: (features) or (N, features).
        linear_weight: (C, features), or (C, d1, ..., features) for several losses per row.
        target: classes (N) or (N, d1, ...), or probabilities of the shape of the logits.
        linear_bias: (C) or (C, d1, ...).
        weight: (C), a factor for each class.
        reduction: "none", "mean" or "sum".
        ignore_index: the class to ignore; by default -100.
        label_smoothing: the fraction of the loss that is spread over all classes.
        options: in PyTorch, the division of the batch into parts that need less memory. Here the
            logits are always computed as a whole.

    Raises:
        RuntimeError: incompatible shapes, ``ignore_index`` with probabilities.
        ValueError: an unknown reduction.

    Warns:
        UserWarning: ``options`` that PyTorch would ignore too.

    Example:
        >>> import pygrad
        >>> from pygrad.nn import functional as F
        >>> x, w = pygrad.eye(2), pygrad.eye(2)
        >>> F.linear_cross_entropy(x, w, pygrad.tensor([0, 1]))
        tensor(0.3133)
    """
    loss: Tensor = functions.SPACES["nn"]["linear_cross_entropy"](
        input,
        linear_weight,
        target,
        linear_bias=linear_bias,
        weight=weight,
        reduction=reduction,
        ignore_index=ignore_index,
        label_smoothing=label_smoothing,
    )
    out_features = tuple(linear_weight.shape[1:-1])
    if options is not None and (
        out_features or label_smoothing != 0.0 or target.dtype != pygrad.int64
    ):
        shape = None if linear_bias is None else tuple(linear_bias.shape)
        warnings.warn(
            "linear_cross_entropy: ``options`` ignored; chunked path needs reduction in "
            "{'mean','sum','none'}, label_smoothing == 0, target.dtype == int64, out_features == "
            f"(). Got reduction={reduction!r}, label_smoothing={label_smoothing}, target.dtype="
            f"{target.dtype}, out_features={out_features}, tracing=False, linear_bias.shape="
            f"{shape}.",
            stacklevel=2,
        )
    return loss


@overridable
def triplet_margin_with_distance_loss(
    anchor: Tensor,
    positive: Tensor,
    negative: Tensor,
    *,
    distance_function: Callable[[Tensor, Tensor], Tensor] | None = None,
    margin: float = 1.0,
    swap: bool = False,
    reduction: str = "mean",
) -> Tensor:
    """max(0, margin + d(anchor, positive) - d(anchor, negative)) for any distance d.

    Args:
        anchor: (N, D), like `positive` and `negative`.
        positive: the vectors that should be nearer.
        negative: the vectors that should be farther.
        distance_function: maps two tensors (N, D) to distances (N); by default the 2-norm of the
            difference.
        margin: the wanted difference of distances; positive.
        swap: use the distance from positive to negative if it is smaller.
        reduction: "none" (N), "mean" or "sum" (scalar).

    Raises:
        ValueError: an unknown reduction, or a margin that is not positive.
        RuntimeError: inputs of different rank.

    Example:
        >>> import pygrad
        >>> from pygrad.nn import functional as F
        >>> near, far = pygrad.zeros(1, 2), pygrad.tensor([[0.3, 0.4]])
        >>> F.triplet_margin_with_distance_loss(near, near, far)
        tensor(0.5000)
    """
    if reduction not in ("mean", "sum", "none"):
        raise ValueError(f"{reduction} is not a valid value for reduction")
    if margin <= 0:
        raise ValueError(f"margin must be greater than 0, got {margin}")
    if not anchor.ndim == positive.ndim == negative.ndim:
        raise RuntimeError(
            "The anchor, positive, and negative tensors are expected to have the same number of "
            f"dimensions, but got: anchor {anchor.ndim}D, positive {positive.ndim}D, and negative "
            f"{negative.ndim}D inputs"
        )
    distance = distance_function or pygrad.pairwise_distance
    near, far = distance(anchor, positive), distance(anchor, negative)
    if swap:
        far = pygrad.minimum(far, distance(positive, negative))
    loss = pygrad.clamp_min(margin + near - far, 0)
    if reduction == "none":
        return loss
    return loss.sum() if reduction == "sum" else loss.mean()


@overridable
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
    """Multi-head attention with explicit weights.

    The arguments are those of :class:`pygrad.nn.MultiheadAttention` and of its call. The batch is
    the second dimension.

    Args:
        embed_dim_to_check: features of the query.
        static_k: (N * heads, S, features of a head), replaces the projected key.
        static_v: likewise, for the value.

    Returns:
        The output (L, N, embed_dim), and the weights (N, L, S) or None.

    Raises:
        AssertionError: incompatible shapes, missing weights.
        RuntimeError: a mask of another shape; `is_causal` without a mask.

    Example:
        >>> import pygrad
        >>> x, eye = pygrad.ones(3, 1, 2), pygrad.eye(2)
        >>> weights = (pygrad.cat([eye] * 3), None, None, None, False, 0.0, eye, None)
        >>> output, _ = pygrad.nn.functional.multi_head_attention_forward(x, x, x, 2, 1, *weights)
        >>> output[0]
        tensor([[1., 1.]])
    """
    tensors = (
        *(query, key, value, in_proj_weight, in_proj_bias, bias_k, bias_v),
        *(out_proj_weight, out_proj_bias, key_padding_mask, attn_mask),
        *(q_proj_weight, k_proj_weight, v_proj_weight, static_k, static_v),
    )
    widths, switches = (embed_dim_to_check, num_heads), (training, need_weights)
    separate = (use_separate_proj_weight, average_attn_weights, is_causal)
    output, *weights = functions.C["_multi_head_attention_forward"](
        tensors, *widths, add_zero_attn, dropout_p, *switches, *separate
    )
    return output, weights[0] if weights else None
