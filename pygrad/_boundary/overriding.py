"""``__torch_function__``: which arguments override a call. Free until the first such type.

A type overrides if it has a ``__torch_function__`` other than `disabled`; `arguments.kind_of` finds
that out once a type, when a call first meets it. Values of such types have a kind of their own, so
the quick ways of calls leave them to the slow one, which asks here. Functions written in Python are
not touched until the first such type or the first mode exists: then `arm` puts a gate in front of
each function that was announced (`overridable`). The function object stays, because users have
registered it.
"""

from __future__ import annotations

import functools
import inspect
import sys
import threading
import warnings
from collections.abc import Callable, Iterable, Sequence
from types import FunctionType, MethodType
from typing import Any, Final, TypeVar

from . import arguments
from .arguments import K_INDEX, K_LIST, K_OVERRIDING, kind_of
from .release import user_level
from .table import rows

F = TypeVar("F", bound=Callable[..., Any])

ENABLED, SUBCLASSES_OFF, ALL_OFF = range(3)


class _State(threading.local):
    """The overrides that a thread has switched off, and its modes, innermost last.

    Attributes:
        skip: whether the next Python function passes its gate without asking.
        recorded: whether the call that ``__torch_dispatch__`` handles is recorded; None outside
            such a call.
    """

    off = ENABLED
    skip = False
    recorded: bool | None = None

    def __init__(self) -> None:
        self.modes: list[Any] = []


state: Final = _State()
_ROOT: Final = __name__.partition(".")[0]


def _run_disabled(self: Any, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
    with DisableTorchFunctionSubclass():
        return func(*args, **(kwargs or {}))


class _Switch:
    """A scope in which a thread's types, and optionally its modes, are not asked."""

    _off = ENABLED

    def __enter__(self) -> None:
        self._before = state.off
        state.off = max(self._off, self._before)

    def __exit__(self, *_: object) -> None:
        state.off = self._before


class DisableTorchFunctionSubclass(_Switch):
    """A scope in which no type's ``__torch_function__`` is asked; modes are."""

    _off = SUBCLASSES_OFF


class DisableTorchFunction(_Switch):
    """A scope in which neither types nor modes are asked."""

    _off = ALL_OFF


modes_anywhere = False
"""True while any thread has a mode."""
on_modes: Callable[[], None] = lambda: None  # noqa: E731
"""Called when `modes_anywhere` changes."""
_with_modes: Final[list[None]] = []
_counting: Final = threading.RLock()


def push_mode(mode: Any) -> None:
    """Makes a mode the first one that calls of this thread ask."""
    global modes_anywhere
    arm()
    state.modes.append(mode)
    with _counting:
        _with_modes.append(None)
        if not modes_anywhere:
            modes_anywhere = True
            on_modes()


def pop_mode() -> Any:
    """Removes and returns the innermost mode.

    Raises:
        RuntimeError: there is no mode.
    """
    global modes_anywhere
    if not state.modes:
        raise RuntimeError("trying to pop from empty mode stack")
    mode = state.modes.pop()
    with _counting:
        _with_modes.pop()
        if not _with_modes:
            modes_anywhere = False
            on_modes()
    return mode


# ------------------------------------------------------------------ values to ask


def has_modes() -> bool:
    """Whether this thread has a mode to ask."""
    return bool(state.modes) and state.off != ALL_OFF


def is_overriding(value: Any) -> bool:
    """Whether a value's type overrides; also for a type seen for the first time."""
    return kind_of(value) == K_OVERRIDING


def overloaded_values(values: Iterable[Any]) -> list[Any]:
    """The values to ask, out of `values` and the lists among them: one a type, from left to right,
    subclasses before their bases.
    """
    found: list[Any] = []
    for value in values:
        kind = kind_of(value)
        if kind < K_LIST:
            _PLAIN.add(type(value))
        elif kind == K_OVERRIDING:
            _insert(value, found, type)
        elif kind == K_LIST:
            for each in value:
                if kind_of(each) == K_OVERRIDING:
                    _insert(each, found, type)
        elif kind == K_INDEX:
            for each in value.keep:
                if kind_of(each) == K_OVERRIDING:
                    _insert(each, found, type)
    return found


def shallow_overloaded_values(
    values: Iterable[Any], kind_of: Callable[[Any], type] = type
) -> list[Any]:
    """Like `overloaded_values`, for functions written in Python: looks at the values alone, and
    includes plain tensors, which have a ``__torch_function__`` too.
    """
    found: list[Any] = []
    for value in values:
        kind = kind_of(value)
        if getattr(kind, "__torch_function__", disabled) is not disabled:
            _insert(value, found, kind_of)
    return found


def _insert(value: Any, found: list[Any], kind_of: Callable[[Any], type]) -> None:
    kind = kind_of(value)
    if any(kind_of(other) is kind for other in found):
        return
    at = next((i for i, each in enumerate(found) if issubclass(kind, kind_of(each))), len(found))
    found.insert(at, value)


def asks(args: Sequence[Any], kwargs: dict[str, Any]) -> tuple[bool, Sequence[Any]]:
    """Whether a call must ask types or a mode, and the values to ask."""
    found = overloaded_args(args, kwargs)
    return bool(found or (modes_anywhere and has_modes())), found


def overloaded_args(args: Sequence[Any], kwargs: dict[str, Any] | None = None) -> list[Any]:
    """The `overloaded_values` of a call; empty if this thread has switched types off."""
    if state.off != ENABLED:
        return []
    return overloaded_values((*args, *kwargs.values()) if kwargs else args)


# ------------------------------------------------------------------ functions for handlers


class _Public:
    """A function as users know it.

    Attributes:
        function: the public object. name: its name in errors. native: whether PyTorch has it in
        C++, which affects the form of arguments and errors. method: only a method of tensors.
        operator: on failure Python asks the other operand.
    """

    __slots__ = ("function", "method", "name", "native", "operator", "parameters")

    def __init__(
        self, function: Any, name: str, native: bool, method: bool = False, operator: bool = False
    ) -> None:
        self.function, self.name, self.native, self.method = function, name, native, method
        self.operator = operator
        self.parameters = None if native else _parameters(function)

    def arguments(
        self, args: Sequence[Any], kwargs: dict[str, Any]
    ) -> tuple[tuple[Any, ...], dict[str, Any] | None]:
        """The arguments as PyTorch passes them on: parameters with a default of a Python function
        go by name.
        """
        if self.native:
            return tuple(args), kwargs or None
        if self.parameters is None:
            return tuple(args), kwargs
        try:
            bound = self.parameters.bind(*args, **kwargs)
        except TypeError:  # the function has more forms than one
            return tuple(args), kwargs
        bound.apply_defaults()
        first, rest = [], {}
        for name, value in bound.arguments.items():
            parameter = self.parameters.parameters[name]
            if parameter.default is parameter.empty and parameter.kind < parameter.VAR_POSITIONAL:
                first.append(value)
            else:
                rest[name] = value
        return tuple(first), rest


def _parameters(function: Any) -> inspect.Signature | None:
    try:
        found = inspect.signature(function)
    except (TypeError, ValueError):
        return None
    variable = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    if any(each.kind in variable for each in found.parameters.values()):
        return None
    return found


NAMES: Final[dict[Any, str]] = {}
"""Names of functions that stand for another method of the class Tensor, such as operators."""
_PREFIXED: Final = {"linalg": "linalg_", "special": "special_", "fft": "fft_"}
"""Prefixes of PyTorch's C++ functions, by module."""
_IN_PYTHON: Final = frozenset(
    "__array__ __array_wrap__ __contains__ __deepcopy__ __dir__ __dlpack__ __dlpack_device__ "
    "__floordiv__ __format__ __ipow__ __len__ __pow__ __reduce_ex__ __repr__ __reversed__ __rsub__ "
    "__setstate__ backward dim_order is_shared lu module_load register_hook "
    "register_post_accumulate_grad_hook share_memory_ storage storage_type".split()
)
"""The methods that PyTorch has written in Python, besides those whose rows say so and the operators
that are written in Python here. Nothing else tells these from tolist() and the other methods that
are in Python here but in C++ there.
"""


def _is_reflected(name: str) -> bool:
    """Whether a method is an operator with exchanged operands."""
    return name.startswith("__r") and hasattr(_tensor_type, f"__{name[3:]}")


def _is_in_python(name: str) -> bool:
    """Whether PyTorch has written a method in Python."""
    written = {"written:python", "written:python_method"}
    return (
        name in _IN_PYTHON
        or _is_reflected(name)
        or any(words & written and schema.startswith(f"{name}(") for words, schema in rows)
    )


@functools.cache
def _public(function: Any) -> _Public:
    if isinstance(function, _op_types):
        return _Public(function, str(function), native=True)
    home, name = function.__module__, NAMES.get(function) or function.__qualname__
    if function in NAMES:
        name = f"Tensor.{name}"
    if home == "torch" or home.startswith("torch."):
        home = _ROOT + home[5:]
    found: Any = sys.modules[home]
    method = name.startswith("Tensor.")
    for part in name.split("."):
        found = getattr(found, part)
    if isinstance(found, property):
        return _Public(found.__get__, f"torch.{name}.__get__", True)
    space = home.partition(".")[2]
    native = not _is_in_python(part) if method else type(found) is not FunctionType
    if method:
        shown = f"torch.{name}" if native else f"torch._tensor.{name[7:]}"
    elif native and space == "nn.functional":
        shown = f"torch.nn.{name}"
    elif native:
        shown = ".".join(filter(None, ("torch", space, _PREFIXED.get(space, "") + name)))
    else:
        shown = ".".join(filter(None, ("torch", space or "functional", name)))
        shown = shown.replace("._functions.", ".functional.")
    operator = function.__code__.co_name == "call_binary" or _is_reflected(function.__name__)
    return _Public(found, shown, native, method and native, operator)


def public(function: Any) -> Any:
    """The function as users know it, which their ``__torch_function__`` receives."""
    return _public(function).function


def method_of(mode: Any, name: str) -> Any:
    """The method of a mode.

    Raises:
        RuntimeError: it is a classmethod.
    """
    method = getattr(mode, name)
    if getattr(method, "__self__", None) is not mode:
        raise RuntimeError(
            f"Defining your mode's `{name}` as a classmethod is not supported, please make it a "
            "plain method"
        )
    return method


def _ask_mode(what: Any, types: tuple[type, ...], args: Any, kwargs: Any) -> Any:
    mode = state.modes.pop()
    try:
        return method_of(mode, "__torch_function__")(what, types, args, kwargs)
    finally:
        state.modes.append(mode)


_PLAIN_METHOD: Final = (
    "Defining your `__torch_function__` as a plain method is deprecated and will be an error in "
    "future, please define it as a classmethod."
)


def ask(
    what: Any, found: Sequence[Any], args: Any, kwargs: Any, types: tuple[type, ...] | None = None
) -> Any:
    """The first answer other than NotImplemented of the innermost mode and then of the values
    `found`; else NotImplemented.
    """
    if types is None:
        types = tuple(map(type, found))
    if has_modes():
        result = _ask_mode(what, types, args, kwargs)
        if result is not NotImplemented:
            return result
    for each in found:
        method = each.__torch_function__
        if getattr(method, "__self__", None) is each and method is not disabled:
            warnings.warn(_PLAIN_METHOD, stacklevel=user_level())
        result = method(what, types, args, kwargs)
        if result is not NotImplemented:
            return result
    return NotImplemented


def no_implementation(name: str, found: Sequence[Any]) -> TypeError:
    """The error of PyTorch's functions written in Python if all handlers return NotImplemented."""
    shown = [type(each) for each in found]
    text = (
        f"no implementation found for '{name}' on types that implement __torch_function__: {shown}"
    )
    if has_modes():
        text += f" nor in mode {state.modes[-1]}"
    return TypeError(text)


def _dispatch_failed(name: str, found: Sequence[Any]) -> TypeError:
    asked = [f"  - mode object {state.modes[-1]!r}"] if has_modes() else []
    asked += [f"  - tensor subclass {type(each)}" for each in found]
    return TypeError(
        f"Multiple dispatch failed for '{name}'; all __torch_function__ handlers returned "
        "NotImplemented:\n\n" + "\n".join(asked) + "\n\nFor more information, try re-running with "
        "TORCH_LOGS=not_implemented"
    )


def _call_overrides(what: _Public, found: Sequence[Any], args: Sequence[Any], kwargs: Any) -> Any:
    if what.method and args and not isinstance(args[0], _tensor_type):
        name, kind = what.function.__name__, type(args[0]).__name__
        raise TypeError(
            f"descriptor '{name}' for 'torch._C.TensorBase' objects doesn't apply to a '{kind}' "
            "object"
        )
    given, named = what.arguments(args, kwargs)
    if what.native:
        result = ask(what.function, found, given, named)
        if result is NotImplemented:
            raise _dispatch_failed(what.name, found)
        return result
    among = (
        shallow_overloaded_values(_flat((*args, *kwargs.values()))) if state.off == ENABLED else []
    )
    types = tuple(map(type, among))
    if not found:
        among = []  # for modes alone
    result = ask(what.function, among, given, named, types)
    if result is NotImplemented:
        raise no_implementation(what.name, among)
    return result


def _flat(values: Iterable[Any]) -> Iterable[Any]:
    for value in values:
        if kind_of(value) == K_LIST:
            yield from value
        else:
            yield value


def call(function: Any, args: Sequence[Any], kwargs: dict[str, Any], found: Sequence[Any]) -> Any:
    """Asks about a call of a function, named by the called object or its public stand-in.

    Raises:
        TypeError: all return NotImplemented; an operator's call returns NotImplemented instead.
    """
    what = _public(function)
    if not what.operator:
        return _call_overrides(what, found, args, kwargs)
    try:
        return _call_overrides(what, found, args, kwargs)
    except TypeError:
        return NotImplemented


_tensor_type: Any = ()


_op_types: tuple[type, ...] = ()


def adopt_ops(*kinds: type) -> None:
    """Passes the classes of ``torch.ops.aten.add`` and of its overloads to this module."""
    global _op_types
    _op_types = kinds


def adopt_tensor(kind: type) -> None:
    """Passes the Tensor class to this module."""
    global _tensor_type
    _tensor_type = kind


# ------------------------------------------------------------------ functions written in Python

_to_arm: Final[list[Callable[[], None]]] = []
announced: Final[set[Any]] = set()
"""The functions of Python that types may override, beside methods."""
_armed = False
_arming: Final = threading.RLock()


def overridable(function: F) -> F:
    """A decorator for a function written in Python that types and modes may override; returns the
    same function.
    """
    announced.add(function)
    run_when_armed(functools.partial(put_gate, function))
    return function


def overridable_factory(function: F) -> F:
    """Like `overridable`, for a function that makes tensors: only modes are asked, and overrides
    are off within it.
    """
    run_when_armed(functools.partial(put_gate, function, creates=True))
    return function


def run_when_armed(run: Callable[[], None]) -> None:
    """Calls a function when the first overriding type or mode appears, or now if it has."""
    if _armed:
        run()
    else:
        _to_arm.append(run)


def arm() -> None:
    """Puts gates in front of all announced functions: the first overriding type or mode exists."""
    global _armed
    if _armed:
        return
    with _arming:
        if not _armed:
            _armed = True
            while _to_arm:
                _to_arm.pop()()


def is_armed() -> bool:
    """Whether functions written in Python have gates."""
    return _armed


_PLAIN: Final[set[type]] = set()
"""Types that do not override; filled when they are seen."""
_plain: Final = _PLAIN.issuperset


def _entry(*args: Any, _gate: Any, **kwargs: Any) -> Any:
    return _gate(args, kwargs)


def put_gate(function: Any, creates: bool = False) -> None:
    """Lets a function ask before it runs. The object stays: its code becomes the gate's, and its
    former code moves to a function behind the gate.
    """
    code = function.__code__
    behind = FunctionType(
        code, function.__globals__, code.co_name, function.__defaults__, function.__closure__
    )
    behind.__kwdefaults__ = function.__kwdefaults__
    behind.__annotations__ = function.__annotations__

    def gate(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if not (kwargs or creates or modes_anywhere) and _plain(map(type, args)):
            return behind(*args)
        found = () if creates else overloaded_args(args, kwargs)
        if not found and not (modes_anywhere and has_modes()):
            if not creates or state.off:
                return behind(*args, **kwargs)
            with DisableTorchFunctionSubclass():
                return behind(*args, **kwargs)
        return call(function, args, kwargs, found)

    function.__wrapped__ = behind  # for `inspect`
    function.__kwdefaults__ = {"_gate": gate}
    function.__defaults__ = None
    function.__code__ = _entry.__code__.replace(
        co_name=code.co_name,
        co_qualname=code.co_qualname,
        co_freevars=code.co_freevars,
    )


def ungated_function(function: Any) -> Any:
    """The function behind the gate of a function of the package; None for a foreign function."""
    inner = getattr(function, "__func__", function)
    if getattr(inner, "__kwdefaults__", None) and "_gate" in inner.__kwdefaults__:
        return inner.__wrapped__
    names = getattr(inner, "__globals__", None)
    if type(inner) is WRAPPER or (names and names.get("__name__") == f"{__package__}.shapes"):

        def run(*args: Any, **kwargs: Any) -> Any:
            with DisableTorchFunction():
                return function(*args, **kwargs)

        return run
    return None


WRAPPER: Final = type(property().__get__)
"""The class of an attribute's getter: ``Tensor.grad.__get__``."""


def put_gates_on(kind: type, name: str, attribute: property) -> None:
    """Lets a property of tensors ask before it runs; the object stays."""
    wrappers = attribute.__get__, attribute.__set__, attribute.__delete__
    of = f"torch.Tensor.{name}."
    told = [_Public(each, of + each.__name__, True) for each in wrappers]

    def make_gate(function: Any, what: _Public) -> Any:
        if function is None:
            return None

        def ask_first(self: Any, *value: Any) -> Any:
            if has_modes() or overloaded_args((self,)):
                return _call_overrides(what, [self][: state.off == ENABLED], (self, *value), {})
            return function(self, *value)

        def get(self: Any) -> Any:
            if type(self) is _tensor_type and not modes_anywhere:
                return function(self)
            return ask_first(self)

        gate = get if what is told[0] else ask_first
        gate.__wrapped__ = function  # type: ignore[attr-defined]  # for `inspect`
        return gate

    get, put, drop = attribute.fget, attribute.fset, attribute.fdel
    gates = [make_gate(f, what) for f, what in zip((get, put, drop), told, strict=True)]
    attribute.__init__(*gates, attribute.__doc__)  # type: ignore[misc]
    setattr(kind, name, attribute)  # drops compiled accesses with the former function


class _Module:
    """The object to which `disabled` is bound, as a builtin is to its module, so that it does not
    bind again.
    """

    __slots__ = ()


disabled: Final = MethodType(_run_disabled, _Module())
"""The ``__torch_function__`` of a class that does not override: its values are plain tensors, or no
tensors.
"""


def _overrides(kind: type) -> bool:
    """Whether values of a new type must be asked."""
    try:
        found = kind.__torch_function__  # type: ignore[attr-defined]
    except AttributeError:
        return False
    if found is disabled:
        return False
    arm()
    return True


arguments.overrides = _overrides
