"""Selective checkpointing: the results of some ops of a checkpointed function are kept, so that
backward does not run these ops again.

A dispatch mode intercepts the ops while the function runs. The hooks of the checkpoint show the
tensors that each op saves for backward, which are mostly its arguments or results. In backward a
kept op returns its stored result, and the hooks get the tensors that it would save.
"""

from __future__ import annotations

from _thread import get_ident
from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import Any

from .. import _boundary, ops
from .._boundary import calls
from .._boundary.header import address_of
from .._dispatch.handlers import mode_stack
from .._dispatch.policies import op_of_call
from .._ground.tree import flatten, unflatten
from .._table import functions
from .._tensor.tensor import Tensor
from ..library import _kernels
from ._python_dispatch import TorchDispatchMode, beside

_C = functions.C
_RECOMPUTE, _CONSUMED = object(), object()
_MISMATCH = (
    "This can happen if the operations in the checkpointed region are nondeterministic or depend "
    "on global state that changed between forward and backward."
)
packers: list[Callable[[Tensor], Any]] = []
"""The pack hooks of the running checkpoints, innermost last."""
_packed: list[list[Tensor]] = []
"""The tensors saved by each running op, innermost last."""


def note(tensor: Tensor) -> None:
    """Called by a checkpoint with each tensor that its pack hook gets."""
    for each in _packed:
        each.append(tensor)


class _Scope(TorchDispatchMode):
    """A mode that passes the ops of one thread to a method. Unlike PyTorch's it runs before
    autograd, so that an op with a stored result records nothing twice.
    """

    def __init__(self) -> None:
        super().__init__()
        self._entered: list[Any] = []
        self._asking = False

    def __enter__(self) -> _Scope:
        thread = get_ident()
        self.func_counter: dict[Any, int] = defaultdict(int)

        def is_active() -> bool:
            return get_ident() == thread and not self._asking

        def intercept_op(row: int, mode: int, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
            op = op_of_call(row, mode, args, kwargs) if is_active() else None
            if op is None:
                return below(row, mode, args, kwargs)
            at = self._next(op)
            return self.call(op, at, lambda: below(row, mode, args, kwargs), mode, args, kwargs)

        def intercept_library_op(
            op: Any, args: Sequence[Any], kwargs: dict[str, Any], run: Callable[[], Any]
        ) -> Any:
            def run_unobserved() -> Any:
                was, self._asking = self._asking, True  # ignore the ops that `op` is composed of
                try:
                    return run() if outside is None else outside(op, args, kwargs, run)
                finally:
                    self._asking = was

            if not is_active():
                return run() if outside is None else outside(op, args, kwargs, run)
            mode = _boundary.INPLACE if op._schema.is_mutable else 0
            return self.call(op, self._next(op), run_unobserved, mode, args, kwargs)

        outside = _kernels.watchers[-1] if _kernels.watchers else None
        place = thread, len(mode_stack()), self
        _kernels.watchers.append(intercept_library_op)
        beside.append(place)
        below = calls.intercept(intercept_op) or calls.call_op
        self._entered.append((below, intercept_library_op, place))
        return self

    def __exit__(self, *_: object) -> None:
        below, watcher, place = self._entered.pop()
        calls.intercept(None if below is calls.call_op else below)
        beside.remove(place)
        _kernels.watchers.remove(watcher)

    def _next(self, op: Any) -> int:
        at = self.func_counter[op]
        self.func_counter[op] += 1
        return at

    def call(
        self,
        op: ops.OpOverload,
        at: int,
        run: Callable[[], Any],
        mode: int,
        args: Sequence[Any],
        kwargs: dict[str, Any],
    ) -> Any:
        """Handles call number `at` of an op."""
        raise NotImplementedError


class _VersionWrapper:
    """A tensor returned by an op: a snapshot, or in "check" mode the tensor itself."""

    def __init__(self, tensor: Tensor, keep: Callable[[Tensor], Any], checked: bool) -> None:
        plain = tensor.detach()
        self.requires_grad = tensor.requires_grad
        self._kept: Any = plain if checked else keep(plain)
        self._version = plain._version if checked else -1

    @property
    def val(self) -> Tensor:
        """The tensor without its history."""
        found: Tensor = self._kept.get().detach() if self._version < 0 else self._kept
        return found

    def get_val(self, allow_mutation: bool) -> Tensor:
        """The tensor for the recomputation, which requires a gradient if the original did."""
        if self._version < 0:
            found = self.val
        elif self._kept._version != self._version and not allow_mutation:
            raise RuntimeError(
                "Tensor cached during selective activation checkpoint has been mutated"
            )
        else:
            found = self._kept.detach()
        # Not a leaf, since the function may write to it.
        return found.requires_grad_().clone() if self.requires_grad else found


def _is(one: Tensor, other: Tensor) -> bool:
    return (
        address_of(one) == address_of(other)
        and one.shape == other.shape
        and one.dtype is other.dtype
        and one.stride() == other.stride()
    )


def _tensors(values: Any) -> list[Tensor]:
    return [leaf for leaf in flatten(values)[0] if isinstance(leaf, Tensor)]


class _Entry:
    """A kept result, and the tensors that the op saved for backward."""

    def __init__(self, inputs: Any, out: Any, saved: list[Tensor], keep: Any) -> None:
        leaves, self._spec = flatten(out)
        mode = _C["_set_saved_mode"]("snapshot")
        _C["_set_saved_mode"](mode)
        self._leaves = [
            _VersionWrapper(each, keep, mode == "check") if isinstance(each, Tensor) else each
            for each in leaves
        ]
        known = [*_tensors(inputs), *_tensors(out)]
        # Store a saved tensor as its index among arguments and results; keep any other itself.
        self._saved = [
            next((k for k, other in enumerate(known) if _is(each, other)), each.detach())
            for each in saved
        ]

    @property
    def val(self) -> Any:
        """The result, its tensors without their histories."""
        leaves = [each.val if isinstance(each, _VersionWrapper) else each for each in self._leaves]
        return unflatten(leaves, self._spec)

    def answer(self, inputs: Any, allow_mutation: bool) -> Any:
        """Passes the op's saved tensors to the pack hook; returns the result."""
        leaves = [
            each.get_val(allow_mutation) if isinstance(each, _VersionWrapper) else each
            for each in self._leaves
        ]
        out = unflatten(leaves, self._spec)
        known = [*_tensors(inputs), *_tensors(out)]
        for each in self._saved if packers else ():
            packers[-1](known[each] if isinstance(each, int) else each)
        return out


class Caching(_Scope):
    """The scope of the first call: keeps the results that the policy selects."""

    def __init__(self, policy: Callable[..., Any], storage: Any, kinds: Any, keep: Any) -> None:
        super().__init__()
        self.policy_fn, self.storage, self._keep = policy, storage, keep
        self._context, self._saving = kinds

    def call(
        self,
        op: ops.OpOverload,
        at: int,
        run: Callable[[], Any],
        mode: int,
        args: Sequence[Any],
        kwargs: dict[str, Any],
    ) -> Any:
        """Runs the op."""
        _packed.append([])
        try:
            out = run()
        finally:
            saved = _packed.pop()
        self._asking = True
        try:
            context = self._context(is_recompute=False, op_output=out)
            policy = self.policy_fn(context, op, *args, **kwargs)
        finally:
            self._asking = False
        kept = policy if isinstance(policy, bool) else policy in self._saving
        # An op that writes to its arguments must run again.
        if kept and not mode & _boundary.INPLACE and "out" not in kwargs:
            self.storage[op][at] = _Entry((args, kwargs), out, saved, self._keep)
        else:
            self.storage[op][at] = _RECOMPUTE
        return out


class Cached(_Scope):
    """The scope of the calls in backward: returns the kept results."""

    def __init__(self, storage: Any, allow_mutation: bool) -> None:
        super().__init__()
        self.storage, self.allow_cache_entry_mutation = storage, allow_mutation

    def call(
        self,
        op: ops.OpOverload,
        at: int,
        run: Callable[[], Any],
        mode: int,
        args: Sequence[Any],
        kwargs: dict[str, Any],
    ) -> Any:
        """Returns the kept result, which is valid once; runs the op if none was kept."""
        calls = self.storage.get(op)
        if calls is None:
            raise RuntimeError(
                f"{op} encountered during backward but not found in storage. {_MISMATCH}"
            )
        entry = calls.get(at)
        if entry is None:
            raise RuntimeError(
                f"{op} invocation index {at} encountered during backward but not found in storage. "
                f"{_MISMATCH}"
            )
        if entry is _CONSUMED:
            raise RuntimeError(
                "Trying to backward an extra time. You are only allowed to backward once on any "
                "region computed under selective activation checkpoint."
            )
        if entry is _RECOMPUTE:
            return run()
        calls[at] = _CONSUMED
        self._asking = True
        try:
            return entry.answer((args, kwargs), self.allow_cache_entry_mutation)
        finally:
            self._asking = False
