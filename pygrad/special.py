"""torch.special: functions made from the op table's rows of this namespace.

Type checkers read special.pyi, which `make stubs` writes from the same table.
"""

from __future__ import annotations

from . import _ops

globals().update(_ops.namespace("special"))

__all__ = sorted(_ops.namespace("special"))
