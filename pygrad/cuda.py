"""CUDA as PyTorch shows it on a machine without: asked for, it is not there.

Example:
    >>> import pygrad as torch
    >>> torch.device("cuda" if torch.cuda.is_available() else "cpu")
    device(type='cpu')
"""

from __future__ import annotations

from typing import Any, NoReturn

__all__ = [
    "current_device",
    "device_count",
    "empty_cache",
    "is_available",
    "is_initialized",
    "manual_seed",
    "manual_seed_all",
    "synchronize",
]


def is_available() -> bool:
    """Always False."""
    return False


def is_initialized() -> bool:
    """Always False."""
    return False


def device_count() -> int:
    """Always 0."""
    return 0


def manual_seed(seed: int) -> None:
    """Does nothing: there is no stream to seed."""


def manual_seed_all(seed: int) -> None:
    """Does nothing: there is no stream to seed."""


def empty_cache() -> None:
    """Does nothing: there is no cache."""


def _none() -> NoReturn:
    raise AssertionError("Torch not compiled with CUDA enabled")


def current_device() -> int:
    """Raises AssertionError, as PyTorch built without CUDA does."""
    _none()


def synchronize(device: Any = None) -> None:
    """Raises AssertionError, as PyTorch built without CUDA does."""
    _none()
