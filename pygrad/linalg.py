"""torch.linalg: functions made from the op table's rows of this namespace."""

from __future__ import annotations

from . import _ops

globals().update(_ops.namespace("l"))

__all__ = sorted(_ops.namespace("l"))
