"""CUDA's own profiler, which pygrad lacks; `autograd.profiler` exists."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import NoReturn

__all__ = ["profile", "start", "stop"]


def start() -> NoReturn:
    """Raises AssertionError, as PyTorch built without CUDA does."""
    raise AssertionError("Torch not compiled with CUDA enabled")


def stop() -> NoReturn:
    """Raises AssertionError, as PyTorch built without CUDA does."""
    raise AssertionError("Torch not compiled with CUDA enabled")


@contextlib.contextmanager
def profile() -> Iterator[None]:
    """Would profile the code inside the scope.

    Raises:
        AssertionError: on entering, as there is no CUDA.
    """
    try:
        start()
        yield
    finally:
        stop()
