"""Who answers for an op below autograd: modes, classes of tensors, functions of libraries.

A mode or a class is asked by ``__torch_dispatch__``, with an `OpOverload` of `pygrad.ops`. What the
engine asks, `answers.py` passes on to these.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final

from .._boundary import asked, attributes, calls, modes, overriding
from .._ground.dtypes import strided
from .._table.builtins import builtin

_MODE: Final = asked.MODE


# ------------------------------------------------------------------ modes


class _OfThread(threading.local):
    def __init__(self) -> None:
        self.modes: list[Any] = []
        self.disabled = 0
        self.own = ""
        """An op that is the engine's own, whatever libraries have put in its place."""


here = _OfThread()
pushed: Final[list[None]] = []
"""One for each mode of any thread."""


def ask(of_modes: list[Any]) -> None:
    """Tells the engine whether to ask for all ops of this thread, with these modes."""
    modes.switch(_MODE, bool(of_modes or kernels))


def keep_arguments() -> None:
    """Lets calls keep their arguments while there is a mode or a function of a library."""
    calls.keep_arguments(bool(pushed or kernels))
    attributes.tell_items(bool(pushed))


def unseen(function: Callable[[Any], Any], value: Any) -> Any:
    """Calls a function of a tensor or a number without telling modes."""
    if not here.modes:
        return function(value)
    with without_modes():
        return function(value)


@builtin
def push_mode(mode: Any) -> None:
    """The engine asks this mode first from now on, in this thread."""
    here.modes.append(mode)
    modes.switch(_MODE, True)
    pushed.append(None)
    keep_arguments()


def pop_mode() -> Any:
    """Takes away the mode that was pushed last.

    Raises: AssertionError: there is no mode.
    """
    if not here.modes:
        raise AssertionError("Trying to pop a mode off an empty stack")
    mode = here.modes.pop()
    modes.switch(_MODE, here.modes or kernels)
    pushed.pop()
    keep_arguments()
    return mode


def mode_stack() -> list[Any]:
    """The modes of this thread, innermost last."""
    return list(here.modes)


@contextmanager
def without_modes() -> Iterator[list[Any]]:
    """No mode is asked within."""
    was = here.modes
    here.modes = []
    ask(here.modes)
    try:
        yield was
    finally:
        here.modes = was
        ask(was)


class disabled:
    """`torch._C._DisableTorchDispatch`: while an instance lives, no class and no mode is asked."""

    def __init__(self) -> None:
        here.disabled += 1
        self._mine = True

    def _end(self) -> None:
        if self._mine:
            self._mine = False
            here.disabled -= 1

    def __enter__(self) -> disabled:
        return self

    def __exit__(self, *_: object) -> None:
        self._end()

    __del__ = _end


def call_below_modes(func: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
    """Calls an op below all classes and modes."""
    here.disabled += 1
    try:
        return func(*args, **kwargs)
    finally:
        here.disabled -= 1


# ------------------------------------------------------------------ functions of libraries

kernels: Final[dict[str, dict[str, Callable[..., Any]]]] = {}
"""Functions that libraries have put in the place of PyTorch's own ops, by the names of their
overloads, then by the type of device."""


class _Layer:
    """A value that was put over others of the same key."""

    def __init__(self, value: Any) -> None:
        self.value = value


_NOTHING: Final = _Layer(None)
_layers: Final[dict[tuple[int, Any], tuple[dict[Any, Any], list[_Layer]]]] = {}
"""The values that were put, by dict and key, above the one that was there before."""


def put_over(values: dict[Any, Any], key: Any, value: Any) -> Callable[[], None]:
    """Sets a value in a dict; returns a function that takes it away. Several values of one key may
    be taken away in any order: that of the latest one which is left counts.
    """
    place = id(values), key
    before = _Layer(values[key]) if key in values else _NOTHING
    _, layers = _layers.setdefault(place, (values, [before]))
    mine = _Layer(value)
    layers.append(mine)
    values[key] = value

    def take_away() -> None:
        layers.remove(mine)
        if layers[-1] is _NOTHING:
            values.pop(key, None)
        else:
            values[key] = layers[-1].value
        if len(layers) == 1:
            del _layers[place]

    return take_away


def _run_kernel(func: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
    """Runs the function that a library has put in an op's place; NotImplemented if there is none
    for such tensors.
    """
    name = func.name()
    mine = kernels.get(name)
    if mine is None:
        return NotImplemented
    if here.own == name:
        return NotImplemented
    tensors = tensors_in((*args, *kwargs.values()))
    if any(each.layout is not strided for each in tensors):
        return NotImplemented
    device = "meta" if any(each.is_meta for each in tensors) else "cpu"
    return mine[device](*args, **kwargs) if device in mine else NotImplemented


# ------------------------------------------------------------------ classes that handle ops


def disabled_dispatch(func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
    """A subclass overrides this to handle ops on its tensors below autograd. The base's method
    runs the op itself: no class and no mode is asked.
    """
    return call_below_modes(func, args, kwargs or {})


disabled_dispatch.__name__ = "__torch_dispatch__"  # the method of `Tensor` that it is


@functools.cache
def _answers(kind: Any) -> bool:
    """Whether tensors of a class are asked for their ops."""
    method = getattr(kind, "__torch_dispatch__", None)
    return method is not None and method is not disabled_dispatch


answers: Callable[[type], bool] = _answers


def tensors_in(args: Iterable[Any]) -> list[Any]:
    """The tensors among arguments or results, also in lists."""
    found = []
    for each in args:
        if isinstance(each, calls._tensor_type):
            found.append(each)
        elif isinstance(each, (list, tuple)):
            found += tensors_in(each)
    return found


def _overloaded_args(args: Sequence[Any], kwargs: dict[str, Any]) -> list[Any]:
    """One tensor of each class that handles ops, subclasses before their bases."""
    found: list[Any] = []
    for each in tensors_in((*args, *kwargs.values())):
        kind = type(each)
        if kind is calls._tensor_type or not answers(kind):
            continue
        if any(type(other) is kind for other in found):
            continue
        at = next((i for i, other in enumerate(found) if issubclass(kind, type(other))), len(found))
        found.insert(at, each)
    return found


# ------------------------------------------------------------------ asking

_PLAIN: Final[set[type]] = {int, float, bool, complex, str, type(None)}
"""Types of arguments that ask nobody."""


def adopt_tensor(kind: type) -> None:
    """Passes the class Tensor to this module, on which it depends itself."""
    _PLAIN.add(kind)


def dispatch_by_rule(
    func: Any, args: Sequence[Any], kwargs: dict[str, Any], rules: dict[Any, Callable[..., Any]]
) -> Any:
    """Like `dispatch_call`, with rules by class that precede the handlers of classes."""
    if not (here.modes or _overloaded_args(args, kwargs)):
        return NotImplemented
    return dispatch_call(func, args, kwargs, rules)


def _call_handler(each: Any, kind: type, rules: Any, call: Sequence[Any]) -> Any:
    rule = (rules or {}).get(kind)
    if rule is not None:
        return rule(each, *call)
    find = getattr if each is kind else overriding.method_of
    return find(each, "__torch_dispatch__")(*call)


def dispatch_call(
    func: Any, args: Sequence[Any], kwargs: dict[str, Any], rules: dict[Any, Any] | None = None
) -> Any:
    """The answer of a mode or a tensor's class to a call; NotImplemented if there is none to ask.

    Raises: TypeError: all that were asked gave NotImplemented.
    """
    plain = here.disabled or _PLAIN.issuperset(map(type, (*args, *kwargs.values())))
    tensors = [] if plain else _overloaded_args(args, kwargs)
    types = tuple(map(type, tensors))
    stack = [] if here.disabled else here.modes
    if stack:
        mode = stack.pop()
        modes.switch(_MODE, stack or kernels)
        try:
            if rules:
                found = _call_handler(mode, type(mode), rules, (func, types, tuple(args), kwargs))
            else:
                method = overriding.method_of(mode, "__torch_dispatch__")
                found = method(func, types, tuple(args), kwargs)
        finally:
            stack.append(mode)
            modes.switch(_MODE, True)
        if found is not NotImplemented:
            return found
        stands = [f"mode object {mode!r}"]
    else:
        stands = []
    for each in tensors:
        kind = type(each)
        found = _call_handler(kind, kind, rules, (func, types, tuple(args), kwargs))
        if found is not NotImplemented:
            return found
        stands.append(f"tensor subclass {type(each)!r}")
    if not stands:
        return _run_kernel(func, args, kwargs) if kernels else NotImplemented
    lines = "\n\n".join(f"  - {each}" for each in stands)
    raise TypeError(
        f"Multiple dispatch failed for '{_op_text(func)}'; all __torch_dispatch__ handlers "
        f"returned NotImplemented:\n\n{lines}\n\nFor more information, try re-running with "
        "TORCH_LOGS=not_implemented"
    )


def _op_text(func: Any) -> str:
    return f"torch.ops.{func}"


namespaces: Final[dict[str, Any]] = {}
"""The ops by library, "aten" for PyTorch's, once `pygrad.ops` has made them."""


def lift_fresh(tensor: Any) -> Any:
    """Passes a new tensor of a program's data to this thread's modes."""
    if not here.modes:
        return tensor
    found = dispatch_call(namespaces["aten"].lift_fresh.default, (tensor,), {})
    return tensor if found is NotImplemented else found
