"""torch.fft: functions made from the op table's rows of this namespace.

Type checkers read fft.pyi, which `make stubs` writes from the same table.
"""

from __future__ import annotations

from . import _ops

globals().update(_ops.namespace("fft"))

__all__ = sorted(_ops.namespace("fft"))
