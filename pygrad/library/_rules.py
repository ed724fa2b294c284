"""What is added to an op: its function for a device, its gradient, how vmap does it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

from .. import ops
from .._C._dispatch_keys import KEYS as _ALL_KEYS
from .._dtypes import device
from .._function_schema import FunctionSchema
from ._entry import Entry, put
from ._registry import entry_of, entry_to_add_to

KEYS: Final = {
    "cpu": "CPU",
    "cuda": "CUDA",
    "meta": "Meta",
    "default": "CompositeExplicitAutograd",
}


def types_of(types: str | Iterable[str]) -> tuple[str, ...]:
    return (types,) if isinstance(types, str) else tuple(types)


def key_of(kind: str) -> str:
    """The key of a type of devices, or of itself.

    Raises: RuntimeError: it is none.
    """
    if kind in KEYS or kind in _ALL_KEYS:
        return KEYS.get(kind, kind)
    return device(kind).type.upper()


def _entry(op: Any) -> Entry:
    if hasattr(op, "_entry"):
        found: Entry = op._entry
        return found
    if isinstance(op, ops.OpOverload):
        return entry_of(op.name())
    if not isinstance(op, str):
        raise ValueError(f"expected an op, or its name, and got {type(op)}")
    return entry_to_add_to(op)


def decorator(
    add: Callable[[Callable[..., Any]], None], func: Callable[..., Any] | None = None
) -> Any:
    """What adds a function and gives it back; or, if there is one already, the function added."""

    def register(fn: Callable[..., Any]) -> Callable[..., Any]:
        add(fn)
        return fn

    return register if func is None else register(func)


def register_kernel(
    op: Any,
    device_types: str | Sequence[str] | None,
    func: Callable[..., Any] | None = None,
    /,
    *,
    lib: Any = None,
) -> Any:
    """Adds what an op runs on some types of devices; None: on all."""
    entry = _entry(op)

    def add(fn: Callable[..., Any]) -> None:
        for each in ("default",) if device_types is None else types_of(device_types):
            put(entry, lib, "kernels", fn, KEYS.get(each, each.upper()))

    return decorator(add) if func is None else add(func)


def register_fake(
    op: Any,
    func: Callable[..., Any] | None = None,
    /,
    *,
    lib: Any = None,
    _stacklevel: int = 1,
    allow_override: bool = True,
) -> Any:
    """Adds what an op does on tensors without elements: it makes results of the right shapes.

    Raises:
        RuntimeError: there is one already, which is not to be overridden; or the op is a
            composition of others, which make the shapes.
    """
    entry = _entry(op)
    if entry.fake is not None and not allow_override:
        raise RuntimeError(
            f"register_fake(...): the operator {entry.qualname} already has an fake impl registered"
        )
    if set(entry.kernels) == {"CompositeImplicitAutograd"}:
        raise RuntimeError(
            f"We should not register a meta kernel directly to the operator '{entry.qualname}', "
            "because it has a CompositeImplicitAutograd kernel in core. Instead we should let the "
            "operator decompose, and ensure that we have meta kernels for the base ops that it "
            "decomposes into."
        )
    return decorator(lambda fn: put(entry, lib, "fake", fn), func)


def impl_abstract(
    qualname: Any,
    func: Callable[..., Any] | None = None,
    *,
    lib: Any = None,
    _stacklevel: int = 1,
) -> Any:
    """The older name of `register_fake`."""
    return register_fake(qualname, func, lib=lib)


def register_autograd(
    op: Any,
    backward: Callable[..., Any],
    /,
    *,
    setup_context: Callable[..., Any] | None = None,
    lib: Any = None,
) -> None:
    """Adds the gradient of an op.

    Args:
        backward: of the context and the gradients of the results; returns those of the arguments.
        setup_context: of the context, the arguments and the results; saves what backward needs.

    Raises:
        RuntimeError: the op writes to an argument that it returns. NotImplementedError: it has
            tensors by keyword alone.
    """
    entry = _entry(op)
    if any(each.alias_info is not None for each in entry.schema.returns):
        raise RuntimeError(
            f"Cannot register autograd formula for non-functional operator {entry.qualname} with "
            f"schema {entry.schema}. Please create a functional operator and register an autograd "
            "formula for that."
        )
    refuse_keyword_tensors("register_autograd", entry.schema)
    put(entry, lib, "autograd", (backward, setup_context))


def has_keyword_tensors(schema: FunctionSchema) -> bool:
    """Whether some tensors have no place."""
    return any(each.kwarg_only and "Tensor" in each.type.shown() for each in schema.arguments)


def refuse_keyword_tensors(what: str, schema: FunctionSchema) -> None:
    """Raises NotImplementedError for a schema with tensors that have no place."""
    if has_keyword_tensors(schema):
        raise NotImplementedError(
            f"{what} with kwarg-only Tensor args. In the original definition of the op, please "
            f"make your tensors not kwarg-only. Got: {schema}"
        )


def register_vmap(op: Any, func: Callable[..., Any] | None = None, /, *, lib: Any = None) -> Any:
    """Adds how vmap does an op: ``func(info, in_dims, *args)`` returns results and their dims.

    Raises: NotImplementedError: the op has tensors by keyword alone.
    """
    entry = _entry(op)
    refuse_keyword_tensors("register_vmap", entry.schema)
    return decorator(lambda fn: put(entry, lib, "vmap", fn), func)


def register_autocast(op: Any, device_type: str, cast_inputs: Any, /, *, lib: Any = None) -> None:
    """Says which type an op's arguments become under autocast."""
    if device_type not in ("cpu", "cuda"):
        raise ValueError(f"Unknown device type: {device_type}")
    if device_type == "cpu":
        put(_entry(op), lib, "autocast", cast_inputs)


def register_torch_dispatch(
    op: Any,
    torch_dispatch_class: Any,
    func: Callable[..., Any] | None = None,
    /,
    *,
    lib: Any = None,
) -> Any:
    """Adds what a class with ``__torch_dispatch__``, of tensors or a mode, does with an op:
    ``func(cls_or_mode, func, types, args, kwargs)``.
    """
    entry = _entry(op)
    return decorator(lambda fn: put(entry, lib, "by_class", fn, torch_dispatch_class), func)
