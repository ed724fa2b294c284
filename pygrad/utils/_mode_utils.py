"""Dispatch without subclasses and modes: helpers of PyTorch's own tests and of libraries."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .._dispatch.handlers import disabled as no_dispatch

__all__ = ["all_same_mode", "no_dispatch"]


def all_same_mode(modes: Sequence[Any]) -> bool:
    """Whether all of some modes, at least one, are equal.

    Example:
        >>> from pygrad.utils._mode_utils import all_same_mode
        >>> all_same_mode([1, 1]), all_same_mode([1, None])
        (True, False)
    """
    return all(mode == modes[0] for mode in modes)
