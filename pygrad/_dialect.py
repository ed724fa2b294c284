"""How `pygrad.torch` finds its names and submodules, and how `torch` comes to mean it.

A module of the dialect is a file of `pygrad/torch`, or the module of pygrad of that name. Where
`pygrad.install()` is in force, every one of them is ``torch.x`` too: the same object.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from types import CodeType, ModuleType
from typing import Any, Final

from . import _stand_ins, _wanted

ORIGINAL: Final = "pygrad"
DIALECT: Final = "pygrad.torch"
TORCH: Final = "torch"
BESIDE: Final = "functorch"
"""The package that PyTorch comes with beside its own."""


class _Alias(Loader):
    """Loads a module under one more name: gives out the one there is, which stays as it was."""

    def __init__(self, name: str, original: ModuleType) -> None:
        self._name = name
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
        """Puts back what the import system wrote over."""
        module.__spec__ = self._spec
        _keep_functions(self._name, module)
        if self._name.startswith(DIALECT + "."):
            supplement(module)
        if self._name.startswith(TORCH + "."):
            _show_as_torch(self._name)


class _Finder(MetaPathFinder):
    """Finds modules of the dialect that have no file of their own, and those of torch."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """The spec of ``pygrad.x`` for ``pygrad.torch.x``, and where the dialect stands for torch,
        of that for ``torch.x`` and of ``pygrad.functorch.x`` for ``functorch.x``; None for anything
        else.
        """
        if fullname.startswith(DIALECT + "."):
            if _has_file(fullname, path):
                return None
            name = original_name(fullname)
        elif fullname.startswith((TORCH + ".", BESIDE + ".")) and is_installed():
            name = f"{ORIGINAL}.{fullname}"
        else:
            return None
        try:
            original = importlib.import_module(name)
        except ModuleNotFoundError as error:
            if error.name is None or not f"{name}.".startswith(f"{error.name}."):
                raise
            name = torch_name(fullname)
            if fullname == name:
                return None
            if not _stand_ins.is_module(name):
                if fullname.startswith(DIALECT + ".") and _is_public(name):
                    _wanted.looked_up(name)
                return None
            loader: Any = _stand_ins.LOADER
            return ModuleSpec(fullname, loader, is_package=_stand_ins.is_package(name))
        return ModuleSpec(
            fullname, _Alias(fullname, original), is_package=hasattr(original, "__path__")
        )


def _has_file(fullname: str, path: Sequence[str] | None) -> bool:
    """Whether a file of the dialect stands for the module of pygrad."""
    package = fullname.rpartition(".")[0]
    spec = sys.modules[package].__spec__
    aliased = spec is None or spec.name != package
    return not aliased and PathFinder.find_spec(fullname, path) is not None


def _is_overlaid(name: str) -> bool:
    """Whether a file of the dialect stands for a module of pygrad, whose package is loaded."""
    path = getattr(sys.modules.get(name.rpartition(".")[0]), "__path__", None)
    return path is None or _has_file(name, path)


def original_name(name: str) -> str:
    """``pygrad.x`` of ``pygrad.torch.x``."""
    return ORIGINAL + name[len(DIALECT) :]


def torch_name(name: str) -> str:
    """``torch.x`` of ``pygrad.torch.x``, or of ``pygrad.x``."""
    return TORCH + name.removeprefix(ORIGINAL).removeprefix("." + TORCH)


def _keep_functions(package: str, original: ModuleType) -> None:
    """Where a function has the name of its module, an import must not put the module in its place:
    so it is imported already.
    """
    assert original.__spec__ is not None
    for name in [n for n in sys.modules if n.rpartition(".")[0] == original.__spec__.name]:
        short = name.rpartition(".")[2]
        if not isinstance(getattr(original, short, None), ModuleType):
            sys.modules[f"{package}.{short}"] = sys.modules[name]
            supplement(sys.modules[name])


def supplement(module: ModuleType) -> None:
    """Lets a module of pygrad, and those below that are loaded, show as stand-ins what PyTorch has
    there and pygrad has not.
    """
    below = module.__name__ + "."
    for name in [n for n in sys.modules if f"{n}.".startswith(below)]:
        if name.startswith(ORIGINAL + ".") and not name.startswith(DIALECT + "."):
            if _stand_ins.is_module(torch_name(name)):
                _stand_ins.supplement(sys.modules[name], torch_name(name))


def missing(module: str, name: str) -> Exception:
    """What to raise where a module of the dialect lacks a name."""
    if not name.startswith("__"):
        _wanted.looked_up(f"{module}.{name}")
    asks = sys._getframe(2).f_code
    if asks.co_name == "_handle_fromlist" and "importlib" in asks.co_filename:
        # It would go on to import torch.x, which is PyTorch's where that is installed.
        file = getattr(sys.modules.get(DIALECT), "__file__", None)
        return ImportError(f"cannot import name '{name}' from '{module}' ({file})", name=module)
    return AttributeError(
        f"module '{module}' has no attribute '{name}'", name=name, obj=sys.modules.get(module)
    )


def forward(package: str) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """The ``__getattr__`` and ``__dir__`` of a module of the dialect: a module of pygrad shows as
    the dialect has it, anything else as it is, and what is there already is put into the module.

    To others the module is known as torch's.
    """
    original = importlib.import_module(original_name(package))
    here = sys.modules[package]
    here.__name__ = torch_name(package)
    for name, value in vars(original).items():
        if not isinstance(value, ModuleType) and not name.startswith("__"):
            vars(here).setdefault(name, value)

    def get(name: str) -> Any:
        try:
            found = getattr(original, name)
        except AttributeError:
            if _has_submodule(here, package, name):
                return _imported(f"{package}.{name}")
            try:
                return _stand_ins.look_up(here, here.__name__, name)
            except LookupError:
                raise missing(here.__name__, name) from None
        if isinstance(found, ModuleType) and found.__name__ == f"{original.__name__}.{name}":
            return _imported(f"{package}.{name}")
        if isinstance(found, type) and is_installed():
            _tell(found, here.__name__)
        return found

    _keep_functions(package, original)

    def names() -> list[str]:
        return sorted({*dir(original), *vars(here)} - {"torch"})

    return get, names


def _imported(name: str) -> ModuleType:
    """A module of the dialect; by its name in torch too, where the dialect stands for that."""
    module = importlib.import_module(name)
    return importlib.import_module(torch_name(name)) if is_installed() else module


def _has_submodule(module: ModuleType, package: str, name: str) -> bool:
    """Whether a file of the dialect is the submodule of a name."""
    path = vars(module).get("__path__")
    return path is not None and PathFinder.find_spec(f"{package}.{name}", path) is not None


def find_modules() -> None:
    """Lets the import system find the submodules of the dialect."""
    # First, because the path of an aliased package is that of its original.
    sys.meta_path.insert(0, _Finder())


# ------------------------------------------------------------------ standing for torch

_told: dict[type, str] = {}
"""Classes that say now that they are of torch, each with what it said before."""


def is_installed() -> bool:
    """Whether `torch` means the dialect in this process."""
    there = sys.modules.get(TORCH)  # None where a program has forbidden its import
    return there is not None and there is sys.modules.get(DIALECT)


def _is_public(name: str) -> bool:
    return not any(part.startswith("_") for part in name.split("."))


def stand_for_torch() -> None:
    """Gives every module of the dialect that is loaded its name in torch, and classes theirs."""
    sys.modules[TORCH] = sys.modules[DIALECT]
    _show_as_torch(TORCH)


def stand_aside() -> None:
    """Takes the dialect from PyTorch's names again."""
    for name in [n for n in sys.modules if n.partition(".")[0] in (TORCH, BESIDE)]:
        if sys.modules[name] is sys.modules.get(f"{ORIGINAL}.{name}"):
            del sys.modules[name]
    for kind, module in _told.items():
        kind.__module__ = module
    _told.clear()


def _show_as_torch(package: str) -> None:
    """Gives a module and those below, as far as they are loaded, their names in torch; and lets
    their classes, those of pygrad and those of the dialect, say that they are there.
    """
    homes = (f"{ORIGINAL}{package[len(TORCH) :]}.", f"{ORIGINAL}.{package}.")
    for home in [n for n in sys.modules if f"{n}.".startswith(homes) and _is_public(n)]:
        name = torch_name(home)
        alias = f"{ORIGINAL}.{name}"
        if alias not in sys.modules and not _is_overlaid(alias):
            sys.modules[alias] = sys.modules[home]
            supplement(sys.modules[home])
        sys.modules[name] = importlib.import_module(alias)
        public = getattr(sys.modules[home], "__all__", ())
        for key, kind in list(vars(sys.modules[home]).items()):
            if isinstance(kind, type) and (kind.__module__ == home or key in public):
                _tell(kind, name)


def _tell(kind: type, shown: str) -> None:
    """Lets a class of pygrad say that it is in torch: in the module of that name, or in the public
    one that shows it. The second is not for annotations, whose names are in its own module.
    """
    home = kind.__module__
    if not f"{home}.".startswith(ORIGINAL + ".") or kind in _told:
        return
    if not _is_public(home) and vars(kind).get("__annotations__"):
        return
    _told[kind] = home
    there = _is_public(home) or home == f"{ORIGINAL}._C"
    kind.__module__ = torch_name(home) if there else shown
