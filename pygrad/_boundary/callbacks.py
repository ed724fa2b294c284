"""Callbacks: the objects that the engine knows by number, the tensors lent to a callback, and the
functions that run one.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from sys import getrefcount
from types import MemberDescriptorType
from typing import Any, Final

from . import calls, host, hosting, ownership, release
from .arguments import refuse_foreign
from .constants import (
    APPLY,
    HEAD,
    NAME,
    NODE_HOOK,
    NODE_PRE_HOOK,
    PACK,
    POST_HOOK,
    RETURNED,
    SEVERAL,
    UNPACK,
)
from .frame import DATA, N_DROPPED
from .objects import _ids as _ids
from .objects import drop_object as drop_object
from .objects import get_object as get_object
from .objects import keep_object as keep_object
from .objects import keep_watched as keep_watched
from .objects import objects as objects
from .objects import shown as shown

Runner = Callable[[int, list[int], int], list[int]]
"""(id, handles, number of grad_inputs) -> handles."""

runners: Final[dict[int, Runner]] = {}
_keep: Final = release.kept
_lock, _new = ownership.lock, calls._new
_tensor_type: Any = object
_result, _HEAD = host.result_slot, HEAD
_unsigned, _ints, _released, _known_refs = (
    host.unsigned,
    host.ints,
    release.released,
    calls.known_refs,
)
_weak: Final = weakref.ref
_GRAD_FN: Final = host.layout["grad_fn"]
_N_DROPPED, _forget_dropped = N_DROPPED, release.forget_dropped
_NOTED: Final = host.layout["noted"]
_FORM, _HOSTED, _memory = host.layout["form"], host.layout["form_hosted"], host.memory

services: dict[int, Callable[[int, list[int]], list[int]]] = {}
"""Functions of callbacks that run no user code, by kind: they take the id and the words that the
engine has sent.
"""


def handles_of(tensors: Sequence[Any]) -> list[int]:
    """Handles that stay valid until the engine has taken its own references."""
    _keep.extend(tensors)
    return [0 if tensor is None else tensor._h for tensor in tensors]


def encode(values: Sequence[Any]) -> tuple[list[int], str]:
    """Encodes values for the engine: the handles of tensors (0 None, 1 anything else), and the
    type's name of the first value that is neither.
    """
    tensor = _tensor_type
    handles = [v._h if isinstance(v, tensor) else 0 if v is None else 1 for v in values]
    if 1 not in handles:
        return handles, ""
    odd = values[handles.index(1)]
    refuse_foreign(odd)
    return handles, type(odd).__name__


def tell_text(text: str) -> list[int]:
    """Leaves a text in the frame for the engine to read."""
    raw = text.encode()[:1024] + b"\0"
    host.memory[DATA : DATA + len(raw)] = raw
    return []


# ------------------------------------------------------------------ one object a tensor

# In PyTorch a tensor keeps its object while anybody, the engine included, has the tensor. Here it
# keeps its object while Python refers to the object. Attributes that callbacks set stay as long as
# the engine has the tensor: the tensor knows a number, under which `objects` holds the attributes
# while there is no object, else (). An object that a callback did not touch is reused for another
# tensor, which is faster than to create and free one.

_spares: Final[list[Any]] = []
"""Unused objects. Each has the handle of `_nothing`, so that code that finds one among Python's
objects can read it.
"""
_nothing: Any = None
_NOTHING = 0


def adopt_tensor(kind: type) -> None:
    """Passes the Tensor class to this module, on which it depends itself."""
    global _tensor_type, _nothing, _NOTHING
    _tensor_type = kind
    _nothing = calls.invoke(calls.ROWS["_empty"], 0, ([0], None), {})
    _NOTHING = _nothing._h
    # one reference for each future spare, so that they need not be counted
    _ints[_NOTHING >> 2] += 1 << 30


def _alone() -> int:
    """The reference count of an object that only one local variable refers to."""
    only = object()
    return getrefcount(only)


_ALONE: Final = _alone()


def lend(handles: Sequence[int]) -> list[Any]:
    """The tensors of handles whose references are ours; uses the existing object of a tensor that
    has one.
    """
    lent: list[Any] = []
    for handle in handles:
        ref = _known_refs.get(handle)
        made = None if ref is None else _remembered_object(ref, handle)
        if made is None and handle:
            try:
                made = _spares.pop()
            except IndexError:
                made = _new(_tensor_type)
            made._h = handle
        lent.append(made)
    return lent


def _remembered_object(ref: Any, handle: int) -> Any:
    """The object of a remembered tensor: alive, or revived with its kept attributes; or None."""
    found = ref()
    if found is not None and found._h == handle:
        _released.append(handle)  # the object has a reference already
        return found
    if _ints[(handle + _NOTED) >> 2]:
        return _revive(calls.wrap(handle))
    if _known_refs.get(handle) is ref:
        _known_refs.pop(handle, None)
    return None


def _release(handle: int) -> None:
    """Gives a reference back, at once if it is not the last: where the engine waits for us."""
    if _ints[handle >> 2] > 1:
        _ints[handle >> 2] -= 1
    else:
        _released.append(handle)


def take_back(
    lent: list[Any], results: Sequence[Any] = (), release: Callable[[int], None] = _release
) -> None:
    """Ends the loan of `lend`: releases objects that nobody else kept, and remembers the others for
    the engine.

    Args:
        lent: the list, which has our only references; it is emptied.
        results: the callback's results, which the engine keeps.
        release: takes the handles of objects that are not needed.
    """
    while lent:
        each = lent.pop()
        if each is None:
            continue
        others = getrefcount(each) - _ALONE
        if others:
            for result in results:
                others -= result is each
            result = None  # drops one more reference
            if others and (each.__weakref__ is None or each.__dict__):
                keep_face(each)
        elif each.__dict__:
            _keep_attributes(each, release)
        elif each.__weakref__ is None and type(each) is _tensor_type:
            handle, each._h = each._h, _NOTHING
            each._b = each._g = None
            release(handle)
            _spares.append(each)
    for each in results:
        if isinstance(each, _tensor_type) and (
            each.__dict__ or (getrefcount(each) > _ALONE + 1 and each.__weakref__ is None)
        ):
            keep_face(each)


def keep_face(tensor: Any) -> None:
    """Makes later callbacks receive this object of an engine's tensor, or one with its attributes
    when it is gone.
    """
    handle = tensor._h
    if (tensor.__dict__ or _memory[handle + _FORM] & _HOSTED) and not _ints[(handle + _NOTED) >> 2]:
        _ints[(handle + _NOTED) >> 2] = keep_watched(())
    ref = _known_refs.get(handle)
    if ref is None or ref() is not tensor:
        calls.remember(tensor)


def note(tensor: Any) -> int:
    """A number that `is_noted` while the engine's tensor exists."""
    at = (tensor._h + _NOTED) >> 2
    if not _ints[at]:
        _ints[at] = keep_watched(())
    return int(_ints[at])


def is_noted(ident: int) -> bool:
    """Whether the engine's tensor with this number still exists."""
    release.drain_if_idle()
    return ident in objects or ident in shown


def _keep_attributes(tensor: Any, release: Callable[[int], None]) -> None:
    """Keeps the attributes of a dying object if the engine still has its tensor."""
    keep_face(tensor)
    handle = tensor._h
    if _ints[handle >> 2] > 1:
        objects[_ints[(handle + _NOTED) >> 2]] = _notes_of(tensor)
        tensor._h = 0
        release(handle)


def _last_words(tensor: Any, handle: int) -> None:
    """Keeps the attributes of an object that dies before its tensor, but not of an object that dies
    as garbage in a cycle, to which the attributes may lead.
    """
    ident, notes = _ints[(handle + _NOTED) >> 2], tensor.__dict__
    if _memory[handle + _FORM] & _HOSTED:
        if _ints[handle >> 2] > 1:
            objects[ident] = _Face(tensor)
        return
    if notes and ident in objects and _ints[handle >> 2] > 1 and getrefcount(tensor) == _DYING:
        objects[ident] = notes


class _Face:
    """The kept part of a tensor's object when its class handles ops: class and attributes."""

    __slots__ = ("fields", "kind", "notes")

    def __init__(self, tensor: Any) -> None:
        self.kind, self.notes = type(tensor), tensor.__dict__
        self.fields = [
            (each, each.__get__(tensor))
            for base in self.kind.__mro__[: self.kind.__mro__.index(_tensor_type)]
            for each in vars(base).values()
            if type(each) is MemberDescriptorType and _is_set(each, tensor)
        ]

    def revive_over(self, tensor: Any) -> Any:
        """Makes an object with the kept class and fields over the same tensor."""
        made = _new(self.kind)
        made._h, tensor._h = tensor._h, 0
        made.__dict__ = self.notes
        for field, value in self.fields:
            field.__set__(made, value)
        return made


def _notes_of(tensor: Any) -> Any:
    """The kept part of an object: its attributes, and its class if the class handles the tensor's
    ops.
    """
    hosted = _memory[tensor._h + _FORM] & _HOSTED
    return _Face(tensor) if hosted else tensor.__dict__


def _is_set(field: Any, tensor: Any) -> bool:
    try:
        field.__get__(tensor)
    except AttributeError:
        return False
    return True


class _Dying:
    """Measures the reference count that `_last_words` sees."""

    count = 0

    def __del__(self) -> None:
        self._look(self, 0)

    @staticmethod
    def _look(dying: Any, handle: int) -> None:
        _Dying._count(dying, handle)

    @staticmethod
    def _count(tensor: Any, handle: int) -> None:
        _Dying.count = getrefcount(tensor)


_Dying()
_DYING: Final = _Dying.count


def _revive(tensor: Any) -> Any:
    """The tensor with the kept attributes of its former object."""
    ident = _ints[(tensor._h + _NOTED) >> 2]
    notes = get_object(ident)
    if type(notes) is _Face:
        tensor = notes.revive_over(tensor)
        objects[ident] = ()
    elif notes:
        tensor.__dict__ = notes
        objects[ident] = ()
        shown.pop(ident, None)
    return calls.remember(tensor)


calls.revive = _revive


def look_at_last(tensor: Any, h: int) -> None:
    """Releases the handle of an object that dies. Attributes set by callbacks stay as long as the
    engine's tensor; a node is freed at once if this may have been its last reference.
    """
    if h and _ints[(h + _NOTED) >> 2]:
        _last_words(tensor, h)
    _released.append(h)
    node = _unsigned[(h + _GRAD_FN) >> 2] if h else 0
    n = len(_released)
    if node and _ints[h >> 2] <= n and _ints[node >> 2] <= n:
        release.drain_if_idle()


# ------------------------------------------------------------------ running callbacks


def _name(hook: Any) -> str:
    return str(getattr(hook, "__name__", "<unknown>"))


services[NAME] = lambda ident, _: tell_text(_name(get_object(ident)))


def answer(values: Sequence[Any]) -> list[int]:
    """The handles of a callback's results, for the engine. Passes on the type's name of a result
    that is no tensor.
    """
    _keep.extend(values)
    handles, odd = encode(values)
    if odd:
        tell_text(odd)
    return handles


def _run_hook(ident: int, handle: int) -> int:
    """A hook on one gradient: `_dispatch` inlined to save time."""
    if _keep:
        _keep.clear()
    gradient: Any = None
    if handle:
        ref = _known_refs.get(handle)
        if ref is not None and (ref() is not None or _ints[(handle + _NOTED) >> 2]):
            gradient = _remembered_object(ref, handle)
        if gradient is None:  # as `lend` does
            ref = None
            gradient = _spares.pop() if _spares else _new(_tensor_type)
            gradient._h = handle
    try:
        hook = objects[ident]
    except KeyError:
        hook = get_object(ident)
        if hook is None:
            return 0  # removed
    _lock.free = _lock.key
    try:
        if _ints[_N_DROPPED]:
            _forget_dropped()  # attributes set on gradients that are freed by now
        result = hook(gradient)
        if handle:  # as `take_back` does
            if getrefcount(gradient) > _ALONE:
                if gradient.__dict__:
                    keep_face(gradient)
                elif ref is None:
                    _known_refs[handle] = _weak(gradient)
                    if len(_known_refs) > calls._many:
                        calls._forget_the_dead()
            elif gradient.__dict__:
                _keep_attributes(gradient, _release)
            elif gradient.__weakref__ is None and type(gradient) is _tensor_type:
                gradient._h = _NOTHING
                gradient._b = gradient._g = None
                _release(handle)
                _spares.append(gradient)
        if result is None:
            return 0
        if type(result) is not _tensor_type:
            result = (result,)
            take_back([], result)
            return answer(result)[0]
        if getrefcount(result) > _ALONE or result.__dict__:
            keep_face(result)
        _keep.append(result)
        return result._h  # type: ignore[no-any-return]
    finally:
        _lock.free = None  # the state of the lock while the engine asks
        _result[0] = _HEAD  # restores the state before any call: see `call2`


def _run_post_hook(ident: int, handles: list[int], _: int) -> list[int]:
    tensors, hook = lend(handles), get_object(ident)
    result = None if hook is None else hook(*tensors)
    leaf = tensors.pop()
    if getrefcount(leaf) == _ALONE and leaf.__dict__:
        _keep_attributes(leaf, _release)
    return [] if result is None else answer([result])


def _answer_several(result: Any, grads: list[Any]) -> list[int]:
    """The answer of a hook on several gradients: empty, or a word of any value and the replacements
    of the first gradients.
    """
    if result is None:
        take_back(grads)
        return []
    if not isinstance(result, tuple):
        raise TypeError(f"expected tuple, but hook returned '{type(result).__name__}'")
    take_back(grads, result)
    return [0, *answer(result)]


def _run_node_prehook(ident: int, handles: list[int], _: int) -> list[int]:
    grads, hook = lend(handles), get_object(ident)
    return _answer_several(None if hook is None else hook(tuple(grads)), grads)


def _run_node_posthook(ident: int, handles: list[int], n_inputs: int) -> list[int]:
    grads, hook = lend(handles), get_object(ident)
    result = None if hook is None else hook(tuple(grads[:n_inputs]), tuple(grads[n_inputs:]))
    return _answer_several(result, grads)


def _run_pack(ident: int, handles: list[int], _: int) -> list[int]:
    pack, unpack = get_object(ident)
    return [keep_watched((pack(*lend(handles)), unpack))]


def _run_several(ident: int, handles: list[int], first: int) -> list[int]:
    grads, hook = lend(handles), get_object(ident)
    if hook is not None:
        hook(grads[0] if first else [*grads])
    take_back(grads)
    return []


def _run_unpack(ident: int, handles: list[int], _: int) -> list[int]:
    packed, unpack = get_object(ident)
    return answer([unpack(packed)])


_returned: Final[dict[int, list[Any]]] = {}
"""Results of applied functions, until the engine asks for them."""


def _run_apply(ident: int, handles: list[int], _: int) -> list[int]:
    results = _returned[ident] = list(objects[ident](*lend(handles)))
    return [len(results)]


services[RETURNED] = lambda ident, _: handles_of(_returned.pop(ident))

runners.update(
    {
        POST_HOOK: _run_post_hook,
        NODE_PRE_HOOK: _run_node_prehook,
        NODE_HOOK: _run_node_posthook,
        PACK: _run_pack,
        UNPACK: _run_unpack,
        SEVERAL: _run_several,
        APPLY: _run_apply,
    }
)


def _dispatch(kind: int, ident: int, handles: list[int]) -> list[int]:
    if kind in services:
        return services[kind](ident, handles)
    _keep.clear()
    _lock.free = _lock.key
    try:
        if _ints[_N_DROPPED]:
            _forget_dropped()
        return runners[kind & 255](ident, handles, kind >> 8)
    finally:
        _lock.free = None
        _result[0] = _HEAD


hosting.on_host_call = _dispatch
hosting.on_hook = _run_hook
