"""torch.special: functions made from the op table's rows of this namespace, and of those functions.

Type checkers read special.pyi, which `make stubs` writes from the same table.
"""

from __future__ import annotations

from . import _ops, _special

globals().update(_ops.namespace("special") | _special.FUNCTIONS)

__all__ = sorted([*_ops.namespace("special"), *_special.FUNCTIONS])
