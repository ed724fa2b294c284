"""Rules added to ops: functions for devices, gradients, vmap."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

from .. import ops
from .._dispatch.keys import KEYS as _ALL_KEYS
from .._ground.dtypes import device
from .._table.function_schema import FunctionSchema
from ..amp.autocast_mode import is_autocast_available
from ._entry import Entry, put
from ._registry import check_name, entry_of, entry_to_add_to, find_entry

KEYS: Final = {
    "cpu": "CPU",
    "cuda": "CUDA",
    "meta": "Meta",
    "default": "CompositeExplicitAutograd",
}


def types_of(types: str | Iterable[str]) -> tuple[str, ...]:
    return (types,) if isinstance(types, str) else tuple(types)


def key_of(kind: str) -> str:
    """The key of a type of devices; a key is returned unchanged.

    Raises: RuntimeError: it is neither.
    """
    if kind in KEYS or kind in _ALL_KEYS:
        return KEYS.get(kind, kind)
    return device(kind).type.upper()


_LOOKING_UP: Final = ("register_autograd", "register_vmap", "register_autocast")
"""The functions that find their op by the attributes of ``torch.ops``, and fail with its error."""


def _entry(op: Any, what: str) -> Entry:
    """The op to which `what` adds a rule.

    Raises:
        ValueError: neither an op nor an op's name. AttributeError: there is no such op.
    """
    if hasattr(op, "_entry"):
        found: Entry = op._entry
        return found
    if isinstance(op, ops.OpOverload):
        return entry_of(op.name())
    if not isinstance(op, str):
        raise ValueError(f"{what}({op}): got unexpected type for op: {type(op)}")
    check_name(op)
    if what in _LOOKING_UP and not ops.refused_libraries:
        ns, name, overload = ops.names_in(op)
        getattr(getattr(getattr(ops, ns), name), overload)  # raises PyTorch's error
    return entry_to_add_to(op)


def _owner_library(entry: Entry, lib: Any) -> Any:
    """The library whose end removes a rule; None for an op made by `custom_op`."""
    return None if entry.is_custom else lib


def decorator(
    add: Callable[[Callable[..., Any]], None], func: Callable[..., Any] | None = None
) -> Any:
    """A decorator that adds a function and returns it; or, given a function, adds that one."""

    def register(fn: Callable[..., Any]) -> Callable[..., Any]:
        add(fn)
        return fn

    return register if func is None else register(func)


def custom_of(op: Any, what: str) -> Entry | None:
    """The op to which `what` adds a rule, if `custom_op` made it, else None.

    Raises: ValueError: neither an op nor its name.
    """
    if isinstance(op, ops.OpOverload):
        op = op.name()
    if isinstance(op, str):
        check_name(op)
        found = find_entry(op)
    else:
        found = _entry(op, what)
    return found if found is not None and found.is_custom else None


def custom_kernel(
    entry: Entry, device_types: str | Sequence[str] | None, func: Callable[..., Any] | None = None
) -> Any:
    """Adds the function that an op made by `custom_op` runs on some types of devices; None: on
    all.
    """
    keys = [key_of(each) for each in types_of(device_types or "default")]

    def add(fn: Callable[..., Any]) -> None:
        for key in keys:
            put(entry, None, "kernels", fn, key)

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
    """Adds an op's function for tensors without elements, which makes results of the right shapes.

    Raises:
        RuntimeError: there is one already, which is not to be overridden; or the op is a
            composition of others, which make the shapes.
    """
    entry = _entry(op, "register_fake")
    if not (allow_override or entry.is_custom):
        _refuse_second_fake(entry)
    if set(entry.kernels) == {"CompositeImplicitAutograd"}:
        raise RuntimeError(
            f"We should not register a meta kernel directly to the operator '{entry.qualname}', "
            "because it has a CompositeImplicitAutograd kernel in core. Instead we should let the "
            "operator decompose, and ensure that we have meta kernels for the base ops that it "
            "decomposes into."
        )
    return decorator(lambda fn: put(entry, _owner_library(entry, lib), "fake", fn), func)


def _refuse_second_fake(entry: Entry) -> None:
    has = f"register_fake(...): the operator {entry.qualname} already has "
    if entry.fake is not None:
        raise RuntimeError(f"{has}a fake impl registered at {_place_of(entry.fake)}.")
    if "Meta" in entry.kernels:
        raise RuntimeError(
            f"{has}a DispatchKey::Meta implementation via a pre-existing torch.library or "
            "TORCH_LIBRARY registration. Please either remove that registration or don't call "
            "register_fake."
        )
    if "CompositeImplicitAutograd" in entry.kernels:
        raise RuntimeError(
            f"{has}an implementation for this device type via a pre-existing registration to "
            "DispatchKey::CompositeImplicitAutograd.CompositeImplicitAutograd operators do not "
            "need a fake impl; instead, the operator will decompose into its constituents and "
            "those can have fake impls defined on them."
        )


def _place_of(function: Callable[..., Any]) -> str:
    """The file and line of a function; its repr if it is not written in Python."""
    code = getattr(function, "__code__", None)
    return repr(function) if code is None else f"{code.co_filename}:{code.co_firstlineno}"


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
    entry = _entry(op, "register_autograd")
    if not _is_functional(entry.schema, views=entry.is_custom):
        name = entry.dotted_name
        shown = f"<CustomOpDef({entry.qualname})>" if entry.is_custom else name
        raise RuntimeError(
            f"Cannot register autograd formula for non-functional operator {shown} with schema "
            f"{entry.schema}. Please create a functional operator and register an autograd "
            "formula for that."
        )
    refuse_keyword_tensors("register_autograd", entry.schema)
    put(entry, _owner_library(entry, lib), "autograd", (backward, setup_context))


def _is_functional(schema: FunctionSchema, views: bool) -> bool:
    """Whether an op writes to no argument and returns something that is no view; with `views`, the
    result may be a view of the only tensor.
    """
    if schema.is_mutable or not schema.returns:
        return False
    if not any(each.alias_info is not None for each in schema.returns):
        return True
    sides = schema.arguments, schema.returns
    return views and all(sum(str(a.type) == "Tensor" for a in side) == 1 for side in sides)


def has_keyword_tensors(schema: FunctionSchema) -> bool:
    """Whether some tensor arguments are keyword-only."""
    return any(each.kwarg_only and "Tensor" in each.type.notation() for each in schema.arguments)


def refuse_keyword_tensors(what: str, schema: FunctionSchema) -> None:
    """Raises NotImplementedError for a schema with keyword-only tensor arguments."""
    if has_keyword_tensors(schema):
        raise NotImplementedError(
            f"{what} with kwarg-only Tensor args. In the original definition of the op, please "
            f"make your tensors not kwarg-only. Got: {schema}"
        )


def register_vmap(op: Any, func: Callable[..., Any] | None = None, /, *, lib: Any = None) -> Any:
    """Adds how vmap does an op: ``func(info, in_dims, *args)`` returns results and their dims.

    Raises: NotImplementedError: the op has tensors by keyword alone.
    """
    entry = _entry(op, "register_vmap")
    refuse_keyword_tensors("register_vmap", entry.schema)
    return decorator(lambda fn: put(entry, _owner_library(entry, lib), "vmap", fn), func)


def register_autocast(op: Any, device_type: str, cast_inputs: Any, /, *, lib: Any = None) -> None:
    """Sets the type to which autocast converts an op's arguments.

    Raises: RuntimeError: there is no such type of devices. ValueError: it has no autocast.
    """
    entry = _entry(op, "register_autocast")
    if not is_autocast_available(device(device_type).type):
        raise ValueError(f"Device type '{device_type}' does not support autocast.")
    if device_type == "cpu":
        put(entry, _owner_library(entry, lib), "autocast", cast_inputs)


def register_torch_dispatch(
    op: Any,
    torch_dispatch_class: Any,
    func: Callable[..., Any] | None = None,
    /,
    *,
    lib: Any = None,
) -> Any:
    """Adds an op's handler for a class with ``__torch_dispatch__``, of tensors or a mode:
    ``func(cls_or_mode, func, types, args, kwargs)``.

    Raises: RuntimeError: the op has a handler for the class.
    """
    entry = _entry(op, "register_torch_dispatch")

    def add(fn: Callable[..., Any]) -> None:
        if torch_dispatch_class in entry.by_class:
            raise RuntimeError(
                f"{torch_dispatch_class} already has a `__torch_dispatch__` rule registered for "
                f"{entry.qualname}"
            )
        put(entry, _owner_library(entry, lib), "by_class", fn, torch_dispatch_class)

    return decorator(add, func)
