"""The arguments of a call after an op's schema: their places, types and defaults."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

import numpy as np

from .._ground.dtypes import (
    BY_CODE,
    contiguous_format,
    device,
    dtype,
    layout,
    memory_format,
    strided,
)
from .._table.function_schema import Argument, FunctionSchema, SchemaType
from .._tensor.tensor import Tensor
from ..random import Generator

# ------------------------------------------------------------------ types


class _Misfit(Exception):
    """A value that does not fit a type."""


def _one_of(*classes: type) -> Callable[[Any], Any]:
    def check(value: Any) -> Any:
        if not isinstance(value, classes):
            raise _Misfit
        return value

    return check


def _item(value: Any) -> Any:
    """The number in a one-element tensor, or a number itself."""
    if isinstance(value, Tensor):
        if value.numel() != 1:
            raise _Misfit
        return value.item()
    if not isinstance(value, (int, float, complex, np.number, np.bool_)):
        raise _Misfit
    return value


def _int(value: Any) -> int:
    number = value if type(value) is int else _whole(value)
    if not -(2**63) <= number < 2**63:
        raise _Misfit
    return number


def _whole(value: Any) -> int:
    number = _item(value)
    if isinstance(value, (float, complex)) or isinstance(number, (complex, np.complexfloating)):
        raise _Misfit
    try:
        return int(number)
    except (ValueError, OverflowError):  # of a NaN, of infinity
        raise _Misfit from None


def _float(value: Any) -> float:
    if type(value) is float:
        return value
    number = _item(value)
    if isinstance(number, (complex, np.complexfloating)):
        raise _Misfit
    return float(number)


def _bool(value: Any) -> bool:
    return value is not None and bool(_item(value))


def _tensor(value: Any) -> Tensor | None:
    """PyTorch takes None for a tensor that there is not."""
    if value is not None and not isinstance(value, Tensor):
        raise _Misfit
    return value


def _device(value: Any) -> device:
    if not isinstance(value, (str, device)):
        raise _Misfit
    return device(value)


def _member(kind: type, by_number: dict[int, Any]) -> Callable[[Any], Any]:
    """A check for members of an enumeration, which schemas have as numbers."""

    def check(value: Any) -> Any:
        if isinstance(value, kind):
            return value
        try:
            return by_number[_int(value)]
        except KeyError:
            raise _Misfit from None

    return check


_VALUES: Final[dict[str, Callable[[Any], Any]]] = {
    "Tensor": _tensor,
    "int": _int,
    "SymInt": _int,
    "float": _float,
    "bool": _bool,
    "str": _one_of(str),
    "number": _one_of(int, float, complex),
    "Device": _device,
    "Generator": _one_of(Generator),
    "ScalarType": _member(
        dtype, {code: kind for code, kind in enumerate(BY_CODE) if kind is not None}
    ),
    "Layout": _member(layout, {0: strided}),
    "MemoryFormat": _member(memory_format, {0: contiguous_format}),
}
"""Converters of values to arguments, by type; other types take anything."""


def _value(kind: SchemaType, value: Any) -> Any:
    """Converts a value to an argument of a type.

    Raises: _Misfit: it does not fit.
    """
    if kind.kind_ == "OptionalType":
        return None if value is None else _value(kind.getElementType(), value)
    if kind.kind_ != "ListType":
        return _VALUES[kind.name](value) if kind.name in _VALUES else value
    inner = kind.getElementType()
    if kind.size and isinstance(value, int):
        return [_value(inner, value)] * kind.size
    if isinstance(value, (str, dict, Tensor)) or not isinstance(value, Iterable):
        raise _Misfit
    values = [_value(inner, each) for each in value]
    if inner.name == "Tensor" and any(each is None for each in values):
        raise _Misfit
    return values


# ------------------------------------------------------------------ places


def match_arguments(
    schema: FunctionSchema, args: Sequence[Any], kwargs: dict[str, Any]
) -> list[Any]:
    """All arguments in the order of a schema, each of its type.

    Raises: RuntimeError: they do not fit; the message is PyTorch's.
    """
    name, rest, values, n = schema.name, dict(kwargs), [], len(args) + len(kwargs)
    if n > len(schema.arguments):
        raise RuntimeError(
            f"{name}() expected at most {len(schema.arguments)} argument(s) but received {n} "
            f"argument(s). Declaration: {schema}"
        )
    for i, argument in enumerate(schema.arguments):
        if i < len(args):
            if argument.kwarg_only:
                raise RuntimeError(
                    f"{name}() takes {i} positional argument(s) but {len(args)} was/were given.  "
                    f"Declaration: {schema}"
                )
            if argument.name in rest:
                raise RuntimeError(
                    f"Argument '{argument.name}' specified both as positional and keyword "
                    f"argument. Schema: {schema}"
                )
            value = args[i]
        elif argument.name in rest:
            value = rest.pop(argument.name)
        elif argument.has_default_value():
            values.append(_default_of(argument))
            continue
        else:
            raise RuntimeError(
                f"{name}() is missing value for argument '{argument.name}'. Declaration: {schema}"
            )
        try:
            values.append(
                value if _is_wrapped(schema, argument, value) else _value(argument.type, value)
            )
        except _Misfit:
            raise RuntimeError(
                f"{name}() Expected a value of type '{argument.type}' for argument "
                f"'{argument.name}' but instead found type '{type(value).__name__}'.\n"
                f"Position: {i}\nValue: {value!r:.200}\nDeclaration: {schema}"
            ) from None
    if rest:
        raise RuntimeError(
            f"Unknown keyword argument '{next(iter(rest))}' for operator '{name}'. Schema: {schema}"
        )
    return values


_OF_NUMBERS: Final = frozenset(
    "add sub mul div multiply subtract divide true_divide floor_divide copy to _to_copy".split()
)
"""The ops of aten to which PyTorch passes numbers as tensors, by a list of its dispatcher."""


def _is_wrapped(schema: FunctionSchema, argument: Argument, value: Any) -> bool:
    """Whether a number takes a tensor's place."""
    return (
        argument.type.name == "Tensor"
        and isinstance(value, (int, float, complex))
        and schema.name.removeprefix("aten::").removesuffix("_") in _OF_NUMBERS
    )


def resolve_overload(
    schemas: dict[str, FunctionSchema], args: Sequence[Any], kwargs: dict[str, Any]
) -> tuple[str, list[Any]]:
    """The first of an op's overloads that takes some arguments, and these in its order.

    Raises: RuntimeError: none does, and why.
    """
    reasons = []
    for overload, schema in schemas.items():
        try:
            return overload, match_arguments(schema, args, kwargs)
        except RuntimeError as error:
            reasons.append(str(error))
    if len(reasons) == 1:
        raise RuntimeError(reasons[0])
    raise RuntimeError(
        "Overloaded torch operator invoked from Python failed to match any schema:\n"
        + "\n\n".join(reasons)
    )


def native_rank(overload: str) -> int:
    """The rank of an overload among those of one of PyTorch's ops: overloads for tensors before
    those for numbers, and overloads that write last.
    """
    if overload.endswith("out"):
        return 3
    return 0 if overload == "default" else 1 if overload.startswith("Tensor") else 2


# ------------------------------------------------------------------ as a function takes them


def split(schema: FunctionSchema, values: Sequence[Any]) -> tuple[list[Any], dict[str, Any]]:
    """Splits values in the schema's order into positional and keyword arguments."""
    pairs = list(zip(schema.arguments, values, strict=True))
    return (
        [value for argument, value in pairs if not argument.kwarg_only],
        {argument.name: value for argument, value in pairs if argument.kwarg_only},
    )


def by_argument(
    schema: FunctionSchema, args: Sequence[Any], kwargs: dict[str, Any]
) -> dict[Argument, Any]:
    """The given values by argument of the schema."""
    named = {each: kwargs[each.name] for each in schema.arguments if each.name in kwargs}
    return dict(zip(schema.arguments, args, strict=False)) | named


def _default_of(argument: Argument) -> Any:
    return _value(argument.type, argument.default_value)


def split_without_defaults(
    schema: FunctionSchema, values: Sequence[Any]
) -> tuple[list[Any], dict[str, Any]]:
    """Like `split`, without trailing values that equal the schema's defaults: an op's functions may
    have defaults of their own, as in PyTorch.
    """
    args, kwargs = split(schema, values)
    open_ = [each for each in schema.arguments if not each.kwarg_only]
    while args and _is_default(open_[len(args) - 1], args[-1]):
        args.pop()
    for argument in schema.arguments:
        if argument.kwarg_only and _is_default(argument, kwargs[argument.name]):
            del kwargs[argument.name]
    return args, kwargs


def _is_default(argument: Argument, value: Any) -> bool:
    if not argument.has_default_value():
        return False
    if value is argument.default_value:
        return True
    default = _default_of(argument)
    return type(value) is type(default) and bool(value == default)
