"""torch.fft: functions made from the op table's rows of this namespace.

Type checkers read fft.pyi, which `make stubs` writes from the same table.
"""

from __future__ import annotations

from .._table import functions as _functions

globals().update(_functions.namespace("fft"))

__all__ = sorted(_functions.namespace("fft"))
