"""The objects that the engine knows by number."""

from __future__ import annotations

import itertools
from typing import Any, Final

objects: Final[dict[int, Any]] = {}
"""Hooks, pairs of hooks, packed values, dictionaries."""
shown: Final[dict[int, Any]] = {}
"""Objects held elsewhere while the garbage collector runs: weak references to boxes that have them
as `thing`; see autograd/_cycles.py.
"""
watched: Final[set[int]] = set()
"""Numbers of objects that nodes hold: while there are some, whoever may have held the last
reference to a node calls `release.drain_if_idle`, so that these objects go when they would in
PyTorch. And of what is noted on tensors of the engine, for which those who have one look when they
go.
"""
_ids = itertools.count(1)


def keep_object(thing: Any) -> int:
    """A number by which the engine knows an object; the object lives until the engine drops it."""
    ident = next(_ids)
    objects[ident] = thing
    return ident


def keep_watched(thing: Any) -> int:
    """Like `keep_object`, for an object that a node will hold and that is freed with the node."""
    ident = next(_ids)
    objects[ident] = thing
    watched.add(ident)
    return ident


def drop_object(ident: int) -> None:
    """Forgets an object that the engine no longer needs."""
    objects.pop(ident, None)
    if watched:
        watched.discard(ident)
    if shown:
        shown.pop(ident, None)


def get_object(ident: int) -> Any:
    """The object given to `keep_object`; None once the engine has released its number."""
    found = objects.get(ident)
    if found is None and ident in shown:
        box = shown[ident]()
        return None if box is None else box.thing
    return found
