"""`get_worker_info` and `WorkerInfo`, under PyTorch's module name."""

from __future__ import annotations

from .._fetch import WorkerInfo as WorkerInfo
from .._fetch import get_worker_info as get_worker_info

__all__: list[str] = []
