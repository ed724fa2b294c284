"""What distributions share: parameters of one shape, probabilities and their logarithms."""

from __future__ import annotations

from numbers import Number
from typing import Any

from .._package import pygrad
from .._tensor import Tensor
from ..nn import functional as F

__all__ = ["broadcast_all", "clamp_probs", "logits_to_probs", "probs_to_logits", "sum_rightmost"]


def broadcast_all(*values: Any) -> tuple[Tensor, ...]:
    """Numbers and tensors as tensors of one shape.

    Raises:
        ValueError: something that is neither.

    Example:
        >>> import pygrad
        >>> pygrad.distributions.utils.broadcast_all(1.0, pygrad.zeros(2))
        (tensor([1., 1.]), tensor([0., 0.]))
    """
    if not all(isinstance(v, (Tensor, Number)) for v in values):
        raise ValueError(
            "Input arguments must all be instances of Number, torch.Tensor or objects implementing "
            "__torch_function__."
        )
    first = next((v for v in values if isinstance(v, Tensor)), None)
    dtype = pygrad.get_default_dtype() if first is None else first.dtype
    made = [v if isinstance(v, Tensor) else pygrad.tensor(v, dtype=dtype) for v in values]
    return tuple(pygrad.broadcast_tensors(*made))


def clamp_probs(probs: Tensor) -> Tensor:
    """Probabilities away from 0 and 1 by the dtype's eps.

    Example:
        >>> import pygrad
        >>> pygrad.distributions.utils.clamp_probs(pygrad.tensor([0.5]))
        tensor([0.5000])
    """
    eps = pygrad.finfo(probs.dtype).eps
    return probs.clamp(min=eps, max=1 - eps)


def probs_to_logits(probs: Tensor, is_binary: bool = False) -> Tensor:
    """Logarithms of probabilities; of odds, if binary.

    Example:
        >>> import pygrad
        >>> pygrad.distributions.utils.probs_to_logits(pygrad.tensor([0.5]), is_binary=True)
        tensor([0.])
    """
    clamped = clamp_probs(probs)
    return clamped.log() - (-clamped).log1p() if is_binary else clamped.log()


def logits_to_probs(logits: Tensor, is_binary: bool = False) -> Tensor:
    """The inverse of :func:`probs_to_logits`.

    Example:
        >>> import pygrad
        >>> pygrad.distributions.utils.logits_to_probs(pygrad.zeros(2))
        tensor([0.5000, 0.5000])
    """
    return logits.sigmoid() if is_binary else F.softmax(logits, dim=-1)


def exactly_one(probs: Any, logits: Any) -> None:
    """Raise ``ValueError`` unless one of the two is given."""
    if (probs is None) == (logits is None):
        raise ValueError("Either `probs` or `logits` must be specified, but not both.")


def sum_rightmost(value: Tensor, dims: int) -> Tensor:
    """The sum over the last dimensions.

    Example:
        >>> import pygrad
        >>> pygrad.distributions.utils.sum_rightmost(pygrad.ones(2, 3), 1)
        tensor([3., 3.])
    """
    return value.flatten(value.dim() - dims).sum(-1) if dims else value
