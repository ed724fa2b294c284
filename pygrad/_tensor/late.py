"""Modules that methods of `Tensor` import at their first use, because few programs need them."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from typing import Any, Final

from .._boundary import process
from .._ground.package import PACKAGE

_finders: Final[list[Callable[[], Any]]] = []


def late(find: Callable[[], Any]) -> Callable[[], Any]:
    """A decorator of a function that imports a module and returns it: calls it once, at the latest
    when Python exits, as finalizers that run later cannot import.
    """
    found = functools.cache(find)
    _finders.append(found)
    return found


def _at_exit() -> None:
    """Does nothing if the package failed to import."""
    if hasattr(sys.modules.get(PACKAGE), "Tensor"):
        for find in _finders:
            find()


process.hear(process.at_exit, _at_exit)
