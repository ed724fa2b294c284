"""TypeScript declarations of the layers of the JavaScript front: ``web/nn/layers.d.ts``.

Written with the stubs by ``make stubs``, from the classes of `pygrad.nn`. Each layer has an
interface with its fields, and construct signatures, one for each way to write a call.
"""

from __future__ import annotations

import inspect
from typing import Any, Final

from pygrad import nn

from . import layers
from .declarations import divisions, typescript_type
from .signatures import constructor, signature, type_of

FILE: Final = layers.FOLDER / "layers.d.ts"
_HEAD: Final = """\
// Made by `make stubs` from the classes of pygrad.nn. Do not edit.
import type { DType, Module, Parameter, Tensor } from '../index.js';

export const definitions: Record<string, (scope: any) => any>;
"""

_FIELDS: Final = {
    "bool": "boolean",
    "number": "number",
    "float": "number",
    "str": "string",
    "sizes": "number | readonly number[]",
    "floats": "number | readonly number[]",
    "list": "number[]",
    "tuple[int, ...]": "number[]",
    "str | tuple[int, ...]": "string | number[]",
    "Parameter": "Parameter",
    "Parameter | None": "Parameter | null",
}
"""Kinds, and annotations that no argument has -> types of fields."""
_RESULTS: Final = {
    "Tensor": "Tensor",
    "State": "Tensor[]",
    "tuple[Tensor, Tensor | None]": "[Tensor, Tensor | null]",
}
"""What a layer returns; what depends on its arguments is of any type."""


def _said(cls: type, name: str) -> str:
    """The annotation of a field: of the class or a base, or of the argument that it is set from."""
    for base in cls.__mro__:
        if name in vars(base).get("__annotations__", {}):
            return str(base.__annotations__[name])
    for base in cls.__mro__:
        given = inspect.signature(layers.constructor(base)).parameters
        if name in given:
            return str(given[name].annotation)
    return ""


def _field(cls: type, name: str, kind: str) -> str:
    said = _said(cls, name)
    shown = _FIELDS.get(said) or (typescript_type(type_of(said)) if said else "")
    return f"  {name}: {shown or _FIELDS.get(kind, 'any')};"


def _interface(cls: type, kinds: dict[str, str]) -> list[str]:
    """The type of a layer: its fields, and how it is called."""
    lines = [*layers.comment(cls), f"export interface {cls.__name__} extends Module {{"]
    for name, kind in kinds.items():
        if not name.startswith("_") and name not in vars(nn.Module()):
            lines.append(_field(cls, name, kind))
    lines += [f"  {name}(): void;" for name in dir(cls) if name.startswith("reset_")]
    forward: Any = cls.forward  # type: ignore[attr-defined]
    result = _RESULTS.get(forward.__annotations__["return"], "any")
    ways = divisions(signature(forward), "")
    return [*lines, *(f"  forward({way}): {result};" for way in ways), "}"]


def _made(cls: type) -> list[str]:
    """The type of a class of layers: one construct signature for each way to write a call."""
    name = cls.__name__
    ways = ["...args: any[]"] if layers.takes_anything(cls) else divisions(constructor(cls), "")
    lines = [f"  {name}: {{", *(f"    new ({way}): {name};" for way in ways)]
    for method, value in vars(cls).items():
        if isinstance(value, classmethod):
            for way in divisions(signature(value.__func__), ""):
                lines.append(f"    {method}({way}): {name};")
    return [*lines, "  };"]


def layer_types() -> str:
    """The text of ``web/nn/layers.d.ts``."""
    found = layers.layers()
    lines = [_HEAD]
    for cls in layers.offered():
        kinds = found.attributes.get(cls) or dict.fromkeys(cls.__annotations__, "")
        lines += [*_interface(cls, kinds), ""]
    lines.append("/** Classes of layers, by name. */\nexport interface Layers {")
    for cls in layers.offered():
        lines += _made(cls)
    return "\n".join([*lines, "}"]) + "\n"
