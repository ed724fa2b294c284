"""Derivatives of functions of one number to the third order, at their zeros, near them, and in
their tails, beside differences in 160 digits by mpmath. PyTorch's are NaN, 0 or without a right
digit at many of these points.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest

import pygrad

mpmath = pytest.importorskip("mpmath", reason="mpmath, which PyTorch installs, is not here")
M = mpmath.mpf
F, S = pygrad.nn.functional, pygrad.special

Function = Callable[[Any], Any]
NEAR = [0.0, 1e-20, 1e-8, 1e-4, 0.01, 0.5, 1.0, 2.0, 3.0, 10.0]
WHOLE = [*NEAR, *(-x for x in NEAR[1:])]
FAR = [*WHOLE, 40.0, -40.0, 100.0, -100.0]
ABOVE = [1e-20, 1e-8, 0.01, 0.5, 1.0, 2.0, 3.0, 10.0, 100.0]
BELOW_ONE = [0.0, *(s * x for s in (1, -1) for x in (1e-20, 1e-8, 0.01, 0.5, 0.99))]


def fill_like(x: Any, value: float) -> Any:
    return pygrad.full_like(x, value)


def softplus(x: Any) -> Any:
    return mpmath.log1p(mpmath.exp(x)) if x < 0 else x + mpmath.log1p(mpmath.exp(-x))


def ndtr(x: Any) -> Any:
    return mpmath.erfc(-x / mpmath.sqrt(2)) / 2


def sinc(x: Any) -> Any:
    return mpmath.sinc(mpmath.pi * x)


FUNCTIONS: dict[str, tuple[Function, Function, list[float]]] = {
    "exp": (pygrad.exp, mpmath.exp, WHOLE),
    "expm1": (pygrad.expm1, mpmath.expm1, WHOLE),
    "log1p": (pygrad.log1p, mpmath.log1p, NEAR),
    "log": (pygrad.log, mpmath.log, ABOVE),
    "sqrt": (pygrad.sqrt, mpmath.sqrt, ABOVE),
    "rsqrt": (pygrad.rsqrt, lambda x: 1 / mpmath.sqrt(x), ABOVE),
    "sin": (pygrad.sin, mpmath.sin, WHOLE),
    "cos": (pygrad.cos, mpmath.cos, WHOLE),
    "tan": (pygrad.tan, mpmath.tan, WHOLE),
    "asin": (pygrad.asin, mpmath.asin, BELOW_ONE),
    "acos": (pygrad.acos, mpmath.acos, BELOW_ONE),
    "atan": (pygrad.atan, mpmath.atan, FAR),
    "sinh": (pygrad.sinh, mpmath.sinh, WHOLE),
    "tanh": (pygrad.tanh, mpmath.tanh, WHOLE),
    "asinh": (pygrad.asinh, mpmath.asinh, FAR),
    "acosh": (pygrad.acosh, mpmath.acosh, [1.01, 2.0, 10.0, 100.0]),
    "atanh": (pygrad.atanh, mpmath.atanh, BELOW_ONE),
    "sinc": (pygrad.sinc, sinc, FAR),
    "sinc squared": (lambda x: pygrad.sinc(x) ** 2, lambda x: sinc(x) ** 2, WHOLE),
    "sigmoid": (pygrad.sigmoid, lambda x: 1 / (1 + mpmath.exp(-x)), WHOLE),
    "softplus": (F.softplus, softplus, [x for x in FAR if x < 20]),
    "silu": (F.silu, lambda x: x / (1 + mpmath.exp(-x)), WHOLE),
    "mish": (F.mish, lambda x: x * mpmath.tanh(softplus(x)), WHOLE),
    "gelu": (F.gelu, lambda x: x * ndtr(x), FAR),
    "elu": (F.elu, lambda x: x if x > 0 else mpmath.expm1(x), [*FAR[1:], 800.0, -800.0]),
    "erf": (pygrad.erf, mpmath.erf, FAR),
    "erfc": (pygrad.erfc, mpmath.erfc, FAR),
    "erfcx": (S.erfcx, lambda x: mpmath.exp(x * x) * mpmath.erfc(x), [x for x in FAR if x > -11]),
    "erfcx far": (S.erfcx, lambda x: mpmath.exp(x * x) * mpmath.erfc(x), [600.0, 1e5]),
    "erfinv": (pygrad.erfinv, mpmath.erfinv, BELOW_ONE),
    "ndtr": (S.ndtr, ndtr, FAR),
    "log_ndtr": (S.log_ndtr, lambda x: mpmath.log(ndtr(x)), [x for x in FAR if x > -41]),
    "lgamma": (pygrad.lgamma, lambda x: mpmath.log(abs(mpmath.gamma(x))), [*ABOVE, -1e-20, -0.5]),
    "digamma": (pygrad.digamma, mpmath.digamma, [*ABOVE, -1e-8, -0.5]),
    "i0": (S.i0, lambda x: mpmath.besseli(0, x), FAR),
    "i0e": (S.i0e, lambda x: mpmath.besseli(0, x) * mpmath.exp(-abs(x)), FAR[1:]),
    "i1": (S.i1, lambda x: mpmath.besseli(1, x), FAR),
    "i1e": (S.i1e, lambda x: mpmath.besseli(1, x) * mpmath.exp(-abs(x)), FAR[1:]),
    "entr": (S.entr, lambda x: -x * mpmath.log(x), ABOVE),
    "logit": (pygrad.logit, lambda x: mpmath.log(x / (1 - x)), [1e-20, 1e-8, 0.25, 0.5, 0.99]),
    "logaddexp": (lambda x: pygrad.logaddexp(x, fill_like(x, 0)), softplus, [*FAR, 800.0, -800.0]),
    "logaddexp2": (
        lambda x: pygrad.logaddexp2(x, fill_like(x, 0)),
        lambda x: softplus(x * mpmath.log(2)) / mpmath.log(2),
        [*FAR, 2000.0, -2000.0],
    ),
    "hypot": (lambda x: pygrad.hypot(x, fill_like(x, 1)), lambda x: mpmath.sqrt(x * x + 1), FAR),
    "atan2": (lambda x: pygrad.atan2(x, fill_like(x, 1)), mpmath.atan, FAR),
    "copysign": (lambda x: pygrad.copysign(x, fill_like(x, 1)), abs, FAR[1:]),
    "gammainc 1": (
        lambda x: S.gammainc(fill_like(x, 1), x),
        lambda x: -mpmath.expm1(-x),
        [*NEAR, 100.0],
    ),
    "gammaincc 3": (
        lambda x: S.gammaincc(fill_like(x, 3), x),
        lambda x: (1 + x + x * x / 2) * mpmath.exp(-x),
        [*NEAR, 100.0],
    ),
    "power of 1": (lambda x: x ** pygrad.tensor(1.0, dtype=pygrad.float64), lambda x: x, WHOLE),
    "power of 2": (lambda x: x ** pygrad.tensor(2.0, dtype=pygrad.float64), lambda x: x**2, WHOLE),
    "cube": (lambda x: x**3, lambda x: x**3, WHOLE),
    "product": (lambda x: pygrad.stack([x, x, x]).prod(0), lambda x: x**3, WHOLE),
    "running product": (lambda x: pygrad.stack([x, x, x]).cumprod(0)[2], lambda x: x**3, WHOLE),
    "logsumexp": (lambda x: pygrad.logsumexp(pygrad.stack([x, 0 * x]), 0), softplus, FAR),
    "logcumsumexp": (lambda x: pygrad.logcumsumexp(pygrad.stack([x, 0 * x]), 0)[1], softplus, FAR),
}

TAILS: dict[str, tuple[Function, list[float], list[float]]] = {
    "atan": (pygrad.atan, [math.inf, -math.inf], [0, 0, 0]),
    "asinh": (pygrad.asinh, [math.inf, -math.inf, 1e200], [0, 0, 0]),
    "tanh": (pygrad.tanh, [math.inf, -math.inf], [0, 0, 0]),
    "sigmoid": (pygrad.sigmoid, [math.inf, -math.inf], [0, 0, 0]),
    "softplus": (F.softplus, [-math.inf], [0, 0, 0]),
    "elu": (F.elu, [math.inf], [1, 0, 0]),
    "gelu": (F.gelu, [1e155, 1e300], [1, 0, 0]),
    "erf": (pygrad.erf, [math.inf, -math.inf, 1e200], [0, 0, 0]),
    "erfc": (pygrad.erfc, [math.inf, -math.inf], [0, 0, 0]),
    "erfcx": (S.erfcx, [math.inf, 1e200], [0, 0, 0]),
    "ndtr": (S.ndtr, [math.inf, -math.inf], [0, 0, 0]),
    "log_ndtr": (S.log_ndtr, [math.inf, 1e10], [0, 0, 0]),
    "i0e": (S.i0e, [math.inf, -math.inf], [0, 0, 0]),
    "i1e": (S.i1e, [math.inf, -math.inf], [0, 0, 0]),
    "sinc": (pygrad.sinc, [1e160, -1e300], [0, 0, 0]),
    "digamma": (pygrad.digamma, [math.inf], [0, 0, 0]),
    "polygamma": (lambda x: pygrad.polygamma(1, x), [math.inf], [0, 0, 0]),
    "zeta": (lambda x: S.zeta(2.0, x), [math.inf], [0, 0, 0]),
    "logaddexp": (lambda x: pygrad.logaddexp(x, fill_like(x, 0)), [-math.inf, -1e200], [0, 0, 0]),
    "atan2": (lambda x: pygrad.atan2(x, fill_like(x, 1)), [math.inf, -math.inf], [0, 0, 0]),
    "gammainc": (lambda x: S.gammainc(fill_like(x, 2), x), [math.inf], [0, 0, 0]),
}


def derivatives(f: Function, at: float) -> list[float]:
    """The value of a function and its three derivatives."""
    x = pygrad.tensor(at, dtype=pygrad.float64, requires_grad=True)
    y = f(x)
    found = [y.item()]
    for _ in range(3):
        if y.requires_grad:
            (y,) = pygrad.autograd.grad(y, x, create_graph=True)
        else:  # the same everywhere
            y = pygrad.zeros_like(x)
        found.append(y.item())
    return found


def differences(f: Function, at: float) -> list[float]:
    """A derivative by central differences of five values."""
    with mpmath.workdps(160):
        x, h = M(at), (abs(M(at)) or 1) * M(10) ** -18
        a, b, c, d, e = (f(x + k * h) for k in (-2, -1, 0, 1, 2))
        third = (e - 2 * d + 2 * b - a) / (2 * h**3)
        return [float(v) for v in (c, (d - b) / (2 * h), (d - 2 * c + b) / h**2, third)]


@pytest.mark.parametrize("name", FUNCTIONS)
def test_three_derivatives(name: str) -> None:
    mine, exact, points = FUNCTIONS[name]
    for at in points:
        found, wanted = derivatives(mine, at), differences(exact, at)
        assert found == pytest.approx(wanted, rel=1e-6, abs=1e-11), at


@pytest.mark.parametrize("name", TAILS)
def test_three_derivatives_in_the_tails(name: str) -> None:
    f, points, wanted = TAILS[name]
    for at in points:
        assert derivatives(f, at)[1:] == pytest.approx(wanted, abs=1e-99), at
