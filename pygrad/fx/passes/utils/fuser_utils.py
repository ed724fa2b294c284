"""Sets of nodes that may be fused into one."""

from __future__ import annotations

from collections.abc import Collection

from ...node import Node


def validate_partition(partition: Collection[Node]) -> bool:
    """Whether nodes can be fused into one without a cycle: no path leaves them and returns."""
    inside = set(partition)
    waiting = [user for node in inside for user in node.users if user not in inside]
    seen: set[Node] = set()
    while waiting:
        node = waiting.pop()
        if node in inside:
            return False
        if node not in seen:
            seen.add(node)
            waiting += node.users
    return True
