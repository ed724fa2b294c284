"""Lookup of the names and submodules of `pygrad.torch`, and its installation as `torch`.

A module of the dialect is a file of `pygrad/torch`, or the module of pygrad of that name. Where
`pygrad.install()` is in force, every one of them is ``torch.x`` too: the same object.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from types import ModuleType
from typing import Any, Final

from .._ground import names, wanted
from . import stand_ins

ORIGINAL: Final = "pygrad"
DIALECT: Final = "pygrad.torch"
TORCH: Final = "torch"
BESIDE: Final = "functorch"
"""The package that PyTorch comes with beside its own."""


class _Alias(names.Alias):
    """Loads an existing module of pygrad as one of the dialect or of torch."""

    def __init__(self, name: str, original: ModuleType) -> None:
        super().__init__(original)
        self._name = name

    def exec_module(self, module: ModuleType) -> None:
        """Adds the names that PyTorch has there and pygrad lacks."""
        super().exec_module(module)
        _keep_functions(self._name, module)
        if self._name.startswith(DIALECT + "."):
            supplement(module)
        if self._name.startswith(TORCH + "."):
            _show_as_torch(self._name)


_forwarding: Final[set[str]] = {DIALECT}
"""The modules of the dialect that look names up by `forward`."""


class _Loader(SourceFileLoader):
    """Loads a file of the dialect."""

    def exec_module(self, module: ModuleType) -> None:
        """Adds the names that PyTorch has there and pygrad lacks."""
        super().exec_module(module)
        supplement(module)


class _Finder(MetaPathFinder):
    """Finds modules of the dialect and of torch that have no file of their own."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """The spec of ``pygrad.x`` for ``pygrad.torch.x``; where the dialect stands for torch, also
        the spec of ``pygrad.torch.x`` for ``torch.x`` and of ``pygrad.functorch.x`` for
        ``functorch.x``; None for any other name.
        """
        if fullname.startswith(DIALECT + "."):
            if spec := _spec_of_file(fullname, path):
                return spec
            original = _import_original(original_name(fullname))
        elif fullname.startswith((TORCH + ".", BESIDE + ".")) and is_installed():
            original = _import_if_there(f"{ORIGINAL}.{fullname}")
        else:
            return None
        if original is None:
            return _spec_of_stand_in(fullname)
        loader: Any = _Alias(fullname, original)
        return ModuleSpec(fullname, loader, is_package=hasattr(original, "__path__"))


def _import_if_there(name: str) -> ModuleType | None:
    """The module of a name; None if there is none."""
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{name}.".startswith(f"{error.name}."):
            raise
        return None


def _import_original(name: str) -> ModuleType | None:
    """The module of pygrad that the dialect shows under the name; None if there is none."""
    if names.place_of(name.removeprefix(ORIGINAL + ".")) is not None:
        return None  # its place is the dialect
    return _import_if_there(name)


def _spec_of_stand_in(fullname: str) -> ModuleSpec | None:
    """The spec of a module that PyTorch has and pygrad lacks; None if PyTorch lacks it too."""
    name = torch_name(fullname)
    if fullname == name:
        return None
    if not stand_ins.is_module(name):
        if fullname.startswith(DIALECT + ".") and _is_public(name):
            wanted.count_lookup(name)
        return None
    loader: Any = stand_ins.LOADER
    return ModuleSpec(fullname, loader, is_package=stand_ins.is_package(name))


def _spec_of_file(fullname: str, path: Sequence[str] | None) -> ModuleSpec | None:
    """The spec of a module that has a file in `pygrad/torch`; None if it has none there."""
    package = fullname.rpartition(".")[0]
    above = sys.modules[package].__spec__
    if above is None or above.name != package:  # an alias, whose path is its original's
        return None
    spec = PathFinder.find_spec(fullname, path)
    if spec is not None and spec.origin is not None:
        spec.loader = _Loader(fullname, spec.origin)
    return spec


def _is_overlaid(name: str) -> bool:
    """Whether a file of the dialect stands for a module of pygrad; looks in the package's path if
    it is loaded, else says True.
    """
    path = getattr(sys.modules.get(name.rpartition(".")[0]), "__path__", None)
    return path is None or _spec_of_file(name, path) is not None


def original_name(name: str) -> str:
    """``pygrad.x`` of ``pygrad.torch.x``."""
    return ORIGINAL + name[len(DIALECT) :]


def torch_name(name: str) -> str:
    """``torch.x`` of ``pygrad.torch.x``, or of ``pygrad.x``."""
    return TORCH + name.removeprefix(ORIGINAL).removeprefix("." + TORCH)


def _keep_functions(package: str, original: ModuleType) -> None:
    """Enters the modules that share a name with a function of their package in `sys.modules`, so
    that a later import does not put the module in the function's place.
    """
    assert original.__spec__ is not None
    for name in [n for n in sys.modules if n.rpartition(".")[0] == original.__spec__.name]:
        short = name.rpartition(".")[2]
        if not isinstance(getattr(original, short, None), ModuleType):
            sys.modules[f"{package}.{short}"] = sys.modules[name]
            supplement(sys.modules[name])


def supplement(module: ModuleType) -> None:
    """Adds stand-ins to a module of pygrad and its loaded submodules, for the names that PyTorch
    has there and pygrad lacks.
    """
    below = module.__name__ + "."
    for name in [n for n in sys.modules if f"{n}.".startswith(below)]:
        if name.startswith(ORIGINAL + ".") and name not in _forwarding:
            if stand_ins.is_module(torch_name(name)):
                stand_ins.supplement(sys.modules[name], torch_name(name))


def missing_name_error(module: str, name: str) -> Exception:
    """The error to raise where a module of the dialect lacks a name."""
    if not name.startswith("__"):
        wanted.count_lookup(f"{module}.{name}")
    asks = sys._getframe(2).f_code
    if asks.co_name == "_handle_fromlist" and "importlib" in asks.co_filename:
        # The import system would next import torch.x, which is PyTorch's module where PyTorch is
        # installed.
        file = getattr(sys.modules.get(DIALECT), "__file__", None)
        return ImportError(f"cannot import name '{name}' from '{module}' ({file})", name=module)
    return AttributeError(
        f"module '{module}' has no attribute '{name}'", name=name, obj=sys.modules.get(module)
    )


def forward(package: str) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """The ``__getattr__`` and ``__dir__`` of a module of the dialect: submodules of pygrad appear
    as the dialect's, other names unchanged. Existing names are copied into the module.

    The module's `__name__` is torch's.
    """
    original = importlib.import_module(original_name(package))
    here = sys.modules[package]
    _forwarding.add(package)
    here.__name__ = torch_name(package)
    for name, value in vars(original).items():
        if not isinstance(value, ModuleType) and not name.startswith("__"):
            vars(here).setdefault(name, value)

    def get(name: str) -> Any:
        try:
            found = getattr(original, name)
        except AttributeError:
            if _has_submodule(here, package, name):
                return _import_module(f"{package}.{name}")
            try:
                return stand_ins.look_up(here, here.__name__, name)
            except LookupError:
                raise missing_name_error(here.__name__, name) from None
        homes = (f"{original.__name__}.{name}", f"{package}.{name}")
        if isinstance(found, ModuleType) and found.__name__ in homes:
            return _import_module(f"{package}.{name}")
        if isinstance(found, type) and is_installed():
            _tell(found, here.__name__)
        return found

    _keep_functions(package, original)

    def list_names() -> list[str]:
        return sorted({*dir(original), *vars(here)} - {"torch"})

    return get, list_names


def _import_module(name: str) -> ModuleType:
    """A module of the dialect; under its name in torch too, if the dialect stands for torch."""
    module = importlib.import_module(name)
    return importlib.import_module(torch_name(name)) if is_installed() else module


def _has_submodule(module: ModuleType, package: str, name: str) -> bool:
    """Whether a file of the dialect is the submodule of a name."""
    path = vars(module).get("__path__")
    return path is not None and PathFinder.find_spec(f"{package}.{name}", path) is not None


def find_modules() -> None:
    """Lets the import system find the submodules of the dialect."""
    # First, because an aliased package has its original's path.
    sys.meta_path.insert(0, _Finder())


# ------------------------------------------------------------------ standing for torch

_told: dict[type, str] = {}
"""Classes whose `__module__` names torch now, each with its former one."""


def is_installed() -> bool:
    """Whether `torch` means the dialect in this process."""
    there = sys.modules.get(TORCH)  # None where a program has forbidden its import
    return there is not None and there is sys.modules.get(DIALECT)


def _is_public(name: str) -> bool:
    return not any(part.startswith("_") for part in name.split("."))


def stand_for_torch() -> None:
    """Gives every loaded module of the dialect, and its classes, their names in torch."""
    sys.modules[TORCH] = sys.modules[DIALECT]
    _show_as_torch(TORCH)


def stand_aside() -> None:
    """Removes the dialect from PyTorch's names."""
    for name in [n for n in sys.modules if n.partition(".")[0] in (TORCH, BESIDE)]:
        if sys.modules[name] is sys.modules.get(f"{ORIGINAL}.{name}"):
            del sys.modules[name]
    for kind, module in _told.items():
        kind.__module__ = module
    _told.clear()


def _show_as_torch(package: str) -> None:
    """Enters a module and its loaded submodules under their names in torch, and sets the
    `__module__` of their classes accordingly.
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
    """Sets the `__module__` of a class of pygrad to its module in torch, or to the public module
    that shows it. The latter leaves classes with annotations alone, because annotations are
    resolved in the class's own module.
    """
    home = kind.__module__
    if not f"{home}.".startswith(ORIGINAL + ".") or kind in _told:
        return
    if not _is_public(home) and vars(kind).get("__annotations__"):
        return
    _told[kind] = home
    there = _is_public(home) or home == f"{ORIGINAL}._C"
    kind.__module__ = torch_name(home) if there else shown
