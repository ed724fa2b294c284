"""The fixed order in which numbers are added, independent of the process that holds them.

The sum of n leaves is that of a binary tree: the left branch has the largest power of two of leaves
below n, the right one the rest. A node is a pair (start, stop) of leaves. A process holds a block
of leaves. It adds up the nodes within its block alone, and sends only their sums. So the sum has
the same bits for any number of processes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeVar

Node = tuple[int, int]
T = TypeVar("T")


def block(rank: int, ranks: int, leaves: int) -> range:
    """The leaves of one of several processes. Blocks are in order; the first ones are larger by
    one.

    Example:
        >>> [block(rank, 3, 8) for rank in range(3)]
        [range(0, 3), range(3, 6), range(6, 8)]
    """
    size, more = divmod(leaves, ranks)
    start = rank * size + min(rank, more)
    return range(start, start + size + (rank < more))


def middle(node: Node) -> int:
    """The leaf at which a node of two or more leaves is divided."""
    start, stop = node
    return start + (1 << (stop - start - 1).bit_length() - 1)


def cover(held: range, leaves: int) -> list[Node]:
    """The largest nodes of the tree within a block, in order.

    Example:
        >>> cover(range(3, 6), 8)
        [(3, 4), (4, 6)]
    """
    found, open_ = [], [(0, leaves)]
    while open_:
        node = open_.pop()
        start, stop = node
        if stop <= held.start or start >= held.stop or start == stop:
            continue
        if held.start <= start and stop <= held.stop:
            found.append(node)
        else:
            cut = middle(node)
            open_ += [(cut, stop), (start, cut)]
    return found


def combine(parts: Mapping[Node, T], leaves: int, add: Callable[[T, T], T]) -> T:
    """The sum of the whole tree, from the sums of nodes that cover it."""

    def value(node: Node) -> T:
        if node in parts:
            return parts[node]
        cut = middle(node)
        return add(value((node[0], cut)), value((cut, node[1])))

    return value((0, leaves))
