"""Division of the leaves of a sum over all ranks among the ranks."""

from __future__ import annotations

from typing import Any

from ... import distributed as dist
from ...distributed import _tree
from ...distributed._flat import Flat
from ...distributed._reductions import sum_leaves
from ._leaf_sums import LeafSums


class Leaves:
    """The leaves of a step's sum, and the part of them that this rank holds.

    Args:
        total: the number of leaves of all ranks; None: one per rank.
        deterministic: add the leaves by the fixed tree, else by a ring.
        group: the process group.
    """

    def __init__(self, total: int | None, deterministic: bool, group: Any) -> None:
        rank, ranks = dist.get_rank(group), dist.get_world_size(group)
        self.total = ranks if total is None else total
        self.held = _tree.block(rank, ranks, self.total)
        self.ranks = ranks
        self.deterministic = deterministic
        self.group = group
        self._what = "ranks" if total is None else "micro-batches"
        if deterministic:
            self.nodes = _tree.cover(self.held, self.total)
        else:
            self.nodes = [(self.held.start, self.held.stop)] if self.held else []

    def sum(self, sums: LeafSums) -> tuple[Flat, Any]:
        """Starts the reduction; returns the destination of the sum over all ranks, and the work."""
        out = sums.total()
        if self.ranks == 1:
            return out, None
        if self.deterministic:
            partials = [flat.tensor for flat in sums.sums]
            work = sum_leaves(
                out.tensor, partials, self.total, self.group, async_op=True, what=self._what
            )
        else:
            if not sums.sums:
                out.tensor.zero_()
            work = dist.all_reduce(out.tensor, group=self.group, async_op=True, deterministic=False)
        return out, work
