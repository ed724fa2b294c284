"""gradcheck and gradgradcheck beside PyTorch's: verdicts, messages with their numbers, warnings."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

import pytest
from oracle import Scripts, torch
from verdicts import NUMBER, compare, flat, module, result_of, scale_gradient

import pygrad

SCRIPTS = Scripts()
script = SCRIPTS.add


def leaf(t: Any, *values: float, dtype: str = "float64") -> Any:
    return t.tensor(values, dtype=getattr(t, dtype), requires_grad=True)


def wrong(x: Any) -> Any:
    return scale_gradient(x.exp(), 3)


@script
def smooth_functions(t: Any) -> Any:
    x, y = leaf(t, 0.5, 1.5, 2.5), leaf(t, 1.0, 2.0, 3.0)
    return [
        t.autograd.gradcheck(lambda x: x.exp(), x),
        t.autograd.gradcheck(lambda x, y: x * y, (x, y)),
        t.autograd.gradcheck(lambda x, y: [x * y, (x / y).sum()], [x, y]),
        t.autograd.gradcheck(lambda x: x.view(3, 1) @ x.view(1, 3), (x,), fast_mode=True),
        t.autograd.gradgradcheck(lambda x, y: x * y.exp(), (x, y)),
        t.autograd.gradgradcheck(lambda x, y: (x * y, x.sin()), (x, y), fast_mode=True),
        t.autograd.gradgradcheck(lambda x: x.exp(), x, gen_non_contig_grad_outputs=True),
        t.autograd.gradgradcheck(lambda x: x.exp(), x, leaf(t, 1.0, 2.0, 3.0)),
        t.autograd.gradcheck(lambda x, y: x * y, (x, y.detach())),
        t.autograd.gradcheck(lambda x, k: x * k, (x, 3)),
        t.autograd.gradcheck(lambda x: x.sum(), x, masked=True, check_grad_dtypes=True),
        t.autograd.gradcheck(lambda x: x.t(), leaf(t, 1.0, 2.0).view(1, 2)),
    ]


@script
def wrong_gradient(t: Any) -> Any:
    t.autograd.gradcheck(wrong, leaf(t, 0.5, 1.5))


@script
def wrong_gradient_fast(t: Any) -> Any:
    t.autograd.gradcheck(wrong, leaf(t, 0.5, 1.5), fast_mode=True)


@script
def wrong_gradient_without_an_exception(t: Any) -> Any:
    return [
        t.autograd.gradcheck(wrong, leaf(t, 0.5), raise_exception=False, fast_mode=fast)
        for fast in (False, True)
    ]


@script
def wrong_second_input(t: Any) -> Any:
    t.autograd.gradcheck(
        lambda x, y: (x + y, x * scale_gradient(y, 2)), (leaf(t, 0.5, 1.5), leaf(t, 3.0, 4.0))
    )


@script
def wrong_second_input_fast(t: Any) -> Any:
    t.autograd.gradcheck(
        lambda x, y: (x + y, x * scale_gradient(y, 2)),
        (leaf(t, 0.5, 1.5), leaf(t, 3.0, 4.0)),
        fast_mode=True,
    )


@script
def wrong_second_output_of_a_tensor_between(t: Any) -> Any:
    t.autograd.gradcheck(
        lambda x, c, y: (x + c, scale_gradient(x * y, 2)),
        (leaf(t, 0.5, 1.5), leaf(t, 7.0, 8.0).detach(), leaf(t, 3.0, 4.0)),
    )


@script
def wrong_by_little(t: Any) -> Any:
    return [
        t.autograd.gradcheck(lambda x: scale_gradient(x, 1.01), leaf(t, 0.5), rtol=rtol, atol=atol)
        for rtol, atol in ((0.1, 0.0), (0.0, 0.1))
    ]


@script
def fast_fails_where_slow_passes(t: Any) -> Any:
    x = leaf(t, *range(1, 30))
    t.autograd.gradcheck(
        lambda x: scale_gradient(x * x, 1.0005).sum(), x, fast_mode=True, rtol=1e-4
    )


@script
def wrong_second_derivative(t: Any) -> Any:
    def function(x: Any) -> Any:
        y = x.exp()
        y.register_hook(lambda g: None if g is None else g * x.detach())
        return y * 1

    x = leaf(t, 1.0, 1.0)
    t.autograd.gradgradcheck(function, x, leaf(t, 2.0, 3.0))


@script
def second_derivatives_of_parts_without_any(t: Any) -> Any:
    x, y = leaf(t, 0.5, 1.5), leaf(t, 2.0, 3.0)
    check = t.autograd.gradgradcheck
    return [
        result_of(lambda f=f, fast=fast: check(f, (x, y), fast_mode=fast))
        for f in (
            lambda x, y: (x * 2, y.argsort()),
            lambda x, y: (x.detach() * 2, x + y),
            lambda x, y: x * 0,
        )
        for fast in (False, True)
    ]


@script
def random_gradients_of_gradgradcheck(t: Any) -> Any:
    t.manual_seed(3)
    return t.autograd.gradgradcheck(
        lambda x: scale_gradient(x.exp(), x.detach()), leaf(t, 2.0, 1.0)
    )


@script
def random_gradients_that_are_not_contiguous(t: Any) -> Any:
    t.manual_seed(3)
    return t.autograd.gradgradcheck(
        lambda x: scale_gradient(x.exp(), x.detach()),
        leaf(t, 2.0, 1.0),
        gen_non_contig_grad_outputs=True,
    )


@script
def not_deterministic(t: Any) -> Any:
    factors = iter([1.0 + 1e-6 * k for k in range(100)])
    t.autograd.gradcheck(lambda x: scale_gradient(x, next(factors)), leaf(t, 0.5))


def drifting(t: Any) -> Any:
    step = [0]

    def hook(g: Any) -> Any:
        step[0] += 1
        return g if g is None else g * (1 + 1e-6 * step[0])

    def function(x: Any) -> Any:
        y = x * 1
        if y.requires_grad:
            y.register_hook(hook)
        return y

    return function


@script
def backward_that_drifts(t: Any) -> Any:
    t.autograd.gradcheck(drifting(t), leaf(t, 0.5))


@script
def backward_that_drifts_fast(t: Any) -> Any:
    t.autograd.gradcheck(drifting(t), leaf(t, 0.5), fast_mode=True)


@script
def backward_that_drifts_within_tolerance(t: Any) -> Any:
    return t.autograd.gradcheck(drifting(t), leaf(t, 0.5), nondet_tol=1e-3)


@script
def not_multiplied_by_grad_output(t: Any) -> Any:
    def function(x: Any) -> Any:
        y = x * 1
        y.register_hook(lambda g: None if g is None else t.ones_like(g))
        return y

    return [
        result_of(lambda fast=fast: t.autograd.gradcheck(function, leaf(t, 0.5), fast_mode=fast))
        for fast in (False,)
    ]


@script
def no_differentiable_output(t: Any) -> Any:
    return [
        t.autograd.gradcheck(
            lambda x: x.detach() * 0, leaf(t, 0.5), fast_mode=fast, check_undefined_grad=False
        )
        for fast in (False, True)
    ]


@script
def output_that_hides_its_gradient(t: Any) -> Any:
    t.autograd.gradcheck(lambda x: x.detach() * 2, leaf(t, 0.5))


@script
def output_that_hides_its_gradient_fast(t: Any) -> Any:
    t.autograd.gradcheck(lambda x: x.detach() * 2, leaf(t, 0.5), fast_mode=True)


@script
def output_that_is_constant(t: Any) -> Any:
    x = leaf(t, 0.5, 1.0)
    return t.autograd.gradcheck(lambda x: (x * 2, t.ones(2, dtype=t.float64)), x)


@script
def batched_gradients(t: Any) -> Any:
    x, y = leaf(t, 0.5, 1.5), leaf(t, 2.0, 3.0)
    return [
        t.autograd.gradcheck(lambda x, y: (x * y, x.sum()), (x, y), check_batched_grad=True),
        t.autograd.gradcheck(lambda x, y: x * 2, (x, y), check_batched_grad=True),
        t.autograd.gradgradcheck(lambda x, y: x * y.exp(), (x, y), check_batched_grad=True),
    ]


def without_a_rule(t: Any, jvp: Any, backward: Any) -> Any:
    """x * y by a Function that knows nothing of vmap."""

    def forward(ctx: Any, x: Any, y: Any) -> Any:
        ctx.save_for_backward(y, x)
        ctx.save_for_forward(x, y)
        return x * y, x.sum()

    members = {"forward": forward, "jvp": jvp, "backward": backward}
    methods = {name: staticmethod(method) for name, method in members.items()}
    return type("F", (t.autograd.Function,), methods).apply


def right_jvp(ctx: Any, tx: Any, ty: Any) -> Any:
    x, y = ctx.saved_tensors
    return tx * y + x * ty, tx.sum()


def right_backward(ctx: Any, g: Any, total: Any) -> Any:
    y, x = ctx.saved_tensors
    return g * y + total, g * x


@script
def batches_of_tangents_through_a_function_without_a_rule(t: Any) -> Any:
    calls: list[int] = []

    def counting(ctx: Any, *tangents: Any) -> Any:
        calls.append(1)
        return right_jvp(ctx, *tangents)

    f = without_a_rule(t, counting, right_backward)
    options = {"check_forward_ad": True, "check_undefined_grad": False}
    found = [
        t.autograd.gradcheck(f, (leaf(t, 0.5), y), check_batched_forward_grad=batched, **options)
        for batched in (False, True)
        for y in (leaf(t, 2.0), t.tensor([2.0], dtype=t.float64))
    ]
    return found, len(calls)


@script
def batches_through_random_tangents(t: Any) -> Any:
    def jvp(ctx: Any, *tangents: Any) -> Any:
        t.randn_like(tangents[0])
        return right_jvp(ctx, *tangents)

    f = without_a_rule(t, jvp, right_backward)
    points = (leaf(t, 0.5), leaf(t, 2.0))
    return t.autograd.gradcheck(f, points, check_forward_ad=True, check_batched_forward_grad=True)


@script
def the_vmap_of_before(t: Any) -> Any:
    old = importlib.import_module(f"{t.__name__}._vmap_internals")
    f = without_a_rule(t, right_jvp, right_backward)
    x, y = leaf(t, 1.0, 2.0, 3.0), leaf(t, 4.0, 5.0, 6.0)
    product, total = old._vmap(f)(x, y)
    mixed = old._vmap(lambda v, w: (v + w, None), (0, None), 0, True)(x, y)
    said = []
    for body in (lambda v: None, lambda v: (v, None), lambda v: [v], lambda v: t.randn(2)):
        said.append(result_of(lambda body=body: old._vmap(body)(x))[0])
    warns = result_of(lambda: old.vmap(lambda v: v * 2)(x).detach())
    return product.detach(), total.detach(), mixed[0].detach(), mixed[1], said, warns


@script
def unused_input(t: Any) -> Any:
    return t.autograd.gradcheck(lambda x, y: x * 2, (leaf(t, 1.0), leaf(t, 2.0)))


@script
def single_precision(t: Any) -> Any:
    return t.autograd.gradcheck(lambda x: x * 2, leaf(t, 1.0, dtype="float32"), eps=1e-2, atol=1e-2)


@script
def single_precision_fails(t: Any) -> Any:
    return t.autograd.gradcheck(
        lambda x: x.exp(), leaf(t, 1.0, dtype="float32"), raise_exception=False
    )


@script
def mixed_precision(t: Any) -> Any:
    return t.autograd.gradcheck(
        lambda x, y: x * y,
        (leaf(t, 1.0), leaf(t, 2.0, dtype="float32")),
        eps=1e-2,
        atol=1e-2,
        check_grad_dtypes=True,
    )


@script
def overlapping_input(t: Any) -> Any:
    t.autograd.gradcheck(lambda x: x * 2, leaf(t, 1.0).expand(3))


@script
def no_input_requires_grad(t: Any) -> Any:
    t.autograd.gradcheck(lambda x: x * 2, leaf(t, 1.0).detach())


@script
def output_that_is_no_tensor(t: Any) -> Any:
    t.autograd.gradcheck(lambda x: 2.0, leaf(t, 1.0))


@script
def shape_that_depends_on_the_values(t: Any) -> Any:
    t.autograd.gradcheck(lambda x: x[x > 1.0], leaf(t, 1.0, 2.0))


@script
def shape_that_depends_on_the_values_fast(t: Any) -> Any:
    t.autograd.gradcheck(lambda x: x[x > 1.0], leaf(t, 1.0, 2.0), fast_mode=True)


@script
def inputs_are_put_back(t: Any) -> Any:
    x = leaf(t, 0.1, 0.2, 0.3)
    t.autograd.gradcheck(lambda x: x.exp(), x)
    t.autograd.gradcheck(lambda x: x.exp(), x, fast_mode=True)
    return x, x.grad


@script
def random_state_is_kept(t: Any) -> Any:
    t.manual_seed(1)
    t.autograd.gradcheck(lambda x: x.exp(), leaf(t, 0.1), fast_mode=True)
    return t.rand(2)


@script
def empty_input(t: Any) -> Any:
    return t.autograd.gradcheck(lambda x: x * 2, leaf(t))


@pytest.mark.parametrize(
    "options",
    [
        {"check_backward_ad": False},
        {"check_batched_grad": True, "check_backward_ad": False, "check_forward_ad": True},
        {"check_batched_forward_grad": True},
    ],
    ids=str,
)
def test_gradcheck_refuses(options: dict[str, bool]) -> None:
    run = [
        result_of(lambda t=t: t.autograd.gradcheck(lambda x: x, leaf(t, 1.0), **options))
        for t in (pygrad, torch)
    ]
    assert run[0] == run[1]


@pytest.mark.parametrize(
    "options",
    [
        {"check_rev_over_rev": False},
        {"check_rev_over_rev": False, "check_fwd_over_rev": True},
        {
            "check_rev_over_rev": False,
            "check_fwd_over_rev": True,
            "check_undefined_grad": False,
            "check_batched_grad": True,
        },
    ],
    ids=str,
)
def test_gradgradcheck_refuses(options: dict[str, bool]) -> None:
    run = [
        result_of(lambda t=t: t.autograd.gradgradcheck(lambda x: x, leaf(t, 1.0), **options))
        for t in (pygrad, torch)
    ]
    assert run[0] == run[1]


@pytest.mark.parametrize("fast_mode", [False, True])
@pytest.mark.parametrize(
    "options",
    [
        {"check_forward_ad": True},
        {"check_forward_ad": True, "check_backward_ad": False},
        {"check_forward_ad": True, "check_batched_forward_grad": True},
        {"check_forward_ad": True, "check_batched_grad": True, "check_undefined_grad": False},
    ],
    ids=lambda options: "+".join(options),
)
def test_forward_mode(options: dict[str, bool], fast_mode: bool) -> None:
    def run(t: Any) -> Any:
        x, y = leaf(t, 0.5, 1.5), leaf(t, 2.0, 3.0)
        check = t.autograd.gradcheck
        return [
            result_of(lambda f=f: check(f, (x, y), fast_mode=fast_mode, **options))
            for f in (
                lambda x, y: x * y.exp(),
                lambda x, y: (x * y.sum(), y.sin(), x.argsort()),
                lambda x, y: x * 2,
                lambda x, y: x.view(2, 1) @ y.view(1, 2),
            )
        ]

    assert flat(run(pygrad)) == flat(run(torch))


@pytest.mark.parametrize("fast_mode", [False, True])
@pytest.mark.parametrize(
    "options",
    [
        {"check_fwd_over_rev": True},
        {
            "check_fwd_over_rev": True,
            "check_rev_over_rev": False,
            "check_undefined_grad": False,
        },
    ],
    ids=lambda options: "+".join(options),
)
def test_forward_over_reverse(options: dict[str, bool], fast_mode: bool) -> None:
    def run(t: Any) -> Any:
        x, y = leaf(t, 0.5, 1.5), leaf(t, 2.0, 3.0)
        return [
            result_of(
                lambda f=f: t.autograd.gradgradcheck(f, (x, y), fast_mode=fast_mode, **options)
            )
            for f in (lambda x, y: x * y.exp(), lambda x, y: (x * y.sum(), y.sin()))
        ]

    assert flat(run(pygrad)) == flat(run(torch))


def doubling(t: Any, backward: Callable[..., Any], materialize: bool = True) -> Any:
    """A custom function x -> 2 x with this backward."""

    def forward(ctx: Any, x: Any) -> Any:
        ctx.set_materialize_grads(materialize)
        return x * 2

    members = {"forward": staticmethod(forward), "backward": staticmethod(backward)}
    return type("Doubling", (t.autograd.Function,), members).apply


@script
def custom_functions(t: Any) -> Any:
    check, x = t.autograd.gradcheck, leaf(t, 0.5, 1.5)
    three = t.full((2,), 3.0, dtype=t.float64)
    return [
        result_of(lambda: check(doubling(t, lambda ctx, g: g * 2), x)),
        result_of(lambda: check(doubling(t, lambda ctx, g: g * 3), x)),
        result_of(lambda: check(doubling(t, lambda ctx, g: g + g.detach()), x)),
        result_of(lambda: check(doubling(t, lambda ctx, g: (g * 2).float()), x)),
        result_of(
            lambda: check(doubling(t, lambda ctx, g: (g * 2).float()), x, check_grad_dtypes=True)
        ),
        result_of(lambda: check(doubling(t, lambda ctx, g: (g * 2)[:1]), x)),
        result_of(lambda: check(doubling(t, lambda ctx, g: three), x)),
        result_of(lambda: check(doubling(t, lambda ctx, g: None), x)),
        result_of(lambda: t.autograd.gradgradcheck(doubling(t, lambda ctx, g: g * 2), x)),
    ]


@pytest.mark.parametrize("fast_mode", [False, True])
def test_forward_mode_of_custom_functions(fast_mode: bool) -> None:
    def run(t: Any) -> Any:
        x = leaf(t, 0.5, 1.5)
        outcomes = []
        for factor in (2, 3, None):
            members: dict[str, Any] = {
                "forward": staticmethod(lambda ctx, x: x * 2),
                "backward": staticmethod(lambda ctx, g: g * 2),
            }
            if factor:
                members["jvp"] = staticmethod(lambda ctx, tangent, k=factor: tangent * k)
            function = type("Twice", (t.autograd.Function,), members).apply  # type: ignore[attr-defined]
            outcomes.append(
                result_of(
                    lambda f=function: t.autograd.gradcheck(
                        f, x, check_forward_ad=True, fast_mode=fast_mode
                    )
                )
            )
        return outcomes

    for a, b in zip(flat(run(pygrad)), flat(run(torch)), strict=True):
        assert NUMBER.sub("#", str(a)) == NUMBER.sub("#", str(b))


@pytest.mark.parametrize("fast_mode", [False, True])
@pytest.mark.parametrize("of_a_view", [False, True])
@pytest.mark.parametrize("given", ["view", "copy", "view of a copy"])
def test_the_tangent_of_a_view_is_a_view_of_the_one_given(
    given: str, of_a_view: bool, fast_mode: bool
) -> None:
    def jvp(ctx: Any, tangent: Any) -> Any:
        part = tangent.narrow(0, 0, 2)
        part = part if given == "view" else part.clone()
        return part.view_as(part) if given == "view of a copy" else part

    def backward(ctx: Any, g: Any) -> Any:
        whole = g.new_zeros(3)
        whole.narrow(0, 0, 2).copy_(g)
        return whole

    def run(t: Any) -> Any:
        members: dict[str, Any] = {
            "forward": staticmethod(lambda ctx, x: x.narrow(0, 0, 2)),
            "backward": staticmethod(backward),
            "jvp": staticmethod(jvp),
        }
        narrowed = type("Narrowed", (t.autograd.Function,), members).apply  # type: ignore[attr-defined]
        return result_of(
            lambda: t.autograd.gradcheck(
                lambda x: narrowed(x.view_as(x) if of_a_view else x),
                leaf(t, 0.5, 1.5, 2.5),
                check_forward_ad=True,
                fast_mode=fast_mode,
            )
        )

    assert flat(run(pygrad)) == flat(run(torch))


def with_tangent(t: Any, jvp: Callable[..., Any]) -> Any:
    """A custom function (x, y) -> x y with this jvp and no gradient."""

    def forward(ctx: Any, x: Any, y: Any) -> Any:
        ctx.set_materialize_grads(False)
        return x * y

    members = {
        "forward": staticmethod(forward),
        "backward": staticmethod(lambda ctx, g: (None, None)),
        "jvp": staticmethod(jvp),
    }
    return type("Product", (t.autograd.Function,), members).apply


@script
def absent_tangents_that_count_for_something(t: Any) -> Any:
    def jvp(ctx: Any, a: Any, b: Any) -> Any:
        return b * 5 if a is None else a * 7 if b is None else a + b

    inputs = leaf(t, 1.0, 2.0), leaf(t, 3.0, 4.0)
    options = {"check_forward_ad": True, "check_backward_ad": False, "atol": 1e6}
    return result_of(lambda: t.autograd.gradcheck(with_tangent(t, jvp), inputs, **options))


@script
def wrong_tangents_of_numbers(t: Any) -> Any:
    product = with_tangent(t, lambda ctx, a, b: a)
    options = {"check_forward_ad": True, "check_backward_ad": False}
    return [
        result_of(
            lambda y=y, fast=fast: t.autograd.gradcheck(
                lambda x, y: product(x, y).sum(), (leaf(t, 1.0, 2.0), y), fast_mode=fast, **options
            )
        )
        for y in (leaf(t, 3.0, 4.0), t.tensor(3.0, requires_grad=True))
        for fast in (False, True)
    ]


@script
def results_that_depend_on_the_values(t: Any) -> Any:
    one = t.tensor(1.0, dtype=t.float64, requires_grad=True)
    row = t.tensor([[0.5, 1.0]], dtype=t.float64, requires_grad=True)
    cases = [
        (lambda x: x[x > 1.0], row),
        (lambda x: x if x > 1.0 else x.reshape(1), one),
        (lambda x: x if x > 1.0 else x.float(), one),
        (lambda x: (x, x) if x >= 1.0 else (x,), one),
        (lambda x: (x * 2, x > 1), one),
        (lambda x: (x * 2, x.long()), one),
        (lambda x: x / 0 * 0, one),
        (lambda x: (), one),
        (lambda x: None, one),
    ]
    return [
        result_of(lambda f=f, x=x, fast=fast: t.autograd.gradcheck(f, x, fast_mode=fast))
        for f, x in cases
        for fast in (False, True)
    ]


@script
def custom_functions_that_meet_none(t: Any) -> Any:
    check, x = t.autograd.gradcheck, leaf(t, 0.5, 1.5)
    three = t.full((2,), 3.0, dtype=t.float64)

    def strict(ctx: Any, g: Any) -> Any:
        if g is None:
            raise RuntimeError("no gradient")
        return g * 2

    def inventive(ctx: Any, g: Any) -> Any:
        return three if g is None else g * 2

    def careful(ctx: Any, g: Any) -> Any:
        return None if g is None else g * 2

    return [
        result_of(lambda: check(doubling(t, strict, False), x)),
        result_of(lambda: check(doubling(t, strict, True), x)),
        result_of(lambda: check(doubling(t, inventive, False), x)),
        result_of(lambda: check(doubling(t, inventive, False), x, check_undefined_grad=False)),
        result_of(lambda: check(doubling(t, careful, False), x)),
    ]


@script
def old_numerical_jacobian(t: Any) -> Any:
    x, y = leaf(t, 1.0, 2.0), leaf(t, 3.0)
    find = module(t).get_numerical_jacobian
    return [
        *find(lambda xs: xs[0].exp() * xs[1], (x, y)),
        *find(lambda xs: xs[0].exp() * xs[1], (x, y), target=y, eps=1e-2),
        *find(lambda xs: (xs[0] * 2, xs[1]), (x, y), (x, [y])),
    ]


@script
def old_numerical_jacobian_of_another_grad_out(t: Any) -> Any:
    module(t).get_numerical_jacobian(lambda xs: xs[0], (leaf(t, 1.0),), grad_out=2.0)


@script
def old_numerical_jacobian_of_one_input(t: Any) -> Any:
    x, y = leaf(t, 1.0, 2.0), leaf(t, 3.0)
    find = module(t).get_numerical_jacobian_wrt_specific_input
    return [find(lambda x, y: x * y, k, (x, y), (x * y,), 1e-3) for k in (0, 1)]


@script
def old_numerical_jacobian_of_a_constant(t: Any) -> Any:
    x = leaf(t, 1.0).detach()
    module(t).get_numerical_jacobian_wrt_specific_input(lambda x: x, 0, (x,), (x,), 1e-3)


@script
def old_analytical_jacobian(t: Any) -> Any:
    x, y = leaf(t, 1.0, 2.0), leaf(t, 3.0)
    find = module(t).get_analytical_jacobian
    return [*find((x, y), x * y), *find((x, y), x.exp().sum()), *find((x,), drifting(t)(x))]


@script
def old_analytical_jacobian_of_another_grad_out(t: Any) -> Any:
    x = leaf(t, 1.0)
    module(t).get_analytical_jacobian((x,), x * 2, grad_out=0.5)


@script
def public_names(t: Any) -> Any:
    return sorted(module(t).__all__), callable(t.autograd.gradcheck)


@pytest.mark.parametrize("name", SCRIPTS)
def test_script(name: str) -> None:
    compare(SCRIPTS[name])
