"""The record of one overload of a library's op."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from .. import ops
from .._dispatch.handlers import put_over
from .._table.function_schema import FunctionSchema


class Entry:
    """One overload of an op of a library.

    Attributes:
        kernels: its functions by PyTorch's keys. autograd: backward and setup_context. fake, vmap,
            autocast: other rules. by_class: handlers of classes with __torch_dispatch__.
        called: the name of a custom op's function. refusal: the error without a function.
    """

    def __init__(self, ns: str, schema: FunctionSchema, tags: Sequence[Any]) -> None:
        self.ns, self.schema, self.tags = ns, schema, list(tags)
        self.name, self.overload = schema.name.partition("::")[2], schema.overload_name or "default"
        self.kernels: dict[str, Callable[..., Any]] = {}
        self.autograd: tuple[Callable[..., Any], Callable[..., Any] | None] | None = None
        self.fake: Callable[..., Any] | None = None
        self.vmap: Callable[..., Any] | None = None
        self.autocast: Any = None
        self.by_class: dict[Any, Callable[..., Any]] = {}
        self.is_custom, self.called = False, ""
        self.function: Any = None
        self.disabled: set[str] = set()
        self.refusal: Callable[[str], str] | None = None

    @property
    def qualname(self) -> str:
        """'mine::scale', with the overload if it has a name."""
        full = f"{self.ns}::{self.name}"
        return full if self.overload == "default" else f"{full}.{self.overload}"

    @property
    def dotted_name(self) -> str:
        """'mine.scale.default', by which PyTorch's texts and profiles name an OpOverload."""
        return f"{self.ns}.{self.name}.{self.overload}"

    @property
    def op(self) -> Any:
        """The OpOverload."""
        return getattr(getattr(getattr(ops, self.ns), self.name), self.overload)


def put(entry: Entry, lib: Any, rule: str, value: Any, key: Any = None) -> None:
    """Sets a rule of an op, under a key if the rule has several, until the library, if given, is
    destroyed.
    """
    if key is None:
        put_rule(vars(entry), rule, value, lib)
    else:
        put_rule(getattr(entry, rule), key, value, lib)


def put_rule(rules: dict[str, Any], name: str, value: Any, lib: Any) -> None:
    """Sets a rule until the library, if given, is destroyed."""
    if lib is None:
        rules[name] = value
    else:
        lib._undo.append(put_over(rules, name, value))
