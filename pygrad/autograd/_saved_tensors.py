"""Default hooks of saved tensors, for a scope."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

from .._boundary.objects import drop_object, keep_object
from .._ground.dtypes import device, strided
from .._table import functions
from .._tensor.creation import data_as_tensor

_C = functions.C


def push_default_hooks(pack_hook: Any, unpack_hook: Any) -> None:
    """Installs a pair of hooks for values saved from now on."""
    if not callable(pack_hook) or not callable(unpack_hook):
        raise TypeError(
            "_push_saved_tensors_default_hooks(): incompatible function arguments. The "
            "following argument types are supported:\n    1. (arg0: collections.abc.Callable, "
            "arg1: collections.abc.Callable) -> None\n\nInvoked with: "
            f"{pack_hook!r}, {unpack_hook!r}"
        )
    pair = keep_object((pack_hook, unpack_hook))
    try:
        _C["_saved_hooks_push"](pair)
    except RuntimeError:  # not an error of a signal's handler: the engine may own the pair by then
        drop_object(pair)
        raise


def pop_default_hooks() -> None:
    """Removes the last pair."""
    _C["_saved_hooks_pop"]()


class saved_tensors_hooks:
    """Within the scope, values saved for backward pass through a pair of hooks.

    Args:
        pack_hook: called with each saved tensor, without recording; returns any object.
        unpack_hook: called with that object when the tensor is used; returns a tensor like it.

    Raises:
        RuntimeError: hooks are disabled. Where the hooks run: what they raise; RuntimeError if
            `pack_hook` mutates its argument; TypeError if `unpack_hook` returns no tensor.

    Example:
        >>> import pygrad
        >>> x = pygrad.ones(2, requires_grad=True)
        >>> with pygrad.autograd.graph.saved_tensors_hooks(lambda t: t.tolist(), pygrad.tensor):
        ...     y = x.exp()
        >>> y.grad_fn._raw_saved_result.data
        [2.7182817459106445, 2.7182817459106445]
        >>> y.sum().backward()
        >>> x.grad
        tensor([2.7183, 2.7183])
    """

    def __init__(self, pack_hook: Callable[[Any], Any], unpack_hook: Callable[[Any], Any]) -> None:
        self.pack_hook = pack_hook
        self.unpack_hook = unpack_hook

    def __enter__(self) -> None:
        push_default_hooks(self.pack_hook, self.unpack_hook)

    def __exit__(self, *args: object) -> None:
        pop_default_hooks()


class save_on_cpu(saved_tensors_hooks):
    """Within the scope, saved tensors live outside the engine's memory, in arrays of the host, and
    come back for backward. So they do not count towards the 4 GiB that the engine can address.

    Args:
        pin_memory: accepted as in PyTorch, where it matters for GPUs.
        device_type: accepted as in PyTorch: the device whose memory is pinned.

    Example:
        >>> import pygrad
        >>> x = pygrad.ones(2, requires_grad=True)
        >>> with pygrad.autograd.graph.save_on_cpu():
        ...     y = x.exp()
        >>> type(y.grad_fn._raw_saved_result.data[1]).__name__
        'ndarray'
        >>> y.sum().backward()
        >>> x.grad
        tensor([2.7183, 2.7183])
    """

    def __init__(self, pin_memory: bool = False, device_type: str = "cuda") -> None:
        def pack_to_host(tensor: Any) -> tuple[device, Any]:
            if tensor.layout is strided:
                return tensor.device, tensor.detach().numpy().copy(order="K")
            rebuild, (name, parts, *rest) = tensor.detach().__reduce_ex__(2)
            return tensor.device, (rebuild, name, [p.numpy().copy() for p in parts], rest)

        def unpack_from_host(packed: tuple[device, Any]) -> Any:
            if not isinstance(packed[1], tuple):
                return data_as_tensor(packed[1])
            rebuild, name, parts, rest = packed[1]
            return rebuild(name, tuple(map(data_as_tensor, parts)), *rest)

        super().__init__(pack_to_host, unpack_from_host)


class disable_saved_tensors_hooks(contextlib.ContextDecorator):
    """Within the scope, or the function it decorates, saved tensors hooks are refused or bypassed.

    Args:
        error_message: the text of the RuntimeError that `saved_tensors_hooks` raises within, and
            that entering the scope raises if there are hooks. Without a message nothing is
            raised: within the scope tensors are saved without the hooks around it.

    Example:
        >>> import pygrad
        >>> with pygrad.autograd.graph.disable_saved_tensors_hooks("no hooks here"):
        ...     with pygrad.autograd.graph.save_on_cpu():
        ...         pass
        Traceback (most recent call last):
        ...
        RuntimeError: no hooks here
    """

    def __init__(self, error_message: str | None = None) -> None:
        self.error_message = error_message

    def _recreate_cm(self) -> disable_saved_tensors_hooks:
        return type(self)(self.error_message)

    def __enter__(self) -> None:
        message = self.error_message
        if message is None:
            _C["_saved_hooks_push"](0)
            return
        if not isinstance(message, str):
            raise TypeError(
                "_saved_tensors_hooks_disable(): incompatible function arguments. The following "
                "argument types are supported:\n    1. (error_message: str, fail_if_non_empty: "
                f"bool = True) -> None\n\nInvoked with: {message!r}"
            )
        self._outer = _C["_saved_hooks_disable"](message)

    def __exit__(self, *args: object) -> None:
        if self.error_message is None:
            _C["_saved_hooks_pop"]()
        else:
            _C["_saved_hooks_disable"](self._outer)
