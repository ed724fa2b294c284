"""Queues between processes, by the module in which PyTorch has them."""

from multiprocessing.queues import Queue, SimpleQueue

__all__ = ["Queue", "SimpleQueue"]
