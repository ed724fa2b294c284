"""Garbage collection of cycles through the engine, whose references Python's collector cannot see.

The engine keeps some Python objects alive by a number, for a tensor or node: hooks, a node's
dictionary, results of pack hooks, the ctx of a custom function. If such an object refers back to
its tensor or node, reference counting never frees the two.

While a full collection runs, such an object is held by the Python objects of the tensors and nodes
through which it is reached, instead of by its number; so the collector finds out whether anything
else reaches it. This is done only for tensors and nodes all of whose references come from Python
objects or from each other. One with a further reference, for example from a running backward, is
alive, with everything that it reaches.
"""

from __future__ import annotations

import gc
import time
import traceback
import weakref
from collections.abc import Iterable, Sequence
from types import FunctionType
from typing import Any, Final

from .. import _boundary
from .._boundary import callbacks
from .._ground.uninterrupted import skip_entry_interrupts
from .._table import functions
from .._tensor.base import TensorBase
from . import graph
from .function import BackwardCFunction

_FEW: Final = 1 << 12
_MOST: Final = 1 << 21
"""Words for the engine to describe itself in; above the second nothing is shown."""
_ID: Final = (1 << 32) - 1
_LARGE: Final = 1 << 20
"""Words from which on showing them may take a quarter of the time at most."""


class _Box:
    """An object that the engine holds by a number."""

    __slots__ = ("__weakref__", "thing")

    def __init__(self, thing: Any) -> None:
        self.thing = thing


class _Canary:
    """Garbage whose weak reference is cleared once the collector has found all garbage."""

    __slots__ = ("__weakref__", "itself")

    def __init__(self) -> None:
        self.itself = self


_places: Final[list[weakref.ref[Any]]] = []
"""Objects whose `_held` refers to the things they hold, while a collection runs."""
_canaries: Final[list[weakref.ref[_Canary]]] = []
"""The canaries of the running collection."""


def _ignore(_: Any) -> None:
    """Callback of weak references that must be cleared before finalizers run: references with a
    callback always are.
    """


def _may_reach_tensor(thing: Any, depth: int = 3) -> bool:
    """Whether a tensor or node may be reached from an object, other than through the globals of a
    module: not from a function without a closure, nor from numbers.
    """
    kind = type(thing)
    if kind is FunctionType:
        return bool(thing.__closure__ or thing.__defaults__ or thing.__kwdefaults__)
    if kind is traceback.StackSummary or not gc.is_tracked(thing):
        return False
    if not depth:
        return True
    if issubclass(kind, (tuple, list)):
        return any(_may_reach_tensor(item, depth - 1) for item in thing)
    if kind is dict:
        return any(_may_reach_tensor(item, depth - 1) for item in list(thing.values()))
    if issubclass(kind, BackwardCFunction):
        if "<locals>" in thing._forward_cls.__qualname__:
            return True  # a class with closures
        return any(_may_reach_tensor(item, depth - 1) for item in list(vars(thing).values()))
    return True


def _kinds(kind: type[Any]) -> set[type[Any]]:
    """A class and all its subclasses."""
    found = {kind}
    below: type[Any]
    for below in kind.__subclasses__():
        found |= _kinds(below)
    return found


def _objects_of_the_engine() -> dict[int, list[Any]]:
    """Every Python object of a tensor or node, by address; each holds one reference."""
    found: dict[int, list[Any]] = {}
    for address, ref in list(graph._nodes.items()):
        node = ref()
        if node is not None:
            found.setdefault(address, []).append(node)
    handle = TensorBase._h  # uninitialized parameters override it
    tensors = {kind for kind in _kinds(TensorBase) if kind._h is handle}
    for each in gc.get_objects():
        if type(each) in tensors and (address := getattr(each, "_h", 0)):
            found.setdefault(address, []).append(each)
    return found


def _ask(addresses: Sequence[int]) -> list[int]:
    """The records of op_owned in wasm_core/walk/owned.c; none if there are too many."""
    most = _FEW
    words: list[int] = []
    while not words and most <= _MOST:
        words = functions.C["_owned"](addresses, most)
        most <<= 3
    return words


class _Graph:
    """The part of the engine's graph that Python objects reach.

    Attributes:
        words, at: the records, and the index at which an address's record begins.
        above: by address, the addresses that refer to it, once for each reference.
        holders: the addresses that hold an object, by its number + 2^32 * expected count.
    """

    __slots__ = ("above", "at", "holders", "words")

    def __init__(self, addresses: Sequence[int]) -> None:
        self.words = words = _ask(addresses)
        self.at: dict[int, int] = {}
        self.holders: dict[int, list[int]] = {}
        k = 0
        while k < len(words):
            self.at[words[k]] = k
            k = words.index(0, k) + 1
        self.above: dict[int, list[int]] = {address: [] for address in self.at}
        above = self.above
        for address in self.at:
            for item in self.owned_items(address):
                if item in above:
                    above[item].append(address)
                elif item < 0:
                    self.holders.setdefault(-item, []).append(address)

    def owned_items(self, address: int) -> list[int]:
        """The things that an address owns: references, and objects as negative words."""
        k = self.at[address] + 2
        return self.words[k : self.words.index(0, k)]

    def alive(self, faces: dict[int, list[Any]]) -> set[int]:
        """Everything with a reference from outside these objects and each other, and all that it
        reaches.
        """
        words, above = self.words, self.above
        none: list[Any] = []
        found = {
            address
            for address, k in self.at.items()
            if words[k + 1] != len(above[address]) + len(faces.get(address, none))
        }
        waiting = list(found)
        while waiting:
            for item in self.owned_items(waiting.pop()):
                if item in above and item not in found:
                    found.add(item)
                    waiting.append(item)
        return found

    def ancestors(self, addresses: Iterable[int]) -> set[int]:
        """The addresses and all that reach one of them."""
        found = set(addresses)
        waiting = list(found)
        while waiting:
            for item in self.above[waiting.pop()]:
                if item not in found:
                    found.add(item)
                    waiting.append(item)
        return found


def _hold(faces: dict[int, list[Any]], wanted: set[int]) -> bool:
    """Lets the Python objects hold the objects that the engine holds through them alone.

    Returns: whether the graph was large.
    """
    graph = _Graph(list(faces))
    alive = graph.alive(faces)
    held = {
        word & _ID: holders
        for word, holders in graph.holders.items()
        if word & _ID in wanted and len(holders) == (word >> 32 or 1) and alive.isdisjoint(holders)
    }
    reaching = graph.ancestors(at for holders in held.values() for at in holders)
    links: dict[int, list[Any]] = {at: [] for at in reaching}
    for at, link in links.items():
        for above in graph.above[at]:
            links[above].append(link)
        for face in faces.get(at, ()):
            object.__setattr__(face, "_held", link)
            _places.append(weakref.ref(face, _ignore))
    for ident, holders in held.items():
        if ident in callbacks.objects:
            box = _Box(callbacks.objects[ident])
            for at in holders:
                links[at].append(box)
            callbacks.shown[ident] = weakref.ref(box, _ignore)
            callbacks.objects.pop(ident, None)
    return len(graph.words) > _LARGE


def _show() -> None:
    global _rest_until
    if not _boundary.used_by_one():
        return  # other threads' objects may be on their way into the engine, or out of it
    begun = time.monotonic()
    if begun < _rest_until:
        return
    wanted = {ident for ident, thing in list(callbacks.objects.items()) if _may_reach_tensor(thing)}
    if not wanted or not _boundary.drain_if_idle():
        return
    _canaries.append(weakref.ref(_Canary(), _hide))
    wanted &= callbacks.objects.keys()
    if not wanted:
        return
    faces = _objects_of_the_engine()
    _boundary.before_use.append(_hide)
    try:
        large = _hold(faces, wanted)
    except BaseException:
        _hide()
        raise
    _boundary.lock.free = False  # makes the next call run `before_use`
    if large:
        end = time.monotonic()
        _rest_until = end + 3 * (end - begun)


_rest_until = 0.0


def _hide(_: Any = None) -> None:
    """Undoes `_show`: the engine holds the live objects again. Runs before any finalizer, as weak
    references to garbage are cleared first, and before the engine is used. If a signal's handler
    interrupts it, the next call of the engine starts it anew.
    """
    for ident, ref in list(callbacks.shown.items()):
        box = ref()
        if box is not None and ident in callbacks.shown:
            callbacks.objects[ident] = box.thing
    callbacks.shown.clear()
    while _places:
        face = _places[-1]()
        if face is not None and hasattr(face, "_held"):
            object.__delattr__(face, "_held")
        del _places[-1:]
    _canaries.clear()
    _boundary.before_use.clear()


@skip_entry_interrupts
def _on_collection(phase: str, info: dict[str, int]) -> None:
    if info["generation"] == 2:
        if phase == "start":
            if callbacks.objects:
                _show()
        elif _canaries:
            _hide()


_boundary.process.hear(gc.callbacks, _on_collection)
