"""Custom functions under vmap beside PyTorch's: the vmap method, generated rules, messages."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from oracle import both

Script = Callable[[Any], Any]


def x(t: Any) -> Any:
    return t.arange(6.0, dtype=t.float64).reshape(2, 3) + 1


def make(t: Any, **members: Any) -> Any:
    """x -> x**3 in the style with setup_context; `members` replace or add."""

    def forward(v: Any) -> Any:
        return v**3

    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.save_for_backward(inputs[0])
        ctx.power = 3

    def backward(ctx: Any, g: Any) -> Any:
        (v,) = ctx.saved_tensors
        return ctx.power * v**2 * g

    methods = {"forward": forward, "setup_context": setup_context, "backward": backward}
    methods |= {k: v for k, v in members.items() if k != "generate_vmap_rule"}
    space: dict[str, Any] = {k: staticmethod(v) for k, v in methods.items() if v is not None}
    space["generate_vmap_rule"] = members.get("generate_vmap_rule", False)
    return type("Cube", (t.autograd.Function,), space)


def generate(t: Any, **members: Any) -> Any:
    return make(t, generate_vmap_rule=True, **members)


def scale(t: Any) -> Any:
    """(x, w) -> (x w, sum x), with a constant of the call and an output without a gradient."""

    def forward(a: Any, w: Any, factor: float = 2.0) -> Any:
        return a * w * factor, a.sum(), a.argmax()

    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        a, w, ctx.factor = inputs
        ctx.mark_non_differentiable(output[2])
        ctx.save_for_backward(a, w)

    def backward(ctx: Any, g: Any, h: Any, _: Any) -> Any:
        a, w = ctx.saved_tensors
        return g * w * ctx.factor + h, (g * a).sum() * ctx.factor, None

    return make(
        t, forward=forward, setup_context=setup_context, backward=backward, generate_vmap_rule=True
    )


def make_mapped(t: Any, method: Callable[..., Any]) -> Any:
    """A Function whose vmap calls `method(cls, info, in_dims, *args)`."""
    made = make(t, vmap=lambda info, in_dims, *args: method(made, info, in_dims, *args))
    return made


def grads_of(t: Any, y: Any, *inputs: Any) -> list[Any]:
    found = [y]
    for _ in range(2):
        found.append(t.autograd.grad(found[-1].pow(2).sum(), inputs[0], create_graph=True)[0])
    return found


GENERATED: dict[str, Script] = {
    "values": lambda t: t.vmap(generate(t).apply)(x(t)),
    "gradients": lambda t: [
        a := x(t).requires_grad_(),
        grads_of(t, t.vmap(generate(t).apply)(a), a),
    ][1],
    "in_dims": lambda t: t.vmap(generate(t).apply, in_dims=1, out_dims=1)(x(t)),
    "name": lambda t: t.vmap(generate(t).apply)(x(t).requires_grad_()).grad_fn.name(),
    "inside_a_function": lambda t: [
        a := x(t).requires_grad_(),
        y := t.vmap(lambda v: generate(t).apply(v.sin()).sum())(a),
        t.autograd.grad(y.sum(), a),
    ][1:],
    "unbatched_argument": lambda t: t.vmap(lambda v: generate(t).apply(t.ones(2)) * v[0])(x(t)),
    "two_levels": lambda t: [
        a := t.stack([x(t), x(t) + 1]).requires_grad_(),
        y := t.vmap(t.vmap(generate(t).apply))(a),
        t.autograd.grad(y.sum(), a),
    ][1:],
    "inner_level_only": lambda t: [
        a := x(t).requires_grad_(),
        y := t.vmap(lambda u: t.vmap(generate(t).apply)(a) * u[0])(x(t)),
        t.autograd.grad(y.sum(), a),
    ][1:],
    "several": lambda t: t.vmap(scale(t).apply, in_dims=(0, None))(
        x(t), t.ones((), dtype=t.float64)
    ),
    "several_with_constant": lambda t: t.vmap(lambda v: scale(t).apply(v, v[0], 3.0))(x(t)),
    "gradient_of_unbatched": lambda t: [
        a := x(t).requires_grad_(),
        w := t.tensor(0.5, dtype=t.float64, requires_grad=True),
        y := t.vmap(scale(t).apply, in_dims=(0, None))(a, w),
        t.autograd.grad(y[0].sum() + y[1].pow(2).sum(), [a, w]),
    ][2:],
    "unused_output": lambda t: [
        a := x(t).requires_grad_(),
        w := t.ones(2, dtype=t.float64, requires_grad=True),
        y := t.vmap(scale(t).apply)(a, w),
        t.autograd.grad(y[1].sum(), [a, w]),
    ][2:],
    "broadcast_gradient": lambda t: [
        a := x(t).requires_grad_(),
        f := generate(t, backward=lambda ctx, g: g.sum()),
        t.autograd.grad(t.vmap(lambda v: f.apply(v[:1]))(a).sum(), a),
    ][2],
}

METHODS: dict[str, Script] = {
    "values": lambda t: t.vmap(make_mapped(t, lambda f, i, d, v: (f.apply(v), d[0])).apply)(x(t)),
    "gradients": lambda t: [
        a := x(t).requires_grad_(),
        grads_of(t, t.vmap(make_mapped(t, lambda f, i, d, v: (f.apply(v), 0)).apply)(a), a),
    ][1],
    "told": lambda t: [
        told := [],
        t.vmap(
            make_mapped(
                t, lambda f, i, d, v: [told.append((i.batch_size, i.randomness, d)), (v, 0)][1]
            ).apply,
            randomness="same",
        )(x(t)),
        told,
    ][1:],
    "another_dimension": lambda t: t.vmap(
        make_mapped(t, lambda f, i, d, v: (v.movedim(d[0], -1) * 2, -1)).apply
    )(x(t)),
    "moved": lambda t: t.vmap(
        make_mapped(t, lambda f, i, d, v: (v.movedim(d[0], 0) * i.batch_size, 0)).apply, in_dims=1
    )(x(t)),
    "unbatched_output": lambda t: t.vmap(make_mapped(t, lambda f, i, d, v: (v.sum(), None)).apply)(
        x(t)
    ),
    "unbatched_argument": lambda t: t.vmap(
        lambda v: (
            v * make_mapped(t, lambda f, i, d, v: (v * 100, 0)).apply(t.ones(3, dtype=t.float64))
        )
    )(x(t)),
    "two_levels": lambda t: t.vmap(
        t.vmap(make_mapped(t, lambda f, i, d, v: (f.apply(v) + i.batch_size, d[0])).apply)
    )(t.stack([x(t), x(t), x(t)])),
}

ERRORS: dict[str, Script] = {
    "no_rule": lambda t: t.vmap(make(t).apply)(x(t)),
    "no_rule_unbatched": lambda t: t.vmap(lambda v: make(t).apply(t.ones(2)))(x(t)),
    "both_rules": lambda t: t.vmap(generate(t, vmap=lambda *a: a).apply)(x(t)),
    "old_style": lambda t: t.vmap(
        make(t, forward=lambda ctx, v: v, setup_context=None, generate_vmap_rule=True).apply
    )(x(t)),
    "no_tuple": lambda t: t.vmap(make_mapped(t, lambda f, i, d, v: [v, 0]).apply)(x(t)),
    "three_returns": lambda t: t.vmap(make_mapped(t, lambda f, i, d, v: (v, 0, 0)).apply)(x(t)),
    "data_dependent": lambda t: t.vmap(generate(t, forward=lambda v: v * v[0].item()).apply)(x(t)),
    "raises": lambda t: t.vmap(generate(t, forward=lambda v: [][0]).apply)(x(t)),
    "called": lambda t: make(t).vmap(None, None),
}


@pytest.mark.parametrize("case", GENERATED)
def test_generated_rule(case: str) -> None:
    both(GENERATED[case])


@pytest.mark.parametrize("case", METHODS)
def test_method(case: str) -> None:
    both(METHODS[case])


@pytest.mark.parametrize("case", ERRORS)
def test_errors(case: str) -> None:
    both(ERRORS[case])


@pytest.mark.parametrize(
    "returned",
    [
        lambda v: (v, (0,)),
        lambda v: (v, [None]),
        lambda v: ((v, v), (0,)),
        lambda v: ([v], (0,)),
        lambda v: ((v, v), 0),
        lambda v: ([v], 0),
    ],
)
def test_dimensions_that_do_not_fit_what_vmap_returned(returned: Any) -> None:
    def run(t: Any) -> Any:
        f = make(t, vmap=lambda info, dims, v: returned(v))
        return t.vmap(f.apply)(x(t))

    both(run)
