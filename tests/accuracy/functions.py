"""The functions of the table of accuracy: what each is by mpmath, and where it is asked."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any

import mpmath as mp
from points import Draw, draw_between, near

Exact = Callable[..., Any]
Call = Callable[..., Any]
BITS = 160
"""The precision of what is exact: a double may lie close to a zero."""


@dataclass(frozen=True)
class Function:
    """`call(torch, *tensors)` is `exact(*numbers)`; each of `where` draws each argument."""

    name: str
    call: Call
    exact: Exact
    where: tuple[tuple[Draw, ...], ...]


# ------------------------------------------------------------------ what is exact


def _inverse_of_erfc(c: Any) -> Any:
    """x where erfc(x) = c, for c in (0, 1], by Newton's method on the logarithm."""
    if c == 1:
        return mp.mpf(0)
    start = -NormalDist().inv_cdf(float(c) / 2) / math.sqrt(2)
    x = mp.mpf(start) if c < 0.9 else (1 - c) * mp.sqrt(mp.pi) / 2
    for _ in range(8):
        value = mp.erfc(x)
        step = mp.log(value / c) * value * mp.sqrt(mp.pi) / 2 * mp.exp(x * x)
        x += step
        if abs(step) < abs(x) * mp.mpf(2) ** -70:
            break
    return x


def _erfinv(y: Any) -> Any:
    if abs(y) < 1e-9:
        return y * mp.sqrt(mp.pi) / 2 * (1 + mp.pi * y * y / 12)
    return mp.sign(y) * _inverse_of_erfc(1 - abs(y))


def _ndtri(p: Any) -> Any:
    c = 2 * p if p < 0.5 else 2 * (1 - p)
    return mp.sqrt(2) * _inverse_of_erfc(c) * (-1 if p < 0.5 else 1)


def _log_ndtr(x: Any) -> Any:
    t = x / mp.sqrt(2)
    return mp.log(mp.erfc(-t) / 2) if x < 1 else mp.log1p(-mp.erfc(t) / 2)


def _lgamma(x: Any) -> Any:
    return mp.re(mp.loggamma(x)) if x > 0 else mp.log(abs(mp.pi / mp.sinpi(x))) - mp.loggamma(1 - x)


def _sigmoid(x: Any) -> Any:
    return 1 / (1 + mp.exp(-x))


def _softplus(x: Any) -> Any:
    return mp.log1p(mp.exp(x)) if x < 0 else x + mp.log1p(mp.exp(-x))


def _gelu_tanh(x: Any) -> Any:
    return x * _sigmoid(2 * mp.sqrt(2 / mp.pi) * (x + mp.mpf("0.044715") * x**3))


def _polygamma(n: int) -> Exact:
    return lambda x: mp.polygamma(n, x)


def _logaddexp(a: Any, b: Any) -> Any:
    return max(a, b) + mp.log1p(mp.exp(-abs(a - b)))


def _logaddexp2(a: Any, b: Any) -> Any:
    return max(a, b) + mp.log1p(mp.mpf(2) ** -abs(a - b)) / mp.log(2)


def _multigammaln(x: Any) -> Any:
    return sum(_lgamma(x - mp.mpf(k) / 2) for k in range(3)) + mp.mpf(3) / 2 * mp.log(mp.pi)


def _reciprocal_root(x: Any) -> Any:
    return 1 / mp.sqrt(x)


def _sinc(x: Any) -> Any:
    return mp.sinpi(x) / (mp.pi * x) if x else mp.mpf(1)


def _igamma(a: Any, x: Any) -> Any:
    return mp.gammainc(a, 0, x, regularized=True)


def _igammac(a: Any, x: Any) -> Any:
    return mp.gammainc(a, x, mp.inf, regularized=True)


def _bessel_sums(x: Any, sign: int) -> tuple[Any, Any, Any, Any]:
    """The sums over k of (sign x^2 / 4)^k / (k! (k + n)!) for n = 0, 1, plain and weighted by
    H_k + H_(k + n).
    """
    q, sums = sign * x * x / 4, []
    for n in (0, 1):
        term = value = mp.mpf(1)
        harmonic = tail = mp.mpf(n)
        k = 1
        while k < abs(x) or abs(term) > mp.mpf(2) ** -BITS:
            term *= q / (k * (k + n))
            harmonic += mp.mpf(1) / k + mp.mpf(1) / (k + n)
            value += term
            tail += term * harmonic
            k += 1
        sums += [value, tail]
    return sums[0], sums[1], sums[2], sums[3]


def _bessel_y(order: int) -> Exact:
    """Y by the power series (DLMF 10.8.1) and by Hankel's expansion (10.17.4)."""

    def exact(x: Any) -> Any:
        if x > 45:
            sums, term, k = [mp.mpf(1), mp.mpf(0)], mp.mpf(1), 1
            while k < 2 * x and abs(term) > mp.mpf(2) ** -BITS:
                term *= (4 * order - mp.mpf(2 * k - 1) ** 2) / (8 * k * x)
                sums[k % 2] += term if k % 4 < 2 else -term
                k += 1
            w = x - order * mp.pi / 2 - mp.pi / 4
            return mp.sqrt(2 / (mp.pi * x)) * (mp.sin(w) * sums[0] + mp.cos(w) * sums[1])
        with mp.extraprec(int(3 * x)):
            j0, tail0, j1, tail1 = _bessel_sums(x, -1)
            log = 2 * (mp.log(x / 2) + mp.euler)
            if order == 0:
                return (log * j0 - tail0) / mp.pi
            return (-2 / x + x / 2 * (log * j1 - tail1)) / mp.pi

    return exact


def _scaled_k(order: int) -> Exact:
    """exp(x) K by the power series (DLMF 10.31.1), else by the trapezoidal rule for the integral
    (10.32.9), which converges by itself.
    """

    def exact(x: Any) -> Any:
        if x < 2:
            i0, tail0, i1, tail1 = _bessel_sums(x, 1)
            log = mp.log(x / 2) + mp.euler
            y = tail0 / 2 - log * i0 if order == 0 else 1 / x + x / 2 * (log * i1 - tail1 / 2)
            return y * mp.exp(x)
        step, sum_, k = mp.mpf(1) / 12, mp.mpf(1) / 2, 1
        while True:
            t = step * k
            term = mp.exp(-2 * x * mp.sinh(t / 2) ** 2) * (mp.cosh(t) if order else 1)
            sum_ += term
            k += 1
            if term < mp.mpf(2) ** -100:
                return step * sum_

    return exact


def _k(order: int) -> Exact:
    scaled = _scaled_k(order)
    return lambda x: scaled(x) * mp.exp(-x)


# ------------------------------------------------------------------ the table

LGAMMA_ZEROS = (1.0, 2.0, -2.4570247382208005, -2.7476826467274127, -3.1435808883499798)
LGAMMA_ZEROS += (-3.9552942848585979, -4.0393618397133557, -4.991544640560047)
DIGAMMA_ZEROS = (1.4616321449683623, -0.50408300826445541, -1.5734984731623904)
J0_ZEROS = (2.4048255576957728, 5.5200781102863106, 30.634606468431975, 58.906983926080942)
J1_ZEROS = (3.8317059702075123, 7.0155866698156188, 32.189679910974404, 60.469457845347491)
Y0_ZEROS = (0.89357696627916752, 3.9576784193148579, 29.061825241862, 60.477)
Y1_ZEROS = (2.1971413260310170, 5.4296810407941351, 30.618, 58.9)
AIRY_ZEROS = (-2.3381074104597670, -4.0879494441309706, -9.0226508533409804, -12.828776752865757)


def _call_by_name(name: str) -> Call:
    def call(torch: Any, *x: Any) -> Any:
        found = torch
        for part in name.split("."):
            found = getattr(found, part)
        return found(*x)

    return call


def one(name: str, exact: Exact, *where: Draw, call: Call | None = None) -> Function:
    return Function(name, call or _call_by_name(name), exact, tuple((draw,) for draw in where))


def two(name: str, exact: Exact, *where: tuple[Draw, Draw]) -> Function:
    return Function(name, _call_by_name(name), exact, where)


NN = "nn.functional."
POSITIVE = (draw_between(1e-37, 1e38), near(1.0), draw_between(0.3, 3))
SMALL = draw_between(-2, 2)
FUNCTIONS: tuple[Function, ...] = (
    one("exp", mp.exp, draw_between(-88, 88), SMALL),
    one("exp2", lambda x: mp.mpf(2) ** x, draw_between(-126, 127), SMALL),
    one("expm1", mp.expm1, draw_between(-40, 88), SMALL),
    one("log", mp.log, *POSITIVE),
    one("log2", lambda x: mp.log(x) / mp.log(2), *POSITIVE),
    one("log10", lambda x: mp.log(x) / mp.log(10), *POSITIVE),
    one("log1p", mp.log1p, draw_between(-0.9, 1e38), near(-1.0, side=1), SMALL),
    one("sqrt", mp.sqrt, *POSITIVE),
    one("rsqrt", _reciprocal_root, *POSITIVE),
    one("reciprocal", lambda x: 1 / x, *POSITIVE),
    one(
        "sin", mp.sin, draw_between(-100, 100), draw_between(-1e9, 1e9), near(math.pi, 22 * math.pi)
    ),
    one(
        "cos",
        mp.cos,
        draw_between(-100, 100),
        draw_between(-1e9, 1e9),
        near(math.pi / 2, 7 * math.pi / 2),
    ),
    one(
        "tan", mp.tan, draw_between(-100, 100), draw_between(-1e9, 1e9), near(math.pi / 2, math.pi)
    ),
    one("asin", mp.asin, draw_between(-1, 1), near(1.0, side=-1), near(-1.0, side=1)),
    one("acos", mp.acos, draw_between(-1, 1), near(1.0, side=-1), near(-1.0, side=1)),
    one("atan", mp.atan, draw_between(-1e9, 1e9), SMALL),
    one("sinh", mp.sinh, draw_between(-89, 89), SMALL),
    one("cosh", mp.cosh, draw_between(-89, 89), SMALL),
    one("tanh", mp.tanh, draw_between(-22, 22), SMALL),
    one("asinh", mp.asinh, draw_between(-1e38, 1e38), SMALL),
    one("acosh", mp.acosh, draw_between(1, 1e38), near(1.0, side=1), draw_between(1, 4)),
    one("atanh", mp.atanh, draw_between(-0.99, 0.99), near(1.0, side=-1), near(-1.0, side=1)),
    one("sinc", _sinc, draw_between(-30, 30), SMALL, near(1.0, 2.0, -5.0)),
    one("sigmoid", _sigmoid, draw_between(-87, 40), SMALL),
    one(
        "logit",
        lambda x: mp.log(x / (1 - x)),
        draw_between(1e-30, 1 - 1e-7),
        near(0.5),
        near(1.0, side=-1),
    ),
    one("erf", mp.erf, draw_between(-6, 6), SMALL),
    one("erfc", mp.erfc, draw_between(-6, 9), SMALL),
    one(
        "special.erfcx",
        lambda x: mp.exp(x * x) * mp.erfc(x),
        draw_between(-9, 1e8),
        draw_between(-9, 30),
        SMALL,
    ),
    one("erfinv", _erfinv, draw_between(-1, 1), near(1.0, side=-1), near(-1.0, side=1)),
    one("special.ndtr", mp.ncdf, draw_between(-12, 8), SMALL),
    one("special.log_ndtr", _log_ndtr, draw_between(-1e6, 8), draw_between(-12, 5)),
    one("special.ndtri", _ndtri, draw_between(1e-37, 1), near(0.5), near(1.0, side=-1)),
    one("special.entr", lambda x: -x * mp.log(x), draw_between(1e-30, 1e30), near(1.0)),
    one(
        "lgamma",
        _lgamma,
        draw_between(1e-30, 1e30),
        draw_between(-20, 40),
        draw_between(0.5, 3),
        near(*LGAMMA_ZEROS),
    ),
    one(
        "digamma",
        mp.digamma,
        draw_between(1e-30, 1e30),
        draw_between(-20, 40),
        near(*DIGAMMA_ZEROS),
    ),
    *(
        one(
            f"polygamma({n})",
            _polygamma(n),
            draw_between(1e-3, 1e6),
            draw_between(-10, 30),
            call=lambda torch, x, n=n: torch.polygamma(n, x),
        )
        for n in (1, 2, 3)
    ),
    one(
        "multigammaln(3)",
        _multigammaln,
        draw_between(1.01, 1e6),
        draw_between(1.01, 5),
        call=lambda torch, x: torch.special.multigammaln(x, 3),
    ),
    one("i0", lambda x: mp.besseli(0, x), draw_between(-87, 87), SMALL, draw_between(5, 12)),
    one(
        "special.i0e",
        lambda x: mp.besseli(0, x) * mp.exp(-abs(x)),
        draw_between(-1e4, 1e4),
        draw_between(-40, 40),
    ),
    one(
        "special.i1", lambda x: mp.besseli(1, x), draw_between(-87, 87), SMALL, draw_between(5, 12)
    ),
    one(
        "special.i1e",
        lambda x: mp.besseli(1, x) * mp.exp(-abs(x)),
        draw_between(-1e4, 1e4),
        draw_between(-40, 40),
    ),
    one(
        "special.bessel_j0",
        lambda x: mp.besselj(0, x),
        draw_between(-60, 60),
        near(*J0_ZEROS),
        draw_between(20, 1e4),
    ),
    one(
        "special.bessel_j1",
        lambda x: mp.besselj(1, x),
        draw_between(-60, 60),
        near(*J1_ZEROS),
        draw_between(20, 1e4),
    ),
    one(
        "special.bessel_y0",
        _bessel_y(0),
        draw_between(1e-3, 60),
        near(*Y0_ZEROS),
        draw_between(20, 1e4),
    ),
    one(
        "special.bessel_y1",
        _bessel_y(1),
        draw_between(1e-3, 60),
        near(*Y1_ZEROS),
        draw_between(20, 1e4),
    ),
    one(
        "special.modified_bessel_i0",
        lambda x: mp.besseli(0, x),
        draw_between(-87, 87),
        SMALL,
        draw_between(5, 12),
    ),
    one(
        "special.modified_bessel_i1",
        lambda x: mp.besseli(1, x),
        draw_between(-87, 87),
        SMALL,
        draw_between(5, 12),
    ),
    one(
        "special.modified_bessel_k0",
        _k(0),
        draw_between(1e-30, 86),
        draw_between(0.1, 4),
        draw_between(2, 50),
    ),
    one(
        "special.modified_bessel_k1",
        _k(1),
        draw_between(1e-30, 86),
        draw_between(0.1, 4),
        draw_between(2, 50),
    ),
    one(
        "special.scaled_modified_bessel_k0",
        _scaled_k(0),
        draw_between(1e-30, 1e4),
        draw_between(0.1, 40),
    ),
    one(
        "special.scaled_modified_bessel_k1",
        _scaled_k(1),
        draw_between(1e-30, 1e4),
        draw_between(0.1, 40),
    ),
    one(
        "special.spherical_bessel_j0",
        lambda x: mp.sin(x) / x,
        draw_between(-60, 60),
        SMALL,
        near(math.pi),
    ),
    one("special.airy_ai", mp.airyai, draw_between(-20, 20), near(*AIRY_ZEROS), SMALL),
    one(NN + "silu", lambda x: x * _sigmoid(x), draw_between(-80, 80), SMALL),
    one(NN + "mish", lambda x: x * mp.tanh(_softplus(x)), draw_between(-80, 80), SMALL),
    one(NN + "softplus", _softplus, draw_between(-87, 20), SMALL),
    one(NN + "logsigmoid", lambda x: -_softplus(-x), draw_between(-80, 87), SMALL),
    one(NN + "gelu", lambda x: x * mp.ncdf(x), draw_between(-13, 13), SMALL),
    one(
        "gelu by tanh",
        _gelu_tanh,
        draw_between(-10, 13),
        SMALL,
        call=lambda torch, x: torch.nn.functional.gelu(x, approximate="tanh"),
    ),
    one(NN + "elu", lambda x: x if x > 0 else mp.expm1(x), draw_between(-30, 9), SMALL),
    one("deg2rad", lambda x: x * mp.pi / 180, draw_between(-1e9, 1e9)),
    one("rad2deg", lambda x: x * 180 / mp.pi, draw_between(-1e9, 1e9)),
    two("atan2", mp.atan2, (draw_between(-1e9, 1e9), draw_between(-1e9, 1e9)), (SMALL, SMALL)),
    two("hypot", mp.hypot, (draw_between(-1e18, 1e18), draw_between(-1e18, 1e18)), (SMALL, SMALL)),
    two(
        "pow",
        lambda a, b: a**b,
        (draw_between(1e-9, 1e9), draw_between(-4, 4)),
        (draw_between(0.5, 2), draw_between(-80, 80)),
    ),
    two("logaddexp", _logaddexp, (draw_between(-80, 80), draw_between(-80, 80)), (SMALL, SMALL)),
    two("logaddexp2", _logaddexp2, (draw_between(-80, 80), draw_between(-80, 80)), (SMALL, SMALL)),
    two("xlogy", lambda a, b: a * mp.log(b), (SMALL, POSITIVE[0]), (SMALL, near(1.0))),
    two(
        "special.xlog1py",
        lambda a, b: a * mp.log1p(b),
        (SMALL, draw_between(-0.9, 1e30)),
        (SMALL, SMALL),
    ),
    two(
        "special.zeta",
        mp.zeta,
        (draw_between(1.01, 20), draw_between(0.1, 30)),
        (near(1.0, side=1), draw_between(0.1, 3)),
    ),
    two(
        "igamma",
        _igamma,
        (draw_between(0.1, 90), draw_between(0.1, 90)),
        (draw_between(0.1, 5), draw_between(0.01, 9)),
    ),
    two(
        "igammac",
        _igammac,
        (draw_between(0.1, 90), draw_between(0.1, 90)),
        (draw_between(0.1, 5), draw_between(0.01, 9)),
    ),
)
