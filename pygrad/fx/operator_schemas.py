"""Signatures of the callees of graphs, and arguments put in their order."""

from __future__ import annotations

import inspect
import numbers
import typing
from collections.abc import Callable
from typing import Any, NamedTuple

from ._names import is_from_torch, node_name


class ArgsKwargsPair(NamedTuple):
    """Positional and keyword arguments."""

    args: tuple[Any, ...]
    kwargs: dict[str, Any]


def get_signature_for_torch_op(op: Callable[..., Any], return_schemas: bool = False) -> Any:
    """The signatures of a function, in a list; None if they are not known."""
    try:
        found = [inspect.signature(op)]
    except (TypeError, ValueError):
        return (None, None) if return_schemas else None
    return (found, None) if return_schemas else found


def create_type_hint(x: Any) -> Any:
    """The type that lists and tuples of types represent.

    Example:
        >>> from pygrad.fx.operator_schemas import create_type_hint
        >>> create_type_hint([int, int])
        list[int]
    """
    if not isinstance(x, (list, tuple)):
        return x
    if not x:
        return list[Any] if isinstance(x, list) else tuple[Any, ...]
    base = next((t for t in x if all(issubclass(other, t) for other in x)), None)
    if base is None:
        return list[Any] if isinstance(x, list) else tuple[Any, ...]
    return list[base] if isinstance(x, list) else tuple[base, ...]  # type: ignore[valid-type]


def type_matches(signature_type: Any, argument_type: Any) -> bool:
    """Whether an argument of a type may be given where a signature asks for another."""
    origin = getattr(signature_type, "__origin__", signature_type)
    if signature_type is argument_type:
        return True
    if origin is typing.Union:
        return any(type_matches(c, argument_type) for c in typing.get_args(signature_type))
    if origin is list and argument_type in (int, float):
        (element,) = typing.get_args(signature_type)
        return issubclass(argument_type, element)
    if getattr(argument_type, "__origin__", None) in (list, tuple) and origin in (list, tuple):
        element = typing.get_args(signature_type)[:1]
        given = [t for t in typing.get_args(argument_type) if t is not ...]
        return not element or all(type_matches(element[0], t) for t in given)
    if signature_type is numbers.Number and argument_type in (int, float):
        return True
    if inspect.isclass(argument_type) and inspect.isclass(signature_type):
        return issubclass(argument_type, signature_type)
    return False


def _normalize_to_signature(
    signature: inspect.Signature, args: Any, kwargs: Any, only_kwargs: bool
) -> ArgsKwargsPair | None:
    """The arguments in the order of this signature; None if it has kinds of parameters that have no
    order.
    """
    kinds = {p.kind for p in signature.parameters.values()}
    if kinds - {inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY}:
        # a parameter named after a keyword of Python
        if any(p.name != "from" for p in signature.parameters.values()):
            return None
    bound = signature.bind(*args, **kwargs)
    bound.apply_defaults()
    given: list[Any] = []
    named: dict[str, Any] = {}
    for at, (name, value) in enumerate(bound.arguments.items()):
        if only_kwargs or at >= len(args):
            named[name] = value
        else:
            given.append(value)
    return ArgsKwargsPair(tuple(given), named)


def check_for_mutable_operation(
    target: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> None:
    """Raises `RuntimeError` for a function of ``torch`` that writes to one of its arguments."""
    if not is_from_torch(target):
        return
    name = node_name(target)
    if kwargs.get("out") is not None:
        name += ".out"
    elif not name.endswith("_") or name.endswith("__"):
        return
    raise RuntimeError(
        f"Tried to trace mutable operation aten::{name}. FX only supports functional code, so "
        "operations that mutate operands in-place (e.g. via `out` arguments) are not supported"
    )


def normalize_function(
    target: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any] | None = None,
    arg_types: tuple[Any, ...] | None = None,
    kwarg_types: dict[str, Any] | None = None,
    normalize_to_only_use_kwargs: bool = False,
) -> ArgsKwargsPair | None:
    """Arguments of a function as its signature orders them, defaults filled in.

    Returns:
        The pair of arguments; None where the signature is not known or does not fit.

    Example:
        >>> from pygrad.fx.operator_schemas import normalize_function
        >>> import pygrad.nn.functional as F
        >>> normalize_function(F.relu, ("x",), normalize_to_only_use_kwargs=True)
        ArgsKwargsPair(args=(), kwargs={'input': 'x', 'inplace': False})
    """
    for signature in get_signature_for_torch_op(target) or ():
        try:
            return _normalize_to_signature(
                signature, args, kwargs or {}, normalize_to_only_use_kwargs
            )
        except TypeError:
            continue
    return None


def normalize_module(
    root: Any,
    target: str,
    args: tuple[Any, ...],
    kwargs: dict[str, Any] | None = None,
    normalize_to_only_use_kwargs: bool = False,
) -> ArgsKwargsPair | None:
    """Arguments of a submodule, by its dotted name, as its ``forward`` orders them.

    Raises:
        RuntimeError: there is no such submodule.
    """
    try:
        module = root.get_submodule(target)
    except AttributeError as error:
        raise RuntimeError(
            f"Tried to normalize node with target {target} but root did not have that target!"
        ) from error
    signature = inspect.signature(module.forward)
    return _normalize_to_signature(signature, args, kwargs or {}, normalize_to_only_use_kwargs)


__all__ = [
    "ArgsKwargsPair",
    "check_for_mutable_operation",
    "create_type_hint",
    "get_signature_for_torch_op",
    "normalize_function",
    "normalize_module",
    "type_matches",
]
