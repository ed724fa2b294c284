"""The choice of a kernel for attention. pygrad has one kernel, so the choice is only recorded."""

from __future__ import annotations

import contextlib
import enum
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from ..._ground.package import submodule

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
    """A context manager or decorator that selects kernels for attention; results do not change.

    Args:
        backends: a kernel, or a list of kernels.
        set_priority: whether the list is in the order of preference.

    Raises:
        AssertionError: an argument of another type.

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


WARN_FOR_UNFUSED_KERNELS = False
_backend_names = {
    "cudnn": "CUDNN_ATTENTION",
    "flash": "FLASH_ATTENTION",
    "mem_efficient": "EFFICIENT_ATTENTION",
    "math": "MATH",
    "overrideable": "OVERRIDEABLE",
}


def _backend_from_string(name: str) -> SDPBackend:
    return getattr(SDPBackend, name)  # type: ignore[no-any-return]


def _cur_sdpa_kernel_backends(with_priority: bool = False) -> list[SDPBackend]:
    """The kernels that may be used: those of PyTorch on a CPU."""
    return [SDPBackend.FLASH_ATTENTION, SDPBackend.EFFICIENT_ATTENTION, SDPBackend.MATH]


if not TYPE_CHECKING:

    def __getattr__(name):
        """Imports modules at first use."""
        if name in ("bias", "flex_attention"):
            return submodule(f"nn.attention.{name}")
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
