"""Branches and maps as calls, by the name that they had first."""

from __future__ import annotations

from ..._higher_order_ops.cond import cond
from ..._higher_order_ops.map import map

__all__ = ["cond", "map"]
