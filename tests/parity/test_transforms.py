"""torch.func: transforms of functions alone, nested in each other and in vmap, and what they
refuse.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from oracle import both


def vector(t: Any) -> Any:
    return t.tensor([0.3, -1.2, 2.0], dtype=t.float64)


def matrix(t: Any) -> Any:
    return t.arange(6.0, dtype=t.float64).reshape(2, 3) / 3


def cube(x: Any) -> Any:
    return (x**3).sum() * x.sin().sum()


def outer(x: Any, y: Any) -> Any:
    return {"a": x.tanh() * y, "b": (x @ y,)}


SCRIPTS: dict[str, Callable[[Any], Any]] = {
    "grad": lambda t: t.func.grad(cube)(vector(t)),
    "third": lambda t: t.func.grad(t.func.grad(t.func.grad(t.sin)))(vector(t)[0]),
    "argnums": lambda t: t.func.grad(lambda x, y: (x * y).sum(), (1, 0))(vector(t), vector(t) * 2),
    "last": lambda t: t.func.grad(lambda x, y: (x * y).sum(), -1)(vector(t), vector(t) * 2),
    "dict": lambda t: t.func.grad(lambda d: (d["a"] * d["b"][0]).sum())(
        {"a": vector(t), "b": [vector(t)]}
    ),
    "aux": lambda t: t.func.grad(lambda x: (x.sum() ** 2, {"x": x * 2}), has_aux=True)(vector(t)),
    "value": lambda t: t.func.grad_and_value(cube)(vector(t)),
    "value_aux": lambda t: t.func.grad_and_value(lambda x: (cube(x), x), has_aux=True)(vector(t)),
    "independent": lambda t: t.func.grad(lambda x: t.ones(()))(vector(t)),
    "vjp": lambda t: t.func.vjp(t.sin, vector(t))[1](vector(t)),
    "vjp_tree": lambda t: t.func.vjp(outer, vector(t), vector(t))[1](
        {"a": vector(t), "b": (vector(t)[0],)}
    ),
    "jvp": lambda t: t.func.jvp(outer, (vector(t), vector(t)), (vector(t), vector(t) * 2)),
    "jvp_aux": lambda t: t.func.jvp(
        lambda x: (x.sin(), x), (vector(t),), (vector(t),), has_aux=True
    ),
    "linearize": lambda t: t.func.linearize(t.sin, vector(t))[1](vector(t)),
    "jacrev": lambda t: t.func.jacrev(outer, (0, 1))(vector(t), vector(t) * 2),
    "jacrev_one": lambda t: t.func.jacrev(outer, (1,))(vector(t), vector(t) * 2),
    "jacfwd": lambda t: t.func.jacfwd(outer, (0, 1))(vector(t), vector(t) * 2),
    "jacfwd_aux": lambda t: t.func.jacfwd(lambda x: (x.sin(), x), has_aux=True)(vector(t)),
    "hessian": lambda t: t.func.hessian(cube)(vector(t)),
    "hessians": lambda t: t.func.hessian(lambda x, y: (x**3 * y).sum(), (0, 1))(
        vector(t), vector(t)
    ),
    "rev_of_rev": lambda t: t.func.jacrev(t.func.jacrev(cube))(vector(t)),
    "fwd_of_fwd": lambda t: t.func.jacfwd(t.func.jacfwd(cube))(vector(t)),
    "rev_of_fwd": lambda t: t.func.jacrev(t.func.jacfwd(cube))(vector(t)),
    "vmap_of_grad": lambda t: t.vmap(t.func.grad(cube))(matrix(t)),
    "vmap_shared": lambda t: t.vmap(t.func.grad(lambda w, x: cube(w * x)), (None, 0))(
        vector(t), matrix(t)
    ),
    "vmap_twice": lambda t: t.vmap(
        t.vmap(t.func.grad(lambda w, x: cube(w * x)), (None, 0)), (0, None)
    )(matrix(t), matrix(t)),
    "vmap_of_jacrev": lambda t: t.vmap(t.func.jacrev(t.sin))(matrix(t)),
    "vmap_of_hessian": lambda t: t.vmap(t.func.hessian(cube))(matrix(t)),
    "grad_of_vmap": lambda t: t.func.grad(lambda x: t.vmap(cube)(x).sum())(matrix(t)),
    "by_cotangent": lambda t: t.func.grad(lambda g: t.func.vjp(t.sin, vector(t)[0])[1](g)[0])(
        vector(t)[1]
    ),
    "mixed": lambda t: t.func.grad(
        lambda y: t.func.grad(lambda x: (x * y).sin().sum())(vector(t)).sum()
    )(vector(t) * 2),
    "jacrev_chunks": lambda t: t.func.jacrev(outer, (0, 1), chunk_size=2)(vector(t), vector(t)),
    "vmap_of_jacrev_chunks": lambda t: t.vmap(t.func.jacrev(t.sin, chunk_size=2))(matrix(t)),
    "vmap_of_jacfwd": lambda t: t.vmap(t.func.jacfwd(t.sin))(matrix(t)),
    "jacfwd_dict": lambda t: t.func.jacfwd(lambda d: {"y": d["a"] * d["b"].sum()})(
        {"a": vector(t), "b": vector(t)}
    ),
    "jacrev_dict": lambda t: t.func.jacrev(lambda d: {"y": d["a"] * d["b"].sum()})(
        {"a": vector(t), "b": vector(t)}
    ),
    "jacrev_aux": lambda t: t.func.jacrev(lambda x: (x.sin(), {"x": x}), has_aux=True)(vector(t)),
    "jacrev_number": lambda t: t.func.jacrev(cube)(vector(t)),
    "jacrev_of_nothing": lambda t: t.func.jacrev(lambda x: x[:0])(vector(t)),
    "linear_rows": lambda t: t.vmap(t.func.linearize(t.sin, vector(t))[1])(matrix(t)),
    "linear_tree": lambda t: t.func.linearize(lambda d: d["a"] * d["b"][0], tree(t))[1](tree(t)),
    "jacfwd_assigned": lambda t: t.func.jacfwd(assign)(vector(t)),
    "hessian_assigned": lambda t: t.func.hessian(lambda x: assign(x).prod())(vector(t)),
    "jacfwd_branch": lambda t: t.func.jacfwd(lambda x: x * 2 if x.sum() > 0 else -x)(vector(t)),
    "hessian_branch": lambda t: t.func.hessian(lambda x: cube(x) if x[0] > 0 else x.sum())(
        vector(t)
    ),
    "jacfwd_item": lambda t: t.func.jacfwd(lambda x: (x * x.sum().item(), x), has_aux=True)(
        vector(t)
    ),
    "jacfwd_mask": lambda t: t.func.jacfwd(lambda x: x[x > 0] * 3)(vector(t)),
    "forward_off_outside": lambda t: without_forward(
        t, lambda: t.func.jvp(t.sin, (vector(t),), (vector(t),))
    ),
}


def assign(x: Any) -> Any:
    y = x.new_zeros(2)
    y[0] = x[0] * x[1]
    y[1] = x[2]
    return y


def tree(t: Any) -> Any:
    return {"a": vector(t), "b": [vector(t) * 2]}


def without_forward(t: Any, function: Callable[[], Any]) -> Any:
    with t.autograd.forward_ad._set_fwd_grad_enabled(False):
        return function()


@pytest.mark.parametrize("name", SCRIPTS)
def test_transform(name: str) -> None:
    both(SCRIPTS[name])


REFUSED: dict[str, Callable[[Any], Any]] = {
    "vector": lambda t: t.func.grad(lambda x: x)(vector(t)),
    "number": lambda t: t.func.grad(lambda x: 3)(vector(t)),
    "tuple": lambda t: t.func.grad(lambda x: (x.sum(),))(vector(t)),
    "no_aux": lambda t: t.func.grad(lambda x: x.sum(), has_aux=True)(vector(t)),
    "argnum": lambda t: t.func.grad(cube, 1)(vector(t)),
    "twice": lambda t: t.func.grad(cube, (0, -1))(vector(t)),
    "argnums": lambda t: t.func.grad(cube, "a")(vector(t)),
    "argument": lambda t: t.func.grad(cube)(3.0),
    "integers": lambda t: t.func.grad(cube)(t.tensor([1])),
    "vjp": lambda t: t.func.vjp(lambda x: 3, vector(t)),
    "cotangent": lambda t: t.func.vjp(t.sum, vector(t))[1](vector(t)),
    "primals": lambda t: t.func.jvp(t.sin, vector(t), vector(t)),
    "tangents": lambda t: t.func.jvp(t.sin, (vector(t),), (vector(t), vector(t))),
    "jvp": lambda t: t.func.jvp(lambda x: 3, (vector(t),), (vector(t),)),
    "strict": lambda t: t.func.jvp(lambda x: t.ones(2), (vector(t),), (vector(t),), strict=True),
    "aux": lambda t: t.func.grad(lambda x: (x.sum(), 1), has_aux=True)(vector(t)),
    "aux_inside": lambda t: t.func.jacrev(lambda x: (x, [x, "a"]), has_aux=True)(vector(t)),
    "aux_none": lambda t: t.func.jvp(lambda x: (x, None), (vector(t),), (vector(t),), has_aux=True),
    "argnum_text": lambda t: t.func.grad(cube, ("0",))(vector(t)),
    "argnum_float": lambda t: t.func.jacfwd(t.mul, (1, 0.0))(vector(t), vector(t)),
    "jacfwd_argnum": lambda t: t.func.jacfwd(t.mul, 2)(vector(t), vector(t)),
    "vjp_none": lambda t: t.func.vjp(lambda x: None, vector(t)),
    "vjp_nothing": lambda t: t.func.vjp(lambda x: (), vector(t)),
    "vjp_integers": lambda t: t.func.vjp(lambda x: x.argmax(), vector(t)),
    "jvp_nothing": lambda t: t.func.jvp(lambda x: [], (vector(t),), (vector(t),)),
    "jacfwd_none": lambda t: t.func.jacfwd(lambda x: None)(vector(t)),
    "no_primals": lambda t: t.func.jvp(t.sin, (), ()),
    "odd_primal": lambda t: t.func.jvp(t.mul, (vector(t), 1), (vector(t), 1)),
    "odd_tangent": lambda t: t.func.jvp(t.sin, (vector(t),), (1.0,)),
    "odd_cotangent": lambda t: t.func.vjp(t.sum, vector(t))[1](1.0),
    "cotangent_tree": lambda t: t.func.vjp(lambda x: (x, {"a": x}), vector(t))[1](vector(t)),
    "linear_shape": lambda t: t.func.linearize(t.sin, vector(t))[1](vector(t)[0]),
    "linear_dtype": lambda t: t.func.linearize(t.sin, vector(t))[1](vector(t).float()),
    "linear_tree": lambda t: t.func.linearize(t.sin, vector(t))[1](vector(t), vector(t)),
    "jacfwd_draws": lambda t: t.func.jacfwd(lambda x: x * t.rand(3))(vector(t)),
    "jacfwd_branch_draws": lambda t: t.func.jacfwd(lambda x: x * t.rand(3) if x.sum() > 0 else x)(
        vector(t)
    ),
    "jacfwd_randomness": lambda t: t.func.jacfwd(t.sin, randomness="some")(vector(t)),
    "requires_grad": lambda t: t.func.grad(lambda x: x.requires_grad_().sum())(vector(t)),
    "requires_no_grad": lambda t: t.func.jvp(
        lambda x: x.requires_grad_(False), (vector(t),), (vector(t),)
    ),
    "mapped_requires_grad": lambda t: t.vmap(t.func.grad(lambda x: x.requires_grad_().sum()))(
        matrix(t)
    ),
    "retain_grad": lambda t: t.func.grad(lambda x: x.sin().retain_grad())(vector(t)),
    "retain_grad_of_none": lambda t: t.vmap(lambda x: x.retain_grad())(matrix(t)),
    "backward": lambda t: t.func.grad(lambda x: x.sum().backward())(vector(t)),
    "backward_with_gradient": lambda t: t.func.jacrev(lambda x: x.backward(x))(vector(t)),
    "backward_of_others": lambda t: t.vmap(
        lambda x: t.autograd.backward(vector(t).requires_grad_().sum())
    )(matrix(t)),
    "functional": lambda t: t.func.grad(
        lambda x: t.autograd.functional.jvp(cube, (x,), (vector(t),))[1]
    )(vector(t)),
    "jacobian": lambda t: t.func.vjp(lambda x: t.autograd.functional.jacobian(t.sin, x), vector(t)),
    "data": lambda t: t.func.grad(lambda x: setattr(x, "data", vector(t)))(vector(t)),
    "mapped_data": lambda t: t.vmap(lambda x: setattr(x, "data", vector(t)))(matrix(t)),
    "remove": lambda t: t.func.functionalize(t.sin, remove="views"),
    "hooks_around": lambda t: with_hooks(t, lambda: t.func.grad(cube)(vector(t))),
    "hooks_inside": lambda t: t.func.vjp(lambda x: with_hooks(t, lambda: x.sin()), vector(t)),
    "hooks_hessian": lambda t: with_hooks(t, lambda: t.func.hessian(cube)(vector(t))),
    "states": lambda t: t.func.stack_module_state(
        [t.nn.Linear(1, 1), t.nn.Linear(1, 1).requires_grad_(False)]
    ),
}


def with_hooks(t: Any, function: Callable[[], Any]) -> Any:
    with t.autograd.graph.saved_tensors_hooks(lambda x: x, lambda x: x):
        return function()


@pytest.mark.parametrize("name", REFUSED)
def test_transform_refuses(name: str) -> None:
    both(REFUSED[name])


@pytest.mark.parametrize("recording", [True, False])
def test_result_is_recorded_where_its_inputs_were(recording: bool) -> None:
    def run(t: Any) -> Any:
        w = vector(t).requires_grad_()
        with t.set_grad_enabled(recording):
            plain = t.func.grad(cube)(vector(t))
            given = t.func.grad(cube)(w)
            captured = t.func.grad(lambda x: (x * w * w).sum())(vector(t))
            pulled = t.func.vjp(lambda x: x * w, vector(t))[1](vector(t))[0]
        made = plain, given, captured, pulled
        flags = [each.requires_grad for each in made]
        if recording:
            (given.sum() + captured.sum()).backward()
        return made, flags, w.grad is None or w.grad

    both(run)


def test_cotangents_of_levels_entered_later() -> None:
    """A function from cotangents that was made outside takes batches of them."""

    def run(t: Any) -> Any:
        pull = t.func.vjp(outer, vector(t), vector(t) * 2)[1]
        rows = {"a": matrix(t), "b": (vector(t)[:2],)}
        nested = {"a": matrix(t).expand(4, 2, 3), "b": (t.ones(4, 2, dtype=t.float64),)}
        same = t.vmap(lambda _: pull({"a": vector(t), "b": (vector(t)[0],)}))(matrix(t))

        def inside(x: Any) -> Any:
            own = t.func.vjp(t.sin, x)[1]
            return t.vmap(lambda g: own(g)[0], 1)(matrix(t).t())

        return t.vmap(pull)(rows), t.vmap(t.vmap(pull))(nested), same, t.vmap(inside)(matrix(t))

    both(run)


@pytest.mark.parametrize("around", [True, False])
@pytest.mark.parametrize("later", [True, False])
def test_gradient_of_a_product_in_the_mode_of_its_call(around: bool, later: bool) -> None:
    def run(t: Any) -> Any:
        x = vector(t).requires_grad_()
        with t.set_grad_enabled(around):
            y, pull = t.func.vjp(t.square, x)
        with t.set_grad_enabled(later):
            (g,) = pull(t.ones(3, dtype=t.float64))
        return y, g, y.requires_grad, g.requires_grad and t.autograd.grad(g.sum(), x)

    both(run)


def test_leaves_of_inner_transforms_do_not_make_results_require_grad() -> None:
    def run(t: Any) -> Any:
        x, y = vector(t), vector(t) * 2
        pull = t.func.vjp(t.sin, x)[1]
        made = [
            t.func.grad(lambda y: t.func.grad(lambda x: (x * y).sin().sum())(x).sum())(y),
            t.func.grad(lambda g: pull(g)[0].sum())(y),
            t.func.jacrev(lambda y: t.func.vjp(lambda x: x * y, x)[1](y)[0])(y),
        ]
        return made, [each.requires_grad for each in made]

    both(run)


@pytest.mark.parametrize("randomness", ["same", "different"])
@pytest.mark.parametrize("branches", [True, False])
def test_draws_for_the_directions_of_jacfwd(randomness: str, branches: bool) -> None:
    def run(t: Any) -> Any:
        def shift(x: Any) -> Any:
            return x * t.randn(3, dtype=t.float64) if not branches or x[0] > 0 else x

        t.manual_seed(0)
        jacobian = t.func.jacfwd(shift, randomness=randomness)(vector(t))
        draws = jacobian.diagonal()
        return jacobian.shape, bool((jacobian == draws.diag()).all()), bool((draws != 0).all())

    both(run)


def test_duals_of_slices_are_the_slices() -> None:
    """What a mapped and pushed function writes to its argument is written."""

    def run(t: Any) -> Any:
        def push(x: Any, dx: Any, y: Any, dy: Any) -> Any:
            def write(x: Any, y: Any) -> Any:
                part = x[::2]
                part.mul_(y)
                return part, x

            return t.func.jvp(write, (x, y), (dx, dy))

        x = t.arange(8.0, dtype=t.float64).reshape(4, 2)
        y = x[:2] + 1
        made = t.vmap(push, 1)(x, x + 10, y, y * 2)
        single = t.vmap(push, (1, 1, None, None))(x, x + 10, y[0], y[1])
        return made, single, x

    both(run)


def test_transforms_inside_custom_functions() -> None:
    def run(t: Any) -> Any:
        def slope(function: Any, x: Any) -> Any:
            return t.func.jvp(function, (x,), (t.ones_like(x),))[1]

        class Sine(t.autograd.Function):  # type: ignore[misc]
            @staticmethod
            def forward(ctx: Any, x: Any) -> Any:
                ctx.save_for_backward(x)
                return -slope(t.cos, x)

            @staticmethod
            def backward(ctx: Any, g: Any) -> Any:
                return g * slope(t.sin, ctx.saved_tensors[0])

        x = vector(t).requires_grad_()
        y = Sine.apply(x)
        return y, t.autograd.grad(y.sum(), x)

    both(run)


@pytest.mark.parametrize("transform", ["grad", "vjp", "jvp", "jacrev", "jacfwd", "untracked"])
def test_custom_functions_of_one_method_are_refused(transform: str) -> None:
    def run(t: Any) -> Any:
        class Twice(t.autograd.Function):  # type: ignore[misc]
            @staticmethod
            def forward(ctx: Any, x: Any) -> Any:
                return x * 2

            @staticmethod
            def backward(ctx: Any, g: Any) -> Any:
                return g * 2

        x = vector(t)
        calls = {
            "grad": lambda: t.func.grad(lambda x: Twice.apply(x).sum())(x),
            "vjp": lambda: t.func.vjp(Twice.apply, x),
            "jvp": lambda: t.func.jvp(Twice.apply, (x,), (x,)),
            "untracked": lambda: t.func.grad(lambda x: (x * Twice.apply(t.ones(3))).sum())(x),
        }
        return calls.get(transform, lambda: getattr(t.func, transform)(Twice.apply)(x))()

    both(run)


def model(t: Any) -> Any:
    t.manual_seed(0)
    return t.nn.Sequential(t.nn.Linear(3, 2), t.nn.Tanh(), t.nn.Linear(2, 1)).double()


def test_functional_call() -> None:
    def run(t: Any) -> Any:
        net = model(t)
        params = {name: p * 2 for name, p in net.named_parameters()}
        some = {"0.bias": vector(t)[:2]}
        call = t.func.functional_call
        kept = net[0].weight
        made = [call(net, params, matrix(t)), call(net, some, (matrix(t),)), net(matrix(t))]
        made.append(call(net, [params, {}], matrix(t), strict=True))
        return made, net[0].weight is kept

    both(run)


@pytest.mark.parametrize("given", [{"0.weigth": 1}, [{"a": 1}, {"a": 2}], [3]], ids=str)
def test_functional_call_refuses(given: Any) -> None:
    both(lambda t: t.func.functional_call(model(t), given, matrix(t), strict=True))


def test_gradients_of_each_sample_and_of_an_ensemble() -> None:
    def run(t: Any) -> Any:
        net = model(t)
        params = {name: p.detach() for name, p in net.named_parameters()}

        def loss(params: Any, x: Any, y: Any) -> Any:
            return ((t.func.functional_call(net, params, (x,)) - y) ** 2).sum()

        each = t.vmap(t.func.grad(loss), (None, 0, 0))(params, matrix(t), matrix(t)[:, :1])
        stacked, buffers = t.func.stack_module_state([model(t), model(t)])
        call = t.func.functional_call
        ensemble = t.vmap(lambda p, b, x: call(net, (p, b), (x,)), (0, 0, None))
        return each, ensemble(stacked, buffers, matrix(t))

    both(run)


def test_functional_call_of_tied_weights() -> None:
    def run(t: Any) -> Any:
        t.manual_seed(0)
        net = t.nn.Sequential(t.nn.Linear(3, 3), t.nn.Linear(3, 3))
        net[1].weight = net[0].weight
        call, x = t.func.functional_call, t.ones(3)
        given = {"0.weight": t.eye(3)}
        return call(net, given, x), call(net, given, x, tie_weights=False)

    both(run)


def print_all(t: Any, wrap: Callable[[Any], Any], x: Any) -> list[str]:
    """What a function so transformed sees of its argument, of what it computes and captures."""
    seen: list[str] = []

    def look(v: Any) -> Any:
        seen.extend([repr(v), str(v * 2), repr(x)])
        return v.sum()

    wrap(look)(x)
    return seen


WRAPPED: dict[str, Callable[[Any], Callable[[Any], Any]]] = {
    "grad": lambda t: lambda f: t.func.grad(f),
    "jvp": lambda t: lambda f: lambda x: t.func.jvp(f, (x,), (x,)),
    "grad_of_grad": lambda t: lambda f: t.func.grad(lambda x: t.func.grad(f)(x).sum()),
    "vmap_of_grad": lambda t: lambda f: t.vmap(t.func.grad(f)),
    "grad_of_vmap": lambda t: lambda f: t.func.grad(lambda x: t.vmap(f)(x).sum()),
}


@pytest.mark.parametrize("name", WRAPPED)
def test_tensors_inside_transforms_print_level_by_level(name: str) -> None:
    def run(t: Any) -> Any:
        x = t.arange(6.0).reshape(2, 3) / 4
        return print_all(t, WRAPPED[name](t), x)

    both(run)


def test_tensors_print_plainly_outside_transforms() -> None:
    both(lambda t: print_all(t, lambda f: f, t.ones(2, requires_grad=True)))


def test_debug_unwrap() -> None:
    def run(t: Any) -> Any:
        seen = []

        def look(x: Any) -> Any:
            whole, part = t.func.debug_unwrap(x * 2), t.func.debug_unwrap(x, recurse=False)
            seen.append((whole, part.shape, whole.requires_grad))
            return x.sum()

        t.vmap(t.vmap(look))(t.arange(24.0).reshape(2, 3, 4))
        t.func.grad(look)(vector(t))
        t.vmap(t.func.grad(look))(matrix(t))
        t.func.jvp(look, (vector(t),), (vector(t),))
        plain = vector(t)
        return seen, t.func.debug_unwrap(plain) is plain

    both(run)


FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "view": lambda x: x.view(2, 2),
    "written_view": lambda x: x.view(2, 2).mul_(2),
    "view_of_written": lambda x: (x.mul_(2), x.view(2, 2))[1],
    "same": lambda x: x,
    "written": lambda x: x.mul_(2),
    "part": lambda x: [x[1:], x],
    "detached": lambda x: {"x": x.detach()},
    "own": lambda x: x.clone().view(2, 2).add_(1),
    "number": lambda x: (x + 1, 3, None),
}


@pytest.mark.parametrize("remove", ["mutations", "mutations_and_views"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_functionalize(name: str, remove: str) -> None:
    def run(t: Any) -> Any:
        x = t.arange(4.0)
        made = t.func.functionalize(FUNCTIONS[name], remove=remove)(x)
        x.add_(10)
        return x, made, made is x

    both(run)


def test_functionalize_in_transforms() -> None:
    def run(t: Any) -> Any:
        def write(x: Any) -> Any:
            y = x.sin()
            return y.mul_(x).t_()

        f = t.func.functionalize(write)
        mapped, slope = t.vmap(f)(matrix(t)), t.func.grad(lambda x: f(x).sum())(vector(t))
        return mapped, slope, f.__name__

    both(run)


def test_batch_norms_without_running_statistics() -> None:
    def run(t: Any) -> Any:
        net = t.nn.Sequential(
            t.nn.BatchNorm1d(3), t.nn.ModuleList([t.nn.BatchNorm2d(2, affine=False)]), t.nn.ReLU()
        )
        same = t.func.replace_all_batch_norm_modules_(net) is net
        made = t.vmap(net[0])(t.arange(24.0).reshape(2, 4, 3) ** 2)
        return same, str(net), list(net.state_dict()), made

    both(run)
