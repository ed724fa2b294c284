"""Custom functions beyond what PyTorch can be asked about: snapshots, lifetimes, depth, threads."""

from __future__ import annotations

import gc
import sys
import threading
import weakref
from typing import Any

import pytest
from helpers import leaves_nothing

import pygrad
from pygrad._boundary import callbacks
from pygrad.autograd import Function
from pygrad.utils.checkpoint import checkpoint


class Square(Function):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        (x,) = ctx.saved_tensors
        return 2 * x * grad


class Keeps(Function):
    """Holds its own output, which PyTorch advises against."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        ctx.y = x * 2
        return ctx.y

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        return grad * ctx.y


class Canary:
    pass


def watch(x: Any) -> tuple[Any, weakref.ref[Canary]]:
    """An output that its ctx holds, and whether the ctx lives."""
    y = Keeps.apply(x)
    y.grad_fn.canary = Canary()
    return y, weakref.ref(y.grad_fn.canary)


def leaf(*values: float) -> Any:
    return pygrad.tensor(values, dtype=pygrad.float64, requires_grad=True)


# ------------------------------------------------------------------ snapshots


def test_mutated_saved_tensor_gives_the_right_gradient() -> None:
    x = leaf(1.0, 2.0)
    a = x * 1
    y = Square.apply(a)
    a.mul_(100)
    y.sum().backward()
    assert x.grad.tolist() == [2.0, 4.0]


def test_mutating_what_saved_tensors_gives_changes_nothing() -> None:
    x = leaf(1.0, 2.0)
    a = x * 1
    y = Square.apply(a)
    for _ in range(2):
        (saved,) = y.grad_fn.saved_tensors
        with pygrad.no_grad():
            saved.mul_(50)
        assert a.tolist() == [1.0, 2.0]
        assert pygrad.autograd.grad(y.sum(), x, retain_graph=True)[0].tolist() == [2.0, 4.0]


def test_saved_leaf_has_its_history() -> None:
    x = leaf(3.0)
    y = Square.apply(x)
    (saved,) = y.grad_fn.saved_tensors
    assert saved.requires_grad
    assert pygrad.autograd.grad((saved**3).sum(), x)[0].tolist() == [27.0]


def test_double_backward_through_a_mutated_snapshot() -> None:
    x = leaf(3.0)
    a = x * 1
    y = Square.apply(a)
    a.zero_()
    (g,) = pygrad.autograd.grad(y.sum(), x, create_graph=True)
    assert pygrad.autograd.grad(g.sum(), x)[0].tolist() == [2.0]


def test_check_mode_refuses_a_mutated_saved_tensor() -> None:
    with pygrad.autograd.graph.set_saved_tensor_mode("check"):
        a = leaf(3.0) * 1
        y = Square.apply(a)
        a.zero_()
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            y.sum().backward()


# ------------------------------------------------------------------ lifetimes


@leaves_nothing
def test_graph_dies_with_its_output() -> None:
    before = len(callbacks.objects)
    x = leaf(1.0, 2.0)
    y = Square.apply(Square.apply(x))
    (g,) = pygrad.autograd.grad(y.sum(), x, create_graph=True)
    pygrad.autograd.grad(g.sum(), x)
    y = Square.apply(x)
    assert len(callbacks.objects) == before + 3
    del x, y, g
    pygrad.pg_live_count()
    assert len(callbacks.objects) == before


@leaves_nothing
def test_cycle_of_ctx_and_output_is_collected() -> None:
    x = leaf(1.0)
    y, alive = watch(x)
    gc.collect()
    assert alive() is not None
    y.sum().backward()
    assert x.grad.tolist() == [2.0]
    del y
    gc.collect()
    assert alive() is None


@leaves_nothing
def test_cycle_lives_as_long_as_the_graph_needs_it() -> None:
    x = leaf(1.0)
    y, alive = watch(x)
    z = y * 3
    del y
    gc.collect()
    z.sum().backward()
    assert x.grad.tolist() == [6.0]
    del z
    gc.collect()
    assert alive() is None


@leaves_nothing
def test_errors_leave_nothing() -> None:
    class Bad(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            if x.numel() > 2:
                raise LookupError
            return x * 1

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            if grad.numel() > 1:
                raise LookupError
            return grad, grad

    for x in (leaf(1.0), leaf(1.0, 2.0), leaf(1.0, 2.0, 3.0)):
        with pytest.raises((LookupError, RuntimeError)):
            (Bad.apply(x) * 2).sum().backward()


@leaves_nothing
def test_refused_argument_leaves_nothing() -> None:
    x = pygrad.ones(2, 3)
    view = x.unbind()[0]
    x.mul_(leaf(1.0, 2.0, 3.0))
    with pytest.raises(RuntimeError, match="A view was created in no_grad mode"):
        Square.apply(view)


@leaves_nothing
def test_forward_that_is_not_recorded_keeps_nothing() -> None:
    with pygrad.no_grad():
        assert Square.apply(leaf(2.0)).grad_fn is None
    assert Square.apply(pygrad.ones(2)).grad_fn is None


# ------------------------------------------------------------------ depth


class Deep(Function):
    @staticmethod
    def forward(ctx: Any, x: Any, levels: int) -> Any:
        ctx.save_for_backward(x)
        ctx.levels = levels
        return x * 1

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        if ctx.levels:
            with pygrad.enable_grad():
                Deep.apply(leaf(1.0), ctx.levels - 1).sum().backward()
        return grad, None


@leaves_nothing
def test_backward_nests_thousands_deep() -> None:
    before = threading.active_count()
    x = leaf(1.0)
    Deep.apply(x, 3000).sum().backward()
    assert x.grad.tolist() == [1.0]
    assert threading.active_count() == before


def test_depth_inside_a_hook() -> None:
    x = leaf(1.0)

    @pygrad.enable_grad()
    def hook(grad: Any) -> None:
        Deep.apply(leaf(1.0), 40).sum().backward()

    x.register_hook(hook)
    Square.apply(x).sum().backward()
    assert x.grad.tolist() == [2.0]


def test_hooks_within_hooks_have_an_end() -> None:
    def go(levels: int) -> None:
        x = leaf(1.0)

        @pygrad.enable_grad()
        def hook(grad: Any) -> None:
            if levels:
                go(levels - 1)

        x.register_hook(hook)
        Square.apply(x).sum().backward()

    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(20000)
    try:
        go(40)
        with pytest.raises(RecursionError, match="within each other"):
            go(500)
    finally:
        sys.setrecursionlimit(limit)
    go(3)


def test_other_threads_run_during_a_custom_backward() -> None:
    started, may_end = threading.Event(), threading.Event()

    class Waits(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * 1

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            started.set()
            assert may_end.wait(10)
            return grad * 2

    x, w = leaf(1.0), leaf(3.0)

    def run_other() -> None:
        assert started.wait(10)
        Square.apply(w).sum().backward()
        may_end.set()

    thread = threading.Thread(target=run_other)
    thread.start()
    (Waits.apply(x) * x).sum().backward()
    thread.join()
    assert (x.grad.tolist(), w.grad.tolist()) == ([3.0], [6.0])


def test_two_backwards_of_one_graph_at_once() -> None:
    """One thread's backward waits in a custom function while another's passes through it."""
    inside, turns = threading.Event(), []

    class Meets(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * 1

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            turns.append(grad.item())
            if len(turns) == 1:
                other.start()
                assert inside.wait(10)
            return grad

    x = leaf(2.0)
    y = Meets.apply(x * x)
    grads = {}

    def second() -> None:
        grads["second"] = pygrad.autograd.grad(y.sum() * 10, x, retain_graph=True)[0].item()
        inside.set()

    other = threading.Thread(target=second)
    grads["first"] = pygrad.autograd.grad(y.sum(), x, retain_graph=True)[0].item()
    other.join()
    assert grads == {"first": 4.0, "second": 40.0}


# ------------------------------------------------------------------ checkpoints


@pytest.mark.parametrize("reentrant", [True, False])
@leaves_nothing
def test_checkpoint_runs_again_on_what_its_argument_was(reentrant: bool) -> None:
    x = leaf(1.0, 2.0)
    a = x * 1
    y = checkpoint(lambda a: a * a * a, a, use_reentrant=reentrant)
    a.mul_(100)
    y.sum().backward()
    assert x.grad.tolist() == [3.0, 12.0]
    callbacks._keep.clear()  # what the last hook gave: the next one would


@leaves_nothing
def test_checkpoint_keeps_less() -> None:
    x = pygrad.ones(1000, requires_grad=True)

    def f(a: Any) -> Any:
        for _ in range(20):
            a = a.sin()
        return a

    def kept_bytes(call: Any) -> int:
        before = pygrad._C._memory()[0]
        y = call()
        size = pygrad._C._memory()[0] - before
        y.sum().backward()
        return size

    assert kept_bytes(lambda: checkpoint(f, x, use_reentrant=False)) < kept_bytes(lambda: f(x)) / 5
    callbacks._keep.clear()
