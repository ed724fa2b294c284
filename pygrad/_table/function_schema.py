"""Schemas of ops in PyTorch's notation: parsing and printing; the type of `OpOverload._schema`.

Example:
    >>> from pygrad._table.function_schema import parse_schema
    >>> schema = parse_schema("mine::scale(Tensor(a!) x, float by=2.0) -> ()")
    >>> schema.name, [argument.name for argument in schema.arguments], schema.is_mutable
    ('mine::scale', ['x', 'by'], True)
"""

from __future__ import annotations

import ast
import functools
import re
from collections.abc import Sequence
from typing import Any, Final

from .._ground.dtypes import BY_CODE, device
from .builtins import builtin


class SchemaType:
    """The type of an argument: a name, or a list or an option of another type."""

    __slots__ = ("element", "kind_", "name", "size")

    def __init__(
        self, kind: str, name: str, element: SchemaType | None = None, size: int | None = None
    ) -> None:
        self.kind_, self.name, self.element, self.size = kind, name, element, size

    def kind(self) -> str:
        """PyTorch's name for the kind of type: 'TensorType', 'ListType', 'OptionalType', ..."""
        return self.kind_

    def getElementType(self) -> SchemaType:
        """The type of a list's elements or of an option's value."""
        if self.element is None:
            raise RuntimeError(f"{self} has no elements")
        return self.element

    def __str__(self) -> str:
        if self.kind_ == "ListType":
            return f"List[{self.element}]"
        if self.kind_ == "OptionalType":
            return f"Optional[{self.element}]"
        return "int" if self.name in _INTS else self.name

    __repr__ = __str__

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SchemaType) and str(self) == str(other)

    def __hash__(self) -> int:
        return hash(str(self))

    def notation(self) -> str:
        """The notation in a schema: 'int[2]?'."""
        if self.kind_ == "ListType":
            return f"{self.element.notation()}[{self.size or ''}]"  # type: ignore[union-attr]
        if self.kind_ == "OptionalType":
            return f"{self.element.notation()}?"  # type: ignore[union-attr]
        return _SHOWN.get(self.name, self.name)


_SHOWN: Final = {"number": "Scalar"}
_INTS: Final = {"ScalarType", "Layout", "MemoryFormat", "SymInt"}
"""Types of arguments that PyTorch represents as int."""
_KINDS: Final = {
    "Tensor": "TensorType",
    "int": "IntType",
    "float": "FloatType",
    "bool": "BoolType",
    "SymBool": "SymBoolType",
    "str": "StringType",
    "Scalar": "NumberType",
    "complex": "ComplexType",
    "Device": "DeviceObjType",
    "Generator": "GeneratorType",
    "Any": "AnyType",
    "t": "VarType",
}


class _Kind(type):
    """A kind of types: `isinstance` compares `SchemaType.kind`."""

    def __instancecheck__(cls, value: Any) -> bool:
        return isinstance(value, SchemaType) and value.kind() == cls.__name__


class TensorType(metaclass=_Kind):
    """The type of tensors."""

    @staticmethod
    def get() -> SchemaType:
        """The single object of this type."""
        return _type("Tensor", "")


class IntType(metaclass=_Kind):
    """The type of whole numbers."""

    @staticmethod
    def get() -> SchemaType:
        """The single object of this type."""
        return _type("int", "")


class ListType(metaclass=_Kind):
    """Types of lists: ``ListType(TensorType.get())``."""

    def __new__(cls, element: SchemaType) -> SchemaType:  # type: ignore[misc]
        return SchemaType("ListType", "", element)


class OptionalType(metaclass=_Kind):
    """Types of values that may be None: ``OptionalType(TensorType.get())``."""

    def __new__(cls, element: SchemaType) -> SchemaType:  # type: ignore[misc]
        return SchemaType("OptionalType", "", element)


class AliasInfo:
    """The aliases of an argument or a result: sets of names, before and after the call."""

    __slots__ = ("after_set", "before_set", "is_write")

    def __init__(self, is_write: bool, before_set: set[str], after_set: set[str]) -> None:
        self.is_write, self.before_set, self.after_set = is_write, before_set, after_set

    def notation(self) -> str:
        before, after = "|".join(sorted(self.before_set)), "|".join(sorted(self.after_set))
        becomes = f" -> {after}" if after != before else ""
        return f"({before}{'!' if self.is_write else ''}{becomes})"


_NO_DEFAULT: Final = object()


class Argument:
    """One argument or result of a schema."""

    __slots__ = ("N", "_default", "alias_info", "kwarg_only", "name", "shown_default", "type")

    def __init__(
        self,
        name: str,
        kind: SchemaType,
        default: Any,
        shown_default: str,
        kwarg_only: bool,
        alias_info: AliasInfo | None,
    ) -> None:
        self.name, self.type, self._default = name, kind, default
        self.shown_default, self.kwarg_only, self.alias_info = shown_default, kwarg_only, alias_info
        inner = kind.element if kind.kind_ == "OptionalType" else kind
        self.N = inner.size if inner is not None else None

    real_type = property(lambda self: self.type)
    is_write = property(lambda self: self.alias_info is not None and self.alias_info.is_write)
    is_out = property(lambda self: self.kwarg_only and self.is_write)

    @property
    def default_value(self) -> Any:
        """The default; None also if there is none: see `has_default_value`."""
        return None if self._default is _NO_DEFAULT else self._default

    def has_default_value(self) -> bool:
        """Whether the argument may be left out."""
        return self._default is not _NO_DEFAULT

    def __str__(self) -> str:
        kind = self.type.notation()
        if self.alias_info is not None:
            base = re.match(r"\w+", kind).group()  # type: ignore[union-attr]
            kind = base + self.alias_info.notation() + kind[len(base) :]
        default = f"={self.shown_default}" if self.has_default_value() else ""
        return f"{kind} {self.name}{default}" if self.name else kind

    __repr__ = __str__


class FunctionSchema:
    """A name, an overload, arguments and returns."""

    def __init__(
        self,
        name: str,
        overload_name: str,
        arguments: Sequence[Argument],
        returns: Sequence[Argument],
        many_returns: bool = False,
    ) -> None:
        self.name, self.overload_name = name, overload_name
        self.arguments, self.returns = list(arguments), list(returns)
        self._in_brackets = many_returns

    @property
    def is_mutable(self) -> bool:
        """Whether an argument is written to."""
        return any(argument.is_write for argument in self.arguments)

    def _is_view_op(self) -> bool:
        return any(
            each.alias_info is not None and not each.alias_info.is_write for each in self.arguments
        )

    def __str__(self) -> str:
        full = f"{self.name}.{self.overload_name}" if self.overload_name else self.name
        shown: list[str] = []
        for argument in self.arguments:
            if argument.kwarg_only and "*" not in shown:
                shown.append("*")
            shown.append(str(argument))
        returns = ", ".join(map(str, self.returns))
        one = len(self.returns) == 1 and not self._in_brackets
        return f"{full}({', '.join(shown)}) -> {returns if one else f'({returns})'}"

    __repr__ = __str__

    def __eq__(self, other: object) -> bool:
        return isinstance(other, FunctionSchema) and str(self) == str(other)

    def __hash__(self) -> int:
        return hash(str(self))


_NAME = re.compile(r"\s*((?:\w+::)?\w+)(?:\.(\w+))?\s*\(")
_TYPE = re.compile(r"\s*(\w+(?:\.\w+)*)(?:\(([^)]*)\))?((?:\[\d*\]|\?)*)\s*")
_SUFFIX = re.compile(r"\[(\d*)\]|\?")
_ALIAS_AFTER_LIST = re.compile(r"\s*\(([^)]*)\)((?:\[\d*\]|\?)*)")


def _split(text: str) -> list[str]:
    """Splits at the commas outside brackets and quotes."""
    parts, depth, start, quote, escaped = [], 0, 0, "", False
    for i, letter in enumerate(text):
        if quote:
            quote = "" if letter == quote and not escaped else quote
            escaped = letter == "\\" and not escaped
        elif letter in "'\"":
            quote = letter
        elif letter in "([{":
            depth += 1
        elif letter in ")]}":
            depth -= 1
        elif letter == "," and not depth:
            parts.append(text[start:i])
            start = i + 1
    parts.append(text[start:])
    return [part.strip() for part in parts if part.strip()]


def _find_closing(text: str, at: int) -> int:
    depth = 0
    for i in range(at, len(text)):
        depth += (text[i] == "(") - (text[i] == ")")
        if not depth:
            return i
    raise RuntimeError(f"expected ')' in schema: {text}")


def _alias(text: str | None) -> AliasInfo | None:
    if text is None:
        return None
    before, _, after = (part.strip() for part in text.partition("->"))
    sets = [{name.strip() for name in part.replace("!", "").split("|")} for part in (before, after)]
    return AliasInfo("!" in before, sets[0], sets[1] if after else sets[0])


def _type(name: str, suffixes: str) -> SchemaType:
    shown = "number" if name == "Scalar" else name
    kind = SchemaType(_KINDS.get("int" if name in _INTS else name, f"{name}Type"), shown)
    for found in _SUFFIX.finditer(suffixes):
        if found.group() == "?":
            kind = SchemaType("OptionalType", "", kind)
        else:
            kind = SchemaType("ListType", "", kind, int(found.group(1)) if found.group(1) else None)
    return kind


_DTYPES: Final = {each.name: each.code for each in BY_CODE if each is not None}
_OLDER_DTYPES: Final = {"short": 2, "int": 3, "long": 4, "half": 5, "float": 6, "double": 7}
_CONSTANTS: Final = (
    _DTYPES | _OLDER_DTYPES | {"Mean": 1, "Sum": 2, "contiguous_format": 0, "strided": 0}
)


def _default(text: str, kind: SchemaType) -> Any:
    if text in _CONSTANTS:
        return _CONSTANTS[text]
    try:
        return _convert(ast.literal_eval(text), kind)
    except (ValueError, SyntaxError):
        return text


def _convert(value: Any, kind: SchemaType) -> Any:
    """Converts a value to a type: an int to a float, a name to a device."""
    if isinstance(value, list):
        return [_convert(each, kind) for each in value]
    if kind.kind_ == "FloatType" and type(value) is int:
        return float(value)
    if kind.kind_ == "DeviceObjType" and isinstance(value, str):
        return device(value)
    return value


_ESCAPED: Final = r"""["'\\]"""
_ESCAPE: Final = r"\\\g<0>"


def _format_default(value: Any) -> str:
    """The text of a default as PyTorch prints it: floats with enough digits to distinguish them."""
    if isinstance(value, float):
        digits = f"{value or 0.0:.17g}"
        return digits + "." * digits.lstrip("-").isdigit()
    if isinstance(value, list):
        return f"[{', '.join(map(_format_default, value))}]"
    if isinstance(value, str):
        return f'"{re.sub(_ESCAPED, _ESCAPE, value)}"'
    return str(value)


def _argument(text: str, kwarg_only: bool, is_return: bool) -> Argument:
    found = _TYPE.match(text)
    if not found:
        raise RuntimeError(f"expected a type in schema: {text!r}")
    name, alias, suffixes = found.groups()
    if name == "Dict" and alias:
        kind, alias = SchemaType("DictType", f"Dict({alias})"), None
    else:
        kind = _type(name, suffixes or "")
    rest = text[found.end() :]
    if alias is None and rest.startswith("("):
        late = _ALIAS_AFTER_LIST.match(rest)
        if late:
            alias, rest = late.group(1), rest[late.end() :].strip()
    label, given, default = rest.partition("=")
    label, default = label.strip(), default.strip()
    if not label and not is_return:
        raise RuntimeError(f"expected a name of an argument in schema: {text!r}")
    inner = kind.element if kind.kind_ == "OptionalType" and kind.element else kind
    value = _default(default, inner.element or inner) if given else _NO_DEFAULT
    spread = [value] * inner.size if inner.size and isinstance(value, (int, float)) else value
    shown = _format_default(value if name == "int" else spread) if given else ""
    return Argument(label, kind, spread, shown, kwarg_only, _alias(alias))


@builtin
def parse_schema(text: str) -> FunctionSchema:
    """The schema that a text describes.

    Raises: RuntimeError: the text is no schema.
    """
    head = _NAME.match(text)
    if not head:
        raise RuntimeError(f"expected a schema like 'name(Tensor x) -> Tensor', but found {text!r}")
    end = _find_closing(text, head.end() - 1)
    arguments, only = [], False
    for part in _split(text[head.end() : end]):
        if part == "*":
            only = True
        else:
            arguments.append(_argument(part, only, False))
    arrow = text[end + 1 :].strip()
    if not arrow.startswith("->"):
        raise RuntimeError(f"expected '->' and what is returned in schema: {text!r}")
    after = arrow[2:].strip()
    many = after.startswith("(")
    parts = _split(after[1 : _find_closing(after, 0)] if many else after)
    returns = [_argument(part, False, True) for part in parts]
    return FunctionSchema(head.group(1), head.group(2) or "", arguments, returns, many)


@functools.cache
def native_lines() -> dict[str, dict[str, tuple[frozenset[str], str]]]:
    """PyTorch's ops: name -> overload -> (words, schema); see tests/parity/native_schemas.py."""
    from importlib.resources import files

    found: dict[str, dict[str, tuple[frozenset[str], str]]] = {}
    sets = {"-": frozenset[str]()}
    for line in (files(__package__) / "native_schemas.txt").read_text().splitlines():
        words, _, schema = line.partition(" ")
        if words not in sets:
            sets[words] = frozenset(words.split(","))
        name, _, overload = schema[: schema.index("(")].partition(".")
        found.setdefault(name, {})[overload or "default"] = (sets[words], schema)
    return found


@functools.cache
def native_schema(name: str, overload: str) -> FunctionSchema:
    """The schema of one overload of an op of PyTorch."""
    return parse_schema(f"aten::{native_lines()[name][overload][1]}")


_KNOWN: Final = frozenset(
    "Tensor int SymInt SymBool bool float complex number str ScalarType Device Layout Generator "
    "MemoryFormat Storage Stream Dimname QScheme Any AnyEnumType t".split()
)
_INSTEAD: Final = {
    "int64_t": "Use `SymInt` or `int` instead of `int64_t` in an operator's schema string. "
    "`SymInt` corresponds to c10::SymInt in C++ while `int` in schema corresponds to the int64_t "
    "type in C++.",
    "double": "Use `float` instead of `double` in an operator's schema string. `float` in schema "
    "corresponds to the double type in C++",
}
_UNKNOWN: Final = (
    "unknown type specifier. Common valid schema types include Tensor, SymInt, int, float, bool, "
    "Scalar; for a full list, please see "
    "https://github.com/pytorch/pytorch/blob/main/aten/src/ATen/native/README.md#func "
)


def check_types(schema: FunctionSchema, text: str) -> None:
    """Refuses types that no op has; names with a dot are names of classes.

    Raises: RuntimeError: the text from which the schema was read has such a type.
    """
    for each in (*schema.arguments, *schema.returns):
        kind = each.type
        while kind.element is not None:
            kind = kind.element
        if kind.name in _KNOWN or kind.kind_ == "DictType" or "." in kind.name:
            continue
        place = re.search(rf"\b{kind.name}\b", text)
        at = place.start() if place else 0
        raise RuntimeError(
            f"\n{_INSTEAD.get(kind.name, _UNKNOWN)}:\n{text}\n{' ' * at}{'~' * len(kind.name)} "
            "<--- HERE\n"
        )
