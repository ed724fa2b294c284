"""Every differentiable op against central differences, in float64: first order, then second order."""

from __future__ import annotations

from typing import Any

import numpy as np
import pygrad
import pytest
from helpers import PROPER_ERRORS, UNINITIALISED, choose, leaves, nothing_left, run, swept, with_grad
from samples import Entry
from sampling import Array, Call, numbers

STEP = 1e-6
NOT_BY_DIFFERENCES = {
    **dict.fromkeys(("detach", "detach_", "set_", "requires_grad_"), "cuts the graph on purpose"),
    **dict.fromkeys(("fill_diagonal_", "randint_like", "rand_like", "randn_like"), "no gradient flows"),
    "nextafter": "the step is far larger than what it does",
    "view": "one sample reinterprets bits",
    "normal": "the stream of numbers depends on the values",
    "bernoulli": "a step function of its input",
    "bernoulli_": "a step function of its input",
}


def inputs(sample: Call) -> list[Array]:
    """The sample's arrays; salts as in `sampling.build`."""
    return [numbers(what, "float64", salt) for salt, what in enumerate(sample.tensors(), 1)]


def weights(tensors: list[Any], seed: int) -> list[Any]:
    """Fixed numbers to make one number of several tensors."""
    rng = np.random.default_rng(seed)
    return [pygrad.from_numpy(np.asarray(rng.uniform(0.5, 1.5, t.shape))) for t in tensors]


def contracted(tensors: list[Any], seed: int) -> Any:
    """Sum of the tensors' elements, each with a weight of its own."""
    total = pygrad.zeros((), dtype=pygrad.float64)
    for tensor, weight in zip(tensors, weights(tensors, seed), strict=True):
        total = total + (tensor * weight).sum()
    return total


def outputs(entry: Entry, sample: Call, arrays: list[Array]) -> tuple[list[Any], list[Any]]:
    """The differentiable outputs, and the inputs that require grad."""
    made = with_grad(arrays)
    result = run(entry, *choose(sample, made))
    return [t for t in leaves(result) if t.requires_grad], [t for t in made if t.requires_grad]


def gradients(entry: Entry, sample: Call, arrays: list[Array]) -> tuple[list[Any], list[Any]]:
    """First-order gradients with a graph of their own, and the inputs."""
    found, wanted = outputs(entry, sample, arrays)
    return list(
        pygrad.autograd.grad(
            contracted(found, 1), wanted, create_graph=True, materialize_grads=True
        )
    ), wanted


def differences(function: Any, arrays: list[Array]) -> list[Array]:
    """Central differences of a function of arrays by each element of the floating ones."""
    slopes = []
    for array in arrays:
        if array.dtype != np.float64:
            continue
        slope = np.zeros_like(array)
        for at in np.ndindex(array.shape):
            kept = array[at]
            array[at] = kept + STEP
            above = function(arrays)
            array[at] = kept - STEP
            below = function(arrays)
            array[at] = kept
            slope[at] = (above - below) / (2 * STEP)
        slopes.append(slope)
    return slopes


def differentiable(entry: Entry) -> bool:
    return entry.name not in UNINITIALISED and entry.name not in NOT_BY_DIFFERENCES


@swept(differentiable)
def test_gradient(entry: Entry, sample: Call) -> None:
    arrays = inputs(sample)
    with nothing_left():
        found, wanted = outputs(entry, sample, arrays)
        if not found or not wanted:
            return
        got = pygrad.autograd.grad(contracted(found, 1), wanted, materialize_grads=True)

        def value(arrays: list[Array]) -> float:
            return float(contracted(outputs(entry, sample, arrays)[0], 1).item())

        expected = differences(value, arrays)
        for mine, slope in zip(got, expected, strict=True):
            np.testing.assert_allclose(mine.numpy(), slope, rtol=1e-4, atol=1e-6)
        del found, wanted, got, mine


@swept(differentiable)
def test_second_order_gradient(entry: Entry, sample: Call) -> None:
    arrays = inputs(sample)
    with nothing_left():
        found, wanted = outputs(entry, sample, arrays)
        if not found or not wanted:
            return
        first, wanted = gradients(entry, sample, arrays)
        if not any(g.requires_grad for g in first):
            return
        got = pygrad.autograd.grad(contracted(first, 2), wanted, materialize_grads=True)

        def value(arrays: list[Array]) -> float:
            return float(contracted(gradients(entry, sample, arrays)[0], 2).item())

        expected = differences(value, arrays)
        for mine, slope in zip(got, expected, strict=True):
            np.testing.assert_allclose(mine.numpy(), slope, rtol=1e-4, atol=1e-5)
        del found, wanted, first, got, mine


@swept(lambda entry: differentiable(entry) and not entry.mutates)
def test_gradient_of_expanded_input_has_its_shape(entry: Entry, sample: Call) -> None:
    """A gradient that comes back through an expand is summed to the smaller shape."""
    arrays = inputs(sample)
    small = [a[:1].copy() if a.ndim and a.dtype == np.float64 else a for a in arrays]
    made = with_grad(small)
    try:
        result = run(entry, *choose(sample, [t.expand(a.shape) for t, a in zip(made, arrays, strict=True)]))
    except PROPER_ERRORS:
        return
    found = [t for t in leaves(result) if t.requires_grad]
    if not found:
        return
    contracted(found, 1).backward()
    for tensor in made:
        assert tensor.grad is None or tensor.grad.shape == tensor.shape


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_gradient_has_the_dtype_of_its_input(dtype: str) -> None:
    x = pygrad.ones(3, dtype=getattr(pygrad, dtype), requires_grad=True)
    (x.double() * 2 + x.float() + x).sum().backward()
    assert x.grad.dtype == x.dtype
    assert x.grad.tolist() == [4.0, 4.0, 4.0]
