"""Statistics of a DistributedDataParallel: its settings, and the times of its parts."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Sequence
from typing import Any, Final

from ..._tensor.tensor import Tensor

_FIRST: Final = 10
"""The number of first iterations, which are all recorded; later only one in `_EACH`."""
_EACH: Final = 100
_NAMES: Final = {"float32": "float", "float64": "double", "float16": "c10::Half"}
_VARIABLES: Final = {
    "master_addr": "MASTER_ADDR",
    "master_port": "MASTER_PORT",
    "torch_distributed_debug": "TORCH_DISTRIBUTED_DEBUG",
    "cuda_visible_devices": "CUDA_VISIBLE_DEVICES",
}
_PARTS: Final = {
    "forward_compute_time": ("forward_compute_time_start", "backward_compute_time_start"),
    "backward_compute_time": ("backward_compute_time_start", "backward_compute_time_end"),
    "backward_comm_time": ("backward_comm_time_start", "backward_comm_time_end"),
    "backward_compute_comm_overlap_time": (
        "backward_comm_time_start",
        "backward_compute_time_end",
    ),
}
"""The measured times: name, first moment, last moment."""
RELEVANT: Final = (
    "RANK LOCAL_RANK WORLD_SIZE MASTER_PORT MASTER_ADDR CUDA_VISIBLE_DEVICES GLOO_SOCKET_IFNAME "
    "GLOO_DEVICE_TRANSPORT NCCL_SOCKET_IFNAME TORCH_NCCL_BLOCKING_WAIT NCCL_DEBUG "
    "NCCL_DEBUG_SUBSYS NCCL_IB_DISABLE NCCL_P2P_DISABLE NCCL_P2P_LEVEL NCCL_SHM_DISABLE "
    "NCCL_SOCKET_NTHREADS NCCL_NSOCKS_PERTHREAD NCCL_BUFFSIZE NCCL_NTHREADS NCCL_RINGS "
    "NCCL_MAX_NCHANNELS NCCL_MIN_NCHANNELS NCCL_CHECKS_DISABLE NCCL_CHECK_POINTERS "
    "NCCL_LAUNCH_MODE NCCL_IB_HCA NCCL_IB_TIMEOUT NCCL_IB_RETRY_CNT NCCL_IB_GID_INDEX NCCL_IB_SL "
    "NCCL_IB_TC NCCL_IB_AR_THRESHOLD NCCL_IB_CUDA_SUPPORT NCCL_NET_GDR_LEVEL NCCL_NET_GDR_READ "
    "NCCL_SINGLE_RING_THRESHOLD NCCL_LL_THRESHOLD NCCL_TREE_THRESHOLD NCCL_ALGO NCCL_PROTO "
    "NCCL_IGNORE_CPU_AFFINITY NCCL_DEBUG_FILE NCCL_COLLNET_ENABLE NCCL_TOPO_FILE "
    "NCCL_TOPO_DUMP_FILE TORCH_NCCL_ASYNC_ERROR_HANDLING"
).split()


def _dump_DDP_relevant_env_vars() -> None:
    """Prints the environment variables that PyTorch's backends know."""
    print("\n".join(f"env:{name}={os.environ.get(name, 'N/A')}" for name in RELEVANT))


class Statistics:
    """The data of `DistributedDataParallel._get_ddp_logging_data`.

    Args:
        facts: the entries that do not change.
        parameters: the parameters whose gradients are reduced.
        buckets: the indices of each bucket's parameters.

    Attributes:
        error: the text of the last error; empty if there was none.
        sample_rate: the interval of recorded iterations.
    """

    def __init__(
        self, facts: dict[str, Any], parameters: Sequence[Tensor], buckets: Sequence[Sequence[int]]
    ) -> None:
        self.error = ""
        self.sample_rate = _EACH
        self._parameters = parameters
        self._moments: dict[str, int] = {}
        self._totals = dict.fromkeys(_PARTS, 0)
        self._samples = 0
        dtypes = dict.fromkeys(str(each.dtype).removeprefix("torch.") for each in parameters)
        self._data: dict[str, Any] = {
            **facts,
            **{key: os.environ.get(name, "N/A") for key, name in _VARIABLES.items()},
            "dtypes": ", ".join(_NAMES.get(each, each) for each in dtypes),
            "bucket_sizes": self._sizes(buckets),
            "num_parameter_tensors": len(parameters),
            "total_parameter_size_bytes": sum(each.nbytes for each in parameters),
            "iteration": 0,
        }

    def _sizes(self, buckets: Iterable[Sequence[int]]) -> str:
        sizes = [sum(self._parameters[number].nbytes for number in each) for each in buckets]
        return ", ".join(map(str, sizes))

    def mark(self, moment: str) -> None:
        """Records the current time as a moment."""
        self._moments[moment] = time.time_ns()

    def rebuilt(self, buckets: Sequence[Sequence[int]]) -> None:
        """Records that the buckets were rebuilt."""
        self._data["has_rebuilt_buckets"] = 1
        self._data["rebuilt_bucket_sizes"] = self._sizes(buckets)
        self._data["rebuilt_per_bucket_param_indices"] = ", ".join(
            " ".join(map(str, each)) for each in buckets
        )

    def begin_forward(self, iteration: int, unused: Iterable[int], order: Iterable[int]) -> None:
        """Records the previous iteration, if it is to be sampled.

        Args:
            iteration: the number of iterations so far.
            unused: the indices of the parameters that the previous iteration did not use.
            order: the indices in the order in which gradients arrived.
        """
        is_recorded = iteration <= _FIRST or iteration % self.sample_rate == 0
        if iteration and is_recorded and "backward_comm_time_end" in self._moments:
            self._samples += 1
            times = {
                name: max(0, self._moments[end] - self._moments[start])
                for name, (start, end) in _PARTS.items()
            }
            for name, each in times.items():
                self._totals[name] += each
            averages = {f"avg_{name}": sum_ // self._samples for name, sum_ in self._totals.items()}
            self._data.update(times, **averages, **self._moments, iteration=iteration)
            self._data["prev_iteration_grad_ready_order_indices"] = ", ".join(map(str, order))
            sizes = [self._parameters[number].nbytes for number in unused]
            self._data["unused_parameter_size"] = sum(sizes)
        self.mark("forward_compute_time_start")

    def record_reduction(self, buckets: int) -> None:
        """Records the end of the reduction, and the number of reduced buckets."""
        self.mark("backward_comm_time_end")
        self._data["num_buckets_reduced"] = buckets

    def record_hook(self, name: str) -> None:
        """Records the name of a communication hook."""
        self._data["comm_hook"] = name

    def data(self) -> dict[str, Any]:
        """All recorded data, as a dict."""
        if not self.error:
            return dict(self._data)
        return {**self._data, "has_error": 1, "error": self.error}
