"""Import of modules by other names than their files'.

The folder `torch` holds the modules that only programs written for torch import; an import of
``pygrad.x`` gives ``pygrad.torch.x`` for them. Pickles of earlier versions name private modules
that now lie in a room of the package; an import of ``pygrad._rebuild`` gives
``pygrad._tensor.rebuild``.
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
_ROOMS: Final = ("_ground", "_table", "_tensor")
"""The rooms of modules that pickles name."""


def modules_in(folder: Path) -> frozenset[str]:
    """The names of the modules in a folder. A folder with nothing but compiled files, as version
    control leaves it behind, is none.
    """
    return frozenset(
        file.stem
        for file in folder.iterdir()
        if file.suffix in (".py", ".pyi") or (file / "__init__.py").is_file()
    )


_TOP: Final = modules_in(_ROOT)
OF_TORCH: Final = modules_in(_ROOT / _TORCH) - _TOP
"""The modules and packages that lie in the folder `torch` alone."""


def place_of(name: str) -> str | None:
    """The name below the package of a module that lies in the folder `torch` alone; else None."""
    return f"{_TORCH}.{name}" if name.partition(".")[0] in OF_TORCH else None


def _place_of_former(name: str) -> str | None:
    """The name below the package of a private module that has moved into a room; else None."""
    if name.partition(".")[0] in _TOP:
        return None
    file = name.removeprefix("_")
    room = next((room for room in _ROOMS if (_ROOT / room / f"{file}.py").is_file()), None)
    return f"{room}.{file}" if room is not None and file != name else None


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
        if package != _PACKAGE:
            return None
        place = place_of(name) or _place_of_former(name)
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
