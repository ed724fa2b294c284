"""Functions that become ops: `custom_op`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from .._table.function_schema import parse_schema
from ..ops import Tag
from . import _rules
from ._entry import Entry
from ._infer import infer_schema
from ._registry import _entries, forget, make_entry


def custom_op(
    name: str,
    fn: Callable[..., Any] | None = None,
    /,
    *,
    mutates_args: str | Iterable[str],
    device_types: str | Sequence[str] | None = None,
    schema: str | None = None,
    tags: Any = None,
) -> Any:
    """Makes an op of a function. Autograd, vmap and modes do not look inside the op.

    Args:
        name: with a namespace, "mine::scale". fn: with annotations, unless there is a schema; or
            this is a decorator. mutates_args: the names of arguments that it writes to.
        device_types: the types of devices on which it runs, None for all.
        schema: "(Tensor x) -> Tensor".

    Raises:
        ValueError: the name or an annotation is not allowed in a schema. NotImplementedError:
            tensors by keyword alone.
    """
    space, found, short = name.partition("::")
    if not found or not space or not short or "::" in short:
        raise ValueError(
            f"Invalid operator name {name}. Operators must have a namespace: 'namespace::name'."
        )

    def make(function: Callable[..., Any]) -> CustomOpDef:
        text = schema or infer_schema(function, mutates_args=mutates_args)
        made = CustomOpDef(space, short, text, function, tags)
        if schema is not None:
            told = {a.name for a in made._entry.schema.arguments if a.is_write}
            if mutates_args != "unknown" and told != set(mutates_args):
                forget(made._entry)
                raise ValueError(
                    f"Attempted to create a custom op with `mutates_args={mutates_args}` and "
                    f"`schema={schema}. The schema suggests that the op mutates {told} which is "
                    " different from what was provided to us in `mutates_args`. Please "
                    "make these consistent."
                )
        made.register_kernel(device_types)(function)
        return made

    return make if fn is None else make(fn)


class CustomOpDef:
    """An op made by `custom_op`: a function, with methods that add rules."""

    def __init__(
        self, namespace: str, name: str, schema: str, fn: Callable[..., Any], tags: Any = None
    ) -> None:
        self._namespace, self._name, self._schema, self._init_fn = namespace, name, schema, fn
        told = tags if isinstance(tags, (list, tuple)) else [tags] * (tags is not None)
        parsed = parse_schema(name + schema)
        if Tag.out not in told and _rules.has_keyword_tensors(parsed):  # type: ignore[attr-defined]
            raise NotImplementedError(
                "custom_op with kwarg-only Tensor args. Please make your tensors not kwarg-only. "
                f"Got: {name}{schema}"
            )
        for entry in list(_entries.get((namespace, name), {}).values()):
            if entry.is_custom:  # made anew, as in a notebook
                forget(entry)
        compiles = vars(Tag)["pt2_compliant_tag"]
        all_tags = sorted({compiles, *told}, key=int)
        self._entry: Entry = make_entry(namespace, name + schema, all_tags)
        self._entry.is_custom, self._entry.called = True, getattr(fn, "__name__", name)
        self.__name__, self.__doc__ = name, fn.__doc__

    @property
    def _qualname(self) -> str:
        return f"{self._namespace}::{self._name}"

    @property
    def _opoverload(self) -> Any:
        return self._entry.op

    @property
    def _abstract_fn(self) -> Any:
        return self._entry.fake

    @property
    def _backward_fn(self) -> Any:
        return self._entry.autograd and self._entry.autograd[0]

    def __repr__(self) -> str:
        return f"<CustomOpDef({self._qualname})>"

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._entry.op(*args, **kwargs)

    @contextmanager
    def set_kernel_enabled(self, device_type: str, enabled: bool = True) -> Iterator[None]:
        """A scope in which the function for a type of device is enabled or disabled."""
        key = _rules.KEYS.get(device_type, device_type.upper())
        was = set(self._entry.disabled)
        (self._entry.disabled.discard if enabled else self._entry.disabled.add)(key)
        try:
            yield
        finally:
            self._entry.disabled = was

    def register_kernel(self, device_types: Any, fn: Any = None, /) -> Any:
        """See `register_kernel`."""
        return _rules.custom_kernel(self._entry, device_types, fn)

    def register_fake(self, fn: Any, /) -> Any:
        """See `register_fake`."""
        return _rules.register_fake(self, fn)

    def register_autograd(self, backward: Any, /, *, setup_context: Any = None) -> None:
        """See `register_autograd`."""
        _rules.register_autograd(self, backward, setup_context=setup_context)

    def register_vmap(self, func: Any = None) -> Any:
        """See `register_vmap`."""
        return _rules.register_vmap(self, func)

    def register_torch_dispatch(self, torch_dispatch_class: Any, fn: Any = None, /) -> Any:
        """See `register_torch_dispatch`."""
        return _rules.register_torch_dispatch(self, torch_dispatch_class, fn)

    def register_autocast(self, device_type: str, cast_inputs: Any) -> None:
        """See `register_autocast`."""
        _rules.register_autocast(self, device_type, cast_inputs)
