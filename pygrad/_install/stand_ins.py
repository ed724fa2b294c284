"""Stand-ins for names that PyTorch has and pygrad lacks: importable, and of the right kind.

``torch/names.txt`` lists every name of PyTorch with its kind and place; `tests/parity/names.py`
writes it and explains its format. A stand-in is made from it when a program first asks for a name
that pygrad lacks. A class can be subclassed, subscripted and used in `isinstance`; an error or an
enumeration works. A call of a function or a constructor raises NotImplementedError, which names the
missing thing and what to do instead.
"""

from __future__ import annotations

import ast
import enum
import functools
import importlib
import logging
import sys
import types
import typing
from collections.abc import Callable
from importlib.machinery import PathFinder
from pathlib import Path
from types import ModuleType
from typing import Any, Final

from .._ground import dtypes, wanted
from . import harmless

ORIGINAL: Final = "pygrad"
TORCH: Final = "torch"
_FILE: Final = Path(__file__).parent.parent / "torch" / "names.txt"
_NOTHING: Final = object()

_INSTEAD: Final = {
    "torch": "it is not implemented",
    "torch.accelerator": "there is none; guard it by torch.accelerator.is_available()",
    "torch.ao": "tensors are not quantized here; use float32 or bfloat16",
    "torch.compiler": "nothing is compiled; run the function or module as it is",
    "torch.cuda": "there is no such device; guard it by torch.cuda.is_available()",
    "torch.distributed.run": "start the processes by mpiexec, or on a Ray cluster",
    "torch.distributed.launch": "start the processes by mpiexec, or on a Ray cluster",
    "torch.distributed": "use the groups and collectives over MPI or Ray",
    "torch._C._distributed_c10d": "use the groups and collectives over MPI or Ray",
    "torch._dynamo": "nothing is compiled; run the function or module as it is",
    "torch._export": "nothing is exported; run the module as it is",
    "torch._inductor": "nothing is compiled; run the function or module as it is",
    "torch.export": "nothing is exported; run the module as it is",
    "torch.jit": "there is no TorchScript; call the function or module as it is",
    "torch.mps": "there is no such device; guard it by torch.backends.mps.is_available()",
    "torch.mtia": "there is no such device; guard it by torch.mtia.is_available()",
    "torch.nativert": "nothing is exported; run the module as it is",
    "torch.nn.parallel": "use DataParallel or DistributedDataParallel",
    "torch.nn.quantized": "tensors are not quantized here; use the layer of torch.nn",
    "torch.onnx": "save the state dict by torch.save, and export it from PyTorch",
    "torch.package": "save a state dict by torch.save, and keep the code in a module",
    "torch.quantization": "tensors are not quantized here; use float32 or bfloat16",
    "torch.utils.cpp_extension": "compiled extensions of PyTorch cannot be loaded; "
    "write the op as a torch.autograd.Function",
    "torch.xpu": "there is no such device; guard it by torch.xpu.is_available()",
}
"""Alternatives to missing names; the longest prefix of a name counts."""


def refusal(name: str) -> str:
    """The sentence that says that a name is missing, and what to do instead.

    Example:
        >>> refusal("torch.onnx.export")[:48]
        'pygrad has no torch.onnx.export: save the state '
    """
    above = name
    while above not in _INSTEAD:
        above = above.rpartition(".")[0]
    return f"pygrad has no {name}: {_INSTEAD[above]}"


# ------------------------------------------------------------------ the description


class _Entry(typing.NamedTuple):
    """A name of a module: its kind, and the rest of its description."""

    kind: str
    detail: str = ""
    more: str = ""


@functools.cache
def _blocks() -> dict[str, str]:
    """The lines about each module, by its name."""
    blocks = ("\n" + _FILE.read_text("utf-8")).split("\n" + TORCH)
    found = {}
    for block in blocks[1:]:
        head, _, body = block.partition("\n")
        name, slash, hidden = head.partition("/")
        found[TORCH + name] = body
        if slash:
            _packages[TORCH + name] = hidden.split()
    return found


_packages: Final[dict[str, list[str]]] = {}
"""Packages, with the submodules whose name PyTorch uses for something else."""


def is_module(name: str) -> bool:
    """Whether PyTorch has a module of this name."""
    return name in _blocks()


def is_package(name: str) -> bool:
    """Whether PyTorch has a package of this name."""
    return is_module(name) and name in _packages


@functools.cache
def entries(module: str) -> dict[str, _Entry]:
    """The names that PyTorch has in a module, without submodules."""
    found = {}
    for line in _blocks().get(module, "").splitlines():
        head, _, names = line.strip().partition(": ")
        kind, _, detail = head.partition(" ")
        if kind in ("enum", "members"):
            base, _, name = detail.rpartition(" ")
            found[name] = _Entry("enum" if kind == "enum" else "class", base, names)
            continue
        for each in names.split():
            name, _, more = each.partition("=")
            found[name] = _Entry(kind, detail, more)
    return found


# ------------------------------------------------------------------ names


def look_up(module: ModuleType, name: str, short: str) -> Any:
    """The value of a name in a module of the dialect that pygrad's own module lacks.

    Raises:
        LookupError: PyTorch does not have it either.
    """
    if short.startswith("__"):
        if short == "__path__" and is_package(name):
            return []
        if short == "__all__" and getattr(module, "__loader__", None) is LOADER:
            return sorted(n for n in entries(name) if not n.startswith("_"))
        raise LookupError
    if short in entries(name):
        return _resolve(name, short)
    if is_module(f"{name}.{short}"):
        return importlib.import_module(f"{ORIGINAL}.{name}.{short}")
    raise LookupError


@functools.cache
def _resolve(module: str, short: str) -> Any:
    """The value of a name in `names.txt`: pygrad's own object from another place, or a stand-in."""
    entry = entries(module)[short]
    if entry.kind == "from":
        if entry.detail.partition(".")[0] == TORCH:
            home = importlib.import_module(f"{ORIGINAL}.{entry.detail}")
        else:
            try:
                home = importlib.import_module(entry.detail)
            except ImportError:  # the package is not installed
                raise LookupError from None
        return getattr(home, entry.more or short)
    if entry.kind == "module":
        return importlib.import_module(f"{ORIGINAL}.{entry.more}")
    if entry.kind in ("class", "protocol", "def", "object"):
        found = _elsewhere(module, short)
        if found is not _NOTHING and (entry.kind == "def" or isinstance(found, type)):
            return found
    return _MAKERS[entry.kind](module, short, entry)


def _elsewhere(module: str, short: str) -> Any:
    """pygrad's object from another place where PyTorch has the same one, or a harmless function."""
    places = [(module, short)]
    marker = f" from {module}: "
    for place, body in _blocks().items():
        at = body.find(marker)
        if at >= 0:
            for text in body[at + len(marker) :].partition("\n")[0].split():
                shown, _, original = text.partition("=")
                if (original or shown) == short:
                    places.append((place, shown))
    for each in places[1:]:
        found = _real(*each)
        if found is not _NOTHING:
            return found
    return next(filter(None, (harmless.find(*each) for each in places)), _NOTHING)


def _real(module: str, name: str) -> Any:
    """The object in pygrad's own module for a name of PyTorch."""
    home = ORIGINAL + module[len(TORCH) :]
    try:
        original = importlib.import_module(home)
    except ModuleNotFoundError:
        return _NOTHING
    if name in vars(original):
        return vars(original)[name]
    ask = _asked_before.get(original.__name__, vars(original).get("__getattr__"))
    if ask is None:
        return _NOTHING
    try:
        return ask(name)
    except AttributeError:
        return _NOTHING


# ------------------------------------------------------------------ stand-ins, a maker a kind


def _refuse(name: str) -> typing.NoReturn:
    wanted.used(name)
    raise NotImplementedError(refusal(name))


def is_stand_in(value: Any) -> bool:
    """Whether the value is a stand-in for a class or function that pygrad lacks."""
    return (getattr(value, "__doc__", None) or "").startswith("A stand-in: ")


def _base(name: str) -> type:
    """A class by its full name, from Python or PyTorch; `object` if there is none or its package is
    not installed.
    """
    module, _, short = name.rpartition(".")
    home = f"{ORIGINAL}.{module}" if module.partition(".")[0] == TORCH else module or "builtins"
    try:
        found = getattr(importlib.import_module(home), short or "object")
    except (ImportError, AttributeError):
        return object
    return found if isinstance(found, type) else object


def _make_class(module: str, short: str, entry: _Entry) -> type:
    full = f"{module}.{short}"
    base = _base(entry.detail)
    body: dict[str, Any] = {"__module__": module, "__doc__": f"A stand-in: {refusal(full)}."}
    if not issubclass(base, BaseException):

        def __new__(cls: type, *_: Any, **__: Any) -> Any:
            _refuse(full)

        def __init__(self: Any, *_: Any, **__: Any) -> None:
            """Never called."""

        def __init_subclass__(cls: type, **_: Any) -> None:
            """Does nothing."""

        body.update(__new__=__new__, __init__=__init__, __init_subclass__=__init_subclass__)
        body["__class_getitem__"] = classmethod(types.GenericAlias)
    if entry.more:
        body.update(_members(short, entry.more))
    try:
        return types.new_class(short, (base,), exec_body=lambda names: names.update(body))
    except TypeError:  # a class that cannot have any below it
        return type(short, (), body)


def _members(short: str, text: str) -> dict[str, Any]:
    """The members of an enumeration within a class."""
    names = [each.partition("=")[0] for each in text.split() if not each.startswith("__")]
    kind: Any = enum.IntEnum(f"{short}Member", names, start=0)  # type: ignore[misc]
    return dict(kind.__members__)


def _make_protocol(module: str, short: str, entry: _Entry) -> type:
    body = {"__module__": module, "__class_getitem__": classmethod(types.GenericAlias)}
    return type(short, (), body)


def _make_enumeration(module: str, short: str, entry: _Entry) -> Any:
    members = {}
    for each in entry.more.split():
        name, _, value = each.partition("=")
        members[name] = ast.literal_eval(value)
    base = _base(entry.detail)
    if not issubclass(base, enum.Enum) or getattr(base, "__members__", None):
        integers = all(isinstance(value, int) for value in members.values())
        base = enum.IntEnum if integers else enum.Enum
    make: Any = base
    return make(short, members, module=module)


def _make_function(module: str, short: str, entry: _Entry) -> Callable[..., Any]:
    full = f"{module}.{short}"

    def function(*_: Any, **__: Any) -> Any:
        _refuse(full)

    function.__name__ = function.__qualname__ = short
    function.__module__ = module
    function.__doc__ = f"A stand-in: {refusal(full)}."
    return function


class _Object:
    """A stand-in for an object: every attribute and call is refused."""

    def __init__(self, name: str) -> None:
        self.__dict__["_name"] = name

    def __repr__(self) -> str:
        return f"<stand-in for {self._name}>"

    def __getattr__(self, name: str) -> Any:
        full = f"{self._name}.{name}"
        if not name.startswith("__"):
            wanted.count_lookup(full)
        raise AttributeError(refusal(full), name=name, obj=self)

    def __call__(self, *_: Any, **__: Any) -> Any:
        _refuse(self._name)

    __getitem__ = __call__


class _Unavailable(dtypes.dtype):
    """An element type of PyTorch that no tensor here can have."""

    __slots__ = ()

    def __init__(self, name: str, itemsize: int, kind: str) -> None:
        self.legacy, self._format, self.name, self.itemsize = name, "", name, itemsize
        self.is_floating_point, self.is_complex = kind == "f", kind == "c"
        self._inexact, self.is_signed = kind in "fc", kind != "u"

    @property  # the engine reads this
    def code(self) -> int:  # type: ignore[override]
        """Raises NotImplementedError."""
        full = f"{TORCH}.{self.name}"
        wanted.used(full)
        raise NotImplementedError(f"pygrad has no {full}: tensors have {_TYPES}")

    def limits(self) -> tuple[float, ...]:
        """The limits of the 8-bit types; NotImplementedError for smaller types."""
        if self.name not in _LIMITS:
            raise NotImplementedError(f"\"epsilon\" not implemented for '{self.name}'")
        eps, most, tiny = _LIMITS[self.name]
        return eps, most, tiny if "e8m0" in self.name else -most, tiny, 1.0


_LIMITS: Final = {
    "float8_e4m3fn": (2.0**-3, 448.0, 2.0**-6),
    "float8_e4m3fnuz": (2.0**-3, 240.0, 2.0**-7),
    "float8_e5m2": (2.0**-2, 57344.0, 2.0**-14),
    "float8_e5m2fnuz": (2.0**-3, 57344.0, 2.0**-15),
    "float8_e8m0fnu": (1.0, 2.0**127, 2.0**-127),
}
"""eps, max and tiny; e8m0 has no sign."""
_TYPES: Final = "the types from bool to complex128, with float16, bfloat16 and the unsigned ones"


def _make_dtype(module: str, short: str, entry: _Entry) -> Any:
    return _Unavailable(short, int(entry.more[:-1]), entry.more[-1])


def _make_value(module: str, short: str, entry: _Entry) -> Any:
    return float(entry.more) if entry.more in ("inf", "nan") else ast.literal_eval(entry.more)


_MAKERS: Final[dict[str, Callable[[str, str, _Entry], Any]]] = {
    "any": lambda module, short, entry: Any,
    "class": _make_class,
    "generic": _make_protocol,
    "def": _make_function,
    "dtype": _make_dtype,
    "enum": _make_enumeration,
    "layout": lambda module, short, entry: dtypes.layout(short),
    "logger": lambda module, short, entry: logging.getLogger(module),
    "object": lambda module, short, entry: _Object(f"{module}.{short}"),
    "protocol": _make_protocol,
    "typevar": lambda module, short, entry: typing.TypeVar(short),
    "value": _make_value,
}


# ------------------------------------------------------------------ modules

_asked_before: Final[dict[str, Any]] = {}
"""The ``__getattr__`` that modules had before `supplement`, by module."""


class _Loader:
    """Makes a module that PyTorch has and pygrad lacks."""

    def create_module(self, spec: Any) -> ModuleType:
        """An empty module under PyTorch's name."""
        return ModuleType(spec.name.removeprefix(f"{ORIGINAL}."))

    def get_code(self, fullname: str) -> None:
        """Raises ImportError, which `runpy` reports to a user who runs the module as a program."""
        name = fullname.removeprefix(f"{ORIGINAL}.")
        wanted.used(name)
        raise ImportError(refusal(name), name=name)

    def exec_module(self, module: ModuleType) -> None:
        """Makes the module answer from its description."""
        module.__doc__ = f"A stand-in: what is in it, pygrad has not. {refusal(module.__name__)}."
        package, _, short = module.__name__.rpartition(".")
        holder = vars(sys.modules.get(f"{ORIGINAL}.{package}", module)).get(short)
        if isinstance(holder, types.SimpleNamespace):  # the module replaces the namespace
            vars(module).update(vars(holder))
        supplement(module, module.__name__)


LOADER: Final = _Loader()


def _has_file(module: ModuleType, name: str) -> bool:
    """Whether a name is a submodule, which an import asks for before it is loaded."""
    path = getattr(module, "__path__", None)
    return path is not None and PathFinder.find_spec(f"{module.__name__}.{name}", path) is not None


def supplement(module: ModuleType, name: str) -> None:
    """Lets a module also show the names that PyTorch has in the module `name`."""
    before = vars(module).get("__getattr__")
    if module.__name__ in _asked_before:
        return
    _asked_before[module.__name__] = before

    def get(short: str) -> Any:
        if before is not None:
            try:
                return before(short)
            except AttributeError:
                pass
        try:
            return look_up(module, name, short)
        except LookupError:
            if wanted.TRACES and not short.startswith("__") and not _has_file(module, short):
                wanted.count_lookup(f"{name}.{short}")
            shown = module.__name__.replace(".torch.", ".", 1)  # the name that users know
            said = f"module '{shown}' has no attribute '{short}'"
            raise AttributeError(said, name=short, obj=module) from None

    vars(module)["__getattr__"] = get
    _keep_names(module, name)


def _keep_names(module: ModuleType, name: str) -> None:
    """Imports the submodules whose name PyTorch uses for something else, so that a later import
    does not put the submodule in its place.
    """
    for short in _packages.get(name, ()):
        there = vars(module).get(short, _NOTHING)
        if f"{ORIGINAL}.{name}.{short}" not in sys.modules:
            importlib.import_module(f"{ORIGINAL}.{name}.{short}")
            vars(module).pop(short, None)
            if there is not _NOTHING:
                setattr(module, short, there)
