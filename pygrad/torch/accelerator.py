"""torch.accelerator: no accelerator is present."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .._ground.absent import answers, refusals

_WITHOUT = """
    current_device_idx current_device_index current_stream empty_cache empty_host_cache
    get_device_capability get_memory_info max_memory_allocated max_memory_reserved memory_allocated
    memory_reserved memory_stats reset_accumulated_memory_stats reset_peak_memory_stats
    set_device_idx set_device_index set_stream synchronize
"""
_MESSAGE = "Cannot access accelerator device when none is available."

_functions = answers(
    __name__, {"is_available": False, "device_count": 0, "current_accelerator": None}
)
_functions |= refusals(__name__, _WITHOUT, RuntimeError, _MESSAGE)
globals().update(_functions)


class device_index:
    """Would choose an accelerator for the ops inside the scope; None chooses none.

    Raises:
        RuntimeError: on entering with a number: there is no accelerator.
    """

    def __init__(self, device: int | None) -> None:
        self.idx = device

    def __enter__(self) -> None:
        if self.idx is not None:
            raise RuntimeError(_MESSAGE)

    def __exit__(self, *_: object) -> None:
        pass


__all__: list[str] = ["device_index"]
__all__ += _functions

if TYPE_CHECKING:

    def __getattr__(name: str) -> Any: ...
