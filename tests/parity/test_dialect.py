"""`pygrad.torch` beside torch: imports, and the scope in which saved tensors may be written to."""

from __future__ import annotations

import importlib
from typing import Any

import pytest
import torch
from oracle import Scripts, assert_same_outcome, leaf, outcome, result_or_error

import pygrad.torch

SCRIPTS = Scripts()
script = SCRIPTS.add


def scope(t: Any) -> Any:
    return t.autograd.graph.allow_mutation_on_saved_tensors()


def counts(ctx: Any) -> tuple[int, int]:
    return len(ctx.cloned), len(ctx.original)


@script
def the_example_of_the_docs(t: Any) -> Any:
    with scope(t) as ctx:
        a = t.ones(2, 3, requires_grad=True)
        b = a.clone()
        out = (b**2).sum()
        seen = [counts(ctx)]
        b.sin_()
        seen.append(counts(ctx))
        out.sum().backward()
        seen.append(counts(ctx))
    return *seen, a.grad, b


@script
def the_object(t: Any) -> Any:
    with scope(t) as ctx:
        a = leaf(t, 1.0, 2.0).clone()
        out = (a * a).sum()
        (first,) = ctx.original.values()
        same = first.data_ptr() == a.data_ptr()
        a.zero_()
        (old,) = ctx.cloned.values()
        kept = old.clone(), len(ctx.original)
        out.backward()
    return same, kept, type(ctx).__name__, counts(ctx), type(scope(t)).__name__, bool(scope(t))


@script
def saved_twice_and_written_twice(t: Any) -> Any:
    seen = []
    with scope(t) as ctx:
        x = leaf(t, 1.0, 2.0)
        a = x.clone()
        out = (a * a).sum()
        seen.append(counts(ctx))
        a.zero_()
        seen.append(counts(ctx))
        other = (a.exp() * a).sum()
        seen.append(counts(ctx))
        a.fill_(3.0)
        seen.append(counts(ctx))
        out.backward(retain_graph=True)
        other.backward()
        seen.append(counts(ctx))
        out.backward()
        seen.append(counts(ctx))
    return *seen, x.grad


@script
def which_tensors_have_handles(t: Any) -> Any:
    seen = []
    with scope(t) as ctx:

        def note() -> None:
            sizes = len(ctx.tid_to_weakhandle), len(ctx.sid_to_tid)
            seen.append((*counts(ctx), *sizes, sum(map(len, ctx.sid_to_tid.values()))))

        a = leaf(t, 1.0, 2.0).clone()
        out = (a * a).sum()
        ((_, place, version),) = ctx.tid_to_weakhandle
        known = place > 0, version, (place, version) in ctx.sid_to_tid
        part = a[:1].sin()
        note()
        a.mul_(2)
        note()
        other, more = a.exp(), a.view(2, 1).sin()
        note()
        a.zero_()
        note()
        out.backward(retain_graph=True)
        del out, part, other
        note()
        kept = ctx.cloned
        first = len(kept)
        del more
        note()
    return known, seen, first, len(kept), len(ctx.sid_to_tid), len(ctx.tid_to_weakhandle)


@script
def an_output_that_its_node_saved(t: Any) -> Any:
    with scope(t) as ctx:
        x = leaf(t, 1.0, 2.0)
        y = x.exp()
        z = (y * 1).sum()
        y.mul_(10)
        seen = counts(ctx)
        z.backward()
        y2 = x.exp()
        y2.mul_(10)
        y2.sum().backward()
    return seen, x.grad, counts(ctx)


@script
def views_and_bases(t: Any) -> Any:
    with scope(t) as ctx:
        x = leaf(t, 1.0, 2.0, 3.0, 4.0)
        a = x.clone()
        out = (a[:2] * a[:2]).sum() + (a.view(2, 2) ** 3).sum()
        a.mul_(5)
        b = x.clone()
        more = (b * b).sum()
        b.view(2, 2).zero_()
        out.backward()
        more.backward()
    return x.grad, counts(ctx)


@script
def double_backward(t: Any) -> Any:
    with scope(t):
        x = leaf(t, 1.0, 2.0)
        a = x * x
        out = (a**3).sum()
        a.sin_()
        (g,) = t.autograd.grad(out, x, create_graph=True)
        return g, t.autograd.grad(g.sum(), x)


@script
def in_place_on_a_leaf_still_raises(t: Any) -> Any:
    with scope(t):
        x = leaf(t, 1.0)
        return result_or_error(lambda: x.add_(1))


@script
def out_arguments_and_item_assignment(t: Any) -> Any:
    with scope(t):
        x = leaf(t, 1.0, 2.0)
        a = x.clone()
        first = (a * a).sum()
        with t.no_grad():
            t.add(t.ones(2, dtype=t.float64), 1, out=a)
        b = x.clone()
        second = b.exp() * b
        b[0] = 100.0
        first.backward()
        second.sum().backward()
    return x.grad


@script
def nesting(t: Any) -> Any:
    def inner() -> None:
        with scope(t):
            pass

    with scope(t):
        return result_or_error(inner)


@script
def backward_outside(t: Any) -> Any:
    x = leaf(t, 1.0, 2.0)
    with scope(t):
        out = (x * x).sum()
        y = x + 1
    first = result_or_error(lambda: out.backward())
    y.sum().backward()
    with scope(t):
        second = result_or_error(lambda: out.backward())
    return first, second, x.grad


@script
def cleared_at_the_end(t: Any) -> Any:
    x = leaf(t, 1.0, 2.0)
    with scope(t) as ctx:
        a = x.clone()
        out = (a * a).sum()
        other = (x * x).sum()
        a.zero_()
        before = counts(ctx)
        ctx.clear()
        cleared = counts(ctx), result_or_error(lambda: out.backward())
        kept = (x * x).sum()
        middle = counts(ctx)
    del other, kept
    return before, cleared, middle, counts(ctx)


@script
def an_exception_leaves_it(t: Any) -> Any:
    x = leaf(t, 1.0, 2.0)
    try:
        with scope(t):
            raise KeyError
    except KeyError:
        pass
    with scope(t):
        (x * x).sum().backward()
    return x.grad


@script
def as_a_decorator(t: Any) -> Any:
    x = leaf(t, 1.0, 2.0)

    @scope(t)
    def run() -> None:
        a = x.clone()
        out = (a * a).sum()
        a.zero_()
        out.backward()

    run()
    run()
    return x.grad


@script
def imports(t: Any) -> Any:
    name = t.__name__
    found = []
    for module, names in (
        ("autograd", "Function grad backward Variable graph functional forward_ad profiler"),
        ("autograd.function", "Function once_differentiable FunctionCtx InplaceFunction"),
        ("autograd.forward_ad", "dual_level make_dual unpack_dual"),
        ("autograd.functional", "jacobian hessian vjp jvp hvp vhp"),
        ("autograd.grad_mode", "no_grad enable_grad inference_mode"),
        ("autograd.graph", "Node GradientEdge saved_tensors_hooks"),
        ("autograd.gradcheck", "gradcheck gradgradcheck GradcheckError"),
        ("autograd.anomaly_mode", "detect_anomaly set_detect_anomaly"),
        ("autograd.profiler", "profile record_function emit_itt emit_nvtx load_nvprof"),
        ("autograd.variable", "Variable"),
        ("nn.functional", "relu softmax"),
        ("nn.utils", "clip_grad_norm_ parameters_to_vector"),
        ("optim", "SGD Adam"),
        ("utils.data", "Dataset DataLoader"),
        ("utils.hooks", "RemovableHandle"),
        ("utils.checkpoint", "checkpoint checkpoint_sequential"),
    ):
        loaded = importlib.import_module(f"{name}.{module}")
        found += [(module, each, hasattr(loaded, each)) for each in names.split()]
    return found


@pytest.mark.parametrize("name", SCRIPTS)
def test_script(name: str) -> None:
    mine, theirs = (
        outcome(lambda: SCRIPTS[name](pygrad.torch)),
        outcome(lambda: SCRIPTS[name](torch)),
    )
    assert_same_outcome(mine, theirs)
