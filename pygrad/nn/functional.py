"""torch.nn.functional: functions made from the op table's rows of this namespace."""

from __future__ import annotations

from pygrad import _ops

globals().update(_ops.namespace("n"))

__all__ = sorted(_ops.namespace("n"))
