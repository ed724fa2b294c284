"""The garbage collector and what the engine holds: what else runs while it looks."""

from __future__ import annotations

import gc
import sys
import threading
import weakref
from collections.abc import Callable
from typing import Any

import pytest
from helpers import leaves_nothing

import pygrad
from pygrad import _boundary
from pygrad._boundary import callbacks
from pygrad.autograd import _cycles


class Thing:
    pass


def leaf(*values: float) -> Any:
    return pygrad.tensor(values, dtype=pygrad.float64, requires_grad=True)


def counting(calls: list[Any], *things: Any) -> Callable[..., None]:
    """A hook whose closure holds these things."""

    def hook(*_: Any) -> None:
        calls.append(len(things))

    return hook


def ring(thing: Any, calls: list[Any]) -> Any:
    """A tensor whose hook holds it."""
    y = leaf(1.0, 2.0).exp()
    y.register_hook(counting(calls, y, thing))
    return y


@leaves_nothing
def test_finalizers_find_all_hooks_in_place() -> None:
    calls: list[Any] = []
    y = ring(None, calls)
    out = y * 3

    class Runs:
        def __del__(self) -> None:
            out.sum().backward(retain_graph=True)

    runs = Runs()
    runs.itself = runs  # type: ignore[attr-defined]
    del runs
    gc.collect()
    assert calls == [2]


@leaves_nothing
def test_parameters_without_a_tensor_are_passed_over() -> None:
    lazy = pygrad.nn.LazyLinear(2)
    thing = Thing()
    gone = weakref.ref(thing)
    ring(thing, [])
    del thing
    gc.collect()
    assert gone() is None
    assert isinstance(lazy.weight, pygrad.nn.UninitializedParameter)


@leaves_nothing
def test_finalizers_of_the_same_garbage_may_use_it() -> None:
    seen: list[Any] = []

    class Looks:
        y: Any

        def __del__(self) -> None:
            seen.append((self.y * 2).sum().item())

    looks = Looks()
    looks.y = ring(looks, [])
    expected = (looks.y * 2).sum().item()
    del looks
    gc.collect()
    gc.collect()
    assert seen == [expected]


@leaves_nothing
def test_finalizer_may_wait_for_another_thread_that_uses_the_engine() -> None:
    results: list[float] = []

    class Waits:
        def __del__(self) -> None:
            other = threading.Thread(target=lambda: results.append((leaf(2.0) * 3).item()))
            other.start()
            other.join(10)

    waits = Waits()
    waits.y = ring(waits, [])  # type: ignore[attr-defined]
    del waits
    gc.collect()
    assert results == [6.0]


@leaves_nothing
def test_finalizer_may_take_a_hook_away() -> None:
    calls: list[Any] = []
    x = leaf(1.0)
    handles = [x.register_hook(counting(calls, x)) for _ in range(2)]

    class Removes:
        def __del__(self) -> None:
            handles[0].remove()

    removes = Removes()
    removes.itself = removes  # type: ignore[attr-defined]
    del removes
    gc.collect()
    (x * 2).backward()
    assert calls == [1]
    handles[1].remove()
    handles[1].remove()


def test_nothing_stays_behind_on_what_lives() -> None:
    y = ring(None, [])
    node = y.grad_fn
    objects = dict(callbacks.objects)
    gc.collect()
    assert not hasattr(y, "_held")
    assert not hasattr(node, "_held")
    assert callbacks.objects == objects
    assert not callbacks.shown
    assert _boundary.lock.held is None


@leaves_nothing
def test_what_else_has_a_reference_keeps_it() -> None:
    """A tensor that the collector does not know of, and one that only a graph holds."""
    calls: list[Any] = []
    thing = Thing()
    alive = weakref.ref(thing)
    hidden = ring(thing, calls)
    handle, hidden._h = hidden._h, 0  # as if the engine held it
    del hidden, thing
    gc.collect()
    assert alive() is not None
    y = pygrad._boundary.calls.wrap(handle)
    z = y.sum()
    del y
    gc.collect()
    z.backward()
    assert calls == [2]
    del z
    gc.collect()
    assert alive() is None


@leaves_nothing
def test_collection_within_a_hook_takes_nothing_that_the_backward_needs() -> None:
    calls: list[Any] = []

    def make() -> Any:
        y = ring(None, calls)
        z = y * 2
        z.register_hook(lambda grad: gc.collect() and None)
        return z.sum()

    make().backward()
    assert calls == [2]


@leaves_nothing
def test_hook_of_several_is_kept_by_each_of_them() -> None:
    calls: list[Any] = []

    def make() -> tuple[Any, Any]:
        a, b = leaf(1.0).exp(), leaf(2.0).exp()
        pygrad.autograd.graph.register_multi_grad_hook((a, b), counting(calls, a, b), mode="any")
        return a * 1, b * 1

    left, right = make()
    gc.collect()
    del left
    gc.collect()
    right.backward()
    assert calls == [2]


@leaves_nothing
def test_long_chain_is_collected(monkeypatch: pytest.MonkeyPatch) -> None:
    thing = Thing()
    alive = weakref.ref(thing)

    def make(thing: Any) -> None:
        x = y = leaf(1.0)
        for _ in range(30_000):
            y = y * 1
        x.register_hook(counting([], y, thing))

    make(thing)
    del thing
    monkeypatch.setattr(_cycles, "_MOST", 1 << 14)
    gc.collect()
    assert alive() is not None  # too much to look at
    monkeypatch.undo()
    gc.collect()
    assert alive() is None


@leaves_nothing
def test_large_graphs_are_not_looked_at_all_the_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_cycles, "_LARGE", 1)
    y = ring(None, [])
    gc.collect()
    looks: list[Any] = []
    monkeypatch.setattr(_cycles, "_hold", lambda *given: looks.append(given))
    monkeypatch.setattr(_cycles, "_rest_until", _cycles._rest_until + 1000)
    gc.collect()
    assert not looks
    monkeypatch.setattr(_cycles, "_rest_until", 0.0)
    gc.collect()
    assert len(looks) == 1
    del y
    monkeypatch.undo()
    _cycles._rest_until = 0.0
    gc.collect()


@leaves_nothing
def test_other_threads_miss_no_hook_meanwhile() -> None:
    errors: list[Any] = []
    stop = threading.Event()

    def train() -> None:
        try:
            while not stop.is_set():
                calls: list[Any] = []
                y = ring(None, calls)
                (y * 2).sum().backward()
                node = y.grad_fn
                del y
                node.metadata["node"] = node
                assert calls == [2]
        except BaseException as error:
            errors.append(error)

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    threads = [threading.Thread(target=train) for _ in range(2)]
    try:
        for thread in threads:
            thread.start()
        for _ in range(20):
            gc.collect()
    finally:
        stop.set()
        for thread in threads:
            thread.join()
        sys.setswitchinterval(interval)
    assert not errors
    gc.collect()


def test_numbers_are_watched_while_a_node_holds_them() -> None:
    gc.collect()
    pygrad.pg_live_count()
    before = set(_boundary.watched)
    y = leaf(1.0).exp()
    handle = y.register_hook(lambda g: None)
    y.grad_fn.metadata["a"] = 1
    assert len(_boundary.watched - before) == 2
    handle.remove()
    assert len(_boundary.watched - before) == 1
    del y
    assert _boundary.watched == before
