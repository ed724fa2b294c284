"""Hooks: registering a callable with the engine, and the handle that takes it away again."""

from __future__ import annotations

import weakref
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Any

from .. import _call, _engine, _ops

_callables: dict[int, Any] = {}
_next_id = 1
HOOK, POST_HOOK = 0, 1


def _run(kind: int, ident: int, handles: list[int]) -> list[int]:
    """Runs a callable for the engine; the handles are ours to own, what is returned stays ours
    too.
    """
    tensors = [_call.known(_call.wrap(handle)) if handle else None for handle in handles]
    hook = _callables.get(ident)
    if hook is None:
        return []
    result = hook(*tensors)
    if kind == POST_HOOK or result is None:
        return []
    if not isinstance(result, _call._tensor_type):
        raise TypeError(f"expected Tensor, but hook returned '{type(result).__name__}'")
    _check_replacement(tensors[0], result)
    _keep.append(result)
    return [result._h]


_keep: list[Any] = []

services: dict[int, Callable[[int, list[int]], list[int]]] = {}
"""By the kind of a callback that runs nothing of the user's: a function of the id and the
words that the engine has sent.
"""


def _check_replacement(old: Any, new: Any) -> None:
    if old is not None and new.dtype is not old.dtype:
        raise RuntimeError(
            f"hook '<unnamed>' has changed the type of value (was {old.type()} got {new.type()})"
        )
    if old is not None and new.shape != old.shape:
        raise RuntimeError("hook '<unnamed>' has changed the size of value")


def _dispatch(kind: int, ident: int, handles: list[int]) -> list[int]:
    if kind in services:
        return services[kind](ident, handles)
    _keep.clear()
    was = _engine.pause()
    try:
        return _run(kind, ident, handles)
    finally:
        _engine.resume(was)


_engine.on_host_call = _dispatch
_engine.on_dropped = lambda ident: _callables.pop(ident, None) and None


def add_callable(hook: Any) -> int:
    """An id by which the engine can call `hook`, or name whatever else it stands for."""
    global _next_id
    ident = _next_id
    _next_id += 1
    _callables[ident] = hook
    return ident


def held(ident: int) -> Any:
    """What `add_callable` was given, until the engine lets go of the id; then None."""
    return _callables.get(ident)


class EngineHandle:
    """The handle of a hook that the engine holds: ``remove()`` takes it away; also a context
    manager.
    """

    def __init__(self, tensor: Any, ident: int) -> None:
        self._tensor = weakref.ref(tensor)
        self.id = ident

    def remove(self) -> None:
        """Removes the hook; a second time does nothing."""
        _callables.pop(self.id, None)
        tensor = self._tensor()
        if tensor is not None:
            _ops.C["_hook_remove"](tensor, self.id)

    def __enter__(self) -> EngineHandle:
        return self

    def __exit__(self, *_: Any) -> None:
        self.remove()


def register_tensor_hook(tensor: Any, hook: Callable[..., Any], post: bool) -> EngineHandle:
    """Registers a hook on a tensor's gradient (or after its accumulation)."""
    _call.remember(tensor)
    ident = add_callable(hook)
    try:
        _ops.C["_hook_add"](tensor, ident, post)
    except BaseException:
        _callables.pop(ident, None)
        raise
    return EngineHandle(tensor, ident)


class RemovableHandle:
    """Removes an entry from a dictionary of hooks, as PyTorch's handle of the same name does.

    Args:
        hooks_dict: where the hook stands, by id.
        extra_dict: other dictionaries from which the id goes too.
    """

    next_id = 0

    def __init__(self, hooks_dict: Any, *, extra_dict: Any = None) -> None:
        self.hooks_dict_ref: Any = weakref.ref(hooks_dict)
        self.id = RemovableHandle.next_id
        RemovableHandle.next_id += 1
        extra: Sequence[Any] = (
            ()
            if extra_dict is None
            else extra_dict
            if isinstance(extra_dict, list)
            else (extra_dict,)
        )
        self.extra_dict_ref = tuple(weakref.ref(d) for d in extra)

    def remove(self) -> None:
        """Removes the hook; a second time does nothing."""
        for ref in (self.hooks_dict_ref, *self.extra_dict_ref):
            found = ref()
            if found is not None and self.id in found:
                del found[self.id]

    def __getstate__(self) -> Any:
        return (self.hooks_dict_ref(), self.id, tuple(ref() for ref in self.extra_dict_ref))

    def __setstate__(self, state: Any) -> None:
        self.hooks_dict_ref = weakref.ref(OrderedDict() if state[0] is None else state[0])
        self.id = state[1]
        RemovableHandle.next_id = max(RemovableHandle.next_id, self.id + 1)
        self.extra_dict_ref = tuple(
            weakref.ref(OrderedDict() if d is None else d)
            for d in (state[2] if len(state) > 2 else ())
        )

    def __enter__(self) -> RemovableHandle:
        return self

    def __exit__(self, *_: Any) -> None:
        self.remove()
