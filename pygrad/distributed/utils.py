"""The functions of `_module_states` under PyTorch's names."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from .._tensor.tensor import Tensor
from ._module_states import broadcast_all, verify_shapes


def _verify_param_shape_across_processes(
    process_group: Any, tensors: Sequence[Tensor], logger: Any = None
) -> None:
    """Compares the numbers, shapes and dtypes of tensors of all ranks.

    Raises:
        RuntimeError: on every rank, if they differ.
    """
    try:
        verify_shapes(tensors, process_group)
    except RuntimeError as error:
        if logger is not None:
            logger.error = str(error)
        raise


def _sync_module_states(
    module: Any,
    process_group: Any,
    broadcast_bucket_size: int,
    src: int,
    params_and_buffers_to_ignore: Collection[str],
    broadcast_buffers: bool = True,
) -> None:
    """Copies one rank's parameters and buffers to all ranks, except the ignored names.

    Args:
        module: the module.
        process_group: the ranks.
        broadcast_bucket_size: ignored.
        src: the rank in the group whose tensors are copied.
        params_and_buffers_to_ignore: the names to ignore.
        broadcast_buffers: whether to copy buffers too.
    """
    named = [*module.named_parameters(), *(module.named_buffers() if broadcast_buffers else ())]
    kept = [each for name, each in named if name not in params_and_buffers_to_ignore]
    broadcast_all(kept, process_group, src)
