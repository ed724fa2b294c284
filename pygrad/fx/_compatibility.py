"""Marks for PyTorch's promises of compatibility: ``compatibility(is_backward_compatible=True)``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeVar

T = TypeVar("T")

_BACK_COMPAT_OBJECTS: Final[dict[Any, None]] = {}
_MARKED_WITH_COMPATIBILITY: Final[dict[Any, None]] = {}


def compatibility(is_backward_compatible: bool) -> Callable[[T], T]:
    """A decorator that records whether a function or class is promised to stay compatible."""

    def mark(marked: T) -> T:
        _MARKED_WITH_COMPATIBILITY.setdefault(marked)
        if is_backward_compatible:
            _BACK_COMPAT_OBJECTS.setdefault(marked)
        return marked

    return mark
