"""``torch._foreach_*``: an op applied to each tensor of a list, in one call.

One description says how the lists of a call are paired. The op itself is the single tensor's, with
its numbers, gradients and errors.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

from .._boundary.arguments import is_numpy_scalar
from .._ground.package import PACKAGE
from .._tensor.tensor import Tensor
from . import functions
from .builtins import Builtin

_UNARY: Final = (
    "abs acos asin atan ceil cos cosh erf erfc exp expm1 floor frac lgamma log log10 log1p log2 "
    "neg reciprocal round rsqrt sigmoid sign sin sinh sqrt tan tanh trunc"
)
_BINARY: Final = """
    {}(list self, number scalar)
    {}(list self, list other)
    {}(list self, numbers scalars)
"""
_SCHEMAS: Final = f"""
    add(list self, number scalar)
    add(list self, list other, *, number alpha=1)
    add(list self, numbers scalars)
    add(list self, tensor other, *, number alpha=1)
    sub(list self, number scalar)
    sub(list self, list other, *, number alpha=1)
    sub(list self, numbers scalars)
    {_BINARY.format(*["mul"] * 3)}
    mul(list self, tensor other)
    {_BINARY.format(*["div"] * 3)}
    div(list self, tensor other)
    {_BINARY.format(*["clamp_max"] * 3)}
    {_BINARY.format(*["clamp_min"] * 3)}
    {_BINARY.format(*["maximum"] * 3)}
    {_BINARY.format(*["minimum"] * 3)}
    addcdiv(list self, list tensor1, list tensor2, number value=1)
    addcdiv(list self, list tensor1, list tensor2, numbers scalars)
    addcdiv(list self, list tensor1, list tensor2, vector scalars)
    addcmul(list self, list tensor1, list tensor2, number value=1)
    addcmul(list self, list tensor1, list tensor2, numbers scalars)
    addcmul(list self, list tensor1, list tensor2, vector scalars)
    lerp(list self, list tensors1, list weights)
    lerp(list self, list tensors1, number weight)
    lerp(list self, list tensors1, numbers weight)
    pow(list self, list exponent)
    pow(list self, number exponent)
    pow(list self, numbers exponent)
    pow(number self, list exponent)
    norm(list self, number ord=2, any dtype=None)
    powsum(list self, number ord=2, any dtype=None)
    max(list self)
    mm(list self, list mat2)
    clone(list self, *, any memory_format=None)
    copy_(list self, list src, any non_blocking=False)
    zero_(list self)
"""
"""The ops by name; arguments of kind list have an item for each tensor of the first list."""

_WORDS: Final = {
    "list": "tuple of Tensors",
    "numbers": "tuple of Scalars",
    "number": "Number",
    "tensor": "Tensor",
    "vector": "Tensor",
    "any": "object",
}
_ONLY_OUT_OF_PLACE: Final = {"norm", "powsum", "max", "mm", "clone"}

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


def _read(line: str) -> tuple[str, _Schema]:
    name, _, inside = line.removesuffix(")").partition("(")
    arguments: list[_Argument] = []
    words: list[str] = []
    keyword = False
    for part in inside.split(", "):
        if part == "*":
            keyword = True
            words.append(part)
            continue
        kind, _, rest = part.partition(" ")
        argument, has_default, default = rest.partition("=")
        value = {"1": 1, "2": 2, "False": False}.get(default)
        arguments.append(_Argument(kind, argument, value, not has_default, keyword))
        words.append(f"{_WORDS[kind]} {argument}" + (f" = {default}" if has_default else ""))
    return name, _Schema(f"({', '.join(words)})", tuple(arguments))


def _parse_schemas() -> dict[str, list[_Schema]]:
    found: dict[str, list[_Schema]] = {}
    for line in [f"{name}(list self)" for name in _UNARY.split()] + _SCHEMAS.split("\n"):
        if line.strip():
            name, schema = _read(line.strip())
            found.setdefault(name, []).append(schema)
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


def _single(name: str, in_place: bool) -> Callable[..., Any]:
    """The op of a single tensor."""
    if not in_place:
        return _OWN.get(name) or _f[name]
    if name in ("maximum", "minimum"):
        out_of_place = _OWN[name]
        return lambda x, other: x.copy_(out_of_place(x, other))
    return _m[name.removesuffix("_") + "_"]


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


def _make(name: str, in_place: bool) -> Any:
    full = f"_foreach_{name.removesuffix('_')}" + ("_" if in_place else "")
    schemas = [s for s in _TABLE[name] if not in_place or s.arguments[0].kind == "list"]
    single = _single(name, in_place)

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


def _all() -> dict[str, Any]:
    made = {}
    for name in _TABLE:
        if not name.endswith("_"):
            made[f"_foreach_{name}"] = _make(name, False)
        if name not in _ONLY_OUT_OF_PLACE:
            found = _make(name, True)
            made[found.__name__] = found
    return made


__all__: list[str] = []
globals().update(_all())
__all__ += sorted(_all())
