"""OpenMP, which is not here."""

from __future__ import annotations


def is_available() -> bool:
    """Always False."""
    return False
