"""`pygrad.autograd.graph` with PyTorch's form of `allow_mutation_on_saved_tensors`."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary, WeakValueDictionary

import pygrad.autograd.graph as _original
from pygrad import _ops
from pygrad.autograd.graph import saved_tensors_hooks

from ..._dialect import forward

if TYPE_CHECKING:
    from pygrad.autograd.graph import *
else:
    __getattr__, __dir__ = forward(__name__)
    __all__ = list(getattr(_original, "__all__", ()))


class _Handle:
    """What a graph holds for a saved tensor. The tensor lives as long as its handle."""


class _Saved:
    """A tensor as it was saved: itself, its values then, its version then."""

    def __init__(self, tensor: Any) -> None:
        self.tensor = tensor
        self.values = _ops.C["_snapshot"](tensor)
        self.version = tensor._version

    def mutated(self) -> bool:
        """Whether the tensor was written to since."""
        return bool(self.tensor._version != self.version)


class _AllowMutationOnSavedContext:
    """What `allow_mutation_on_saved_tensors` keeps: which saved tensors are still as they were, and
    which were written to.
    """

    def __init__(self) -> None:
        self._saved: WeakKeyDictionary[_Handle, _Saved] = WeakKeyDictionary()
        self._handles: WeakValueDictionary[tuple[int, int], _Handle] = WeakValueDictionary()

    @property
    def cloned(self) -> dict[_Handle, Any]:
        """The old values of saved tensors that were written to."""
        return {handle: s.values for handle, s in self._saved.items() if s.mutated()}

    @property
    def original(self) -> dict[_Handle, Any]:
        """The saved tensors that were not."""
        return {handle: s.tensor for handle, s in self._saved.items() if not s.mutated()}

    def clear(self) -> None:
        """Forgets all of them, after which their graph is of no use."""
        self._saved.clear()
        self._handles.clear()

    def pack(self, tensor: Any) -> _Handle:
        """A handle for a tensor, the same one as long as the tensor is not written to."""
        place = (tensor._h, tensor._version)
        handle = self._handles.get(place)
        if handle is None:
            self._handles[place] = handle = _Handle()
            self._saved[handle] = _Saved(tensor)
        return handle

    def unpack(self, handle: _Handle) -> Any:
        """The values as they were saved."""
        if not _enabled or handle not in self._saved:
            raise AssertionError(
                "Trying to backward outside of the 'allow_mutation_on_saved_tensors' context"
                "in which the graph was originally recorded."
            )
        return self._saved[handle].values


_enabled = False


@contextlib.contextmanager  # type: ignore[no-redef]
def allow_mutation_on_saved_tensors() -> Iterator[_AllowMutationOnSavedContext]:
    """Within the scope, tensors saved for backward may be written to, as PyTorch has it: backward,
    which must run within it too, uses the old values.

    In pygrad that holds without the scope, at no cost; it is here for scripts that have it, and
    keeps its rules.

    Returns:
        The state of the scope: `cloned`, the old values of what was written to, and `original`,
        what was not. Cleared at the end.

    Raises:
        RuntimeError: within another such scope.
        AssertionError: from a backward outside, through what was recorded within.

    Example:
        >>> import pygrad.torch as torch
        >>> with torch.autograd.graph.allow_mutation_on_saved_tensors() as ctx:
        ...     a = torch.ones(2, requires_grad=True)
        ...     b = a.clone()
        ...     out = (b**2).sum()
        ...     _ = b.zero_()
        ...     len(ctx.cloned), len(ctx.original)
        ...     out.backward()
        (1, 0)
        >>> a.grad
        tensor([2., 2.])
    """
    global _enabled
    if _enabled:
        raise RuntimeError("allow_mutation_on_saved_tensors contexts cannot be nested")
    ctx = _AllowMutationOnSavedContext()
    with saved_tensors_hooks(ctx.pack, ctx.unpack):
        _enabled = True
        try:
            yield ctx
        finally:
            ctx.clear()
            _enabled = False
