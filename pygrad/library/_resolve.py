"""Which overload of an op takes some arguments."""

from __future__ import annotations

from typing import Any, Final

from .. import _dispatch, ops
from .._builtins import builtin
from .._function_schema import FunctionSchema


@builtin
def exists(name: str) -> bool:
    """Whether there is an op of a name such as 'aten::add.Tensor'."""
    ns, short, overload = ops.names_in(name)
    packet = getattr(getattr(ops, ns), short, None)
    return packet is not None and overload in packet.overloads()


@builtin
def resolve_packet(name: str, *args: Any, **kwargs: Any) -> str:
    """The name of the overload that a call of an op runs: `torch._C._jit_resolve_packet`.

    Raises: RuntimeError: none takes the arguments, and why.

    Example:
        >>> import pygrad.torch as torch
        >>> x = torch.ones(2)
        >>> torch._C._jit_resolve_packet("aten::sum", x)
        'default'
        >>> torch._C._jit_resolve_packet("aten::sum", x, dim=0)
        'dim_IntList'
    """
    ns, _, short = name.partition("::")
    packet = getattr(getattr(ops, ns), short, None)
    reasons = []
    for overload in sorted(packet.overloads(), key=_place) if packet is not None else ():
        reason = why_not(packet._schema_of(overload), args, kwargs)  # type: ignore[union-attr]
        if reason is None:
            return str(overload)
        reasons.append(reason)
    raise RuntimeError(
        "Overloaded torch operator invoked from Python failed to match any schema:\n"
        + "\n\n".join(reasons)
    )


def _place(overload: str) -> tuple[int, str]:
    """PyTorch asks overloads for tensors before those for numbers, and those that write last."""
    if overload.endswith("out"):
        return 3, overload
    return (0 if overload == "default" else 1 if overload.startswith("Tensor") else 2), overload


_NUMBERS: Final = frozenset(
    "add sub mul div multiply subtract divide true_divide floor_divide copy to _to_copy".split()
)
"""Ops that take numbers where the schema has tensors."""


def _base(schema: FunctionSchema) -> str:
    return schema.name.partition("::")[2].removesuffix("_")


def why_not(schema: FunctionSchema, args: Any, kwargs: dict[str, Any]) -> str | None:
    """Why a schema does not take some arguments, or None."""
    rest, end = dict(kwargs), f"Declaration: {schema}"
    by_place = [each for each in schema.arguments if not each.kwarg_only]
    if len(args) > len(by_place):
        return (
            f"{schema.name}() expected at most {len(by_place)} argument(s) but received "
            f"{len(args)} argument(s). {end}"
        )
    for i, argument in enumerate(schema.arguments):
        if i < len(args) and not argument.kwarg_only:
            value = args[i]
        elif argument.name in rest:
            value = rest.pop(argument.name)
        elif argument.has_default_value():
            continue
        else:
            return f"{schema.name}() is missing value for argument '{argument.name}'. {end}"
        number = argument.type.name == "Tensor" and isinstance(value, (int, float, complex))
        if (number and _base(schema) not in _NUMBERS) or not _dispatch.takes(argument, value):
            return (
                f"{schema.name}() Expected a value of type '{argument.type}' for argument "
                f"'{argument.name}' but instead found type '{type(value).__name__}'.\n"
                f"Position: {i}\nValue: {value!r:.200}\n{end}"
            )
    if rest:
        return f"Unknown keyword argument '{next(iter(rest))}' for operator '{schema.name}'. {end}"
    return None
