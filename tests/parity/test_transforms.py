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
}


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
}


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
