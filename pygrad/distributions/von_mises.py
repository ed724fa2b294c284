"""The von Mises distribution."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from .._tensor import namespace as pygrad
from .._tensor.tensor import Tensor
from . import constraints
from ._location_scale import Centred
from .utils import broadcast_all, lazy_property

__all__ = ["VonMises"]

# Abramowitz and Stegun, 9.8.1 to 9.8.4: the Bessel functions of order 0 and 1, as polynomials in
# the square of x / 3.75 below 3.75, and in 3.75 / x above.
_SMALL = (
    (1.0, 3.5156229, 3.0899424, 1.2067492, 0.2659732, 0.0360768, 0.0045813),
    (0.5, 0.87890594, 0.51498869, 0.15084934, 0.02658733, 0.00301532, 0.00032411),
)
_LARGE = (
    (
        *(0.39894228, 0.01328592, 0.00225319, -0.00157565, 0.00916281),
        *(-0.02057706, 0.02635537, -0.01647633, 0.00392377),
    ),
    (
        *(0.39894228, -0.03988024, -0.00362018, 0.00163801, -0.01031555),
        *(0.02282967, -0.02895312, 0.01787654, -0.00420059),
    ),
)


def _eval_poly(y: Any, coef: Sequence[float]) -> Any:
    """coef[0] + y (coef[1] + y (...))"""
    found: Any = coef[-1]
    for c in reversed(coef[:-1]):
        found = c + y * found
    return found


def _log_modified_bessel_fn(x: Tensor, order: int = 0) -> Any:
    """The logarithm of the modified Bessel function of order 0 or 1, for positive x."""
    if order not in (0, 1):
        raise AssertionError(f"order must be 0 or 1, got {order}")
    small = _eval_poly((x / 3.75).pow(2), _SMALL[order])
    small = (x.abs() * small if order else small).log()
    large = x - 0.5 * x.log() + _eval_poly(3.75 / x, _LARGE[order]).log()
    return pygrad.where(x < 3.75, small, large)


def _rejection_sample(loc: Tensor, concentration: Tensor, proposal_r: Tensor, x: Tensor) -> Any:
    """Repeats draws until all are accepted (D. J. Best and N. I. Fisher, 1979)."""
    done = pygrad.zeros(x.shape, dtype=pygrad.bool)
    while not bool(done.all()):
        u1, u2, u3 = pygrad.rand((3, *x.shape), dtype=loc.dtype).unbind()
        z = (math.pi * u1).cos()
        f = (1 + proposal_r * z) / (proposal_r + z)
        c = concentration * (proposal_r - f)
        accepted = (c * (2 - c) - u2 > 0) | ((c / u2).log() + 1 - c >= 0)
        x = pygrad.where(accepted, (u3 - 0.5).sign() * f.acos(), x)
        done |= accepted
    return (x + math.pi + loc) % (2 * math.pi) - math.pi


class VonMises(Centred):
    """Von Mises distributions over angles, in radians.

    Args:
        loc: the mean angle.
        concentration: the larger, the narrower.
        validate_args: check parameters and values.

    Raises:
        ValueError: a concentration that is not positive.

    Example:
        >>> import pygrad
        >>> made = pygrad.distributions.VonMises(pygrad.tensor(0.0), pygrad.tensor(1.0))
        >>> made.log_prob(pygrad.tensor(0.0))
        tensor(-1.0738)
    """

    arg_constraints = {  # noqa: RUF012
        "loc": constraints.real,
        "concentration": constraints.positive,
    }
    support = constraints.real

    def __init__(self, loc: Any, concentration: Any, validate_args: bool | None = None) -> None:
        self.loc, self.concentration = broadcast_all(loc, concentration)
        super().__init__(self.loc.shape, validate_args=validate_args)

    @lazy_property
    def variance(self) -> Any:
        """The circular variance: 1 minus the length of the mean unit vector."""
        first = _log_modified_bessel_fn(self.concentration, order=1)
        return 1 - (first - _log_modified_bessel_fn(self.concentration, order=0)).exp()

    @lazy_property
    def _loc(self) -> Tensor:
        return self.loc.double()

    @lazy_property
    def _concentration(self) -> Tensor:
        return self.concentration.double()

    @lazy_property
    def _proposal_r(self) -> Tensor:
        k = self._concentration
        tau = 1 + (1 + 4 * k**2).sqrt()
        rho = (tau - (2 * tau).sqrt()) / (2 * k)
        return pygrad.where(k < 1e-5, 1 / k + k, (1 + rho**2) / (2 * rho))

    def sample(self, sample_shape: Any = ()) -> Tensor:
        """Values without gradients; drawn in float64 for every dtype."""
        with pygrad.no_grad():
            x = pygrad.empty(self._extended_shape(sample_shape), dtype=pygrad.float64)
            drawn = _rejection_sample(self._loc, self._concentration, self._proposal_r, x)
            return drawn.to(self.loc.dtype)  # type: ignore[no-any-return]

    def log_prob(self, value: Tensor) -> Any:
        self._check(value)
        found = self.concentration * (value - self.loc).cos() - math.log(2 * math.pi)
        return found - _log_modified_bessel_fn(self.concentration, order=0)
