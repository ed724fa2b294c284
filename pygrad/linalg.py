"""torch.linalg: functions made from the op table's rows of this namespace.

Type checkers read linalg.pyi, which `make stubs` writes from the same table.
"""

from __future__ import annotations

from . import _ops
from ._errors import LinAlgError as LinAlgError

globals().update(_ops.namespace("linalg"))

__all__ = sorted(["LinAlgError", *_ops.namespace("linalg")])
