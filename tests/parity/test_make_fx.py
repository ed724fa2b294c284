"""`make_fx`: the same functions in both libraries give the same code, and what it computes."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.fx

import pygrad.torch

Case = Callable[[Any], tuple[Callable[..., Any], tuple[Any, ...]]]
"""Given the library, a function and its arguments."""

SAME: dict[str, Case] = {}
"""Functions whose code is the same."""
ALIKE: dict[str, Case] = {}
"""Functions whose code is another, as gradients and transforms are made of other ops here."""


def same(function: Case) -> Case:
    SAME[function.__name__] = function
    return function


def alike(function: Case) -> Case:
    ALIKE[function.__name__] = function
    return function


def row(t: Any) -> Any:
    return t.arange(1.0, 4.0)


def table(t: Any) -> Any:
    return t.arange(12.0).reshape(3, 4)


def network(t: Any) -> Any:
    made = t.nn.Sequential(t.nn.Linear(3, 4), t.nn.Tanh(), t.nn.Linear(4, 2))
    with t.no_grad():
        for parameter in made.parameters():
            parameter.copy_(t.linspace(-1, 1, parameter.numel()).reshape(parameter.shape))
    return made.requires_grad_(False)


@same
def elementwise(t: Any) -> Any:
    return lambda x: (x.sin() + 1) * x.exp() / 2, (row(t),)


@same
def keywords(t: Any) -> Any:
    return lambda a, b: t.add(a, b, alpha=2) - b, (row(t), row(t) + 1)


@same
def views(t: Any) -> Any:
    def function(x):  # type: ignore[no-untyped-def]
        return x.t().reshape(2, 6)[0].unsqueeze(0).expand(3, 6).permute(1, 0)[1:, ::2]

    return function, (table(t),)


@same
def products(t: Any) -> Any:
    return lambda a: (a @ a.T, t.matmul(a, a[0]), t.einsum("ij,kj->ik", a, a)), (table(t),)


@same
def linear(t: Any) -> Any:
    return t.nn.functional.linear, (table(t), t.ones(2, 4), t.zeros(2))


@same
def containers(t: Any) -> Any:
    return lambda x: {"a": x + 1, "b": [x * 2, (x, 3, None)]}, (row(t),)


@same
def nested_arguments(t: Any) -> Any:
    arguments = {"p": row(t), "q": row(t)}, [row(t), row(t) + 1]
    return lambda d, l: d["p"] + l[0] * l[1], arguments  # noqa: E741


@same
def numbers_as_arguments(t: Any) -> Any:
    return lambda x, n: x * n, (row(t), 3)


@same
def any_number_of_arguments(t: Any) -> Any:
    return lambda x, *rest, k=None: x + rest[0], (row(t), row(t) * 2)


@same
def tensors_from_outside(t: Any) -> Any:
    outside = row(t)
    return lambda x: x + outside, (row(t),)


@same
def tensors_of_data(t: Any) -> Any:
    return lambda x: x * t.tensor([1.0, 2.0, 3.0]) + t.ones(3), (row(t),)


@same
def known_numbers(t: Any) -> Any:
    return lambda x: x * (t.tensor(2.0) + 1).item(), (row(t),)


@same
def made_tensors(t: Any) -> Any:
    def function(x):  # type: ignore[no-untyped-def]
        return t.zeros_like(x) + x.new_zeros(3) + t.full((3,), 2.0) + t.arange(3)

    return function, (row(t),)


@same
def writes(t: Any) -> Any:
    def function(x):  # type: ignore[no-untyped-def]
        y = x.clone()
        y.add_(1)
        y[1] *= 2
        return y

    return function, (row(t),)


@same
def writes_to_an_argument(t: Any) -> Any:
    def function(x):  # type: ignore[no-untyped-def]
        x.add_(1)

    return function, (row(t),)


@same
def unused(t: Any) -> Any:
    def function(x):  # type: ignore[no-untyped-def]
        x.sin()
        t.rand(3)
        return x.cos()

    return function, (row(t),)


@same
def the_argument_itself(t: Any) -> Any:
    return lambda x: x, (row(t),)


@same
def several_results(t: Any) -> Any:
    def function(x):  # type: ignore[no-untyped-def]
        return t.split(x, 2)[0] + x.chunk(2, 1)[0][:2, :1].sum(dim=1, keepdim=True), t.topk(x, 2)

    return function, (table(t),)


@same
def reductions(t: Any) -> Any:
    def function(x):  # type: ignore[no-untyped-def]
        return x.mean(0, dtype=t.float64).to(t.float32) + x.max(0).values + x.amax(0)

    return function, (table(t),)


@same
def norms_and_losses(t: Any) -> Any:
    f = t.nn.functional

    def function(x):  # type: ignore[no-untyped-def]
        return f.cross_entropy(f.layer_norm(x, (4,)), t.tensor([0, 1, 2]))

    return function, (table(t),)


@same
def subscripts(t: Any) -> Any:
    def function(x):  # type: ignore[no-untyped-def]
        return x[t.tensor([0, 1])] + x[:2, :].masked_fill(x[:2] > 3, 0)

    return function, (table(t),)


@same
def joined(t: Any) -> Any:
    return lambda x: t.cat([x, x], 1) + t.stack([x, x]).sum(), (table(t),)


@same
def a_module(t: Any) -> Any:
    return network(t), (t.ones(2, 3),)


@same
def a_module_as_a_function(t: Any) -> Any:
    made = network(t)
    named = dict(made.named_parameters())
    return lambda p, x: t.func.functional_call(made, p, (x,)), (named, t.ones(2, 3))


@same
def mapped(t: Any) -> Any:
    return t.vmap(lambda x: x.sin().sum()), (table(t),)


@same
def a_product_with_a_jacobian(t: Any) -> Any:
    return lambda x: t.func.vjp(t.sin, x)[1](x), (row(t),)


@same
def a_gradient(t: Any) -> Any:
    return t.func.grad(lambda x: x.sin().exp().sum()), (row(t),)


@same
def a_gradient_within(t: Any) -> Any:
    def function(x):  # type: ignore[no-untyped-def]
        y = x.detach().requires_grad_()
        return t.autograd.grad(y.sin().cos().sum(), y)

    return function, (row(t),)


@alike
def a_gradient_of_parameters(t: Any) -> Any:
    made = network(t)

    def loss(p, x):  # type: ignore[no-untyped-def]
        return t.func.functional_call(made, p, (x,)).square().sum()

    return t.func.grad(loss), (dict(made.named_parameters()), t.ones(2, 3))


@alike
def gradients_of_each_example(t: Any) -> Any:
    made = network(t)

    def loss(p, x):  # type: ignore[no-untyped-def]
        return t.func.functional_call(made, p, (x,)).square().sum()

    named = dict(made.named_parameters())
    return t.vmap(t.func.grad(loss), (None, 0)), (named, t.ones(2, 3))


@alike
def a_jacobian(t: Any) -> Any:
    return t.func.jacrev(lambda x: x.sin() * x.sum()), (row(t),)


@alike
def a_derivative_forward(t: Any) -> Any:
    return lambda x, v: t.func.jvp(lambda x: x.sin() * x, (x,), (v,)), (row(t), row(t))


@alike
def a_convolution(t: Any) -> Any:
    made = t.nn.Sequential(t.nn.Conv2d(1, 2, 3), t.nn.BatchNorm2d(2), t.nn.MaxPool2d(2)).eval()
    with t.no_grad():
        made[0].weight.copy_(t.linspace(-1, 1, 18).reshape(2, 1, 3, 3))
        made[0].bias.fill_(0.5)
    return made, (t.linspace(0, 1, 64).reshape(1, 1, 8, 8),)


@alike
def a_choice(t: Any) -> Any:
    return lambda x: t.where(x > 1, x, 0.0) + x.var(0) + x.norm(), (row(t),)


def make_fx(t: Any) -> Any:
    package = "torch" if t is torch else "pygrad.torch"
    return importlib.import_module(f"{package}.fx.experimental.proxy_tensor").make_fx


def trace(t: Any, case: Case) -> Any:
    function, arguments = case(t)
    return make_fx(t)(function)(*arguments)


def other_arguments(value: Any, t: Any) -> Any:
    """Other arguments of the same structure."""
    return value * 0.5 + 1 if isinstance(value, t.Tensor) else value


def values(result: Any, t: Any) -> Any:
    found: list[Any] = []
    for each in t.utils._pytree.tree_leaves(result):
        if each is not None:
            found += each.flatten().tolist() if isinstance(each, t.Tensor) else [each]
    return found


@pytest.mark.parametrize("name", SAME)
def test_the_code_is_that_of_pytorch(name: str) -> None:
    assert trace(pygrad.torch, SAME[name]).code == trace(torch, SAME[name]).code


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of PyTorch's forward mode
@pytest.mark.parametrize("name", SAME | ALIKE)
def test_the_graph_computes_what_the_function_does(name: str) -> None:
    case = (SAME | ALIKE)[name]
    found = []
    for t in (pygrad.torch, torch):
        function, arguments = case(t)
        tree_map = t.utils._pytree.tree_map
        first, second = (
            [tree_map(lambda each, t=t: other_arguments(each, t), a) for a in arguments]
            for _ in range(2)
        )
        found.append(values((trace(t, case)(*first), first), t))
        expected = values((function(*second), second), t)
        assert found[-1] == pytest.approx(expected, rel=1e-5, abs=1e-6)
    assert found[0] == pytest.approx(found[1], rel=1e-4, abs=1e-5)


@pytest.mark.parametrize(
    "function",
    [lambda x: x * x.sum().item(), lambda x: x if x.sum() > 0 else -x, lambda x: int(x[0])],
)
def test_a_number_that_arguments_decide_is_refused_as_by_pytorch(function: Any) -> None:
    texts = []
    for t in (pygrad.torch, torch):
        with pytest.raises(RuntimeError) as caught:
            trace(t, lambda t: (function, (row(t),)))
        texts.append(str(caught.value))
    assert texts[0] == texts[1]


def test_decompositions_are_called_instead_of_ops() -> None:
    codes = []
    for t in (pygrad.torch, torch):
        aten = t.ops.aten
        table = {
            aten.sigmoid.default: lambda x: (1 + (-x).exp()).reciprocal(),
            aten.reciprocal.default: lambda x: x.pow(-1),
        }
        codes.append(make_fx(t)(lambda x: x.sigmoid() + 1, table)(row(t)).code)
    assert codes[0] == codes[1]


def repeats(t: Any) -> Any:
    def function(x):  # type: ignore[no-untyped-def]
        a = x.cos().sum(0) + x.cos().sum(0)
        return a + t.rand(4) + t.rand(4) + x.sum(1)[0] + x.sum(dim=1)[0]

    return function, (table(t),)


def test_common_calls_are_put_together_as_by_pytorch() -> None:
    codes = []
    for t in (pygrad.torch, torch):
        package = "torch" if t is torch else "pygrad.torch"
        passes = importlib.import_module(f"{package}.fx.passes.dialect.common.cse_pass")

        module = trace(t, repeats)
        result = passes.CSEPass(banned_ops=passes.get_CSE_banned_ops())(module)
        again = passes.CSEPass(banned_ops=passes.get_CSE_banned_ops())(result.graph_module)
        codes.append((result.modified, again.modified, result.graph_module.code))
    assert codes[0] == codes[1]
