"""`pygrad.autograd.graph` with PyTorch's form of `allow_mutation_on_saved_tensors`."""

from __future__ import annotations

import contextlib
from collections import defaultdict
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary, WeakValueDictionary

from ... import _boundary
from ..._boundary import header
from ..._install.dialect import forward
from ..._table import functions as _functions
from ...autograd import graph as _original
from ...autograd.graph import saved_tensors_hooks

if TYPE_CHECKING:
    from ...autograd.graph import *
else:
    __getattr__, __dir__ = forward(__name__)
    __all__ = list(getattr(_original, "__all__", ()))


class _Handle:
    """A graph's placeholder for a saved tensor. The tensor lives as long as its handle."""


class _Saved:
    """A tensor as it was saved: itself, its values then, its version then."""

    def __init__(self, tensor: Any) -> None:
        self.tensor = tensor
        self.values = _functions.C["_snapshot"](tensor)
        self.version = tensor._version

    def is_mutated(self) -> bool:
        """Whether the tensor was written to since."""
        return bool(self.tensor._version != self.version)


class _AllowMutationOnSavedContext:
    """The state of `allow_mutation_on_saved_tensors`: the saved tensors that are unchanged, and
    those that were written to.

    Attributes:
        tid_to_weakhandle: the handle of a tensor, by the tensor's handle in the engine, the address
            of its first element and its version. It lives as long as a graph holds it.
        sid_to_tid: the saved tensors by address and version.
    """

    def __init__(self) -> None:
        self._saved: WeakKeyDictionary[_Handle, _Saved] = WeakKeyDictionary()
        self.tid_to_weakhandle: WeakValueDictionary[_Tid, _Handle] = WeakValueDictionary()
        self.sid_to_tid: defaultdict[tuple[int, int], set[_Tid]] = defaultdict(set)

    @property
    def cloned(self) -> WeakKeyDictionary[_Handle, Any]:
        """The old values of saved tensors that were written to."""
        _boundary.drain_if_idle()  # frees handles of dead graphs
        saved = self._saved.items()
        return WeakKeyDictionary({handle: s.values for handle, s in saved if s.is_mutated()})

    @property
    def original(self) -> WeakKeyDictionary[_Handle, Any]:
        """The saved tensors that were not written to."""
        _boundary.drain_if_idle()
        saved = self._saved.items()
        return WeakKeyDictionary({handle: s.tensor for handle, s in saved if not s.is_mutated()})

    def clear(self) -> None:
        """Forgets all saved tensors; their graph cannot be used afterwards."""
        self._saved.clear()
        self.tid_to_weakhandle.clear()
        self.sid_to_tid.clear()

    def _pack(self, tensor: Any) -> _Handle:
        """A handle for a tensor, the same until the tensor is written to."""
        # Not `data_ptr`, which pins the storage: the address is only compared.
        place, version = header.place_of(tensor), tensor._version
        tid = (tensor._h, place, version)
        self.sid_to_tid[place, version].add(tid)
        handle = self.tid_to_weakhandle.get(tid)
        if handle is None:
            self.tid_to_weakhandle[tid] = handle = _Handle()
            self._saved[handle] = _Saved(tensor)
        return handle

    def _unpack(self, handle: _Handle) -> Any:
        """The values as they were saved."""
        if not _enabled or handle not in self._saved:
            raise AssertionError(
                "Trying to backward outside of the 'allow_mutation_on_saved_tensors' context"
                "in which the graph was originally recorded."
            )
        return self._saved[handle].values


_Tid = tuple[int, int, int]
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
        AssertionError: from a backward outside, through a graph recorded within.

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
    with saved_tensors_hooks(ctx._pack, ctx._unpack):
        _enabled = True
        try:
            yield ctx
        finally:
            ctx.clear()
            _enabled = False
