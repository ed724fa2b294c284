"""Functions of numbers that PyTorch traces when they are sizes: sizes are plain numbers here."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .._ground.package import PACKAGE as _PACKAGE

_NUMBERS = (np.integer, np.floating, int, float)


def sym_int(a: Any) -> int:
    """The whole part of a number.

    Example:
        >>> import pygrad
        >>> pygrad.sym_int(-2.5)
        -2
    """
    return int(a)


def sym_float(a: Any) -> float:
    """A number as a float."""
    return float(a)


def sym_not(a: Any) -> bool:
    """Not `a`."""
    return not a


def _alike(a: Any, b: Any) -> tuple[Any, Any]:
    for each in (a, b):
        if not isinstance(each, _NUMBERS):
            raise AssertionError(f"expected {_NUMBERS}, got {type(each)}")
    real = isinstance(a, (float, np.floating)) or isinstance(b, (float, np.floating))
    return (float(a), float(b)) if real else (a, b)


def sym_max(a: Any, b: Any) -> Any:
    """The larger number; a float if one of them is.

    Example:
        >>> import pygrad
        >>> pygrad.sym_max(3, 2.5)
        3.0
    """
    return max(*_alike(a, b))


def sym_min(a: Any, b: Any) -> Any:
    """The smaller number; a float if one of them is."""
    return min(*_alike(a, b))


def sym_ite(b: Any, t: Any, f: Any) -> Any:
    """`t` if `b`, else `f`, which must be of its type."""
    if not isinstance(b, bool):
        raise AssertionError(f"expected SymBool or bool, got {type(b)}")
    if type(t) is not type(f):
        raise AssertionError(f"type mismatch: {type(t)} vs {type(f)}")
    return t if b else f


def sym_sum(*args: Any) -> Any:
    """The sum of a list of numbers."""
    return sum(args[0] if len(args) == 1 else args)


def sym_fresh_size(expr: Any) -> Any:
    """The number itself."""
    return expr


def _float_function(name: str) -> Any:
    compute = getattr(math, name)

    def function(a: Any) -> float:
        return float(compute(a))

    function.__name__ = function.__qualname__ = f"_sym_{name}"
    function.__doc__ = f"math.{name}"
    return function


_FLOATS = "acos asin atan cos cosh log2 sin sinh sqrt tan tanh".split()
"""The functions of `math` that PyTorch has for sizes."""
globals().update({f"_sym_{name}": _float_function(name) for name in _FLOATS})
sym_sqrt = globals()["_sym_sqrt"]

for _value in [*globals().values()]:  # where users know them
    if getattr(_value, "__module__", None) == __name__:
        _value.__module__ = _PACKAGE
