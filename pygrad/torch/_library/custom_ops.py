"""Functions that become ops: see `pygrad.library`."""

from __future__ import annotations

from ...library import CustomOpDef, custom_op

__all__ = ["CustomOpDef", "custom_op"]
