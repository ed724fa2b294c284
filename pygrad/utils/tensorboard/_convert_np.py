"""Values of any kind as NumPy arrays."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..._ground.dtypes import bfloat16, float16
from ..._tensor.tensor import Tensor


def make_np(x: Any) -> np.ndarray[Any, Any]:
    """A tensor, an array or a number as an array; a number has the shape [1].

    A bfloat16 tensor gives a float16 array, since NumPy has no bfloat16.

    Raises:
        NotImplementedError: `x` is none of these.

    Example:
        >>> make_np(3)
        array([3])
    """
    if isinstance(x, np.ndarray):
        return x
    if np.isscalar(x):
        return np.array([x])
    if isinstance(x, Tensor):
        if x.dtype == bfloat16:
            x = x.to(float16)
        array: np.ndarray[Any, Any] = x.detach().resolve_conj().resolve_neg().cpu().numpy()
        return array
    raise NotImplementedError(f"Got {type(x)}, but numpy array or torch tensor are expected.")
