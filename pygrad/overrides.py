"""torch.overrides: ``__torch_function__`` of classes, and modes, in place of pygrad's functions.

A class with a ``__torch_function__(func, types, args, kwargs)`` is asked whenever a function of the
package gets one of its values: subclasses of `Tensor`, and any other class as well. `func` is the
public function, so a dictionary can map functions to handlers.

Example:
    >>> import pygrad as torch
    >>> class Diagonal:
    ...     def __init__(self, value, n):
    ...         self.value, self.n = value, n
    ...     @classmethod
    ...     def __torch_function__(cls, func, types, args=(), kwargs=None):
    ...         return args[0].value / args[0].n if func is torch.mean else NotImplemented
    >>> torch.mean(Diagonal(6.0, 3))
    2.0
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import warnings
from collections.abc import Callable, Iterable, Iterator
from types import FunctionType
from typing import Any, Final, ParamSpec, TypeVar

from ._boundary import overriding
from ._boundary.overriding import state as _state
from ._ground.package import pygrad, submodule
from ._table import functions as _ops
from ._table.builtins import builtin
from ._table.schema import Signature
from ._tensor.subclassing import class_keeping_getters
from ._tensor.tensor import Tensor, is_asked

__all__ = [
    "enable_reentrant_dispatch",
    "get_ignored_functions",
    "get_overridable_functions",
    "get_testing_overrides",
    "handle_torch_function",
    "has_torch_function",
    "is_tensor_like",
    "is_tensor_method_or_property",
    "redispatch_function",
    "resolve_name",
    "wrap_torch_function",
]

_METHODS: Final = _ops.SPACES["method"]
_P = ParamSpec("_P")
_R = TypeVar("_R")


# ------------------------------------------------------------------ a user's own functions


@builtin
def has_torch_function(relevant_args: Iterable[Any], /) -> bool:
    """Whether a mode, or one of the values, must be asked about a call with these values.

    For functions of a user's own that others may override, before `handle_torch_function`.

    Example:
        >>> import pygrad as torch
        >>> torch.overrides.has_torch_function((torch.ones(1), 2))
        False
    """
    if not hasattr(relevant_args, "__iter__"):
        raise TypeError("expected a sequence")
    if _state.skip:
        _state.skip = False
        return False
    return overriding.has_modes() or (
        _state.off == overriding.ENABLED and any(map(overriding.is_overriding, relevant_args))
    )


@builtin
def has_torch_function_unary(obj: Any, /) -> bool:
    """`has_torch_function` of one value."""
    return has_torch_function((obj,))


@builtin
def has_torch_function_variadic(*args: Any) -> bool:
    """`has_torch_function` of the arguments."""
    return has_torch_function(args)


def _get_overloaded_args(
    relevant_args: Iterable[Any], get_type_fn: Callable[[Any], type] | None = None
) -> list[Any]:
    """The values that are asked, in the order in which they are."""
    if _state.off != overriding.ENABLED:
        return []
    return overriding.shallow_overloaded_values(relevant_args, get_type_fn or type)


def handle_torch_function(
    public_api: Callable[..., Any], relevant_args: Iterable[Any], *args: Any, **kwargs: Any
) -> Any:
    """Asks modes and values about a call of a function; returns the first answer other than
    NotImplemented.

    Args:
        public_api: the function that was called.
        relevant_args: the arguments that may be asked.
        args, kwargs: all of its arguments.

    Raises:
        TypeError: all return NotImplemented.

    Example:
        >>> import pygrad as torch
        >>> from pygrad.overrides import handle_torch_function, has_torch_function
        >>> class Quiet(torch.Tensor):
        ...     @classmethod
        ...     def __torch_function__(cls, func, types, args=(), kwargs=None):
        ...         return func.__name__
        >>> def twice(x):
        ...     if has_torch_function((x,)):
        ...         return handle_torch_function(twice, (x,), x)
        ...     return x + x
        >>> twice(torch.ones(1)), twice(torch.ones(1).as_subclass(Quiet))
        (tensor([2.]), 'twice')
    """
    found = _get_overloaded_args(relevant_args)
    result = overriding.ask(public_api, found, args, kwargs)
    if result is NotImplemented:
        name = f"{public_api.__module__}.{public_api.__name__}"
        raise overriding.no_implementation(name, found)
    return result


def wrap_torch_function(
    dispatcher: Callable[_P, Iterable[Any]],
) -> Callable[[Callable[_P, _R]], Callable[_P, _R]]:
    """A decorator for a function that arguments may override; `dispatcher`, called with all
    arguments, returns the relevant ones.

    Example:
        >>> import pygrad as torch
        >>> @torch.overrides.wrap_torch_function(lambda x: (x,))
        ... def half(x):
        ...     return x / 2
        >>> half(torch.ones(1))
        tensor([0.5000])
    """

    def wrap(func: Callable[_P, _R]) -> Callable[_P, _R]:
        @functools.wraps(func)
        def wrapper(*args: _P.args, **kwargs: _P.kwargs) -> Any:
            relevant = dispatcher(*args, **kwargs)
            if has_torch_function(relevant):
                return handle_torch_function(wrapper, relevant, *args, **kwargs)
            return func(*args, **kwargs)

        return wrapper

    return wrap


def redispatch_function(
    func: Callable[..., Any], types: Iterable[type], args: Any, kwargs: Any
) -> Any:
    """Calls a function itself from the ``__torch_function__`` that was asked about it; functions
    that it calls ask again.

    Example:
        >>> import pygrad as torch
        >>> class Loud(torch.Tensor):
        ...     @classmethod
        ...     def __torch_function__(cls, func, types, args=(), kwargs=None):
        ...         print(func.__name__)
        ...         return torch.overrides.redispatch_function(func, types, args, kwargs)
        >>> torch.ones(1).as_subclass(Loud) * 2
        mul
        tensor([2.])
    """
    kwargs = kwargs or {}
    ungated = overriding.ungated_function(func)
    if ungated is not None:
        if func.__name__ in _METHODS:  # the op has the Python method's name, and would ask again
            with overriding.DisableTorchFunction():
                return ungated(*args, **kwargs)
        return ungated(*args, **kwargs)
    _state.skip = True
    try:
        return func(*args, **kwargs)
    finally:
        _state.skip = False


def is_tensor_like(inp: Any) -> bool:
    """Whether a value is a tensor or has a ``__torch_function__``.

    Example:
        >>> import pygrad as torch
        >>> torch.overrides.is_tensor_like(torch.ones(1)), torch.overrides.is_tensor_like(1)
        (True, False)
    """
    return type(inp) is Tensor or hasattr(inp, "__torch_function__")


# ------------------------------------------------------------------ modes


class TorchFunctionMode:
    """A scope in which a method is called in the place of every function of the package, including
    functions that make tensors.

    Within the method the next outer mode is asked, or the function runs.

    Example:
        >>> import pygrad as torch
        >>> class Count(torch.overrides.TorchFunctionMode):
        ...     n = 0
        ...     def __torch_function__(self, func, types, args=(), kwargs=None):
        ...         self.n += 1
        ...         return func(*args, **(kwargs or {}))
        >>> with Count() as count:
        ...     x = torch.ones(2) * 3
        >>> count.n
        2
    """

    inner: TorchFunctionMode

    def __init__(self) -> None:
        pass

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        raise NotImplementedError

    def __enter__(self) -> Any:
        _push_mode(self)
        return self

    def __exit__(self, *error: object) -> None:
        _pop_mode()

    @classmethod
    def push(cls, *args: Any, **kwargs: Any) -> Any:
        """A mode, by an older way."""
        warnings.warn(
            "`Mode.push()` is no longer necessary and can be replaced with just `with Mode()`",
            stacklevel=2,
        )
        return cls(*args, **kwargs)


class BaseTorchFunctionMode(TorchFunctionMode):
    """A mode that calls every function unchanged."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return func(*args, **(kwargs or {}))


def _get_current_function_mode() -> Any:
    """The innermost mode, or None."""
    return _state.modes[-1] if _state.modes else None


def _get_current_function_mode_stack() -> list[Any]:
    """The modes, innermost last."""
    return list(_state.modes)


_push_mode = overriding.push_mode
_pop_mode = overriding.pop_mode


@contextlib.contextmanager
def _pop_mode_temporarily() -> Iterator[Any]:
    mode = _pop_mode()
    try:
        yield mode
    finally:
        _push_mode(mode)


@contextlib.contextmanager
def _enable_torch_function() -> Iterator[None]:
    """A scope in which types and modes are asked, even within a scope that disables them."""
    before, _state.off = _state.off, overriding.ENABLED
    try:
        yield
    finally:
        _state.off = before


@contextlib.contextmanager
def enable_reentrant_dispatch() -> Iterator[None]:
    """A scope within ``__torch_dispatch__`` in which ops are recorded as at the call's origin.
    (``__torch_dispatch__`` may always be called within one.)

    Example:
        >>> import pygrad
        >>> class Mode(pygrad.utils._python_dispatch.TorchDispatchMode):
        ...     def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        ...         with pygrad.overrides.enable_reentrant_dispatch():
        ...             print(pygrad.ones(1, requires_grad=True).exp().requires_grad)
        ...         return func(*args, **(kwargs or {}))
        >>> x = pygrad.ones(1)
        >>> with Mode():
        ...     _ = x.exp()
        True
    """
    recorded = _state.recorded
    with contextlib.nullcontext() if recorded is None else pygrad.set_grad_enabled(recorded):
        yield


# ------------------------------------------------------------------ lists of functions

_PLACES: Final = {
    "torch": "",
    "torch.functional": "functional",
    "torch.nn.functional": "nn.functional",
    "torch.nn.init": "nn.init",
    "torch.Tensor": "",
    "torch.linalg": "linalg",
    "torch.fft": "fft",
    "torch.special": "special",
}
"""PyTorch's names of places with overridable functions, and pygrad's places."""
_IGNORED: Final = (
    "as_strided fill normal rand_like randn_like randint_like result_type vander".split()
)
"""Functions with tensors as arguments that PyTorch does not test."""
_IGNORED_METHODS: Final = frozenset(
    "__delattr__ __delitem__ __dir__ __getattribute__ __hash__ __init__ __init_subclass__ __iter__ "
    "__new__ __setattr__ __str__ __subclasshook__ __torch_dispatch__ __torch_function__ "
    "as_subclass eig lstsq reinforce solve stride symeig to_padded_tensor unflatten".split()
)
"""Methods that PyTorch does not test, besides those that make tensors or sparse ones: most are of
every object, or have been removed.
"""


def _is_ignored_method(name: str) -> bool:
    return name in _IGNORED_METHODS or name.startswith(("new", "to_sparse_"))


def _members(place: str) -> Iterator[tuple[str, Any]]:
    """The public names of a place, with their objects."""
    if place == "torch.Tensor":
        names = {name for kind in Tensor.__mro__[:-1] for name in vars(kind)}
        for name in sorted(names):
            found = inspect.getattr_static(Tensor, name)
            if isinstance(found, (FunctionType, property, staticmethod, classmethod)):
                yield name, found if isinstance(found, property) else getattr(Tensor, name)
        return
    try:
        module = submodule(_PLACES[place]) if _PLACES[place] else pygrad
    except ModuleNotFoundError:
        return
    for name in getattr(module, "__all__", ()) or dir(module):
        found = getattr(module, name, None)
        if callable(found) and not isinstance(found, type):
            yield name, found


def _is_overridable(place: str, name: str, found: Any) -> bool:
    if place == "torch.Tensor":
        return not _is_ignored_method(name) and is_asked(name)
    if name.startswith("_") or name.endswith("_") or not name[0].islower():
        return False
    return name not in _IGNORED and _takes_tensors(found)


@functools.cache
def get_ignored_functions() -> set[Any]:
    """Public functions that do not ask, or have no tensors as arguments.

    Example:
        >>> import pygrad as torch
        >>> torch.Tensor.as_subclass in torch.overrides.get_ignored_functions()
        True
        >>> torch.add in torch.overrides.get_ignored_functions()
        False
    """
    ignored = set()
    for place in _PLACES:
        for name, found in _members(place):
            if place == "torch.Tensor":
                if _is_ignored_method(name):
                    ignored.add(found.__get__ if isinstance(found, property) else found)
            elif name in _IGNORED or not _takes_tensors(found):
                ignored.add(found)
    return ignored


_FUNCTIONS: Final = {
    getattr(functions[name], "__func__", functions[name]): (op, space, name)
    for op in _ops.TABLE
    for space, functions in _ops.SPACES.items()
    for name in op.names(space)
}
"""The op, namespace and name of each function of the table."""


def _takes_tensors(found: Any) -> bool:
    """Whether a function asks types about its arguments."""
    inner = getattr(found, "__func__", found)
    if inner in _FUNCTIONS:
        op, space, _ = _FUNCTIONS[inner]
        return any("Tensor" in schema.partition(" -> ")[0] for _, schema in op.rows_in(space))
    return inner in overriding.announced


@functools.cache
def _get_overridable_functions() -> tuple[dict[Any, list[Any]], dict[Any, str]]:
    """`get_overridable_functions`, and the name of each function."""
    by_place: dict[Any, list[Any]] = {}
    names: dict[Any, str] = {}
    for place in _PLACES:
        home: Any = Tensor if place == "torch.Tensor" else None
        for name, found in _members(place):
            if home is None:
                home = submodule(_PLACES[place]) if _PLACES[place] else pygrad
            if isinstance(found, property):
                names[found.__get__] = f"{place}.{name}.__get__"
                names[found.__set__] = f"{place}.{name}.__set__"
                if _is_overridable(place, name, found):
                    by_place.setdefault(found, []).append(found.__get__)
                continue
            names[found] = f"{place}.{name}"
            if _is_overridable(place, name, found):
                by_place.setdefault(home, []).append(found)
    return by_place, names


def get_overridable_functions() -> dict[Any, list[Any]]:
    """The functions that other types can override, by their modules; methods by the class, and the
    getters of attributes by these.

    Example:
        >>> import pygrad as torch
        >>> torch.add in torch.overrides.get_overridable_functions()[torch]
        True
    """
    return _get_overridable_functions()[0]


def resolve_name(f: Any) -> str | None:
    """The public name of a function that a ``__torch_function__`` got; None for a foreign function.

    Example:
        >>> import pygrad as torch
        >>> torch.overrides.resolve_name(torch.Tensor.grad.__get__)
        'torch.Tensor.grad.__get__'
    """
    return _get_overridable_functions()[1].get(f)


@functools.cache
def _get_tensor_methods() -> set[Any]:
    return set(get_overridable_functions()[Tensor])


def is_tensor_method_or_property(func: Callable[..., Any]) -> bool:
    """Whether a function that a ``__torch_function__`` got is a method of tensors, or the getter of
    an attribute: its first argument is a tensor.

    Example:
        >>> import pygrad as torch
        >>> from pygrad.overrides import is_tensor_method_or_property
        >>> is_tensor_method_or_property(torch.Tensor.add), is_tensor_method_or_property(torch.add)
        (True, False)
    """
    return func in _get_tensor_methods() or func.__name__ == "__get__"


def get_default_nowrap_functions() -> set[Any]:
    """Functions that return an existing tensor, which keeps its class.

    Example:
        >>> import pygrad as torch
        >>> torch.Tensor.grad.__get__ in torch.overrides.get_default_nowrap_functions()
        True
    """
    return set(class_keeping_getters())


@functools.cache
def get_testing_overrides() -> dict[Any, Callable[..., int]]:
    """A function that returns -1 for each that can be overridden, with the same parameters; for
    tests that types override all.

    Example:
        >>> import inspect
        >>> import pygrad as torch
        >>> inspect.signature(torch.overrides.get_testing_overrides()[torch.mm])
        <Signature (input, mat2, *, out=None)>
    """
    made = {}
    for functions in get_overridable_functions().values():
        for function in functions:
            made[function] = _testing_override(_parameters_of(function))
    return made


def _testing_override(signature: inspect.Signature) -> Callable[..., int]:
    def override(*args: Any, **kwargs: Any) -> int:
        return -1

    override.__signature__ = signature  # type: ignore[attr-defined]
    return override


def _parameters_of(function: Any) -> inspect.Signature:
    """The parameters of a function; of its first form if it has several."""
    inner = getattr(function, "__func__", function)
    if inner in _FUNCTIONS:
        op, space, name = _FUNCTIONS[inner]
        words, schema = op.rows_in(space)[0]
        method = space in _ops.METHODS
        has_out = "out" in words and not method and name == op.name
        found: inspect.Signature = Signature.from_schema(schema, method, has_out, bound=False)
    elif type(function) is overriding.WRAPPER:
        found = inspect.signature(lambda self: None)
    else:
        found = inspect.signature(function)
    plain = [each.replace(annotation=each.empty) for each in found.parameters.values()]
    return inspect.Signature(plain)
