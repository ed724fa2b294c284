"""How tensors that several processes share would be placed: the names alone, as libraries make
them when they are imported. There are no such tensors here.
"""

from __future__ import annotations

from .placement_types import Partial, Placement, Replicate, Shard

__all__ = ["Partial", "Placement", "Replicate", "Shard"]
