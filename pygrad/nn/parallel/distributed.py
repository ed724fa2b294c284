"""For scripts that share a batch among processes: there is one."""

from __future__ import annotations

from typing import Any

from ..modules.module import Module

__all__ = ["DistributedDataParallel"]


class DistributedDataParallel(Module):
    """Would share a batch among processes.

    Raises:
        NotImplementedError: always: there is one process. Scripts ask ``distributed.is_available``
            or count processes before.

    Example:
        >>> import pygrad
        >>> pygrad.nn.parallel.DistributedDataParallel(pygrad.nn.Linear(2, 1))
        Traceback (most recent call last):
        NotImplementedError: DistributedDataParallel: pygrad runs in one process
    """

    def __init__(self, module: Module, *_: Any, **__: Any) -> None:
        raise NotImplementedError("DistributedDataParallel: pygrad runs in one process")
