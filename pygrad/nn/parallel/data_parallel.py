"""A module whose batches are spread over GPUs; without them it is called as it is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..modules.module import Module
from .parallel_apply import parallel_apply
from .replicate import replicate
from .scatter_gather import gather, scatter_kwargs

__all__ = ["DataParallel", "data_parallel"]


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
        self.dim = dim

    def forward(self, *inputs: Any, **kwargs: Any) -> Any:
        return self.module(*inputs, **kwargs)

    def replicate(self, module: Module, device_ids: Sequence[Any]) -> list[Module]:
        """Calls the function `replicate`."""
        return replicate(module, device_ids)

    def scatter(
        self, inputs: tuple[Any, ...], kwargs: dict[str, Any] | None, device_ids: Sequence[Any]
    ) -> Any:
        """Calls the function `scatter_kwargs` with `self.dim`."""
        return scatter_kwargs(inputs, kwargs, device_ids, dim=self.dim)

    def parallel_apply(
        self, replicas: Sequence[Module], inputs: Sequence[Any], kwargs: Any
    ) -> list[Any]:
        """Calls the function `parallel_apply`."""
        return parallel_apply(replicas, inputs, kwargs)

    def gather(self, outputs: Any, output_device: Any) -> Any:
        """Calls the function `gather` with `self.dim`."""
        return gather(outputs, output_device, dim=self.dim)


def data_parallel(
    module: Module,
    inputs: Any,
    device_ids: Any = None,
    output_device: Any = None,
    dim: int = 0,
    module_kwargs: dict[str, Any] | None = None,
) -> Any:
    """Would spread a batch over GPUs.

    Raises:
        RuntimeError: always, since there are no GPUs.
    """
    raise RuntimeError("device type could not be determined")
