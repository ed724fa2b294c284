"""Functions and methods made from the op table that the binary carries.

Nothing here lists ops: a row's flags say in which namespaces it is offered, its schema what it
takes.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Sequence
from types import MethodType
from typing import Any, Final

from . import _call
from . import _engine as e
from ._builtins import is_builtin
from ._builtins import namespace as namespace_of
from ._schema import Signature

Function = Callable[..., Any]

NAMESPACES: Final = {
    "f": "torch",
    "m": "torch.Tensor",
    "p": "torch.Tensor",
    "n": "torch.nn.functional",
    "s": "torch.special",
    "l": "torch.linalg",
    "c": "torch._C",
}
"""Flag letter -> where PyTorch has the op."""


class Op:
    """One op name of the table: its rows' schemas and where it is offered."""

    __slots__ = ("flags", "name", "row", "row_flags", "schemas")

    def __init__(self, row: int, name: str) -> None:
        self.row = row
        self.name = name
        self.flags = ""
        self.row_flags: list[str] = []
        self.schemas: list[str] = []

    def offered(self, letter: str) -> list[tuple[str, str]]:
        """(flags, schema) of the rows that a namespace has."""
        rows = zip(self.row_flags, self.schemas, strict=True)
        return [row for row in rows if letter in row[0] or (letter == "n" and "N" in row[0])]

    def names(self, letter: str) -> list[str]:
        """What a namespace calls the op: its name, and that of its in-place form if there is
        one.
        """
        if letter not in self.flags and not (letter == "n" and "N" in self.flags):
            return []
        if letter == "p":
            return [self.name.removeprefix("numpy_").removeprefix("matrix_")]
        inplace = ("i" in self.flags and letter in "fmn") or ("N" in self.flags and letter == "n")
        return [self.name, self.name + "_"] if inplace else [self.name]


def _read_table() -> list[Op]:
    """The ops in table order; rows of one name that stand together are overloads of one op."""
    ops: list[Op] = []
    for row, (flags, schema) in enumerate(e.describe()):
        name = schema[: schema.index("(")]
        if not ops or ops[-1].name != name:
            ops.append(Op(row, name))
        ops[-1].flags += flags
        ops[-1].row_flags.append(flags)
        ops[-1].schemas.append(schema)
    return ops


TABLE: Final = _read_table()
_RESULTS = re.compile(r"-> \((.*)\)$")


class _NamedResult(tuple[Any, ...]):
    """Several tensors with names, as torch.return_types has them."""

    __slots__ = ()
    _fields: tuple[str, ...] = ()

    def __repr__(self) -> str:
        body = ",\n".join(
            f"{name}={value!r}" for name, value in zip(self._fields, self, strict=True)
        )
        return f"torch.return_types.{type(self).__name__}(\n{body})"


def named_result(name: str, fields: Sequence[str]) -> type[_NamedResult]:
    """A tuple with names, as torch.return_types has them."""
    members: dict[str, Any] = {
        "__slots__": (),
        "_fields": tuple(fields),
        "__module__": "pygrad.return_types",
    }
    for i, field in enumerate(fields):
        members[field] = property(operator.itemgetter(i))
    return type(name, (_NamedResult,), members)


return_types: Final[dict[str, type[_NamedResult]]] = {}


def _learn_results(op: Op) -> None:
    name = f"linalg_{op.name}" if "l" in op.flags and "f" not in op.flags else op.name
    for offset, schema in enumerate(op.schemas):
        found = _RESULTS.search(schema)
        parts = found.group(1).split(", ") if found and found.group(1) else []
        fields = [part.partition(" ")[2] for part in parts]
        if len(fields) > 1 and all(fields):
            kind = return_types.get(name) or named_result(name, fields)
            return_types[name] = kind
            _call.NAMED_RESULTS[op.row + offset] = kind
            _call.NAMED_RESULTS.setdefault(op.row, kind)


def _make(op: Op, mode: int, name: str, letter: str) -> Function:
    bound = is_builtin(letter, name)
    function = _call.function(op.row, mode, bound)
    rows = op.offered(letter)
    schemas = "\n    ".join(schema for _, schema in rows)
    function.__name__ = name
    # Where it is found, so that it can be pickled.
    home = NAMESPACES[letter].replace("torch", "pygrad").partition(".Tensor")[0]
    function.__module__ = home
    function.__qualname__ = f"Tensor.{name}" if letter in "mp" else name
    function.__doc__ = f"As {NAMESPACES[letter]}.{name} in PyTorch.\n\n    {schemas}"
    if len(rows) == 1:
        flags, schema = rows[0]
        function.__signature__ = Signature.of(  # type: ignore[attr-defined]
            schema, letter in "mp", "o" in flags and letter != "m" and name == op.name, bound
        )
    return MethodType(function, namespace_of(home)) if bound else function


def _derive() -> dict[str, dict[str, Function]]:
    spaces: dict[str, dict[str, Function]] = {letter: {} for letter in NAMESPACES}
    for op in TABLE:
        _call.ROWS[op.name] = op.row
        _learn_results(op)
        if "h" in op.flags:
            _call.LONG.add(op.row)
        for letter, space in spaces.items():
            mode = e.METHOD if letter in "mp" else 0
            for name in op.names(letter):
                in_place = e.INPLACE if name == op.name + "_" else 0
                space[name] = _make(op, mode | in_place, name, letter)
    return spaces


SPACES: Final = _derive()
C: Final = SPACES["c"]


def namespace(letter: str) -> dict[str, Function]:
    """The functions of one namespace, by name (a flag letter of ops/elementwise/elementwise.def)."""
    return dict(SPACES[letter])
