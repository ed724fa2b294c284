"""Hooks: registering a callable with the engine, and the handle that takes it away again."""

from __future__ import annotations

import functools
import itertools
import warnings
import weakref
from collections import OrderedDict
from collections.abc import Callable, Sequence
from sys import getrefcount
from typing import TYPE_CHECKING, Any, Final

from .. import _boundary, _call, _ops, _tensor

HOOK, POST_HOOK, NODE_PRE_HOOK, NODE_HOOK, FUNCTION, PACK, UNPACK, SEVERAL, APPLY = range(9)
NAME, RETURNED = 35, 36
"""What the engine asks of a callback: HostCall in wasm_core/tape/host.h."""

Runner = Callable[[int, list[int], int], list[int]]
"""(id, handles, number of grad_inputs) -> handles."""

objects: Final[dict[int, Any]] = {}
"""What the engine knows by a number: hooks, pairs of hooks, what was packed, dictionaries."""
shown: Final[dict[int, Any]] = {}
"""Those that are elsewhere while the garbage collector looks at them, by weak references to what
has them as its `thing`: autograd/_cycles.py.
"""
runners: Final[dict[int, Runner]] = {}
_ids = itertools.count(1)
_keep: Final = _boundary.kept
_watched: Final = _boundary.watched
_lock, _new, _tensor_type = _boundary.lock, _call._new, _call._tensor_type
_result, _HEAD = _boundary.result_slot, _boundary.HEAD
_ints, _released, _known_refs = _boundary.ints, _boundary.released, _call.known_refs
_weak: Final = weakref.ref
_GRAD_FN: Final = _boundary.layout["grad_fn"]
_N_DROPPED, _forget_dropped = _boundary.N_DROPPED, _boundary.forget_dropped
_NOTED: Final = _boundary.layout["noted"]

services: dict[int, Callable[[int, list[int]], list[int]]] = {}
"""By the kind of a callback that runs nothing of the user's: a function of the id and the
words that the engine has sent.
"""


def new_id() -> int:
    """A number that no object has had."""
    return next(_ids)


def keep_object(thing: Any) -> int:
    """A number by which the engine knows an object; the object lives until the engine drops it."""
    ident = next(_ids)
    objects[ident] = thing
    return ident


add_callable = keep_object


def keep_watched(thing: Any) -> int:
    """The same for an object that a node will hold, and which goes as soon as the node does."""
    ident = next(_ids)
    objects[ident] = thing
    _watched.add(ident)
    return ident


def drop_object(ident: int) -> None:
    """Forgets an object that the engine needs no more."""
    objects.pop(ident, None)
    if _watched:
        _watched.discard(ident)
    if shown:
        shown.pop(ident, None)


def held(ident: int) -> Any:
    """What `keep_object` was given, until the engine lets go of the number; then None."""
    found = objects.get(ident)
    if found is None and ident in shown:
        box = shown[ident]()
        return None if box is None else box.thing
    return found


def handles_of(tensors: Sequence[Any]) -> list[int]:
    """Handles that stay valid until the engine has taken references of its own."""
    _keep.extend(tensors)
    return [0 if tensor is None else tensor._h for tensor in tensors]


def encode(values: Sequence[Any]) -> tuple[list[int], str]:
    """Values for the engine: the handles of tensors (0 None, 1 anything else), and the type of the
    first that is none.
    """
    tensor = _tensor_type
    handles = [v._h if isinstance(v, tensor) else 0 if v is None else 1 for v in values]
    return handles, type(values[handles.index(1)]).__name__ if 1 in handles else ""


def tell_text(text: str) -> list[int]:
    """Leaves a text in the frame for the engine to read."""
    raw = text.encode()[:1024] + b"\0"
    _boundary.memory[_boundary.DATA : _boundary.DATA + len(raw)] = raw
    return []


# ------------------------------------------------------------------ one object a tensor

# In PyTorch a tensor has one object as long as anybody has the tensor, the engine included. Here it
# is one as long as somebody has the object; what callbacks noted on it, its attributes, stays as
# long as the engine has the tensor: under a number that the tensor knows, `objects` has the
# attributes while there is no object, else (). An object with which a callback did nothing serves
# for another tensor, which takes less time than to make one and to let it go.

_spares: Final[list[Any]] = []
"""Objects that wait: of `_nothing`, so that who finds one among Python's objects may look at it."""
_nothing: Final = _ops.C["_empty"]([0], None)
_NOTHING: Final = _nothing._h
_ints[_NOTHING >> 2] += 1 << 30  # one for each that ever waits, which so need not be counted


def _alone() -> int:
    """The references that are counted of what a local variable has and nobody else."""
    only = object()
    return getrefcount(only)


_ALONE: Final = _alone()


def lend(handles: Sequence[int]) -> list[Any]:
    """The tensors of handles whose references are ours, each the very object if there is one."""
    lent: list[Any] = []
    for handle in handles:
        ref = _known_refs.get(handle)
        made = None if ref is None else _known(ref, handle)
        if made is None and handle:
            try:
                made = _spares.pop()
            except IndexError:
                made = _new(_tensor_type)
            made._h = handle
        lent.append(made)
    return lent


def _known(ref: Any, handle: int) -> Any:
    """The object of a tensor that was remembered, alive or with what was noted on it, or None."""
    found = ref()
    if found is not None and found._h == handle:
        _released.append(handle)  # it has a reference
        return found
    if _ints[(handle + _NOTED) >> 2]:
        return _revived(_call.wrap(handle))
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
    """Ends what `lend` began: what others keep they keep, and for the engine it is known.

    Args:
        lent: the list, which has our only references; it is emptied.
        results: what the callback returned, which the engine has after it.
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
            result = None  # which would be one more reference
            if others and (each.__weakref__ is None or each.__dict__):
                keep_face(each)
        elif each.__dict__:
            _put_aside(each, release)
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
    """Sees to it that callbacks to come get this object of an engine's tensor, or, when it is gone,
    one with its attributes.
    """
    handle = tensor._h
    if tensor.__dict__ and not _ints[(handle + _NOTED) >> 2]:
        _ints[(handle + _NOTED) >> 2] = keep_watched(())
    ref = _known_refs.get(handle)
    if ref is None or ref() is not tensor:
        _call.remember(tensor)


def _put_aside(tensor: Any, release: Callable[[int], None]) -> None:
    """Keeps the attributes of an object that is about to go, if the engine has its tensor."""
    keep_face(tensor)
    handle = tensor._h
    if _ints[handle >> 2] > 1:
        objects[_ints[(handle + _NOTED) >> 2]] = tensor.__dict__
        tensor._h = 0
        release(handle)


def _last_words(tensor: Any, handle: int) -> None:
    """Keeps the attributes of an object that goes before its tensor. Not where it goes as garbage
    in a cycle, to which its attributes may lead.
    """
    ident, notes = _ints[(handle + _NOTED) >> 2], tensor.__dict__
    if notes and ident in objects and _ints[handle >> 2] > 1 and getrefcount(tensor) == _DYING:
        objects[ident] = notes


class _Dying:
    """Counts references as `_last_words` does."""

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


def _revived(tensor: Any) -> Any:
    """The tensor, with the attributes of an object that it had."""
    ident = _ints[(tensor._h + _NOTED) >> 2]
    notes = held(ident)
    if notes:
        tensor.__dict__ = notes
        objects[ident] = ()
        shown.pop(ident, None)
    return _call.remember(tensor)


_call.revived, _tensor._last_words, _tensor._keep_face = _revived, _last_words, keep_face
_tensor._held_objects = objects

# ------------------------------------------------------------------ running callbacks


def _name(hook: Any) -> str:
    return str(getattr(hook, "__name__", "<unknown>"))


services[NAME] = lambda ident, _: tell_text(_name(held(ident)))


def answer(values: Sequence[Any]) -> list[int]:
    """What a callback returned, for the engine, which is told the type of what is no tensor."""
    _keep.extend(values)
    handles, odd = encode(values)
    if odd:
        tell_text(odd)
    return handles


def _run_hook(ident: int, handle: int) -> int:
    """A hook on one gradient: what `_dispatch` does, in one piece to save time."""
    if _keep:
        _keep.clear()
    gradient: Any = None
    if handle:
        ref = _known_refs.get(handle)
        if ref is not None and (ref() is not None or _ints[(handle + _NOTED) >> 2]):
            gradient = _known(ref, handle)
        if gradient is None:  # as `lend` does
            ref = None
            gradient = _spares.pop() if _spares else _new(_tensor_type)
            gradient._h = handle
    try:
        hook = objects[ident]
    except KeyError:
        hook = held(ident)
        if hook is None:
            return 0  # removed
    _lock.free = _lock.key
    try:
        if _ints[_N_DROPPED]:
            _forget_dropped()  # what was noted on gradients that are gone by now
        result = hook(gradient)
        if handle:  # as `take_back` does
            if getrefcount(gradient) > _ALONE:
                if gradient.__dict__:
                    keep_face(gradient)
                elif ref is None:
                    _known_refs[handle] = _weak(gradient)
                    if len(_known_refs) > _call._many:
                        _call._forget_the_dead()
            elif gradient.__dict__:
                _put_aside(gradient, _release)
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
        _lock.free = None  # as the engine is while it asks
        _result[0] = _HEAD  # as if nothing had been called: see `call2`


def _run_post_hook(ident: int, handles: list[int], _: int) -> list[int]:
    tensors, hook = lend(handles), held(ident)
    result = None if hook is None else hook(*tensors)
    leaf = tensors.pop()
    if getrefcount(leaf) == _ALONE and leaf.__dict__:
        _put_aside(leaf, _release)
    return [] if result is None else answer([result])


def _answered(result: Any, grads: list[Any]) -> list[int]:
    """What a hook on several gradients returned: nothing, or any word and what takes the place of
    the first given.
    """
    if result is None:
        take_back(grads)
        return []
    if not isinstance(result, tuple):
        raise TypeError(f"expected tuple, but hook returned '{type(result).__name__}'")
    take_back(grads, result)
    return [0, *answer(result)]


def _run_node_prehook(ident: int, handles: list[int], _: int) -> list[int]:
    grads, hook = lend(handles), held(ident)
    return _answered(None if hook is None else hook(tuple(grads)), grads)


def _run_node_posthook(ident: int, handles: list[int], n_inputs: int) -> list[int]:
    grads, hook = lend(handles), held(ident)
    result = None if hook is None else hook(tuple(grads[:n_inputs]), tuple(grads[n_inputs:]))
    return _answered(result, grads)


def _run_pack(ident: int, handles: list[int], _: int) -> list[int]:
    pack, unpack = held(ident)
    return [keep_watched((pack(*lend(handles)), unpack))]


def _run_several(ident: int, handles: list[int], first: int) -> list[int]:
    grads, hook = lend(handles), held(ident)
    if hook is not None:
        hook(grads[0] if first else [*grads])
    take_back(grads)
    return []


def _run_unpack(ident: int, handles: list[int], _: int) -> list[int]:
    packed, unpack = held(ident)
    return answer([unpack(packed)])


_returned: Final[dict[int, list[Any]]] = {}
"""What functions that were applied returned, until the engine asks for it."""


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


_boundary.hosting.on_host_call = _dispatch
_boundary.hosting.on_hook = _run_hook
_boundary.release.on_dropped = drop_object


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


class EngineHandle(RemovableHandle):
    """The handle of a hook that the engine holds: ``remove()`` takes it away; also a context
    manager.

    Args:
        owner: the tensor or node that the hook is on, or what else `remove` knows it by.
        ident: the hook's number.
        remove: tells the engine, given the owner and the number; the engine keeps a hook that a
            running hook removes until the hooks of that tensor or node have run.
    """

    def __init__(self, owner: Any, ident: int, remove: Callable[[Any, int], None]) -> None:
        self._owner = (lambda: owner) if isinstance(owner, int) else weakref.ref(owner)
        self._remove = remove
        self.id = ident

    def remove(self) -> None:
        """Removes the hook; a second time does nothing."""
        if self.id not in objects and self.id not in shown:
            return
        owner = self._owner()
        if owner is None:
            drop_object(self.id)
        else:
            self._remove(owner, self.id)


EngineHandle.__name__ = EngineHandle.__qualname__ = "RemovableHandle"  # as which it prints


def _register(
    owner: Any,
    hook: Any,
    add: Callable[..., Any],
    remove: Any,
    handle: type[EngineHandle] = EngineHandle,
) -> EngineHandle:
    ident = keep_object(hook)
    try:
        add(ident)
    except BaseException:
        drop_object(ident)
        raise
    return handle(owner, ident, remove)


def _remove_tensor_hook(tensor: Any, ident: int) -> None:
    _ops.C["_hook_remove"](tensor, ident)


def _remove_node_hook(address: int, ident: int) -> None:
    _ops.C["_node_hook_remove"](address, ident)


def register_tensor_hook(tensor: Any, hook: Callable[..., Any], post: bool) -> EngineHandle:
    """Registers a hook on a tensor's gradient (or after its accumulation)."""
    _call.remember(tensor)
    add = functools.partial(_add_tensor_hook, tensor, post)
    handle = _register(tensor, hook, add, _remove_tensor_hook)
    if _boundary.unsigned[(tensor._h + _GRAD_FN) >> 2]:
        _watched.add(handle.id)
    return handle


def _add_tensor_hook(tensor: Any, post: bool, ident: int) -> None:
    _ops.C["_hook_add"](tensor, ident, post)


def register_node_hook(node: Any, hook: Callable[..., Any], pre: bool) -> EngineHandle:
    """Registers a hook that runs after a node (or before it)."""
    add = functools.partial(_add_node_hook, node, pre)
    handle = _register(node._address, hook, add, _remove_node_hook)
    if type(node).__name__ != "AccumulateGrad":  # of which there is one a leaf, and may be many
        _watched.add(handle.id)
    return handle


def _add_node_hook(node: Any, pre: bool, ident: int) -> None:
    _ops.C["_node_hook_add"](node._address, ident, pre)


def register_hook_of_several(
    tensors: Sequence[Any], hook: Any, mode: str, handle: type[EngineHandle]
) -> EngineHandle:
    """Registers one hook on the gradients of several tensors."""
    add = functools.partial(_add_hook_of_several, tuple(tensors), mode)
    return _register(EngineHandle, hook, add, _remove_hook_of_several, handle)


def _add_hook_of_several(tensors: tuple[Any, ...], mode: str, ident: int) -> None:
    _ops.C["_several_hooks_add"](tensors, ident, mode)


def _remove_hook_of_several(_: Any, ident: int) -> None:
    _ops.C["_several_hooks_remove"](ident)


def unserializable_hook(f: Callable[..., Any]) -> Callable[..., Any]:
    """Marks a hook as one that is not expected to be saved with its tensor: no warning then.

    Example:
        >>> from pygrad.utils.hooks import unserializable_hook
        >>> @unserializable_hook
        ... def hook(grad):
        ...     return grad * 2
    """
    f.__torch_unserializable__ = True  # type: ignore[attr-defined]
    return f


def warn_if_has_hooks(tensor: Any) -> None:
    """Warns of each hook in the tensor's ``_backward_hooks`` that is not marked.

    Example:
        >>> import pygrad
        >>> pygrad.utils.hooks.warn_if_has_hooks(pygrad.ones(1))
    """
    for hook in (getattr(tensor, "_backward_hooks", None) or {}).values():
        if not hasattr(hook, "__torch_unserializable__"):
            warnings.warn(
                f"backward hook {hook!r} on tensor will not be serialized.  If this is expected, "
                "you can decorate the function with @torch.utils.hooks.unserializable_hook to "
                "suppress this warning",
                stacklevel=2,
            )


if not TYPE_CHECKING:

    def __getattr__(name):
        """`BackwardHook`, which needs modules that need this one."""
        if name == "BackwardHook":
            from ..nn._hooks import BackwardHook

            return BackwardHook
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
