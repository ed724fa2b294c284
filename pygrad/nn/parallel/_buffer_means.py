"""Averaging of buffers over micro-batches: each micro-batch starts from the same buffers, and the
step keeps the mean.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..._tensor import namespace as pygrad
from ..._tensor.tensor import Tensor
from ...distributed._flat import Flat
from ...distributed._module_states import group_by_dtype
from ._leaf_sums import LeafSums
from ._leaves import Leaves


class BufferMeans:
    """Combines the buffers of all micro-batches. Buffers of floats become the mean. Integers change
    by the sum of all changes, as if one process had counted. Unchanged buffers stay as they are.

    Args:
        buffers: returns the buffers of the module by name.
        leaves: the micro-batches.
    """

    def __init__(
        self, buffers: Callable[[], dict[str, Tensor]], leaves: Leaves, leaf: Callable[[], int]
    ) -> None:
        self._find, self._leaves, self._leaf = buffers, leaves, leaf
        self._start: list[Tensor] = []
        self._sums: list[LeafSums] = []

    def before_forward(self) -> None:
        """Resets the buffers to their values at the start of the step."""
        with pygrad.no_grad():
            if self._leaf() == 0:
                self._begin_step()
            for each, value in zip(self._buffers, self._start, strict=True):
                each.copy_(value)

    def end_leaf(self) -> None:
        """Adds the buffers of the micro-batch that has ended to the sums, as a leaf."""
        with pygrad.no_grad():
            for sums, part in zip(self._sums, self._leaf_values(), strict=True):
                flat, added = sums.begin()
                for view, value in zip(flat.views, part, strict=True):
                    pygrad.add(view, value, out=view) if added else view.copy_(value)
                sums.end()

    def finish(self) -> Callable[[], None]:
        """Starts the reduction; returns a function that waits for it and sets the buffers."""
        if not self._leaves.held:
            with pygrad.no_grad():
                self._begin_step()
        started = [self._leaves.sum(sums) for sums in self._sums]
        return lambda: self._set(started)

    # ------------------------------------------------------------ parts

    def _begin_step(self) -> None:
        named = self._find()
        self._names, self._buffers = list(named), list(named.values())
        self._start = [each.clone() for each in self._buffers]
        self._counted = [each for each in self._buffers if _is_counted(each)]
        self._averaged = list(
            group_by_dtype([each for each in self._buffers if not _is_counted(each)])
        )
        self._sums = [LeafSums(self._leaves.nodes, like) for like in self._shapes()]

    def _shapes(self) -> list[list[Tensor]]:
        changes = pygrad.zeros(len(self._buffers), dtype=pygrad.int64)
        counts = [
            changes,
            *(pygrad.zeros(each.shape, dtype=pygrad.int64) for each in self._counted),
        ]
        return [counts, *self._averaged]

    def _leaf_values(self) -> list[list[Tensor]]:
        pairs = zip(self._buffers, self._start, strict=True)
        changed = [not pygrad.equal(each, value) for each, value in pairs]
        for name, each, is_changed in zip(self._names, self._buffers, changed, strict=True):
            if is_changed and each.dtype == pygrad.bool:
                raise NotImplementedError(
                    f"DistributedDataParallel: micro_batches and a buffer of bool, {name}, that "
                    "the forward pass changes"
                )
        start = {id(each): value for each, value in zip(self._buffers, self._start, strict=True)}
        counts = [
            each.to(pygrad.int64) - start[id(each)].to(pygrad.int64) for each in self._counted
        ]
        return [[pygrad.tensor(changed, dtype=pygrad.int64), *counts], *self._averaged]

    def _set(self, started: Sequence[tuple[Flat, Any]]) -> None:
        with pygrad.no_grad():
            for _, work in started:
                if work is not None:
                    work.wait()
            (counts, _), *means = started
            changed = dict(zip(map(id, self._buffers), counts.views[0].tolist(), strict=True))
            for each, value in zip(self._buffers, self._start, strict=True):
                each.copy_(value)
            for each, count in zip(self._counted, counts.views[1:], strict=True):
                if changed[id(each)]:
                    each.add_(count)
            for (flat, _), like in zip(means, self._averaged, strict=True):
                for each, view in zip(like, flat.views, strict=True):
                    if changed[id(each)]:
                        each.copy_(view.div_(self._leaves.total))


def _is_counted(each: Tensor) -> bool:
    return not (each.is_floating_point() or each.is_complex())
