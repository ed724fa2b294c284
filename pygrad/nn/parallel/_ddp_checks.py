"""Checks of the arguments of DistributedDataParallel."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Collection
from typing import Any

from ... import futures
from ..._tensor.tensor import Tensor
from ...distributed._grad_bucket import GradBucket
from ..modules.module import Module
from ..modules.sparse import Embedding, EmbeddingBag
from ..parameter import UninitializedParameter

_BROADCAST_BUFFERS = (
    "`broadcast_buffers` is deprecated. Use `forward_sync_buffers` instead. IMPORTANT: unlike "
    "`broadcast_buffers=False`, `forward_sync_buffers=False` still syncs buffers at init. If you "
    "rely on buffers NOT being synced at init (e.g. rank-local buffers), keep using "
    "`broadcast_buffers=False` until `init_sync_buffers` is available."
)
_BOTH = (
    "Both `broadcast_buffers` and `forward_sync_buffers` were specified. `broadcast_buffers` is "
    "deprecated and its value is ignored when `forward_sync_buffers` is provided."
)


def refuse(**given: Any) -> None:
    """Raises:
    NotImplementedError: an unsupported argument is given.
    """
    for name, value in given.items():
        if value:
            raise NotImplementedError(f"DistributedDataParallel: {name}")


def check_module(
    module: Module, ignored: Collection[str], device_ids: Any, output_device: Any
) -> None:
    """Checks whether DistributedDataParallel can train a module.

    Args:
        module: the module.
        ignored: names of parameters to ignore.
        device_ids, output_device: arguments for GPUs.

    Raises:
        RuntimeError, ValueError, NotImplementedError: it cannot be trained.
    """
    parameters = [each for name, each in module.named_parameters() if name not in ignored]
    if not any(each.requires_grad for each in parameters):
        raise RuntimeError(
            "DistributedDataParallel is not needed when a module doesn't have any parameter "
            "that requires a gradient."
        )
    if device_ids is not None and len(device_ids) > 1:
        raise ValueError("device_ids can only be None or contain a single element.")
    if device_ids or output_device:
        raise ValueError(
            "DistributedDataParallel device_ids and output_device arguments only work with "
            "single-device/multiple-device GPU modules or CPU modules, but got device_ids "
            f"{device_ids}, output_device {output_device}, and module parameters "
            f"{ ({each.device for each in parameters}) }."
        )
    if any(isinstance(each, UninitializedParameter) for each in parameters):
        raise RuntimeError(
            "Modules with uninitialized parameters can't be used with "
            "`DistributedDataParallel`. Run a dummy forward pass to correctly initialize the "
            "modules"
        )
    for each in module.modules():
        if type(each).__name__ == "SyncBatchNorm":
            raise ValueError("SyncBatchNorm layers only work with GPU modules")
        if getattr(each, "sparse", False) and isinstance(each, (Embedding, EmbeddingBag)):
            raise NotImplementedError("DistributedDataParallel: sparse gradients")


def buffer_sync(older: bool | None, newer: bool | None) -> tuple[bool, bool]:
    """Whether buffers are synchronized at the start, and before each forward.

    Args:
        older: the argument `broadcast_buffers`.
        newer: the argument `forward_sync_buffers`.
    """
    if older is not None:
        text = _BROADCAST_BUFFERS if newer is None else _BOTH
        warnings.warn(text, FutureWarning, stacklevel=3)
    at_start = newer is not None or older is not False
    return at_start, newer if newer is not None else older is not False


def check_hook(hook: Callable[..., Any]) -> None:
    """Raises:
    TypeError: a communication hook is no function.
    ValueError: its annotations are wrong.
    """
    if not callable(hook):
        raise TypeError("Communication hook must be callable.")
    signature = inspect.signature(hook, eval_str=True)
    of_bucket = signature.parameters["bucket"].annotation
    if of_bucket not in (inspect.Signature.empty, GradBucket):
        raise ValueError("Communication hook: bucket annotation should be dist.GradBucket.")
    returned = inspect.Signature.empty, futures.Future[Tensor]
    if signature.return_annotation not in returned:
        raise ValueError(
            "Communication hook: return annotation should be torch.futures.Future[torch.Tensor]."
        )
