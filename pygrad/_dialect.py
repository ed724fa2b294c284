"""How `pygrad.torch` finds its names and submodules: in pygrad itself."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType
from typing import Any, Final

ORIGINAL: Final = "pygrad"
DIALECT: Final = "pygrad.torch"


class _Alias(Loader):
    """Loads ``pygrad.torch.x`` by giving out ``pygrad.x``, which stays as it was."""

    def __init__(self, name: str, original: ModuleType) -> None:
        self._name = name
        self._original = original
        self._spec = original.__spec__

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        """The module of pygrad, already loaded."""
        return self._original

    def exec_module(self, module: ModuleType) -> None:
        """Puts back what the import system wrote over."""
        module.__spec__ = self._spec
        _keep_functions(self._name, module)


class _Finder(MetaPathFinder):
    """Finds submodules of the dialect that have no file of their own."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """The spec of ``pygrad.x`` for ``pygrad.torch.x``; None for anything else."""
        if not fullname.startswith(DIALECT + ".") or _has_file(fullname, path):
            return None
        name = original_name(fullname)
        try:
            original = importlib.import_module(name)
        except ModuleNotFoundError as error:
            if error.name != name:
                raise
            return None
        return ModuleSpec(
            fullname, _Alias(fullname, original), is_package=hasattr(original, "__path__")
        )


def _has_file(fullname: str, path: Sequence[str] | None) -> bool:
    """Whether a file of the dialect stands for the module of pygrad."""
    package = fullname.rpartition(".")[0]
    aliased = sys.modules[package].__name__ != package
    return not aliased and PathFinder.find_spec(fullname, path) is not None


def original_name(name: str) -> str:
    """``pygrad.x`` of ``pygrad.torch.x``."""
    return ORIGINAL + name[len(DIALECT) :]


def _keep_functions(package: str, original: ModuleType) -> None:
    """Where a function has the name of its module, an import must not put the module in its place:
    so it is imported already.
    """
    for name in [n for n in sys.modules if n.rpartition(".")[0] == original.__name__]:
        short = name.rpartition(".")[2]
        if not isinstance(getattr(original, short, None), ModuleType):
            sys.modules[f"{package}.{short}"] = sys.modules[name]


def forward(package: str) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """The ``__getattr__`` and ``__dir__`` of a module of the dialect: a module of pygrad shows as
    the dialect has it, anything else as it is.
    """
    original = importlib.import_module(original_name(package))

    def get(name: str) -> Any:
        try:
            found = getattr(original, name)
        except AttributeError:
            message = f"module '{package}' has no attribute '{name}'"
            raise AttributeError(message, name=name, obj=sys.modules[package]) from None
        if isinstance(found, ModuleType) and found.__name__ == f"{original.__name__}.{name}":
            return importlib.import_module(f"{package}.{name}")
        return found

    _keep_functions(package, original)

    def names() -> list[str]:
        return sorted({*dir(original), *vars(sys.modules[package])} - {"torch"})

    return get, names


def install() -> None:
    """Lets the import system find the submodules of the dialect."""
    # First, because the path of an aliased package is that of its original.
    sys.meta_path.insert(0, _Finder())
