"""Questions about schemas and ops that libraries ask.

Example:
    >>> import pygrad as torch
    >>> from pygrad._library import utils
    >>> op = utils.lookup_op("aten::add_.Tensor")
    >>> utils.is_builtin(op), utils.is_functional_schema(op._schema)
    (True, False)
    >>> utils.mutates_and_returns_first_arg(op)
    True
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ... import ops
from ..._table.function_schema import Argument, FunctionSchema, SchemaType, parse_schema


def parse_namespace(qualname: str) -> tuple[str, str]:
    """The namespace and the name of 'mine::scale'.

    Raises: ValueError: it is no such name.
    """
    parts = qualname.split("::", 1)
    if len(parts) != 2:
        raise ValueError(
            f'Expected `qualname` to be of the form "namespace::name", but got {qualname}. The '
            "qualname passed to the torch.library APIs must consist of a namespace and a name."
        )
    return parts[0], parts[1]


def lookup_op(qualname: str) -> ops.OpOverload:
    """The op with a name such as 'aten::add.Tensor'.

    Raises: AttributeError: there is no such op.
    """
    ns, name = parse_namespace(qualname)
    short, _, overload = name.partition(".")
    found: ops.OpOverload = getattr(getattr(getattr(ops, ns), short), overload or "default")
    return found


def is_builtin(op: ops.OpOverload) -> bool:
    """Whether an op belongs to PyTorch."""
    return op.namespace in ("aten", "prim", "prims")


def is_functional_schema(schema: Any, *, allow_valid_view: bool = False) -> bool:
    """Whether an op writes to nothing and returns something that is no view.

    Args:
        allow_valid_view: it may be a view, of one tensor.

    Raises: RuntimeError: a text that is no schema.
    """
    if isinstance(schema, str):
        schema = parse_schema(schema)
    if schema.is_mutable or not schema.returns:
        return False
    if any(each.alias_info is not None and not each.alias_info.is_write for each in schema.returns):
        sides = (schema.arguments, schema.returns) if allow_valid_view else ()
        ones = [sum(each.type.kind() == "TensorType" for each in side) == 1 for side in sides]
        return allow_valid_view and all(ones)
    return True


def is_tensor_like_type(typ: SchemaType) -> bool:
    """Whether a type is Tensor or an optional Tensor."""
    inner = typ.getElementType() if typ.kind() == "OptionalType" else typ
    return inner.kind() == "TensorType"


def is_tensorlist_like_type(typ: SchemaType) -> bool:
    """Whether a type is a list of tensors, or an optional one."""
    inner = typ.getElementType() if typ.kind() == "OptionalType" else typ
    return inner.kind() == "ListType" and is_tensor_like_type(inner.getElementType())


def has_kwarg_only_args(schema: FunctionSchema) -> bool:
    """Whether some arguments are keyword-only."""
    return any(each.kwarg_only for each in schema.arguments)


def has_kwarg_only_tensors(schema: FunctionSchema) -> bool:
    """Whether some tensor arguments are keyword-only."""
    return any(each.kwarg_only and _has_tensors(each.type) for each in schema.arguments)


def _has_tensors(typ: SchemaType) -> bool:
    return is_tensor_like_type(typ) or is_tensorlist_like_type(typ)


def has_tensor_arg(schema: FunctionSchema) -> bool:
    """Whether an argument is a tensor or a list of tensors."""
    return any(_has_tensors(each.type) for each in schema.arguments)


def mutates_and_returns_first_arg(op: ops.OpOverload) -> bool:
    """Whether an op of PyTorch's writes to its first argument alone, and returns it."""
    schema = op._schema
    if op.namespace != "aten" or len(schema.returns) != 1 or not schema.arguments:
        return False
    first, *rest = [each.alias_info for each in schema.arguments]
    made = schema.returns[0].alias_info
    if made is None or first is None or not first.is_write or any(rest):
        return False
    return len(first.after_set) == 1 and first.after_set == made.after_set


def fill_defaults(
    schema: FunctionSchema, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Completes arguments with the schema's defaults for the missing ones."""
    by_place = [each for each in schema.arguments if not each.kwarg_only]
    return (
        (*args, *(each.default_value for each in by_place[len(args) :])),
        {
            each.name: kwargs.get(each.name, each.default_value)
            for each in schema.arguments
            if each.kwarg_only
        },
    )


def zip_schema(
    schema: FunctionSchema, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Iterator[tuple[Argument, Any]]:
    """Yields each given argument with its description in the schema."""
    for i, each in enumerate(schema.arguments):
        if not each.kwarg_only and i < len(args):
            yield each, args[i]
        elif each.name in kwargs:
            yield each, kwargs[each.name]
