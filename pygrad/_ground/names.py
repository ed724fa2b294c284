"""Import of modules by other names than their files'.

What only programs that say `torch` ask for lies in the folder `torch`; ``pygrad.x`` is
``pygrad.torch.x`` there. Pickles of earlier versions name private modules that now lie in a room of
the package: ``pygrad._rebuild`` is ``pygrad._tensor.rebuild``.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any, Final

_PACKAGE: Final = __name__.partition(".")[0]
_ROOT: Final = Path(__file__).parent.parent
_TORCH: Final = "torch"
_FORMER: Final = {
    "_" + file.stem: f"{room}.{file.stem}"
    for room in ("_ground", "_table", "_tensor")
    for file in (_ROOT / room).glob("[a-z]*.py")
}
"""The modules of private rooms, by their names before they had rooms."""
OF_TORCH: Final = frozenset(
    {file.stem for file in (_ROOT / _TORCH).iterdir() if file.suffix in (".py", "")}
    - {file.stem for file in _ROOT.iterdir()}
)
"""The modules and packages that lie in the folder `torch` alone."""


def place_of(name: str) -> str | None:
    """The name below the package under which a module's file lies; None if it lies at `name`."""
    first, dot, rest = name.partition(".")
    if first in OF_TORCH:
        return f"{_TORCH}.{name}"
    former = _FORMER.get(first) if not (_ROOT / first).exists() else None
    return None if former is None else former + dot + rest


class Alias:
    """Loads an existing module under another name, unchanged."""

    def __init__(self, original: ModuleType) -> None:
        self._original = original
        self._spec = original.__spec__

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        """The module, already loaded."""
        return self._original

    def get_code(self, fullname: str) -> CodeType | None:
        """The code of the module, which `runpy` runs as a program."""
        loader: Any = self._original.__loader__
        code: CodeType | None = loader.get_code(self._original.__name__)
        return code

    def exec_module(self, module: ModuleType) -> None:
        """Restores the field that the import system wrote over."""
        module.__spec__ = self._spec


class _Finder:
    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """The spec of ``pygrad.x`` whose file lies elsewhere; None for any other name."""
        package, _, name = fullname.partition(".")
        place = place_of(name) if package == _PACKAGE else None
        if place is None:
            return None
        home = f"{_PACKAGE}.{place}"
        try:
            original = importlib.import_module(home)
        except ModuleNotFoundError as error:
            if error.name != home:
                raise
            return None
        _enter_submodules(fullname, home)
        loader: Any = Alias(original)  # no Loader: importlib.abc takes as long as the dtypes
        return ModuleSpec(fullname, loader, is_package=hasattr(original, "__path__"))


def _enter_submodules(alias: str, home: str) -> None:
    """Enters the loaded submodules of a package under the alias too. Otherwise an import of one
    would bind its name in the package, in the place of a function of that name.
    """
    for name in [name for name in sys.modules if name.startswith(home + ".")]:
        sys.modules.setdefault(alias + name.removeprefix(home), sys.modules[name])


# First, because the submodules of an aliased package lie in its original's path.
_finder: Any = _Finder()
sys.meta_path.insert(0, _finder)
