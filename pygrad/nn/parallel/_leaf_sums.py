"""Sums of consecutive leaves by the fixed tree: a binary counter of partial sums."""

from __future__ import annotations

from collections.abc import Sequence

from ..._package import pygrad
from ..._tensor import Tensor
from ...distributed._flat import Flat
from ...distributed._tree import Node


class LeafSums:
    """One sum for each of several nodes of the tree, whose leaves come one after another.

    A node of n leaves keeps at most log2(n) + 2 tensors: sums of 8, 4, 2 and 1 leaves, say, where
    two of equal size become one. What is left in the end is added from the right, as the tree does.

    Args:
        nodes: the nodes, in order.
        like: tensors like the parts of a leaf.
    """

    def __init__(self, nodes: Sequence[Node], like: Sequence[Tensor]) -> None:
        self._sizes = [stop - start for start, stop in nodes]
        self._like = like
        self._free: list[Flat] = []
        self._counter: list[tuple[int, Flat]] = []
        self.sums: list[Flat] = []
        """Of the nodes that are complete."""

    def begin(self) -> tuple[Flat, bool]:
        """Where the next leaf goes, and whether it is added to what is there. It may be called
        again for the same leaf only before anything was added.
        """
        if self._counter and self._counter[-1][0] == 1:
            return self._counter[-1][1], True
        if not self._free:
            self._free.append(Flat(self._like))
        return self._free[-1], False

    def end(self) -> None:
        """The leaf is there."""
        leaf, added = self.begin()
        if added:
            self._counter[-1] = 2, leaf
        else:
            self._counter.append((1, self._free.pop()))
        while len(self._counter) > 1 and self._counter[-1][0] == self._counter[-2][0]:
            self._join()
        if sum(size for size, _ in self._counter) == self._sizes[len(self.sums)]:
            while len(self._counter) > 1:
                self._join()
            self.sums.append(self._counter.pop()[1])

    def _join(self) -> None:
        more, right = self._counter.pop()
        size, left = self._counter.pop()
        pygrad.add(left.tensor, right.tensor, out=left.tensor)
        self._free.append(right)
        self._counter.append((size + more, left))

    def total(self) -> Flat:
        """Where the sum of all nodes goes: the place of the first, or a new one."""
        return self.sums[0] if self.sums else Flat(self._like)

    def restart(self) -> None:
        """Forgets all leaves."""
        self._free += [flat for _, flat in self._counter]
        self._free += self.sums
        self._counter, self.sums = [], []
