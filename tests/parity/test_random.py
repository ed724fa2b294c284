"""The stream of random numbers is PyTorch's, number for number."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from oracle import array, torch

import pygrad

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
    lambda t, d: t.normal(t.zeros(20, dtype=d), t.ones(20, dtype=d)),
    lambda t, d: t.multinomial(t.arange(1, 9, dtype=d), 5),
    lambda t, d: t.multinomial(t.arange(1, 9, dtype=d), 20, True),
    lambda t, d: t.nn.functional.dropout(t.ones(50, dtype=d), 0.4),
    lambda t, d: t.nn.functional.dropout2d(t.ones(2, 8, 2, 2, dtype=d), 0.4),
    lambda t, d: t.nn.functional.alpha_dropout(t.ones(50, dtype=d), 0.4, True),
    lambda t, d: t.nn.functional.rrelu(-t.ones(50, dtype=d), training=True),
    lambda t, d: t.rand_like(t.ones(3, 4, dtype=d).t()),
    lambda t, d: t.poisson(t.full((20,), 3.0, dtype=d)),
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
