"""The calls of PyTorch's dispatcher to which rows come: ``pygrad/_table/dispatcher.txt``.

``make stubs`` joins the rows of the table with PyTorch's schemas. A row's ``ATEN(...)`` names its
op where the row's name does not. An overload is a candidate if each of its arguments is an argument
of the row or has a default. The candidates of a row are in the order in which they are tried: ops
that autograd sees before composite ones, numbers before tensors.

A line has the row, as its name and its number among the rows of that name; the form, which is ``_``
in place, ``out`` with ``out=``, or ``-``; when modes are asked (see `ASKED_WHEN` in
wasm_core/call/row.h); and the calls, with ``=`` before those that the row gives in full::

    mean:1 - door mean(self, dtype=dtype); mean.dim(self, dim, keepdim, dtype=dtype)
    narrow:0 - last =slice.Tensor(self, dim, start, start + length)
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from pygrad import ops
from pygrad._table import functions
from pygrad._table.function_schema import FunctionSchema, native_lines
from pygrad._table.schema import Argument, arguments

FILE: Final = Path(__file__).parent.parent.parent / "pygrad" / "_table" / "dispatcher.txt"
_IN_ROWS: Final = {
    "self": "input",
    "p": "probability",
    "train": "training",
    "size": "sizes",
    "dim": "dims",
    "split_size": "split_size_or_sections",
}
"""Arguments of PyTorch's schemas that its Python functions, and so the rows, name otherwise."""
_CALL = re.compile(r"=?(\w+)(?:\.(\w+))?")


class Misnamed(Exception):
    """A row's ``ATEN(...)`` names no op of PyTorch."""


def _words_after(prefix: str, words: frozenset[str]) -> str:
    found = [word.removeprefix(prefix) for word in words if word.startswith(prefix)]
    return found[0].replace("~", " ") if found else ""


def _is_composite(name: str) -> bool:
    """Whether autograd in PyTorch sees the parts of an op instead of the op, in all its forms."""
    return all(
        "composite" in words
        for form, (words, _) in native_lines().get(name, {}).items()
        if not form.endswith("out")
    )


def _order(name: str) -> list[str]:
    """The overloads of an op in the order in which they are tried."""

    def rank(overload: str) -> tuple[bool, int, bool]:
        words, schema = native_lines()[name][overload]
        taken = schema.partition(") -> ")[0]
        return "composite" in words, len(re.findall(r"\bTensor\b", taken)), overload != "default"

    return sorted(native_lines()[name], key=rank)


def _bind(schema: FunctionSchema, given: list[Argument], out: bool) -> str | None:
    """The arguments of a call of the schema; None if it takes others than the row has."""
    names = [argument.name for argument in given]
    if out:
        names.append("out")
    parts, behind = [], False
    for at, argument in enumerate(schema.arguments):
        name = argument.name
        if name not in names and _IN_ROWS.get(name) in names:
            name = _IN_ROWS[name]
        if name not in names and not at and names and argument.type.name == "Tensor":
            name = names[0]
        if name not in names:
            if not argument.has_default_value() and argument.type.kind_ != "OptionalType":
                return None
            behind = True
        elif argument.kwarg_only or behind:
            parts.append(f"{argument.name}={name}")
        else:
            parts.append(name)
    return ", ".join(parts)


def _by_name(name: str, schema: str, form: str, only: str = "") -> Iterator[str]:
    """The calls of an op of PyTorch that take the arguments of a row."""
    several = schema.rpartition("->")[2].strip().startswith("(Tensor")
    for overload in _order(name) if name in native_lines() else ():
        found = ops.schema_of(name, overload)
        many = len(found.returns) > 1 or any(r.type.kind_ == "ListType" for r in found.returns)
        is_out = overload == "out" or overload.endswith("_out")
        if is_out != (form == "out") or (several and not many) or only not in ("", overload):
            continue
        bound = _bind(found, arguments(schema), is_out)
        if bound is not None:
            yield f"{name}{'' if overload == 'default' else '.' + overload}({bound})"


def calls(op: functions.Op, words: frozenset[str], schema: str, form: str) -> list[str]:
    """The calls to which a row comes in a form.

    Raises: Misnamed: the row names an op that PyTorch has not.
    """
    said, write = _words_after("aten:", words), "_" if form == "_" else ""
    own = ops.name_in_aten(op) + write
    if not said:
        return list(_by_name(own, schema, form))
    for call in said.split("; "):
        name, overload = _CALL.match(call).groups()  # type: ignore[union-attr]
        forms = native_lines().get(name, {})
        if (overload or ("default" if "(" in call else next(iter(forms), ""))) not in forms:
            raise Misnamed(f"{op.name}: PyTorch has no {call}")
    if "(" not in said:
        made = _by_name(name + write, schema, form, overload or "")
        return list(dict.fromkeys((*made, *_by_name(own, schema, form))))
    if form == "-":
        return [f"={call}" for call in said.split("; ")]
    return list(_by_name(own, schema, form))


def _when(words: frozenset[str], found: list[str]) -> str:
    said = _words_after("asked:", words)
    first = _CALL.match(found[0]) if found else None
    last = bool(said) or first is None or _is_composite(first[1])
    if said == "never" or "masked" in words or (last and {"silent", "batch:itself"} <= words):
        return "never"
    return "last" if last else "door"


def lines() -> Iterator[str]:
    """The lines of the file."""
    counts = Counter[str]()
    for op in functions.TABLE:
        for words, schema in zip(op.row_words, op.schemas, strict=True):
            k = counts[op.name]
            counts[op.name] += 1
            for form, word in (("-", ""), ("_", "inplace"), ("out", "out")):
                if word and word not in words:
                    continue
                found = calls(op, words, schema, form)
                when = _when(words, found)
                if when != "never" and found:
                    yield f"{op.name}:{k} {form} {when} {'; '.join(found)}"


def text() -> str:
    """The file's text."""
    return "".join(f"{line}\n" for line in lines())


def write() -> None:
    FILE.write_text(text(), encoding="utf-8")
