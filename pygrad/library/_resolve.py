"""Which overload of an op takes some arguments."""

from __future__ import annotations

from typing import Any

from .. import ops
from .._builtins import builtin
from ._arguments import resolved


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
    schemas = {each: packet._schema_of(each) for each in packet.overloads()} if packet else {}
    return resolved(schemas, args, kwargs)[0]
