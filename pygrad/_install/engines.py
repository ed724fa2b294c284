"""Several engines in a process: each is the package once more, with a memory of its own.

The modules are executed anew under a private name, ``pygrad@1`` and so on, and import each other
instead of those of the first engine: all their imports are relative, and their builtins have an own
``__import__``. So every registry, class, view of memory and lock belongs to one engine by
construction, and a call costs the same as with one engine. Shared are modules that belong to no
engine: the compiled binary, dtypes and errors.

The import system has only a `_Face` of each module, for pickle and typing, which look modules up by
name. Any object of an engine keeps it alive: a tensor has its class, the class its methods, these
the globals of their module, and these the builtins, which have all modules.
"""

from __future__ import annotations

import builtins
import functools
import importlib
import itertools
import sys
import typing
import weakref
from collections.abc import Mapping, Sequence
from importlib.machinery import ModuleSpec, SourceFileLoader
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any, Final

from .._boundary import process

ORIGINAL: Final = __name__.partition(".")[0]
SHARED: Final = frozenset(
    "_boundary.process _ground.dtypes _ground.errors _ground.names _ground.wanted "
    "_install.compiled_parts _install.dialect _install.engines _install.harmless "
    "_install.stand_ins _install.way_in".split()
)
"""Modules that stand for no engine: they import each other alone."""
_ROOT: Final = Path(__file__).parent.parent
_numbers: Final = itertools.count(1)


@functools.cache
def _find(path: tuple[str, ...]) -> tuple[Path, CodeType] | None:
    """The file of a module and its code, which Python may have kept compiled."""
    place = _ROOT.joinpath(*path)
    for file in (place / "__init__.py", place.with_suffix(".py") if path else place):
        if file.is_file():
            name = ".".join((ORIGINAL, *path))
            code = SourceFileLoader(name, str(file)).get_code(name)
            assert code is not None
            return file, code
    return None


class _Face:
    """The entry of `sys.modules` for a module of an engine; does not keep the module alive."""

    __slots__ = ("_name", "_of")

    def __init__(self, module: ModuleType) -> None:
        self._name = module.__name__
        self._of = weakref.ref(module)

    def __getattr__(self, name: str) -> Any:
        module = self._of()
        if module is None:
            raise AttributeError(f"the engine of module {self._name!r} is gone")
        return getattr(module, name)

    def __dir__(self) -> list[str]:
        return dir(self._of())

    def __repr__(self) -> str:
        return f"<face of module {self._name!r}>"

    @property  # which typing reads
    def __dict__(self) -> dict[str, Any]:  # type: ignore[override]
        module = self._of()
        return {} if module is None else vars(module)


def _forget(name: str) -> None:
    """Removes a module whose engine is gone from the import system."""
    if isinstance(sys.modules.get(name), _Face):
        del sys.modules[name]


def _let_typing_forget(name: str) -> None:
    """Clears what `typing` would keep of a module forever: classes in aliases of types, and
    overloads of functions.
    """
    for forget in getattr(typing, "_cleanups", ()):
        forget()
    getattr(typing, "_overload_registry", {}).pop(name, None)


class _Modules:
    """The modules of one engine, by full name."""

    def __init__(self, package: Engine) -> None:
        self.package = package
        self.loaded: dict[str, ModuleType] = {}
        self.builtins = {**vars(builtins), "__import__": self.find}

    def find(
        self,
        name: str,
        globals: Mapping[str, Any] | None = None,
        locals: Any = None,
        fromlist: Sequence[str] = (),
        level: int = 0,
    ) -> Any:
        """``__import__`` for these modules."""
        if not level:
            return importlib.__import__(name, globals, locals, fromlist, level)
        assert globals is not None
        full = globals["__package__"]
        for _ in range(level - 1):
            full = full.rpartition(".")[0]
        module = self.load(f"{full}.{name}" if name else full)
        wanted = getattr(module, "__all__", ()) if "*" in fromlist else fromlist
        for each in wanted:
            if not hasattr(module, each):
                inner = f"{module.__name__}.{each}"
                if inner in self.loaded or _find(self._path(inner)) is not None:
                    setattr(module, each, self.load(inner))
        return module

    def _path(self, name: str) -> tuple[str, ...]:
        return tuple(name.split(".")[1:])

    def load(self, name: str) -> ModuleType:
        """The module of a full name, executed when first asked for."""
        if name in self.loaded:
            return self.loaded[name]
        path = self._path(name)
        if ".".join(path) in SHARED:
            made = importlib.import_module(".".join((ORIGINAL, *path)))
            self.loaded[name] = made
            return made
        if path:
            self.load(name.rpartition(".")[0])
        found = _find(path)
        if found is None:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
        made = self.package if not path else ModuleType(name)
        self._execute(made, name, *found)
        if path:
            setattr(self.loaded[name.rpartition(".")[0]], path[-1], made)
        return made

    def _execute(self, module: ModuleType, name: str, file: Path, code: CodeType) -> None:
        is_package = file.name == "__init__.py"
        names = module.__dict__
        names["__builtins__"] = self.builtins
        names["__file__"] = str(file)
        names["__package__"] = name if is_package else name.rpartition(".")[0]
        names["__spec__"] = ModuleSpec(name, None, origin=str(file), is_package=is_package)
        if is_package:
            names["__path__"] = [str(file.parent)]
        self.loaded[name] = module
        sys.modules[name] = _Face(module)  # type: ignore[assignment]
        weakref.finalize(module, _forget, name).atexit = False
        try:
            exec(code, names)
        except BaseException:
            del self.loaded[name]
            _forget(name)
            raise
        _let_typing_forget(name)


class Engine(ModuleType):
    """One more engine, isolated from the others: the whole of `pygrad` over a memory of its own.

    It has its own tensors, random numbers, modes, default dtype and hooks. Long calls of several
    engines run at the same time in several threads. An engine and its memory are freed when Python
    collects garbage after its last tensor and last name.

    Dtypes, devices and errors are shared with `pygrad`. A tensor of another engine is refused
    wherever it is given; copy it by its ``tolist()`` or ``numpy()``. A pickle of a tensor names its
    engine and can be read only where and while that engine lives; a file written by `save` can be
    read by every engine.

    Args:
        max_memory: the most bytes of memory, 32 MiB or more; beyond it a tensor raises
            `OutOfMemoryError`. None: what ``PYGRAD_MAX_MEMORY`` says, which holds for the first
            engine too, else 4 GiB.

    Raises: MemoryError: the process may not take the address space: see ``ulimit -v``.

    Example:
        >>> import pygrad
        >>> e = pygrad.Engine()
        >>> x = e.tensor([1.0, 2.0], requires_grad=True)
        >>> (x * x).sum().backward()
        >>> x.grad
        tensor([2., 4.])
        >>> pygrad.ones(2) + x
        Traceback (most recent call last):
        TypeError: a Tensor of pygrad@1 was given to pygrad: it belongs to another engine...
    """

    def __init__(self, max_memory: int | None = None) -> None:
        super().__init__(f"{ORIGINAL}@{next(_numbers)}")
        if max_memory is not None:
            process.memory_limits[self.__name__] = max_memory
        try:
            _Modules(self).load(self.__name__)
        finally:
            process.memory_limits.pop(self.__name__, None)

    def __repr__(self) -> str:
        return f"<{ORIGINAL}.Engine {self.__name__!r}>"

    def __reduce__(self) -> Any:
        raise TypeError("cannot pickle an engine")
