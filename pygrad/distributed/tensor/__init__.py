"""Placements of tensors that several processes share: only the names, which libraries use when they
are imported. pygrad has no such tensors.
"""

from __future__ import annotations

from .placement_types import Partial, Placement, Replicate, Shard

__all__ = ["Partial", "Placement", "Replicate", "Shard"]
