"""Values that the engine passes, as arguments of PyTorch's schemas.

A value has a kind: the tag with which the engine passed it (`pygrad._boundary.constants`), for a
number of the host that C holds as a tensor the tag of the number. Kind and type tell how a value is
converted, so this is decided once for all calls of the same kinds.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from .._boundary import constants
from .._boundary.arguments import Index
from .._boundary.asked import C_ENUM, Enum, Missing, Unknown
from .._ground.dtypes import (
    BY_CODE,
    Size,
    channels_last,
    channels_last_3d,
    contiguous_format,
    dtype,
    preserve_format,
)
from .._table.function_schema import Argument, SchemaType
from .._tensor.tensor import Tensor

Conversion = Callable[[Any], Any]


class Misfit(Exception):
    """A value that an argument does not take."""


class _Kinds(dict[type, int]):
    """The kind of a value by its type; classes of tensors are not kept."""

    def __missing__(self, kind: type) -> int:
        return constants.TENSOR if issubclass(kind, Tensor) else constants.OTHER


KINDS: Final = _Kinds(
    {
        Tensor: constants.TENSOR,
        int: constants.INT,
        float: constants.FLOAT,
        bool: constants.BOOL,
        complex: constants.COMPLEX,
        str: constants.STR,
        list: constants.INTS,
        tuple: constants.INTS,
        Size: constants.INTS,
        dtype: constants.DTYPE,
        Index: constants.INDEX,
        Enum: C_ENUM,
        Missing: constants.MISSING,
        type(None): constants.NONE,
        Unknown: constants.OTHER,
    }
)
FORMATS: Final = (contiguous_format, preserve_format, channels_last, channels_last_3d)
_REDUCTIONS: Final = {"none": 0, "mean": 1, "sum": 2}
NUMBERS: Final = {constants.INT, constants.FLOAT, constants.BOOL, constants.COMPLEX}
_LISTS: Final = {constants.INTS, constants.FLOATS, constants.BOOLS, constants.TENSORS}
_ENUMERATIONS: Final = {
    "int": ("reduction", "normalization"),
    "SymInt": ("reduction", "normalization"),
    "ScalarType": ("dtype", "self_dtype", "input_dtype"),
    "MemoryFormat": ("memory_format",),
}
"""Arguments that are members of an enumeration in C, by type."""


def _reduction(value: str) -> int:
    if value not in _REDUCTIONS:
        raise Misfit
    return _REDUCTIONS[value]


def dtype_of_code(code: int) -> Any:
    """The dtype with a code of C's; None for none."""
    return BY_CODE[code] if code < len(BY_CODE) else None


def _format(code: int) -> Any:
    return None if code == 1 else FORMATS[code]


def _format_of_name(name: str) -> Any:
    return next(each for each in FORMATS if each.name.endswith(name.rpartition(".")[2]))


def _nothing(value: Any) -> None:
    return None


_ONE: Final[dict[str, dict[int, Conversion | None]]] = {
    "Tensor": {constants.TENSOR: None, **dict.fromkeys(NUMBERS)},
    "number": dict.fromkeys(NUMBERS),
    "complex": dict.fromkeys(NUMBERS),
    "int": {constants.INT: None, C_ENUM: int, constants.STR: _reduction},
    "SymInt": {constants.INT: None, C_ENUM: int, constants.STR: _reduction},
    "float": {constants.INT: float, constants.FLOAT: None},
    "bool": {constants.BOOL: None},
    "str": {constants.STR: None},
    "ScalarType": {C_ENUM: dtype_of_code, constants.DTYPE: None},
    "MemoryFormat": {C_ENUM: _format, constants.STR: _format_of_name},
}
"""Conversions by the name of a type and the kind of a value; None: the value itself."""
_ANYTHING: Final = {"Device": None, "Layout": _nothing, "Generator": _nothing}
"""Conversions to types that take values of all kinds."""


def _list(kind: SchemaType, of: int, spreads: bool) -> Conversion | None:
    """The conversion to a list.

    Raises: Misfit: there is none.
    """
    inner, size = kind.getElementType(), kind.size
    optional = inner.kind_ == "OptionalType"
    name = inner.getElementType().name if optional else inner.name
    if of == constants.INT and name in ("int", "SymInt") and size is not None and spreads:
        return lambda value: [value] * size
    if of not in _LISTS:
        raise Misfit

    def convert(values: list[Any]) -> list[Any]:
        if size is not None and size > 1 and len(values) != size:
            if len(values) > 1:
                raise Misfit
            values = list(values) * size
        return [None if each is None and optional else _element(name, each) for each in values]

    return convert


def _element(name: str, value: Any) -> Any:
    """An element of a list as a type."""
    if name == "Tensor" and isinstance(value, Tensor):
        return value
    steps = _ONE.get(name, {})
    kind = KINDS[type(value)]
    if kind not in steps:
        raise Misfit
    step = steps[kind]
    return value if step is None else step(value)


def conversion(argument: Argument, kind: int, of_row: bool) -> Conversion | None:
    """The conversion of values of a kind to an argument; None: the values themselves.

    Args:
        of_row: the values are a row's, where a number stands for a list and None for a default.

    Raises: Misfit: the argument takes no values of that kind.
    """
    wanted, optional = argument.type, False
    if wanted.kind_ == "OptionalType":
        wanted, optional = wanted.getElementType(), True
    if kind in (constants.MISSING, constants.NONE):
        if optional:
            return _nothing
        lenient = of_row or kind == constants.MISSING or wanted.name in ("number", "Tensor")
        if not (argument.has_default_value() and lenient):
            raise Misfit
        default = argument.default_value
        return lambda value: default
    if kind == C_ENUM and argument.name not in _ENUMERATIONS.get(wanted.name, ()):
        raise Misfit
    if wanted.kind_ == "ListType":
        return _list(wanted, kind, of_row)
    if wanted.name in _ANYTHING:
        return _ANYTHING[wanted.name]
    steps = _ONE.get(wanted.name, {})
    if kind not in steps:
        raise Misfit
    return steps[kind]
