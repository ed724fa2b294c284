"""Sets of nodes that may become one."""

from __future__ import annotations

from collections.abc import Collection

from ...node import Node


def validate_partition(partition: Collection[Node]) -> bool:
    """Whether nodes can be made one without a circle: what they give leads back into none of them
    by way of others.
    """
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
