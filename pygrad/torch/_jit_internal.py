"""Marks for TorchScript, which have no effect here, and queries about types."""

from __future__ import annotations

import builtins
import typing
import warnings
from collections.abc import Callable
from typing import Any, TypeVar, get_args, get_origin

from .._ground.package import submodule

__all__: list[str] = []

F = TypeVar("F", bound=Callable[..., Any])

Final = typing.Final
Await = Any


def __getattr__(name: str) -> Any:
    if name == "Future":
        return submodule("futures").Future
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


class FunctionModifiers:
    """Marks of a function and their texts."""

    UNUSED = "unused (ignored and replaced with raising of an exception)"
    IGNORE = "ignore (leave as a call to Python, cannot be torch.jit.save'd)"
    EXPORT = "export (compile this function even if nothing calls it)"
    DEFAULT = "default (compile if called from an exported function / forward)"
    COPY_TO_SCRIPT_WRAPPER = (
        "if this method is not scripted, copy the python method onto the scripted model"
    )
    _DROP = "_drop (function is fully ignored, declaration can be unscriptable)"


def _set_modifier(function: F, mark: str) -> F:
    function._torchscript_modifier = mark  # type: ignore[attr-defined]
    return function


def export(fn: F) -> F:
    """Marks a method to be compiled even if nothing calls it."""
    return _set_modifier(fn, FunctionModifiers.EXPORT)


def unused(fn: F) -> F:
    """Marks a function that compiled code does not call."""
    if isinstance(fn, property):
        for part in (fn.fget, fn.fset):
            if part is not None:
                _set_modifier(part, FunctionModifiers.UNUSED)
        return fn
    return _set_modifier(fn, FunctionModifiers.UNUSED)


def ignore(drop: Any = False, **kwargs: Any) -> Any:
    """Marks a function that is left to Python; with or without arguments.

    Raises:
        RuntimeError: the argument is no truth value.
    """
    if callable(drop):
        return _set_modifier(drop, FunctionModifiers.IGNORE)
    if not isinstance(drop, bool):
        raise RuntimeError(
            f"Argument to @torch.jit.ignore must be a bool or a function but got {drop}"
        )
    if "drop_on_export" in kwargs:
        warnings.warn(
            "ignore(drop_on_export=True) has been deprecated. TorchScript will now drop the "
            "function call on compilation. Use torch.jit.unused now. {}",
            FutureWarning,
            stacklevel=2,
        )
        drop = kwargs["drop_on_export"]
    mark = FunctionModifiers.UNUSED if drop else FunctionModifiers.IGNORE
    return lambda function: _set_modifier(function, mark)


def _drop(fn: F) -> F:
    return _set_modifier(fn, FunctionModifiers._DROP)


def _copy_to_script_wrapper(fn: F) -> F:
    return _set_modifier(fn, FunctionModifiers.COPY_TO_SCRIPT_WRAPPER)


def get_torchscript_modifier(fn: Any) -> Any:
    """The mark of a function; None for an object that cannot be called."""
    if not callable(fn):
        return None
    function = getattr(fn, "__func__", fn)
    return getattr(function, "_torchscript_modifier", FunctionModifiers.DEFAULT)


def copy_torchscript_modifier(orig: Any, new: Any) -> None:
    """Gives a function the mark of another."""
    mark = get_torchscript_modifier(orig)
    if mark is not None:
        new._torchscript_modifier = mark


def is_ignored_fn(fn: Any) -> bool:
    """Whether a mark excludes a function from compilation."""
    return get_torchscript_modifier(fn) in (
        FunctionModifiers.UNUSED,
        FunctionModifiers.IGNORE,
        FunctionModifiers._DROP,
    )


def should_drop(fn: Any) -> bool:
    """Whether a mark makes compiled code raise instead of calling a function."""
    return bool(get_torchscript_modifier(fn) == FunctionModifiers.UNUSED)


def is_scripting() -> bool:
    """Whether compiled code runs: never."""
    return False


# ------------------------------------------------------------------ overloads

_overloaded_fns: dict[str, list[Any]] = {}
_overloaded_methods: dict[str, dict[str, list[Any]]] = {}
boolean_dispatched: dict[Any, Any] = {}


def boolean_dispatch(
    arg_name: str,
    arg_index: int,
    default: bool,
    if_true: Callable[..., Any],
    if_false: Callable[..., Any],
    module_name: str,
    func_name: str,
) -> Callable[..., Any]:
    """A function that calls one of two, chosen by an argument.

    Example:
        >>> from pygrad._jit_internal import boolean_dispatch
        >>> pick = boolean_dispatch("up", 1, False, max, min, "here", "pick")
        >>> pick([1, 2])
        1
    """

    def dispatch(*args: Any, **kwargs: Any) -> Any:
        chosen = kwargs.get(arg_name, args[arg_index] if arg_index < len(args) else default)
        return (if_true if chosen else if_false)(*args, **kwargs)

    dispatch.__name__, dispatch.__module__ = func_name, module_name
    dispatch.__doc__ = if_true.__doc__ or if_false.__doc__
    boolean_dispatched[dispatch] = {
        "if_true": if_true,
        "if_false": if_false,
        "index": arg_index,
        "default": default,
        "arg_name": arg_name,
    }
    return dispatch


def _qualified_name(obj: Any, mangle_name: bool = True) -> str:
    """The name by which TorchScript knows an object."""
    if hasattr(obj, "_jit_override_qualname"):
        return str(obj._jit_override_qualname)
    name = obj.__name__
    module = obj.__module__
    return f"__torch__.{name}" if module == "__main__" else f"{module}.{name}"


def _overload(func: F) -> F:
    """Records an overload of a function."""
    _overloaded_fns.setdefault(_qualified_name(func), []).append(func)
    return func


def _overload_method(func: F) -> F:
    """Records an overload of a method."""
    names = _overloaded_methods.setdefault(_qualified_name(func), {})
    names.setdefault(func.__qualname__.rpartition(".")[0], []).append(func)
    return func


def _get_fn_overloads(qual_name: str) -> Any:
    return _overloaded_fns.get(qual_name)


def _clear_fn_overloads(qual_name: str) -> None:
    del _overloaded_fns[qual_name]


# ------------------------------------------------------------------ types


def is_tuple(ann: Any) -> bool:
    """Whether an annotation is of a tuple."""
    return get_origin(ann) is tuple


def is_list(ann: Any) -> bool:
    """Whether an annotation is of a list."""
    return get_origin(ann) is list


def is_dict(ann: Any) -> bool:
    """Whether an annotation is of a dict."""
    return get_origin(ann) is dict


def is_union(ann: Any) -> bool:
    """Whether an annotation is a union."""
    import types

    return ann is typing.Union or get_origin(ann) in (typing.Union, types.UnionType)


def is_optional(ann: Any) -> bool:
    """Whether an annotation is of a type or None."""
    return is_union(ann) and type(None) in get_args(ann) and len(get_args(ann)) == 2


def is_future(ann: Any) -> bool:
    """Whether an annotation is of a future."""
    future: object = submodule("futures").Future
    return (get_origin(ann) or ann) is future


def is_final(ann: Any) -> bool:
    """Whether an annotation is `Final`."""
    return ann is typing.Final or get_origin(ann) is typing.Final


def _is_exception(obj: Any) -> bool:
    return isinstance(obj, type) and issubclass(obj, builtins.Exception)


class BroadcastingListCls:
    """``BroadcastingList2[int]``: a list of two ints, or one int for both."""

    def __getitem__(self, types: Any) -> None:
        return None


BroadcastingList1 = BroadcastingList2 = BroadcastingList3 = BroadcastingListCls()
BroadcastingList4 = BroadcastingList5 = BroadcastingList6 = BroadcastingList1
