"""torch.linalg: functions made from the op table's rows of this namespace.

Type checkers read linalg.pyi, which `make stubs` writes from the same table.
"""

from __future__ import annotations

from .._ground.errors import LinAlgError as LinAlgError
from .._table import functions as _functions

globals().update(_functions.namespace("linalg"))

__all__ = sorted(["LinAlgError", *_functions.namespace("linalg")])
