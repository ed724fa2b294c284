"""OpenMP, which pygrad lacks."""

from __future__ import annotations


def is_available() -> bool:
    """Always False."""
    return False
