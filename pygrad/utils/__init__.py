"""Helpers around training: `pygrad.utils.data` feeds batches to a loop."""

from pygrad.utils import data

__all__ = ["data"]
