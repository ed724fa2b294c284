"""CUDA's back end, which is not here."""

from __future__ import annotations


def is_built() -> bool:
    """Always False."""
    return False
