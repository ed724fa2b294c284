"""Helpers shared by passes."""

from . import fuser_utils, matcher_utils

__all__ = ["fuser_utils", "matcher_utils"]
