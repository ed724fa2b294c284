"""torch.linalg: functions made from the op table's rows of this namespace."""

from __future__ import annotations

from typing import TYPE_CHECKING

from . import _ops

if TYPE_CHECKING:
    from ._linalg_table import *

globals().update(_ops.namespace("l"))

__all__ = sorted(_ops.namespace("l"))
