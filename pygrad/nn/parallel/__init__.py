"""Data parallel modules. There is no GPU, so modules run on the CPU, as in PyTorch without GPUs."""

from __future__ import annotations

from .data_parallel import DataParallel, data_parallel
from .distributed import DistributedDataParallel
from .parallel_apply import parallel_apply
from .replicate import replicate
from .scatter_gather import gather, scatter

__all__ = [
    "DataParallel",
    "DistributedDataParallel",
    "data_parallel",
    "gather",
    "parallel_apply",
    "replicate",
    "scatter",
]


class DistributedDataParallelCPU(DistributedDataParallel):
    """The older name of :class:`DistributedDataParallel`."""
