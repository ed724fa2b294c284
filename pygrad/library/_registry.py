"""The ops of libraries, by name."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any, Final

from .. import ops
from .._dispatch import kernels
from .._dispatch.keys import DEVICES
from .._ground.warnings import once
from .._table.builtins import builtin
from .._table.function_schema import (
    FunctionSchema,
    check_types,
    native_lines,
    native_schema,
    parse_schema,
)
from ._arguments import native_rank, resolve_overload
from ._calls import call, run
from ._entry import Entry
from ._kernels import COMPOSITES


class _Packet(ops.OpOverloadPacket):
    """An op of a library."""

    _in_python = True

    def _row_of(self) -> tuple[int, int] | None:
        return None

    def __init__(self, ns: str, name: str) -> None:
        super().__init__(name)
        self.namespace = ns

    def _entries(self) -> dict[str, Entry]:
        return _entries.get((self.namespace, self.__name__), {})

    def overloads(self) -> list[str]:
        return list(self._entries())

    def _has(self, overload: str) -> bool:
        return overload in self._entries()

    def _schema_of(self, overload: str) -> FunctionSchema:
        return self._entries()[overload].schema

    def _is_composite(self, overload: str) -> bool:
        return set(self._entries()[overload].kernels) == {"CompositeImplicitAutograd"}

    def _has_kernel(self, overload: str, key: str) -> bool:
        entry = self._entries()[overload]
        if entry.is_custom and key in ("Autograd", "Meta"):
            return True
        if key == "Autograd" and entry.autograd is not None:
            return True
        return key in entry.kernels or (key == "Meta" and entry.fake is not None)

    def _tags_of(self, overload: str) -> list[Any]:
        return self._entries()[overload].tags

    def _run(self, overload: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
        return call(self._entries()[overload._overloadname], args, kwargs)

    def _run_any(self, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
        entries = self._entries()
        schemas = {name: entry.schema for name, entry in entries.items()}
        overload, values = resolve_overload(schemas, args, kwargs)
        return run(entries[overload], values)


_early: Final[dict[str, dict[str, Callable[..., Any]]]] = {}
"""Functions of ops that are not defined yet."""
_entries: Final[dict[tuple[str, str], dict[str, Entry]]] = {}


def make_entry(ns: str, schema: str, tags: Any = ()) -> Entry:
    """The op of a schema without a namespace.

    Raises: RuntimeError: there is such an op, or a type that no op has.
    """
    parsed = parse_schema(schema)
    check_types(parsed, schema)
    name = parsed.name.partition("::")[2] or parsed.name
    parsed.name = f"{ns}::{name}"
    entry = Entry(ns, parsed, list(tags) if isinstance(tags, (list, tuple, set)) else [tags])
    found = _entries.setdefault((ns, name), {})
    if entry.overload in found:
        raise RuntimeError(
            f"Tried to register an operator ({parsed}) with the same name and overload name "
            "multiple times. Each overload's schema should only be registered with a single call "
            "to def()."
        )
    early = _early.pop(entry.qualname, None)
    if early is not None:
        entry.kernels = early
    found[entry.overload] = entry
    ops.packets.setdefault((ns, name), _Packet(ns, name))
    return entry


def forget(entry: Entry) -> None:
    """Takes an op away."""
    found = _entries.get((entry.ns, entry.name), {})
    if found.get(entry.overload) is entry:
        del found[entry.overload]
        packet = ops.packets[entry.ns, entry.name]
        packet.__dict__.pop(entry.overload, None)
        if not found:
            ops.packets.pop((entry.ns, entry.name), None)


def find_entry(name: str) -> Entry | None:
    """The op with a name such as 'mine::scale' or 'mine::scale.out', or None."""
    ns, short, overload = ops.names_in(name)
    return _entries.get((ns, short), {}).get(overload)


def entry_of(name: str) -> Entry:
    """The op of a name.

    Raises: RuntimeError: there is no such op.
    """
    found = find_entry(name)
    if found is None:
        raise RuntimeError(f"operator {name} does not exist")
    return found


def kernels_of(name: str) -> dict[str, Callable[..., Any]]:
    """An op's functions by PyTorch's keys; the op may not be defined yet."""
    found = find_entry(name)
    return _early.setdefault(name, {}) if found is None else found.kernels


def put_native(lib: Any, name: str, key: str, fn: Callable[..., Any]) -> None:
    """Puts a function in the place of an op of PyTorch's, for tensors of a device.

    Raises: NotImplementedError: the key is no device, or the op is made of others.
    """
    if key not in DEVICES:
        raise NotImplementedError(
            f"Library.impl: {name} is one of PyTorch's own operators, for which pygrad takes "
            f"functions for CPU and Meta, and not for {key}"
        )
    _, short, overload = ops.names_in(name)
    if "composite" in native_lines()[short][overload][0]:
        raise NotImplementedError(
            f"Library.impl: {name} is made of other operators: pygrad takes functions for those"
        )
    if key not in ("CPU", "Meta"):
        return  # pygrad has no tensors for the key
    if once("overriding"):
        warnings.warn(
            "Warning only once for all operators,  other operators may also be overridden.\n"
            "  Overriding a previously registered kernel for the same operator and the same "
            f"dispatch key\n  operator: {native_schema(short, overload)}\n"
            f"  dispatch key: {key}",
            stacklevel=3,
        )
    lib._undo.append(kernels.put_kernel(name, key.lower(), fn))


@builtin
def exists(name: str) -> bool:
    """Whether there is an op with a name such as 'aten::add.Tensor'."""
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
    if not isinstance(packet, _Packet):
        schemas = {each: schemas[each] for each in sorted(schemas, key=native_rank)}
    return resolve_overload(schemas, args, kwargs)[0]


@builtin
def has_kernel(name: str, key: str) -> bool:
    """Whether an op has a function of its own for a key.

    Raises: RuntimeError: there is no such op.
    """
    op = ops.overload(*ops.names_in(name)[1:]) if is_native(name) else entry_of(name).op
    return bool(op.has_kernel_for_dispatch_key(key))


@builtin
def computes(name: str, key: str) -> bool:
    """Whether an op runs something for a device, be it a function for all devices."""
    return any(has_kernel(name, each) for each in (key, *COMPOSITES))


def is_native(name: str) -> bool:
    """Whether an op belongs to PyTorch."""
    ns, short, overload = ops.names_in(name)
    return ns == "aten" and overload in native_lines().get(short, ())


def check_name(qualname: str) -> None:
    """Raises ValueError if the name of an op is not one with a namespace."""
    if len(qualname.split("::")) != 2:
        raise ValueError(
            f'Expected `qualname` to be of the form "namespace::name", but got {qualname}. The '
            "qualname passed to the torch.library APIs must consist of a namespace and a name, "
            "e.g. aten::sin"
        )


def entry_to_add_to(name: str) -> Entry:
    """The op with a name, for adding a rule. Once a compiled library was refused, a missing op is
    assumed to belong to one, and the rule is dropped.

    Raises:
        NotImplementedError: it is one of PyTorch's. RuntimeError: there is no such op, and no
            library was refused.
    """
    try:
        return entry_of(name)
    except RuntimeError:
        ns, _, short = name.partition("::")
        if ns == "aten" and hasattr(ops.aten, short.partition(".")[0]):
            raise NotImplementedError(
                f"pygrad adds no functions to PyTorch's own operators, such as {name}: a "
                "TorchDispatchMode can answer in its place"
            ) from None
        if not ops.refused_libraries or ns == "aten":
            raise
        return Entry(ns, parse_schema(f"{ns}::{short}() -> Tensor"), ())
