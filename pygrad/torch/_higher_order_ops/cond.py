"""A branch as a call."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..._ground.tree import flatten
from ..._tensor.functions import is_tensor
from ..._tensor.tensor import Tensor

__all__ = ["cond"]


def cond(
    pred: bool | int | float | Tensor,
    true_fn: Callable[..., Any],
    false_fn: Callable[..., Any],
    operands: Sequence[Any] = (),
) -> Any:
    """``true_fn(*operands)`` if a condition holds, else ``false_fn(*operands)``.

    A number decides as Python has it, and the operands are not looked at.

    Raises:
        RuntimeError: `pred` is neither a number nor a tensor, or a tensor that has not one element;
            with a tensor, a function cannot be called, or `operands` are not tensors.

    Example:
        >>> import pygrad
        >>> x = pygrad.tensor(2.0)
        >>> pygrad.cond(x > 0, lambda x: x * 3, lambda x: -x, (x,))
        tensor(6.)
    """
    if isinstance(pred, (bool, int, float)):
        return (true_fn if pred else false_fn)(*operands)
    if not isinstance(pred, Tensor):
        raise RuntimeError(f"Expected pred to be bool or tensor, but got {pred}.")
    if pred.numel() != 1:
        raise RuntimeError(f"Expected pred to be bool or single-element tensor, but got {pred}.")
    if not callable(true_fn) or not callable(false_fn):
        raise RuntimeError("Expect both branches to be callable.")
    if not isinstance(operands, (tuple, list)) or not all(map(is_tensor, flatten(operands)[0])):
        raise RuntimeError(
            "Expect operands to be a tuple of possibly nested dict/list/tuple that only consists "
            f"of tensor leaves, but got {operands}."
        )
    return (true_fn if pred else false_fn)(*operands)
