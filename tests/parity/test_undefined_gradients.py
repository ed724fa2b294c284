"""Gradients that do not arrive: what hooks see of them, and what is accumulated."""

from __future__ import annotations

from typing import Any

import pytest
from oracle import Scripts, both, torch

SCRIPTS = Scripts()
script = SCRIPTS.add


def undefine(t: Any, x: Any) -> Any:
    """x, whose gradient is not passed on."""
    return t._C._functions.UndefinedGrad()(x) if t is torch else t._C._undefined_grad(x)


def leaf(t: Any) -> Any:
    return t.tensor([1.0, 2.0], dtype=t.float64, requires_grad=True)


@script
def every_kind_of_hook_runs(t: Any) -> Any:
    seen: list[Any] = []
    x = leaf(t)
    x.register_hook(lambda g: seen.append(("leaf", g)))
    x.register_post_accumulate_grad_hook(lambda p: seen.append(("post", p.grad)))
    y = x * 1
    y.register_hook(lambda g: seen.append(("y", g)))
    y.grad_fn.register_prehook(lambda gs: seen.append(("pre", gs)))
    y.grad_fn.register_hook(lambda gi, go: seen.append(("after", gi, go)))
    y.retain_grad()
    z = undefine(t, y)
    seen.append(z.grad_fn.name())
    z.sum().backward()
    return seen, x.grad, y.grad


@script
def one_of_two_ways(t: Any) -> Any:
    seen: list[Any] = []
    x = leaf(t)
    y = x * 2
    y.register_hook(lambda g: seen.append(g))
    (undefine(t, y) + y * 3).sum().backward()
    return seen, x.grad


@script
def hook_that_makes_one_up(t: Any) -> Any:
    y = leaf(t) * 1
    y.register_hook(lambda g: t.ones(2, dtype=t.float64))
    undefine(t, y).sum().backward()


@script
def leaf_hook_that_makes_one_up(t: Any) -> Any:
    x = leaf(t)
    x.register_hook(lambda g: t.ones(2, dtype=t.float64))
    undefine(t, x * 1).sum().backward()


@script
def captured(t: Any) -> Any:
    seen: list[Any] = []
    x = leaf(t)
    x.register_hook(lambda g: seen.append(g))
    y = x * 1
    y.register_hook(lambda g: seen.append(g))
    z = undefine(t, y).sum()
    return t.autograd.grad(z, [x, y], allow_unused=True), seen


@script
def captured_without_leave(t: Any) -> Any:
    x = leaf(t)
    t.autograd.grad(undefine(t, x).sum(), x)


@script
def earlier_gradient_is_kept(t: Any) -> Any:
    x = leaf(t)
    (x * 2).sum().backward()
    undefine(t, x).sum().backward()
    return x.grad


@pytest.mark.parametrize("name", SCRIPTS)
def test_script(name: str) -> None:
    both(SCRIPTS[name])
