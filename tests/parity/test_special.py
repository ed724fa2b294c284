"""Orthogonal polynomials, Bessel and Airy functions of torch.special, beside PyTorch's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from oracle import both, result_or_error

import pygrad

NAN, INF = float("nan"), float("inf")
POLYNOMIALS = [name for name in pygrad.special.__all__ if "polynomial" in name]
BESSEL = [name for name in pygrad.special.__all__ if "bessel" in name or "airy" in name]


@pytest.mark.parametrize("name", POLYNOMIALS)
def test_polynomials(name: str) -> None:
    def script(t: Any) -> Any:
        op = getattr(t.special, name)
        x = t.linspace(-1.5, 1.5, 7, dtype=t.float64)
        degrees = t.tensor([-1.0, 0.0, 1.0, 2.5, 3.0, 6.0, 12.0], dtype=t.float64)
        return [
            *(op(x, n) for n in (-2, 0, 1, 2, 5, 9)),
            op(x, degrees),
            op(x[:, None], degrees),
            op(0.25, degrees),
            op(x.float(), 3),
            op(t.tensor([1, 2]), 2),
            op(t.tensor([1, 2]), t.tensor(3)),
            op(x, 3, out=t.empty(7, dtype=t.float64)),
            op(x.clone().requires_grad_(), 2).requires_grad,
            op(t.ones(0), 3),
            result_or_error(lambda: op(1.0, 2)).partition(":")[0],
        ]

    both(script, rtol=1e-5, atol=1e-9)


@pytest.mark.parametrize("name", POLYNOMIALS)
def test_polynomials_of_high_degrees(name: str) -> None:
    """In double: in float PyTorch's own lose their digits."""

    def script(t: Any) -> Any:
        op, x = getattr(t.special, name), t.linspace(-1, 1, 9, dtype=t.float64)
        return [op(each, n) for n in (1001, 1024, 100_000) for each in (x, 2 * x)]

    both(script, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("name", [name for name in POLYNOMIALS if "chebyshev" in name])
def test_chebyshev_polynomials_of_any_degree_take_no_time(name: str) -> None:
    op, ends = getattr(pygrad.special, name), pygrad.tensor([0.0, 0.25, 1.0, 2.0, float("nan")])
    found = op(ends, 2**31).tolist()
    assert all(abs(each) <= 2**32 + 1 for each in found[:3])
    assert found[4] != found[4]


@pytest.mark.parametrize("name", BESSEL)
def test_bessel(name: str) -> None:
    values = [*np.linspace(0.01, 40, 200), *10.0 ** np.arange(-12.0, 2.7, 0.7), 0.0, NAN]
    special = [] if "modified" in name and "_i" in name else [INF, -1.0]

    def script(t: Any) -> Any:
        op = getattr(t.special, name)
        x = t.tensor([*values, *special], dtype=t.float64)
        return [
            op(x),
            op(x.float()[20:100]),
            op(t.tensor([1, 2])),
            op(x, out=t.empty_like(x)),
            op(x.clone().requires_grad_()).requires_grad,
            result_or_error(lambda: op(1.0)),
        ]

    # PyTorch's J and Y are off by up to 9e-7 beyond 5: tests/test_accuracy.py has the true values.
    both(script, rtol=1e-6, atol=2e-6 if name.startswith("bessel") else 1e-12)
