"""PyTorch's names for what `_module_states` does."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from .._tensor import Tensor
from ._module_states import broadcast_all, verify_shapes


def _verify_param_shape_across_processes(
    process_group: Any, tensors: Sequence[Tensor], logger: Any = None
) -> None:
    """Compares numbers, shapes and dtypes of tensors of all ranks.

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
    """Gives all ranks the parameters and buffers of one, but those whose names are to be ignored.

    Args:
        module: has them.
        process_group: the ranks.
        broadcast_bucket_size: of no effect.
        src: whose they are, its rank in the group.
        params_and_buffers_to_ignore: the names.
        broadcast_buffers: buffers too.
    """
    named = [*module.named_parameters(), *(module.named_buffers() if broadcast_buffers else ())]
    kept = [each for name, each in named if name not in params_and_buffers_to_ignore]
    broadcast_all(kept, process_group, src)
