"""torch.linalg: functions made from the op table's rows of this namespace, and of those functions.

Type checkers read linalg.pyi, which `make stubs` writes from the same table.
"""

from __future__ import annotations

from . import _linalg, _ops
from ._errors import LinAlgError as LinAlgError
from ._linalg import *  # noqa: F403

globals().update(_ops.namespace("linalg"))

__all__ = sorted(["LinAlgError", *_ops.namespace("linalg"), *_linalg.__all__])
