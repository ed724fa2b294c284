"""The stated errors of the maths functions, in units in the last place."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pytest

import pygrad

Exact = Callable[[npt.NDArray[np.longdouble]], npt.NDArray[np.longdouble]]


def _each(f: Callable[[float], float]) -> Exact:
    """f element by element in float64: more than enough beside float32."""
    return lambda x: np.array([f(float(v)) for v in x], dtype=np.longdouble)


def _sigmoid(x: npt.NDArray[np.longdouble]) -> npt.NDArray[np.longdouble]:
    one = np.longdouble(1)
    result: npt.NDArray[np.longdouble] = one / (one + np.exp(-x))
    return result


def _gelu(v: float) -> float:
    return 0.5 * v * math.erfc(-v * math.sqrt(0.5))


# Name, what is exact, the range, the error stated for float32 and for float64 (None: not here).
STATED: list[tuple[str, Exact, float, float, float, float | None]] = [
    ("exp", np.exp, -103, 88.7, 1, 1),
    ("exp", np.exp, -2, 2, 1, 1),
    ("log", np.log, 1e-40, 3e38, 1, 1),
    ("log", np.log, 0.4, 2.5, 1, 1),
    ("sin", np.sin, -1000, 1000, 1, 1),
    ("cos", np.cos, -1000, 1000, 1, 1),
    ("tanh", np.tanh, -20, 20, 1.1, 2.2),
    ("tanh", np.tanh, -1.5, 1.5, 1.1, 2.2),
    ("sigmoid", _sigmoid, -104, 104, 2, 2),
    ("sigmoid", _sigmoid, -3, 3, 2, 2),
    ("erf", _each(math.erf), -4.5, 4.5, 1.5, None),
    ("nn.functional.gelu", _each(_gelu), -2, 2, 5, None),
    ("nn.functional.gelu", _each(_gelu), -14, 10, 6, None),
]


def samples(low: float, high: float, dtype: type) -> npt.NDArray[np.floating]:
    """Evenly spread numbers, and as many spread over the exponents."""
    rng = np.random.default_rng(1)
    even = rng.uniform(low, high, 20_000)
    size = np.exp(rng.uniform(math.log(1e-6), math.log(max(abs(low), abs(high))), 20_000))
    spread = np.where(rng.random(20_000) < 0.5, -size, size)
    both = np.concatenate([even, spread[(spread >= low) & (spread <= high)]])
    return both.astype(dtype)


def worst(y: npt.NDArray[np.floating], exact: npt.NDArray[np.longdouble]) -> float:
    """The largest error in units in the last place of what is true, subnormal or not."""
    near = np.maximum(np.abs(exact), np.finfo(y.dtype).tiny).astype(y.dtype)
    unit = np.exp2(np.floor(np.log2(near.astype(np.longdouble)))) * np.finfo(y.dtype).eps
    return float(np.max(np.abs(y.astype(np.longdouble) - exact) / unit))


def value(name: str, x: npt.NDArray[np.floating]) -> npt.NDArray[np.floating]:
    f = pygrad
    for part in name.split("."):
        f = getattr(f, part)
    result: npt.NDArray[np.floating] = f(pygrad.from_numpy(x)).numpy()  # type: ignore[operator]
    return result


@pytest.mark.parametrize(("name", "exact", "low", "high", "single", "double"), STATED)
def test_stated_error(
    name: str, exact: Exact, low: float, high: float, single: float, double: float | None
) -> None:
    x = samples(low, high, np.float32)
    assert worst(value(name, x), exact(x.astype(np.longdouble))) <= single
    if double is not None and np.finfo(np.longdouble).nmant > 60:
        x = samples(low, high, np.float64)
        assert worst(value(name, x), exact(x.astype(np.longdouble))) <= double


@pytest.mark.parametrize(
    "name", ["exp", "log", "tanh", "sigmoid", "erf", "sin", "cos", "nn.functional.gelu"]
)
def test_limits(name: str) -> None:
    """NaN stays NaN, whatever its payload and sign, wherever it stands in a block."""
    x = np.linspace(0.1, 1.5, 300, dtype=np.float32)
    bits = np.array([0x7FC00000, 0xFFC00000, 0x7F812345, 0xFF812345], dtype=np.uint32)
    x[[0, 17, 255, 299]] = bits.view(np.float32)
    y = value(name, x)
    assert np.isnan(y).nonzero()[0].tolist() == [0, 17, 255, 299]


def test_infinities() -> None:
    x = np.array([-np.inf, np.inf], dtype=np.float32)
    assert value("exp", x).tolist() == [0.0, np.inf]
    assert value("sigmoid", x).tolist() == [0.0, 1.0]
    assert value("tanh", x).tolist() == [-1.0, 1.0]
    assert value("erf", x).tolist() == [-1.0, 1.0]
    assert value("nn.functional.gelu", x)[1] == np.inf


def test_gradient_of_gelu() -> None:
    """Phi(x) + x phi(x), which is zero near -0.75: by the size of its terms."""
    x = samples(-14, 10, np.float32)
    t = pygrad.from_numpy(x).requires_grad_()
    pygrad.nn.functional.gelu(t).sum().backward()
    assert t.grad is not None
    wide = x.astype(np.float64)
    exact = [
        0.5 * math.erfc(-v * math.sqrt(0.5)) + v * math.exp(-v * v / 2) / math.sqrt(2 * math.pi)
        for v in wide
    ]
    np.testing.assert_allclose(t.grad.numpy(), exact, rtol=2e-6, atol=2e-7)
