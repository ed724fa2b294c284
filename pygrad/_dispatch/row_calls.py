"""The calls of PyTorch's dispatcher to which rows and functions of the engine come.

`calls_of_row` reads ``dispatcher.txt``, which ``make stubs`` joins from the rows of the table and
PyTorch's schemas. `calls_of_door` has the same for C functions, which the engine calls without a
row: their arguments are in the order of PyTorch's schema, or of the row if the row says its call.
"""

from __future__ import annotations

import ast
import functools
from collections import Counter
from collections.abc import Callable, Sequence
from importlib.resources import files
from typing import Any, Final, NamedTuple

from .. import ops
from .._boundary import constants
from .._boundary.asked import INPLACE, MISSING, OUT
from .._ground.dtypes import BY_NAME
from .._table import functions
from .._table.function_schema import FunctionSchema, native_lines
from .._table.schema import arguments
from .._tensor.tensor import Tensor
from .conversions import Conversion, Misfit, conversion, dtype_of_code

_FORMS: Final = {"-": 0, "_": INPLACE, "out": OUT}
_IGNORED: Final = {"requires_grad", "return_indices", "_stacklevel", "inplace", "pin_memory"}
"""Arguments of rows that no op of PyTorch takes."""


class _Row(NamedTuple):
    """The arguments of a row: names, defaults as texts, and lengths of lists for which a number
    may stand.
    """

    names: list[str]
    defaults: list[str | None]
    lengths: list[int]


def _row_of(schema: str) -> _Row:
    given = arguments(schema)
    lengths = [int("0" + each.type.partition("[")[2].partition("]")[0]) for each in given]
    return _Row([each.name for each in given], [each.default for each in given], lengths)


class Step(NamedTuple):
    """How one argument of a call is made: from a value of the row, or by an expression."""

    at: int
    function: Callable[[Sequence[Any]], Any] | None
    convert: Conversion | None
    keyword: str
    default: Any
    has_default: bool


class Plan:
    """A call for values of certain kinds.

    Attributes:
        func, name, schema: of the op. rest: places of values that the call does not
        pass, each with its default. when: the condition on the values, or None.
        completes: whether the arguments of factory functions are to be added.
    """

    __slots__ = ("completes", "func", "is_index_put", "name", "rest", "schema", "steps", "when")

    def __init__(self, call: Call, kinds: Sequence[int], row: bool) -> None:
        self.name, self.schema = call.name, call.schema
        self.func = ops.overload(call.name, call.overload)
        self.is_index_put = call.name == "index_put_"
        self.when, self.rest = call.when, call.rest(len(kinds))
        places, self.steps = call.places(len(kinds)), list[Step]()
        for argument in self.schema.arguments:
            at, function = places.get(argument.name, (-1, None))
            kind = constants.MISSING if at < 0 else kinds[at]
            convert = None if function is not None else conversion(argument, kind, row)
            keyword = argument.name if argument.kwarg_only else ""
            has = argument.has_default_value()
            self.steps.append(
                Step(at, function, convert, keyword, argument.default_value if has else None, has)
            )
        self.completes = row and any(each.name == "pin_memory" for each in self.schema.arguments)

    def bind(self, values: Sequence[Any]) -> tuple[list[Any], dict[str, Any]] | None:
        """The arguments of the call for these values, without defaults at the end, as in PyTorch;
        None if the call is for other values.
        """
        for at, text in self.rest:
            if not _is_default(values[at], text):
                return None
        args, kwargs, last = [], {}, 0
        try:
            if self.when is not None and not self.when(values):
                return None
            for at, function, convert, keyword, default, has_default in self.steps:
                value = values[at] if at >= 0 else MISSING
                if function is not None:
                    value = function(values)
                elif convert is not None:
                    value = convert(value)
                absent = has_default and _equal(value, default)
                if keyword:
                    if not absent:
                        kwargs[keyword] = value
                else:
                    args.append(value)
                    if not absent:
                        last = len(args)
        except (Misfit, IndexError, ZeroDivisionError):  # of sizes that the op refuses itself
            return None
        return args[:last], kwargs


def _is_default(value: Any, text: str | None) -> bool:
    """Whether a value is absent, or what a row's schema has as its default."""
    if value is MISSING or value is None:
        return True
    if text is None or not isinstance(value, (bool, int, float, str)):
        return False
    return text.strip("'\"") in (str(value), f"{value:g}" if isinstance(value, float) else "")


def _equal(value: Any, default: Any) -> bool:
    if value is default:
        return True
    if isinstance(value, Tensor) or default is None or value is None:
        return False
    if isinstance(value, (list, tuple)) and any(isinstance(each, Tensor) for each in value):
        return False
    return bool(value == default) and (
        type(value) is type(default) or not isinstance(value, (str, list, tuple))
    )


class Call:
    """A call of an op with arguments of a row: ``slice.Tensor(self, dim, start, start + length)``.

    Without a row the arguments are those of the schema, in order.
    """

    def __init__(self, text: str, row: _Row | None) -> None:
        self.explicit = text.startswith("=")
        head, _, rest = text.removeprefix("=").partition("(")
        self.name, _, overload = head.partition(".")
        self.overload, self.row = overload or "default", row
        self.when: Callable[[Sequence[Any]], Any] | None = None
        self._args, self._keywords = list[ast.expr](), dict[str, ast.expr]()
        if self.explicit and row is not None:
            tree = ast.parse(f"_({rest}".replace(") when(", ", when_="), mode="eval").body
            assert isinstance(tree, ast.Call)
            self._args = tree.args
            self._keywords = {each.arg or "": each.value for each in tree.keywords}
            condition = self._keywords.pop("when_", None)
            if condition is not None:
                self.when = _function(condition, row)
        elif row is not None and rest != ")":
            for part in rest.removesuffix(")").split(", "):
                keyword, given, name = part.rpartition("=")
                if given:
                    self._keywords[keyword] = ast.Name(name)
                else:
                    self._args.append(ast.Name(name))

    @functools.cached_property
    def schema(self) -> FunctionSchema:
        """The schema of the op."""
        return ops.schema_of(self.name, self.overload)

    def places(self, n: int) -> dict[str, tuple[int, Callable[[Sequence[Any]], Any] | None]]:
        """By the names of the schema's arguments: the places of values, or functions of them."""
        names = [argument.name for argument in self.schema.arguments]
        if self.row is None:
            return {name: (at, None) for at, name in enumerate(names[:n])}
        found: dict[str, tuple[int, Callable[[Sequence[Any]], Any] | None]] = {}
        for name, part in (*zip(names, self._args, strict=False), *self._keywords.items()):
            at = self._place_of(part, n)
            if at is None or (self.explicit and self._spreads(at, name)):
                found[name] = -1, _function(part, self.row)
            elif at < n:  # a C function may have fewer arguments than the row
                found[name] = at, None
        return found

    def _place_of(self, part: ast.expr, n: int) -> int | None:
        assert self.row is not None
        if type(part) is not ast.Name:
            return None
        if part.id == "out":
            return n - 1
        return self.row.names.index(part.id) if part.id in self.row.names else None

    def _spreads(self, at: int, name: str) -> bool:
        """Whether a list of the row has a length, of which the schema's argument says nothing."""
        assert self.row is not None
        kind = next(each.type for each in self.schema.arguments if each.name == name)
        inner = kind.element if kind.kind_ == "OptionalType" and kind.element else kind
        return self.row.lengths[at] > 0 and inner.kind_ == "ListType" and inner.size is None

    def rest(self, n: int) -> list[tuple[int, str | None]]:
        """The places that the call does not use and that must be at their defaults."""
        if self.row is None:
            return [(at, None) for at in range(len(self.schema.arguments), n)]
        used = {
            each.id
            for part in (*self._args, *self._keywords.values())
            for each in ast.walk(part)
            if isinstance(each, ast.Name)
        }
        if self.explicit:
            return []
        return [
            (at, default)
            for at, (name, default) in enumerate(
                zip(self.row.names[:n], self.row.defaults, strict=False)
            )
            if name not in used and name not in _IGNORED
        ]


_KNOWN: Final = {**BY_NAME, "max": max}


def _function(part: ast.expr, row: _Row) -> Callable[[Sequence[Any]], Any]:
    """A function of the values of a row, by an expression with the names of its arguments."""
    if (  # self.to(dtype): a conversion of its own, where there is a dtype
        isinstance(part, ast.Call)
        and isinstance(part.func, ast.Attribute)
        and part.func.attr == "to"
    ):
        of, to = (row.names.index(ast.unparse(each)) for each in (part.func.value, part.args[0]))
        return lambda values: _converted(values[of], values[to] if to < len(values) else None)
    names = [each.id for each in ast.walk(part) if isinstance(each, ast.Name)]
    places = [row.names.index(name) for name in names if name in row.names]
    code = compile(ast.Expression(part), "<row>", "eval")

    def evaluate(values: Sequence[Any]) -> Any:
        found = {row.names[at]: _value(values, at, row) for at in places}
        value = eval(code, {"__builtins__": {}, **_KNOWN, **found})
        return list(value) if isinstance(value, tuple) else value

    return evaluate


def _converted(tensor: Any, dtype: Any) -> Any:
    if isinstance(dtype, int):
        dtype = dtype_of_code(dtype)
    return tensor if dtype is None or dtype is MISSING else tensor.to(dtype)


def _value(values: Sequence[Any], at: int, row: _Row) -> Any:
    value = values[at] if at < len(values) else MISSING
    if value is MISSING:
        text = row.defaults[at]
        try:
            value = None if text is None else ast.literal_eval(text)
        except ValueError:
            value = text
    if row.lengths[at] and isinstance(value, int):
        return [value] * row.lengths[at]
    if row.lengths[at] and isinstance(value, list) and len(value) == 1:
        return value * row.lengths[at]
    return value


_HIDDEN: Final = {"prelu_kernel": "_prelu_kernel"}
"""The one op whose C function has another name, because `prelu` runs it."""


class Calls(NamedTuple):
    """The calls of a row in one form, and whether modes are asked at its door."""

    at_door: bool
    calls: list[Call]


@functools.cache
def _lines() -> dict[tuple[str, int], tuple[bool, list[str]]]:
    """The lines of the file, by row's name and number, and form."""
    found = {}
    for line in (files(functions.__package__) / "dispatcher.txt").read_text().splitlines():
        row, form, when, calls = line.split(" ", 3)
        found[row, _FORMS[form]] = when == "door", calls.split("; ")
    return found


@functools.cache
def _rows() -> list[tuple[str, str]]:
    """Each row's name in the file, and its schema."""
    counts, found = Counter[str](), []
    for op in functions.TABLE:
        for schema in op.schemas:
            found.append((f"{op.name}:{counts[op.name]}", schema))
            counts[op.name] += 1
    return found


@functools.cache
def calls_of_row(row: int, form: int) -> Calls | None:
    """The calls to which a row comes; `form`: INPLACE, OUT or 0. None: modes are not asked."""
    name, schema = _rows()[row]
    line = _lines().get((name, form))
    if line is None:
        return None
    return Calls(line[0], [Call(text, _row_of(schema)) for text in line[1]])


def name_of_row(row: int) -> str:
    """The name of a row."""
    return _rows()[row][0].rpartition(":")[0]


def schema_of_row(row: int) -> str:
    """The schema of a row."""
    return _rows()[row][1]


@functools.cache
def _rows_of_door(name: str) -> list[int]:
    """The rows of a name, those of `torch` first: their arguments are in the order of C's."""
    found, words = list[tuple[bool, int]](), list[frozenset[str]]()
    for op in functions.TABLE:
        words += op.row_words
        found += [
            (not words[row] & {"torch", "method"}, row)
            for row in range(op.row, len(words))
            if op.name == name
        ]
    return [row for _, row in sorted(found)]


@functools.cache
def calls_of_door(name: str) -> Calls | None:
    """The calls to which a C function comes, by the name at its door."""
    name = _HIDDEN.get(name, name)
    rows = [calls_of_row(row, 0) for row in _rows_of_door(name)]
    if rows and not any(rows):
        return None
    own, forms = name if name in native_lines() else ops.name_in_aten(name), dict[str, None]()
    said = [call for each in rows if each for call in each.calls]
    forms.update((call.overload, None) for call in said if call.name == own)
    native = native_lines().get(own, {})
    forms.update((form, None) for form in sorted(native, key=lambda each: each != "default"))
    forms = {form: None for form in forms if not form.endswith("out")}
    calls = [call for call in said if call.explicit]
    calls += [Call(f"{own}.{form}", None) for form in forms if form in native]
    if not calls:
        return None
    if rows and rows[0]:
        return Calls(rows[0].at_door, calls)
    plain = [words for form, (words, _) in native.items() if not form.endswith("out")]
    return Calls(not all("composite" in words for words in plain), calls)
