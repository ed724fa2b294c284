"""Writes the type stubs that follow from the op table: ``python -m pygrad._stubs`` (``make stubs``).

The binary describes its ops; the stubs `_functions_table.pyi`, `_methods_table.pyi` and their like are only that
description in Python's grammar, so that a type checker and an editor know what the table makes at import.
"""

from __future__ import annotations

import keyword
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from . import _ops

FOLDER: Final = Path(__file__).parent
FILES: Final = {
    "f": "_functions_table.pyi",
    "m": "_methods_table.pyi",
    "n": "nn/_functional_table.pyi",
    "s": "_special_table.pyi",
    "l": "_linalg_table.pyi",
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
    "Device": "device | builtins.str",
    "MemoryFormat": "memory_format",
    "Index": "Any",
    "Generator": "Any",
}
_HEAD: Final = '''"""Made by `make stubs` from the op table. Do not edit."""

import builtins
from collections.abc import Sequence
from typing import Any, TypeAlias, overload

from {dots}_dtypes import device, dtype, layout, memory_format
from {dots}_tensor import Tensor

Number: TypeAlias = builtins.int | builtins.float | builtins.bool
'''


def _python_type(text: str) -> str:
    text = re.sub(r"\([a-z!]+\)", "", text)
    expands = re.search(r"\[\d+\]", text) is not None
    optional = text.endswith("?")
    plain = re.sub(r"\[\d+\]", "[]", text.removesuffix("?"))
    shown = _TYPES[plain]
    if expands and plain == "int[]":
        shown = _TYPES["int|int[]"]
    return f"{shown} | None" if optional else shown


def _split(arguments: str) -> list[str]:
    """At commas outside brackets."""
    parts, depth, start = [], 0, 0
    for i, char in enumerate(arguments):
        depth += (char in "[(") - (char in "])")
        if char == "," and not depth:
            parts.append(arguments[start:i].strip())
            start = i + 1
    last = arguments[start:].strip()
    return [*parts, last] if last else parts


def _argument(text: str, method: bool) -> str:
    if text == "*":
        return "*"
    declared, _, default = text.partition("=")
    kind, _, name = declared.rpartition(" ")
    if name == "self" and method:
        return "self"
    name = "input" if name == "self" else name
    if keyword.iskeyword(name):
        name += "_"
    python = _python_type(kind)
    if default in ("None", "[]") and "None" not in python:
        python += " | None"
    return f"{name}: {python} = ..." if default else f"{name}: {python}"


def _variadic(parts: list[str], method: bool) -> list[str] | None:
    """``x.view(2, 3)``: the same with the sizes as separate arguments."""
    at = 1 if method else 0
    if len(parts) <= at or not re.match(r"(Sym)?[iI]nt\[\] ", parts[at]):
        return None
    if method and not parts[0].endswith(" self"):
        return None
    name = parts[at].partition("=")[0].rpartition(" ")[2]
    rest = [p for p in parts[at + 1 :] if p != "*"]
    if any("=" not in p for p in rest):
        return None
    return [*(_argument(p, method) for p in parts[:at]), f"*{name}: builtins.int", *(_argument(p, method) for p in rest)]


def _result(schema: str) -> str:
    text = schema.rpartition("-> ")[2]
    if text in ("()", ""):
        return "None"
    if text.startswith("("):
        return "Any"
    if text == "Tensor[]":
        return "tuple[Tensor, ...]"
    return _TYPES.get(text, "Any").replace("Sequence[", "list[")


def _signatures(schema: str, flags: str, method: bool) -> Iterable[str]:
    parts = _split(schema[schema.index("(") + 1 : schema.rindex(") ->")])
    result = _result(schema)
    shown = [_argument(p, method) for p in parts]
    if "o" in flags and not method and result in ("Tensor", "Any"):
        out = "out: Tensor | None = ..." if result == "Tensor" else "out: Any = ..."
        shown += [out] if "*" in shown else ["*", out]
    yield f"({', '.join(shown)}) -> {result}: ..."
    spread = _variadic(parts, method)
    if spread:
        yield f"({', '.join(spread)}) -> {result}: ..."


def _definitions(op: _ops.Op, letter: str) -> list[str]:
    method = letter == "m"
    signatures = [s for schema in op.schemas for s in _signatures(schema, op.flags, method)]
    signatures = list(dict.fromkeys(signatures))
    names = [op.name]
    if ("i" in op.flags and letter in "fmn") or ("N" in op.flags and letter == "n"):
        names.append(op.name + "_")
    lines = []
    for name in names:
        if keyword.iskeyword(name):
            continue
        for signature in signatures:
            if len(signatures) > 1:
                lines.append("@overload")
            lines.append(f"def {name}{signature}")
    return lines


def stub(letter: str) -> str:
    """The text of one namespace's stub."""
    method = letter == "m"
    lines = [_HEAD.format(dots=".." if letter == "n" else ".")]
    if method:
        lines.append("class Methods:")
    for op in sorted(_ops.TABLE, key=lambda each: each.name):
        if letter in op.flags or (letter == "n" and "N" in op.flags):
            lines += ["    " + line if method else line for line in _definitions(op, letter)]
    return "\n".join(lines) + "\n"


def main() -> None:
    """Writes every stub."""
    for letter, name in FILES.items():
        (FOLDER / name).write_text(stub(letter), encoding="utf-8")


if __name__ == "__main__":
    main()
