"""The package itself, for its own modules: ``from .._ground.package import pygrad``.

A module may import it before the names that it will use exist: they are looked up when they are
used.
"""

from __future__ import annotations

import operator
import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any, Final

from .names import place_of

if TYPE_CHECKING:
    import pygrad as pygrad
else:
    pygrad = __import__("", globals(), None, ("__path__",), 2)

PACKAGE: Final = __name__.partition(".")[0]
"""The package's name: "pygrad", or that of another engine, as "pygrad@1"."""


def submodule(name: str) -> Any:
    """A module of the package, by its name or its place below the package. A loaded module is also
    found while Python exits, when nothing can be imported.
    """
    name = place_of(name) or name
    found: Any = pygrad
    for part in name.split("."):
        found = vars(found).get(part)
        if not isinstance(found, ModuleType):
            return __import__(name, globals(), None, ("__name__",), 2)
    return found


def function_like(theirs: Any) -> Any:
    """The package's function with the name of one of PyTorch's, where both are loaded; None if
    PyTorch has no name for it or pygrad lacks the name.
    """
    torch_overrides = sys.modules.get("torch.overrides")
    name = torch_overrides.resolve_name(theirs) if torch_overrides is not None else None
    try:
        return name and operator.attrgetter(name.removeprefix("torch."))(pygrad)
    except AttributeError:
        return None
