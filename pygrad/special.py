"""torch.special: functions made from the op table's rows of this namespace."""

from __future__ import annotations

from typing import TYPE_CHECKING

from . import _ops

if TYPE_CHECKING:
    from ._special_table import *

globals().update(_ops.namespace("s"))

__all__ = sorted(_ops.namespace("s"))
