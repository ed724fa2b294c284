"""Schemas of the op table, parsed: the source of stubs and signatures.

A schema has PyTorch's grammar, ``sum(Tensor self, int[1]? dim, *, ScalarType? dtype=None) ->
Tensor``. The engine binds arguments by its own parser of the same text (bind.c); nothing here
decides what a call does.
"""

from __future__ import annotations

import ast
import inspect
import keyword
import re
from typing import Any, NamedTuple

_KEYWORD_ONLY = inspect.Parameter.KEYWORD_ONLY
_BOUND = inspect.Parameter("namespace", inspect.Parameter.POSITIONAL_ONLY)


class Argument(NamedTuple):
    """One argument of a schema; `default` is its text, None if it has none."""

    type: str
    name: str
    default: str | None
    keyword_only: bool


def _split(text: str) -> list[str]:
    """Splits at commas outside brackets."""
    parts, depth, start = [], 0, 0
    for i, char in enumerate(text):
        depth += (char in "[(") - (char in "])")
        if char == "," and not depth:
            parts.append(text[start:i].strip())
            start = i + 1
    last = text[start:].strip()
    return [*parts, last] if last else parts


def arguments(schema: str) -> list[Argument]:
    """The arguments of a schema in order."""
    found = []
    keyword_only = False
    for part in _split(schema[schema.index("(") + 1 : schema.rindex(") ->")]):
        if part == "*":
            keyword_only = True
            continue
        declared, _, default = part.partition("=")
        kind, _, name = declared.rpartition(" ")
        found.append(Argument(kind, name, default or None, keyword_only))
    return found


def results(schema: str) -> list[tuple[str, str]]:
    """(type, name) of each result; the name is empty if the schema has none."""
    text = schema.rpartition("-> ")[2]
    if not text.startswith("("):
        return [(text, "")]
    pairs = (part.partition(" ") for part in _split(text[1:-1]))
    return [(kind, name) for kind, _, name in pairs]


def python_name(name: str, method: bool) -> str:
    """The name a caller in Python knows an argument by."""
    if name == "self":
        return "self" if method else "input"
    return name + "_" if keyword.iskeyword(name) else name


class _Named:
    """A default that is a name, such as contiguous_format."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return self.name


def _value(text: str) -> Any:
    try:
        return ast.literal_eval(text)
    except ValueError:
        return _Named(text)


class Signature(inspect.Signature):
    """The signature of a table function, built on first access.

    Importing the package makes a thousand of these, and almost none is ever read.
    """

    _source: tuple[str, bool, bool, bool]

    @classmethod
    def from_schema(cls, schema: str, method: bool, has_out: bool, bound: bool) -> Signature:
        """The signature of one schema, as a function or as a method, with or without ``out=``;
        `bound`: a function with an extra first argument.
        """
        made = object.__new__(cls)
        made._source = schema, method, has_out, bound
        return made

    def __getattr__(self, name: str) -> Any:
        """inspect.Signature's two slots, which are empty at first."""
        if name not in ("_parameters", "_return_annotation"):
            raise AttributeError(name)
        schema, method, has_out, bound = self._source
        self.__init__(  # type: ignore[misc]
            [_BOUND] * bound + _parameters(schema, method, has_out),
            return_annotation=schema.rpartition("-> ")[2],
            __validate_parameters__=False,
        )
        return object.__getattribute__(self, name)


def _parameters(schema: str, method: bool, has_out: bool) -> list[inspect.Parameter]:
    found = []
    for each in arguments(schema):
        kind = _KEYWORD_ONLY if each.keyword_only else inspect.Parameter.POSITIONAL_OR_KEYWORD
        default = inspect.Parameter.empty if each.default is None else _value(each.default)
        name = python_name(each.name, method)
        found.append(inspect.Parameter(name, kind, default=default, annotation=each.type))
    if has_out:
        found.append(inspect.Parameter("out", _KEYWORD_ONLY, default=None, annotation="Tensor?"))
    return found


def plain_type(argument: Argument) -> tuple[str, bool]:
    """The schema's type without annotations of aliases and lengths, and whether None may be given.

    ``int[2]`` is ``int|int[]``: one number is repeated.
    """
    text = re.sub(r"\([a-z!]+\)", "", argument.type)
    expands = re.search(r"\[\d+\]", text) is not None
    plain = re.sub(r"\[\d+\]", "[]", text.removesuffix("?"))
    optional = text.endswith("?") or argument.default in ("None", "[]")
    return "int|int[]" if expands and plain == "int[]" else plain, optional


def spreads(given: list[Argument], method: bool) -> bool:
    """Whether ``x.view(2, 3)`` may be written for ``x.view((2, 3))``: no other argument follows."""
    rest = given[1:] if method else given
    if not rest or rest[0].keyword_only or rest[0].type not in ("int[]", "SymInt[]"):
        return False
    return all(each.keyword_only for each in rest[1:])
