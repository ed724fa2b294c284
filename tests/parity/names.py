"""Writes ``pygrad/torch/names.txt``: what PyTorch has under which name, and of what kind it is.

    python tests/parity/names.py pygrad/torch/names.txt

Every public module is described, and private ones that libraries are known to look into. A module
is a line with its name, a package's with a slash behind and those of its submodules whose names it
gives to something else; the lines below it have its names by kind:

    from HOME: a b          what the module HOME has under the same name, described here or Python's
    from HOME: a=b          ... under the name b
    class BASE: A B         classes, by the nearest base that matters, if any
    enum BASE A: X=1 Y=2    an enumeration with its members
    members BASE A: X=0     a class that shows those of an enumeration within it
    protocol: A B           classes that others are derived from and that do nothing themselves
    def: f g                functions
    value: A=1 B='x'        numbers, strings, truth values, None
    any: T                  types of annotations that are no classes
    generic: L              what may be subscripted in annotations
    typevar: T              variables of types
    logger: log             loggers
    module: m=torch.x.y     modules that are shown in another place than their own
    dtype: a=1f             element types, with their size in bytes, and f, c, i or u of their kind
    layout: a               layouts
    object: x y             anything else
"""

from __future__ import annotations

import argparse
import contextlib
import enum
import importlib
import io
import keyword
import logging
import pkgutil
import re
import sys
import types
import typing
import warnings
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

DEEP = {
    "torch._C",
    "torch._functorch",
    "torch.utils.data._utils",
    "torch._dynamo",
    "torch._subclasses",
    "torch.distributed._composable",
    "torch.distributed._tensor",
}
"""Private packages whose modules are described too."""
UNSEEN = """
    torch._inductor. torch.testing._internal. torch._refs torch._numpy torch._meta_registrations
    torch._decomp torch._prims torch._C_flatbuffer torch._strobelight torch._subclasses.fake_impls
    torch._dynamo.symbolic torch._dynamo.variables torch._dynamo.guards torch._dynamo.output_graph
    torch._dynamo.convert_frame torch._dynamo.polyfills torch._dynamo.bytecode torch._dynamo.source
    torch._dynamo.side_effects torch._dynamo.codegen torch._dynamo.repro torch._dynamo.debug
    torch._functorch._a torch._functorch.aot torch._functorch.part torch._functorch.compile
    torch._functorch.bench torch._functorch.fx_ torch._functorch.top
""".split()
"""Beginnings of what is left out: PyTorch's own machinery and tests."""
SEEN = {"torch._inductor.codecache"}
"""What libraries import of it all the same."""
OF_KINDS = ("_Ops", "_Classes")
"""Modules whose class has their functions."""
KNOWN = (
    "torch.nn",
    "torch.optim",
    "torch.utils",
    "torch.autograd",
    "torch.distributions",
    "torch.distributed",
    "torch.fx",
    "torch.profiler",
    "torch._functorch",
)
"""Packages whose modules have their private names described too, as those directly below torch."""
PLAIN = (bool, int, float, str, type(None))
BASES = (BaseException, enum.Enum, tuple, list, dict, set, str, int, float)
"""Bases of Python that matter to whoever holds an instance."""


def is_private(part: str) -> bool:
    """Whether a part of a dotted name is nobody's business."""
    return part.startswith("_")


def is_wanted(name: str) -> bool:
    """Whether a module is to be described: all public ones, and private ones of the first rank."""
    if name in SEEN:
        return True
    parts = name.split(".")
    private = [i for i, part in enumerate(parts) if is_private(part)]
    if name.startswith(tuple(UNSEEN)) or any(parts[i].startswith("__") for i in private):
        return False
    if not private:
        return True
    above = ".".join(parts[: private[0] + 1])
    return private == [len(parts) - 1] or (above in DEEP and len(parts) == private[0] + 2)


def walk(name: str = "torch") -> Iterator[str]:
    """The names of all modules that are wanted and can be imported, imported."""
    try:
        module = importlib.import_module(name)
    except BaseException:  # for want of another package, or on another system
        return
    yield name
    for found in pkgutil.iter_modules(getattr(module, "__path__", ())):
        if is_wanted(f"{name}.{found.name}"):
            yield from walk(f"{name}.{found.name}")


def all_modules() -> dict[str, types.ModuleType]:
    """Every module to describe, by name: those with files, and those that are made of C++."""
    with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
        warnings.simplefilter("ignore")
        logging.disable()
        list(walk())
        logging.disable(logging.NOTSET)
    found = {
        name: module
        for name, module in sys.modules.items()
        if name.partition(".")[0] == "torch"
        and is_wanted(name)
        and isinstance(module, types.ModuleType)
    }
    for name in [n for n in found if n == "torch._C" or n.startswith("torch._C.")]:
        for short, value in vars(found[name]).items():
            if type(value) is types.ModuleType and value.__name__.startswith("torch._C."):
                found.setdefault(f"{name}.{short}", value)
    for module in [module for name, module in found.items() if "._" not in name]:
        for value in vars(module).values():
            if type(value) is types.ModuleType and value.__name__.startswith("torch."):
                parts = value.__name__.split(".")
                for name in (".".join(parts[:n]) for n in range(1, len(parts) + 1)):
                    if name in sys.modules:
                        found.setdefault(name, sys.modules[name])
    return dict(sorted(found.items()))


def origin(value: Any) -> str:
    """The module that something says it is of."""
    said = getattr(value, "__module__", None)
    return said if isinstance(said, str) else ""


def is_theirs(value: Any) -> bool:
    """Whether a class or function is PyTorch's, and not one of Python that it imports."""
    if isinstance(value, (types.BuiltinFunctionType, types.BuiltinMethodType)):
        home = origin(value) or "torch"
        return home.partition(".")[0] == "torch"
    return origin(value).partition(".")[0] in ("torch", "pybind11_builtins")


def described_members(module: types.ModuleType) -> dict[str, Any]:
    """The members of a module that are described, by name."""
    kind = type(module)  # which some have of their own
    of_kind = vars(kind) if kind.__name__ in OF_KINDS else {}
    return {
        name: value
        for name, value in [*vars(module).items(), *of_kind.items()]
        if not name.startswith("__")
        and name.isidentifier()
        and not keyword.iskeyword(name)
        and is_shown(module, name, value)
    }


def is_shown(module: types.ModuleType, name: str, value: Any) -> bool:
    """Whether a name of a module is described: the public ones that are PyTorch's, all that it
    lists; those of other packages, and of modules directly below torch those of Python; of some
    modules private ones.
    """
    if name in vars(module).get("__all__", ()):
        return True
    if isinstance(value, types.ModuleType):
        return value.__name__.startswith("torch.")
    parts = module.__name__.split(".")
    known = len(parts) <= 2 or any(".".join(parts[:n]) in KNOWN for n in (2, 3))
    if callable(value):
        if not is_theirs(value):
            home = foreign(name, value).partition(".")[0]
            near = len(parts) <= 2 or home not in sys.stdlib_module_names
            return near and home != "" and not is_private(name)
        return known or not is_private(name)
    if is_private(name):
        return known and type(value) in PLAIN
    return name not in ("TYPE_CHECKING", "annotations")


def foreign(name: str, value: Any) -> str:
    """The module of Python or of another package that something is of under its name."""
    home = origin(value)
    there = getattr(sys.modules.get(home), name, None) is value
    return home if there and home.partition(".")[0] not in ("torch", "builtins") else ""


ANY = (types.UnionType, types.GenericAlias, type(typing.Union[int, str]), type(typing.List[int]))  # noqa: UP006, UP007


def base_of(kind: type, places: dict[int, tuple[str, str]]) -> str:
    """The nearest base that matters: one that is described too, or one of Python."""
    for base in kind.__mro__[1:-1]:
        if id(base) in places:
            return ".".join(places[id(base)])
        if issubclass(base, BASES) and base.__module__ in ("builtins", "enum"):
            return base.__name__ if base.__module__ == "builtins" else f"enum.{base.__name__}"
    return ""


def members(kind: type) -> dict[str, Any] | None:
    """The members of an enumeration, of Python or of C++; None for other classes."""
    if issubclass(kind, enum.Enum):
        return {name: member.value for name, member in kind.__members__.items()}
    found = getattr(kind, "__members__", None)
    if isinstance(found, dict) and found:
        return {name: int(member) for name, member in found.items()}
    inner = {id(each) for each in vars(kind).values() if isinstance(each, type)}
    within = [name for name, value in vars(kind).items() if id(type(value)) in inner]
    return {name: i for i, name in enumerate(within)} or None


def write_names(entries: Iterable[str]) -> str:
    return " ".join(sorted(entries))


def describe(modules: dict[str, types.ModuleType]) -> Iterator[str]:
    """The lines of the description."""
    shown = {name: described_members(module) for name, module in modules.items()}
    # Where each class and function is described: at home, or in the first of the shortest names.
    places: dict[int, tuple[str, str]] = {}
    ranked = sorted(
        shown, key=lambda name: (name.count("."), any(map(is_private, name.split("."))), name)
    )
    for at_home in (True, False):
        for module in ranked:
            for name, value in shown[module].items():
                if (
                    callable(value)
                    and not isinstance(value, ANY)
                    and (not at_home or origin(value) == module)
                ):
                    places.setdefault(id(value), (module, name))
    for module, names in shown.items():
        package = "__path__" in vars(modules[module]) or _has_submodules(module, modules)
        hidden = [n for n in names if f"{module}.{n}" in modules]
        hidden = [n for n in hidden if not isinstance(names[n], types.ModuleType)]
        yield f"{module}/{' '.join(sorted(hidden))}" if package else module
        groups: dict[str, list[str]] = defaultdict(list)
        for name, value in names.items():
            if isinstance(value, types.ModuleType):
                if value.__name__ != f"{module}.{name}" and value.__name__ in modules:
                    groups["module"].append(f"{name}={value.__name__}")
                continue
            if foreign(name, value):
                groups[f"from {foreign(name, value)}"].append(name)
                continue
            place = places.get(id(value), (module, name))
            if place != (module, name):
                same = place[1] == name
                groups[f"from {place[0]}"].append(name if same else f"{name}={place[1]}")
                continue
            kind, text = kind_of(name, value, places)
            groups[kind].append(text)
        for kind in sorted(groups):
            yield f" {kind}: {write_names(groups[kind])}"


def _has_submodules(module: str, modules: dict[str, types.ModuleType]) -> bool:
    return any(name.rpartition(".")[0] == module for name in modules)


def kind_of(name: str, value: Any, places: dict[int, tuple[str, str]]) -> tuple[str, str]:
    """Under which kind a name is written, and how."""
    if isinstance(value, ANY):
        return "any", name
    if isinstance(value, type):
        found = members(value)
        base = base_of(value, places)
        if found is not None:
            plain = {
                n: v if type(v) in PLAIN and fits(v) else i
                for i, (n, v) in enumerate(found.items())
            }
            word = "enum" if hasattr(value, "__members__") else "members"
            head = f"{word} {base or 'object'} {name}"
            return head, " ".join(f"{n}={v!r}" for n, v in plain.items())
        if getattr(value, "_is_protocol", False):
            return "protocol", name
        return (f"class {base}" if base else "class"), name
    if isinstance(value, typing.TypeVar):
        return "typevar", name
    if isinstance(value, logging.Logger):
        return "logger", name
    import torch

    if isinstance(value, torch.dtype):
        floating = "c" if value.is_complex else "f" if value.is_floating_point else ""
        unsigned = "u" if name.startswith(("qu", "bits", "uint")) else "i"
        return "dtype", f"{name}={value.itemsize}{floating or unsigned}"
    if isinstance(value, torch.layout):
        return "layout", name
    if type(value) in PLAIN and fits(value):
        return "value", f"{name}={value!r}"
    if isinstance(value, (types.FunctionType, types.BuiltinFunctionType)):
        return "def", name
    if hasattr(value, "__getitem__") and not isinstance(value, (Mapping, Sequence)):
        return "generic", name
    return "object", name


def fits(value: Any) -> bool:
    """Whether a value can be written down: no path of this machine, no text of many words, none
    that is drawn anew in every process.
    """
    if not isinstance(value, str):
        return True
    return not (set(value) & set(" /\n\t") or re.search(r"[0-9a-f]{8}-[0-9a-f]{4}-", value))


def main() -> None:
    """Writes the file that is named."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("file", type=Path)
    file = parser.parse_args().file
    import torch

    version = torch.__version__.partition("+")[0]
    lines = [
        f"# What PyTorch {version} has: written by tests/parity/names.py, which tells the form."
    ]
    lines += describe(all_modules())
    file.write_text("\n".join(lines) + "\n")
    print(f"{file}: {len(lines)} lines")


if __name__ == "__main__":
    main()
