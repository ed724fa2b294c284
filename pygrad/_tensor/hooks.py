"""Registering a hook with the engine, and the handle that takes it away again."""

from __future__ import annotations

import functools
import weakref
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Any

from .._boundary import calls, header
from .._boundary.objects import drop_object, get_object, keep_object, objects, shown
from .._boundary.objects import watched as _watched
from .._ground.package import PACKAGE
from .._table import functions


class RemovableHandle:
    """Removes an entry from a dictionary of hooks, as PyTorch's handle of the same name does.

    Args:
        hooks_dict: the dictionary of the hook, by id.
        extra_dict: other dictionaries from which to remove the id.
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
    """The handle of a hook that the engine holds: ``remove()`` removes it; also a context manager.

    Args:
        owner: the tensor or node of the hook, or another key for `remove`.
        ident: the hook's number.
        remove: removes the hook, given the owner and the number; the engine keeps a hook that a
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

    def __copy__(self) -> EngineHandle:
        made = type(self).__new__(type(self))
        made.__dict__.update(self.__dict__)
        return made

    def __reduce__(self) -> Any:
        """A deep copy or a pickle refers to no hook: the hook stays in place."""
        return RemovableHandle, (OrderedDict(),)


# the class's name in its repr
EngineHandle.__name__ = EngineHandle.__qualname__ = "RemovableHandle"
# The module that users know, where pickle finds the classes.
RemovableHandle.__module__ = EngineHandle.__module__ = f"{PACKAGE}.utils.hooks"


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
    functions.C["_hook_remove"](tensor, ident)


def _remove_node_hook(address: int, ident: int) -> None:
    functions.C["_node_hook_remove"](address, ident)


def register_tensor_hook(tensor: Any, hook: Callable[..., Any], post: bool) -> EngineHandle:
    """Registers a hook on a tensor's gradient (or after its accumulation)."""
    calls.remember(tensor)
    add = functools.partial(_add_tensor_hook, tensor, post)
    handle = _register(tensor, hook, add, _remove_tensor_hook)
    if header.grad_fn_of(tensor._h):
        _watched.add(handle.id)
    return handle


class _OfDictionary:
    """A hook that calls the present entries of a dictionary of hooks, in order."""

    def __init__(self, hooks: Any) -> None:
        self.hooks = hooks

    def __call__(self, grad: Any) -> Any:
        replaced = None
        for hook in list(self.hooks.values()):
            found = hook(grad)
            if found is not None:
                replaced = grad = found
        return replaced


def tensor_hooks(tensor: Any) -> Any:
    """The dictionary that was set; else the hooks on a tensor's gradient by their handles' ids; or
    None.
    """
    hooks = [(ident, get_object(ident)) for ident in functions.C["_hooks_of"](tensor)]
    if not hooks:
        return tensor.__dict__.get("_backward_hooks")
    if len(hooks) == 1 and type(hooks[0][1]) is _OfDictionary:
        return hooks[0][1].hooks
    shown_now: OrderedDict[Any, Any] = OrderedDict()
    for ident, hook in hooks:
        shown_now.update(hook.hooks if type(hook) is _OfDictionary else {ident: hook})
    return shown_now


def replace_tensor_hooks(tensor: Any, hooks: Any) -> None:
    """Replaces all hooks on a tensor's gradient by those in a dictionary, including later entries;
    None: removes all hooks. A tensor that needs no gradient only keeps the dictionary.
    """
    before = functions.C["_hooks_of"](tensor)
    tensor.__dict__.pop("_backward_hooks", None)
    if hooks is not None and tensor.requires_grad:
        register_tensor_hook(tensor, _OfDictionary(hooks), post=False)
    elif hooks is not None:
        tensor.__dict__["_backward_hooks"] = hooks
    for ident in before:
        _remove_tensor_hook(tensor, ident)


def _add_tensor_hook(tensor: Any, post: bool, ident: int) -> None:
    functions.C["_hook_add"](tensor, ident, post)


def register_node_hook(node: Any, hook: Callable[..., Any], pre: bool) -> EngineHandle:
    """Registers a hook that runs after a node (or before it)."""
    add = functools.partial(_add_node_hook, node, pre)
    handle = _register(node._address, hook, add, _remove_node_hook)
    if type(node).__name__ != "AccumulateGrad":  # a leaf has one such node, with many hooks perhaps
        _watched.add(handle.id)
    return handle


def _add_node_hook(node: Any, pre: bool, ident: int) -> None:
    functions.C["_node_hook_add"](node._address, ident, pre)


def register_hook_of_several(
    tensors: Sequence[Any], hook: Any, mode: str, handle: type[EngineHandle]
) -> EngineHandle:
    """Registers one hook on the gradients of several tensors."""
    add = functools.partial(_add_hook_of_several, tuple(tensors), mode)
    return _register(EngineHandle, hook, add, _remove_hook_of_several, handle)


def _add_hook_of_several(tensors: tuple[Any, ...], mode: str, ident: int) -> None:
    functions.C["_several_hooks_add"](tensors, ident, mode)


def _remove_hook_of_several(_: Any, ident: int) -> None:
    functions.C["_several_hooks_remove"](ident)
