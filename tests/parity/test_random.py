"""The stream of random numbers is PyTorch's, number for number."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from oracle import array, torch

import pygrad

CONCENTRATIONS = [1e-3, 0.1, 0.5, 0.999, 1.0, 1.5, 3.0, 20.0, 1e4] * 20

DRAWS: list[Callable[[Any, Any], Any]] = [
    lambda t, d: t.rand(5, dtype=d),
    lambda t, d: t.rand(1000, dtype=d),
    lambda t, d: t.randn(5, dtype=d),
    lambda t, d: t.randn(15, dtype=d),
    lambda t, d: t.randn(16, dtype=d),
    lambda t, d: t.randn(1000, dtype=d),
    lambda t, d: t.randn(3, 7, dtype=d).t().contiguous(),
    lambda t, d: t.randint(10, (100,)),
    lambda t, d: t.randint(-(1 << 40), 1 << 40, (20,)),
    lambda t, d: t.randperm(100),
    lambda t, d: t.randperm(3),
    lambda t, d: t.empty(20, dtype=d).normal_(2, 3),
    lambda t, d: t.empty(20, dtype=d).uniform_(-2, 5),
    lambda t, d: t.empty(20, dtype=d).bernoulli_(0.3),
    lambda t, d: t.bernoulli(t.full((20,), 0.3, dtype=d)),
    lambda t, d: t.empty(20, dtype=d).exponential_(1.5),
    lambda t, d: t.empty(20, dtype=d).cauchy_(),
    lambda t, d: t.empty(20, dtype=d).log_normal_(),
    lambda t, d: t.empty(20, dtype=d).geometric_(0.3),
    lambda t, d: t.empty(20, dtype=d).random_(),
    lambda t, d: t.empty(20, dtype=t.int8).random_(),
    lambda t, d: t.randint(10, (20,), dtype=t.uint16),
    lambda t, d: t.empty(20, dtype=t.uint32).random_(3, None),
    lambda t, d: t.empty(20, dtype=t.uint64).random_(0, 1 << 40),
    lambda t, d: t.empty(20, dtype=t.bfloat16).random_(-7, None).to(d),
    lambda t, d: t.empty(20, dtype=t.float16).random_(0, None).to(d),
    lambda t, d: t.normal(t.zeros(20, dtype=d), t.ones(20, dtype=d)),
    lambda t, d: t.multinomial(t.arange(1, 9, dtype=d), 5),
    lambda t, d: t.multinomial(t.arange(1, 9, dtype=d), 20, True),
    lambda t, d: t.nn.functional.dropout(t.ones(50, dtype=d), 0.4),
    lambda t, d: t.nn.functional.dropout2d(t.ones(2, 8, 2, 2, dtype=d), 0.4),
    lambda t, d: t.nn.functional.alpha_dropout(t.ones(50, dtype=d), 0.4, True),
    lambda t, d: t.nn.functional.rrelu(-t.ones(50, dtype=d), training=True),
    lambda t, d: t.rand_like(t.ones(3, 4, dtype=d).t()),
    lambda t, d: t.poisson(t.full((20,), 3.0, dtype=d)),
    lambda t, d: t._standard_gamma(t.tensor(CONCENTRATIONS, dtype=d)),
    lambda t, d: t._standard_gamma(t.tensor([-1.0, 0.0, float("inf"), float("nan")], dtype=d)),
    lambda t, d: t._sample_dirichlet(t.tensor(CONCENTRATIONS, dtype=d)),
    lambda t, d: t._sample_dirichlet(t.tensor([[0.3, 1.0, 2.0], [1e-9, 1e-9, 5.0]], dtype=d).mT),
    lambda t, d: t._sample_dirichlet(t.tensor(2.0, dtype=d)),
    lambda t, d: t.binomial(t.full((20,), 40.0, dtype=d), t.full((20,), 0.3, dtype=d)),
]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("draw", range(len(DRAWS)))
@pytest.mark.parametrize("seed", [0, 1234567890123])
def test_stream(draw: int, dtype: str, seed: int) -> None:
    results = []
    for library in (pygrad, torch):
        library.manual_seed(seed)
        kind = getattr(library, dtype)
        results.append([DRAWS[draw](library, kind), library.rand(3, dtype=kind), library.randn(2)])
    for mine, theirs in zip(*results, strict=True):
        assert str(mine.dtype) == str(theirs.dtype)
        np.testing.assert_allclose(
            array(mine), array(theirs), rtol=2e-6 if dtype == "float32" else 1e-13
        )


def in_both(dtype: str, f: Callable[..., Any], *operands: Any) -> tuple[Any, Any]:
    """What f(library, tensors...) gives, of the same numbers."""
    made = [np.asarray(v, dtype=dtype) for v in operands]
    mine = f(pygrad, *(pygrad.from_numpy(v) for v in made))
    return array(mine), array(f(torch, *(torch.from_numpy(v) for v in made)))


# PyTorch computes parts of the derivative of Dirichlet in float32, by logarithms of glibc: where
# these round the other way, what cancels in the fit magnifies it.
@pytest.mark.parametrize(("dtype", "close"), [("float32", 2e-2), ("float64", 1e-12)])
def test_derivatives_of_draws_in_all_their_branches(dtype: str, close: float) -> None:
    rng = np.random.default_rng(1)
    a = 10 ** rng.uniform(-2, 4, 20000)
    b = 10 ** rng.uniform(-2, 4, 20000)
    near = np.clip(a / (a + b) * rng.normal(1, 0.1, 20000), 1e-9, 1 - 1e-6)
    for x in (rng.uniform(1e-9, 1 - 1e-6, 20000), near, rng.uniform(0, 1, 20000) ** 8):
        total = np.asarray(a, dtype) + np.asarray(b, dtype)
        mine, theirs = in_both(dtype, lambda t, *v: t._dirichlet_grad(*v), x, a, total)
        np.testing.assert_allclose(mine, theirs, rtol=close, atol=1e-37)
        same = np.isclose(mine, theirs, rtol=1e-6) | (np.isnan(mine) & np.isnan(theirs))
        assert same.mean() > 0.995
    for factor in (1e-3, 0.3, 0.97, 1.0, 1.04, 1.3, 8):
        mine, theirs = in_both(dtype, lambda t, *v: t._standard_gamma_grad(*v), a, a * factor)
        np.testing.assert_allclose(mine, theirs, rtol=1e-6 if dtype == "float32" else 1e-12)


def test_derivatives_of_draws_at_the_edges() -> None:
    edges = np.array([0.0, -1.0, -0.5, 1.0, 0.5, np.inf, np.nan, 8.0, 1e-320])
    x, a, total = (v.ravel() for v in np.meshgrid(edges, edges, edges))
    mine, theirs = in_both("float64", lambda t, *v: t._dirichlet_grad(*v), x, a, total)
    np.testing.assert_allclose(mine, theirs, rtol=1e-9)
    mine, theirs = in_both("float64", lambda t, *v: t._standard_gamma_grad(*v), a, x)
    np.testing.assert_allclose(mine, theirs, rtol=1e-9)


def test_state_goes_from_one_library_to_the_other() -> None:
    torch.manual_seed(7)
    torch.randn(5)
    pygrad.set_rng_state(pygrad.from_numpy(torch.get_rng_state().numpy()))
    np.testing.assert_array_equal(array(pygrad.rand(9)), array(torch.rand(9)))
    torch.set_rng_state(torch.from_numpy(array(pygrad.get_rng_state())))
    np.testing.assert_array_equal(array(pygrad.rand(9)), array(torch.rand(9)))


def test_generators_are_apart() -> None:
    results = []
    for library in (pygrad, torch):
        g = library.Generator().manual_seed(3)
        library.manual_seed(1)
        results.append(
            [library.rand(3, generator=g), library.rand(3), library.randperm(5, generator=g)]
        )
    for mine, theirs in zip(*results, strict=True):
        np.testing.assert_array_equal(array(mine), array(theirs))


def test_initialisation_of_layers() -> None:
    layers = [
        ("Linear", (5, 7)),
        ("Conv2d", (3, 4, 3)),
        ("Embedding", (6, 3)),
        ("Bilinear", (2, 3, 4)),
    ]
    for name, args in layers:
        parameters = []
        for library in (pygrad, torch):
            library.manual_seed(11)
            parameters.append(list(getattr(library.nn, name)(*args).parameters()))
        for mine, theirs in zip(*parameters, strict=True):
            np.testing.assert_allclose(array(mine), array(theirs), rtol=1e-6)
