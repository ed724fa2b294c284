"""A loop as a call."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

__all__ = ["while_loop"]


def while_loop(
    cond_fn: Callable[..., Any], body_fn: Callable[..., Any], carried_inputs: Any
) -> Any:
    """Applies `body_fn` to its own results while `cond_fn` of them holds; returns the last ones.

    Raises:
        RuntimeError: a function cannot be called.

    Example:
        >>> import pygrad
        >>> from pygrad._higher_order_ops import while_loop
        >>> while_loop(lambda i: i < 10, lambda i: (i * 3,), (pygrad.tensor(1),))
        (tensor(27),)
    """
    if not callable(cond_fn) or not callable(body_fn):
        raise RuntimeError("Expect cond_fn and body_fn to be callable.")
    carried = carried_inputs
    while cond_fn(*carried):
        made = body_fn(*carried)
        carried = made if isinstance(made, (tuple, list)) else (made,)
    return carried
