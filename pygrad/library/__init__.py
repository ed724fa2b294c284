"""Ops of a program's own, by names, schemas and rules, as PyTorch's `torch.library`.

An op made here is called like any of PyTorch's (``torch.ops.mine.scale(x)``), and other parts know
it: autograd by `register_autograd`, vmap by `register_vmap`, dispatch modes as an `OpOverload`.

Example:
    >>> import pygrad as torch
    >>> from pygrad.library import custom_op
    >>> @custom_op("mine::cube", mutates_args=())
    ... def cube(x: torch.Tensor) -> torch.Tensor:
    ...     return x.detach() ** 3
    >>> cube.register_autograd(
    ...     lambda ctx, g: g * 3 * ctx.saved_tensors[0] ** 2,
    ...     setup_context=lambda ctx, inputs, output: ctx.save_for_backward(inputs[0]),
    ... )
    >>> x = torch.tensor([2.0], requires_grad=True)
    >>> cube(x).backward()
    >>> x.grad, torch.ops.mine.cube.default._schema
    (tensor([12.]), mine::cube(Tensor x) -> Tensor)
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, Final
from weakref import finalize

from .. import ops as _ops
from .._dispatch.keys import KEYS as _KEYS
from .._dispatch.keys import DispatchKeySet as _DispatchKeySet
from ._check import opcheck
from ._custom import CustomOpDef, custom_op
from ._entry import put_rule
from ._get_kernel import get_kernel
from ._infer import infer_schema
from ._kernels import FakeContext, current_context
from ._registry import check_name, find_entry, forget, is_native, kernels_of, make_entry, put_native
from ._rules import (
    custom_kernel,
    custom_of,
    decorator,
    impl_abstract,
    key_of,
    register_autocast,
    register_autograd,
    register_fake,
    register_torch_dispatch,
    register_vmap,
    types_of,
)

__all__ = [
    "CustomOpDef",
    "Library",
    "custom_op",
    "define",
    "fallthrough_kernel",
    "get_ctx",
    "get_kernel",
    "impl",
    "impl_abstract",
    "infer_schema",
    "opcheck",
    "register_autocast",
    "register_autograd",
    "register_fake",
    "register_kernel",
    "register_torch_dispatch",
    "register_vmap",
    "triton_op",
    "wrap_triton",
]
_RESERVED: Final = {"prim"}
_BLOCKS: Final = {
    "DEF": "TORCH_LIBRARY",
    "FRAGMENT": "TORCH_LIBRARY_FRAGMENT",
    "IMPL": "TORCH_LIBRARY_IMPL",
}
"""Names of the kinds in PyTorch's messages."""


def fallthrough_kernel(*_: Any, **__: Any) -> Any:
    """A kernel for `Library.impl` that does nothing at its key."""
    raise NotImplementedError("fallthrough_kernel() should never be called.")


class Library:
    """Ops of one namespace and functions added to them, for as long as this object lives.

    Args:
        ns: the namespace. kind: "DEF" to define its ops, "FRAGMENT" to define more of them, "IMPL"
            to add functions to existing ops. dispatch_key: the default key of added functions.

    Raises: ValueError: the kind is none of these, or the namespace is reserved.
    """

    def __init__(self, ns: str, kind: str, dispatch_key: str = "") -> None:
        if kind not in ("IMPL", "DEF", "FRAGMENT"):
            raise ValueError(f"Unsupported kind: {kind}")
        if ns in _RESERVED and kind in ("DEF", "FRAGMENT"):
            raise ValueError(
                f"{ns} is a reserved namespace. Please try creating a library with another name."
            )
        _check_key(dispatch_key)
        if kind == "DEF" and ns in _defined:
            raise RuntimeError(
                "Only a single TORCH_LIBRARY can be used to register the namespace "
                f"{ns}; please put all of your definitions in a single TORCH_LIBRARY block.  If "
                "you were trying to specify implementations, consider using TORCH_LIBRARY_IMPL "
                "(which can be duplicated).  If you really intended to define operators for a "
                "single namespace in a distributed way, you can use TORCH_LIBRARY_FRAGMENT to "
                "explicitly indicate this."
            )
        self.ns, self.kind, self.dispatch_key = ns, kind, dispatch_key
        self._undo: list[Callable[[], None]] = []
        if kind == "DEF":
            _defined.add(ns)
            self._undo.append(partial(_defined.discard, ns))
        # Runs at exit too, while the modules still have their names; `__del__` might not.
        self._destroy = finalize(self, _undo_all, self._undo)

    def __repr__(self) -> str:
        return f"Library(kind={self.kind}, ns={self.ns}, dispatch_key={self.dispatch_key})>"

    def define(self, schema: str, alias_analysis: str = "", *, tags: Any = ()) -> str:
        """Makes an op of a schema, "name(Tensor x) -> Tensor"; returns its name.

        Raises: ValueError, RuntimeError: the schema is invalid, or the op exists already.
        """
        if alias_analysis not in ("", "FROM_SCHEMA", "CONSERVATIVE"):
            raise RuntimeError(f"Invalid alias_analysis type {alias_analysis}")
        if self.kind == "IMPL":
            raise RuntimeError(
                f'def("{schema.partition("(")[0]}"): Cannot define an operator inside of a '
                "TORCH_LIBRARY_IMPL block.  All def()s should be placed in the (unique) "
                "TORCH_LIBRARY block for their namespace."
            )
        entry = make_entry(self.ns, schema, tags)
        self._undo.append(lambda: forget(entry))
        return entry.name + (f".{entry.overload}" if entry.overload != "default" else "")

    def impl(
        self,
        op_name: Any,
        fn: Callable[..., Any],
        dispatch_key: str = "",
        *,
        with_keyset: bool = False,
        allow_override: bool = True,
    ) -> None:
        """Adds a function to an op, for a key such as "CPU", "Autograd", "Meta" or
        "CompositeImplicitAutograd". The op may be defined later, or be one of PyTorch's own: then
        the function runs in its place, below autograd, for "CPU" or "Meta".

        Raises:
            TypeError: `fn` is no function. RuntimeError: there is one already, which is not to be
            overridden; the op is of another namespace; there is no such key.
            NotImplementedError: another key of one of PyTorch's own.

        Example:
            >>> import pygrad as torch
            >>> from pygrad.library import Library
            >>> lib = Library("aten", "IMPL")
            >>> lib.impl("div.Tensor", lambda x, y: x * (1 / y), "CPU")
            >>> torch.tensor([1.0, 3.0]) / torch.tensor([2.0, 4.0])
            tensor([0.5000, 0.7500])
        """
        if not callable(fn):
            raise TypeError(
                f"Input function is required to be a callable but found type {type(fn)}"
            )
        key = dispatch_key or self.dispatch_key or "CompositeImplicitAutograd"
        _check_key(key)
        name = self._full(op_name)
        ns, _, short = name.partition("::")
        if ns != self.ns:
            raise RuntimeError(
                f'impl("{name}", ...): Explicitly provided namespace ({ns}) in operator name does '
                f"not match namespace of enclosing {_BLOCKS[self.kind]} block ({self.ns}).  Move "
                f"this definition to the {_BLOCKS[self.kind]} block corresponding to this "
                "namespace (and consider deleting the namespace from your schema string.)"
            )
        run = _with_keys(fn, key) if with_keyset else fn
        if is_native(name):
            put_native(self, name, key, run)
            return
        kernels = kernels_of(name)
        entry = find_entry(name)
        faked = key == "Meta" and entry is not None and entry.fake is not None
        if (key in kernels or faked) and not allow_override:
            raise RuntimeError(
                "This is not allowed since there's already a kernel registered from python "
                f"overriding {short}'s behavior for {key} dispatch key and {self.ns} namespace."
            )
        put_rule(kernels, key, run, self)

    def _register_fake(
        self,
        op_name: Any,
        fn: Callable[..., Any],
        _stacklevel: int = 1,
        *,
        allow_override: bool = True,
    ) -> None:
        register_fake(self._full(op_name), fn, lib=self, allow_override=allow_override)

    def _register_torch_dispatch_rule(
        self, op_name: Any, torch_dispatch_class: type, fn: Any
    ) -> None:
        register_torch_dispatch(self._full(op_name), torch_dispatch_class, fn, lib=self)

    def _full(self, op_name: Any) -> str:
        if isinstance(op_name, _ops.OpOverload):
            return op_name.name()
        return op_name if "::" in op_name else f"{self.ns}::{op_name}"


def _undo_all(steps: list[Callable[[], None]]) -> None:
    """Takes away all that a library defined and added."""
    while steps:
        steps.pop()()


def _check_key(key: str) -> None:
    if key not in _KEYS:
        raise RuntimeError(f"could not parse dispatch key: {key}")


def _with_keys(fn: Callable[..., Any], key: str) -> Callable[..., Any]:
    """A function that receives the key for which it runs as its first argument."""
    keys = _DispatchKeySet(key)
    return lambda *args, **kwargs: fn(keys, *args, **kwargs)


@contextmanager
def _scoped_library(*args: Any, **kwargs: Any) -> Iterator[Library]:
    library = Library(*args, **kwargs)
    try:
        yield library
    finally:
        library._destroy()


_defined: Final = {"aten", "prims"}
"""Namespaces that a library of kind DEF has."""
_kept: Final[list[Library]] = []


def _library(ns: str, lib: Library | None) -> Library:
    if lib is not None:
        return lib
    made = Library(ns, "FRAGMENT")
    _kept.append(made)
    return made


def define(
    qualname: Any,
    schema: str,
    *more: Any,
    lib: Library | None = None,
    tags: Any = (),
    **options: Any,
) -> Any:
    """Makes an op: ``define("mine::sin", "(Tensor x) -> Tensor")``.

    The older form, ``define(lib, "sin(Tensor x) -> Tensor")``, decorates the op's function; then
    `more` may have the schema's `alias_analysis`.

    Raises: ValueError: the name is invalid, or a schema.
    """
    if isinstance(qualname, Library):
        return decorator(lambda fn: qualname.impl(qualname.define(schema, *more, **options), fn))
    if options:
        raise TypeError(f"define() got an unexpected keyword argument {next(iter(options))!r}")
    if more:
        raise TypeError(f"define() takes 2 positional arguments but {2 + len(more)} were given")
    if not isinstance(qualname, str):
        raise ValueError(
            "define(qualname, schema): expected qualname to be instance of str, got "
            f"{type(qualname)}"
        )
    check_name(qualname)
    ns, _, name = qualname.partition("::")
    if not schema.lstrip().startswith("("):
        raise ValueError(
            f'define(qualname, schema, ...): expected schema to look like e.g. "(Tensor x) -> '
            f'Tensor" but got "{schema}"'
        )
    _library(ns, lib).define(name + schema, alias_analysis="", tags=tags)
    return None


def impl(
    qualname: Any,
    types: str | Sequence[str],
    func: Any = None,
    dispatch_key: str = "",
    *,
    lib: Library | None = None,
) -> Any:
    """Adds a function to an op for types of devices: "cpu", "default" (all), or PyTorch's keys.

    The older form, ``impl(lib, "sin", "CPU")``, names a library, an op and a key, and decorates the
    function.

    Raises: RuntimeError: there is no such type of devices.
    """
    if isinstance(qualname, Library):
        return decorator(lambda fn: qualname.impl(types, fn, dispatch_key or func or ""))

    keys = [key_of(each) for each in types_of(types)]

    def add(fn: Callable[..., Any]) -> None:
        library = _library(qualname.partition("::")[0], lib)
        for key in keys:
            library.impl(qualname, fn, key)

    return decorator(add) if func is None else add(func)


def register_kernel(
    op: Any,
    device_types: str | Sequence[str] | None,
    func: Callable[..., Any] | None = None,
    /,
    *,
    lib: Library | None = None,
) -> Any:
    """Adds the function that an op runs on some types of devices; None: on all. The op may be
    defined later.

    Raises:
        ValueError: neither an op nor its name. RuntimeError: there is no such type of devices.
    """
    custom = custom_of(op, "register_kernel")
    if custom is not None:
        return custom_kernel(custom, device_types, func)
    name = op.name() if isinstance(op, _ops.OpOverload) else op
    return impl(name, "default" if device_types is None else device_types, func, lib=lib)


def get_ctx() -> FakeContext:
    """The context of the running fake function, which makes sizes that depend on data.

    Raises: RuntimeError: no fake function is running.
    """
    return current_context()


def triton_op(*_: Any, **__: Any) -> Any:
    """Raises NotImplementedError: Triton compiles for accelerators, and there is no accelerator."""
    raise NotImplementedError(
        "torch.library.triton_op: Triton compiles for accelerators; make the op with custom_op"
    )


def wrap_triton(*_: Any, **__: Any) -> Any:
    """Raises NotImplementedError, as `triton_op` does."""
    raise NotImplementedError("torch.library.wrap_triton: Triton compiles for accelerators")
