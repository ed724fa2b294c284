"""The package itself, for its own modules: ``from .._package import pygrad``.

Whoever imports it may come before the names it will use: they are looked up when they are used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ._package import pygrad as pygrad
else:
    pygrad = __import__("", globals(), None, ("__path__",), 1)
