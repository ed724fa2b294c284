"""A module that spreads batches over GPUs; without GPUs it calls the module directly."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..modules.module import Module
from .parallel_apply import parallel_apply
from .replicate import replicate
from .scatter_gather import gather, scatter_kwargs

__all__ = ["DataParallel", "data_parallel"]


class DataParallel(Module):
    """Calls a module directly, as PyTorch does without GPUs.

    Args:
        module: the module.
        device_ids: ignored, since there are no GPUs.
        output_device: ignored.
        dim: ignored.

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
