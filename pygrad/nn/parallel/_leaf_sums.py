"""Sums of consecutive leaves by the fixed tree: a binary counter of partial sums."""

from __future__ import annotations

from collections.abc import Sequence

from ..._tensor import namespace as pygrad
from ..._tensor.tensor import Tensor
from ...distributed._flat import Flat
from ...distributed._tree import Node


class LeafSums:
    """One sum for each of several nodes of the tree, whose leaves arrive in order.

    A node of n leaves keeps at most log2(n) + 2 tensors: sums of 8, 4, 2 and 1 leaves, say. Two
    sums of equal size are merged. The rest is added from the right at the end, as the tree does.

    Args:
        nodes: the nodes, in order.
        like: tensors with the shapes and dtypes of a leaf's parts.
    """

    def __init__(self, nodes: Sequence[Node], like: Sequence[Tensor]) -> None:
        self._sizes = [stop - start for start, stop in nodes]
        self._like = like
        self._free: list[Flat] = []
        self._counter: list[tuple[int, Flat]] = []
        self.sums: list[Flat] = []
        """The sums of the nodes that are complete."""

    def begin(self) -> tuple[Flat, bool]:
        """The destination of the next leaf, and whether to add to it or to overwrite it. A second
        call for the same leaf is valid only before anything was added.
        """
        if self._counter and self._counter[-1][0] == 1:
            return self._counter[-1][1], True
        if not self._free:
            self._free.append(Flat(self._like))
        return self._free[-1], False

    def end(self) -> None:
        """Marks the leaf as complete; merges sums of equal size."""
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
        """The destination of the sum of all nodes: the first node's sum, or a new tensor."""
        return self.sums[0] if self.sums else Flat(self._like)

    def restart(self) -> None:
        """Discards all leaves."""
        self._free += [flat for _, flat in self._counter]
        self._free += self.sums
        self._counter, self.sums = [], []
