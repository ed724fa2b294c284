"""Transforms that were tried here before they went to `func`, and `chunk_vmap`."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from ...._transforms.vmap import _process_batched_inputs, vmap
from ....func import functionalize, hessian, jacfwd, jvp, replace_all_batch_norm_modules_

__all__ = [
    "chunk_vmap",
    "functionalize",
    "hessian",
    "jacfwd",
    "jvp",
    "replace_all_batch_norm_modules_",
]


def chunk_vmap(
    func: Callable[..., Any],
    in_dims: Any = 0,
    out_dims: Any = 0,
    randomness: str = "error",
    chunks: int = 2,
) -> Callable[..., Any]:
    """`vmap` in `chunks` parts of the batch, one after the other: needs less memory at a time.

    Raises: ValueError: `chunks` is less than 1. Also the errors of `vmap`.

    Example:
        >>> import pygrad as torch
        >>> from pygrad.functorch.experimental import chunk_vmap
        >>> chunk_vmap(torch.sum, chunks=2)(torch.ones(3, 2))
        tensor([2., 2., 2.])
    """
    if chunks < 1:
        raise ValueError(f"chunk_vmap: chunks should be at least 1. (got {chunks})")

    @functools.wraps(func)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        size = _process_batched_inputs(in_dims, args, func)[0]
        step = max(-(-size // chunks), 1)
        return vmap(func, in_dims, out_dims, randomness, chunk_size=step)(*args, **kwargs)

    return wrapper
