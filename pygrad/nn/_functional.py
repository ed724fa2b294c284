"""Functions of torch.nn.functional beside the op table: what calls back into Python, what draws."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

from .. import _ops
from .._package import pygrad
from .._tensor import Tensor

__all__ = [
    "gumbel_softmax",
    "triplet_margin_with_distance_loss",
    "upsample_bilinear",
    "upsample_nearest",
]


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
        anchor: (N, D), as `positive` and `negative`.
        positive: what should be nearer.
        negative: what should be farther.
        distance_function: two tensors (N, D) to distances (N); default the norm 2 of the
            difference.
        margin: by how much farther; positive.
        swap: count the distance from positive to negative where it is the smaller one.
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


def gumbel_softmax(
    logits: Tensor, tau: float = 1, hard: bool = False, eps: float = 1e-10, dim: int = -1
) -> Tensor:
    """Samples of a relaxed one-hot distribution (Jang and others, 2016).

    Args:
        logits: logarithms of probabilities, not normalised.
        tau: the temperature.
        hard: give one-hot vectors, with the gradient of the relaxed ones.
        eps: only the default, as it has no effect in PyTorch.
        dim: the dimension of the classes.

    Example:
        >>> import pygrad
        >>> _ = pygrad.manual_seed(0)
        >>> pygrad.nn.functional.gumbel_softmax(pygrad.zeros(2, 3), hard=True).sum(-1)
        tensor([1., 1.])
    """
    if eps != 1e-10:
        warnings.warn("`eps` parameter is deprecated and has no effect.", stacklevel=2)
    drawn = pygrad.empty_like(logits, memory_format=pygrad.contiguous_format).exponential_()
    noise = -drawn.log()
    soft = ((logits + noise) / tau).softmax(dim)
    if not hard:
        return soft
    best = soft.max(dim, keepdim=True)[1]
    return pygrad.zeros_like(logits).scatter_(dim, best, 1.0) - soft.detach() + soft


def _upsampled(name: str, input: Tensor, size: Any, scale_factor: Any, **options: Any) -> Tensor:
    warnings.warn(
        f"`nn.functional.{name}` is deprecated. Use `nn.functional.interpolate` instead.",
        stacklevel=3,
    )
    resized: Tensor = _ops.SPACES["nn"]["interpolate"](input, size, scale_factor, **options)
    return resized


def upsample_nearest(input: Tensor, size: Any = None, scale_factor: Any = None) -> Tensor:
    """`interpolate` by its older name, of mode "nearest".

    Example:
        >>> import pygrad, warnings
        >>> with warnings.catch_warnings(action="ignore"):
        ...     pygrad.nn.functional.upsample_nearest(pygrad.ones(1, 1, 1), 2)
        tensor([[[1., 1.]]])
    """
    return _upsampled("upsample_nearest", input, size, scale_factor, mode="nearest")


def upsample_bilinear(input: Tensor, size: Any = None, scale_factor: Any = None) -> Tensor:
    """`interpolate` by its older name, of mode "bilinear" with aligned corners.

    Example:
        >>> import pygrad, warnings
        >>> with warnings.catch_warnings(action="ignore"):
        ...     pygrad.nn.functional.upsample_bilinear(pygrad.ones(1, 1, 1, 1), (1, 2))
        tensor([[[[1., 1.]]]])
    """
    options = {"mode": "bilinear", "align_corners": True}
    return _upsampled("upsample_bilinear", input, size, scale_factor, **options)
