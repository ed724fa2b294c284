"""Schemas made of annotated functions."""

from __future__ import annotations

import collections.abc
import inspect
import types
import typing
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final

from .._ground.dtypes import device, dtype, layout, memory_format
from .._tensor.tensor import Tensor

_BY_KEYWORD: Final = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
_PLAIN: Final[dict[Any, str]] = {
    Tensor: "Tensor",
    int: "SymInt",
    float: "float",
    bool: "bool",
    str: "str",
    complex: "complex",
    dtype: "ScalarType",
    device: "Device",
    layout: "Layout",
    memory_format: "MemoryFormat",
}
SUPPORTED_RETURN_TYPES: Final[dict[Any, str]] = {
    Tensor: "Tensor",
    typing.List[Tensor]: "Tensor[]",  # noqa: UP006
    list[Tensor]: "Tensor[]",
    int: "SymInt",
    float: "float",
    bool: "bool",
    int | float | bool: "Scalar",
}
"""The types that an op may return, with their names in schemas."""


def tuple_to_list(tuple_type: Any) -> Any:
    """The type of lists that may replace a type of tuples.

    Example:
        >>> from pygrad.library._infer import tuple_to_list
        >>> tuple_to_list(tuple[int, int])
        typing.List[int]
    """
    kinds = [each for each in typing.get_args(tuple_type) if each is not Ellipsis]
    if not kinds:
        return list if tuple_type is tuple else typing.List  # noqa: UP006
    any_of: Any = typing.Union[tuple(kinds)]  # noqa: UP007
    lists: Any = typing.List  # noqa: UP006
    return lists[any_of]


_SEQUENCES: Final = (list, collections.abc.Sequence)
_UNIONS: Final = (typing.Union, types.UnionType)


def _name(kind: Any) -> str | None:
    """The schema's name of a type, or None."""
    if kind in (int | float | bool, int | float, int | float | complex | bool):
        return "Scalar"
    if isinstance(kind, collections.abc.Hashable) and kind in _PLAIN:
        return _PLAIN[kind]
    origin, args = typing.get_origin(kind), typing.get_args(kind)
    if origin in _UNIONS and type(None) in args:
        rest = [each for each in args if each is not type(None)]
        inner = _name(rest[0] if len(rest) == 1 else typing.Union[tuple(rest)])  # noqa: UP007
        return None if inner is None or inner.endswith("?") else f"{inner}?"
    if origin in _UNIONS and set(args) <= {int, float, bool, complex}:
        return "Scalar"
    if origin in _SEQUENCES and len(args) == 1:
        inner = _name(args[0])
        return f"{inner}[]" if inner in ("Tensor?", "Scalar") or inner in _LISTED else None
    return None


_LISTED: Final = ("Tensor", "SymInt", "float", "bool", "str", "complex")
"""The types of list elements in schemas."""


def _types() -> Iterator[tuple[Any, str]]:
    number: Any = int | float | bool
    for base in (Tensor, int, float, bool, str, number, dtype, device):
        kinds = [base, typing.Optional[base]]  # noqa: UP045
        for sequence in (typing.Sequence, typing.List, collections.abc.Sequence, list):  # noqa: UP006
            if base in (Tensor, int, float, bool, number):
                kinds.append(sequence[base])
            if base is Tensor:
                kinds.append(sequence[typing.Optional[base]])  # noqa: UP045
            if base in (int, float, bool):
                kinds.append(typing.Optional[sequence[base]])  # noqa: UP045
        for kind in kinds:
            yield kind, _name(kind) or ""


SUPPORTED_PARAM_TYPES: Final[dict[Any, str]] = dict(_types())
"""The types of PyTorch's that an argument may have, and how a schema calls them."""


def _return_type(kind: Any) -> str:
    """The name that a schema has for the type of a result.

    Raises: ValueError: no schema has it.
    """
    if kind is None or kind is type(None):
        return "()"
    origin, args = typing.get_origin(kind), typing.get_args(kind)
    if origin is tuple:
        if args == ((),) or not args or Ellipsis in args:
            raise ValueError(
                f"infer_schema(func): Return has unsupported type {kind}: its length must be known."
            )
        return f"({', '.join(_one_return_type(each) for each in args)})"
    return _one_return_type(kind)


_RETURNED: Final = ("Tensor", "SymInt", "float", "bool", "Scalar", "Tensor[]")


def _one_return_type(kind: Any) -> str:
    name = _name(kind)
    if name in _RETURNED:
        return name
    raise ValueError(
        f"infer_schema(func): Return has unsupported type {kind}. The valid types are: {_RETURNED}."
    )


def _format_default(default: Any, name: str) -> str:
    if default is None or isinstance(default, (bool, int, float)):
        return str(default)
    if isinstance(default, (str, device)):
        return f'"{default}"'
    if isinstance(default, dtype):
        return f'"{default}"'.replace('"', "").rpartition(".")[2]
    raise ValueError(
        f"infer_schema(func): Parameter {name} has an unsupported default value type "
        f"{type(default)}. Please file an issue on GitHub so we can prioritize this."
    )


def infer_schema(
    prototype_function: Callable[..., Any],
    /,
    *,
    mutates_args: Iterable[str] | str = (),
    op_name: str | None = None,
    tags: Any = (),
) -> str:
    """The schema that a function's annotations describe.

    Args:
        mutates_args: the names of arguments that are written to; "unknown": all tensors may be.
        op_name: put before the schema.
        tags: a tag or several; `Tag.inplace` and `Tag.out`, which mark arguments, are refused.

    Raises: ValueError: an annotation is absent, or of a type that no schema has.

    Example:
        >>> import pygrad as torch
        >>> from pygrad.library import infer_schema
        >>> def f(x: torch.Tensor, by: float = 1.0) -> torch.Tensor: ...
        >>> infer_schema(f, mutates_args={})
        '(Tensor x, float by=1.0) -> Tensor'
    """
    given = tags if isinstance(tags, (tuple, list, set)) else [tags]
    if any(str(tag).rpartition(".")[2] in ("inplace", "out") for tag in given):
        raise NotImplementedError("infer_schema: tags=Tag.inplace and tags=Tag.out")
    signature = inspect.signature(prototype_function)
    try:
        hints = typing.get_type_hints(prototype_function)
    except NameError:
        hints = {}
    written = mutates_args if mutates_args == "unknown" else set(mutates_args)
    seen, parts, star = set(), [], False
    for i, (name, parameter) in enumerate(signature.parameters.items()):
        if parameter.kind not in _BY_KEYWORD:
            raise ValueError(
                "infer_schema(func): We do not support positional-only args, varargs, or "
                f"varkwargs. Got func with signature {signature})"
            )
        if parameter.kind is inspect.Parameter.KEYWORD_ONLY and not star:
            parts.append("*")
            star = True
        kind = hints.get(name, parameter.annotation)
        if kind is inspect.Parameter.empty:
            raise ValueError(
                f"infer_schema(func): Parameter {name} must have a type annotation. Got func with "
                f"signature {signature})"
            )
        shown = _name(kind)
        if shown is None:
            hint = ""
            if typing.get_origin(kind) is tuple:
                instead = tuple_to_list(kind)
                hint = (
                    "We do not support Tuple inputs in schema. As a workaround, please try to use "
                    "List instead. "
                )
                if _name(instead) is not None:
                    hint += f"For example, {instead}.\n\n"
            raise ValueError(
                f"infer_schema(func): Parameter {name} has unsupported type {kind}. {hint}The "
                f"valid types are: {sorted(set(_PLAIN.values()))}. Got func with signature "
                f"{signature})"
            )
        seen.add(name)
        if isinstance(mutates_args, str) and written != "unknown":
            raise ValueError(
                "mutates_args must either be a sequence of the names of the arguments that are "
                "mutated or the string 'unknown'. "
            )
        writes = shown.startswith("Tensor") if written == "unknown" else name in written
        if writes:
            if not shown.startswith("Tensor"):
                raise ValueError(
                    f"infer_schema(func): Parameter {name} is in mutable_args but only Tensors or "
                    "collections of Tensors can be mutated"
                )
            shown = f"Tensor(a{i}!){shown.removeprefix('Tensor')}"
        if parameter.default is not inspect.Parameter.empty:
            parts.append(f"{shown} {name}={_format_default(parameter.default, name)}")
        else:
            parts.append(f"{shown} {name}")
    if written != "unknown" and not set(written) <= seen:
        raise ValueError(
            f"infer_schema(func): {set(written) - seen} in mutates_args were not found in "
            "the custom op's signature. mutates_args should contain the names of all args that the "
            "custom op mutates, or just the string 'unknown' if you don't know."
        )
    found = hints.get("return", signature.return_annotation)
    if found is inspect.Signature.empty:
        raise ValueError(
            "infer_schema(func): No return type annotation was provided. Please add one. Got func "
            f"with signature {signature})"
        )
    return f"{op_name or ''}({', '.join(parts)}) -> {_return_type(found)}"
