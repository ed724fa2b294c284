"""Which kernel computes attention: there is one here, so the choice is checked and noted."""

from __future__ import annotations

import contextlib
import enum
from collections.abc import Iterator
from typing import Any

__all__ = ["SDPBackend", "sdpa_kernel"]


class SDPBackend(enum.IntEnum):
    """PyTorch's kernels for attention.

    Example:
        >>> from pygrad.nn.attention import SDPBackend
        >>> SDPBackend.MATH
        <SDPBackend.MATH: 0>
    """

    ERROR = -1
    MATH = 0
    FLASH_ATTENTION = 1
    EFFICIENT_ATTENTION = 2
    CUDNN_ATTENTION = 3
    OVERRIDEABLE = 4


@contextlib.contextmanager
def sdpa_kernel(backends: Any, set_priority: bool = False) -> Iterator[dict[Any, Any]]:
    """A block, or a function, in which these kernels may compute attention: all compute the same.

    Args:
        backends: a kernel, or a list.
        set_priority: whether the list is in the order of preference.

    Raises:
        AssertionError: something else.

    Example:
        >>> import pygrad
        >>> from pygrad.nn.attention import SDPBackend, sdpa_kernel
        >>> x = pygrad.ones(1, 1, 1)
        >>> with sdpa_kernel(SDPBackend.MATH):
        ...     pygrad.nn.functional.scaled_dot_product_attention(x, x, x)
        tensor([[[1.]]])
    """
    assert isinstance(backends, (list, SDPBackend)), (
        "Backend must be an instance of SDPBackend or a list of SDPBackend instances, got "
        f"{type(backends).__name__}"
    )
    yield {}
