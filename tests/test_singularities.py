"""Derivatives of derivatives where a formula is 0 / 0, inf - inf or 0 * inf: at zeros, ties and
bounds. There they are numbers, as the first ones are. parity/test_higher_derivatives.py and
parity/test_bounds.py say which.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from helpers import PROPER_ERRORS, leaves_nothing, sweep_entries
from samples import Entry, entries, samples
from sampling import Array, Call, call, index, permutation, x
from test_gradients import (
    assert_slopes,
    contract,
    differentiable,
    gradients,
    inputs,
    outputs,
)

import pygrad

pytestmark = pytest.mark.filterwarnings("ignore")

EVERYWHERE = "PYGRAD_EVERY_POINT" in os.environ
"""Every sample at every point to the third order, which `make points` does, instead of the first
sample at zero and at ties to the second."""

FILLS: dict[str, Callable[[Array], Array]] = {
    "zeros": np.zeros_like,
    "alternating": lambda a: (np.arange(a.size).reshape(a.shape) % 2).astype(a.dtype),
}
if EVERYWHERE:
    FILLS |= {
        "ones": np.ones_like,
        "halves": lambda a: np.full_like(a, 0.5),
        "minus ones": lambda a: -np.ones_like(a),
    }
ORDERS = (1, 2, 3) if EVERYWHERE else (1, 2)

UNDEFINED = {
    "sgn": "of a complex zero",
    **dict.fromkeys(
        ["svdvals", "eigvalsh", "eigvals", "cond", "nuclear_norm"],
        "of values that are equal, whose vectors are anybody's choice",
    ),
}
"""Op -> where it has a first derivative by convention and no second."""


def fill_sample(sample: Call, fill: Callable[[Array], Array]) -> list[Array]:
    """The sample's floating arrays, all elements alike or of few values; others as they are."""
    free = zip(inputs(sample), sample.tensors(), strict=True)
    return [fill(a) if a.dtype == np.float64 and not what.constant else a for a, what in free]


def finite(tensors: list[Any]) -> bool:
    return all(bool(t.isfinite().all()) for t in tensors)


def orders_of(entry: Entry, sample: Call, arrays: list[Array]) -> list[list[Any]]:
    """The derivatives to the last order, as far as there are any; none of an op that is not finite
    here or has no finite derivative."""
    found, wanted = outputs(entry, sample, arrays)
    if not found or not finite(found):
        return []
    orders: list[list[Any]] = []
    for order in ORDERS:
        total = contract(found, order)
        if not total.requires_grad:
            break
        made = pygrad.autograd.grad(
            total, wanted, create_graph=order < ORDERS[-1], materialize_grads=True
        )
        orders.append(found := list(made))
        if not finite(orders[0]):
            return []
    return orders


@sweep_entries(lambda entry: differentiable(entry) and entry.name not in UNDEFINED)
@leaves_nothing
def test_no_derivative_is_nan_where_the_first_is_a_number(entry: Entry, sample: Call) -> None:
    if not EVERYWHERE and str(sample) != str(samples(entry)[0]):
        return
    for name, fill in FILLS.items():
        try:
            orders = orders_of(entry, sample, fill_sample(sample, fill))
        except (*PROPER_ERRORS, ZeroDivisionError):  # no such value, or no such derivative
            continue
        for order, derivatives in enumerate(orders, 1):
            for each in derivatives:
                assert not each.isnan().any(), f"derivative {order} at {name}"


# ------------------------------------------------------------------ one by one

Function = Callable[[Any], Any]


def derivative(f: Function, order: int, *at: float) -> list[float]:
    """The derivative of an order at each point, of a function that goes element by element."""
    points = pygrad.tensor(at, dtype=pygrad.float64, requires_grad=True)
    y = f(points)
    for _ in range(order):
        (y,) = pygrad.autograd.grad(y.sum(), points, create_graph=True)
    return y.tolist()  # type: ignore[no-any-return]


@pytest.mark.parametrize(
    ("f", "order", "wanted"),
    [
        (pygrad.special.i1, 2, 0),
        (pygrad.special.i1, 3, 3 / 8),
        (pygrad.special.i1e, 2, 0),
        (pygrad.special.i0, 3, 0),
        (pygrad.sinc, 2, -(np.pi**2) / 3),
        (pygrad.sinc, 4, np.pi**4 / 5),
        (lambda x: pygrad.special.gammainc(pygrad.ones_like(x), x), 3, 1),
        (lambda x: pygrad.copysign(x, pygrad.ones_like(x)), 2, 0),
        (lambda x: pygrad.logit(x, 0.25), 2, 0),
    ],
)
def test_at_zero(f: Function, order: int, wanted: float) -> None:
    assert derivative(f, order, 0.0, -0.0) == pytest.approx([wanted] * 2, abs=1e-14)


def test_polygamma_ends_in_zero() -> None:
    assert derivative(lambda x: pygrad.polygamma(1, x), 0, np.inf) == [0.0]
    assert derivative(pygrad.digamma, 2, np.inf) == [0.0]


def test_the_second_derivative_of_complex_sinc() -> None:
    z = pygrad.zeros(1, dtype=pygrad.complex128, requires_grad=True)
    (first,) = pygrad.autograd.grad(
        pygrad.sinc(z).sum(), z, pygrad.ones((), dtype=z.dtype), None, True
    )
    (second,) = pygrad.autograd.grad(first.real.sum(), z)
    assert second.item() == pytest.approx(-(np.pi**2) / 3)


def numeric(f: Function, at: float, h: float = 1e-4) -> float:
    middle = pygrad.tensor(at, dtype=pygrad.float64)
    return float((f(middle + h) - 2 * f(middle) + f(middle - h)) / h**2)


POINTS = np.random.default_rng(0).normal(size=(4, 2))


@pytest.mark.parametrize(
    "distances",
    [
        lambda x: pygrad.cdist(x, x),
        lambda x: pygrad.cdist(x, x, 4.0),
        lambda x: pygrad.linalg.vector_norm(x[:, None] - x, dim=-1),
        lambda x: pygrad.nn.functional.pairwise_distance(x, x, eps=0.0),
        lambda x: pygrad.pdist(pygrad.cat([x, x])),
    ],
)
def test_kernels_of_distances_have_hessians(distances: Function) -> None:
    """The Hessian is by the scale of points; each point has distance 0 from itself."""
    points = pygrad.from_numpy(POINTS)

    def kernel(scale: Any) -> Any:
        return pygrad.exp(-0.5 * distances(points * scale) ** 2).sum()

    scale = pygrad.ones((), dtype=pygrad.float64, requires_grad=True)
    (first,) = pygrad.autograd.grad(kernel(scale), scale, create_graph=True)
    second = pygrad.autograd.grad(first, scale)[0] if first.requires_grad else first * 0
    assert second.item() == pytest.approx(numeric(kernel, 1.0), rel=1e-4, abs=1e-6)


@pytest.mark.parametrize("n", [1, 2, 3, 4])
def test_the_hessian_of_a_determinant_at_zero_is_that_of_a_polynomial(n: int) -> None:
    def second(at: Any) -> Any:
        (first,) = pygrad.autograd.grad(pygrad.linalg.det(at), at, create_graph=True)
        weights = pygrad.arange(n * n, dtype=pygrad.float64).reshape(n, n)
        return pygrad.autograd.grad((first * weights).sum(), at)[0] if n > 1 else first * 0

    zero = pygrad.zeros(n, n, dtype=pygrad.float64, requires_grad=True)
    near = (1e-6 * pygrad.randn(n, n, dtype=pygrad.float64)).requires_grad_()
    assert pygrad.allclose(second(zero), second(near), atol=1e-4)


@pytest.mark.parametrize("name", ["scatter", "scatter_add"])
def test_what_an_index_leaves_out_has_no_gradient(name: str) -> None:
    source = pygrad.ones(2, 3, requires_grad=True)
    made = getattr(pygrad.zeros(3, 3), name)(0, pygrad.tensor([[0, 1]]), source)
    made.sum().backward()
    assert source.grad.tolist() == [[1, 1, 0], [0, 0, 0]]


REDUCTIONS = ("sum", "prod", "mean", "amax", "amin")
SMALLER = {
    "scatter": [call(x(2, 3), 1, permutation(3, 1, 2), x(2, 3))],
    "scatter_add": [
        call(x(2, 3), 0, index(2, 1, 2), x(3, 3)),
        call(x(3), 0, index(3, 2), x(4)),
        call(x(2, 3, 2), -1, index(2, 2, 1, 3), x(2, 2, 4)),
    ],
    "scatter_reduce": [
        call(x(2, 3), 1, index(3, 1, 2), x(3, 3, kind="positive"), how, include_self=itself)
        for how in REDUCTIONS
        for itself in (True, False)
    ],
}
"""Samples of an index smaller than its source; PyTorch raises in their backward, so they are not
among those that all sweeps share."""


@pytest.mark.parametrize("name", SMALLER)
def test_the_source_of_a_smaller_index_has_both_derivatives(name: str) -> None:
    entry = next(entry for entry in entries() if entry.name == name)
    for sample in SMALLER[name]:
        arrays = inputs(sample)

        def value(arrays: list[Array], sample: Call = sample) -> float:
            return float(contract(outputs(entry, sample, arrays)[0], 1).item())

        def slope(arrays: list[Array], sample: Call = sample) -> float:
            return float(contract(gradients(entry, sample, arrays)[0], 2).item())

        first, wanted = gradients(entry, sample, arrays)
        assert_slopes(sample, value, arrays, first, 1e-6)
        total = contract(first, 2)
        if total.requires_grad:
            again = pygrad.autograd.grad(total, wanted, materialize_grads=True)
            assert_slopes(sample, slope, arrays, list(again), 1e-5)


@pytest.mark.parametrize("reduce", REDUCTIONS)
def test_an_empty_index_leaves_out_all(reduce: str) -> None:
    base, source = pygrad.ones(3, requires_grad=True), pygrad.ones(2, 3, requires_grad=True)
    none = pygrad.zeros(0, dtype=pygrad.int64)
    base.scatter_reduce(0, none, source, reduce).sum().backward()
    assert (base.grad.tolist(), source.grad.tolist()) == ([1, 1, 1], [[0, 0, 0], [0, 0, 0]])
