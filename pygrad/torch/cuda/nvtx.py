"""NVIDIA's ranges, which PyTorch without CUDA refuses."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from ..._ground.absent import refusals

__all__ = ["range"]

_refused = refusals(
    __name__,
    "mark range_pop range_push",
    RuntimeError,
    "NVTX functions not installed. Are you sure you have a CUDA build?",
)
globals().update(_refused)
__all__ += _refused


@contextlib.contextmanager
def range(msg: str, *args: Any, **kwargs: Any) -> Iterator[None]:
    """Would be a range of this name.

    Raises:
        RuntimeError: on entering, as there is no CUDA.
    """
    _refused["range_push"](msg.format(*args, **kwargs))
    yield


if TYPE_CHECKING:

    def __getattr__(name: str) -> Any: ...
