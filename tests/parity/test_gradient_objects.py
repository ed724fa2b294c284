"""The objects that callbacks get for gradients: in PyTorch one for each gradient, as long as
anybody has it, the engine included. The same programs in both libraries.
"""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable
from typing import Any

import pytest
from helpers import sweep_entries
from oracle import function as op_of
from oracle import is_tensor, leaves, outcome, torch
from samples import Entry
from sampling import Call, build

import pygrad

pytestmark = pytest.mark.filterwarnings("ignore")


@sweep_entries(lambda entry: op_of(entry, torch) is not None)
def test_ops_that_pass_a_gradient_on_pass_the_object_on(entry: Entry, sample: Call) -> None:
    def run(library: Any) -> Any:
        made: list[Any] = []

        def make(array: Any) -> Any:
            x = library.from_numpy(array.copy())
            if not x.is_floating_point():
                return x
            made.append(x.requires_grad_().clone())
            return made[-1]

        args, kwargs = build(sample, "float64", make, library)
        library.default_generator.manual_seed(0)
        result = op_of(entry, library)(*args, **kwargs)
        found = [t for t in leaves(result) if is_tensor(t) and t.requires_grad]
        seen: list[Any] = []
        for place, x in enumerate(made):
            if all(x._cdata != t._cdata for t in found):
                x.register_hook(lambda g, k=place: seen.append((k, getattr(g, "mark", None))))
        for place, y in enumerate(found):
            y.register_hook(lambda g, k=place: setattr(g, "mark", k))
        library.autograd.backward(found, [library.full_like(y, 2.0) for y in found])
        return sorted(seen)

    theirs = outcome(lambda: run(torch))
    if theirs.error:
        return
    assert outcome(lambda: run(pygrad)).values == theirs.values


class Thing:
    """Something whose life can be watched."""


def new(t: Any) -> Any:
    return t.ones(2, requires_grad=True)


def note(mark: Any = 1) -> Callable[[Any], None]:
    return lambda g: setattr(g, "mark", mark)


def mark_of(tensor: Any) -> Any:
    return getattr(tensor, "mark", None)


def look(seen: list[Any]) -> Callable[[Any], None]:
    return lambda g: seen.append(mark_of(g))


def double(t: Any) -> tuple[Any, Any]:
    x = new(t)
    return x, x * 2


def function(t: Any, backward: Any) -> Any:
    body = {"forward": staticmethod(lambda ctx, x: x.clone()), "backward": staticmethod(backward)}
    return type("F", (t.autograd.Function,), body).apply


def hooks_on_one_tensor(t: Any, seen: list[Any]) -> None:
    _, y = double(t)
    kept: list[Any] = []
    y.register_hook(kept.append)
    y.register_hook(note())
    y.register_hook(lambda g: seen.append((g is kept[0], mark_of(g))))
    y.sum().backward()


def noted_and_not_kept(t: Any, seen: list[Any]) -> None:
    _, y = double(t)
    for hook in (note(1), look(seen), note(2), look(seen)):
        y.register_hook(hook)
    y.sum().backward()


def kept_and_noted_later(t: Any, seen: list[Any]) -> None:
    _, y = double(t)
    kept: list[Any] = []
    y.register_hook(kept.append)
    y.register_hook(lambda g: (setattr(kept[0], "mark", 4), kept.clear(), None)[-1])
    y.register_hook(look(seen))
    y.sum().backward()


def ways_on(t: Any, seen: list[Any]) -> None:
    ways: list[Callable[[Any], Any]] = [
        lambda y: y.clone(),
        lambda y: y + 1,
        lambda y: y - 3 * y.detach(),
        lambda y: y.view(2),
        lambda y: y * 1,
        lambda y: y.add_(1) if not y.is_leaf else y,
        lambda y: t.nn.functional.dropout(y, 0.5, training=False).clone(),
        lambda y: y.to(t.float32).clone().contiguous(),
    ]
    for way in ways:
        _, y = double(t)
        y.register_hook(look(seen))
        z = way(y)
        z.register_hook(note())
        (z * 3).sum().backward()


def accumulate(t: Any, seen: list[Any]) -> None:
    _, y = double(t)
    z, w = y * 3, y.clone()  # what arrives at y from w is added to in place
    w.register_hook(note())
    y.register_hook(look(seen))
    (w.exp() + z).sum().backward()


def two_paths(t: Any, seen: list[Any]) -> None:
    _, y = double(t)
    a, b = y.clone(), y.clone()
    a.register_hook(note("a"))
    b.register_hook(lambda g: seen.append(mark_of(g)))
    y.register_hook(look(seen))
    (a + b).sum().backward()


def replace(t: Any, seen: list[Any]) -> None:
    for keep in (False, True):
        _, y = double(t)
        kept: list[Any] = []

        def hook(g: Any, keep: bool = keep, kept: Any = kept) -> Any:
            made = g * 2
            kept.append(made)
            if not keep:
                made.mark = 1
                kept.clear()
            return made

        y.register_hook(hook)
        y.register_hook(lambda g, kept=kept: seen.append((mark_of(g), [k is g for k in kept])))
        y.sum().backward()


def returned_itself(t: Any, seen: list[Any]) -> None:
    _, y = double(t)
    y.register_hook(lambda g: (setattr(g, "mark", 1), g)[1])
    y.register_hook(look(seen))
    y.grad_fn.register_prehook(lambda gs: gs)
    y.grad_fn.register_hook(lambda gi, go: seen.append(mark_of(go[0])))
    y.sum().backward()


def hooks_of_nodes(t: Any, seen: list[Any]) -> None:
    _, y = double(t)
    z = y.clone()
    z.grad_fn.register_prehook(lambda go: note(1)(go[0]))
    z.grad_fn.register_hook(lambda gi, go: seen.append((mark_of(gi[0]), gi[0] is go[0])))
    z.grad_fn.register_hook(lambda gi, go: note(2)(gi[0]))
    y.register_hook(look(seen))
    y.grad_fn.register_prehook(lambda go: look(seen)(go[0]))
    y.grad_fn.register_prehook(lambda go: ((r := go[0] * 2), setattr(r, "mark", 3))[:1])
    y.grad_fn.register_hook(lambda gi, go: look(seen)(go[0]))
    z.sum().backward()


def hooks_of_several(t: Any, seen: list[Any]) -> None:
    for mode in ("all", "any"):
        x = new(t)
        y, z = x * 2, x * 3
        y.register_hook(note(1))
        z.register_hook(note(2))
        t.autograd.graph.register_multi_grad_hook(
            (y, z), lambda gs: seen.append([mark_of(g) for g in leaves(gs)]), mode=mode
        )
        (y.clone() + z).sum().backward()


def hooks_after_a_leaf(t: Any, seen: list[Any]) -> None:
    x = new(t)
    x.register_hook(note("hook"))
    x.register_post_accumulate_grad_hook(lambda p: seen.append(mark_of(p.grad)))
    x.register_post_accumulate_grad_hook(lambda p: note(3)(p.grad))
    x.register_post_accumulate_grad_hook(lambda p: seen.append(mark_of(p.grad)))
    (x * 2).sum().backward()
    seen.append(mark_of(x.grad))
    (x * 2).sum().backward()
    seen.append(mark_of(x.grad))


def leaf_without_a_name(t: Any, seen: list[Any]) -> None:
    x = new(t)
    x.register_post_accumulate_grad_hook(note(3))
    x.register_post_accumulate_grad_hook(look(seen))
    y = (x * 2).sum()
    del x
    y.backward()


def gradients_of_leaves(t: Any, seen: list[Any]) -> None:
    a, b = new(t), new(t)
    y = a + b
    y.register_hook(note())
    a.register_hook(look(seen))
    y.sum().backward()
    seen += [mark_of(a.grad), mark_of(b.grad)]


def retain(t: Any, seen: list[Any]) -> None:
    for create_graph in (False, True):
        x, y = double(t)
        kept: list[Any] = []
        y.retain_grad()
        y.register_hook(kept.append)
        y.register_hook(note())
        (y * y).sum().backward(create_graph=create_graph)
        seen += [y.grad is kept[0], mark_of(y.grad), y.grad is y.grad]
        with t.no_grad():
            kept[0].zero_()
        seen.append(y.grad.tolist())
        x.grad = y.grad = None  # which have the graph


def retained_again(t: Any, seen: list[Any]) -> None:
    for way in (lambda y: y.sum(), lambda y: (y.t() * y.t()).sum(), lambda y: (y[0] * y[0]).sum()):
        x = t.ones(2, 3, requires_grad=True)
        y = x * 2
        y.retain_grad()
        way(y).backward(retain_graph=True)
        seen += [y.grad.stride(), y.grad.is_contiguous(), y.grad.add_(1).tolist()]
        way(y).backward()
        seen.append(y.grad.tolist())


def roots(t: Any, seen: list[Any]) -> None:
    for how in ("method", "retain", "function", "grad", "several"):
        x, y = double(t)
        start = t.ones(2)
        start.mark = how
        y.register_hook(lambda g, s=start: seen.append((g is s, mark_of(g))))
        if how in ("method", "retain"):
            y.backward(start, retain_graph=how == "retain")
        elif how == "function":
            t.autograd.backward([y], [start])
        elif how == "grad":
            t.autograd.grad(y, x, start)
        else:
            t.autograd.backward([y, y], [start, t.ones(2)])


def found_by_grad(t: Any, seen: list[Any]) -> None:
    x, y = double(t)
    kept: list[Any] = []
    y.register_hook(kept.append)
    x.register_hook(note())
    gx, gy = t.autograd.grad((y * 2).sum(), [x, y])
    seen += [mark_of(gx), gy is kept[0]]


def functions(t: Any, seen: list[Any]) -> None:
    def pass_on(ctx: Any, g: Any) -> Any:
        seen.append(mark_of(g))
        g.mark = "by a function"
        return g

    def scale(ctx: Any, g: Any) -> Any:
        made = g * 2
        made.mark = "other"
        return made

    for backward in (
        pass_on,
        scale,
        lambda ctx, g: (scale(ctx, g),),
        lambda ctx, g: (pass_on(ctx, g),),
    ):
        _, y = double(t)
        y.register_hook(look(seen))
        z = function(t, backward)(y)
        z.register_hook(note("by a hook"))
        (z * 3).sum().backward()


def functions_in_a_row(t: Any, seen: list[Any]) -> None:
    kept: list[Any] = []

    def backward(ctx: Any, g: Any) -> Any:
        seen.append([k is g for k in kept])
        kept[:] = [g]
        return g

    _, y = double(t)
    apply = function(t, backward)
    apply(apply(apply(y))).sum().backward()


def failing(t: Any, seen: list[Any]) -> None:
    def fail(g: Any) -> None:
        g.mark = 1
        raise ValueError("by the user")

    _, y = double(t)
    handle = y.register_hook(fail)
    with pytest.raises(ValueError, match="by the user"):
        y.sum().backward(retain_graph=True)
    handle.remove()
    y.register_hook(look(seen))
    y.sum().backward()


def aliases(t: Any, seen: list[Any]) -> None:
    _, y = double(t)
    y.register_hook(note())
    y.register_hook(lambda g: seen.extend([mark_of(g.detach()), mark_of(g.view(2)), mark_of(g)]))
    y.sum().backward()


def nest(t: Any, seen: list[Any]) -> None:
    def inner(g: Any) -> None:
        with t.enable_grad():
            _, z = double(t)
            z.register_hook(note("inner"))
            z.register_hook(look(seen))
            z.sum().backward()
        seen.append(mark_of(g))

    _, y = double(t)
    for hook in (note("outer"), inner, look(seen)):
        y.register_hook(hook)
    y.sum().backward()


def modules(t: Any, seen: list[Any]) -> None:
    layer = t.nn.Linear(2, 2)
    layer.register_full_backward_pre_hook(lambda m, go: note("pre")(go[0]))
    layer.register_full_backward_hook(lambda m, gi, go: seen.append(mark_of(go[0])))
    x = t.ones(1, 2, requires_grad=True)
    layer(x).sum().backward()


def lives(t: Any, seen: list[Any]) -> None:
    """What is noted goes with the gradient, in the middle of a backward."""
    watched: list[Any] = []

    def hook(g: Any) -> None:
        g.thing = Thing()
        watched.append(weakref.ref(g.thing))

    def alive(g: Any) -> None:
        seen.append(watched[0]() is not None)

    x, y = double(t)
    z = y * 3
    z.register_hook(hook)
    z.register_hook(alive)
    y.register_hook(alive)
    x.register_hook(alive)
    z.sum().backward()
    seen.append(watched[0]() is not None)


def cycles(t: Any, seen: list[Any]) -> None:
    watched: list[Any] = []

    def run() -> None:
        def hook(g: Any) -> None:
            g.thing, g.itself, g.graph = Thing(), [g], y
            watched.append(weakref.ref(g.thing))

        _, y = double(t)
        y.register_hook(hook)
        y.register_hook(lambda g: seen.append(hasattr(g, "thing")))
        y.sum().backward()

    run()
    gc.collect()
    seen.append(watched[0]() is not None)


SCRIPTS: dict[str, Callable[[Any, list[Any]], None]] = {
    f.__name__.replace("_", " "): f
    for f in (
        hooks_on_one_tensor,
        noted_and_not_kept,
        kept_and_noted_later,
        ways_on,
        accumulate,
        two_paths,
        replace,
        returned_itself,
        hooks_of_nodes,
        hooks_of_several,
        hooks_after_a_leaf,
        leaf_without_a_name,
        gradients_of_leaves,
        retain,
        retained_again,
        roots,
        found_by_grad,
        functions,
        functions_in_a_row,
        failing,
        aliases,
        nest,
        modules,
        lives,
        cycles,
    )
}


@pytest.mark.parametrize("name", SCRIPTS)
def test_objects_of_gradients(name: str) -> None:
    def run(t: Any) -> list[Any]:
        seen: list[Any] = []
        SCRIPTS[name](t, seen)
        assert seen
        return seen

    assert run(pygrad) == run(torch)


@pytest.mark.parametrize("name", SCRIPTS)
def test_nothing_of_gradients_stays(name: str) -> None:
    from pygrad._boundary import callbacks

    def run() -> tuple[int, int]:
        SCRIPTS[name](pygrad, [])
        gc.collect()
        return pygrad._boundary.live_count(), len(callbacks.objects)

    first = run()
    assert run() == first
