"""Programs of several processes: `torch.distributed`, over MPI.

A program is started by ``mpiexec -n 2 python train.py`` and calls `init_process_group`. Sums over
ranks are added in the order of a fixed tree.

Example:
    >>> import pygrad as torch
    >>> torch.distributed.is_available(), torch.distributed.is_initialized()
    (True, False)
"""

from __future__ import annotations

from .._ground.absent import answers
from ._barriers import barrier, monitored_barrier
from ._buckets import _compute_bucket_assignment_by_size as _compute_bucket_assignment_by_size
from ._debug_level import (
    DebugLevel,
    get_debug_level,
    set_debug_level,
    set_debug_level_from_env,
)
from ._errors import (
    DistBackendError,
    DistError,
    DistNetworkError,
    DistStoreError,
    QueueEmptyError,
)
from ._exchanges import (
    all_gather,
    all_gather_coalesced,
    all_gather_into_tensor,
    all_gather_single,
    all_to_all,
    all_to_all_single,
    broadcast,
    gather,
    scatter,
)
from ._grad_bucket import BuiltinCommHookType, GradBucket
from ._group import (
    Backend,
    GroupMember,
    ProcessGroup,
    default_pg_timeout,
    destroy_process_group,
    get_backend,
    get_backend_config,
    get_default_backend_for_device,
    get_global_rank,
    get_group_rank,
    get_node_local_rank,
    get_pg_count,
    get_process_group_ranks,
    get_rank,
    get_world_size,
    group,
    init_process_group,
    is_available,
    is_backend_available,
    is_initialized,
    is_mpi_available,
    new_group,
    new_subgroups,
    new_subgroups_by_enumeration,
)
from ._objects import (
    all_gather_object,
    broadcast_object_list,
    gather_object,
    recv_object_list,
    scatter_object_list,
    send_object_list,
)
from ._point_to_point import P2POp, batch_isend_irecv, irecv, isend, recv, send
from ._progress import Work
from ._reduce_op import ReduceOp, reduce_op, supports_complex
from ._reductions import (
    all_reduce,
    all_reduce_coalesced,
    reduce,
    reduce_scatter,
    reduce_scatter_single,
    reduce_scatter_tensor,
)

_ABSENT = "torchelastic_launched gloo_available nccl_available ucc_available xccl_available"
globals().update(answers(__name__, {f"is_{name}": False for name in _ABSENT.split()}))

__all__ = [
    "Backend",
    "BuiltinCommHookType",
    "DebugLevel",
    "DistBackendError",
    "DistError",
    "DistNetworkError",
    "DistStoreError",
    "GradBucket",
    "GroupMember",
    "P2POp",
    "ProcessGroup",
    "QueueEmptyError",
    "ReduceOp",
    "Work",
    "all_gather",
    "all_gather_coalesced",
    "all_gather_into_tensor",
    "all_gather_object",
    "all_gather_single",
    "all_reduce",
    "all_reduce_coalesced",
    "all_to_all",
    "all_to_all_single",
    "barrier",
    "batch_isend_irecv",
    "broadcast",
    "broadcast_object_list",
    "default_pg_timeout",
    "destroy_process_group",
    "gather",
    "gather_object",
    "get_backend",
    "get_backend_config",
    "get_debug_level",
    "get_default_backend_for_device",
    "get_global_rank",
    "get_group_rank",
    "get_node_local_rank",
    "get_pg_count",
    "get_process_group_ranks",
    "get_rank",
    "get_world_size",
    "group",
    "init_process_group",
    "irecv",
    "is_available",
    "is_backend_available",
    "is_initialized",
    "is_mpi_available",
    "isend",
    "monitored_barrier",
    "new_group",
    "new_subgroups",
    "new_subgroups_by_enumeration",
    "recv",
    "recv_object_list",
    "reduce",
    "reduce_op",
    "reduce_scatter",
    "reduce_scatter_single",
    "reduce_scatter_tensor",
    "scatter",
    "scatter_object_list",
    "send",
    "send_object_list",
    "set_debug_level",
    "set_debug_level_from_env",
    "supports_complex",
]
__all__ += [f"is_{name}" for name in _ABSENT.split()]
