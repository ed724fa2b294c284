"""Writes the files that follow from the op table (``make stubs``): Python's type stubs, and those
of `declarations`, `signatures`, `optimizers`, `enumerations` and `fast_ways`.

The binary describes its ops; the stubs are that description in Python's grammar, so that type
checkers and editors know the functions made at import. `__init__.py` and `tensor.py` include
`functions_table.pyi` and `methods_table.pyi`; the other namespaces have a stub of their own.
"""

from __future__ import annotations

import inspect
import keyword
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pygrad
from pygrad._table import functions
from pygrad._table.schema import Argument, arguments, plain_type, python_name, results, spreads
from pygrad._tensor import operators, tensor
from pygrad.nn import _functional
from pygrad.signal import windows

from . import (
    declarations,
    dispatcher,
    enumerations,
    fast_ways,
    layer_types,
    layers,
    optimizers,
    signatures,
)

FOLDER: Final = Path(__file__).parent.parent.parent / "pygrad"
FILES: Final = {
    "torch": "_table/functions_table.pyi",
    "method": "_table/methods_table.pyi",
    "nn": "nn/functional.pyi",
    "special": "special/__init__.pyi",
    "linalg": "linalg/__init__.pyi",
    "fft": "fft/__init__.pyi",
    "windows": "signal/windows.pyi",
    "masked": "masked/__init__.pyi",
}

_TYPES: Final = {
    "Tensor": "Tensor",
    "Tensor|Scalar": "Tensor | Number",
    "Scalar|Tensor": "Tensor | Number",
    "Tensor[]": "Sequence[Tensor]",
    "Tensor?[]": "Sequence[Tensor | None]",
    "Scalar": "Number",
    "Scalar[]": "Sequence[Number]",
    "int": "builtins.int",
    "SymInt": "builtins.int",
    "int[]": "Sequence[builtins.int]",
    "SymInt[]": "Sequence[builtins.int]",
    "int|int[]": "builtins.int | Sequence[builtins.int]",
    "float": "builtins.float",
    "float[]": "Sequence[builtins.float]",
    "bool": "builtins.bool",
    "bool[]": "Sequence[builtins.bool]",
    "str": "builtins.str",
    "ScalarType": "dtype",
    "Layout": "layout",
    "Device": "device | builtins.str | builtins.int",
    "MemoryFormat": "memory_format",
    "Index": "Any",
    "Generator": "Generator",
}
_RESULTS: Final = _TYPES | {
    "": "None",
    "()": "None",
    "Scalar": "Any",
    "Tensor[]": "tuple[Tensor, ...]",
    "int[]": "list[builtins.int]",
}
_HEAD: Final = '''"""Made by `make stubs` from the op table. Do not edit."""

import builtins
from collections.abc import Sequence
from typing import Any, NamedTuple, TypeAlias, overload

from pygrad._ground.dtypes import device, dtype, layout, memory_format
from pygrad._tensor.tensor import Tensor
from pygrad.random import Generator

Number: TypeAlias = builtins.int | builtins.float | builtins.bool | builtins.complex
'''


def _python_type(argument: Argument) -> str:
    plain, optional = plain_type(argument)
    return f"{_TYPES[plain]} | None" if optional else _TYPES[plain]


def _parameter(argument: Argument, method: bool) -> str:
    if argument.name == "self" and method:
        return "self"
    declared = f"{python_name(argument.name, method)}: {_python_type(argument)}"
    return declared if argument.default is None else f"{declared} = ..."


def _parameters(given: list[Argument], method: bool, spread: bool, out: str) -> str:
    """The text between the parentheses; `spread`: a list of sizes as separate arguments."""
    shown = []
    starred = False
    for each in given:
        if spread and not starred and each.name != "self":
            shown.append(f"*{each.name}: builtins.int")
            starred = True
            continue
        if each.keyword_only and not starred:
            shown.append("*")
            starred = True
        shown.append(_parameter(each, method))
    if out:
        shown += [out] if starred else ["*", out]
    return ", ".join(shown)


def _result(op: str, schema: str) -> str:
    found = [
        (_RESULTS.get(kind) or _TYPES.get(kind, "Any"), name) for kind, name in results(schema)
    ]
    if len(found) == 1:
        return found[0][0]
    if not found:
        return "None"
    if all(name for _, name in found):
        return _result_class(op)
    return f"tuple[{', '.join(kind for kind, _ in found)}]"


def _result_class(op: str) -> str:
    return f"_{op.title().replace('_', '')}"


def _overloads(op: functions.Op, space: str) -> list[str]:
    method = space in ("method", "property")
    found: list[str] = []
    for words, schema in op.rows_in(space):
        given = arguments(schema)
        result = _result(op.name, schema)
        out = ""
        if "out" in words and not method:
            out = "out: Tensor | None = ..." if result == "Tensor" else "out: Any = ..."
        for spread in (False, True) if spreads(given, method) else (False,):
            if "more" not in words:
                found.append(f"({_parameters(given, method, spread, out)}) -> {result}: ...")
        if words & {"list_or_more", "more"}:
            shown = [
                f"*{each.name}: Tensor" if "[]" in each.type else _parameter(each, method)
                for each in given
                if not each.keyword_only
            ]
            shown += [_parameter(each, method) for each in given if each.keyword_only]
            shown += [out] if out else []
            found.append(f"({', '.join(shown)}) -> {result}: ...")
    return list(dict.fromkeys(found))


def is_the_tables(name: str, space: str) -> bool:
    """Whether the name means the table's function, not a Python function in its place."""
    if space == "torch":
        return vars(pygrad).get(name) is functions.SPACES["torch"][name]
    if space == "method":
        return inspect.getattr_static(tensor.Tensor, name, None) is functions.SPACES["method"][name]
    if space == "nn":
        return name not in _functional.__all__
    if space == "windows":
        return vars(windows).get(name) is functions.SPACES["windows"][name]
    if space == "property":
        getter = inspect.unwrap(inspect.getattr_static(tensor.Tensor, name).fget)
        return getter is functions.SPACES["property"][name]
    return True


def _definitions(space: str) -> list[str]:
    signatures: dict[str, list[str]] = {}
    for op in functions.TABLE:
        for name in op.names(space):
            if not keyword.iskeyword(name) and is_the_tables(name, space):
                signatures[name] = _overloads(op, space)
    lines = []
    for name in sorted(signatures):
        for signature in signatures[name]:
            if len(signatures[name]) > 1:
                lines.append("@overload")
            if space == "property":
                lines.append("@property")
            lines.append(f"def {name}{signature}")
    return lines


def _operators() -> list[str]:
    """The operators that `operators.py` puts on its class from its own tables."""
    names = [
        name
        for table in (operators._OPERATORS, operators._INPLACE_OPERATORS)
        for group in table.values()
        for name in group.split()
    ]
    lines = []
    for name in names:
        of_object = "  # type: ignore[override]" if name in ("__eq__", "__ne__") else ""
        lines.append(f"def {name}(self, other: Any) -> Tensor: ...{of_object}")
    return lines


def _signature(function: Callable[..., Any]) -> str:
    """The signature of a function that Python composes."""
    shown = str(inspect.signature(function)).replace("'", "")
    return re.sub(r"\b(bool|float|int|str)\b", r"builtins.\1", shown) + ": ..."


def _result_classes(space: str) -> list[str]:
    lines = []
    for op in sorted(functions.TABLE, key=lambda each: each.name):
        for _, schema in op.rows_in(space):
            fields = results(schema)
            if len(fields) > 1 and all(name for _, name in fields):
                lines.append(f"class {_result_class(op.name)}(NamedTuple):")
                lines += [f"    {name}: {_RESULTS[kind]}" for kind, name in fields]
                break
    return lines


def stub(space: str) -> str:
    """The text of one namespace's stub."""
    lines = [_HEAD, *_result_classes(space)]
    if space == "nn":
        for name in _functional.__all__:
            lines.append(f"from pygrad.nn._functional import {name} as {name}")
    if space == "linalg":
        lines.append("from pygrad._ground.errors import LinAlgError as LinAlgError")
    if space == "windows":
        lines.append("from collections.abc import Iterable")
        lines.append(f"def general_cosine{_signature(windows.general_cosine)}")
    if space == "method":
        lines.append("class Methods:")
        methods = _operators() + _definitions("method") + _definitions("property")
        lines += ["    " + line for line in methods]
    else:
        lines += _definitions(space)
    return "\n".join(lines) + "\n"


def main() -> None:
    """Writes every stub, and the other files generated from the table or from templates."""
    fast_ways.write()
    dispatcher.write()
    for space, name in FILES.items():
        (FOLDER / name).write_text(stub(space), encoding="utf-8")
    declarations.FILE.write_text(declarations.declarations(), encoding="utf-8")
    signatures.FILE.write_text(signatures.signatures(), encoding="utf-8")
    optimizers.FILE.write_text(optimizers.table(), encoding="utf-8")
    layers.FILE.write_text(layers.definitions(), encoding="utf-8")
    layer_types.FILE.write_text(layer_types.layer_types(), encoding="utf-8")
    enumerations.FILE.write_text(enumerations.enumerations(), encoding="utf-8")


if __name__ == "__main__":
    main()
