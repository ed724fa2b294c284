"""torch.special beside the op table: orthogonal polynomials by their recurrences, modified Bessel
functions by an integral and, far out, by Hankel's series. As in PyTorch none has a gradient.

Bessel's J and Y are not here: PyTorch's are exact to 1e-7 only beyond 5, in float64 too.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

from . import _ops
from ._builtins import builtin
from ._dtypes import float64
from ._out import into
from ._tensor import Tensor

_F = _ops.SPACES["torch"]
_S = _ops.SPACES["special"]
Function = Callable[..., Tensor]


def _floating(*given: Any) -> Any:
    """The floating dtype in which PyTorch computes."""
    kind = functools.reduce(_F["promote_types"], (each.dtype for each in given))
    return kind if kind.is_floating_point else _F["get_default_dtype"]()


# ---------------------------------------------------------------- polynomials

Step = Callable[[int, Tensor, Tensor, Tensor], Tensor]


def _chebyshev(k: int, x: Tensor, p: Tensor, q: Tensor) -> Tensor:
    return 2 * x * p - q


_POLYNOMIALS: dict[str, tuple[str, Callable[[Tensor], Tensor], Step]] = {
    "chebyshev_polynomial_t": ("of the first kind", lambda x: x, _chebyshev),
    "chebyshev_polynomial_u": ("of the second kind", lambda x: 2 * x, _chebyshev),
    "chebyshev_polynomial_v": ("of the third kind", lambda x: 2 * x - 1, _chebyshev),
    "chebyshev_polynomial_w": ("of the fourth kind", lambda x: 2 * x + 1, _chebyshev),
    "hermite_polynomial_h": (
        "of the physicists",
        lambda x: 2 * x,
        lambda k, x, p, q: 2 * x * p - 2 * k * q,
    ),
    "hermite_polynomial_he": (
        "of the probabilists",
        lambda x: x,
        lambda k, x, p, q: x * p - k * q,
    ),
    "laguerre_polynomial_l": (
        "of Laguerre",
        lambda x: 1 - x,
        lambda k, x, p, q: ((2 * k + 1 - x) * p - k * q) / (k + 1),
    ),
    "legendre_polynomial_p": (
        "of Legendre",
        lambda x: x,
        lambda k, x, p, q: ((2 * k + 1) * x * p - k * q) / (k + 1),
    ),
}
"""What follows the 1 of degree 0, and what follows degree k, p, and k - 1, q."""


def _polynomial(name: str, shifted: bool) -> Function:
    which, first, step = _POLYNOMIALS[name.removeprefix("shifted_")]

    def function(x: Any, n: Any, *, out: Any = None) -> Tensor:
        tensors = [each for each in (x, n) if isinstance(each, Tensor)]
        if not tensors or not all(isinstance(each, (Tensor, int, float)) for each in (x, n)):
            raise TypeError(
                f"special_{name}() takes two tensors, or a tensor and a number, not "
                f"{type(x).__name__} and {type(n).__name__}"
            )
        kind = _floating(*tensors)
        given = [
            each if isinstance(each, Tensor) else _F["scalar_tensor"](each, dtype=float64)
            for each in (x, n)
        ]
        points, degrees = _F["broadcast_tensors"](*given)
        points, degrees = points.detach().to(kind), degrees.detach().to(float64).trunc()
        points = 2 * points - 1 if shifted else points
        before, now = _F["ones_like"](points), first(points)
        found = _F["where"](degrees == 0, before, _F["zeros_like"](points))
        most = degrees.nan_to_num(0.0, 0.0, 0.0).max().item() if degrees.numel() else 0.0
        for k in range(1, int(most) + 1):
            found = _F["where"](degrees == k, now, found)
            before, now = now, step(k, points, now, before)
        result: Tensor = into(f"special_{name}", found, out)
        return result

    function.__name__ = function.__qualname__ = name
    function.__module__ = "pygrad.special"
    function.__doc__ = (
        f"The {'shifted ' if shifted else ''}polynomial {which} of degree n at x; 0 where n is "
        "negative.\n\nOne of `x` and `n` may be a number; `out` is where to put the result."
    )
    return builtin(function)


FUNCTIONS: dict[str, Function] = {name: _polynomial(name, False) for name in _POLYNOMIALS}
FUNCTIONS |= {
    f"shifted_{name}": _polynomial(f"shifted_{name}", True)
    for name in _POLYNOMIALS
    if name.startswith("chebyshev")
}

# ---------------------------------------------------------------- Bessel functions

_EULER = 0.57721566490153286
_STEP, _STEPS = 0.125, 200
_TINY, _FAR = 1e-9, 25.0
"""Below the first the limit, beyond the other the series is as good as a float64."""


def _hankel(order: int, x: Tensor) -> Tensor:
    """Hankel's series, exp(x) K by its size far out."""
    term = total = _F["ones_like"](x)
    for k in range(24):
        term = term * (4 * order**2 - (2 * k + 1) ** 2) / (8 * (k + 1)) / x
        total = total + term
    return (math.pi / 2 / x).sqrt() * total  # type: ignore[no-any-return]


def _decay(order: int, scaled: bool, x: Tensor) -> Tensor:
    """K, or exp(x) K if `scaled`: the integral over t of exp(-x cosh t) cosh(order t)."""
    t = _F["arange"](_STEPS, dtype=float64) * _STEP
    weights = (order * t).cosh() * _STEP
    weights[0] /= 2
    near = x.clamp(_TINY, _FAR)[..., None]
    found = (weights * (-2 * near * (t / 2).sinh().square()).exp()).sum(-1)
    found = _F["where"](x > _FAR, _hankel(order, x.clamp(min=_FAR)), found)
    limit = (1 / x if order else -(x / 2).log() - _EULER) * x.exp()
    found = _F["where"](x < _TINY, limit, found)
    found = found.masked_fill(x < 0, math.nan).masked_fill(x == 0, math.inf)
    return found if scaled else found * (-x).exp()  # type: ignore[no-any-return]


def _spherical(x: Tensor) -> Tensor:
    ratio: Tensor = x.sin() / x
    return ratio.masked_fill(x == 0, 1.0).masked_fill(x.isinf(), 0.0)


_BESSEL: dict[str, tuple[str, Callable[[Tensor], Tensor]]] = {
    **{
        f"{prefix}modified_bessel_k{order}": (
            f"{'exp(x) ' if prefix else ''}K of order {order}",
            functools.partial(_decay, order, bool(prefix)),
        )
        for prefix in ("", "scaled_")
        for order in (0, 1)
    },
    "modified_bessel_i0": ("I of order 0", _S["i0"]),
    "modified_bessel_i1": ("I of order 1", _S["i1"]),
    "spherical_bessel_j0": ("the spherical j of order 0, sin(x) / x", _spherical),
}


def _bessel(name: str) -> Function:
    which, compute = _BESSEL[name]

    def applied(given: Tensor, argument: str, out: Any) -> Tensor:
        if not isinstance(given, Tensor):
            raise TypeError(
                f"special_{name}(): argument '{argument}' (position 1) must be Tensor, not "
                f"{type(given).__name__}"
            )
        found = compute(given.detach().to(float64)).to(_floating(given))
        return into(f"special_{name}", found, out)  # type: ignore[no-any-return]

    def of_input(input: Tensor, *, out: Any = None) -> Tensor:
        return applied(input, "input", out)

    def of_x(x: Tensor, *, out: Any = None) -> Tensor:
        return applied(x, "x", out)

    function = of_input if name.startswith("modified") else of_x
    function.__name__ = function.__qualname__ = name
    function.__module__ = "pygrad.special"
    function.__doc__ = (
        f"Bessel's function {which}, of each element.\n\n"
        "Integers become the default floating type; `out` is where to put the result."
    )
    return builtin(function)


FUNCTIONS |= {name: _bessel(name) for name in _BESSEL}
