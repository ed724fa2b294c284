"""Pools of processes, under PyTorch's module name."""

from multiprocessing.pool import Pool

__all__ = ["Pool"]
