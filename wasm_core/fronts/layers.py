"""Layers of the JavaScript front: ``web/nn/layers.js``.

Written with the stubs by ``make stubs``, from the classes of `pygrad.nn`, which are the one
description of a layer in both languages. Each class is translated (`translation`); one that has a
form without translation fails the tool, unless it is in `WRITTEN` or `ABSENT`.
"""

from __future__ import annotations

import ast
import inspect
import re
import sys
import textwrap
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from pygrad import nn

from .translation import Translation
from .translation.kinds import kind_of
from .translation.text import Refused, entry, indented, listed, literal, local

FOLDER: Final = Path(__file__).parent.parent.parent / "web" / "nn"
FILE: Final = FOLDER / "layers.js"

WRITTEN: Final[tuple[type[nn.Module], ...]] = (
    *(nn.RNN, nn.LSTM, nn.GRU, nn.RNNCell, nn.LSTMCell, nn.GRUCell),
    nn.MultiheadAttention,
)
"""Layers that are written in JavaScript, with the arguments of their classes here: they are loops
over steps, or take nested tensors and packed sequences in Python alone.
"""
ABSENT: Final = {
    "Module Sequential ModuleList ModuleDict ParameterList ParameterDict": "JavaScript's own form",
    "RNNBase RNNCellBase": "bases, which JavaScript does not show",
    "AdaptiveLogSoftmaxWithLoss": "a program of many ops",
    "Transformer TransformerEncoder TransformerDecoder TransformerEncoderLayer "
    "TransformerDecoderLayer": "stacks of copies of modules",
    "SyncBatchNorm": "several processes",
    "TripletMarginWithDistanceLoss": "a function as argument",
}
"""Modules that are neither translated nor written in JavaScript as layers -> the reason."""
_KEPT_FROM: Final = {name for names in ABSENT for name in names.split()}
PASSED_ON: Final[dict[type, tuple[str, ...]]] = {
    nn.RNN: ("mode", "proj_size"),
    nn.LSTM: ("mode",),
    nn.GRU: ("mode", "proj_size"),
}
"""Layers that pass arguments of any number on to their base -> those that they set themselves."""
_PYTHON_ONLY: Final = frozenset(("_version", "_load_from_state_dict"))
"""Members about the versions of PyTorch's files, which JavaScript does not read."""

_HEAD: Final = """\
/** Made by `make stubs` from the classes of pygrad.nn. Do not edit.
 *
 * Definitions of layers in order: bases before classes derived from them, functions before those
 * that call them. Each is a function of the names that it uses: of the library, and of definitions
 * above it. */
{imports}

export const definitions = {{
"""


def public() -> list[type[nn.Module]]:
    """The layers that are translated, by name."""
    found = []
    for name in sorted(dir(nn)):
        each = getattr(nn, name)
        if not (isinstance(each, type) and issubclass(each, nn.Module)):
            continue
        if each not in WRITTEN and name not in _KEPT_FROM and not name.startswith("Lazy"):
            found.append(each)
    return found


def offered() -> list[type[nn.Module]]:
    """All layers that JavaScript has, by name."""
    return sorted([*public(), *WRITTEN], key=lambda cls: cls.__name__)


def constructor(cls: type) -> Any:
    """The method that sets up a new layer."""
    return cls.__init__  # type: ignore[misc]


def takes_anything(cls: type) -> bool:
    """Whether a layer is made with any arguments at all."""
    function = constructor(cls)
    kinds = {each.kind for each in inspect.signature(function).parameters.values()}
    if cls in PASSED_ON or function is constructor(nn.Module):
        return False
    return inspect.Parameter.VAR_POSITIONAL in kinds


def has_options(function: Any) -> bool:
    """Whether a function has arguments that need not be given."""
    given = inspect.signature(function).parameters.values()
    return any(each.default is not each.empty for each in given)


def methods() -> Iterator[tuple[str, Any]]:
    """Methods that bind their arguments by name: those that make layers, and those with options."""
    for cls in dict.fromkeys(each for layer in offered() for each in layer.__mro__):
        for name, value in vars(cls).items():
            if isinstance(value, classmethod):
                yield f"{cls.__name__}.{name}", value.__func__
            elif name == "forward" and cls is not nn.Module and has_options(value):
                yield f"{cls.__name__}.{name}", value


class Definitions:
    """The definitions of all layers, of their bases, and of functions that they call."""

    def __init__(self) -> None:
        self.texts: dict[str, list[str]] = {}
        self.things: dict[str, Any] = {}
        self.attributes: dict[type, dict[str, str]] = {nn.Module: {"training": "bool"}}
        self.helpers: set[str] = {"MAKE"}

    def add(self, name: str, thing: Any) -> None:
        """Adds what a definition uses, and the definition."""
        if thing in (None, nn.Module, nn.Parameter):
            return
        if self.things.setdefault(name, thing) is not thing:
            raise Refused(f"two definitions with the name {name}")
        if name not in self.texts:
            made = self._class(thing) if isinstance(thing, type) else self._function(thing)
            self.texts[name] = made

    def _needed(self, translation: Translation) -> set[str]:
        self.helpers |= translation.helpers
        for name, thing in translation.used.items():
            self.add(name, thing)
        return set(translation.used)

    # ---------------------------------------------------------------- functions

    def _translation(self, function: Any, owner: type | None) -> Translation:
        module = sys.modules[function.__module__]
        kinds = self.attributes[owner] if owner else {}
        made = Translation(module, owner, kinds)
        for each in inspect.signature(function).parameters.values():
            if each.name not in ("self", "cls"):
                made.names[each.name] = kind_of(each.annotation)
        return made

    def _body(self, function: Any, owner: type | None) -> tuple[list[str], set[str]]:
        """The lines of a function's body, and the names of the scope that it uses."""
        translation = self._translation(function, owner)
        try:
            lines = translation.body(_tree(function).body)
        except Refused as problem:
            raise Refused(f"{function.__qualname__}: {problem}") from None
        return lines, self._needed(translation)

    def _function(self, function: Any) -> list[str]:
        lines, uses = self._body(function, None)
        head = listed(f"function {function.__name__}(", _parameters(function), ") {")
        made = indented([*head, *indented(lines), "},"])
        return [*comment(function), *_definition(function.__name__, uses), *made]

    # ---------------------------------------------------------------- classes

    def _class(self, cls: type) -> list[str]:
        bases = [base for base in cls.__bases__ if issubclass(base, nn.Module)]
        if len(cls.__bases__) != 1 or not bases:
            raise Refused(f"{cls.__name__}: several bases")
        (base,) = bases
        self.add(base.__name__, base)
        self.attributes[cls] = kinds = dict(self.attributes[base])
        for name, said in vars(cls).get("__annotations__", {}).items():
            kinds[name] = kind_of(said.removeprefix("ClassVar[").removesuffix("]"))
        lines, uses = self._members(cls)
        opening = f"class {cls.__name__} extends {base.__name__} {{"
        made = [opening, *indented(lines), "},"] if lines else [f"{opening}}},"]
        head = _definition(cls.__name__, {base.__name__, *uses})
        return [*comment(cls), *head, *indented(made)]

    def _members(self, cls: type) -> tuple[list[str], set[str]]:
        constants: list[str] = []
        methods: list[str] = []
        uses: set[str] = set()
        for name, value in sorted(vars(cls).items(), key=lambda row: row[0] != "__init__"):
            if name in _PYTHON_ONLY or (name.startswith("__") and not callable(value)):
                continue
            if name.startswith("__") and name != "__init__":
                raise Refused(f"{cls.__name__}.{name}, which JavaScript does not call")
            if isinstance(value, (int, str, tuple)):
                self.attributes[cls][name] = kind_of(type(value).__name__)
                shown = list(value) if isinstance(value, tuple) else value
                constants.append(f"this.prototype.{name} = {literal(shown)};")
                continue
            lines, used = self._method(cls, name, value)
            methods += [*([""] if methods else []), *lines]
            uses |= used
        if constants:
            block = ["static {", *indented(constants), "}"]
            methods = [*block, *([""] if methods else []), *methods]
        return methods, uses

    def _method(self, cls: type, name: str, value: Any) -> tuple[list[str], set[str]]:
        if isinstance(value, classmethod):
            return self._static(cls, name, value.__func__)
        if not isinstance(value, types.FunctionType):
            raise Refused(f"{cls.__name__}.{name}")
        body, uses = self._body(value, cls)
        if name == "__init__":
            given = ["[MAKE]() {"]
            if not takes_anything(cls):
                given = listed("[MAKE]({ ", _taken(value), " }) {")
            return [*given, *indented(body), "}"], uses
        if name == "forward" and has_options(value):
            uses.add("take")
            taken = listed(
                "const { ", _taken(value), f" }} = take('{cls.__name__}.forward', given);"
            )
            return ["forward(...given) {", *indented([*taken, *body]), "}"], uses
        return [*listed(f"{name}(", _parameters(value), ") {"), *indented(body), "}"], uses

    def _static(self, cls: type, name: str, function: Any) -> tuple[list[str], set[str]]:
        """A classmethod that makes a layer: `cls` is the class that it is called of."""
        translation = self._translation(function, cls)
        translation.names["cls"] = "class"
        lines = translation.body(_tree(function).body)
        uses = self._needed(translation) | {"take"}
        taken = listed("const { ", _taken(function), f" }} = take('{cls.__name__}.{name}', given);")
        text = "\n".join([*taken, *lines])
        return [f"static {name}(...given) {{", *indented(text.split("\n")), "}"], uses


def _tree(function: Any) -> Any:
    """The syntax of a function."""
    return ast.parse(textwrap.dedent(inspect.getsource(function))).body[0]


def _names(function: Any) -> list[inspect.Parameter]:
    given = inspect.signature(function).parameters.values()
    return [each for each in given if each.name not in ("self", "cls")]


def _taken(function: Any) -> list[str]:
    return [entry(each.name, local(each.name)) for each in _names(function)]


def _parameters(function: Any) -> list[str]:
    return [
        local(each.name)
        if each.default is each.empty
        else f"{local(each.name)} = {literal(each.default)}"
        for each in _names(function)
    ]


def _definition(name: str, uses: set[str]) -> list[str]:
    """The head of a definition: its name, and the names of the scope that it uses."""
    return listed(f"{name}: ({{ ", sorted(uses), " }) =>") if uses else [f"{name}: () =>"]


def comment(thing: Any) -> list[str]:
    """The first paragraph of a docstring."""
    text = (vars(thing).get("__doc__") if isinstance(thing, type) else thing.__doc__) or ""
    first = re.sub(r":class:`(\w+)`", r"`\1`", inspect.cleandoc(text).partition("\n\n")[0])
    if not first:
        return []
    lines = textwrap.wrap(" ".join(first.replace("``", "`").split()), 110)
    if len(lines) == 1:
        return [f"/** {lines[0]} */"]
    return [f"/** {lines[0]}", *(f" * {line}" for line in lines[1:-1]), f" * {lines[-1]} */"]


def layers() -> Definitions:
    """The definitions of all public layers."""
    found = Definitions()
    for cls in public():
        found.add(cls.__name__, cls)
    return found


def definitions() -> str:
    """The text of ``web/nn/layers.js``."""
    found = layers()
    imports = listed("import { ", sorted(found.helpers), " } from './python.js';")
    head = _HEAD.format(imports="\n".join(imports))
    parts = ["\n".join(indented(lines)) for lines in found.texts.values()]
    return head + "\n\n".join(parts) + "\n};\n"
