"""Functions and methods made from the op table that the binary carries.

Nothing here lists ops: a row's words name the namespaces that offer it, its schema the arguments.
"""

from __future__ import annotations

import functools
import operator
import re
from collections.abc import Callable, Sequence
from types import MethodType
from typing import Any, Final

from .. import _boundary as e
from .._boundary import calls, shapes
from .._ground.package import PACKAGE
from .builtins import namespace as namespace_of
from .schema import Signature

Function = Callable[..., Any]

NAMESPACES: Final = {
    "torch": "torch",
    "method": "torch.Tensor",
    "property": "torch.Tensor",
    "nn": "torch.nn.functional",
    "special": "torch.special",
    "linalg": "torch.linalg",
    "fft": "torch.fft",
    "windows": "torch.signal.windows",
    "masked": "torch.masked",
    "internal": "torch._C",
    "only_aten": "torch.ops.aten",
}
"""Word of a row (wasm_core/call/row.h) -> where PyTorch has the op."""
METHODS: Final = ("method", "property")
_HOLDERS: Final = (".Tensor", ".aten")
"""Ends of namespaces that are no modules but objects in one."""


class Op:
    """One op name of the table: its rows' schemas and the namespaces that offer it."""

    __slots__ = ("name", "row", "row_words", "schemas", "words")

    def __init__(self, row: int, name: str) -> None:
        self.row = row
        self.name = name
        self.words: set[str] = set()
        self.row_words: list[frozenset[str]] = []
        self.schemas: list[str] = []

    def rows_in(self, space: str) -> list[tuple[frozenset[str], str]]:
        """(words, schema) of the rows that a namespace has."""
        rows = zip(self.row_words, self.schemas, strict=True)
        return [row for row in rows if space in row[0] or f"{space}_inplace" in row[0]]

    def names(self, space: str) -> list[str]:
        """The names of the op in a namespace: its own, and that of its in-place form if there is
        one.
        """
        if space not in self.words and f"{space}_inplace" not in self.words:
            return []
        if space == "property":
            return [self.name.removeprefix("numpy_").removeprefix("matrix_")]
        forms = "inplace" in self.words and space in ("torch", "method", "nn")
        inplace = forms or f"{space}_inplace" in self.words
        return [self.name, self.name + "_"] if inplace else [self.name]


def _read_table() -> list[Op]:
    """The ops in table order; consecutive rows of one name are overloads of one op."""
    ops: list[Op] = []
    for row, (words, schema) in enumerate(e.describe()):
        name = schema[: schema.index("(")]
        if not ops or ops[-1].name != name:
            ops.append(Op(row, name))
        ops[-1].words |= words
        ops[-1].row_words.append(words)
        ops[-1].schemas.append(schema)
    return ops


TABLE: Final = _read_table()


def _is_builtin(words: frozenset[str], space: str, name: str) -> bool:
    """Whether PyTorch's function of a row with these words is a builtin: see WRITTEN in
    call/row.h.
    """
    if space == "torch":
        return "written:python" not in words
    if space == "nn":
        return "written:builtin" in words or name.endswith("_")
    return space in ("special", "linalg", "fft", "internal")


_RESULTS = re.compile(r"-> \((.*)\)$")


class _NamedResult(tuple[Any, ...]):
    """Several tensors with names, as torch.return_types has them."""

    __slots__ = ()
    _fields: tuple[str, ...] = ()
    n_fields = n_sequence_fields = n_unnamed_fields = 0

    def __new__(cls, values: Any, more: Any = None, /) -> Any:
        """Takes a sequence, and the dict of further fields that pickles pass, which is unused."""
        name = f"torch.return_types.{cls.__name__}()"
        try:
            found = tuple(values)
        except TypeError:
            raise TypeError("constructor requires a sequence") from None
        if more is not None and not isinstance(more, dict):
            raise TypeError(f"{name} takes a dict as second arg, if any")
        if len(found) != len(cls._fields):
            raise TypeError(
                f"{name} takes a {len(cls._fields)}-sequence ({len(found)}-sequence given)"
            )
        return tuple.__new__(cls, found)

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
        "n_fields": len(fields),
        "n_sequence_fields": len(fields),
        "__module__": f"{PACKAGE}.return_types",
    }
    for i, field in enumerate(fields):
        members[field] = property(operator.itemgetter(i))
    return type(name, (_NamedResult,), members)


return_types: Final[dict[str, type[_NamedResult]]] = {}


def _learn_results(op: Op) -> None:
    name = f"linalg_{op.name}" if "linalg" in op.words and "torch" not in op.words else op.name
    for offset, schema in enumerate(op.schemas):
        found = _RESULTS.search(schema)
        parts = found.group(1).split(", ") if found and found.group(1) else []
        fields = [part.partition(" ")[2] for part in parts]
        if len(fields) > 1 and all(fields):
            kind = return_types.get(name) or named_result(name, fields)
            return_types[name] = kind
            listed = parts[-1].startswith("Tensor[]")
            make = _with_list(kind) if listed else functools.partial(tuple.__new__, kind)
            calls.NAMED_RESULTS[op.row + offset] = make
            calls.NAMED_RESULTS.setdefault(op.row, make)


def _with_list(kind: type[_NamedResult]) -> Callable[[Sequence[Any]], _NamedResult]:
    """A maker of results whose last field is a tuple of all remaining tensors."""
    n = len(kind._fields) - 1
    return lambda items: kind((*items[:n], tuple(items[n:])))


def _make(op: Op, mode: int, name: str, space: str) -> Function:
    rows = op.rows_in(space)
    bound = _is_builtin(rows[0][0], space, name)
    function = shapes.function(op.row, mode, bound, space == "internal")
    schemas = "\n    ".join(schema for _, schema in rows)
    function.__name__ = name
    # Pickles name a function by module and qualified name.
    full = NAMESPACES[space].replace("torch", PACKAGE)
    home = next((full.removesuffix(each) for each in _HOLDERS if full.endswith(each)), full)
    function.__module__ = home
    function.__qualname__ = f"{full}.{name}"[len(home) + 1 :]
    function.__doc__ = f"As {NAMESPACES[space]}.{name} in PyTorch.\n\n    {schemas}"
    if len(rows) == 1:
        words, schema = rows[0]
        has_out = "out" in words and space != "method" and name == op.name
        function.__signature__ = Signature.from_schema(  # type: ignore[attr-defined]
            schema, space in METHODS, has_out, bound
        )
    return MethodType(function, namespace_of(home)) if bound else function


def _derive() -> dict[str, dict[str, Function]]:
    spaces: dict[str, dict[str, Function]] = {space: {} for space in NAMESPACES}
    for op in TABLE:
        calls.ROWS[op.name] = op.row
        _learn_results(op)
        for space, functions in spaces.items():
            mode = e.METHOD if space in METHODS else 0
            for name in op.names(space):
                in_place = e.INPLACE if name == op.name + "_" else 0
                functions[name] = _make(op, mode | in_place, name, space)
    return spaces


SPACES: Final = _derive()
C: Final = SPACES["internal"]


def namespace(space: str) -> dict[str, Function]:
    """The functions of one namespace, by name (a word of its rows)."""
    return dict(SPACES[space])
