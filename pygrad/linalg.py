"""torch.linalg: functions made from the op table's rows of this namespace.

Type checkers read linalg.pyi, which `make stubs` writes from the same table.
"""

from __future__ import annotations

from . import _ops

globals().update(_ops.namespace("l"))

__all__ = sorted(_ops.namespace("l"))
