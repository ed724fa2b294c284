"""Pools of processes, by the module in which PyTorch has them."""

from multiprocessing.pool import Pool

__all__ = ["Pool"]
