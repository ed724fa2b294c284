"""Checkpoints: the same programs in both libraries."""

from __future__ import annotations

import contextlib
import importlib
import re
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from oracle import Scripts, both, leaf

import pygrad

SCRIPTS = Scripts()
script = SCRIPTS.add


def module(t: Any) -> Any:
    return importlib.import_module(f"{t.__name__}.utils.checkpoint")


def either(name: str) -> Callable[[Callable[..., Any]], None]:
    """A script for each kind of checkpoint: ``body(t, checkpoint, reentrant)``."""

    def register(body: Callable[..., Any]) -> None:
        for reentrant in (True, False):

            def run(t: Any, reentrant: bool = reentrant) -> Any:
                def checkpoint(f: Any, *args: Any, **kwargs: Any) -> Any:
                    return module(t).checkpoint(f, *args, use_reentrant=reentrant, **kwargs)

                return body(t, checkpoint, reentrant)

            SCRIPTS[f"{name}_{'reentrant' if reentrant else 'not'}"] = run

    return register


@either("values")
def _(t: Any, checkpoint: Any, _: bool) -> Any:
    x, w = leaf(t, 1.0, 2.0), leaf(t, 3.0, 4.0)
    calls = []

    def f(a: Any, b: Any, n: int) -> Any:
        calls.append((t.is_grad_enabled(), a.requires_grad, b.is_leaf))
        return (a * b).exp() * n, a.sin()

    y, z = checkpoint(f, x, w * 0.1, 3)
    (y.sum() + z.sum() * 2).backward()
    return y, z, x.grad, w.grad, len(calls), calls[0][0] if _ is False else None


@either("nested")
def _(t: Any, checkpoint: Any, _: bool) -> Any:
    x, counts = leaf(t, 1.0, 2.0), [0, 0, 0]

    def level(n: int) -> Any:
        def f(a: Any) -> Any:
            counts[n] += 1
            b = a.sin() * a
            return checkpoint(level(n + 1), b).exp() if n < 2 else b.exp()

        return f

    y = checkpoint(level(0), x)
    y.sum().backward()
    return y, x.grad, counts


@either("random_numbers")
def _(t: Any, checkpoint: Any, _: bool) -> Any:
    x = leaf(t, *[1.0] * 20)
    t.manual_seed(3)
    y = checkpoint(lambda a: t.nn.functional.dropout(a * a, 0.5), x)
    after = t.rand(2)
    y.sum().backward()
    return y, x.grad, after, t.rand(2)


@either("random_numbers_not_kept")
def _(t: Any, checkpoint: Any, _: bool) -> Any:
    x = leaf(t, *[1.0] * 20)
    t.manual_seed(3)
    y = checkpoint(lambda a: t.nn.functional.dropout(a * a, 0.5).exp(), x, preserve_rng_state=False)
    y.sum().backward()
    return y, x.grad, t.rand(2)


@either("grad")
def _(t: Any, checkpoint: Any, _: bool) -> Any:
    x = leaf(t, 1.0)
    return t.autograd.grad(checkpoint(lambda a: a.exp().sin(), x).sum(), x)


@either("backward_with_inputs")
def _(t: Any, checkpoint: Any, _: bool) -> Any:
    x = leaf(t, 1.0)
    checkpoint(lambda a: a.exp().sin(), x).sum().backward(inputs=[x])
    return x.grad


@either("no_input_requires_grad")
def _(t: Any, checkpoint: Any, _: bool) -> Any:
    x, w = t.ones(2), leaf(t, 2.0)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        y = checkpoint(lambda a: a * w, x)
    return y, y.requires_grad, [str(each.message) for each in caught]


@either("under_no_grad")
def _(t: Any, checkpoint: Any, _: bool) -> Any:
    with t.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        y = checkpoint(lambda a: a.exp(), leaf(t, 1.0))
    return y, y.requires_grad


@either("output_that_does_not_require_grad")
def _(t: Any, checkpoint: Any, _: bool) -> Any:
    x = leaf(t, 1.0)
    y, z, n = checkpoint(lambda a: (a.exp(), a.detach() * 2, 3), x)
    (y.sum() + z.sum()).backward()
    return x.grad, z, n


@either("none_requires_grad")
def _(t: Any, checkpoint: Any, _: bool) -> Any:
    x = leaf(t, 1.0)
    checkpoint(lambda a: a.detach() * 2, x).sum().backward()


@either("backward_twice")
def _(t: Any, checkpoint: Any, _: bool) -> Any:
    x = leaf(t, 1.0)
    y = checkpoint(lambda a: a.exp().sin(), x).sum()
    y.backward(retain_graph=True)
    y.backward()
    assert x.grad is not None
    y.backward()


@either("error_inside")
def _(t: Any, checkpoint: Any, _: bool) -> Any:
    def f(a: Any) -> Any:
        raise LookupError("inside")

    checkpoint(f, leaf(t, 1.0))


@either("error_again")
def _(t: Any, checkpoint: Any, _: bool) -> Any:
    calls: list[int] = []

    def f(a: Any) -> Any:
        calls.append(1)
        if len(calls) > 1:
            raise LookupError("again")
        return a.exp()

    checkpoint(f, leaf(t, 1.0)).sum().backward()


@either("module")
def _(t: Any, checkpoint: Any, _: bool) -> Any:
    t.manual_seed(1)
    net = t.nn.Sequential(t.nn.Linear(3, 4), t.nn.Tanh(), t.nn.Linear(4, 2)).double()
    x = t.ones(2, 3, dtype=t.float64, requires_grad=True)
    checkpoint(net, x).sum().backward()
    return [p.grad for p in net.parameters()], x.grad


@either("many")
def _(t: Any, checkpoint: Any, _: bool) -> Any:
    x = leaf(t, 0.5)
    y = x
    for _k in range(5):
        y = checkpoint(lambda a: a.sin() * a.exp(), y)
    y.sum().backward()
    return y, x.grad


@script
def second_derivative(t: Any) -> Any:
    x = leaf(t, 0.5, 2.0)
    y = module(t).checkpoint(lambda a: a.sin() * a.exp(), x, use_reentrant=False)
    (g,) = t.autograd.grad(y.sum(), x, create_graph=True)
    return g, t.autograd.grad(g.sum(), x)


@script
def keyword_arguments(t: Any) -> Any:
    x, w = leaf(t, 1.0), leaf(t, 2.0)

    def f(a: Any, *, b: Any) -> Any:
        return (a * b).exp()

    y = module(t).checkpoint(f, x, b=w, use_reentrant=False)
    y.sum().backward()
    return y, x.grad, w.grad


@script
def keyword_arguments_reentrant(t: Any) -> Any:
    module(t).checkpoint(lambda a: a, leaf(t, 1.0), b=3, c=4, use_reentrant=True)


@script
def contexts(t: Any) -> Any:
    order: list[str] = []

    @contextlib.contextmanager
    def note(name: str) -> Iterator[None]:
        order.append(f"enter {name}")
        yield
        order.append(f"exit {name}")

    x = leaf(t, 1.0)
    y = module(t).checkpoint(
        lambda a: a.exp().sin(),
        x,
        use_reentrant=False,
        context_fn=lambda: (note("forward"), note("again")),
        early_stop=False,
    )
    y.sum().backward()
    return order, x.grad


@script
def contexts_reentrant(t: Any) -> Any:
    def context_fn() -> Any:
        return contextlib.nullcontext(), contextlib.nullcontext()

    module(t).checkpoint(lambda a: a, leaf(t, 1.0), use_reentrant=True, context_fn=context_fn)


@script
def debug_reentrant(t: Any) -> Any:
    module(t).checkpoint(lambda a: a, leaf(t, 1.0), use_reentrant=True, debug=True)


def read_log(message: str) -> list[Any]:
    """The headings of a debugging error, and the names in its two lists of operators."""
    headings = re.findall(r"\| +(\d\. .*?) +\|", message)
    lists = re.findall(r"Operations executed during .*?:\n\n(.*?)\n\n", message, re.DOTALL)
    names = [re.findall(r"aten\.(\w+)", each) for each in lists]
    counts = [int(n) for n in re.findall(r"of (\d+) in original", message)]
    end = "ERROR: Detected non-determinism while running activation checkpointing" in message
    return [headings, [[n for n in each if n != "detach"] for each in names], counts, end]


@script
def debug_shows_operators(t: Any) -> Any:
    calls: list[int] = []

    def f(a: Any) -> Any:
        calls.append(1)
        return a.sin().exp() if len(calls) % 2 else a.sin().repeat(2).exp()

    x = leaf(t, 1.0, 2.0)
    found: list[Any] = []
    for scope in (contextlib.nullcontext(), module(t).set_checkpoint_debug_enabled(True)):
        with scope:
            y = module(t).checkpoint(f, x, use_reentrant=False, debug=not found)
        try:
            y.sum().backward()
        except module(t).CheckpointError as error:
            found += [*read_log(str(error)), Path(__file__).name in str(error)]
            found.append(str(error.__cause__).partition("\n.")[0])
    y = module(t).checkpoint(t.exp, x, use_reentrant=False, debug=True)
    y.sum().backward()
    return found, x.grad


def test_debug_beside_a_profile() -> None:
    calls: list[int] = []

    def f(a: Any) -> Any:
        calls.append(1)
        return a.exp() if len(calls) == 1 else a.repeat(2).exp()

    x = pygrad.ones(2, requires_grad=True)
    m = module(pygrad)
    with pygrad.autograd.profiler.profile():
        y = m.checkpoint(f, x, use_reentrant=False, debug=True)
        with pytest.raises(m.CheckpointError, match="a profile was running"):
            y.sum().backward()


@script
def debug_with_contexts(t: Any) -> Any:
    def context_fn() -> Any:
        return contextlib.nullcontext(), contextlib.nullcontext()

    f = module(t).checkpoint
    f(lambda a: a, leaf(t, 1.0), use_reentrant=False, debug=True, context_fn=context_fn)


@script
def context_that_suppresses(t: Any) -> Any:
    def f(a: Any) -> Any:
        raise LookupError

    def context_fn() -> Any:
        return contextlib.suppress(LookupError), contextlib.nullcontext()

    module(t).checkpoint(f, leaf(t, 1.0), use_reentrant=False, context_fn=context_fn)


@script
def unknown_check(t: Any) -> Any:
    f = module(t).checkpoint
    f(lambda a: a, leaf(t, 1.0), use_reentrant=False, determinism_check="strict")


@script
def neither_kind_named(t: Any) -> Any:
    x = leaf(t, 1.0)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        y = module(t).checkpoint(lambda a: a.exp(), x)
        z = module(t).checkpoint_sequential([t.exp, t.sin], 2, x)
    return y, z, y.grad_fn.name(), [str(each.message) for each in caught]


def differing(name: str, f: Callable[[int, Any], Any], **options: Any) -> None:
    def run(t: Any) -> Any:
        calls: list[int] = []

        def again(a: Any) -> Any:
            calls.append(1)
            return f(len(calls), a)

        x = leaf(t, 1.0, 2.0)
        y = module(t).checkpoint(again, x, use_reentrant=False, **options)
        y.sum().backward()
        return x.grad, len(calls)

    SCRIPTS[f"differs_{name}"] = run


differing("fewer", lambda n, a: a.exp().sin() if n == 1 else a.exp())
differing("more", lambda n, a: a.exp() if n == 1 else a.exp().sin(), early_stop=False)
differing("more_unseen", lambda n, a: a.exp() if n == 1 else a.exp().sin())
differing("shape", lambda n, a: a.exp() if n == 1 else a.repeat(2).exp())
differing("shape_of_two", lambda n, a: a.exp().sin() if n == 1 else a[:1].exp().sin())
differing("dtype", lambda n, a: a.exp().sin() if n == 1 else a.float().exp().sin())
differing("unchecked", lambda n, a: a.sin() if n == 1 else a.cos(), determinism_check="none")


def add_script(early: Any, scope: Any) -> None:
    def run(t: Any) -> Any:
        order: list[str] = []

        def f(a: Any) -> Any:
            order.append("first")
            a = a.exp()
            order.append("second")
            a = a.sin()
            order.append("third")
            return a + 1

        m, x = module(t), leaf(t, 1.0)
        guard = contextlib.nullcontext() if scope is None else m.set_checkpoint_early_stop(scope)
        with guard:
            y = m.checkpoint(f, x, use_reentrant=False, early_stop=early)
        y.sum().backward()
        return order, x.grad

    SCRIPTS[f"early_stop_{early}_{scope}"] = run


for _early in (True, False):
    for _scope in (None, True, False):
        add_script(_early, _scope)


@script
def sequential(t: Any) -> Any:
    results: list[Any] = []
    for reentrant in (True, False):
        for segments in (1, 2, 3, 4):
            t.manual_seed(0)
            net = t.nn.Sequential(*[t.nn.Linear(3, 3).double() for _ in range(7)])
            x = t.ones(2, 3, dtype=t.float64, requires_grad=True)
            y = module(t).checkpoint_sequential(net, segments, x, use_reentrant=reentrant)
            y.sum().backward()
            results += [y, x.grad, *[p.grad for p in net.parameters()]]
    return results


@script
def sequential_keywords(t: Any) -> Any:
    module(t).checkpoint_sequential([t.exp], 1, leaf(t, 1.0), use_reentrant=False, b=3)


@script
def sequential_segments(t: Any) -> Any:
    module(t).checkpoint_sequential([t.exp], 3, leaf(t, 1.0), use_reentrant=False)


@script
def saved_tensors_of_a_custom_function(t: Any) -> Any:
    class Square(t.autograd.Function):  # type: ignore[misc,name-defined]
        @staticmethod
        def forward(ctx: Any, a: Any) -> Any:
            ctx.save_for_backward(a)
            return a * a

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return 2 * ctx.saved_tensors[0] * g

    x = leaf(t, 3.0)
    y = module(t).checkpoint(lambda a: Square.apply(a.exp()), x, use_reentrant=False)
    y.sum().backward()
    return y, x.grad


@script
def saved_tensors_looked_at_twice(t: Any) -> Any:
    class Square(t.autograd.Function):  # type: ignore[misc,name-defined]
        @staticmethod
        def forward(ctx: Any, a: Any) -> Any:
            ctx.save_for_backward(a)
            return a * a

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return ctx.saved_tensors[0] * g + ctx.saved_tensors[0] * g

    x = leaf(t, 3.0)
    module(t).checkpoint(Square.apply, x, use_reentrant=False).sum().backward()


@script
def graph_exec_group(t: Any) -> Any:
    m, calls = module(t), []

    def f(a: Any) -> Any:
        calls.append(1)
        return a.exp(), a.sin()

    x = leaf(t, 1.0)
    y, z = m.checkpoint(f, x, use_reentrant=False, early_stop=False)
    with m.GraphExecGroup():
        y.sum().backward(retain_graph=True)
        z.sum().backward()
    return x.grad, len(calls)


@script
def graph_exec_groups_nested(t: Any) -> Any:
    group = module(t).GraphExecGroup
    try:
        with group(), group():
            pass
    except RuntimeError as error:
        return str(error).split(" <")[0]


@script
def backward_inside_the_function(t: Any) -> Any:
    def f(a: Any) -> Any:
        b = a.sin()
        (g,) = t.autograd.grad(b.sum(), a, create_graph=True)
        return g.exp()

    x = leaf(t, 0.5)
    y = module(t).checkpoint(f, x, use_reentrant=False)
    y.sum().backward()
    return y, x.grad


@script
def helpers(t: Any) -> Any:
    m = module(t)
    x = leaf(t, 1.0)
    a, b, c = m.detach_variable((x, x * 2, 3))
    return a.requires_grad, b.is_leaf, b.requires_grad, c, m.get_device_states(x)


@script
def detach_a_list(t: Any) -> Any:
    module(t).detach_variable([leaf(t, 1.0)])


@script
def saved_arguments_are_the_objects_that_were_given(t: Any) -> Any:
    seen: list[Any] = []

    class Keeps(t.autograd.Function):  # type: ignore[misc]
        @staticmethod
        def forward(ctx: Any, x: Any, y: Any) -> Any:
            ctx.save_for_backward(y)
            return x.clone()

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            seen.extend(ctx.saved_tensors)
            return g, None

    x, y = leaf(t, 1.0), t.ones(2)
    mode = (
        t.autograd.graph.set_saved_tensor_mode("check") if t is pygrad else contextlib.nullcontext()
    )
    with mode:
        module(t).checkpoint(Keeps.apply, x, y, use_reentrant=False).sum().backward()
    return seen[0] is y, x.grad


@pytest.mark.parametrize("name", SCRIPTS)
def test_same_in_both(name: str) -> None:
    both(SCRIPTS[name])
