"""What scripts ask before they go to many processes: there is this one.

Example:
    >>> import pygrad as torch
    >>> torch.distributed.is_available()
    False
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ._absent import answers, refusals

_ASKED = "available initialized torchelastic_launched gloo_available mpi_available nccl_available"
_functions = answers(__name__, {f"is_{name}": False for name in _ASKED.split()})
_functions |= refusals(
    __name__,
    "get_rank get_world_size get_backend barrier broadcast all_reduce reduce all_gather gather "
    "scatter send recv destroy_process_group",
    ValueError,
    "Default process group has not been initialized, please make sure to call init_process_group.",
)
_functions |= refusals(
    __name__,
    "init_process_group new_group",
    NotImplementedError,
    "distributed.{}: pygrad runs in one process",
)
globals().update(_functions)

__all__: list[str] = []
__all__ += _functions

if TYPE_CHECKING:

    def __getattr__(name: str) -> Any: ...
