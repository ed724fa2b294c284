"""Passes in a row."""

from . import pass_base, pass_manager

__all__ = ["pass_base", "pass_manager"]
