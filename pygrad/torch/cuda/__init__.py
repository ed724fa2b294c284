"""CUDA as PyTorch without CUDA shows it: queries are answered, and functions that need a device
raise the errors of PyTorch built without CUDA.

Example:
    >>> import pygrad as torch
    >>> torch.device("cuda" if torch.cuda.is_available() else "cpu")
    device(type='cpu')
    >>> torch.cuda.synchronize()
    Traceback (most recent call last):
    AssertionError: Torch not compiled with CUDA enabled
"""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING, Any

from ..._ground.absent import answers, refusals
from ..._ground.errors import OutOfMemoryError
from . import amp as amp
from . import nvtx as nvtx
from . import profiler as profiler

_ANSWERS: dict[str, Any] = {
    **dict.fromkeys(
        "is_available is_initialized is_bf16_supported is_tf32_supported".split(), False
    ),
    **dict.fromkeys(
        "device_count memory_allocated max_memory_allocated memory_reserved".split(), 0
    ),
    **dict.fromkeys("max_memory_reserved memory_cached max_memory_cached".split(), 0),
    **dict.fromkeys("get_rng_state_all get_arch_list".split(), list),
    **dict.fromkeys("memory_stats host_memory_stats".split(), OrderedDict),
    **dict.fromkeys("manual_seed manual_seed_all seed seed_all empty_cache".split()),
    **dict.fromkeys("set_rng_state set_rng_state_all set_stream".split()),
    "get_gencode_flags": "",
}
"""The result of each function; a manual seed, and the functions of the last line but one, do
nothing.
"""
_UNCOMPILED = """
    init current_device synchronize current_stream default_stream get_device_name
    get_device_properties get_device_capability mem_get_info ipc_collect get_rng_state initial_seed
    can_device_access_peer get_sync_debug_mode set_sync_debug_mode set_per_process_memory_fraction
    current_blas_handle cudart
"""
_TYPES = "Float Double Half BFloat16 Byte Char Short Int Long Bool"

_functions = answers(__name__, _ANSWERS)
_functions |= refusals(
    __name__, _UNCOMPILED, AssertionError, "Torch not compiled with CUDA enabled"
)
_functions |= refusals(
    __name__,
    " ".join(f"{name}Tensor" for name in _TYPES.split()),
    TypeError,
    "type torch.cuda.{} not available. Torch not compiled with CUDA enabled.",
)
_functions |= refusals(
    __name__,
    " ".join(f"{name}Storage" for name in _TYPES.split()),
    AssertionError,
    "Torch not compiled with CUDA enabled",
)
for _names, _error, _message in (
    ("Stream", RuntimeError, "torch.cuda.{} requires CUDA support"),
    ("Event CUDAGraph", RuntimeError, "Tried to instantiate dummy base class {}"),
    (
        "is_current_stream_capturing",
        RuntimeError,
        "Tried to instantiate dummy base class _cuda_isCurrentStreamCapturing",
    ),
    ("set_device", AttributeError, "module 'torch._C' has no attribute '_cuda_setDevice'"),
    (
        "reset_peak_memory_stats reset_max_memory_allocated reset_max_memory_cached",
        AttributeError,
        "module 'torch._C' has no attribute '_cuda_resetPeakMemoryStats'",
    ),
):
    _functions |= refusals(__name__, _names, _error, _message)
globals().update(_functions)

has_half = True
has_magma = False
default_generators: tuple[Any, ...] = ()


class device:
    """Would choose a device for the ops inside of it.

    Raises:
        RuntimeError: on entering, unless the number is below 0: there is no device.
    """

    def __init__(self, device: Any) -> None:
        self.idx = device
        self.prev_idx = -1

    def __enter__(self) -> None:
        if isinstance(self.idx, int) and self.idx < 0:
            return
        raise RuntimeError("PyTorch was compiled without CUDA support")

    def __exit__(self, *_: object) -> None:
        pass


__all__ = ["OutOfMemoryError", "device", "nvtx", "profiler"]
__all__ += _functions

if TYPE_CHECKING:

    def __getattr__(name: str) -> Any: ...
