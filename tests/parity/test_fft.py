"""torch.fft: values, gradients, layouts, messages."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from oracle import both, tried


def reals(t: Any, *shape: int) -> Any:
    values = np.random.default_rng(sum(shape)).normal(size=shape)
    return t.from_numpy(values).requires_grad_()


FREQUENCIES: dict[str, Callable[[Any, Any], Any]] = {
    "lengths": lambda t, f: [f(n) for n in range(9)],
    "spacing": lambda t, f: [f(6, d) for d in (0.5, 3, -2.0, 0.0, 1e-50)],
    "float64": lambda t, f: f(7, 0.3, dtype=t.float64),
    "negative_lengths": lambda t, f: [tried(lambda n=n: f(n)) for n in (-1, -2, -4)],
    "integers": lambda t, f: f(4, dtype=t.int64),
    "leaf": lambda t, f: [(y := f(4, requires_grad=True)), y.requires_grad, y.is_leaf],
    "out": lambda t, f: (lambda out: [f(8, 2, out=out) is out, out])(t.empty(0).double()),
    "out_too_short": lambda t, f: f(8, out=t.empty(3)),
    "out_of_integers": lambda t, f: f(8, out=t.empty(8).long()),
    "out_and_dtype": lambda t, f: f(8, out=t.empty(8), dtype=t.float64),
    "no_length": lambda t, f: f(),
    "length_of_no_integer": lambda t, f: f(2.0),
    "no_device": lambda t, f: f(2, device="nowhere"),
}


@pytest.mark.parametrize("name", FREQUENCIES)
@pytest.mark.parametrize("function", ["fftfreq", "rfftfreq"])
def test_frequencies(function: str, name: str) -> None:
    both(lambda t: FREQUENCIES[name](t, getattr(t.fft, function)), rtol=0, atol=0)


SHIFTS: dict[str, Callable[[Any, Any], Any]] = {
    "all": lambda t, f: [f(t.arange(n)) for n in (1, 2, 5)] + [f(t.arange(6).view(2, 3))],
    "dims": lambda t, f: [f(t.arange(12).view(3, 4), dim=d) for d in (0, -1, (1, 0), (0, 0))],
    "empty": lambda t, f: f(t.ones(2, 0, 3)),
    "scalar": lambda t, f: [tried(lambda d=d: f(t.tensor(1.0), d)) for d in (None, 0, ())],
    "no_dims": lambda t, f: f(t.ones(2), dim=()),
    "dim_too_far": lambda t, f: f(t.ones(2), dim=(0, 1)),
    "dim_of_no_integer": lambda t, f: f(t.ones(2), dim=1.0),
    "list": lambda t, f: f([1.0, 2.0]),
    "gradient": lambda t, f: (
        lambda x: [(y := f(x, 1)).grad_fn.name(), (y**3).sum().backward(), x.grad]
    )(reals(t, 2, 5)),
    "vmap": lambda t, f: [
        t.func.vmap(lambda x, d=d: f(x, d))(reals(t, 2, 3, 4)) for d in (None, 0, (-1, 0))
    ],
    "tangent": lambda t, f: t.func.jvp(f, (reals(t, 5),), (t.arange(5.0).double(),)),
}


@pytest.mark.parametrize("name", SHIFTS)
@pytest.mark.parametrize("function", ["fftshift", "ifftshift"])
def test_shifts(function: str, name: str) -> None:
    both(lambda t: SHIFTS[name](t, getattr(t.fft, function)), rtol=0, atol=0)
