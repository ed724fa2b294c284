"""autograd.functional beside PyTorch's: products, matrices, strictness, messages."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from oracle import Outcome, assert_same_outcome, both, is_tensor, leaves, outcome, torch

import pygrad

Point = Callable[[Any], Any]
Function = Callable[[Any], Callable[..., Any]]


def point(t: Any, *values: float, grad: bool = False) -> Any:
    return t.tensor(values, dtype=t.float64, requires_grad=grad)


POINTS: dict[str, Point] = {
    "one": lambda t: point(t, 0.5, -1.5, 2.0),
    "recorded": lambda t: point(t, 0.5, -1.5, 2.0, grad=True),
    "pair": lambda t: (point(t, 0.5, -1.5, 2.0), point(t, 3.0, 1.0, 0.25, grad=True)),
    "number": lambda t: t.tensor(1.5, dtype=t.float64),
    "matrix": lambda t: point(t, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0).view(2, 3),
    "whole": lambda t: t.tensor([1, 2, 3]),
    "list": lambda t: [t.ones(1)],
    "float": lambda t: 1.0,
    "mixed": lambda t: (t.ones(1), 1.0),
    "empty": lambda t: point(t),
}

FUNCTIONS: dict[str, tuple[str, Function]] = {
    "elements": ("one", lambda t: lambda x: x.exp() * x),
    "of_a_leaf": ("recorded", lambda t: lambda x: x.pow(3)),
    "sum": ("one", lambda t: lambda x: x.pow(3).sum()),
    "number": ("number", lambda t: lambda x: x.sin()),
    "number_to_many": ("number", lambda t: lambda x: t.stack([x.sin(), x * x])),
    "matrix": ("matrix", lambda t: lambda x: (x * x).sum(1)),
    "pair_to_one": ("pair", lambda t: lambda x, y: (x * x * y).sum()),
    "pair_to_pair": ("pair", lambda t: lambda x, y: (x * y, (x - y * y).sum())),
    "one_to_single": ("one", lambda t: lambda x: (x * x,)),
    "linear": ("one", lambda t: lambda x: 2 * x.sum()),
    "linear_pair": ("pair", lambda t: lambda x, y: (2 * x + 3 * y).sum()),
    "independent_of_second": ("pair", lambda t: lambda x, y: (x**3).sum()),
    "constant": ("one", lambda t: lambda x: t.ones((), dtype=t.float64)),
    "half_constant": ("one", lambda t: lambda x: (x * x, t.ones(2, dtype=t.float64))),
    "detached": ("one", lambda t: lambda x: x.detach().sum()),
    "returns_a_list": ("one", lambda t: lambda x: [x]),
    "returns_a_number": ("one", lambda t: lambda x: 1.0),
    "returns_number_in_tuple": ("one", lambda t: lambda x: (x, 1.0)),
    "quadratic_pair": ("pair", lambda t: lambda x, y: (2 * x.pow(2) + 3 * y.pow(2)).sum()),
    "input_is_a_list": ("list", lambda t: lambda x: x),
    "input_is_a_number": ("float", lambda t: lambda x: x),
    "input_with_a_number": ("mixed", lambda t: lambda x, y: x),
    "integers": ("whole", lambda t: lambda x: x.sum()),
    "writes_its_input": ("one", lambda t: lambda x: (x.clone().mul_(x), x.sum())),
    "empty": ("empty", lambda t: lambda x: x * x),
}
NAMES = ["vjp", "jvp", "vhp", "hvp", "jacobian", "hessian"]
OPTIONS = [
    {},
    {"create_graph": True},
    {"strict": True},
    {"strict": True, "create_graph": True},
]


def describe(values: list[Any]) -> list[Any]:
    """The values, each tensor followed by whether it has a history."""
    flat = [leaf for value in values for leaf in leaves(value)]
    return [x for v in flat for x in ((v, v.requires_grad) if is_tensor(v) else (v,))]


def compare(call: Callable[[Any], Any]) -> None:
    """Runs a call in both libraries; results must agree in nesting, value and history."""
    results: list[Any] = []
    outcomes: list[Outcome] = []
    for library in (pygrad, torch):

        def run(library: Any = library) -> Any:
            results.append(call(library))
            return describe([results[-1]])

        outcomes.append(outcome(run))
    assert_same_outcome(*outcomes)
    if len(results) == 2:
        assert nesting(results[0]) == nesting(results[1])


def nesting(value: Any) -> Any:
    if isinstance(value, (tuple, list)):
        return type(value).__name__, [nesting(item) for item in value]
    return "leaf"


def ones_like(t: Any, value: Any) -> Any:
    """A vector for a product: of the nesting of `value`, its elements 1, 2, 3, ..."""
    if isinstance(value, tuple):
        return tuple(ones_like(t, v) for v in value)
    return t.arange(1, value.numel() + 1, dtype=t.float64).view(value.shape)


def vector_for(t: Any, name: str, function: Callable[..., Any], inputs: Any) -> Any:
    if name != "vjp":
        return ones_like(t, inputs)
    return ones_like(t, function(*inputs) if isinstance(inputs, tuple) else function(inputs))


@pytest.mark.parametrize("options", OPTIONS, ids=lambda o: "+".join(o) or "plain")
@pytest.mark.parametrize("case", FUNCTIONS)
@pytest.mark.parametrize("name", NAMES)
def test_of_each_function(name: str, case: str, options: dict[str, bool]) -> None:
    where, make_function = FUNCTIONS[case]

    def call(t: Any) -> Any:
        entry = getattr(t.autograd.functional, name)
        inputs, function = POINTS[where](t), make_function(t)
        if name in ("jacobian", "hessian"):
            return entry(function, inputs, **options)
        return entry(function, inputs, vector_for(t, name, function, inputs), **options)

    compare(call)


@pytest.mark.parametrize("case", FUNCTIONS)
@pytest.mark.parametrize("name", NAMES[:4])
def test_without_a_vector(name: str, case: str) -> None:
    where, make_function = FUNCTIONS[case]
    compare(lambda t: getattr(t.autograd.functional, name)(make_function(t), POINTS[where](t)))


VECTORS: dict[str, Callable[[Any], Any]] = {
    "wrong_size": lambda t: t.ones(4),
    "wrong_rank": lambda t: t.ones(3, 1),
    "tuple_for_one": lambda t: (t.ones(3), t.ones(3)),
    "single_for_one": lambda t: (t.ones(3, dtype=t.float64),),
    "number": lambda t: 2.0,
    "list": lambda t: [t.ones(3)],
    "tuple_with_a_number": lambda t: (t.ones(3), 1),
    "recorded": lambda t: point(t, 1.0, 2.0, 3.0, grad=True),
}


@pytest.mark.parametrize("vector", VECTORS)
@pytest.mark.parametrize("case", ["elements", "sum", "pair_to_one", "pair_to_pair"])
@pytest.mark.parametrize("name", NAMES[:4])
def test_of_odd_vectors(name: str, case: str, vector: str) -> None:
    where, make_function = FUNCTIONS[case]
    compare(
        lambda t: getattr(t.autograd.functional, name)(
            make_function(t), POINTS[where](t), VECTORS[vector](t), create_graph=True
        )
    )


@pytest.mark.parametrize("name", NAMES)
def test_result_can_be_differentiated(name: str) -> None:
    def call(t: Any) -> Any:
        x = point(t, 0.5, -1.5, 2.0, grad=True)
        entry = getattr(t.autograd.functional, name)
        function = (lambda x: x.exp() * x) if name in ("vjp", "jvp", "jacobian") else cubes
        if name in ("jacobian", "hessian"):
            result = entry(function, x, create_graph=True)
        else:
            v = point(t, 1.0, 2.0, 3.0, grad=True)
            result = entry(function, x, v, create_graph=True)[1]
            (result * result).sum().backward()
            return result, x.grad, v.grad
        (result * result).sum().backward()
        return result, x.grad

    both(call)


def cubes(x: Any) -> Any:
    return (x**3).sum() + x[0] * x[1] * x[2]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("create_graph", [False, True])
def test_inside_no_grad(name: str, create_graph: bool) -> None:
    def call(t: Any) -> Any:
        x = point(t, 0.5, -1.5, 2.0, grad=True)
        entry = getattr(t.autograd.functional, name)
        args = () if name in ("jacobian", "hessian") else (x.detach(),)
        args = (point(t, 1.0).squeeze(),) if name == "vjp" else args
        with t.no_grad():
            result = entry(cubes, x, *args, create_graph=create_graph)
        return describe([result]), x.grad

    compare(call)


@pytest.mark.parametrize(
    "options",
    [
        {"strategy": "sideways"},
        {"strategy": "forward-mode"},
        {"strategy": "forward-mode", "strict": True},
        {"strategy": "forward-mode", "create_graph": True},
        {"strategy": "forward-mode", "create_graph": True, "vectorize": True},
        {"vectorize": True, "strict": True},
    ],
    ids=str,
)
def test_jacobian_refuses(options: dict[str, Any]) -> None:
    both(lambda t: t.autograd.functional.jacobian(cubes, POINTS["one"](t), **options))


@pytest.mark.parametrize(
    "options",
    [
        {"outer_jacobian_strategy": "sideways"},
        {"outer_jacobian_strategy": "forward-mode"},
        {"outer_jacobian_strategy": "forward-mode", "strict": True, "vectorize": True},
        {"outer_jacobian_strategy": "forward-mode", "create_graph": True},
        {"vectorize": True, "strict": True},
    ],
    ids=str,
)
def test_hessian_refuses(options: dict[str, Any]) -> None:
    both(lambda t: t.autograd.functional.hessian(cubes, POINTS["one"](t), **options))


@pytest.mark.parametrize("create_graph", [False, True])
@pytest.mark.parametrize("case", sorted(FUNCTIONS.keys() - {"empty"}))  # no batch of no gradients
@pytest.mark.parametrize("name", ["jacobian", "hessian"])
def test_vectorized(name: str, case: str, create_graph: bool) -> None:
    where, make_function = FUNCTIONS[case]
    compare(
        lambda t: getattr(t.autograd.functional, name)(
            make_function(t), POINTS[where](t), vectorize=True, create_graph=create_graph
        )
    )


# PyTorch records a zero term of the tangent of 3 * y, which then requires grad: "linear_pair".
@pytest.mark.parametrize("case", sorted(FUNCTIONS.keys() - {"empty", "linear_pair"}))
def test_jacobian_in_forward_mode(case: str) -> None:
    where, make_function = FUNCTIONS[case]
    compare(
        lambda t: t.autograd.functional.jacobian(
            make_function(t), POINTS[where](t), vectorize=True, strategy="forward-mode"
        )
    )


@pytest.mark.parametrize("case", sorted(FUNCTIONS.keys() - {"empty"}))
def test_hessian_in_forward_mode(case: str) -> None:
    where, make_function = FUNCTIONS[case]
    compare(
        lambda t: t.autograd.functional.hessian(
            make_function(t),
            POINTS[where](t),
            vectorize=True,
            outer_jacobian_strategy="forward-mode",
        )
    )


def test_captured_tensors_are_constants() -> None:
    def call(t: Any) -> Any:
        x = point(t, 2.0, 3.0, grad=True)
        return t.autograd.functional.jacobian(lambda y: y * x, x, create_graph=True)

    both(call)


def cube(t: Any) -> Any:
    """A custom function whose backward is a product with a Jacobian itself."""

    class Cube(t.autograd.Function):  # type: ignore[misc]
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return x**3

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            (x,) = ctx.saved_tensors
            recorded = t.is_grad_enabled()
            vjp = t.autograd.functional.vjp
            return vjp(lambda x: x * x * x, x, g, create_graph=recorded)[1]

    return Cube.apply


@pytest.mark.parametrize("no_grad", [False, True])
@pytest.mark.parametrize("create_graph", [False, True])
@pytest.mark.parametrize("name", NAMES)
def test_of_a_custom_function(name: str, create_graph: bool, no_grad: bool) -> None:
    def call(t: Any) -> Any:
        x, function = point(t, 0.5, -1.5, 2.0, grad=True), cube(t)
        entry = getattr(t.autograd.functional, name)
        args = () if name in ("jacobian", "hessian") else (point(t, 1.0, 2.0, 3.0),)
        whole = name in ("vjp", "jvp", "jacobian")
        with t.set_grad_enabled(not no_grad):
            result = entry(
                lambda x: function(x) if whole else function(x).sum(),
                x,
                *args,
                create_graph=create_graph,
            )
        return describe([result])

    compare(call)


@pytest.mark.parametrize("vectorize", [False, True])
def test_jacobian_of_a_jacobian(vectorize: bool) -> None:
    def call(t: Any) -> Any:
        jacobian, function = t.autograd.functional.jacobian, cube(t)

        def inner(x: Any) -> Any:
            return jacobian(lambda y: (y**3 * x, x.sum() * y), x, create_graph=True)

        x = point(t, 0.5, -1.5)
        first = jacobian(inner, x, vectorize=vectorize)
        return first, jacobian(lambda x: jacobian(function, x, create_graph=True), x)

    both(call)


@pytest.mark.parametrize("name", ["branch", "assigned", "item"])
def test_forward_mode_of_functions_that_take_no_batches(name: str) -> None:
    """The directions are one batch in PyTorch, but not what the function sees of its input."""

    def run(t: Any) -> Any:
        def assign(x: Any) -> Any:
            y = t.zeros(2, dtype=t.float64)
            y[0] = x[0] * x[1]
            return y

        functions = {
            "branch": lambda x: x.sin() if x.sum() > 0 else -x,
            "assigned": assign,
            "item": lambda x: x * x.sum().item(),
        }
        x = t.tensor([0.5, 1.0, 2.0], dtype=t.float64)
        return t.autograd.functional.jacobian(
            functions[name], x, vectorize=True, strategy="forward-mode"
        )

    both(run)


def test_standard_basis() -> None:
    def run(t: Any) -> Any:
        basis = t.autograd.functional._construct_standard_basis_for
        tensors = t.zeros(2, 2), t.zeros((), dtype=t.float64), t.zeros(0)
        return basis(tensors, (4, 1, 0)), basis(tensors[1:2], [1])

    both(run)


@pytest.mark.parametrize(("count", "numels"), [(0, ()), (1, (2, 3))])
def test_standard_basis_refuses(count: int, numels: tuple[int, ...]) -> None:
    def run(t: Any) -> Any:
        tensors = tuple(t.zeros(2) for _ in range(count))
        return t.autograd.functional._construct_standard_basis_for(tensors, numels)

    both(run)
