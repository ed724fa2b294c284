"""For scripts that wrap their model: there is one device, and one process."""

from __future__ import annotations

from typing import Any

from .modules.module import Module

__all__ = ["DataParallel", "DistributedDataParallel"]


class DataParallel(Module):
    """Calls the module that it holds, as PyTorch's does where there is no GPU.

    Args:
        module: what is called.
        device_ids: of no effect: there are no devices to spread a batch over.
        output_device: likewise.
        dim: likewise.

    Example:
        >>> import pygrad
        >>> model = pygrad.nn.DataParallel(pygrad.nn.Linear(2, 1))
        >>> sorted(model.state_dict())
        ['module.bias', 'module.weight']
    """

    def __init__(
        self, module: Module, device_ids: Any = None, output_device: Any = None, dim: int = 0
    ) -> None:
        super().__init__()
        self.module = module
        self.device_ids: list[int] = []

    def forward(self, *inputs: Any, **kwargs: Any) -> Any:
        return self.module(*inputs, **kwargs)


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
