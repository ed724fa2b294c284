"""Signatures of layers, losses, optimizers and methods of modules for the JavaScript front:
``web/signatures.js``.

Written with the stubs by ``make stubs``, from the signatures of the classes here, which are
PyTorch's: the order of arguments, their defaults and types have this one source. The JavaScript
front binds calls by the table; the types beside it, one overload for each way to divide arguments
between positions and options, are those of its TypeScript declarations.
"""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

from pygrad import nn, optim
from pygrad._table.schema import Argument

from . import layers
from .declarations import divisions
from .optimizers import CLASSES as OPTIMIZERS

FILE: Final = Path(__file__).parent.parent.parent / "web" / "signatures.js"
CLASSES: Final[tuple[type, ...]] = (
    nn.Parameter,
    *OPTIMIZERS,
    optim.LBFGS,
)
"""Classes but layers that the JavaScript front constructs with these signatures."""
METHODS: Final = {
    nn.Module: (
        "named_modules modules parameters named_parameters buffers named_buffers register_buffer "
        "register_parameter add_module requires_grad_ zero_grad"
    ),
    optim.Optimizer: "zero_grad",
}

FUNCTIONS: Final = (nn.functional.multi_head_attention_forward,)
"""Functions with more arguments than a call of the engine takes."""

_TYPES: Final = {
    "Size1": "int[1]",
    "Size2": "int[2]",
    "SizeAny": "int[2]",
    "SizeOrNone": "Sizes?",
    "ShapeLike": "int[1]",
    "Sequence[int]": "int[]",
    "int | tuple[int, ...]": "int[2]",
    "str | Size1": "str|int[1]",
    "str | Size2": "str|int[2]",
    "str | SizeAny": "str|int[2]",
    "Tensor | float": "float|Tensor",
    "float | tuple[float, ...]": "Floats",
    "float | tuple[float, float]": "Floats",
    "float | Tensor": "float|Tensor",
    "tuple[float | Tensor, float | Tensor]": "Pair",
    "tuple[float, float]": "Pair",
    "tuple[float | None, float]": "PairOrNull",
    "Coefficients": "float[]",
    "DeviceLike": "Device?",
    "DTypeLike": "ScalarType?",
    "tuple[Tensor, Tensor]": "Tensor[]",
    "Parameter": "Any",
    "Module": "Any",
    "set[Module]": "Any",
}
"""Annotations -> types in the grammar of schemas, where they differ. Any: the callee checks it."""
_HEAD: Final = """\
/** Made by `make stubs` from the signatures of pygrad.nn and pygrad.optim. Do not edit.
 *
 * Arguments in order: the type; the default, unless it must be given; 'named' if it cannot stand in
 * order. */

/** @import { DType, Tensor } from './tensor.js' @import { Parameters } from './optimizer.js' */
"""


def type_of(annotation: str) -> str:
    plain = annotation.removesuffix(" | None")
    return _TYPES.get(plain, plain) + ("?" if plain != annotation else "")


def signature(function: Callable[..., Any]) -> list[Argument]:
    """The arguments of a function but its receiver; the defaults as JSON."""
    found = []
    for each in inspect.signature(function).parameters.values():
        if each.name in ("self", "cls") or each.kind in (each.VAR_POSITIONAL, each.VAR_KEYWORD):
            continue
        default = None if each.default is each.empty else json.dumps(each.default)
        named = each.kind is each.KEYWORD_ONLY
        found.append(Argument(type_of(each.annotation), each.name, default, named))
    return found


def constructor(cls: type) -> list[Argument]:
    """The arguments of whichever of the two that make an object names them."""
    init: Callable[..., None] = cls.__init__  # type: ignore[misc]
    own = signature(init) or signature(cls.__new__)
    if cls not in layers.PASSED_ON:
        return own
    taken = {*layers.PASSED_ON[cls], *(each.name for each in own)}
    return own + [each for each in constructor(cls.__mro__[1]) if each.name not in taken]


def _entries() -> Iterator[tuple[str, list[Argument]]]:
    for cls in CLASSES:
        yield cls.__name__, constructor(cls)
    for cls in layers.offered():
        if not layers.takes_anything(cls):
            yield cls.__name__, constructor(cls)
    for name, method in layers.methods():
        yield name, signature(method)
    for owner, names in METHODS.items():
        for name in names.split():
            yield f"{owner.__name__}.{name}", signature(getattr(owner, name))
    for function in FUNCTIONS:
        yield function.__name__, signature(function)


def _row(argument: Argument) -> str:
    parts = [f"'{re.sub(r'[0-9]', '', argument.type)}'"]
    if argument.default is not None:
        parts.append(argument.default.replace('"', "'"))
    if argument.keyword_only:
        parts.append("'named'")
    return f"{argument.name}: [{', '.join(parts)}]"


def _overloads(cls: type) -> str:
    """A type with one construct signature for each way to write a call."""
    ways = "; ".join(f"new ({way}): Made" for way in divisions(constructor(cls), ""))
    return f"/** @template Made @typedef {{{{ {ways} }}}} New{cls.__name__} */"


def signatures() -> str:
    """The text of ``web/signatures.js``."""
    optimizers = "; ".join(f"{cls.__name__}: New{cls.__name__}<Made>" for cls in OPTIMIZERS)
    lines = [
        _HEAD,
        *map(_overloads, CLASSES),
        f"/** @template Made @typedef {{{{ {optimizers} }}}} Optimizers */",
        "",
        "export const signatures = {",
    ]
    for name, given in _entries():
        key = f"'{name}'" if "." in name else name
        rows = f" {', '.join(map(_row, given))} " if given else ""
        lines.append(f"  {key}: {{{rows}}},")
    lines.append("};")
    return "\n".join(lines) + "\n"
