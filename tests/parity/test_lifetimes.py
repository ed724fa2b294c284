"""How long what hooks, nodes and ctx refer to lives: as long as the graph needs it, and no longer
than in PyTorch, whose garbage collector sees some of the cycles through the graph. Ours sees all.
"""

from __future__ import annotations

import gc
import warnings
import weakref
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import pytest
from oracle import leaf, torch

import pygrad.torch
import pygrad.torch.utils.checkpoint
import pygrad.utils.hooks

Make = Callable[[Any, Any], Any]
"""(library, thing) -> a tensor whose graph refers to the thing."""
CYCLES: dict[str, Make] = {}


class Thing:
    """Something that a hook needs."""


def cycle(make: Make) -> Make:
    CYCLES[make.__name__] = make
    return make


def needing(*things: Any) -> Callable[..., None]:
    """A hook whose closure holds these, and which changes nothing."""

    def hook(*_: Any) -> None:
        assert things

    return hook


# ------------------------------------------------------------------ hooks


@cycle
def tensor_hook_needs_its_tensor(t: Any, thing: Any) -> Any:
    y = leaf(t, 1.0, 2.0).exp()
    y.register_hook(needing(y, thing))
    return y


@cycle
def tensor_hook_needs_its_node(t: Any, thing: Any) -> Any:
    y = leaf(t, 1.0, 2.0).exp()
    y.register_hook(needing(y.grad_fn, thing))
    return y


@cycle
def node_hook_needs_its_node(t: Any, thing: Any) -> Any:
    y = leaf(t, 1.0, 2.0).exp()
    y.grad_fn.register_hook(needing(y.grad_fn, thing))
    return y


@cycle
def node_prehook_needs_its_tensor(t: Any, thing: Any) -> Any:
    y = leaf(t, 1.0, 2.0).exp()
    y.grad_fn.register_prehook(needing(y, thing))
    return y


@cycle
def hook_of_the_middle_needs_the_end(t: Any, thing: Any) -> Any:
    y = leaf(t, 1.0, 2.0).exp()
    z = y * 2
    y.register_hook(needing(z, thing))
    return z


@cycle
def hook_of_the_end_needs_the_middle(t: Any, thing: Any) -> Any:
    y = leaf(t, 1.0, 2.0).exp()
    z = y * 2
    z.register_hook(needing(y, thing))
    y.grad_fn.register_hook(needing(z.grad_fn))
    return z


@cycle
def leaf_hook_needs_its_leaf(t: Any, thing: Any) -> Any:
    x = leaf(t, 1.0, 2.0)
    x.register_hook(needing(x, thing))
    return x


@cycle
def leaf_hook_needs_what_is_made_of_it(t: Any, thing: Any) -> Any:
    x = leaf(t, 1.0, 2.0)
    y = x * 2
    x.register_hook(needing(y, thing))
    return y


@cycle
def post_hook_needs_its_leaf(t: Any, thing: Any) -> Any:
    x = leaf(t, 1.0, 2.0)
    x.register_post_accumulate_grad_hook(needing(x, thing))
    return x


@cycle
def post_hook_needs_the_optimizer_of_its_leaf(t: Any, thing: Any) -> Any:
    x = leaf(t, 1.0, 2.0)
    x.register_post_accumulate_grad_hook(needing(t.optim.SGD([x], lr=0.1), thing))
    return x * 2


@cycle
def accumulator_hook_needs_its_leaf(t: Any, thing: Any) -> Any:
    x = leaf(t, 1.0, 2.0)
    y = x * 2
    y.grad_fn.next_functions[0][0].register_hook(needing(x, y, thing))
    return y


@cycle
def hook_of_several_needs_one(t: Any, thing: Any) -> Any:
    x = leaf(t, 1.0, 2.0)
    a, b = x * 2, x * 3
    t.autograd.graph.register_multi_grad_hook((a, b), needing(b, thing))
    return a + b


@cycle
def hook_of_several_leaves_needs_one(t: Any, thing: Any) -> Any:
    a, b = leaf(t, 1.0), leaf(t, 2.0)
    t.autograd.graph.register_multi_grad_hook((a, b), needing(b, thing), mode="any")
    return a * b


@cycle
def hook_of_a_view_needs_the_base(t: Any, thing: Any) -> Any:
    y = leaf(t, 1.0, 2.0).exp()
    v = y[:1]
    v.register_hook(needing(y, v, thing))
    return v


@cycle
def hook_of_what_is_written_to(t: Any, thing: Any) -> Any:
    y = leaf(t, 1.0, 2.0).clone()
    y.register_hook(needing(y, thing))
    return y.mul_(2)


@cycle
def hook_of_a_gradient_needs_it(t: Any, thing: Any) -> Any:
    x = leaf(t, 1.0, 2.0)
    (g,) = t.autograd.grad((x**3).sum(), x, create_graph=True)
    g.register_hook(needing(g, thing))
    return g


@cycle
def module_hook_needs_its_module(t: Any, thing: Any) -> Any:
    module = t.nn.Linear(2, 2)
    module.register_full_backward_hook(needing(module, thing))
    module.weight.register_hook(needing(module))
    return module(t.ones(2, requires_grad=True))


# ------------------------------------------------------------------ nodes, what they saved, ctx


@cycle
def metadata_has_the_tensor(t: Any, thing: Any) -> Any:
    y = leaf(t, 1.0, 2.0).exp()
    y.grad_fn.metadata["kept"] = [y, thing]
    return y


@cycle
def metadata_has_its_node(t: Any, thing: Any) -> Any:
    y = leaf(t, 1.0, 2.0).exp()
    y.grad_fn.metadata["kept"] = {"node": y.grad_fn, "thing": thing}
    return y


@cycle
def metadata_of_the_node_behind_a_gradient(t: Any, thing: Any) -> Any:
    x = leaf(t, 1.0, 2.0)
    y = x.exp()
    with t.autograd.detect_anomaly():
        (g,) = t.autograd.grad(y.sum(), x, create_graph=True)
    y.grad_fn.metadata["kept"] = thing, g
    assert g.grad_fn.metadata["parent_"] is not None
    return g


@cycle
def packed_result_is_the_result(t: Any, thing: Any) -> Any:
    with t.autograd.graph.saved_tensors_hooks(lambda x: (x, thing), lambda packed: packed[0]):
        return leaf(t, 1.0, 2.0).exp()


@cycle
def unpack_hook_needs_the_result(t: Any, thing: Any) -> Any:
    kept: list[Any] = [thing]
    with t.autograd.graph.saved_tensors_hooks(lambda x: x.detach(), lambda x: kept and x):
        kept.append(leaf(t, 1.0, 2.0).sin())
    return kept[1]


@cycle
def saved_tensor_packed_later(t: Any, thing: Any) -> Any:
    y = leaf(t, 1.0, 2.0).exp()
    y.grad_fn._raw_saved_result.register_hooks(lambda x: (x.detach(), y, thing), lambda x: x[0])
    return y


@cycle
def checkpointed_function_needs_its_result(t: Any, thing: Any) -> Any:
    kept: list[Any] = [thing]
    kept.append(
        t.utils.checkpoint.checkpoint(
            lambda x: kept and x.sin().exp(), leaf(t, 1.0, 2.0), use_reentrant=False
        )
    )
    return kept[1]


def double(t: Any, x: Any, *kept: Any) -> Any:
    class Double(t.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.y = x * 2
            ctx.kept = kept
            return ctx.y

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            return grad * 2

    return Double.apply(x)


@cycle
def ctx_has_its_output(t: Any, thing: Any) -> Any:
    return double(t, leaf(t, 1.0, 2.0), thing)


@cycle
def ctx_has_what_is_made_of_its_output(t: Any, thing: Any) -> Any:
    kept: list[Any] = []
    kept.append(double(t, leaf(t, 1.0, 2.0), thing, kept) * 3)
    return kept[0]


@cycle
def class_of_a_ctx_has_its_output(t: Any, thing: Any) -> Any:
    class Double(t.autograd.Function):  # type: ignore[misc, name-defined]
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * 2

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            assert kept
            return grad * 2

    kept = [thing, Double.apply(leaf(t, 1.0, 2.0))]
    return kept[1]


@cycle
def ctx_has_itself(t: Any, thing: Any) -> Any:
    y = double(t, leaf(t, 1.0, 2.0), thing)
    y.grad_fn.itself = y.grad_fn
    return y


@cycle
def hook_of_a_ctx_needs_it(t: Any, thing: Any) -> Any:
    y = double(t, leaf(t, 1.0, 2.0))
    y.grad_fn.register_hook(needing(y.grad_fn, thing))
    return y


# ------------------------------------------------------------------ the tests


def life(make: Make, t: Any, run: bool) -> tuple[list[bool], list[bool]]:
    """Whether the thing is there while its tensor is, before and after a backward; then whether it
    goes with the tensor, or at least when garbage is collected.
    """
    thing = Thing()
    ref = weakref.ref(thing)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        y = make(t, thing)
    del thing
    there = [ref() is not None]
    gc.collect()
    there.append(ref() is not None)
    if run:
        y.sum().backward()
        gc.collect()
        there.append(ref() is not None)
    del y
    gone = [ref() is None]
    gc.collect()
    gone.append(ref() is None)
    return there, gone


@pytest.mark.parametrize("run", [False, True], ids=["dropped", "run"])
@pytest.mark.parametrize("make", CYCLES.values(), ids=CYCLES.keys())
def test_cycle_through_the_graph_is_collected_when_the_graph_is_gone(make: Make, run: bool) -> None:
    gc.collect()
    before = pygrad.pg_live_count(), len(pygrad._boundary.callbacks.objects)
    there, gone = life(make, pygrad.torch, run)
    assert (there, gone[-1]) == (life(make, torch, run)[0], True)
    assert (pygrad.pg_live_count(), len(pygrad._boundary.callbacks.objects)) == before


def plain_hook(t: Any, thing: Any) -> Any:
    y = leaf(t, 1.0, 2.0).exp()
    y.register_hook(needing(thing))
    return y * 2


def plain_node_hook(t: Any, thing: Any) -> Any:
    y = leaf(t, 1.0, 2.0).exp()
    y.grad_fn.register_hook(needing(thing))
    return y.view(2, 1)


def plain_metadata(t: Any, thing: Any) -> Any:
    y = leaf(t, 1.0, 2.0).exp()
    y.grad_fn.metadata["kept"] = thing
    return (y * 2).sum()


def plain_packing(t: Any, thing: Any) -> Any:
    with t.autograd.graph.saved_tensors_hooks(lambda x: (x.detach(), thing), lambda p: p[0]):
        return leaf(t, 1.0, 2.0).exp() * 2


def one_of_two_outputs(t: Any, thing: Any) -> Any:
    a, b = leaf(t, 1.0, 2.0).exp().unbind(0)
    a.grad_fn.metadata["kept"] = thing
    return b + 1


def parent_in_anomaly_mode(t: Any, thing: Any) -> Any:
    x = leaf(t, 1.0, 2.0)
    y = x.exp()
    with t.autograd.detect_anomaly():
        (g,) = t.autograd.grad(y.sum(), x, create_graph=True)
    y.grad_fn.metadata["kept"] = thing
    assert g.grad_fn.metadata["parent_"] is y.grad_fn
    return g


@pytest.mark.parametrize(
    "make",
    [
        plain_hook,
        plain_node_hook,
        plain_metadata,
        plain_packing,
        one_of_two_outputs,
        parent_in_anomaly_mode,
    ],
    ids=lambda make: make.__name__,
)
def test_what_a_graph_holds_goes_with_its_last_tensor_at_once(make: Make) -> None:
    gc.disable()
    try:
        assert life(make, pygrad.torch, False)[1] == life(make, torch, False)[1] == [True, True]
    finally:
        gc.enable()


@pytest.mark.parametrize("t", [pygrad.torch, torch], ids=["pygrad", "torch"])
def test_hook_in_a_cycle_runs_as_long_as_the_graph_does(t: Any) -> None:
    calls: list[Any] = []

    def make() -> Any:
        y = leaf(t, 1.0, 2.0).exp()
        y.grad_fn.register_hook(lambda *_: calls.append(y))
        x = leaf(t, 1.0, 2.0)
        t.autograd.graph.register_multi_grad_hook((y, x), lambda g: calls.append((y, x)))
        return (y * x).sum()

    out = make()
    for _ in range(3):
        gc.collect()
        out.backward(retain_graph=True)
    assert len(calls) == 6


@pytest.mark.parametrize("t", [pygrad.torch, torch], ids=["pygrad", "torch"])
@pytest.mark.parametrize("anomaly", [False, True], ids=["", "anomaly"])
def test_graphs_made_within_hooks_die(t: Any, anomaly: bool) -> None:
    refs: list[weakref.ref[Any]] = []

    def hook(grad: Any) -> Any:
        thing = Thing()
        refs.append(weakref.ref(thing))
        with t.enable_grad():
            other = leaf(t, 1.0).exp()
            other.register_hook(needing(other, thing))
            return grad * other.sum().detach()

    def scope() -> None:
        x = leaf(t, 1.0, 2.0)
        y = x.exp()
        y.register_hook(hook)
        y.sum().backward()

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with t.autograd.detect_anomaly() if anomaly else nullcontext():
            scope()
    gc.collect()
    assert len(refs) == 1
    assert t is torch or refs[0]() is None
