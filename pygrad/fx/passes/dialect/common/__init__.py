"""Passes for graphs of any set of ops."""

from . import cse_pass

__all__ = ["cse_pass"]
