"""TypeScript declarations of the functions that the op table gives the JavaScript front:
``web/ops.d.ts``.

Written with the stubs by ``make stubs``. A call in JavaScript takes positional arguments, then an
options object with the rest. Each way to divide a schema's arguments is an overload, so a misspelt
or doubly given name is an error.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from pygrad._table import functions
from pygrad._table.schema import Argument, arguments, plain_type, results, spreads

FILE: Final = Path(__file__).parent.parent.parent / "web" / "ops.d.ts"
INTERFACES: Final = {
    "torch": "Functions",
    "method": "Methods",
    "nn": "Functional",
    "special": "Special",
    "linalg": "Linalg",
    "fft": "Fft",
    "windows": "Windows",
    "masked": "Masked",
    "only_aten": "Aten",
}
"""Word of a row -> the interface that declares the functions of that namespace."""

_TYPES: Final = {
    "Tensor": "Tensor",
    "Tensor|Scalar": "Tensor | Scalar",
    "Scalar|Tensor": "Tensor | Scalar",
    "Tensor[]": "readonly Tensor[]",
    "Tensor?[]": "readonly (Tensor | null)[]",
    "Scalar": "Scalar",
    "Scalar[]": "readonly number[]",
    "int": "number",
    "int[]": "readonly number[]",
    "int|int[]": "number | readonly number[]",
    "float": "number",
    "float[]": "readonly number[]",
    "Any": "any",
    "Floats": "number | readonly number[]",
    "Sizes": "number | readonly (number | null)[]",
    "float|Tensor": "number | Tensor",
    "str|int[]": "string | number | readonly number[]",
    "Pair": "readonly [number, number]",
    "PairOrNull": "readonly [number | null, number]",
    "Params": "Parameters",
    "bool": "boolean",
    "bool[]": "readonly boolean[]",
    "str": "string",
    "ScalarType": "DType",
    "Layout": "'strided' | 'sparse_coo' | 'sparse_csr' | 'sparse_csc' | 'sparse_bsr' | "
    "'sparse_bsc'",
    "Device": "string",
    "MemoryFormat": "MemoryFormat",
    "Generator": "Generator",
}
_RESULTS: Final = _TYPES | {
    "": "void",
    "()": "void",
    "Scalar": "any",
    "Tensor[]": "Tensor[]",
    "int[]": "number[]",
}
_RESERVED: Final = frozenset(("class", "default", "delete", "function", "in", "new", "var", "with"))
"""Words that cannot name a parameter, though they may name an option."""

_HEAD: Final = """\
// Made by `make stubs` from the op table. Do not edit.
import type { DType, Generator, Tensor } from './index.js';

export type Complex = { readonly re: number; readonly im: number };
/** A number, where an op takes one. */
export type Scalar = number | bigint | boolean | Complex;
export type MemoryFormat = 'contiguous_format' | 'preserve_format' | 'channels_last';
/** Several tensors, in order and by name. */
export type Named<Names extends readonly string[]> =
  { [I in keyof Names]: Tensor } & { [Name in Names[number]]: Tensor };
"""


def _name(argument: Argument) -> str:
    return "input" if argument.name == "self" else argument.name


def _type(argument: Argument) -> str:
    plain, optional = plain_type(argument)
    return f"{_TYPES[plain]} | null" if optional else _TYPES[plain]


def typescript_type(kind: str) -> str:
    """The TypeScript of a type of schemas."""
    return _type(Argument(kind, "", None, False))


def _positional(argument: Argument, required: bool) -> str:
    name = _name(argument)
    mark = "" if required or argument.default is None else "?"
    return f"{name + '_' if name in _RESERVED else name}{mark}: {_type(argument)}"


def _record(options: list[Argument], out: str) -> tuple[str, bool]:
    """The type of an options object, and whether it may be left away; empty if nothing is in it."""
    fields = [f"{_name(o)}{'' if o.default is None else '?'}: {_type(o)}" for o in options]
    fields += [out] if out else []
    return (
        f"{{ {'; '.join(fields)} }}" if fields else "",
        all(o.default is not None for o in options),
    )


def _is_left_to_options(argument: Argument) -> bool:
    """A tensor that must be given is written as an argument of its own."""
    return argument.default is not None or not argument.type.startswith("Tensor")


def divisions(given: list[Argument], out: str) -> list[str]:
    """The parameters, once for each number of arguments before the options object."""
    positional = [each for each in given if not each.keyword_only]
    behind = [each for each in given if each.keyword_only]
    record, may_lack = _record(behind, out)
    whole = [_positional(each, required=False) for each in positional]
    if record:
        whole.append(f"options{'?' if may_lack else ''}: {record}")
    if not may_lack:  # a parameter that must be given stands behind none that need not
        whole = [part.replace("?: ", ": ", 1) for part in whole]
    found = [", ".join(whole)]
    for count in range(len(positional) - 1, -1, -1):
        if not _is_left_to_options(positional[count]):
            break
        record, _ = _record(positional[count:] + behind, out)
        front = [_positional(each, required=True) for each in positional[:count]]
        found.append(", ".join([*front, f"options: {record}"]))
    return found


def _variadic_forms(given: list[Argument], kind: str, out: str) -> list[str]:
    """The parameters with a list's elements as arguments of their own: ``x.view(2, 3)``."""
    record, may_lack = _record([each for each in given if each.keyword_only], out)
    found = []
    front = [each for each in given if not each.keyword_only]
    listed = next(i for i, each in enumerate(front) if "[" in each.type)
    first = "".join(f"{_positional(each, required=True)}, " for each in front[:listed])
    if may_lack:
        found.append(f"{first}...{_name(front[listed])}: {kind}[]")
    if record:
        labelled = f"...{_name(front[listed])}: {kind}[]"
        found.append(f"...args: [{first}{labelled}, options: {record}]")
    return found


def _result(schema: str) -> str:
    found = results(schema)
    shown = [_RESULTS.get(kind.removesuffix("?"), "any") for kind, _ in found]
    if not found:
        return "void"
    if len(found) == 1:
        return f"{shown[0]} | null" if found[0][0].endswith("?") else shown[0]
    if found[-1][0] == "Tensor[]":
        fields = "; ".join(f"{name}: {kind}" for (_, name), kind in zip(found, shown, strict=True))
        return f"[{', '.join(shown)}] & {{ {fields} }}"
    if all(name for _, name in found):
        return f"Named<[{', '.join(repr(name) for _, name in found)}]>"
    return f"[{', '.join(shown)}]"


def _overloads(op: functions.Op, name: str, space: str) -> list[str]:
    found: list[str] = []
    for words, schema in op.rows_in(space):
        given = arguments(schema)
        result = _result(schema)
        has_out = "out" in words and space != "method" and name == op.name
        out = ("out?: Tensor" if result == "Tensor" else "out?: Tensor[]") if has_out else ""
        if space == "method":
            given = [each for each in given if each.name != "self"]
        parameters = [] if "more" in words else divisions(given, out)
        if words & {"list_or_more", "more"}:
            parameters += _variadic_forms(given, "Tensor", out)
        elif spreads(given, method=False) or (space != "method" and spreads(given, method=True)):
            parameters += _variadic_forms(given, "number", out)
        found += [f"  {name}({each}): {result};" for each in parameters]
    return list(dict.fromkeys(found))


def declarations() -> str:
    """The text of ``web/ops.d.ts``."""
    lines = [_HEAD]
    for space, interface in INTERFACES.items():
        named = {name: op for op in functions.TABLE for name in op.names(space)}
        lines.append(f"export interface {interface} {{")
        for name in sorted(named):
            lines += _overloads(named[name], name, space)
        lines.append("}\n")
    properties = {name: op.schemas[0] for op in functions.TABLE for name in op.names("property")}
    lines.append("export interface Properties {")
    for name, schema in sorted(properties.items()):
        mark = "" if f"_set_{name}" in functions.C else "readonly "
        lines.append(f"  {mark}{name}: {_result(schema)};")
    lines.append("}\n")
    return "\n".join(lines)
