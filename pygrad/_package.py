"""The package itself, for its own modules: ``from .._package import pygrad``.

Whoever imports it may come before the names it will use: they are looked up when they are used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pygrad as pygrad
else:
    pygrad = __import__("", globals(), None, ("__path__",), 1)


def submodule(name: str) -> Any:
    """A module of the package, by its name below it."""
    return __import__(name, globals(), None, ("__name__",), 1)
