"""Passes for graphs of one set of ops."""

from . import common

__all__ = ["common"]
