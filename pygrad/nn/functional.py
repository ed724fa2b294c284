"""torch.nn.functional: functions made from the op table's rows of this namespace."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pygrad import _ops

if TYPE_CHECKING:
    from pygrad._functional_table import *

globals().update(_ops.namespace("n"))

__all__ = sorted(_ops.namespace("n"))
