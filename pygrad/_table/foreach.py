"""``torch._foreach_*``: an op applied to each tensor of a list, in one call.

PyTorch's schemas say which ops there are and how the lists of a call are paired. The op itself is
the single tensor's, with its numbers, gradients and errors.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

from .._boundary.arguments import is_numpy_scalar
from .._ground.package import PACKAGE
from .._tensor.tensor import Tensor
from . import functions
from .builtins import Builtin
from .function_schema import native_lines
from .schema import arguments as parse_arguments

_WORDS: Final = {
    "list": "tuple of Tensors",
    "numbers": "tuple of Scalars",
    "number": "Number",
    "tensor": "Tensor",
    "vector": "Tensor",
    "any": "object",
}
"""The kinds of arguments, as errors show them. A list and numbers have an item for each tensor of
the first list, a vector an element.
"""
_KINDS: Final = {
    "Tensor[]": "list",
    "Tensor(a!)[]": "list",
    "Scalar[]": "numbers",
    "Scalar": "number",
    "Tensor": "tensor",
}

_f = functions.SPACES["torch"]
_m = functions.SPACES["method"]


class _Argument(NamedTuple):
    kind: str
    name: str
    default: Any
    required: bool
    keyword: bool


class _Schema(NamedTuple):
    text: str
    arguments: tuple[_Argument, ...]

    def bind(
        self, args: tuple[Any, ...], kwargs: dict[str, Any], loosely: bool
    ) -> dict[str, Any] | None:
        """The arguments of a call by name; None where they do not fit. If `loosely`, a tensor of no
        dimensions fits a number's place.
        """
        places = [a for a in self.arguments if not a.keyword]
        if len(args) > len(places):
            return None
        given = {a.name: value for a, value in zip(places, args, strict=False)}
        if given.keys() & kwargs.keys():
            return None
        given |= kwargs
        if given.keys() - {a.name for a in self.arguments}:
            return None
        for argument in self.arguments:
            if argument.name not in given:
                if argument.required:
                    return None
                given[argument.name] = argument.default
            elif not _fits(argument.kind, given[argument.name]):
                if not (loosely and argument.kind == "number" and _is_number(given[argument.name])):
                    return None
                given[argument.name] = given[argument.name].item()
        return given


def _fits(kind: str, value: Any) -> bool:
    if kind == "number":
        return isinstance(value, (bool, int, float, complex)) or is_numpy_scalar(value)
    if kind in ("tensor", "vector"):
        return isinstance(value, Tensor)
    if kind == "any":
        return True
    if not isinstance(value, (list, tuple)):
        return False
    if kind == "list":
        return all(isinstance(each, Tensor) for each in value)
    return all(_fits("number", each) for each in value)


def _is_number(value: Any) -> bool:
    return isinstance(value, Tensor) and value.dim() == 0 and not value.requires_grad


def _read(native: str) -> _Schema:
    arguments: list[_Argument] = []
    words: list[str] = []
    for each in parse_arguments(native):
        kind = _KINDS.get(each.type, "any")
        if kind == "tensor" and each.name == "scalars":
            kind = "vector"
        if each.keyword_only and "*" not in words:
            words.append("*")
        default = None if each.default is None else ast.literal_eval(each.default)
        required = each.default is None
        arguments.append(_Argument(kind, each.name, default, required, each.keyword_only))
        words.append(f"{_WORDS[kind]} {each.name}" + ("" if required else f" = {each.default}"))
    return _Schema(f"({', '.join(words)})", tuple(arguments))


def _order(schema: _Schema) -> tuple[bool, bool]:
    """A key by which forms with a number come first, and one without a first list last."""
    first, *others = schema.arguments
    return first.kind != "list", not others or others[0].name != "scalar"


def _parse_schemas() -> dict[str, list[_Schema]]:
    """The forms of each function by its name in torch."""
    found: dict[str, list[_Schema]] = {}
    for name, overloads in native_lines().items():
        if name.startswith("_foreach_") and name + "_" != "_foreach_copy_":  # not in torch
            schemas = [text for words, text in overloads.values() if "generated" not in words]
            if schemas:
                found[name] = sorted(map(_read, schemas), key=_order)
    return found


_TABLE: Final = _parse_schemas()


# ------------------------------------------------------------------ calls


def _power_sum(x: Tensor, ord: float, dtype: Any) -> Any:
    powers = _f["abs"](x if dtype is None else x.to(dtype)) ** ord
    return _f["sum"](powers)


def _largest(x: Tensor) -> Any:
    if not x.numel():
        raise RuntimeError(
            "_foreach_max cannot compute the maximum of an empty tensor; max over zero elements "
            "is undefined."
        )
    return _f["max"](x)


def _extreme(name: str) -> Callable[..., Any]:
    """The larger or smaller of two tensors, or of a tensor and a number."""
    with_tensor, with_number = _f[f"{name}imum"], _f[f"clamp_{'min' if name == 'max' else 'max'}"]

    def call(x: Tensor, other: Any) -> Any:
        return (with_tensor if isinstance(other, Tensor) else with_number)(x, other)

    return call


_OWN: Final[dict[str, Callable[..., Any]]] = {
    "clone": lambda x, memory_format: (
        x.clone() if memory_format is None else x.clone(memory_format=memory_format)
    ),
    "max": _largest,
    "maximum": _extreme("max"),
    "minimum": _extreme("min"),
    "norm": lambda x, ord, dtype: functions.SPACES["linalg"]["vector_norm"](x, ord, dtype=dtype),
    "powsum": _power_sum,
}
_BY_KEYWORD: Final = {"alpha", "value"}
"""Keyword arguments of the op of a tensor."""


def _single(name: str) -> Callable[..., Any]:
    """The op of a single tensor."""
    if name in _OWN:
        return _OWN[name]
    if name in ("maximum_", "minimum_"):
        out_of_place = _OWN[name.removesuffix("_")]
        return lambda x, other: x.copy_(out_of_place(x, other))
    return (_m if name.endswith("_") else _f)[name]


def _rows(given: dict[str, Any], schema: _Schema) -> list[tuple[list[Any], dict[str, Any]]]:
    """The arguments of the op for each tensor, positional ones and others."""
    lists = [given[a.name] for a in schema.arguments if a.kind == "list"]
    number = len(lists[0])
    if not number:
        raise RuntimeError("Tensor list must have at least one tensor.")
    for each in lists:
        if len(each) != number:
            raise RuntimeError(
                f"Tensor lists must have the same number of tensors, got {number} and {len(each)}"
            )
    rows: list[tuple[list[Any], dict[str, Any]]] = [([], {}) for _ in range(number)]
    for argument in schema.arguments:
        values = _column(argument, given[argument.name], number)
        packed = argument.name == "scalars" and len(lists) == 3
        by_name = packed or argument.name in _BY_KEYWORD
        for (positional, keywords), value in zip(rows, values, strict=True):
            if by_name:
                keywords["value" if packed else argument.name] = value
            else:
                positional.append(value)
    return rows


def _column(argument: _Argument, value: Any, number: int) -> Sequence[Any]:
    """An argument's value for each tensor."""
    if argument.kind == "list":
        return value  # type: ignore[no-any-return]
    if argument.kind == "numbers":
        if len(value) != number:
            raise RuntimeError("Tensor list must have same number of elements as scalar list.")
        return value  # type: ignore[no-any-return]
    if argument.kind == "vector":
        if value.dim() != 1:
            raise RuntimeError(
                f"Expected packed scalar Tensor to be of dimension 1. Got {value.dim()} instead."
            )
        if value.numel() != number:
            raise RuntimeError(
                f"Expected length of scalars to match input of length {number} but got "
                f"{value.numel()} instead."
            )
        return value.tolist()  # type: ignore[no-any-return]
    if argument.kind == "tensor" and value.dim():
        raise RuntimeError(
            f"scalar tensor expected to be 0 dim but it has {value.dim()} dimensions and "
            f"{value.numel()} elements."
        )
    return [value] * number


def _kind_of(value: Any) -> str:
    return "Tensor" if isinstance(value, Tensor) else type(value).__name__


def _make(full: str, schemas: list[_Schema]) -> Any:
    single, in_place = _single(full.removeprefix("_foreach_")), full.endswith("_")

    def function(*args: Any, **kwargs: Any) -> Any:
        for schema, loosely in [(s, False) for s in schemas] + [(s, True) for s in schemas]:
            given = schema.bind(args, kwargs, loosely)
            if given is None:
                continue
            found = [single(*row, **keywords) for row, keywords in _rows(given, schema)]
            return given["self"] if in_place else tuple(found)
        kinds = [_kind_of(each) for each in args]
        kinds += [f"{key}={_kind_of(value)}" for key, value in kwargs.items()]
        expected = "\n".join(f" * {schema.text}" for schema in schemas)
        raise TypeError(
            f"{full}() received an invalid combination of arguments - got ({', '.join(kinds)}), "
            f"but expected one of:\n{expected}"
        )

    function.__name__ = function.__qualname__ = full
    function.__module__ = PACKAGE
    forms = "\n    ".join(full + schema.text for schema in schemas)
    function.__doc__ = f"As torch.{full} in PyTorch.\n\n    {forms}"
    return Builtin(function)


_made: Final = {name: _make(name, schemas) for name, schemas in _TABLE.items()}
globals().update(_made)
__all__: list[str] = []
__all__ += sorted(_made)
