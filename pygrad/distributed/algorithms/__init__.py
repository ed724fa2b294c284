"""Algorithms over ranks that are no collectives."""

from __future__ import annotations

from .join import Join, Joinable, JoinHook

__all__ = ["Join", "JoinHook", "Joinable"]
