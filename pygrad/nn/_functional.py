"""Functions of torch.nn.functional that call back into Python, which no row of the op table can."""

from __future__ import annotations

from collections.abc import Callable

import pygrad
from pygrad._tensor import Tensor

__all__ = ["triplet_margin_with_distance_loss"]


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
