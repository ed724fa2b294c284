"""torch.signal.windows: functions made from the op table's rows of this namespace.

Type checkers read windows.pyi, which `make stubs` writes from the same table.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from .._table import functions as _functions
from .._tensor.tensor import Tensor

_windows = _functions.namespace("windows")
globals().update(_windows)

__all__ = sorted(_windows)


def general_cosine(M: int, *, a: Iterable[float], sym: bool = True, **options: Any) -> Tensor:
    """A sum of cosines, a[0] - a[1] cos(x) + a[2] cos(2 x) - ..., over one period.

    Args:
        M: how many numbers.
        a: the weights.
        sym: symmetric; else the first M of a window of M + 1, for periods.
        options: `dtype` (float32 or float64), `layout`, `device` and `requires_grad`.

    Raises:
        ValueError: a negative M, a layout or dtype that windows do not have, no weights.
        TypeError: weights that are no list.

    Example:
        >>> from pygrad.signal import windows
        >>> windows.general_cosine(3, a=[0.5, 0.5])
        tensor([0., 1., 0.])
    """
    if M > 1 and not isinstance(a, Iterable):
        raise TypeError("Coefficients must be a list/tuple")
    weights = list(a) if M > 1 else []
    window: Tensor = _windows["general_cosine"](M, a=weights, sym=sym, **options)
    return window
